#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A mount process is killed and its node mounts again at once, over and over:
# it has a journal of its own each time, and nothing that was synced is lost.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mount.sh"
times=${RETURN_TIMES:-20}


"$lab" up 2
volume=$("$lab" volume)
mount_all 1 2
for i in $(seq "$times"); do
	writers 1 2
	go_on 30 1 2
	pid=$(mount_pid 2)
	kill -KILL "$pid"
	ends_within 60 "$lab" umount 2
	mount_all 2
	failed 2
	echo "$i" > "$m2/again$i"
	sync "$m2/again$i"
	go_on 30 1
	stop_writers 1
	same "a file of the node that has returned" "$(cat "$m1/again$i")" "$i"
	intact "$m2"
done
same "files" "$(find "$m1" -name 'again*' | wc -l)" "$times"
umount_all 2 1
clean "$volume"
"$lab" down
