# SPDX-License-Identifier: GPL-2.0-or-later
# mount.sh - what the tests of mounts in a cluster share, beside lib.sh. UGFS
# names the program; meson sets it.

: "${UGFS:?}"
export UGFS
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
	local status=0
	fsck.gfs2 -n "$1" > fsck 2>&1 || status=$?
	[ "$status" = 0 ] || fail "fsck.gfs2, status $status: $(cat fsck)"
}
