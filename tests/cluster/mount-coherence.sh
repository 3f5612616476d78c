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
mount_all 1 2 3
for nodes in 2 3; do
	dirs_on "with$nodes" "$nodes"
	echo "seed $seed, $steps steps, $nodes nodes"
	ends_within 400 "$COHERENT" "$seed" "$steps" "${dirs[@]}"
done
umount_all 1 2 3
clean "$volume"
"$lab" down
