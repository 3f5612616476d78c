#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The process stays within the memory it was given however many inodes are
# looked at, gives back what the kernel forgets, and a full cache unmounts fast.
#
#   memory.sh MODE [FILES]
. "$(dirname "$0")/lib.sh"
files=${2:-200000}
rss() { awk '$1 == "VmRSS:" { print int($2 / 1024) }' "/proc/$(mount_pid mnt)/status"; }
look() { find mnt/tree -printf '%s\n' > /dev/null; }
make_tree() {
	local d per=1000
	for ((d = 0; d < files / per; d++)); do
		mkdir -p mnt/tree/$((d % 10))/$d
		"$HELPERS/mt_dirwalk" fill mnt/tree/$((d % 10))/$d $per
	done
}
touch_some() {
	find mnt/tree -type f | awk 'NR % 20 == 0' | xargs touch
}
write_some() {
	find mnt/tree -type f | awk 'NR % 400 == 0' |
		while read -r f; do head -c 200000 /dev/zero > "$f"; done
}

make_volume vol.img 3G -J 64
mount_volume vol.img mnt cache=64M,inodes=5000
timed "$files files" make_tree
umount_clean mnt vol.img

mount_volume vol.img mnt cache=64M,inodes=5000
timed "a look at all" look
echo "resident after it: $(rss) MiB"
# The kernel may hold all inodes, about 1 KiB each here, on top of the cache
[ "$(rss)" -lt $((64 + 64 + files / 1000)) ] || fail "$(rss) MiB resident"
sync
echo 2 > /proc/sys/vm/drop_caches
wait_for 60 "memory to shrink" eval '[ "$(rss)" -lt 140 ]'
echo "after the kernel dropped its caches: $(rss) MiB"
timed "a look" look
timed "data" write_some
[ "$(rss)" -lt $((64 + 64 + files / 1000)) ] || fail "$(rss) MiB resident"
timed "times" touch_some
within 30 "umount" umount_volume mnt
clean_fsck vol.img
mount_volume vol.img mnt
same "files" "$(find mnt/tree -type f | wc -l)" "$files"
timed "rm -r" rm -r mnt/tree
within 60 "umount" umount_volume mnt
clean_fsck vol.img
clean_logs
