#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Killed again and again in the middle of work: each time the next mount
# recovers, the referee finds nothing, and everything that was synced is there.
. "$(dirname "$0")/../lib/lib.sh"

make_volume vol.img 300M -j 2
worker() { # makes, renames, cuts and removes until the mount dies
	local n=0 d=mnt/work$1
	mkdir -p "$d" || return 0
	while :; do
		n=$((n + 1))
		mkdir "$d/$n" && echo "$n" > "$d/$n/f" &&
			head -c $((RANDOM * 8)) /dev/zero > "$d/$n/g" &&
			ln "$d/$n/g" "$d/$n/h" && mv "$d/$n/f" "$d/$n/i" &&
			truncate -s $RANDOM "$d/$n/g" || return 0
		[ $((n % 4)) != 0 ] || rm -r "$d/$((n - 2))" || return 0
	done
}
for round in 1 2 3 4 5 6 7 8; do
	data=ordered
	[ $((round % 2)) = 1 ] || data=writeback
	mount_volume vol.img mnt data=$data,hostdata=jid=$((round % 2))
	for r in $(seq $((round - 1))); do
		"$HELPERS/mt_pattern" verify mnt/synced$r 0 1M $r
	done
	worker 1 2> /dev/null &
	worker 2 2> /dev/null &
	"$HELPERS/mt_pattern" write mnt/synced$round 0 1M $round fsync
	sleep 0.$((RANDOM % 9))
	kill_volume mnt
	wait
	clean_logs
	mount_volume vol.img mnt
	umount_clean mnt vol.img
done
