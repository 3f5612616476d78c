#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# On a block device: mounted as fuseblk, so that a plain umount(2) waits for
# us; device and image are claimed while it is mounted, and free afterwards.
. "$(dirname "$0")/../lib/lib.sh"

make_volume vol.img 200M
loop_device vol.img --direct-io=on

mount_volume "$dev" mnt
grep -q "^$dev $work/mnt fuseblk.ugfs " /proc/mounts ||
	fail "not a fuseblk mount: $(grep mnt /proc/mounts)"
refused 32 "$dev is already mounted on $work/mnt" \
	"$UGFS" mount "$dev" /mnt
refused 32 "vol.img is in use as $dev" "$UGFS" mount vol.img /mnt
! mkfs.ext4 -q "$dev" > mkfs.out 2>&1 || fail "mkfs overwrote a mounted device"

head -c 30000000 /dev/urandom > data
cp data mnt/data
# Without the helper: the kernel itself waits for the last write.
umount -i mnt
clean_fsck "$dev"

mount_volume "$dev" mnt
check "contents" cmp data mnt/data
umount_clean mnt "$dev"

# An image, its loop device and another one of it are one volume
mount_volume vol.img mnt
refused 32 "vol.img is already mounted on $work/mnt" "$UGFS" mount "$dev" /mnt
umount_clean mnt vol.img
mount_volume "$dev" mnt
first=$dev
exec 9< "$first" # what loop_device gives up
loop_device vol.img
[ "$dev" != "$first" ] || fail "not another loop device"
refused 32 "vol.img is in use" "$UGFS" mount "$dev" /mnt
umount_clean mnt "$first"
exec 9<&-

loop_device vol.img --read-only
"$UGFS" mount "$dev" mnt 2> note
grep -q "write-protected, mounting it read-only" note || fail "$(cat note)"
errno EROFS "$HELPERS/mt_sys" mkdir mnt/x
check "contents" cmp data mnt/data
umount_clean mnt "$dev"
