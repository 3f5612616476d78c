#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A directory of 300,000 names, and one whose names all have the same hash: every
# name found, every cookie of its own, listed at a bearable price, and clean.
#
#   bigdir.sh MODE BLOCK-SIZE [NAMES]
. "$(dirname "$0")/lib.sh"
bsize=$2 names=${3:-300000}
walk=$HELPERS/mt_dirwalk
list() { ls -f "$1" | wc -l; }
long_list() { ls -l "$1" | wc -l; }

make_volume vol.img 2G -b "$bsize" -J 32
mount_volume vol.img mnt inodes=20000
mkdir mnt/big mnt/same
timed "$names names" "$walk" fill mnt/big "$names"
timed "2000 names of one hash" "$LONG/lt_collide" mnt/same 2000
umount_clean mnt vol.img

mount_volume vol.img mnt inodes=20000
for n in cold warm; do
	within 20 "ls, $n" list mnt/big
	within 60 "ls -l, $n" long_list mnt/big
done
same "names" "$(ls -f mnt/big | sort -u | wc -l)" $((names + 2))
same "of one hash" "$(ls -fb mnt/same | sort -u | wc -l)" 2002
for d in big same; do
	check "cookies" timeout 300 "$walk" seek mnt/$d
done
(cd mnt/same && for name in *; do [ -e "$name" ]; done) ||
	fail "a listed name is not found"
timed "removal of one hash" "$walk" remove mnt/same
rmdir mnt/same
timed "removal" "$walk" remove mnt/big
rmdir mnt/big
umount_clean mnt vol.img
