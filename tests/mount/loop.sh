#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Files of the volume as block devices: another file system on a loop device on
# top survives; swap files are refused.
. "$(dirname "$0")/../lib/lib.sh"

make_volume vol.img 400M
mount_volume vol.img mnt
truncate -s 100M mnt/disk
mkfs.ext4 -q mnt/disk
mkdir upper
mount -o loop mnt/disk upper || skip "no loop devices"
cp -a /usr/include/linux upper/
sync -f upper
check "compare" diff -r /usr/include/linux upper/linux
umount upper
check "the file system on top" e2fsck -f -n mnt/disk > e2fsck.out 2>&1
umount_clean mnt vol.img
mount_volume vol.img mnt
mount -o loop mnt/disk upper
check "compare after a remount" diff -r /usr/include/linux upper/linux
umount upper

dd if=/dev/zero of=mnt/swap bs=1M count=20 status=none
chmod 600 mnt/swap
mkswap -q mnt/swap > /dev/null
! swapon mnt/swap 2> note || fail "swapon succeeded"
grep -q "Invalid argument" note || fail "swapon said: $(cat note)"
umount_clean mnt vol.img
