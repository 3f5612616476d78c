#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The ping_pong of Samba's ctdb, on one, two and three nodes, in all its ways: no
# lock fails, and "data increment" is the number of nodes that are at it. It falls
# when one of them dies.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mount.sh"
: "${APPLOCK:?}"
command -v ping_pong > /dev/null || skip "no ping_pong (package ctdb)"

# begin OPTIONS NODE..: on each of these nodes, on one file.
begin() {
	local options=$1 i dir locks=$#
	shift
	pids=()
	for i in "$@"; do
		dir=m$i
		# shellcheck disable=SC2086
		ping_pong $options "${!dir}/pp$options" "$locks" > "out$i" 2>&1 &
		pids[i]=$!
	done
}

# What it has said, a line each: it ends them with carriage returns.
told() {
	tr '\r' '\n' < "out$1"
}

rates() {
	[ "$(told "$1" | grep -c 'locks/sec')" -ge "$2" ]
}

increment() {
	told "$1" | sed -n 's/^data increment = //p' | tail -n 1
}

increment_is() {
	[ "$(increment "$1")" = "$2" ]
}

# end NODE..
end() {
	local i
	for i in "$@"; do
		kill -0 "${pids[i]}" 2> /dev/null ||
			fail "ping_pong on node $i has ended: $(told "$i" | tail -n 3)"
		kill "${pids[i]}"
		wait "${pids[i]}" || true
		! told "$i" | grep -i fail || fail "ping_pong on node $i"
	done
}

# all_ways NODE..
all_ways() {
	local i options
	for options in "" -r -rw -rwm -c; do
		begin "$options" "$@"
		for i in "$@"; do
			wait_for 120 "rates of node $i, ping_pong $options" \
				rates "$i" 3
			[[ $options != -rw* ]] || wait_for 120 \
				"increment $# of node $i, ping_pong $options" \
				increment_is "$i" $#
		done
		end "$@"
		for i in "$@"; do
			echo "$# nodes, ping_pong $options: node $i" \
				"$(told "$i" | grep locks/sec | tail -n 1)"
		done
	done
}

"$lab" up 3 --token 20000 --transport udpu
volume=$("$lab" volume)
mount_all 1 2 3
all_ways 1
all_ways 1 2
all_ways 1 2 3

# Does fcntl(2) work at all? On node 2 while node 1 has the lock.
mkfifo key
ping_pong -l "$m1/working" < key > out1 2>&1 &
holder=$!
exec {keep}> key
locked() {
	"$APPLOCK" get "$m2/working" w 0 1 | grep -q "^w 0 0"
}
wait_for 30 "the lock of node 1" locked
"$lab" exec 2 timeout 30 ping_pong -l "$UGFS_LAB/nodes/2/mnt/working" \
	> out2 2>&1 < /dev/null || true
grep -q "Working POSIX byte range locks" out2 ||
	fail "ping_pong -l on node 2: $(cat out2)"
exec {keep}>&-
wait "$holder" || true

# Three, of which one dies.
begin -rw 1 2 3
for i in 1 2 3; do
	wait_for 120 "increment 3 of node $i" increment_is "$i" 3
done
begun=$(date +%s%N)
"$lab" kill 3
for i in 1 2; do
	wait_for 60 "increment 2 of node $i" increment_is "$i" 2
done
echo "data increment = 2 $((($(date +%s%N) - begun) / 1000000)) ms after a death"
end 1 2
# It goes on, whatever it is told.
kill "${pids[3]}"
wait "${pids[3]}" || true
told 3 | grep -q failed || fail "locks are granted on a dead node"
umount_all 1 2 3
clean "$volume"
clean_logs
"$lab" down
