# SPDX-License-Identifier: GPL-2.0-or-later
# mount.sh - what the tests of mounts in a cluster share, beside lib.sh. UGFS
# names the program; meson sets it.

: "${UGFS:?}"
export UGFS
. "$here/../lib/fsck.sh"
command -v fsck.gfs2 > /dev/null || skip "no fsck.gfs2"
[ -e /dev/fuse ] || skip "no /dev/fuse"

# ends_within SECONDS COMMAND...
ends_within() {
	local status=0
	timeout "$@" > ended 2>&1 || status=$?
	[ "$status" != 124 ] || fail "no end within $1 s: ${*:2}"
	[ "$status" = 0 ] || fail "status $status of ${*:2}: $(cat ended)"
}

# clean IMAGE: no fault is found in it.
clean() {
	local bad
	bad=$(fsck_faults "$1")
	[ -z "$bad" ] || fail "fsck.gfs2 -n $1 says: $bad"
}

# dirs_on NAME NODES: a new directory as each of the first NODES nodes sees it, in
# $dirs.
dirs_on() {
	local name=$1 i dir
	dirs=()
	for ((i = 1; i <= $2; i++)); do
		dir=m$i
		dirs+=("${!dir}/$name")
	done
	mkdir "${dirs[0]}"
}

# on I COMMAND...: ugfs on node I
on() {
	local i=$1
	shift
	"$lab" exec "$i" "$UGFS" "$@"
}

# tells I TEXT: the status of node I has it
tells() {
	timeout 20 "$lab" exec "$1" "$UGFS" status lab:volume > status.out 2>&1 ||
		fail "status of node $1 returned $?: $(cat status.out)"
	grep -q -- "$2" status.out
}

# --- who writes, who dies, who goes on ----------------------------------------

linelog=$here/../../lab/linelog
mkdir -p acked

# mount_all NODE..: in $m1, $m2 ..; options of mount in $mount_options. A host
# that is lost is fenced by the lab.
mount_all() {
	local i options="fence=$fence${mount_options:+,$mount_options}"
	for i in "$@"; do
		printf -v "m$i" '%s' "$("$lab" path "$i")/mnt"
		ends_within 90 "$lab" mount "$i" -o "$options"
	done
}

# writers NODE..: each node appends to one log and has a name of its own in it,
# a new one each time. What was acknowledged is in acked/NAME.
writers() {
	local i dir
	rm -f stop
	round=$((${round:-0} + 1))
	for i in "$@"; do
		dir=m$i
		rm -f "ended$i"
		(
			"$linelog" write "${!dir}/log" "node${i}r$round" \
				"acked/node${i}r$round" stop
			: > "ended$i"
		) &
	done
}

# How many lines of NODE have been acknowledged in this round.
lines_of() {
	cat "acked/node$1r$round" 2>/dev/null | grep -vc failed || true
}

has_lines() {
	[ "$(lines_of "$1")" -ge "$2" ]
}

# go_on SECONDS NODE..: each has further lines acknowledged within that time.
go_on() {
	local seconds=$1 i now
	shift
	for i in "$@"; do
		now=$(lines_of "$i")
		wait_for "$seconds" "lines of node $i after $now" \
			has_lines "$i" $((now + 5))
	done
}

# The writers of these nodes have had an error.
failed() {
	local i
	for i in "$@"; do
		wait_for 60 "the writer on node $i" test -e "ended$i"
		grep -q failed "acked/node${i}r$round" ||
			fail "the writer on node $i has not failed"
	done
}

# The rest of them ends.
stop_writers() {
	local i
	: > stop
	for i in "$@"; do
		wait_for 60 "the writer on node $i" test -e "ended$i"
		! grep failed "acked/node${i}r$round" ||
			fail "the writer on node $i has failed"
	done
}

# intact MOUNT: the log has what was acknowledged, once, and nothing else.
intact() {
	"$linelog" check "$1/log" acked/* > check ||
		fail "the log: $(cat check; tail -n 2 acked/*)"
}

# remount NODE..: whose process has died.
remount() {
	local i
	for i in "$@"; do
		ends_within 60 "$lab" umount "$i"
	done
	mount_all "$@"
}

umount_all() {
	local i
	for i in "$@"; do
		ends_within 90 "$lab" umount "$i"
	done
}

# mount_pid NODE: its mount process, as the machine numbers it.
mount_pid() {
	local init pid status
	init=$(awk '{ print $1 }' "$UGFS_LAB/pid/init$1")
	pid=$("$lab" exec "$1" sh -c 'for f in /run/ugfs/*.life; do
		flock -n "$f" true || sed -n "s/^pid //p" "$f"; done')
	[ -n "$pid" ] || return 1
	for status in /proc/[0-9]*/status; do
		if awk -v pid="$pid" '$1 == "NSpid:" && $NF == pid && NF > 2 \
			{ found = 1 } END { exit !found }' "$status" \
			2>/dev/null && same_pid_space "${status%/status}" \
			"/proc/$init"; then
			status=${status%/status}
			echo "${status#/proc/}"
			return 0
		fi
	done
	return 1
}

same_pid_space() {
	[ "$(readlink "$1/ns/pid")" = "$(readlink "$2/ns/pid")" ]
}
