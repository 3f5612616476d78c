# SPDX-License-Identifier: GPL-2.0-or-later
# lib.sh - what the cluster tests share. A test begins with
#
#	. "$(dirname "$0")/lib.sh"
#
# and then runs as the first process of a private process and mount name space
# with a lab folder of its own, so that nothing of it can outlive it, whatever
# goes wrong. It has a directory, $work, and needs root, corosync and name
# spaces: without them it is skipped.
#
# CPGTOOL names the program of that name; meson sets it.

set -eu
export LC_ALL=C
here=$(dirname "$(readlink -f "$0")")
lab=$here/../../lab/lab
fence=$here/../../lab/fence_lab

skip() {
	echo "SKIP: $*"
	exit 77
}

outside() {
	[ "$(id -u)" = 0 ] || skip "not root"
	for tool in corosync ip bridge nsenter; do
		command -v "$tool" > /dev/null || skip "no $tool"
	done
	unshare --net --mount --pid --ipc --uts --fork ip link add br0 \
		type bridge 2>/dev/null || skip "no name spaces or bridges"

	local dir child status=0
	dir=$(mktemp -d "${UGFS_TMP:-/tmp}/ugfs-cluster.XXXXXX")
	trap '[ -n "${UGFS_KEEP:-}" ] || rm -rf --one-file-system "$dir"' EXIT
	trap 'kill -KILL "$child" 2>/dev/null; wait; exit 130' INT TERM HUP
	UGFS_SANDBOX=$dir unshare --mount --pid --fork --kill-child \
		--mount-proc bash "$0" "$@" &
	child=$!
	wait "$child" || status=$?
	exit "$status"
}

[ -n "${UGFS_SANDBOX:-}" ] || outside "$@"

work=$UGFS_SANDBOX
unset UGFS_SANDBOX
: "${CPGTOOL:?}"
export UGFS_LAB=$work/lab
export ASAN_OPTIONS="log_path=$work/sanitizer:detect_leaks=1"
export UBSAN_OPTIONS="log_path=$work/sanitizer:print_stacktrace=1"
cd "$work"

fail() {
	echo "FAIL: $*" >&2
	for f in "$work"/member* "$work"/sanitizer.* "$work"/lab/log/* \
		"$work"/lab/nodes/*/corosync.log; do
		[ -s "$f" ] || continue
		echo "--- ${f#"$work"/}"
		tail -n 40 "$f"
	done >&2
	exit 1
}

trap 'fail "line $LINENO: $BASH_COMMAND"' ERR
set -E

same() {
	[ "$2" = "$3" ] || fail "$1: got \"$2\", expected \"$3\""
}

# wait_for SECONDS WHAT COMMAND...
wait_for() {
	local end=$((SECONDS + $1)) what=$2
	shift 2
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || fail "waiting for $what"
		sleep 0.05
	done
}

# sees NODE COUNT: it has quorum with so many nodes; 0: it has none.
sees() {
	local line want="quorum with $2 nodes"
	[ "$2" != 0 ] || want="no quorum"
	line=$("$lab" status | grep "^node$1 ")
	[ "${line#*, }" = "$want" ]
}

# member NAME NODE [cpgtool options]: a cpgtool on that node; its lines are in the
# file NAME, its commands are written to NAME.in, its exit status ends in
# NAME.status.
member() {
	local name=$1 node=$2
	shift 2
	rm -f "$name" "$name.in" "$name.status"
	mkfifo "$name.in"
	(
		status=0
		"$lab" exec "$node" "$CPGTOOL" "$@" "${table:-lab:fs}" \
			< "$name.in" > "$name" 2>&1 || status=$?
		echo "$status" > "$name.status"
	) &
	# Held open, or the member would read an end of file.
	exec {keep}<> "$name.in"
}

# says NAME LINE [SECONDS]: wait for a line of a member.
says() {
	wait_for "${3:-60}" "\"$2\" of $1" grep -s -q -x "$2" "$1"
}

# heard NAME COMMAND LINE: the next answer of a member to a command is this line.
heard() {
	local before got
	before=$(wc -l < "$1")
	echo "$2" > "$1.in"
	wait_for 30 "an answer of $1" more_lines "$1" "$before"
	got=$(tail -n "+$((before + 1))" "$1")
	grep -q -x "$3" <<< "$got"
}

more_lines() {
	[ "$(wc -l < "$1")" -gt "$2" ]
}

# $agent: a fence command for members of the lab. Each run leaves a line in the
# file "fences": who, what, whom. Nodes whose name is in "broken" cannot fence.
agents() {
	agent=$work/agent
	cat > "$agent" <<AGENT
#!/bin/bash
lines=\$(cat)
action=\$(sed -n 's/^action=//p' <<< "\$lines")
port=\$(sed -n 's/^port=//p' <<< "\$lines")
echo "\$(hostname) \$action \$port" >> '$work/fences'
if grep -q -s -x "\$(hostname)" '$work/broken'; then
	echo "this agent is broken"
	exit 3
fi
exec '$fence' <<< "\$lines"
AGENT
	chmod +x "$agent"
}

# Lines of members that begin like this, in one line.
lines() {
	grep "^$2" "$1" | tr '\n' ';'
}

# lease NAME yes|no: what a member says of its lease now.
lease() {
	local before
	before=$(grep -c '^lease [yn]' "$1" || true)
	echo lease > "$1.in"
	wait_for 30 "an answer of $1" more_leases "$1" "$before"
	[ "$(grep '^lease [yn]' "$1" | tail -n 1)" = "lease $2" ]
}

more_leases() {
	[ "$(grep -c '^lease [yn]' "$1" || true)" -gt "$2" ]
}

clean_logs() {
	for f in "$work"/sanitizer.*; do
		[ ! -s "$f" ] || fail "a sanitizer has reported"
	done
}
