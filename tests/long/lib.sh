# SPDX-License-Identifier: GPL-2.0-or-later
# lib.sh - what the long tests share, on top of tests/lib/lib.sh. A test begins
# with
#
#	. "$(dirname "$0")/lib.sh"
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../lib/lib.sh"

# have PROGRAM: or the test is skipped.
have() {
	command -v "$1" > /dev/null || skip "no $1"
}

# timed NAME COMMAND...: says how long it took.
timed() {
	local name=$1 start status=0
	start=$(date +%s%3N)
	shift
	"$@" || status=$?
	echo "$name: $(($(date +%s%3N) - start)) ms"
	return $status
}

# Processor time, in ms, of the mount on mnt, if there is one, and of all that has
# ended here. The mount processes end here too: this is process 1.
used_ms() {
	local mount
	mount=$(mount_pid mnt 2> /dev/null) || true
	awk -v hz="$(getconf CLK_TCK)" '{
		file = FILENAME; sub(/^.*[)] /, "")
		ticks += file == "/proc/1/stat" ? $14 + $15 : $12 + $13
	} END { printf "%d\n", ticks * 1000 / hz }' \
		/proc/1/stat ${mount:+"/proc/$mount/stat"}
}

# within SECONDS NAME COMMAND...: the command and the mount on mnt take no more
# processor time; generous, against orders of magnitude. Other work of the machine
# makes it longer but not more.
within() {
	local limit=$(($1 * 1000)) name=$2 used
	shift 2
	used=$(used_ms)
	timed "$name" "$@"
	used=$(($(used_ms) - used))
	echo "$name: $used ms of the processor"
	[ "$used" -le "$limit" ] || fail "$name took $used ms, more than $limit"
}
