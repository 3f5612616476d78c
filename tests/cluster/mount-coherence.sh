#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Three nodes in turn do random system calls on the same few names and files; what
# one has done the next call on any sees. COHERENT_SEED and COHERENT_STEPS repeat a
# run, or make it longer.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mount.sh"
: "${COHERENT:?}"
seed=${COHERENT_SEED:-$RANDOM}
steps=${COHERENT_STEPS:-1500}

"$lab" up 3
volume=$("$lab" volume)
mounts=()
for i in 1 2 3; do
	mounts+=("$("$lab" mount $i)")
done
for nodes in 2 3; do
	tops=()
	for ((i = 0; i < nodes; i++)); do
		tops+=("${mounts[i]}/with$nodes")
	done
	mkdir "${tops[0]}"
	echo "seed $seed, $steps steps, $nodes nodes"
	ends_within 400 "$COHERENT" "$seed" "$steps" "${tops[@]}"
done
for i in 1 2 3; do
	ends_within 120 "$lab" umount $i
done
clean "$volume"
"$lab" down
