#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What is written one way is read every other way at once, and I/O between a
# file and its own mapping, or of neighbours in one block, neither hangs nor tears.
. "$(dirname "$0")/lib.sh"

for bsize in 4096 1024; do
	make_volume vol.img 300M -b $bsize
	mount_volume vol.img mnt
	check "coherence" timeout 300 "$LONG/lt_coherent" mnt/counter 2000
	check "own mapping" timeout 120 "$LONG/lt_selfio" mnt/self
	for threads in 2 8; do
		check "neighbours" timeout 300 \
			"$LONG/lt_sectors" mnt/sectors $threads 8000
	done

	# One instance, whatever it is mounted as, sees one file
	mkdir -p other
	mount --bind mnt other
	for n in $(seq 300); do
		echo "$n" > mnt/small
		same "through another mount" "$(cat other/small)" "$n"
		echo "line $n" >> other/small
		same "size" "$(stat -c %s mnt/small)" "$(wc -c < other/small)"
	done
	umount other
	umount_clean mnt vol.img
done
