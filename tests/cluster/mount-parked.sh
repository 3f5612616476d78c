#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# 300 processes of one node wait for a file whose lock another node has, which is
# frozen for a while: they hold no thread, so that others are served; a signal ends
# the waiting of one; the rest get their answer when the other node goes on.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mount.sh"
: "${WAITERS:?}"
count=300

# waiting N: so many requests of the mount of node 1 are unanswered.
waiting() {
	[ "$(cat "$connection/waiting")" -ge "$1" ]
}

"$lab" up 2
volume=$("$lab" volume)
mount_all 1 2
connection=/sys/fs/fuse/connections/$(mountpoint -d "$m1" | cut -d: -f2)
[ -e "$connection/waiting" ] || mount -t fusectl fusectl /sys/fs/fuse/connections
echo old > "$m1/file"
echo 1 > "$m1/own"
sync "$m1/own"
stat -c %s "$m1/own" "$m1/file" > /dev/null
# Node 2 has the file for itself; node 1 all that leads to it.
echo new > "$m2/file"
stat "$m1/own" "$m2/file" > /dev/null

"$lab" freeze 2
"$WAITERS" $count "$m1/file" > waiters &
wait_for 8 "$count unanswered requests" waiting $count
# This needs a worker, of which there are less.
ends_within 5 dd if=/dev/zero of="$m1/own" bs=4096 count=1 conv=notrunc,fsync
kill -USR1 "$(head -n 1 waiters)"
gone() {
	! kill -0 "$(head -n 1 waiters)" 2> /dev/null ||
		grep -q -s '^State:	Z' "/proc/$(head -n 1 waiters)/status"
}
wait_for 5 "the end of the interrupted one" gone
"$lab" thaw 2
wait_for 60 "the end of all" grep -q answered waiters
same "answers" "$(tail -n 1 waiters)" \
	"answered $((count - 1)) interrupted 1 failed 0"
same "size" "$(stat -c %s "$m1/file")" 4
umount_all 1 2
clean "$volume"
"$lab" down
