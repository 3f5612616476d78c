#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Contents of files: growth from nothing over stuffed to tall trees, truncation
# to every boundary, and thousands of random operations against a copy in memory.
. "$(dirname "$0")/../lib/lib.sh"

pattern=$HELPERS/mt_pattern
make_volume vol.img 600M
mount_volume vol.img mnt

# A byte at a time over the end of the dinode (3864 bytes with 4 KiB blocks)
for ((i = 3800; i < 3900; i++)); do
	"$pattern" write mnt/grow $i 1 1
done
"$pattern" zero mnt/grow 0 3800
"$pattern" verify mnt/grow 3800 100 1

# Sizes around every boundary, written at once and a little at a time
for size in 0 1 3863 3864 3865 4095 4096 4097 65536 1978368 1978369 30M; do
	"$pattern" write mnt/at-once-$size 0 $size 2 bs=1M
	"$pattern" write mnt/bits-$size 0 $size 3 bs=3001
done
# ... and cut to others
for cut in 0 1 3000 3864 3865 4096 5000 1978368 20M; do
	"$pattern" write mnt/cut-$cut 0 30M 4
	truncate -s $cut mnt/cut-$cut
	truncate -s 30M mnt/cut-$cut
done

verify() {
	for size in 0 1 3863 3864 3865 4095 4096 4097 65536 1978368 1978369 30M; do
		"$pattern" verify mnt/at-once-$size 0 $size 2
		"$pattern" verify mnt/bits-$size 0 $size 3
	done
	for cut in 0 1 3000 3864 3865 4096 5000 1978368; do
		"$pattern" verify mnt/cut-$cut 0 $cut 4
		"$pattern" zero mnt/cut-$cut $cut $((31457280 - cut))
	done
}
verify
umount_clean mnt vol.img
mount_volume vol.img mnt
verify

for seed in 1 2 3 4; do
	check "oracle $seed" "$HELPERS/mt_oracle" mnt/oracle 1$seed 3000
	check "oracle $seed" "$HELPERS/mt_oracle" mnt/oracle 2$seed 3000 direct
done
umount_clean mnt vol.img
