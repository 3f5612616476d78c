#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Whatever is wrong with a device or a mount point gets its own sentence and
# mount(8)'s exit status, and not a byte of the device changes.
. "$(dirname "$0")/../lib/lib.sh"

# unchanged STATUS TEXT IMAGE [mount arguments]
unchanged() {
	local status=$1 text=$2 image=$3 before
	shift 3
	before=$(sha256sum < "$image")
	refused "$status" "$text" "$UGFS" mount "$@" "$image" mnt
	same "$image after a refusal" "$(sha256sum < "$image")" "$before"
	! mountpoint -q mnt || fail "mounted all the same"
}

make_volume vol.img 60M

# The mount point
refused 32 "No such file" "$UGFS" mount vol.img nowhere
touch plain
refused 32 "not a directory" "$UGFS" mount vol.img plain

# The device
refused 32 "No such file" "$UGFS" mount nothing.img mnt
refused 32 "neither a block device nor an image" "$UGFS" mount /dev/null mnt
refused 32 "neither a block device nor an image" "$UGFS" mount mnt mnt
: > empty.img
unchanged 32 "empty" empty.img
head -c 60000 /dev/zero > tiny.img
unchanged 32 "tiny.img" tiny.img

# Foreign and damaged
truncate -s 20M foreign.img
unchanged 32 "foreign.img" foreign.img
mkfs.ext4 -q foreign.img
unchanged 32 'holds "ext4"' foreign.img
cp --sparse=always vol.img truncated.img
truncate -s 30M truncated.img
unchanged 32 "truncated.img" truncated.img
cp --sparse=always vol.img damaged.img
master=$(gfs2_edit -p sb ./damaged.img | awk '$1 == "no_addr" { print $2; exit }')
dd if=/dev/zero of=damaged.img bs=4096 seek=$((master)) count=1 conv=notrunc \
	status=none
unchanged 32 "damaged.img" damaged.img

# Lock protocols
make_volume cluster.img 60M -p lock_dlm -t alpha:vol
unchanged 32 "cluster.img: lock_dlm: corosync is not running" cluster.img
unchanged 32 "lock_dlm: corosync is not running" cluster.img \
	-o lockproto=lock_dlm
unchanged 32 "force" cluster.img -o lockproto=lock_nolock
unchanged 1 "unknown lock protocol" cluster.img -o lockproto=lock_other
mount_volume cluster.img mnt lockproto=lock_nolock,force
umount_clean mnt cluster.img
unchanged 32 "journal 7" vol.img -o hostdata=jid=7

# In use
mount_volume vol.img mnt
touch mnt/x
refused 32 "vol.img is already mounted on $work/mnt" \
	"$UGFS" mount vol.img /mnt
umount_clean mnt vol.img


# Not root
refused 1 "only root" setpriv --reuid=65534 --clear-groups \
	"$UGFS" mount vol.img mnt
clean_logs
