#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What fsync, fdatasync, O_SYNC and an fsynced directory have promised is there
# after a crash; commit= makes the rest durable in time.
. "$(dirname "$0")/../lib/lib.sh"

pattern=$HELPERS/mt_pattern
sys=$HELPERS/mt_sys
make_volume vol.img 300M

for data in ordered writeback; do
	mount_volume vol.img mnt data=$data,commit=3600
	mkdir mnt/$data
	"$pattern" write mnt/$data/fsync 0 10M 1 fsync
	"$pattern" write mnt/$data/osync 0 1M 2 sync,bs=64K
	"$pattern" write mnt/$data/direct 0 2M 3 direct,sync
	"$pattern" write mnt/$data/fdatasync 0 3M 4
	sync -d mnt/$data/fdatasync
	mkdir mnt/$data/dir
	ln -s target mnt/$data/dir/link
	mv mnt/$data/dir/link mnt/$data/dir/renamed
	"$sys" fsync mnt/$data/dir
	"$pattern" write mnt/$data/later 0 5M 5
	kill_volume mnt
	mount_volume vol.img mnt
	"$pattern" verify mnt/$data/fsync 0 10M 1
	"$pattern" verify mnt/$data/osync 0 1M 2
	"$pattern" verify mnt/$data/direct 0 2M 3
	"$pattern" verify mnt/$data/fdatasync 0 3M 4
	same "in a synced directory" "$(readlink mnt/$data/dir/renamed)" target
	umount_clean mnt vol.img
done

# Small, synced, again and again: each time the latest
mount_volume vol.img mnt commit=3600
for i in $(seq 50); do
	echo "version $i" > mnt/new
	sync mnt/new
	mv mnt/new mnt/current
done
sync mnt/current
kill_volume mnt
mount_volume vol.img mnt
same "the last version" "$(cat mnt/current)" "version 50"
umount_clean mnt vol.img

# Without any sync: within commit= seconds and a little
mount_volume vol.img mnt commit=1
echo by-itself > mnt/by-itself
sleep 4
kill_volume mnt
mount_volume vol.img mnt
same "after the commit interval" "$(cat mnt/by-itself)" by-itself
umount_clean mnt vol.img
