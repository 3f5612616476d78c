#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Without a fence command the cluster waits, says so, and goes on when an
# administrator has said that the host is down; from a member or from outside.
. "$(dirname "$0")/lib.sh"
"$lab" up 3 --token 3000

# fence=none, acknowledged by a process that has nothing to do with it.
member member1 1 -s
says member1 "admitted 1 founder"
member member2 2 -s
says member1 "start 2: 1 2"
heard member1 waits "no waits"
"$lab" crash 2
says member1 "gone 2 host"
wait_for 60 "words" heard member1 waits \
	'wait: node2 (2): process .* no fence command is configured: .* "ugfs dlm fence_ack node2"'
! grep -q "^start 3" member1 || fail "started without a proof"
same "acknowledging this host" "$("$lab" exec 3 "$CPGTOOL" -a node3 || true)" \
	"ack: node3 is this host, which is not down"
same "acknowledging nobody" "$("$lab" exec 3 "$CPGTOOL" -a node9 || true)" \
	'ack: corosync is configured with no node "node9"'
! grep -q "^proved" member1 || fail "somebody else was acknowledged"
"$lab" exec 3 "$CPGTOOL" -a node2
says member1 "proved 2 fenced"
says member1 "start 3: 1"
heard member1 waits "no waits"

# fence=manual, acknowledged by a member.
"$lab" start 2
wait_for 60 "node 2 to be back" sees 1 3
member member2 2 -f manual
says member2 "admitted 2"
member member3 3 -f manual
says member2 "start 5: 1 2 3"
"$lab" freeze 3 all
says member2 "gone 3 host"
wait_for 60 "words" heard member2 waits "wait: node3 (3): .* fencing is manual: .*"
echo "ack 10.77.0.3" > member2.in
says member2 "ack 0"
says member1 "proved 3 fenced"
says member1 "start 6: 1 2"
"$lab" thaw 3
says member3 "out expelled"
"$lab" down
wait
clean_logs
