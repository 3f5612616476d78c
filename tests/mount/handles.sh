#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Files by handle, as an NFS server remembers them: the same file after renames
# and mounts, and stale once it is removed, also when its block has become
# another file.
. "$(dirname "$0")/../lib/lib.sh"

sys=$HELPERS/mt_sys
by_handle() { "$sys" byhandle mnt "$1.handle" "$2"; }
make_volume vol.img 20M
mount_volume vol.img mnt
mkdir -p mnt/d/e
echo inner > mnt/d/e/f
echo kept > mnt/kept
echo removed > mnt/removed
for f in kept removed d/e; do
	check "handle of $f" "$sys" handle "mnt/$f" "${f##*/}.handle"
done
mv mnt/kept mnt/d/moved
same "after a rename" "$(by_handle kept -)" kept
same "in a directory" "$(by_handle e f)" inner
mv mnt/d/e mnt/e
same "in a directory that was moved" "$(by_handle e ../d/moved)" kept

ino=$(stat -c %i mnt/removed)
rm mnt/removed
errno ESTALE by_handle removed -
check "fsync" "$sys" fsync mnt
mkdir mnt/fill
"$HELPERS/mt_dirwalk" fill mnt/fill 2500
[ -n "$(find mnt/fill -inum "$ino")" ] || fail "its block was not used again"
errno ESTALE by_handle removed -
umount_clean mnt vol.img

mount_volume vol.img mnt
errno ESTALE by_handle removed -
same "after a mount" "$(by_handle kept -)" kept
same "from a directory upwards" "$(by_handle e ../d/moved)" kept
same "in a directory" "$(by_handle e f)" inner
umount_clean mnt vol.img
