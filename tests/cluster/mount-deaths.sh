#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Three nodes append to one log. Two mount processes die at once; one dies while
# the other's journal is being recovered; all die, and all mount again. What was
# acknowledged is there each time.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mount.sh"
# How often one dies during the recovery of another.
rounds=${DEATH_ROUNDS:-3}

# Of both, as closely together as can be.
kill_at_once() {
	local pid pids=()
	for i in "$@"; do
		pid=$(mount_pid "$i")
		pids+=("$pid")
	done
	kill -KILL "${pids[@]}"
}

"$lab" up 3
volume=$("$lab" volume)
mount_all 1 2 3

writers 1 2 3
go_on 30 1 2 3
kill_at_once 2 3
failed 2 3
go_on 20 1
stop_writers 1
intact "$m1"
remount 2 3
intact "$m2"

for i in $(seq "$rounds"); do
	first=$((i % 3 + 1))
	second=$(((i + 1) % 3 + 1))
	third=$(((i + 2) % 3 + 1))
	writers 1 2 3
	go_on 30 1 2 3
	kill_at_once $first
	sleep "$(printf '0.%03d' $((RANDOM % 300)))"
	kill_at_once $second
	failed $first $second
	go_on 20 $third
	stop_writers $third
	dir=m$third
	intact "${!dir}"
	remount $first $second
done

writers 1 2 3
go_on 30 1 2 3
kill_at_once 1 2 3
failed 1 2 3
for i in 1 2 3; do
	ends_within 60 "$lab" umount "$i"
done
for i in 1 2 3; do
	mount_all "$i" &
done
wait
intact "$m1"
intact "$m2"
intact "$m3"
umount_all 2 1 3
clean "$volume"
"$lab" down
