#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A tree of many small files is copied, compared byte by byte, copied again inside, compared
# after a remount, and removed; all space comes back.
. "$(dirname "$0")/../lib/lib.sh"

make_volume vol.img 900M
mount_volume vol.img mnt
free_before=$(stat -f -c %f mnt)
files_before=$(stat -f -c %d mnt)

tar cf tree.tar -C /usr include
mkdir ref mnt/one
tar xf tree.tar -C ref
tar xf tree.tar -C mnt/one
compare() {
	diff -r --no-dereference ref "$1" > differences ||
		fail "$1: $(head -5 differences)"
	(cd ref && find . -mindepth 2 -printf '%p %m %T@ %l\n' | sort) > theirs
	(cd "$1" && find . -mindepth 2 -printf '%p %m %T@ %l\n' | sort) > ours
	diff theirs ours > differences || fail "$1: $(head -5 differences)"
}
compare mnt/one
cp -a mnt/one mnt/two
compare mnt/two
mv mnt/two mnt/three
umount_clean mnt vol.img

mount_volume vol.img mnt
compare mnt/one
compare mnt/three
rm -rf mnt/one mnt/three
umount_clean mnt vol.img
mount_volume vol.img mnt
# What directories and inodes took is free again.
same "free blocks" "$(stat -f -c %f mnt)" "$free_before"
same "free inodes" "$(stat -f -c %d mnt)" "$files_before"
umount_clean mnt vol.img
