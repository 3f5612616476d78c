#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Holes: files far beyond 4 GiB that take only what was written, read as zeros
# elsewhere, and give back what is cut off.
. "$(dirname "$0")/../lib/lib.sh"

pattern=$HELPERS/mt_pattern
places="0 1M 2147483646 4294967290 5G 700G 7000G"
blocks() { stat -c %b "$1"; }

make_volume vol.img 300M
mount_volume vol.img mnt
for at in $places; do
	"$pattern" write mnt/sparse $at 5000 9
done
truncate -s 7500G mnt/sparse
sync mnt/sparse
[ "$(blocks mnt/sparse)" -lt 2000 ] ||
	fail "a sparse file takes $(blocks mnt/sparse) blocks"
verify() {
	for at in $places; do
		"$pattern" verify mnt/sparse $at 5000 9
	done
	"$pattern" zero mnt/sparse 5000 100000
	"$pattern" zero mnt/sparse 3G 1M
	"$pattern" zero mnt/sparse 701G 1M
	"$pattern" zero mnt/sparse 7400G 1M
	same "size" "$(stat -c %s mnt/sparse)" $((7500 << 30))
}
verify
umount_clean mnt vol.img
mount_volume vol.img mnt
verify

# Filling a hole, whole and in part
"$pattern" write mnt/sparse 3G 3M 5
"$pattern" write mnt/sparse $(((6 << 30) + 123)) 77 6
"$pattern" verify mnt/sparse 3G 3M 5
"$pattern" zero mnt/sparse 6G 123
"$pattern" verify mnt/sparse $(((6 << 30) + 123)) 77 6

# Cutting in the middle of it all
truncate -s 5G mnt/sparse
truncate -s 8G mnt/sparse
"$pattern" zero mnt/sparse 5G 1M
"$pattern" verify mnt/sparse 3G 3M 5
truncate -s 100 mnt/sparse
sync mnt/sparse
[ "$(blocks mnt/sparse)" -le 64 ] || fail "$(blocks mnt/sparse) blocks for 100"
"$pattern" verify mnt/sparse 0 100 9

rm mnt/sparse
umount_clean mnt vol.img
