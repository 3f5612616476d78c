#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# O_DIRECT writes into holes and past the end are fast, and a crash among them
# leaves what was written or zeros, never what the blocks held before.
. "$(dirname "$0")/lib.sh"
pattern=$HELPERS/mt_pattern
make_volume vol.img 400M
mount_volume vol.img mnt

old() { # the blocks' former life: 300M of 0xff, removed
	head -c 300M /dev/zero | tr '\0' '\377' > mnt/old
	sync mnt/old
	rm mnt/old
	wait_for 30 "free space" eval '[ "$(stat -f -c %f mnt)" -gt 80000 ]'
}
direct() { dd if=/dev/zero of="$1" bs=4k count="$2" oflag=direct status=none; }
buffered() { dd if=/dev/zero of="$1" bs=4k count="$2" conv=fsync status=none; }

timed "40 MiB in 4 KiB, buffered and fsync" buffered mnt/b 10000
timed "40 MiB in 4 KiB, direct, new file" direct mnt/d 10000
truncate -s 40M mnt/h
timed "40 MiB in 4 KiB, direct, hole" \
	dd if=/dev/zero of=mnt/h bs=4k count=10000 oflag=direct conv=notrunc \
	status=none
timed "40 MiB in 4 KiB, direct, again" \
	dd if=/dev/zero of=mnt/h bs=4k count=10000 oflag=direct conv=notrunc \
	status=none
rm mnt/?

for round in 1 2 3 4 5 6; do
	old
	truncate -s 200M mnt/hole
	touch mnt/new mnt/buffered
	sync mnt/new
	dd if=/dev/zero of=mnt/hole bs=4k seek=$((RANDOM % 9999)) count=20000 \
		oflag=direct conv=notrunc 2> /dev/null &
	"$pattern" write mnt/new 0 200M $round direct,bs=64K 2> /dev/null &
	dd if=/dev/zero of=mnt/buffered bs=40k 2> /dev/null &
	# Log flushes at any time make pointers durable
	while "$HELPERS/mt_sys" fsync mnt/hole; do :; done > fsync.out 2>&1 &
	wait_for 30 "some of it" test -s mnt/new
	sleep 0.$((RANDOM % 9))
	kill_volume mnt
	wait
	mount_volume vol.img mnt
	for f in hole buffered; do
		"$pattern" zero mnt/$f 0 "$(stat -c %s mnt/$f)" ||
			fail "$f holds what it was never given"
	done
	size=$(stat -c %s mnt/new)
	echo "round $round: $size bytes"
	"$pattern" verify mnt/new 0 "$size" $round ||
		fail "new holds what it was never given"
	rm mnt/*
	umount_clean mnt vol.img
	mount_volume vol.img mnt
done
umount_clean mnt vol.img
