#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Locks of programs on three nodes, at length: hundreds of killed waiters, more
# waiters than workers, thousands of flock(1), what a dead node held, qemu-img,
# localflocks, freeze.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mount.sh"
: "${APPLOCK:?}"

# hold NODE FILE KIND: until release NODE; from inside of the node.
hold() {
	rm -f "in$1" "held$1"
	mkfifo "in$1"
	"$lab" exec "$1" "$APPLOCK" hold "$UGFS_LAB/nodes/$1/mnt/$2" "$3" w 0 1 \
		< "in$1" > "held$1" 2>&1 &
	holder[$1]=$!
	exec {keep}> "in$1"
	key[$1]=$keep # others may inherit it: its end would say nothing
	wait_for 20 "a lock of node $1" grep -q held "held$1"
}

release() {
	echo >&"${key[$1]}"
	wait "${holder[$1]}" || true
}

free() {
	"$APPLOCK" try "$1" "$2" w 0 1 > /dev/null
}
held() {
	! free "$1" "$2"
}

"$lab" up 3 --token 20000 --transport udpu
volume=$("$lab" volume)
mount_options=threads=2
mount_all 1 2 3
: > "$m1/file"

ends_within 120 "$APPLOCK" ghosts "$m1/file" "$m2/file" 300
ends_within 120 "$APPLOCK" ghosts "$m3/file" "$m1/file" 300

# 300 wait for one byte, with two workers: the mount can be used.
hold 1 file posix
"$APPLOCK" waiters "$m1/file" 300 > waiters &
started=$!
wait_for 60 "300 waiters" grep -q started waiters
connection=/sys/fs/fuse/connections/$(mountpoint -d "$m1" | cut -d: -f2)
[ -e "$connection/waiting" ] || mount -t fusectl fusectl /sys/fs/fuse/connections
waiting() {
	[ "$(cat "$connection/waiting")" -ge 300 ]
}
wait_for 60 "300 unanswered requests" waiting
ends_within 5 ls "$m1"
ends_within 5 sh -c "echo x > '$m1/x' && sync '$m1/x' && rm '$m1/x'"
ends_within 30 "$APPLOCK" exclusion "$m1/x" "$m2/x"
release 1
wait "$started" || fail "waiters: $(cat waiters)"
same "waiters" "$(tail -n 1 waiters)" "ended, 0 failed"

# A freeze of the volume stops no lock.
"$lab" exec 1 "$UGFS" freeze lab:volume
hold 2 file posix
held "$m1/file" posix || fail "no lock while the volume is frozen"
release 2
wait_for 20 "the end of a lock while frozen" free "$m1/file" posix
"$lab" exec 1 "$UGFS" unfreeze lab:volume

# Each flock(1) opens, locks, closes.
begun=$SECONDS
for _ in $(seq "${FLOCKS:-5000}"); do
	flock "$m2/flocked" true
done
echo "${FLOCKS:-5000} flock(1): $((SECONDS - begun)) s"

# Whoever opens an image with it has an OFD lock until the end.
if command -v qemu-img > /dev/null; then
	qemu-img create -q -f qcow2 "$m1/base" 8M
	qemu-img create -q -f qcow2 -b base -F qcow2 "$m1/top"
	for dir in "$m1" "$m1" "$m2"; do
		ends_within 60 qemu-img commit -q "$dir/top"
	done
fi

# What a dead node held is held until its journal has been recovered.
holders=
for kind in posix ofd flock; do
	mkfifo "in.$kind"
	"$lab" exec 3 "$APPLOCK" hold "$UGFS_LAB/nodes/3/mnt/$kind" $kind w 0 1 \
		< "in.$kind" > "held.$kind" 2>&1 &
	holders+=" $!"
	exec {keep}> "in.$kind"
	wait_for 20 "a lock of node 3" grep -q held "held.$kind"
	held "$m1/$kind" $kind || fail "$kind: not held"
done
echo dirty > "$m3/dirty"
begun=$(date +%s%N)
"$lab" kill 3
for kind in posix ofd flock; do
	wait_for 60 "the $kind lock of a dead node" free "$m1/$kind" $kind
	grep -q "replayed:" "$UGFS_LAB"/log/mount[12] ||
		fail "a $kind lock was free before the journal was recovered"
done
echo "free $((($(date +%s%N) - begun) / 1000000)) ms after a death"
for kind in posix ofd flock; do
	echo > "in.$kind"
done
# shellcheck disable=SC2086
wait $holders || true
ends_within 60 "$lab" umount 3

# Of its own host only, if the administrator wants it so.
mount_options=localflocks
mount_all 3
hold 1 file posix
held "$m2/file" posix || fail "no lock"
free "$m3/file" posix || fail "localflocks asks others"
free "$m3/file" flock || fail "localflocks asks others"
release 1

umount_all 1 2 3
clean "$volume"
clean_logs
"$lab" down
