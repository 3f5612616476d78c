#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A mount process that hangs, a host that hangs and one that is cut off are
# expelled or fenced, and only then do the others go on. One that comes back
# after that is out: it does not write, its requests fail.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mount.sh"

# told NODE WORDS: a line of the log of its mount since the last begin_log.
told() {
	tail -n "+$((${logged[$1]:-0} + 1))" "$UGFS_LAB/log/mount$1" |
		grep -q "$2"
}

begin_log() {
	local i
	for i in 1 2 3; do
		logged[i]=$(wc -l < "$UGFS_LAB/log/mount$i")
	done
}
declare -a logged

begin() {
	writers 1 2 3
	go_on 30 1 2 3
	begin_log
	pid=$(mount_pid 3)
}

# The others have begun with the journal of node 3.
taken_over() {
	told 1 "node 3 (node3) has died" || told 2 "node 3 (node3) has died"
}

# The others go on, and at that time the process is no more.
others_go_on() {
	wait_for 60 "the end of node 3" taken_over
	[ ! -e "/proc/$pid" ] || fail "process $pid lives, and is taken for dead"
	go_on 30 1 2
	failed 3
	stop_writers 1 2
	intact "$m1"
	intact "$m2"
}

is_off() {
	[ "$("$lab" status | grep "^node$1 ")" = "node$1 off" ]
}

# A host that was fenced is switched on again.
boot() {
	wait_for 10 "node $1 to be off" is_off "$1"
	"$lab" start "$1"
	wait_for 60 "node $1" sees "$1" 3
	mount_all "$1"
}

"$lab" up 3
volume=$("$lab" volume)
mount_all 1 2 3

begin
"$lab" freeze 3 ugfs
others_go_on
remount 3

begin
"$lab" freeze 3 all
others_go_on
boot 3

begin
"$lab" cut 3
others_go_on
boot 3
umount_all 3 2 1
clean "$volume"

# Nobody fences: it is waited for. What comes back finds itself out.
fence=manual
mount_all 1 2 3
begin
"$lab" freeze 3 all
wait_for 30 "the loss of node 3" sees 1 2
sleep 3
! taken_over || fail "no proof of death, and node 3 is taken for dead"
"$lab" thaw 3
others_go_on
remount 3

begin
"$lab" cut 3
wait_for 30 "the loss of node 3" sees 1 2
sleep 3
! taken_over || fail "no proof of death, and node 3 is taken for dead"
"$lab" heal 3
others_go_on
remount 3
umount_all 1 2 3
clean "$volume"
"$lab" down
