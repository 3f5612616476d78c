#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Proofs of death by supervisors: of a member that was killed, that froze, that
# was cut off, and of one whose own supervisor is gone.
. "$(dirname "$0")/lib.sh"
"$lab" up 3 --token 3000

member member1 1 -s
says member1 "admitted 1 founder"
member member2 2 -s
says member1 "start 2: 1 2"
member member3 3 -s
says member1 "start 3: 1 2 3"

# Killed: its supervisor has reaped it, and all go on without being told.
"$lab" kill 2
says member1 "gone 2 .*"
says member1 "proved 2 reaped"
says member1 "start 4: 1 3"
wait_for 60 "the end of the supervisor" test -e member2.status
same "its status" "$(cat member2.status)" 137

# Frozen: expelled, killed by its supervisor although it is stopped, reaped.
member member2 2 -s
says member1 "start 5: 1 3 2"
"$lab" freeze 2 ugfs
echo "expel 2" > member1.in
says member1 "gone 2 expelled"
says member1 "proved 2 reaped"
says member3 "start 6: 1 3"
wait_for 60 "the end of the supervisor" test -e member2.status
same "its status" "$(cat member2.status)" 137

# Cut off: no proof can come, so nothing starts; it comes with the network.
"$lab" cut 3
says member1 "gone 3 host"
! grep -q "^proved 3" member1 || fail "a proof of a node that is cut off"
! grep -q "^start 7" member1 || fail "started without a proof"
"$lab" heal 3
says member1 "proved 3 reaped"
says member1 "start 7: 1"
wait_for 60 "the end of the supervisor" test -e member3.status

# Cut off and then killed: the report waits for somebody who can use it.
member member3 3 -s
says member1 "start 8: 1 3"
"$lab" cut 3
says member3 "quorum no"
"$lab" kill 3
sleep 1
[ ! -e member3.status ] || fail "the supervisor has told nobody and gone"
"$lab" heal 3
says member1 "proved 3 reaped"
says member1 "start 9: 1"
wait_for 60 "the end of the supervisor" test -e member3.status

# Without its own supervisor: another one of that host holds its life lock.
member member2 2
says member2 "admitted 2"
member second2 2 -s
says second2 "admitted 16777218"
"$lab" exec 2 sh -c 'kill -KILL $(sed -n "s/^pid //p" /run/ugfs/*.2.0.life)'
says member1 "proved 2 life lock"
says second2 "proved 2 life lock"
says member1 "start 12: 1 16777218"
"$lab" down
wait
clean_logs
