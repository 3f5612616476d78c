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
mount_all 1 2 3
for nodes in 1 2 3; do
	dirs_on "storm$nodes" "$nodes"
	ends_within $((seconds + 60)) "$STORM" "$seconds" "${dirs[@]}"
	cat ended
done
umount_all 1 2 3
clean "$volume"
"$lab" down
