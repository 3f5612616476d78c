#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# One node freezes the volume for all: nobody writes, everybody reads, a copy is
# clean as it is. When the node that froze it dies, the others thaw; when it dies
# before all have come to rest, or its command is killed, nobody is frozen.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mount.sh"

frozen_copy() {
	cp "$volume" copy.img
	clean copy.img
	rm copy.img
}

# writer DIR NAME: until it is told to stop; how far it is stands in NAME.last. Not
# in the directory of what is read: that is locked in the kernel while the change
# of a name in it waits.
writer() {
	local i=0
	while [ ! -e stop ]; do
		i=$((i + 1))
		echo $i > "$1/$2" && mkdir "$1/$2.d" && mv "$1/$2" "$1/$2.d/f" &&
			rm -r "$1/$2.d" && echo $i > "$2.last" || exit 1
	done
}

last() {
	cat a.last b.last c.last
}

goes_on() {
	[ "$(last)" != "$was" ]
}

"$lab" up 3
volume=$("$lab" volume --size 300M)
m1=$("$lab" mount 1)
m2=$("$lab" mount 2)
m3=$("$lab" mount 3)
echo shared > "$m1/shared"
mkdir "$m1/names"
writer "$m1/names" a &
writers=$!
writer "$m2/names" b &
writers="$writers $!"
writer "$m3/names" c &
writers="$writers $!"
for w in a b c; do
	wait_for 60 "the writers" test -s "$w.last"
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

# begin_freeze: on node 1, which waits for node 2.
begin_freeze() {
	stopped=$(mount_pid 2)
	kill -STOP "$stopped"
	"$lab" exec 1 sh -c 'echo $$ > freeze.pid; exec "$0" freeze lab:volume' \
		"$UGFS" > freeze.out 2>&1 &
	freeze=$!
	wait_for 20 "node 1 to wait for node 2" tells 1 "for a freeze by this node"
}

# all_write NODE..: and nobody thinks that it is frozen.
all_write() {
	local i dir
	for i in "$@"; do
		dir=m$i
		ends_within 60 touch "${!dir}/round$round.$i"
		wait_for 20 "node $i to have thawed" tells "$i" "nothing is waited for"
		! grep -i freeze status.out || fail "node $i: $(cat status.out)"
	done
}

# The command that waits for a node is killed: nobody is frozen
round=1
begin_freeze
"$lab" exec 1 kill -KILL "$(cat freeze.pid)"
! wait $freeze || fail "a freeze that was killed has succeeded"
kill -CONT "$stopped"
all_write 1 2 3

# The node that has begun to freeze dies: the same
round=2
begin_freeze
"$lab" kill 1
kill -CONT "$stopped"
! wait $freeze || fail "a freeze by a node that died has succeeded"
all_write 2 3
"$lab" umount 1 > /dev/null 2>&1 || true
m1=$("$lab" mount 1)
round=3
all_write 1 2 3

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
