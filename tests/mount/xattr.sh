#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Extended attributes as programs use them: set, read, listed, copied, kept over
# a remount; capabilities that go away with a write.
. "$(dirname "$0")/../lib/lib.sh"

sys=$HELPERS/mt_sys
chmod 755 "$work"
as() { # as UID COMMAND...
	local uid=$1
	shift
	setpriv --reuid="$uid" --regid="$uid" --clear-groups "$@"
}
value() { getfattr --absolute-names --only-values -n "$2" "$1"; }
names() { getfattr --absolute-names -m - "$1" | grep -v '^#' | sort | xargs; }

make_volume vol.img 200M
mount_volume vol.img mnt
chmod 755 mnt

echo contents > mnt/f
mkdir mnt/d
errno ENODATA "$sys" getxattr mnt/f user.a
same "none" "$(names mnt/f)" ""
for f in mnt/f mnt/d; do
	setfattr -n user.a -v one $f
	setfattr -n trusted.t -v two $f
	setfattr -n security.s -v three $f
	same "user" "$(value $f user.a)" one
	same "trusted" "$(value $f trusted.t)" two
	same "security" "$(value $f security.s)" three
	same "names" "$(names $f)" "security.s trusted.t user.a"
done
setfattr -n user.a -v another mnt/f
same "replaced" "$(value mnt/f user.a)" another
setfattr -n user.empty mnt/f
same "empty" "$(value mnt/f user.empty)" ""
same "contents" "$(cat mnt/f)" contents

# Of every size up to the largest
for n in 1 100 3000 4000 4100 20000 65000 65536; do
	head -c $((n * 3 / 4)) /dev/urandom | base64 -w 0 | head -c $n > v.$n
	printf '# file: mnt/f\nuser.big=0x%s\n' \
		"$(od -An -v -tx1 v.$n | tr -d ' \n')" > restore
	check "a value of $n" setfattr --restore=restore
	value mnt/f user.big > got
	check "the value of $n" cmp v.$n got
done
blocks=$(stat -c %b mnt/f)
setfattr -x user.big mnt/f
same "blocks of the value" $((blocks - $(stat -c %b mnt/f))) $((17 * 8))

# Who may
chmod 644 mnt/f
errno EACCES as 1001 "$sys" setxattr "$work/mnt/f" user.b x
same "as a user" "$(as 1001 getfattr --absolute-names --only-values -n user.a \
	"$work/mnt/f")" another
errno ENODATA as 1001 "$sys" getxattr "$work/mnt/f" trusted.t
same "names for a user" "$(as 1001 getfattr --absolute-names -m - \
	"$work/mnt/f" | grep -v '^#' | sort | xargs)" "security.s user.a user.empty"
errno EPERM as 1001 "$sys" setxattr "$work/mnt/f" trusted.b x
ln -s f mnt/l
errno EPERM "$sys" lsetxattr mnt/l user.a x
errno EOPNOTSUPP "$sys" setxattr mnt/f nothing.a x
errno EOPNOTSUPP "$sys" setxattr mnt/f system.a x
errno EOPNOTSUPP "$sys" getxattr mnt/f system.posix_acl_access

# Copies keep them
mkdir mnt/from
for i in $(seq 50); do
	echo "$i" > mnt/from/$i
	setfattr -n user.number -v "$i" mnt/from/$i
	setfattr -n trusted.number -v "$i" mnt/from/$i
done
check "rsync" rsync -aX mnt/from/ mnt/to
check "cp" cp -a mnt/from mnt/copy
for i in $(seq 50); do
	same "rsync'ed" "$(value mnt/to/$i user.number)" "$i"
	same "copied" "$(value mnt/copy/$i trusted.number)" "$i"
done
same "nothing left to do" "$(rsync -aXin mnt/from/ mnt/to)" ""

# A capability is the contents': it goes with them
cap=0x0100000200040000000000000000000000000000
for how in write append truncate chown; do
	cp /bin/true mnt/prog
	chmod 777 mnt/prog
	setfattr -n security.capability -v $cap mnt/prog
	setfattr -n user.kept -v x mnt/prog
	check "there is one" "$sys" getxattr mnt/prog security.capability
	case $how in
	write) echo x > mnt/prog ;;
	append) as 1001 sh -c 'echo x >> mnt/prog' ;;
	truncate) "$sys" truncate mnt/prog 10 ;;
	chown) chown 1001 mnt/prog ;;
	esac
	errno ENODATA "$sys" getxattr mnt/prog security.capability
	same "after $how" "$(value mnt/prog user.kept)" x
	rm mnt/prog
done

umount_clean mnt vol.img
mount_volume vol.img mnt
same "after a remount" "$(names mnt/d)" "security.s trusted.t user.a"
same "its value" "$(value mnt/f user.a)" another
same "copied" "$(value mnt/copy/7 user.number)" 7
rm -r mnt/from mnt/to mnt/copy mnt/f mnt/d
umount_clean mnt vol.img
