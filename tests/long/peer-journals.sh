#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# With the real kernel on a volume of two journals: what we leave dirty in the
# second one it replays from the first; what it leaves dirty in the second one,
# killed in the middle of its fsyncs, we do.
. "$(dirname "$0")/lib.sh"
. "$lib/peer.sh"

# Whole files and parts, new names and old ones gone, all durable; then what is not.
work_and_die() {
	local s
	mkdir mnt/ours mnt/ours/removed mnt/unsynced-ours
	for s in $(seq 300); do echo "$s" > mnt/ours/removed/$s; done
	"$HELPERS/mt_pattern" write mnt/ours/big 0 9M 1
	sync mnt/ours/big mnt/ours/removed/*
	rm mnt/ours/removed/?[1-9]*
	"$HELPERS/mt_pattern" write mnt/ours/big 5M 6M 2
	for s in $(seq 200); do head -c $((s * 60)) /dev/urandom > mnt/ours/$s; done
	mkdir mnt/ours/last
	echo last > mnt/ours/last/file
	# The last one's log flush makes all names durable.
	sync mnt/ours/big mnt/ours/[0-9]* mnt/ours/last/file
	our_sums
	for s in $(seq 300); do echo "$s" > mnt/unsynced-ours/$s; done
	kill_volume mnt
}

# The kernel has said so outside, file by file, until it died.
fsynced_is_there() {
	local last n
	last=$(tail -n 1 interop-out/node1/fsynced)
	echo "the kernel had fsynced $last files"
	for ((n = 1; n <= last; n++)); do
		seq "$n" | cmp - mnt/unsynced-writer/$n ||
			fail "file $n of $last, fsynced by the kernel"
	done
	same "what was appended" "$(head -n "$last" mnt/unsynced-writer/list)" \
		"$(seq "$last")"
}

make_volume vol.img 300M -j 2 -J 16
mount_volume vol.img mnt hostdata=jid=1
work_and_die
echo 'echo hello > "$1/from-kernel"' > greet
timed "the kernel replays our journal 1" \
	peer_interop -s "$work/greet" -l "$work/ours" vol.img
kernel_replayed 1
clean_fsck vol.img

timed "the kernel dies with journal 1" \
	peer_interop -x -w hostdata=jid=1 -s "$lib/../long/peer-journals.guest" \
	vol.img
: > mnt.log
mount_volume vol.img mnt hostdata=jid=0
grep -q "journal 1.*replayed: [1-9]" mnt.log || fail "nothing of journal 1"
peer_agrees "replayed by us"
fsynced_is_there
rm -r mnt/unsynced-writer
umount_clean mnt vol.img
