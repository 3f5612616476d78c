#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A read-only mount changes nothing, but replays a dirty journal; a spectator
# does not even do that.
. "$(dirname "$0")/../lib/lib.sh"

make_volume vol.img 100M
mount_volume vol.img mnt
mkdir mnt/d
echo text > mnt/d/f
umount_clean mnt vol.img

before=$(sha256sum < vol.img)
mount_volume vol.img mnt ro
same "contents" "$(cat mnt/d/f)" text
for call in "mkdir mnt/x" "unlink mnt/d/f" "rename mnt/d mnt/e" \
	"open mnt/d/f w" "truncate mnt/d/f 0" "symlink a mnt/x" \
	"link mnt/d/f mnt/x"; do
	errno EROFS "$HELPERS/mt_sys" $call
done
umount_volume mnt
same "the image after a read-only mount" "$(sha256sum < vol.img)" "$before"
mount_volume vol.img mnt spectator
same "contents for a spectator" "$(cat mnt/d/f)" text
errno EROFS "$HELPERS/mt_sys" mkdir mnt/x
umount_volume mnt
same "the image after a spectator" "$(sha256sum < vol.img)" "$before"

mount_volume vol.img mnt commit=3600
echo more > mnt/d/g
"$HELPERS/mt_sys" fsync mnt/d/g
kill_volume mnt
before=$(sha256sum < vol.img)
refused 32 "dirty" "$UGFS" mount -o spectator vol.img mnt
same "a spectator and a dirty journal" "$(sha256sum < vol.img)" "$before"
mount_volume vol.img mnt ro
same "replayed by a read-only mount" "$(cat mnt/d/g)" more
umount_clean mnt vol.img
