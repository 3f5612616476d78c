# SPDX-License-Identifier: GPL-2.0-or-later
# peer.sh - for tests with the real kernel GFS2 in a virtual machine: finds it
# beside the project (or where PEERVM says), prepares it once, runs its
# interoperability check.

peer=$(readlink -m "${PEERVM:-$lib/../../../shared/peer-vm}")
[ -x "$peer/run.sh" ] || skip "no $peer"
# One at a time: others wait, and find it done.
flock "${PEERVM_DIR:-/tmp/peer-vm}.lock" "$peer/prepare.sh" \
	> prepare.log 2>&1 ||
	fail "prepare.sh returned $?: $(tail -20 prepare.log)"

# The one thing that interop.sh did not like is that the emulated processor stood
# still for a while, since this machine is very busy.
stood_still() {
	local bad='gfs2.*(fatal|error|withdraw)|BUG:'
	[ "$(grep -h -E "$bad" interop-out/node*/dmesg |
		grep -c -v 'watchdog: BUG: soft lockup')" = 0 ] &&
		grep -q 'watchdog: BUG: soft lockup' interop-out/node*/dmesg &&
		grep -q -x 'interop: fsck.gfs2 -n after: rc=0' interop.log &&
		grep -q -x -E 'interop: (fsck.gfs2 -n before: rc=0|journal dirty.*)' \
			interop.log &&
		! grep -q -E 'FAILED|DIFFERS|differ in|gave up|time limit|TIME .* rc=[1-9]' \
			interop.log interop-out/node*/out
}

# peer_interop [options of interop.sh] IMAGE: results in interop-out. On a machine
# that is very busy the kernel may not find its timer, and boots again: it has
# touched nothing.
peer_interop() {
	local status=0 try
	for try in 1 2 3 4 5 6; do
		status=0
		"$peer/interop.sh" -o "$work/interop-out" \
			-t "$(patiently 1500)" "$@" > interop.log 2>&1 ||
			status=$?
		[ $status != 0 ] || return 0
		if stood_still; then
			echo "the machine stood still for a while"
			return 0
		fi
		grep -q "IO-APIC + timer doesn't work" \
			interop-out/node*/console || break
		echo "try $try: no timer"
	done
	fail "interop.sh $* returned $status: $(tail -n 40 interop.log)" \
		"$(tail -n 20 interop-out/node*/console)"
}

# What is below mnt, on our side: ours.sha256, ours.meta ..
our_sums() {
	"$peer/guest/sums.sh" mnt "$work/ours" 2> /dev/null
}

# peer_agrees WHAT: what is below mnt is what the kernel has seen at last, but for
# what a crash leaves to chance.
peer_agrees() {
	local x theirs=interop-out/node1/after
	our_sums
	for x in sha256 big meta sizes times xattr; do
		grep -v '[./]unsynced-' "ours.$x" > left || true
		grep -v '[./]unsynced-' "$theirs.$x" > right || true
		diff left right > differences ||
			fail "$1: $x: $(wc -l < differences) lines:" \
				"$(head -6 differences)"
	done
}

# Something of a journal, in their own words: kernel_replayed JID
kernel_replayed() {
	grep -q "jid=$1: Replayed [1-9]" interop-out/node1/dmesg ||
		fail "there was nothing for the kernel to replay"
}
we_replayed() {
	tail -n 2 mnt.log | grep -q "replayed: [1-9]" ||
		fail "there was nothing for us to replay"
}
