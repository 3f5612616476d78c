#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Locks among three nodes whose processes are killed, cut off, stopped, join again
# and leave: what they held never excludes each other, and value blocks are those
# written last.
. "$(dirname "$0")/lib.sh"
: "${LOCKCLIENT:?}" "${LOCKCHECK:?}"
seconds=${LOCKS_SECONDS:-20}

# client NAME NODE [OPTIONS]: takes locks until it is told to stop; its lines
# are in NAME, its exit status ends in NAME.status.
client() {
	local name=$1 node=$2
	shift 2
	rm -f "$name" "$name.status"
	(
		status=0
		"$lab" exec "$node" "$LOCKCLIENT" "$@" lab:locks \
			"$work/history.$name" 1000 3 5 > "$name" 2>&1 ||
			status=$?
		echo "$status" > "$name.status"
	) &
}

# end NAME NODE: it leaves by its own words.
end() {
	"$lab" exec "$2" pkill -TERM -f "history[.]$1 " || true
	wait_for 60 "the end of $1" test -e "$1.status"
	same "status of $1" "$(cat "$1.status")" 0
}

# The first hold of a new client may have to wait for a recovery.
holds() {
	[ "$(od -An -t u4 -j 24 -N 4 "history.$1" 2>/dev/null || echo 0)" -gt \
		"$2" ]
}

# more_gone NAME COUNT [NODE]
more_gone() {
	[ "$(grep -c "^gone ${3:-3} .* died" "$1" || true)" -gt "$2" ]
}

"$lab" up 3
client member1 1 -s -u
says member1 "running slot 1"
client member2 2 -s -u
says member2 "running slot 2"
client member3 3 -s -u
says member3 "running slot 3"
for m in member1 member2 member3; do
	wait_for 20 "locks of $m" holds "$m" 1000
done

# Kill node 3's process again and again; it comes back under other names.
end=$((SECONDS + seconds)) n=3
while [ "$SECONDS" -lt "$end" ]; do
	"$lab" kill 3
	says member1 "gone 3 slot .* died"
	wait_for 20 "the end of member$n" test -e "member$n.status"
	n=$((n + 1))
	client "member$n" 3 -s -u
	says "member$n" "running slot .*"
	wait_for 20 "locks of member$n" holds "member$n" 200
done

# Cut off: nothing is granted there, and nothing here until its supervisor can
# say that it is dead.
"$lab" cut 3
says "member$n" "quorate no"
says member1 prepare
runs=$(grep -c "^running" member1)
gone=$(grep -c "^gone 3 .* died" member1)
sleep 3
same "recoveries without a proof" "$(grep -c "^running" member1)" "$runs"
"$lab" heal 3
wait_for 30 "its death" more_gone member1 "$gone"
wait_for 30 "the end of member$n" test -e "member$n.status"

# Stopped: it keeps silent, is expelled and killed, and the others go on.
gone=$(grep -c "^gone 2 .* died" member1 || true)
"$lab" freeze 2 ugfs
wait_for 40 "the end of who is silent" more_gone member1 "$gone" 2
wait_for 30 "the end of member2" test -e member2.status
client member2b 2 -s -u
says member2b "running slot .*"
wait_for 20 "locks of member2b" holds member2b 200

# One that leaves by itself, while another works.
end member2b 2
says member1 "gone 2 slot .* clean"
end member1 1
"$LOCKCHECK" history.*
"$lab" down
wait
clean_logs
