#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# One node freezes the volume for all: nobody writes, everybody reads, a copy is
# clean as it is. When the node that froze it dies, the others thaw.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mount.sh"

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

frozen_copy() {
	cp "$volume" copy.img
	clean copy.img
	rm copy.img
}

# writer DIR NAME: until it is told to stop
writer() {
	local i=0
	while [ ! -e stop ]; do
		i=$((i + 1))
		echo $i > "$1/$2" && mkdir "$1/$2.d" && mv "$1/$2" "$1/$2.d/f" &&
			rm -r "$1/$2.d" && echo $i > "$1/$2.last" || exit 1
	done
}

last() {
	cat "$m1/a.last" "$m2/b.last" "$m3/c.last"
}

goes_on() {
	[ "$(last)" != "$was" ]
}

"$lab" up 3
volume=$("$lab" volume)
m1=$("$lab" mount 1)
m2=$("$lab" mount 2)
m3=$("$lab" mount 3)
echo shared > "$m1/shared"
writer "$m1" a &
writers=$!
writer "$m2" b &
writers="$writers $!"
writer "$m3" c &
writers="$writers $!"
for w in a b c; do
	wait_for 60 "the writers" test -e "$m1/$w.last"
done

for node in 1 2; do
	ends_within 120 "$lab" exec $node "$UGFS" freeze lab:volume
	tells $node "frozen for .* by this node" || fail "$(cat status.out)"
	tells 3 "frozen for .* by node$node" || fail "$(cat status.out)"
	status=0
	on 3 freeze lab:volume > refused 2>&1 || status=$?
	same "status of a second freeze" "$status" 32
	grep -q "another node" refused || fail "it said $(cat refused)"
	status=0
	on 3 unfreeze lab:volume > refused 2>&1 || status=$?
	same "status of a thaw by another node" "$status" 32
	was=$(sha256sum < "$volume")
	frozen_copy
	for m in "$m1" "$m2" "$m3"; do
		same "what is read in $m" "$(timeout 20 cat "$m/shared")" shared
	done
	same "the frozen image" "$(sha256sum < "$volume")" "$was"
	was=$(last)
	ends_within 60 "$lab" exec $node "$UGFS" unfreeze lab:volume
	wait_for 60 "the writers to go on" goes_on
	wait_for 20 "node 3 to know" tells 3 "mounted"
done
touch stop
for w in $writers; do
	wait "$w" || fail "a writer has failed"
done

# A node that comes while it is frozen waits for the thaw
ends_within 60 "$lab" umount 3
ends_within 120 "$lab" exec 1 "$UGFS" freeze lab:volume
"$lab" mount 3 > mounted 2> mount.err &
mount=$!
wait_for 60 "node 3 to wait" tells 3 "to be thawed"
frozen_copy

# The node that froze it dies: the others thaw, and the newcomer is let in
echo after > "$m2/after" &
write=$!
wait_for 20 "the write to wait" tells 2 "not yet begun"
"$lab" kill 1
wait_for 60 "the write on node 2" test -e "$m2/after"
wait $write
wait $mount || fail "the mount on node 3 has failed: $(cat mount.err)"
same "what was written, on node 3" "$(cat "$m3/after")" after
! tells 2 frozen || fail "$(cat status.out)"

# Clean up
"$lab" umount 1 > /dev/null 2>&1 || true
ends_within 60 "$lab" umount 2
ends_within 60 "$lab" umount 3
clean "$volume"
"$lab" down
