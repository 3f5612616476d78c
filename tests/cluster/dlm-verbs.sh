#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# "ugfs dlm" on three nodes: every verb, what it prints, refuses and returns, a
# process that is stopped or killed, and a host that is acknowledged.
. "$(dirname "$0")/lib.sh"
: "${UGFS:?}"
ls=lab:verbs

# dlm NODE VERB ...: in the files out and err, its exit status in code.
dlm() {
	code=0
	timeout 120 "$lab" exec "$1" "$UGFS" dlm "${@:2}" > out 2> err ||
		code=$?
}

# gives CODE WORDS NODE VERB ...: the exit status, and words of what it prints.
gives() {
	dlm "${@:3}"
	[ "$code" = "$1" ] ||
		fail "dlm ${*:4}: status $code, not $1: $(cat out err)"
	[ -z "$2" ] || grep -q -e "$2" out err ||
		fail "dlm ${*:4}: no \"$2\": $(cat out err)"
}

# prints NODE WORDS VERB ...: whether these words are printed; for wait_for.
prints() {
	dlm "$1" "${@:3}"
	grep -q -e "$2" out err
}

# Help and usage need no cluster, but the verbs are those of a node.
"$lab" up 3 --token 3000
gives 0 "fence_ack" 1 --help
for verb in join leave ls status lockdump dump fence_ack lock unlock bench; do
	gives 0 "^usage: ugfs dlm $verb" 1 "$verb" --help
	gives 1 "ugfs dlm $verb: unrecognized option '--frob'" 1 "$verb" --frob
done
gives 1 'unknown verb "dlm jion"' 1 jion
gives 1 "usage: ugfs dlm VERB" 1
gives 1 "usage: ugfs dlm status" 1 status
gives 1 "frob: unknown option" 1 join -o frob "$ls"
gives 1 "ports=9-8: expected FIRST-LAST" 1 join -o ports=9-8 "$ls"
gives 1 "timeout: expected seconds" 1 join -t soon "$ls"
gives 1 "expected CLUSTER:NAME" 1 join verbs
gives 32 "key_file\|/nowhere" 1 join -o key_file=/nowhere "$ls"
gives 32 "no lock process of $ls on this host" 1 status "$ls"
gives 32 "another cluster\|cluster" 1 join other:verbs
gives 0 "" 1 ls
same "lockspaces before" "$(cat out)" ""

# Join, from the background and in the foreground.
gives 0 "$ls: joined" 1 join -t 60 -o member_timeout=60 "$ls"
gives 0 "$ls: joined" 2 join -o member_timeout=60,fence=manual "$ls"
"$lab" exec 3 "$UGFS" dlm join -f -o member_timeout=60 "$ls" > member.fg 2>&1 &
wait_for 60 "the third member" prints 1 "members 3" ls
gives 32 "is joined already, by process" 1 join "$ls"
gives 0 "3 node3 slot 3" 1 status "$ls"
dlm 1 status --json "$ls"
same "members as JSON" "$(jq -r '[.members[].name] | sort | join(" ")' out)" \
	"node1 node2 node3"
same "state" "$(jq -r .state out)" running
dlm 2 ls --json
same "list as JSON" "$(jq -r '.[0].lockspace' out)" "$ls"

# Locks: granted, refused, in time, converted, with a value.
gives 0 '^lock 1 "printer" granted, held in EX' 1 lock "$ls" printer EX
gives 16 'not queued' 2 lock --noqueue "$ls" printer PR
gives 16 'timed out' 2 lock --timeout 0.5 "$ls" printer PR
gives 0 "somebody waits for PR\|lock 1" 1 status "$ls"
gives 1 '"XX" is not a mode' 1 lock "$ls" printer XX
gives 1 'not a flag' 1 lock --flags frob "$ls" printer EX
gives 1 'do not go together' 1 lock --flags expedite "$ls" printer EX
gives 1 'from 1 to 64 bytes, not 65' 1 lock "$ls" "$(printf '%065d' 0)" EX
gives 1 'lvb: expected' 1 lock --convert 1 --lvb xyz "$ls" NL
gives 32 'there is no lock 99' 1 lock --convert 99 "$ls" NL
gives 32 'there is no lock 99' 1 unlock "$ls" 99
gives 1 'not the number of a lock' 1 unlock "$ls" one

# One that waits says so, and has it when the other lets go.
"$lab" exec 2 "$UGFS" dlm lock --json "$ls" printer PR > waiter 2>&1 &
waiter=$!
wait_for 30 "a word about waiting" grep -q 'lock .* on "printer" waits' waiter
gives 0 "Conversion\|Waiting Queue" 1 lockdump "$ls"
gives 0 'held in NL' 1 lock --convert 1 --lvb 2a2b "$ls" NL
wait "$waiter" || fail "the lock that waited: $(cat waiter)"
grep -q '"status": "granted"' waiter || fail "$(cat waiter)"
grep -q '"lvb": "2a2b0*"' waiter || fail "no value: $(cat waiter)"
id=$(sed -n 's/.*"id": \([0-9]*\).*/\1/p' waiter)
gives 0 'LVB: 2a2b0* seq' 1 lockdump "$ls"
gives 0 'PR Remote: node 2' 1 lockdump "$ls"
dlm 1 lockdump --json "$ls"
same "locks on the resource" "$(jq '.resources[] | select(.name == "printer") |
	.locks | length' out)" 2
gives 0 "receive request of 2" 1 dump "$ls"

# An interrupt of the command cancels: nothing is left behind.
"$lab" exec 3 "$UGFS" dlm lock "$ls" printer EX > interrupted 2>&1 &
wait_for 30 "a word about waiting" grep -q 'waits' interrupted
"$lab" exec 3 pkill -TERM -f "dlm lock $ls printer EX" || true
wait_for 30 "the cancel" prints 3 "locks 0$" ls
gives 0 "unlocked" 2 unlock "$ls" "$id"

# Leaving with and without locks.
gives 32 "1 lock is held by hand" 1 leave "$ls"
gives 0 "unlocked" 1 unlock --lvb 01 "$ls" 1
gives 0 "left" 3 leave "$ls"
wait_for 30 "two members" prints 1 "members 2" ls
gives 32 "no lock process" 3 status "$ls"

# A process that is stopped is a line of the list; a killed one leaves nothing.
pid=$("$lab" exec 2 "$UGFS" dlm ls --json | jq '.[0].pid')
"$lab" exec 2 kill -STOP "$pid"
gives 0 "does not answer" 2 ls
gives 32 "does not answer (is it stopped?)" 2 status "$ls"
"$lab" exec 2 kill -CONT "$pid"
gives 0 "running" 2 status "$ls"
"$lab" exec 2 kill -KILL "$pid"
wait_for 30 "one member" prints 1 "running, process .*, members 1," ls
gives 0 "" 2 ls
same "the list after a kill" "$(cat out)" ""
gives 0 "joined" 2 join -o fence=manual "$ls"

# A lost host: the status says what it waits for, until somebody vouches.
"$lab" crash 2
wait_for 60 "words about it" prints 1 'node2 (2): .* "ugfs dlm fence_ack node2"' \
	status "$ls"
gives 32 'no node "node9"' 1 fence_ack node9
gives 32 'node1 is this host' 1 fence_ack node1
gives 1 'usage: ugfs dlm fence_ack' 1 fence_ack
gives 0 'node2 is taken to be down' 3 fence_ack node2
wait_for 60 "one member" prints 1 "running, process .*, members 1," ls
gives 0 'granted, held in EX' 1 lock "$ls" printer EX
gives 0 'left' 1 leave --force --json "$ls"

# The benchmark: alone, and beside one that holds.
gives 0 'here, known: lock' 1 bench --seconds 0.1 --depth 8 lab:bench
grep -q "nobody holds" err || fail "bench alone: $(cat out err)"
"$lab" exec 3 "$UGFS" dlm bench --hold --names 2000 lab:bench > holder 2>&1 &
holder=$!
wait_for 60 "the holder" grep -q "holding 2000 names" holder
gives 0 '"name": "TCP echo"' 1 bench --json --seconds 0.1 --depth 8 \
	--held 1000 lab:bench
jq -e '[.rows[] | select(.name | startswith("there,"))] | length == 12 and
	all(.per_second > 0)' out > /dev/null || fail "rows: $(cat out)"
"$lab" exec 3 pkill -TERM -f "dlm bench --hold" || true
wait "$holder" || fail "the holder ended with $?: $(cat holder)"
gives 1 'depth: expected a number' 1 bench --depth 0 lab:bench

# Without quorum nobody is admitted; who does not want to wait is let go.
"$lab" crash 3
wait_for 60 "the loss of quorum" sees 1 0
"$lab" exec 1 "$UGFS" dlm join lab:alone > joiner 2>&1 &
joiner=$!
wait_for 30 "words about it" grep -q "waiting to be admitted" joiner
"$lab" exec 1 pkill -TERM -o -f "dlm join lab:alone" || true
status=0
wait "$joiner" || status=$?
same "status of an interrupted join" "$status" 8
grep -q "interrupted while joining" joiner || fail "its words: $(cat joiner)"
gives 0 "" 1 ls
same "the list after it" "$(cat out)" ""
"$lab" down
wait
clean_logs
