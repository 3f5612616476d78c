#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Without quorum nothing is written and nothing is answered, and a waiting call
# goes on when quorum returns.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mount.sh"

"$lab" up 3
volume=$("$lab" volume)
m1=$("$lab" mount 1)
echo before > "$m1/before"
sync "$m1/before"
# Nodes without a mount take the quorum away: nobody has to be fenced.
"$lab" crash 2
"$lab" crash 3
wait_for 20 "loss of quorum" sees 1 0
(
	echo after > "$m1/after" && sync "$m1/after"
	: > written
) &
sleep 2
[ ! -e written ] || fail "written without quorum"
"$lab" start 2
wait_for 60 "the waiting write" test -e written
wait
same "what was written" "$(cat "$m1/after")" after
ends_within 60 "$lab" umount 1
clean "$volume"
"$lab" down
