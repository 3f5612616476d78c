#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Access control lists: obeyed, followed by chmod and followed by the mode,
# inherited with or without a umask, stored only when they say more than a mode.
. "$(dirname "$0")/../lib/lib.sh"

sys=$HELPERS/mt_sys
chmod 755 "$work"
as() { # as UID COMMAND...
	local uid=$1
	shift
	setpriv --reuid="$uid" --regid="$uid" --clear-groups "$@"
}
acl() { getfacl --absolute-names -cnE "$1" | grep . | xargs; }
mode() { stat -c %a "$1"; }

make_volume vol.img 200M
mount_volume vol.img mnt acl
chmod 755 mnt
umask 022

# Obeyed, also when the kernel knows the list already
echo secret > mnt/f
chmod 640 mnt/f
errno EACCES as 1001 "$sys" read "$work/mnt/f"
setfacl -m u:1001:r mnt/f
check "allowed" as 1001 "$sys" read "$work/mnt/f"
errno EACCES as 1001 "$sys" open "$work/mnt/f" w
errno EACCES as 1002 "$sys" read "$work/mnt/f"
setfacl -m u:1001:- mnt/f
errno EACCES as 1001 "$sys" read "$work/mnt/f"
setfacl -m u:1001:rw,g:1002:r mnt/f
check "allowed to write" as 1001 "$sys" open "$work/mnt/f" w
check "its group" as 1002 "$sys" read "$work/mnt/f"
same "the list" "$(acl mnt/f)" \
	"user::rw- user:1001:rw- group::r-- group:1002:r-- mask::rw- other::---"

# chmod moves the mask; the mask is the group's part of the mode
same "mode" "$(mode mnt/f)" 660
chmod 640 mnt/f
same "masked" "$(acl mnt/f)" \
	"user::rw- user:1001:rw- group::r-- group:1002:r-- mask::r-- other::---"
errno EACCES as 1001 "$sys" open "$work/mnt/f" w
setfacl -m m::rwx mnt/f
same "mode of the mask" "$(mode mnt/f)" 670
setfacl -b mnt/f
same "mode alone" "$(acl mnt/f)" "user::rw- group::r-- other::---"
same "its bits" "$(mode mnt/f)" 640
setfacl -m u::rwx,g::r,o::x mnt/f
same "a list that is a mode" "$(mode mnt/f)" 741
same "is not stored" "$(getfattr --absolute-names -m - mnt/f)" ""
refused 1 "Operation not permitted" as 1001 setfacl -m u:1001:rwx \
	"$work/mnt/f"

# Set-group-id is lost by who is not in the group
touch mnt/sgid
chown 1001:2000 mnt/sgid
chmod 2755 mnt/sgid
as 1001 setfacl -m u:1002:rwx "$work/mnt/sgid"
same "set-group-id" "$(mode mnt/sgid)" 775
chmod 2755 mnt/sgid
setfacl -m u:1003:rwx mnt/sgid
same "by root" "$(mode mnt/sgid)" 2775

# Inheritance: the default list instead of the umask
mkdir mnt/d
setfacl -d -m u:1001:rwx,g:1002:r-x mnt/d
same "the default" "$(acl mnt/d)" "user::rwx group::r-x other::r-x $(:
)default:user::rwx default:user:1001:rwx default:group::r-x $(:
)default:group:1002:r-x default:mask::rwx default:other::r-x"
for mask in 000 022 077; do
	(umask $mask; touch mnt/d/f$mask; mkdir mnt/d/d$mask
		mkfifo mnt/d/p$mask)
	for f in f p; do
		same "a new $f" "$(acl mnt/d/$f$mask)" \
			"user::rw- user:1001:rwx group::r-x $(:
			)group:1002:r-x mask::rw- other::r--"
		same "its mode" "$(mode mnt/d/$f$mask)" 664
	done
	same "a new directory" "$(acl mnt/d/d$mask)" \
		"user::rwx user:1001:rwx group::r-x group:1002:r-x mask::rwx $(:
		)other::r-x default:user::rwx default:user:1001:rwx $(:
		)default:group::r-x default:group:1002:r-x default:mask::rwx $(:
		)default:other::r-x"
done
ln -s f000 mnt/d/l
check "theirs" as 1001 "$sys" open "$work/mnt/d/d077/x" rw,creat
errno EACCES as 1003 "$sys" open "$work/mnt/d/d077/y" rw,creat
(umask 077; touch mnt/plain)
same "without a default list" "$(mode mnt/plain)" 600
mkdir mnt/e
setfacl -d -m u::rwx,g::rx,o::- mnt/e
(umask 0; touch mnt/e/f)
same "a default that is a mode" "$(mode mnt/e/f)" 640
same "stores nothing" "$(getfattr --absolute-names -m - mnt/e/f)" ""
setfacl -k mnt/e
(umask 027; touch mnt/e/g)
same "no default any more" "$(mode mnt/e/g)" 640

# As many entries as GFS2 has room for
entries() { seq -f 'u:%g:r' -s , 10001 $((10000 + $1)); }
touch mnt/many
check "300 entries" setfacl -m "$(entries 296)" mnt/many
same "entries" "$(acl mnt/many | wc -w)" 300
refused 1 "Argument list too long" setfacl -m "$(entries 297)" mnt/many
setfacl -d -m "$(entries 294)" mnt/d
mkdir mnt/d/both # does not fit into one block
same "both lists" "$(acl mnt/d/both | wc -w)" 600
rsync -aAX mnt/d/ mnt/copy
same "nothing left to do" "$(rsync -aAXin mnt/d/ mnt/copy)" ""

umount_clean mnt vol.img
mount_volume vol.img mnt acl
same "after a remount" "$(acl mnt/d/f022)" \
	"user::rw- user:1001:rwx group::r-x group:1002:r-x mask::rw- other::r--"
errno EACCES as 1003 "$sys" open "$work/mnt/d/d077/y" rw,creat
umount_clean mnt vol.img

# Without the option: not obeyed, not shown, not lost
mount_volume vol.img mnt
errno EOPNOTSUPP "$sys" getxattr mnt/d system.posix_acl_default
(umask 027; touch mnt/d/none)
same "no inheritance" "$(mode mnt/d/none)" 640
umount_clean mnt vol.img
mount_volume vol.img mnt acl
same "nothing lost" "$(acl mnt/d/both | wc -w)" 600
rm -r mnt/d mnt/copy
umount_clean mnt vol.img
