#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# mount(8), umount(8) and fstab find our helpers; umount returns when the
# process has gone; remount is refused in words.
. "$(dirname "$0")/../lib/lib.sh"

# The helpers must be in /sbin: a copy of it, in this name space only.
mkdir sbin real-sbin
mount --bind "$(readlink -f /sbin)" real-sbin
for f in real-sbin/*; do
	ln -s "$work/$f" "sbin/${f##*/}"
done
for name in mount.ugfs umount.ugfs mount.fuse.ugfs umount.fuse.ugfs \
	mount.fuseblk.ugfs umount.fuseblk.ugfs; do
	ln -sf "$UGFS" "sbin/$name"
done
mount --bind sbin "$(readlink -f /sbin)"

make_volume vol.img 200M
check "mount(8)" mount -t ugfs -o noatime,nodev vol.img mnt
pid=$(mount_pid mnt)
findmnt -n -o FSTYPE,SOURCE mnt | grep -q "fuse.ugfs *$work/vol.img" ||
	fail "findmnt: $(findmnt mnt)"
findmnt -n -o OPTIONS mnt | grep -q "nodev.*noatime" ||
	fail "options: $(findmnt -n -o OPTIONS mnt)"
refused 1 "remount: a mounted volume cannot be changed" \
	mount -o remount,ro mnt
head -c 40000000 /dev/urandom > data
cp data mnt/
check "umount(8)" umount mnt
wait_for 5 "the process to have gone" process_gone "$pid"
clean_fsck vol.img

cp /etc/fstab fstab 2>/dev/null || true
echo "$work/vol.img $work/mnt ugfs noauto,nofail,_netdev,x-systemd.x=1,data=writeback 0 0" >> fstab
check "fstab" mount -T fstab "$work/mnt"
check "contents" cmp data mnt/data
check "umount by directory" umount mnt
check "rehearsal" mount -f -t ugfs vol.img mnt
! mountpoint -q mnt || fail "a rehearsal has mounted"
refused 1 "frobnicate: unknown mount option" \
	mount -t ugfs -o frobnicate vol.img mnt
check "sloppy" mount -s -t ugfs -o frobnicate vol.img mnt
check "umount" umount mnt
refused 32 "nothing.img" mount -t ugfs nothing.img mnt
clean_fsck vol.img
clean_logs
