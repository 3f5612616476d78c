#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Names: create, link, rename and remove in every order, compared with a local
# file system; and the special cases one by one.
. "$(dirname "$0")/../lib/lib.sh"

sys=$HELPERS/mt_sys
make_volume vol.img 400M
mount_volume vol.img mnt

describe() {
	(cd "$1" && find . -mindepth 1 -printf '%y %m %U:%G %p %l\n' | sort
	 find . -mindepth 1 ! -type d -printf '%s %n %p\n' | sort)
}
for seed in 1 2 3; do
	mkdir mnt/twin$seed ref$seed
	check "twins" "$HELPERS/mt_twin" mnt/twin$seed ref$seed $seed 15000
	describe mnt/twin$seed > ours
	describe ref$seed > theirs
	diff ours theirs > differences || fail "$(head differences)"
done

mkdir mnt/d mnt/d/sub mnt/e
echo a > mnt/a
echo b > mnt/b
errno EEXIST "$sys" noreplace mnt/a mnt/b
same "refused NOREPLACE" "$(cat mnt/a mnt/b)" "a
b"
check "NOREPLACE" "$sys" noreplace mnt/a mnt/c
errno EINVAL "$sys" exchange mnt/b mnt/c
errno EINVAL "$sys" rename mnt/d mnt/d/sub/x
errno ENOTEMPTY "$sys" rename mnt/e mnt/d
errno ENOTEMPTY "$sys" rmdir mnt/d
errno EISDIR "$sys" rename mnt/b mnt/e
errno ENOTDIR "$sys" rename mnt/e mnt/b
errno ENOTDIR "$sys" mkdir mnt/b/x
errno EISDIR "$sys" unlink mnt/d
errno ENOTDIR "$sys" rmdir mnt/b
errno EEXIST "$sys" mkdir mnt/d
errno EEXIST "$sys" link mnt/b mnt/c
errno EPERM "$sys" link mnt/d mnt/dd
errno ENOENT "$sys" unlink mnt/none
errno EXDEV "$sys" rename mnt/b ./b
errno EBUSY "$sys" rmdir mnt
long=$(printf 'n%.0s' $(seq 255))
check "a name of 255 bytes" "$sys" mkdir "mnt/$long"
errno ENAMETOOLONG "$sys" mkdir "mnt/${long}n"
for name in "with blank" "$(printf 'new\nline')" "üñí" "-dash" "*"; do
	echo "$name" > "mnt/$name"
	same "a strange name" "$(cat "mnt/$name")" "$name"
done

# A directory that moves takes its ".." along
mkdir -p mnt/from/dir mnt/to
mv mnt/from/dir mnt/to/
same ".." "$(stat -c %i mnt/to/dir/..)" "$(stat -c %i mnt/to)"
same "links of the old parent" "$(stat -c %h mnt/from)" 2
same "links of the new parent" "$(stat -c %h mnt/to)" 3

# A removed directory that somebody stands in
mkdir mnt/gone
(cd mnt/gone && rmdir ../gone && errno ENOENT "$sys" mkdir x)

# Deep
path=mnt/deep
for i in $(seq 120); do
	path=$path/level$i
done
mkdir -p "$path"
echo bottom > "$path/f"
umount_clean mnt vol.img
mount_volume vol.img mnt
same "deep" "$(cat "$path/f")" bottom
for seed in 1 2 3; do
	describe mnt/twin$seed > ours
	describe ref$seed > theirs
	diff ours theirs > differences || fail "$(head differences)"
done
rm -rf mnt/*
same "everything removed" "$(ls -A mnt)" ""
umount_clean mnt vol.img
