#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Who may do what: mode bits for others than root, sticky and set-group-id
# directories, set-user-id bits that go away with a write or a change of owner.
. "$(dirname "$0")/../lib/lib.sh"

sys=$HELPERS/mt_sys
chmod 755 "$work"
as() { # as UID COMMAND...
	local uid=$1
	shift
	setpriv --reuid="$uid" --regid="$uid" --clear-groups "$@"
}
mode() { stat -c %a "$1"; }

make_volume vol.img 100M
mount_volume vol.img mnt
chmod 755 mnt

mkdir -m 777 mnt/open
as 1001 touch mnt/open/mine
same "owner" "$(stat -c %u:%g mnt/open/mine)" 1001:1001
echo secret > mnt/secret
chmod 600 mnt/secret
errno EACCES as 1001 "$sys" open "$work/mnt/secret" r
errno EACCES as 1001 "$sys" mkdir "$work/mnt/x"
mkdir -m 700 mnt/private
touch mnt/private/f
errno EACCES as 1001 "$sys" open "$work/mnt/private/f" r
(umask 077; touch mnt/masked)
same "umask" "$(mode mnt/masked)" 600

# Sticky: only the owner of a file or directory removes and renames
mkdir -m 1777 mnt/tmp
as 1001 touch mnt/tmp/a mnt/tmp/b
errno EPERM as 1002 "$sys" unlink "$work/mnt/tmp/a"
errno EPERM as 1002 "$sys" rename "$work/mnt/tmp/a" "$work/mnt/tmp/c"
as 1002 touch mnt/tmp/d
errno EPERM as 1002 "$sys" rename "$work/mnt/tmp/d" "$work/mnt/tmp/a"
check "own file" as 1001 "$sys" unlink "$work/mnt/tmp/a"

# Set-group-id of a directory is inherited
mkdir mnt/sgid
chown 0:2000 mnt/sgid
chmod 2777 mnt/sgid
as 1001 touch mnt/sgid/f
as 1001 mkdir mnt/sgid/d
same "group of a new file" "$(stat -c %u:%g mnt/sgid/f)" 1001:2000
same "group of a new directory" "$(stat -c %g mnt/sgid/d)" 2000
same "its bit" "$(($(stat -c 0%a mnt/sgid/d) & 02000))" 1024
as 1001 sh -c 'umask 0; "$0" open mnt/sgid/g rw,creat; chmod 2755 mnt/sgid/g' \
	"$sys"
same "set-group-id outside the group" "$(mode mnt/sgid/g)" 755

# Set-user-id goes with a write, a truncation, a change of owner
fresh() {
	cp /bin/true mnt/prog
	chown 1001:1001 mnt/prog
	chmod "$1" mnt/prog
}
fresh 6777
as 1002 sh -c 'echo x >> mnt/prog'
same "after a write" "$(mode mnt/prog)" 777
fresh 6777
as 1002 "$sys" truncate mnt/prog 10
same "after a truncation" "$(mode mnt/prog)" 777
fresh 6777
as 1002 "$sys" open mnt/prog w,trunc
same "after O_TRUNC" "$(mode mnt/prog)" 777
fresh 6755
chown 1003 mnt/prog
same "after chown" "$(mode mnt/prog)" 755
fresh 6777
echo x >> mnt/prog
same "after a write by root" "$(mode mnt/prog)" 6777

umount_clean mnt vol.img
mount_volume vol.img mnt
same "after a remount" "$(stat -c %u:%g:%a mnt/sgid/d)" "1001:2000:2755"
umount_clean mnt vol.img
