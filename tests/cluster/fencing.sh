#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A host that gives no proof of death is fenced: by the lowest member's host, by
# the next one when that fails, by nobody else; or somebody has to acknowledge.
. "$(dirname "$0")/lib.sh"
agents
"$lab" up 3 --token 3000

# A host that is lost: fenced once, and all go on.
member member1 1 -f "$agent"
says member1 "admitted 1 founder"
member member2 2 -f "$agent"
says member2 "admitted 2"
member member3 3 -f "$agent"
says member1 "start 3: 1 2 3"
"$lab" cut 3
says member1 "gone 3 host"
says member1 "proved 3 fenced"
says member2 "proved 3 fenced"
says member1 "start 4: 1 2"
says member2 "start 4: 1 2"
same "fences" "$(cat fences)" "node1 off node3"
"$lab" status | grep -q "^node3 off" || fail "$("$lab" status)"
heard member1 waits "no waits"

# A command that fails: tried again, by another host after the second time.
"$lab" start 3
wait_for 60 "node 3 to be back" sees 1 3
member member3 3 -f "$agent"
says member1 "start 5: 1 2 3"
: > fences
echo node1 > broken
"$lab" crash 3
says member1 "gone 3 host"
wait_for 60 "a failure" heard member1 waits \
	"wait: node3 (3): process .* the fence command of node 1 ended with status 3 .*"
says member1 "proved 3 fenced"
says member1 "start 6: 1 2"
same "fences" "$(tr '\n' ';' < fences)" \
	"node1 off node3;node1 off node3;node2 off node3;"
rm broken
"$lab" start 3
wait_for 60 "node 3 to be back" sees 1 3

# A host whose supervisor was killed and whose member is stopped: it is there,
# and gives no proof. It is switched off all the same.
: > fences
"$lab" exec 2 pkill -KILL -o -x cpgtool
"$lab" freeze 2 ugfs
echo "expel 2" > member1.in
says member1 "gone 2 expelled"
says member1 "proved 2 fenced"
says member1 "start 7: 1"
same "fences" "$(cat fences)" "node1 off node2"
"$lab" down
wait
clean_logs
