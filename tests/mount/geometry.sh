#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Every block size, both formats, one to eight journals, volumes of mkfs.gfs2
# and of ours: the same work, and a crash, leaves them clean.
. "$(dirname "$0")/../lib/lib.sh"

pattern=$HELPERS/mt_pattern
work_on() {
	mkdir -p mnt/d/e
	for n in $(seq 60); do
		echo "$n" > mnt/d/name-that-is-longer-$n
	done
	for size in 100 3000 5000 100K 3M; do
		"$pattern" write mnt/f$size 0 $size 1
	done
	"$pattern" write mnt/sparse 5G 10000 2
	truncate -s 200K mnt/f3M
	mv mnt/d/name-that-is-longer-7 mnt/seven
	rm mnt/d/name-that-is-longer-1*
}
verify() {
	same "entries" "$(ls mnt/d | wc -l)" 49
	same "the moved one" "$(cat mnt/seven)" 7
	for size in 100 3000 5000 100K; do
		"$pattern" verify mnt/f$size 0 $size 1
	done
	"$pattern" verify mnt/f3M 0 200K 1
	"$pattern" verify mnt/sparse 5G 10000 2
}
cycle() { # cycle JOURNAL
	mount_volume vol.img mnt "hostdata=jid=$1"
	work_on
	verify
	umount_clean mnt vol.img
	mount_volume vol.img mnt
	verify
	rm -r mnt/d
	sync mnt/f100
	kill_volume mnt
	mount_volume vol.img mnt
	"$pattern" verify mnt/f100K 0 100K 1
	rm -rf mnt/*
	umount_clean mnt vol.img
}

for bsize in 512 1024 2048 4096; do
	for format in 1801 1802; do
		make_volume vol.img 160M -b $bsize -o format=$format
		cycle 0
	done
done
for journals in 2 3 5 8; do
	make_volume vol.img 200M -j $journals
	cycle $((journals - 1))
done
for bsize in 512 1024 2048 4096; do
	truncate -s 0 vol.img
	truncate -s 200M vol.img
	check "ugfs mkfs" "$UGFS" mkfs -O -p lock_nolock -b $bsize -J 8 -j 2 \
		vol.img > mkfs.out 2>&1
	clean_fsck vol.img
	cycle 1
done
