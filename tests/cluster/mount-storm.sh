#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# All nodes map, write, read and cut the same files at once: nothing goes back,
# nothing is lost, nothing hangs. STORM_SECONDS makes it longer.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mount.sh"
: "${STORM:?}"
seconds=${STORM_SECONDS:-15}

"$lab" up 3
volume=$("$lab" volume)
mounts=()
for i in 1 2 3; do
	mounts+=("$("$lab" mount $i)")
done
for nodes in 1 2 3; do
	dirs=()
	for ((i = 0; i < nodes; i++)); do
		dirs+=("${mounts[i]}/storm$nodes")
	done
	mkdir "${dirs[0]}"
	ends_within $((seconds + 60)) "$STORM" "$seconds" "${dirs[@]}"
	cat ended
done
for i in 1 2 3; do
	ends_within 120 "$lab" umount $i
done
clean "$volume"
"$lab" down
