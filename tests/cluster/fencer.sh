#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Who fences: another host when the first one's supervisor is killed or frozen;
# of two nodes that are cut from each other, the lower one.
. "$(dirname "$0")/lib.sh"
agents
"$lab" up 3 --token 3000

# The supervisor of the lowest member is stopped: the next host's acts instead,
# a little later.
for i in 1 2 3; do
	member member$i "$i" -f "$agent"
	says member$i "admitted $i.*"
done
says member1 "start 3: 1 2 3"
"$lab" exec 1 pkill -STOP -o -x cpgtool
"$lab" crash 3
says member2 "proved 3 fenced"
says member1 "start 4: 1 2"
same "fences" "$(cat fences)" "node2 off node3"

# It is killed, and the host of the other one is stopped as a whole.
"$lab" exec 1 pkill -KILL -o -x cpgtool
"$lab" start 3
wait_for 60 "node 3 to be back" sees 1 3
member member3 3 -f "$agent"
says member1 "start 5: 1 2 3"
: > fences
"$lab" freeze 2 all
says member3 "gone 2 host"
says member3 "proved 2 fenced"
says member1 "start 6: 1 3"
same "fences" "$(cat fences)" "node3 off node2"
"$lab" down
wait

# Two nodes, both quorate when cut: one of them survives.
rm -f member* fences
"$lab" up 2 --token 3000
member member1 1 -f "$agent" -d 10000
says member1 "admitted 1 founder"
member member2 2 -f "$agent" -d 10000
says member1 "start 2: 1 2"
"$lab" cut 2
says member1 "proved 2 fenced"
says member1 "start 3: 1"
same "fences" "$(cat fences)" "node1 off node2"
"$lab" status | grep -q "^node1 on" || fail "$("$lab" status)"
"$lab" down
wait
clean_logs
