#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A volume is mounted, used, unmounted and mounted again: what was written is
# there, and the referee finds nothing.
. "$(dirname "$0")/../lib/lib.sh"

make_volume vol.img 200M
mount_volume vol.img mnt
same "a new volume" "$(ls -A mnt)" ""
grep -q " $work/mnt fuse.ugfs " /proc/mounts || fail "not in /proc/mounts"

echo hello > mnt/short
mkdir -p mnt/a/b/c
head -c 5000000 /dev/urandom > mnt/a/b/c/long
cp mnt/a/b/c/long long
ln -s ../short mnt/a/link
same "through a symlink" "$(cat mnt/a/link)" hello
check "long file" cmp long mnt/a/b/c/long
same "inode of the root" "$(stat -c %i mnt)" "$(stat -c %i mnt/.)"

umount_clean mnt vol.img
same "the bare mount point" "$(ls -A mnt)" ""

mount_volume vol.img mnt
same "after a remount" "$(cat mnt/short)" hello
check "long file after a remount" cmp long mnt/a/b/c/long
rm -r mnt/a mnt/short
umount_clean mnt vol.img
