#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Short of memory: a mount and the programs that use it in control groups whose
# memory must be reclaimed all the time, also from dirty mapped pages of the mount
# itself. Nothing waits for itself, nothing is killed, nothing is lost.
#
#   pressure.sh MODE [FILES]
. "$(dirname "$0")/lib.sh"
have fio
files=${2:-10000}

# new_group NAME: of the memory controller, whatever its version.
new_group() {
	local v1=/sys/fs/cgroup/memory v2=/sys/fs/cgroup
	if [ -e $v1/memory.limit_in_bytes ]; then
		group=$v1/$(basename "$work").$1
		limit=memory.limit_in_bytes peak=memory.max_usage_in_bytes
	elif grep -q -w memory $v2/cgroup.subtree_control 2> /dev/null; then
		group=$v2/$(basename "$work").$1
		limit=memory.max peak=memory.peak
	else
		skip "no memory control groups"
	fi
	mkdir "$group" 2> /dev/null || skip "no control groups can be made"
	groups+=("$group")
}
groups=()

# All that is in the groups was started here.
leave() {
	local g pid
	for g in ${groups[@]+"${groups[@]}"}; do
		while read -r pid; do
			kill -KILL "$pid" 2> /dev/null || true
		done < "$g/cgroup.procs"
	done
	for g in ${groups[@]+"${groups[@]}"}; do
		for _ in $(seq 100); do
			rmdir "$g" 2> /dev/null && break
			sleep 0.1
		done
	done
}
trap leave EXIT

# inside GROUP COMMAND...: as a member of it.
inside() (
	echo "$BASHPID" > "$1/cgroup.procs"
	shift
	exec "$@"
)

# set_limit GROUP MIB
set_limit() {
	echo "$2M" > "$1/$limit" || fail "no limit of $2 MiB for $1"
}

# load NAME COMMAND...: it ends in time, and neither it nor the mount is killed.
load() {
	local name=$1
	shift
	timed "$name" inside "$programs" timeout -s KILL "$(patiently 300)" "$@" \
		> "$name.out" 2>&1 ||
		fail "$name returned $?: $(tail -n 20 "$name.out")"
	grep "^$name: .* ms$" "$name.out"
	check "the mount after $name" "$UGFS" status mnt > status
	clean_logs
}
verified() {
	local name=$1
	shift
	load "$name" fio --name="$name" --directory=mnt --verify=crc32c \
		--verify_fatal=1 --do_verify=1 --randseed=5 --unlink=1 \
		--thread --minimal "$@"
}

make_volume vol.img 1G -J 32
mount_volume vol.img mnt
mkdir mnt/tree
for d in $(seq 20); do
	mkdir "mnt/tree/$d"
	"$HELPERS/mt_dirwalk" fill "mnt/tree/$d" $((files / 20))
done
umount_clean mnt vol.img

# The kernel may hold all inodes, 1 KiB each in the mount process, on top of its
# cache. Without the right to stay out of the way of reclaim it must have a group
# of its own.
mount_mib=$((16 + 24 + files / 1000))
programs_mib=40
new_group programs
programs=$group
if [ $((0x$(awk '/^CapEff/ { print $2 }' /proc/self/status) >> 24 & 1)) = 1 ]; then
	inside "$programs" "$UGFS" mount -L mnt.log \
		-o "pagecache=$mode,cache=16M,inodes=1000" vol.img mnt
	set_limit "$programs" $((mount_mib + programs_mib))
else
	echo "no CAP_SYS_RESOURCE: two groups"
	new_group mount
	inside "$group" "$UGFS" mount -L mnt.log \
		-o "pagecache=$mode,cache=16M,inodes=1000" vol.img mnt
	set_limit "$group" $mount_mib
	set_limit "$programs" $programs_mib
fi
load look find mnt/tree -type f -size +1G
verified mapped --ioengine=mmap --rw=randwrite --bs=4k --size=64m
verified buffered --ioengine=psync --rw=randwrite --bs=8k --size=64m
load copy cp -r mnt/tree/1 mnt/copy
load remove rm -r mnt/copy mnt/tree
for group in "${groups[@]}"; do
	[ ! -e "$group/$peak" ] || # version 2: since Linux 5.19
		echo "${group##*.}: at most $(cat "$group/$peak") bytes"
done
umount_clean mnt vol.img
