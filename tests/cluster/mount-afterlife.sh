#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A mount process hangs, is expelled and killed: its mount answers EIO at once
# until it is unmounted, and the log says why; the same when it was killed by
# somebody else.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mount.sh"

# answers WORDS COMMAND...: in the mount of node 2.
answers() {
	local words=$1 status=0
	shift
	(cd "$work" && timeout 20 "$@") > answer 2>&1 || status=$?
	[ "$status" != 0 ] || fail "$*: succeeds"
	[ "$status" != 124 ] || fail "$*: no answer"
	grep -q "$words" answer || fail "$*: $(cat answer)"
}

killed() {
	[ ! -e "/proc/$pid" ]
}

"$lab" up 2
volume=$("$lab" volume)
mount_all 1 2
mkdir "$m1/dir"
echo text > "$m2/file"
sync "$m2/file"
exec 7< "$m2/file"
pid=$(mount_pid 2)
# One waits for the process that hangs, the others come later.
kill -STOP "$pid"
(stat "$m2/nothing" > waited 2>&1 || true; : > waited.end) &
wait_for 60 "the end of node 2" killed
wait_for 20 "the call that waited" test -e waited.end
grep -q "Input/output error\|connection abort" waited ||
	fail "the call that waited: $(cat waited)"
answers "Input/output error" ls "$m2"
answers "Input/output error" cat "$m2/file"
answers "Input/output error" mkdir "$m2/new"
answers "Input/output error" cat <&7
answers "unmount it first" "$lab" mount 2
exec 7<&-
grep -q "the mount process has died: the cluster goes on" "$UGFS_LAB/log/mount2" ||
	fail "no line about it in the log"
ends_within 30 touch "$m1/dir/other"
ends_within 60 "$lab" umount 2
mount_all 2
same "after mounting again" "$(cat "$m2/file")" text

pid=$(mount_pid 2)
kill -KILL "$pid"
wait_for 20 "its end" killed
wait_for 20 "an error" bash -c "! ls '$m2' > /dev/null 2>&1"
answers "Input/output error" ls "$m2"
ends_within 60 "$lab" umount 2
umount_all 1
clean "$volume"
"$lab" down
