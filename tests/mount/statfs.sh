#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# df is right at all times on one node: after each step the used space is what
# the files take, and the value survives unmounts and crashes.
. "$(dirname "$0")/../lib/lib.sh"

free() { stat -f -c %f mnt; }
make_volume vol.img 300M
mount_volume vol.img mnt
same "block size" "$(stat -f -c %S mnt)" 4096
same "name length" "$(stat -f -c %l mnt)" 255
# A directory does not shrink again: not the root, of which this would be seen
mkdir mnt/d
start=$(free)
inodes=$(stat -f -c %d mnt)

# Seen at once, although the blocks are not allocated yet
"$HELPERS/mt_pattern" write mnt/d/f 0 40M 1
[ $((start - $(free))) -ge 10240 ] || fail "df does not see a new file"
sync mnt/d/f
used=$((start - $(free)))
same "blocks of a file of 40 MiB" "$used" \
	"$(($(stat -c %b mnt/d/f) / 8))"
for i in $(seq 300); do
	echo x > mnt/d/small$i
done
used=$(($(stat -f -c %d mnt) - inodes))
[ "$used" -le 0 ] || fail "free inodes grew by $used while making files"
umount_clean mnt vol.img

mount_volume vol.img mnt
before=$(free)
"$HELPERS/mt_pattern" write mnt/d/g 0 10M 1 fsync
kill_volume mnt
mount_volume vol.img mnt
same "after a crash" "$((before - $(free)))" "$(($(stat -c %b mnt/d/g) / 8))"
rm -r mnt/d
mkdir mnt/d
umount_clean mnt vol.img
mount_volume vol.img mnt
same "free at the end" "$(free)" "$start"
same "inodes at the end" "$(stat -f -c %d mnt)" "$inodes"
umount_clean mnt vol.img
