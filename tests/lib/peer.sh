# SPDX-License-Identifier: GPL-2.0-or-later
# peer.sh - for tests with the real kernel GFS2 in a virtual machine: finds it
# beside the project, prepares it once, runs its interoperability check.

peer=$(readlink -m "$lib/../../../shared/peer-vm")
[ -x "$peer/run.sh" ] || skip "no ../shared/peer-vm"
# One at a time: others wait, and find it done.
flock "${PEERVM_DIR:-/tmp/peer-vm}.lock" "$peer/prepare.sh" \
	> prepare.log 2>&1 ||
	fail "prepare.sh returned $?: $(tail -20 prepare.log)"

# peer_interop [options of interop.sh] IMAGE: results in interop-out
peer_interop() {
	"$peer/interop.sh" -o "$work/interop-out" -t "$(patiently 1500)" "$@" \
		> interop.log 2>&1 ||
		fail "interop.sh $* returned $?: $(tail -40 interop.log)"
}
