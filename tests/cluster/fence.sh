#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The lab's fence agent: what it says is so, from outside and from within a node.
. "$(dirname "$0")/lib.sh"

# agent STATUS LINES [node it is called on]
agent() {
	local want=$1 status=0
	if [ -n "${3:-}" ]; then
		printf '%b' "$2" | "$lab" exec "$3" "$fence" || status=$?
	else
		printf '%b' "$2" | "$fence" 2> note || status=$?
	fi
	same "status of the agent for $2" "$status" "$want"
}

agent 1 'action=status\nport=1\n'
"$lab" up 3 --token 3000
agent 0 'action=status\nport=2\n'
agent 0 'action=monitor\n'
agent 1 'action=status\nport=9\n'
agent 1 'action=status\nport=x\n'
agent 1 'action=explode\nport=2\n'
same "metadata" "$(echo action=metadata | "$fence" |
	grep -o '<action ' | wc -l)" 6

# Frozen, cut off, with a process that was stopped by itself: off is off.
nap=2000.$$ # nobody else's
"$lab" exec 2 sleep $nap &
wait_for 60 "a process" pgrep -f "sleep $nap" > /dev/null
"$lab" freeze 2 all
"$lab" cut 2
agent 0 'nodename=node2\naction=off\nplug=2\n' 3
[ -z "$(pgrep -f "sleep $nap")" ] || fail "a process of the node is alive"
agent 2 'action=status\nport=2\n'
agent 0 'action=off\nport=2\n'
wait_for 60 "the loss of node 2" sees 1 2
agent 0 'action=on\nport=2\n' 1
wait_for 60 "node 2 to be back" sees 1 3

boot=$(stat -c %i "/proc/$(cut -d' ' -f1 "$UGFS_LAB/pid/init3")/ns/pid")
agent 0 'action=reboot\nport=3\n' 2
[ "$(stat -Lc %i "/proc/$(cut -d' ' -f1 "$UGFS_LAB/pid/init3")/ns/pid")" != \
	"$boot" ] || fail "node 3 is what it was"
wait_for 60 "node 3 to be back" sees 1 3
"$lab" down
