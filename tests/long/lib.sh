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

# within SECONDS NAME COMMAND...: takes no longer; generous, against orders of
# magnitude.
within() {
	local limit name=$2 start=$SECONDS
	limit=$(patiently "$1")
	shift 2
	timed "$name" "$@"
	[ $((SECONDS - start)) -le "$limit" ] ||
		fail "$name took $((SECONDS - start)) s, more than $limit"
}
