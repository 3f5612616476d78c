#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A full volume says ENOSPC to who cannot have space, loses nothing of what it
# has accepted, and works again when something is removed.
. "$(dirname "$0")/../lib/lib.sh"

pattern=$HELPERS/mt_pattern
make_volume vol.img 64M -J 8
for round in 1 2; do
	mount_volume vol.img mnt
	touch mnt/full
	refused 1 "No space left" dd if=/dev/zero of=mnt/fill bs=64k
	# What dd was told is written, is there
	size=$(stat -c %s mnt/fill)
	[ "$size" -gt 20000000 ] || fail "full after $size bytes"
	"$pattern" zero mnt/fill 0 "$size"
	# Small files up to the last block
	i=0
	while echo "file $i" > mnt/small$i 2> /dev/null && [ $i -lt 20000 ]; do
		i=$((i + 1))
	done
	rm -f mnt/small$i
	for n in $(seq 0 $((i - 1))); do
		same "small file $n" "$(cat mnt/small$n)" "file $n"
	done
	# df agrees
	[ "$(stat -f -c %a mnt)" -le 16 ] ||
		fail "$(stat -f -c %a mnt) blocks are said to be available"
	check "a hole that is mapped" "$HELPERS/mt_mapped" mnt full
	# Writing over what is there needs no space
	"$pattern" write mnt/fill 0 1M 1
	sync mnt/fill
	"$pattern" verify mnt/fill 0 1M 1
	umount_clean mnt vol.img

	mount_volume vol.img mnt
	same "size after a remount" "$(stat -c %s mnt/fill)" "$size"
	"$pattern" verify mnt/fill 0 1M 1
	"$pattern" zero mnt/fill 1M $((size - 1048576))
	# Room is found at once, not after a while
	rm mnt/fill
	"$pattern" write mnt/fill 0 20M 3
	"$pattern" verify mnt/fill 0 20M 3
	rm -f mnt/full mnt/fill mnt/small*
	umount_clean mnt vol.img
done

# Delayed allocation must not promise more than there is: many writers
mount_volume vol.img mnt
for n in 1 2 3 4; do
	( dd if=/dev/zero of=mnt/w$n bs=32k status=none 2>/dev/null || true ) &
done
wait
total=$(cat mnt/w? | wc -c)
umount_clean mnt vol.img
mount_volume vol.img mnt
same "bytes of four writers" "$(cat mnt/w? | tr -d '\0' | wc -c) of $(cat mnt/w? | wc -c)" "0 of $total"
umount_clean mnt vol.img
