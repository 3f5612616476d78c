#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Two nodes mount one volume: what one writes and closes the other reads, from
# directories of their own and then from one that both use.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mount.sh"
files=${MOUNT_FILES:-60}

# fill DIR NAME: files that hold their own names.
fill() {
	local i
	for i in $(seq "$files"); do
		echo "$2$i" > "$1/$2$i"
	done
}

# holds DIR NAME
holds() {
	local i
	for i in $(seq "$files"); do
		same "$1/$2$i" "$(cat "$1/$2$i")" "$2$i"
	done
}

"$lab" up 2
volume=$("$lab" volume)
m1=$("$lab" mount 1)
m2=$("$lab" mount 2)
mkdir "$m1/own1" "$m2/own2" "$m1/both"
fill "$m1/own1" a &
fill "$m2/own2" b &
wait
holds "$m2/own1" a
holds "$m1/own2" b

fill "$m1/both" a &
fill "$m2/both" b &
wait
holds "$m2/both" a
holds "$m1/both" b
same "names seen by node 1" "$(find "$m1/both" -type f | wc -l)" $((2 * files))
same "names seen by node 2" "$(find "$m2/both" -type f | wc -l)" $((2 * files))

ends_within 120 "$lab" umount 1
holds "$m2/both" a
ends_within 120 "$lab" umount 2
clean "$volume"
"$lab" down
