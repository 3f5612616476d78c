#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Files are made nearly as fast on a volume that is nearly full, and at the end
# there is ENOSPC, not a wait.
. "$(dirname "$0")/lib.sh"
make_volume vol.img 2G -J 32
mount_volume vol.img mnt

fill_to() { # fill_to PERMILLE of all blocks
	local total free n
	read -r total free < <(stat -f -c "%b %f" mnt)
	n=$((total * $1 / 1000 - (total - free)))
	[ "$n" -le 0 ] || head -c $((n * 4096)) /dev/zero > "mnt/fill-$1" ||
		fail "filling to $1 per mille"
	sync "mnt/fill-$1"
}
rate() { # files of 8 KiB made and written a second, in one second's time
	local end=$(($(date +%s%N) + 1000000000)) n=0
	rm -rf mnt/d
	mkdir mnt/d
	while [ "$(date +%s%N)" -lt $end ]; do
		head -c 80000 data | split -b 8000 -a 3 - "mnt/d/$n-"
		n=$((n + 10))
	done
	rm -r mnt/d
	echo $n
}
# The machine may have had other work for a while
fast() {
	now=$(rate)
	[ "$now" -gt $((empty / 5)) ]
}
head -c 80000 /dev/urandom > data
rate > /dev/null
empty=$(rate)
echo "empty: $empty files a second"
for full in 500 900 980 ; do
	fill_to $full
	wait_for 60 "a fifth of the empty rate" fast
	echo "$full per mille full: $now"
done
fill_to 995
echo "995 per mille full: $(rate)"
refuse() {
	! head -c 100M /dev/zero 2> /dev/null > mnt/last || fail "no end of space"
}
within 20 "the end" refuse
rm mnt/fill-*
wait_for 30 "space to come back" eval '[ "$(stat -f -c %f mnt)" -gt 300000 ]'
umount_clean mnt vol.img
