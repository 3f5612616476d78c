#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# No mount beside the kernel's: a lockspace group with hosts in it is refused;
# one without them gets a member that a later kernel host will see. Tables of
# other clusters are refused, too.
. "$(dirname "$0")/lib.sh"
"$lab" up 3 --token 3000

refused() {
	wait_for 60 "the end of $1" test -e "$1.status"
	same "status of $1" "$(cat "$1.status")" 4
	says "$1" "$2"
}

kernel() {
	"$lab" exec "$1" "$CPGTOOL" -K "$2" > kernel 2>&1 &
	says kernel kernel
}

kernel 2 fs
member member1 1
refused member1 'join: 16 the kernel has the file system "fs" mounted on node 2; .*'
# Another file system is none of its business.
table=lab:fs2 member member3 3
says member3 "admitted 3 founder"
"$lab" exec 2 pkill -KILL -x cpgtool
wait_for 60 "the end of it" bash -c '! "$0" exec 2 pgrep -x cpgtool' "$lab"

# Two of ours are no kernel hosts to each other, also when they come at once.
member member1 1
member member2 2
says member1 "start 2: .*"
says member2 "start 2: .*"
kernel 3 fs
says member1 '.*a kernel mount of this file system on node 3 waits .*'

table=other:fs member foreign 3
refused foreign 'join: 18 the lock table "other:fs" is of the cluster "other", but .* "lab"'
table=nothing member bad 3
refused bad 'join: 22 the lock table is "nothing", not "CLUSTER:FS"'
"$lab" exec 3 pkill -KILL -x cpgtool
"$lab" down
wait
clean_logs
