#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# ugfs mkfs with 1 to 64 journals, on plenty of room and on the smallest volume
# that takes them: clean, mountable, and in time that grows with the journals.
. "$(dirname "$0")/lib.sh"

make() { # make SIZE JOURNALS BLOCK-SIZE
	truncate -s 0 vol.img
	truncate -s "$1" vol.img
	"$UGFS" mkfs -O -K -p lock_nolock -j "$2" -b "$3" -J 8 vol.img \
		> mkfs.out 2>&1
}
use() {
	mount_volume vol.img mnt
	echo "$1" > mnt/f
	umount_clean mnt vol.img
}

for journals in 1 2 7 16 33 64; do
	for bsize in 4096 512; do
		within 60 "$journals journals of $bsize" \
			make 8G $journals $bsize
		use $journals
	done
	size=$((8 * journals))
	until make ${size}M $journals 4096; do
		grep -q -i "expected at least" mkfs.out ||
			fail "$journals journals in $size MiB: $(cat mkfs.out)"
		size=$((size + 4))
		[ $size -le $((16 * journals + 128)) ] ||
			fail "$journals journals do not fit $size MiB"
	done
	echo "$journals journals fit $size MiB"
	use $journals
done
