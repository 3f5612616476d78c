# SPDX-License-Identifier: GPL-2.0-or-later
# fsck.sh - the referee, for all tests.

fsck_clean=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/fsck-clean.txt

# fsck_faults IMAGE: what is wrong with it; nothing: it is clean, which is exit
# status 0 and not a line but those of a clean run. It can exit with 0 for a
# journal that is dirty.
fsck_faults() {
	local status=0
	fsck.gfs2 -n "$1" > fsck.log 2>&1 || status=$?
	# Its progress lands in the middle of lines.
	sed 's/\r*[0-9]* percent complete\.\r*//g' fsck.log |
		grep -v -x -f "$fsck_clean" || true
	[ "$status" = 0 ] || echo "exit status $status"
	rm -f fsck.log
}
