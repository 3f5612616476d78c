#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Read-only mounts and spectators beside a node that writes; too few journals;
# who recovers whose journal; a volume of another cluster; unmounting in any
# order; two mounts of one volume on one host.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mount.sh"

# refused WORDS COMMAND...: fails, and says so.
refused() {
	local words=$1 status=0
	shift
	timeout 60 "$@" > refusal 2>&1 || status=$?
	[ "$status" != 0 ] || fail "not refused: $*"
	[ "$status" != 124 ] || fail "no answer: $*"
	grep -q "$words" refusal || fail "$*: $(cat refusal)"
}

is_off() {
	[ "$("$lab" status | grep "^node$1 ")" = "node$1 off" ]
}

# still_waits PID FILE
still_waits() {
	sleep 2
	kill -0 "$1" 2>/dev/null || fail "ended: $(cat "$2")"
}

"$lab" up 3
volume=$("$lab" volume --journals 2)

# More nodes than journals.
mount_all 1 2
refused "the volume has 2 journals, and this node would be number 3" \
	"$lab" mount 3
# A spectator takes none. It sees what others write, and writes nothing.
mount_options=spectator mount_all 3
echo one > "$m1/file"
same "what the spectator sees" "$(cat "$m3/file")" one
echo two > "$m2/file2"
same "what the spectator sees" "$(cat "$m3/file2")" two
refused "Read-only file system" bash -c "echo three > '$m3/file'"

# Both that could recover a journal die, and none has the time to recover that of
# the other: the spectator waits. Nobody can join meanwhile, since their journals
# are not free. Without it they can.
echo synced > "$m2/synced"
sync "$m2/synced"
"$lab" freeze 2
"$lab" kill 1
"$lab" kill 2
cat "$m3/synced" > seen 2>&1 &
reader=$!
still_waits "$reader" seen
ends_within 30 "$lab" umount 1
ends_within 30 "$lab" umount 2
refused "this node would be number 4" "$lab" mount 1
"$lab" crash 3
wait "$reader" || true
"$lab" start 3
wait_for 60 "node 3" sees 3 3

# A read-only node sees what others write, and recovers their journals.
# The third host tells nothing about its past, so it is fenced.
for i in 1 2; do
	mount_options=startup_delay=1 mount_all $i &
done
wait
wait_for 30 "node 3 to be off" is_off 3
"$lab" start 3
wait_for 60 "node 3" sees 3 3
umount_all 2
mount_options=ro mount_all 2
echo again > "$m1/file3"
sync "$m1/file3"
same "what the read-only node sees" "$(cat "$m2/file3")" again
refused "Read-only file system" bash -c "echo three > '$m2/file'"
"$lab" kill 1
ends_within 30 cat "$m2/file2"
same "after the recovery" "$(cat "$m2/file3")" again
ends_within 30 "$lab" umount 1
umount_all 2
# What node 1 had changed in the totals is in a file of its journal's, until
# somebody who writes has that journal.
mount_all 1
umount_all 1
clean "$volume"

# All are gone, one journal is dirty: a spectator cannot mount, others can,
# read-only ones too, when the third host has been fenced.
mount_all 1
echo left > "$m1/file3"
sync "$m1/file3"
"$lab" kill 1
ends_within 30 "$lab" umount 1
refused "a spectator does not replay it" "$lab" mount 2 -o spectator
for i in 1 2; do
	mount_options=ro,startup_delay=1 mount_all $i &
done
wait
same "after the recovery" "$(cat "$m1/file3")$(cat "$m2/file3")" leftleft
umount_all 2 1
clean "$volume"

# Twice on one host: two members, each with a journal.
mount_all 1
mkdir "$("$lab" path 1)/second"
second=$("$lab" path 1)/second
ends_within 60 "$lab" exec 1 "$UGFS" mount "$volume" "$second"
echo first > "$m1/a"
echo second > "$second/b"
same "of the other mount" "$(cat "$second/a")$(cat "$m1/b")" firstsecond
ends_within 60 "$lab" exec 1 "$UGFS" umount "$second"
echo third > "$m1/c"
umount_all 1
clean "$volume"

# The superblock names another cluster, or nonsense.
"$UGFS" mkfs -q -O -p lock_dlm -t other:volume -j 1 -J 32 "$volume"
refused 'of the cluster "other", but corosync.s cluster_name is "lab"' \
	"$lab" mount 1
refused "CLUSTER:NAME" "$lab" mount 1 -o locktable=nonsense
mount_options=locktable=lab:volume mount_all 1
umount_all 1
"$lab" down
