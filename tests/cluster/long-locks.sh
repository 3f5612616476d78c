#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Minutes of random locking on N nodes, while one after the other (of five
# nodes, sometimes two) is killed, crashed, cut off, frozen, or loses its
# corosync, and comes back: what was held never excludes each other, value blocks
# are those written last, and all make progress again after each. Prints how long
# the others had to wait.
#
# Usage: long-locks.sh N. LOCKS_SECONDS (300) says how long, LOCKS_SEED which
# events, LOCKS_TOKEN corosync's timeout (1000 ms; more on a busy machine).
. "$(dirname "$0")/lib.sh"
: "${LOCKCLIENT:?}" "${LOCKCHECK:?}" "${LOCKTIMES:?}"
n=${1:-3}
seconds=${LOCKS_SECONDS:-300}
seed=${LOCKS_SEED:-$((SRANDOM % 32768))}
patience=$((180 * ${UGFS_PATIENCE:-1}))
RANDOM=$seed
echo "$n nodes, $seconds s, LOCKS_SEED=$seed"

declare -A name status_ok=([0]=1 [1]=1 [3]=1 [4]=1 [137]=1)
serial=0

now() {
	"$LOCKTIMES" now
}

# What is done to whom, and when.
at() {
	echo "$1 $2 $(now)" | tee -a events
}

timed_agent() {
	agents
	cat > "$work/timed" <<AGENT
#!/bin/bash
lines=\$(cat)
begin=\$('$LOCKTIMES' now)
status=0
'$agent' <<< "\$lines" || status=\$?
port=\$(sed -n 's/^port=node//p' <<< "\$lines")
echo "fence \$port \$begin \$('$LOCKTIMES' now)" >> '$work/events'
exit \$status
AGENT
	chmod +x "$work/timed"
}

client() {
	local node=$1 me
	serial=$((serial + 1))
	me=member$node.$serial
	name[$node]=$me
	(
		status=0
		"$lab" exec "$node" "$LOCKCLIENT" -s -u -f "$work/timed" \
			lab:locks "$work/history.$me" 100000 3 5 > "$me" 2>&1 ||
			status=$?
		echo "$status" > "$me.status"
	) &
}

ended() {
	[ -e "${name[$1]}.status" ]
}

# Locks that its client has had.
holds() {
	od -An -t u4 -j 24 -N 4 "history.${name[$1]}" 2>/dev/null || echo 0
}

# "lab status" would ask every corosync.
is_off() {
	local pid line
	! read -r pid _ 2>/dev/null < "$UGFS_LAB/pid/init$1" ||
		! read -r line 2>/dev/null < "/proc/$pid/stat" ||
		[[ $line == *") Z "* ]]
}

corosync_runs() {
	"$lab" exec "$1" pgrep -x corosync > /dev/null
}

start_corosync() {
	"$lab" exec "$1" sh -c "corosync -f -c '$("$lab" path "$1")/corosync.conf' \
		> /dev/null 2>&1 < /dev/null &"
}

# Whatever node I lacks. It may be fenced at any moment, for what was before.
bring_up() {
	if is_off "$1"; then
		"$lab" start "$1" > start.log 2>&1 || true
		return
	fi
	corosync_runs "$1" || start_corosync "$1" || true
	! ended "$1" || { client "$1" && before[$1]=100; }
}

# All work, and have for a while.
restore() {
	local end=$((SECONDS + patience)) i quiet=0
	local -A before=()
	while [ "$quiet" -lt 3 ]; do
		[ "$SECONDS" -lt "$end" ] ||
			fail "no progress: $("$lab" status)"
		quiet=$((quiet + 1))
		for i in $(seq "$n"); do
			if ! ended "$i" &&
				[ "$(holds "$i")" -gt "${before[$i]:-100}" ]; then
				before[$i]=$(($(holds "$i") + 20))
				continue
			fi
			bring_up "$i"
			quiet=0
		done
		sleep 0.1
	done
}

# died NODE COUNT: its neighbour has heard of more proved deaths of it than that.
deaths() {
	grep -c "^gone $1 .* died" "${name[$(($1 % n + 1))]}" || true
}

died() {
	[ "$(deaths "$1")" -gt "$2" ]
}

some_time() {
	sleep "$((RANDOM % $1)).$((RANDOM % 10))"
}

harm() {
	local node=$1 before
	case $((RANDOM % 12)) in
	0 | 1)
		at kill "$node"
		"$lab" kill "$node"
		;;
	2)
		at crash "$node"
		"$lab" crash "$node"
		;;
	11) # it stays off until it has been fenced
		before=$(deaths "$node")
		at lose "$node"
		"$lab" crash "$node"
		wait_for "$patience" "the end of node $node" died "$node" \
			"$before"
		;;
	3)
		at cut "$node"
		"$lab" cut "$node"
		some_time 6
		"$lab" heal "$node"
		;;
	4)
		at freeze-ugfs "$node"
		"$lab" freeze "$node" ugfs
		some_time 3
		"$lab" thaw "$node"
		;;
	5)
		at freeze-ugfs "$node"
		"$lab" freeze "$node" ugfs
		wait_for "$patience" "the end of ${name[$node]}" ended "$node"
		;;
	6)
		at freeze-all "$node"
		"$lab" freeze "$node" all
		some_time 4
		"$lab" thaw "$node" || true
		;;
	7)
		at stall-corosync "$node"
		"$lab" exec "$node" pkill -STOP -x corosync
		some_time 6
		"$lab" exec "$node" pkill -CONT -x corosync || true
		;;
	8)
		at stop-corosync "$node"
		"$lab" exec "$node" pkill -TERM -x corosync
		;;
	9)
		at kill-corosync "$node"
		"$lab" exec "$node" pkill -KILL -x corosync
		;;
	10)
		at leave "$node"
		"$lab" exec "$node" pkill -TERM -f "history[.]${name[$node]} "
		wait_for "$patience" "the end of ${name[$node]}" ended "$node"
		;;
	esac
}

timed_agent
: > events
"$lab" up "$n" --token "${LOCKS_TOKEN:-1000}"
for i in $(seq "$n"); do
	client "$i"
done
restore

end=$((SECONDS + seconds)) rounds=0
while [ "$SECONDS" -lt "$end" ]; do
	victim=$((RANDOM % n + 1))
	harm "$victim" || echo "not done"
	if [ "$n" -ge 5 ] && [ $((RANDOM % 3)) = 0 ]; then
		harm $((victim % n + 1)) || echo "not done"
	fi
	restore
	rounds=$((rounds + 1))
done

for i in $(seq "$n"); do
	"$lab" exec "$i" pkill -TERM -f "history[.]${name[$i]} " || true
done
for i in $(seq "$n"); do
	wait_for "$patience" "the end of ${name[$i]}" ended "$i"
	same "status of ${name[$i]}" "$(cat "${name[$i]}.status")" 0
done
for f in member*.status; do
	[ -n "${status_ok[$(cat "$f")]:-}" ] ||
		fail "${f%.status} ended with $(cat "$f")"
done
"$LOCKCHECK" history.*
echo "$rounds rounds, $(grep -c ^fence events || true) fence commands"
"$LOCKTIMES" events history.*
"$lab" down
wait
clean_logs
