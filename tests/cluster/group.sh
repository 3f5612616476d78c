#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Members of one group on three nodes: all agree on who is in it, through joins,
# leaves, deaths, partitions and a frozen process.
. "$(dirname "$0")/lib.sh"
"$lab" up 3 --token 5000

# Two members on node 1: the second has instance 1 (bit 24).
member member1 1
says member1 "start 1: 1"
grep -q -x "admitted 1 founder" member1 || fail "no founder"
member member1b 1
says member1b "admitted 16777217"
member member2 2
says member2 "admitted 2"
member member3 3 -t 2000
says member3 "admitted 3"
for m in member1 member1b member2 member3; do
	says "$m" "start 4: 1 16777217 2 3"
	says "$m" "lease"
done

lease member2 yes || fail "no lease"

# With its corosync stopped a member's lease runs out, long before the others
# report it gone, though its thread may hang; and comes again.
"$lab" exec 2 pkill -STOP -x corosync
wait_for 60 "the end of the lease" lease member2 no
"$lab" exec 2 pkill -CONT -x corosync
wait_for 60 "the lease" lease member2 yes
! grep -q "^gone" member1 || fail "a pause of corosync has cost a member"

# A clean leave: nobody searches for a proof, all go on.
echo leave > member1b.in
wait_for 60 "its end" test -e member1b.status
same "its status" "$(cat member1b.status)" 0
for m in member1 member2 member3; do
	says "$m" "gone 16777217 left"
	says "$m" "proved 16777217 left"
	says "$m" "start 5: 1 2 3"
done

# The lowest free instance again.
member member1b 1
says member1b "start 6: 1 2 3 16777217"

# A killed process is gone at once, but nothing starts without a proof of it.
"$lab" kill 2
for m in member1 member1b member3; do
	says "$m" "missing 2 process"
	says "$m" "gone 2 process"
	says "$m" "change 7: 1 3 16777217"
	! grep -q "^start 7" "$m" || fail "$m started without a proof"
done
echo "prove 2 reaped" > member3.in
for m in member1 member1b member3; do
	says "$m" "proved 2 reaped"
	says "$m" "start 7: 1 3 16777217"
done

# Without quorum nothing is decided; what was cut off is out for good.
member member2 2
says member2 "start 8: 1 3 16777217 2"
"$lab" cut 3
says member3 "quorum no"
lease member3 no || fail "a lease without quorum"
says member1 "gone 3 host"
says member2 "gone 3 host"
! grep -q "^gone .* host" member3 || fail "node 3 decided without quorum"
"$lab" heal 3
says member3 "out expelled"
wait_for 60 "its end" test -e member3.status
same "its status" "$(cat member3.status)" 3
echo "prove 3 fenced" > member1.in
says member2 "start 9: 1 16777217 2"

# All of them cut off from each other: nobody decides; when the two with members
# are together again before anybody else has quorum, nothing has happened.
for i in 1 2 3; do "$lab" cut "$i"; done
says member2 "missing 1 host"
says member1 "missing 2 host"
wait_for 60 "the loss of quorum" sees 1 0
for i in 1 2; do "$lab" heal "$i"; done
says member1 "back 2"
says member2 "back 1"
"$lab" heal 3
wait_for 60 "node 3 to be back" sees 1 3
! grep -q "^gone 2 host" member1 || fail "node 2 is gone for node 1"

# A frozen process holds a change up until its time is over.
"$lab" freeze 2 ugfs
member member3 3 -t 2000
says member3 "admitted 3"
says member1 "gone 2 expelled"
says member1 "change 10: 1 16777217 3"
"$lab" thaw 2
says member2 "out expelled"
echo "prove 2 reaped" > member3.in
for m in member1 member1b member3; do
	says "$m" "start 10: 1 16777217 3"
done

# All have seen the same decisions in the same order.
same "changes" "$(lines member1b "change" | sed 's/^.*change 6/change 6/')" \
	"$(lines member1 "change" | sed 's/^.*change 6/change 6/')"

# A link that stays broken while both ends are alive: the higher id goes.
echo "link 16777217 silent" > member1.in
for m in member1 member3; do
	says "$m" "gone 16777217 expelled"
done
says member1b "out expelled"
! grep -q "^out" member1 || fail "both have gone"

# A corosync that ends takes its members with it.
"$lab" exec 3 pkill -x corosync
says member3 "lost: .*"
"$lab" down
wait
clean_logs
