#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The start-up rule: what earlier members left behind is repaired when every
# configured host is a member's, or has been fenced or acknowledged.
. "$(dirname "$0")/lib.sh"
agents
"$lab" up 3 --token 3000

# A founder that finds nothing to repair says so: nobody else has to ask.
member member1 1 -f "$agent"
says member1 "admitted 1 founder"
echo repaired > member1.in
says member1 "cleared"
member member2 2 -f "$agent"
says member2 "admitted 2"
heard member2 repair "repair yes"
for i in 1 2; do
	echo leave > member$i.in
	wait_for 60 "its end" test -e member$i.status
done

# All are there: no need of a fence. The first to ask speaks for all.
member member1 1 -f "$agent"
says member1 "admitted 1 founder"
heard member1 repair "repair the other hosts are being asked"
wait_for 60 "words" heard member1 repair \
	"repair node2 (2): the host may have used .*; node3 (3): the host .*"
member member2 2 -f "$agent"
member member3 3 -f "$agent"
says member1 "cleared"
says member3 "cleared"
heard member3 repair "repair yes"
[ ! -e fences ] || fail "fenced: $(cat fences)"
for i in 1 2 3; do
	echo leave > member$i.in
	wait_for 60 "its end" test -e member$i.status
done

# One host is absent: it is fenced when its time is over, and not before.
"$lab" crash 3
wait_for 60 "the loss of node 3" sees 1 2
member member1 1 -f "$agent" -b 4000
says member1 "admitted 1 founder"
member member2 2 -f "$agent"
says member2 "admitted 2"
heard member1 repair "repair .*"
wait_for 60 "words" heard member1 repair "repair node3 (3): .*"
! grep -q "^cleared" member2 || fail "cleared with a host missing"
says member2 "cleared"
heard member1 repair "repair yes"
same "fences" "$(cat fences)" "node1 off node3"
for i in 1 2; do
	echo leave > member$i.in
	wait_for 60 "its end" test -e member$i.status
done

# A process of before that no member knows: its corosync has died meanwhile and
# it hangs, so nobody missed it. Its supervisor ends it when it is asked to.
: > fences
member member2 2 -s
says member2 "admitted 2 founder"
"$lab" freeze 2 ugfs
"$lab" exec 2 pkill -KILL -x corosync
wait_for 60 "the loss of node 2" sees 1 0
"$lab" start 3
"$lab" exec 2 sh -c "corosync -f -c '$("$lab" path 2)/corosync.conf' \
	> /dev/null 2>&1 < /dev/null &"
wait_for 60 "node 2 to be back" sees 1 3
[ ! -e member2.status ] || fail "the process has ended by itself"
member member3 3 -s
says member3 "admitted 3 founder"
member member1 1 -f manual
says member1 "admitted 1"
heard member1 repair "repair .*"
says member1 "cleared"
wait_for 60 "its end" test -e member2.status
same "status of the old process" "$(cat member2.status)" 137
[ ! -s fences ] || fail "fenced: $(cat fences)"
for i in 1 3; do
	echo leave > member$i.in
	wait_for 60 "its end" test -e member$i.status
done

# An administrator may speak for a host.
"$lab" crash 3
wait_for 60 "the loss of node 3" sees 1 2
member member1 1 -f manual -b 1000
says member1 "admitted 1 founder"
member member2 2 -f manual
heard member1 repair "repair .*"
wait_for 60 "words" heard member1 repair "repair node3 (3): .* fencing is manual.*"
"$lab" exec 2 "$CPGTOOL" -a node3
says member1 "cleared"
"$lab" down
wait
clean_logs
