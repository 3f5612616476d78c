#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The lab itself: quorum, partitions, crashes and frozen nodes as corosync sees
# them; nothing is left of it, however it ends.
. "$(dirname "$0")/lib.sh"

# This shell is alone again in its name space, but for what looks.
nothing_left() {
	! ps -e -o stat=,args= |
		grep -v '^Z' | grep -E ' (unshare|nsenter|corosync|sleep|.*lab/lab) ' &&
		[ ! -e "$UGFS_LAB" ] && ! grep -q " $UGFS_LAB" /proc/mounts
}

links=$(ip -o link | wc -l)
"$lab" up 3 --token 3000
for i in 1 2 3; do
	sees "$i" 3 || fail "node $i: $("$lab" status)"
done
same "links of the machine" "$(ip -o link | wc -l)" "$links"
! "$lab" up 3 2> note || fail "a second lab in the same folder"
grep -q "another lab is up" note || fail "it said: $(cat note)"

status=0
same "output of a command" "$("$lab" exec 2 hostname)" node2
"$lab" exec 2 sh -c 'exit 7' || status=$?
same "status of a command" "$status" 7
"$lab" exec 1 ping -c 1 -W 2 10.77.0.3 > /dev/null 2>&1 ||
	command -v ping > /dev/null && fail "node 1 cannot reach node 3" || true

# A mount of a node below its folder is seen by all; others are its own.
"$lab" exec 1 mount -t tmpfs mine "$("$lab" path 1)/mnt"
"$lab" exec 1 touch "$("$lab" path 1)/mnt/file" /run/file
[ -e "$("$lab" path 1)/mnt/file" ] || fail "the node's mount is not visible"
"$lab" exec 2 test -e "$("$lab" path 1)/mnt/file" || fail "not on node 2"
! "$lab" exec 2 test -e /run/file || fail "/run is shared"

"$lab" cut 3
wait_for 60 "a partition" sees 3 0
wait_for 60 "a majority" sees 1 2
"$lab" heal 3
wait_for 60 "healing" sees 3 3

# A command outlives it, and its end is heard of.
mkfifo end
("$lab" exec 2 cat end > /dev/null && : > ended) &
wait_for 60 "the command" "$lab" exec 2 pgrep -x cat > /dev/null
"$lab" freeze 2 all
wait_for 60 "the frozen node to be missed" sees 1 2
"$lab" status | grep -q '^node2 on frozen' || fail "$("$lab" status)"
"$lab" thaw 2
wait_for 60 "the node to be back" sees 1 3
: > end
wait_for 60 "the end of the command" test -e ended

# Everything on a crashed node ends, stopped or not, and its mounts go.
"$lab" exec 1 sleep 1000 &
wait_for 60 "a process" "$lab" exec 1 pgrep -x sleep -a > /dev/null
"$lab" freeze 1 all
"$lab" crash 1
[ -z "$(pgrep -f 'sleep 1000')" ] || fail "a process of node 1 is alive"
[ ! -e "$("$lab" path 1)/mnt/file" ] || fail "a mount of node 1 is there"
wait_for 60 "the loss of node 1" sees 3 2
"$lab" status | grep -q '^node1 off' || fail "$("$lab" status)"
! "$lab" exec 1 true 2> note || fail "a command on a node that is off"
"$lab" start 1
wait_for 60 "node 1 to be back" sees 3 3

"$lab" down
wait
wait_for 60 "the end of everything" nothing_left
"$lab" down

# Interrupted at any moment, by a signal that can be caught and one that cannot.
for pause in 0.1 0.5; do
	for signal in INT KILL; do
		setsid bash -c 'trap - INT; exec "$0" up 3' "$lab" > /dev/null 2>&1 &
		up=$!
		sleep "$pause"
		kill "-$signal" "$up" 2>/dev/null || true
		wait "$up" || true
		"$lab" down
		wait_for 60 "the end of all after $signal" nothing_left
	done
done
