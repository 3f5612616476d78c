#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The mount of each node can be asked, tuned and withdrawn: members, glocks and
# who waits for them, demote_secs; without quorum it still answers.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mount.sh"

# state_of I TYPE/NUMBER: of a glock on node I; nothing: it has none
state_of() {
	on "$1" lockdump lab:volume |
		sed -n "s,^G:  s:\(..\) n:$2 .*,\1,p"
}

is_unlocked() {
	case $(state_of "$1" "$2") in
	UN | '') ;;
	*) return 1 ;;
	esac
}

"$lab" up 3
volume=$("$lab" volume)
m1=$("$lab" mount 1)
m2=$("$lab" mount 2)
tells 1 "lock_dlm \"lab:volume\", journal 0 of 3" || fail "$(cat status.out)"
tells 2 "lock_dlm \"lab:volume\", journal 1 of 3" || fail "$(cat status.out)"
wait_for 10 "both members" tells 1 "members 2:"
tells 1 "this node" || fail "$(cat status.out)"

# A glock in use; then an idle one
echo one > "$m1/f"
glock=2/$(printf %x "$(stat -c %i "$m1/f")")
same "the glock of a file just written" "$(state_of 1 "$glock")" EX
on 1 settune lab:volume demote_secs 1
wait_for 20 "an idle glock to be given up" is_unlocked 1 "$glock"
same "what is in the file" "$(cat "$m1/f")" one
[ "$(on 1 lockdump --stats lab:volume | awk '$1 == "inode" { print $(NF - 1) }')" -gt 0 ] ||
	fail "no idle glock was counted"
on 1 settune lab:volume hold_max_ms 0
same "hold_max_ms" "$(on 1 gettune lab:volume hold_max_ms)" "hold_max_ms = 0"
on 2 lockdump lab:volume | grep -q '^ D: m:' || fail "no DLM lock in the dump"

# Withdrawn by hand: the others recover its journal and go on
on 2 withdraw lab:volume
tells 2 "withdrawn" || fail "$(cat status.out)"
echo two > "$m1/f"
wait_for 30 "recovery" tells 1 "nothing is waited for"
ends_within 60 "$lab" umount 2

# Without quorum
"$lab" crash 2
"$lab" crash 3
wait_for 60 "status to tell that there is no quorum" tells 1 "all work waits"
(echo three > "$m1/g" && sync "$m1/g") &
wait_for 20 "status to name who waits" tells 1 "request .* of process"
"$lab" start 2
wait $!
wait_for 60 "the end of waiting" tells 1 "nothing is waited for"
ends_within 60 "$lab" umount 1
clean "$volume"
"$lab" down
