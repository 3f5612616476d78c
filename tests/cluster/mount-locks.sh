#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Locks of programs on two nodes: fcntl, OFD and flock exclude each other across
# nodes, closing ends them, signals end waits and nothing else, who is killed
# leaves no ghost, a deadlock across nodes is found.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mount.sh"
: "${APPLOCK:?}"

holds() { # holds VERB [ARGS]: of the file as node 1 and 2 see it, and turned
	ends_within 60 "$APPLOCK" "$1" "$m1/file" "$m2/file" "${@:2}"
	ends_within 60 "$APPLOCK" "$1" "$m2/file" "$m1/file" "${@:2}"
}

# The lock in the way, as a process of node 1 is told.
found() {
	"$lab" exec 1 "$APPLOCK" get "$m1/file" w 0 1
}

# As in mount-brief.
"$lab" up 2 --token 20000 --transport udpu
volume=$("$lab" volume)
mount_all 1 2
: > "$m1/file"
holds exclusion
holds closing
holds ofd
holds signals
holds ghosts "${GHOSTS:-40}"
holds deadlock

# Each node knows its own processes, and none of the other's.
for i in 1 2; do
	mkfifo "in$i"
	"$lab" exec "$i" "$APPLOCK" hold "$UGFS_LAB/nodes/$i/mnt/file" posix w \
		0 1 < "in$i" > "held$i" &
	exec {keep}> "in$i"
	wait_for 20 "the lock of node $i" grep -q held "held$i"
	case $(found) in
	"w 0 1 pid 0") [ "$i" = 2 ] || fail "no pid of a process of this node" ;;
	"w 0 1 pid "*) [ "$i" = 1 ] || fail "another node's pid: $(found)" ;;
	*) fail "F_GETLK: $(found)" ;;
	esac
	exec {keep}>&-
done
wait
same "F_GETLK" "$(found)" free

# Each node tells who holds and who waits; the calls of its own processes
inode=$(stat -c %i "$m1/file")
"$lab" exec 1 "$APPLOCK" hold "$m1/file" posix w 0 1 < in1 > held1 &
exec {keep1}> in1
wait_for 20 "a lock" grep -q held held1
"$lab" exec 2 "$APPLOCK" hold "$m2/file" posix w 0 1 < in2 > held2 \
	{keep1}>&- &
exec {keep2}> in2
is_told() { # is_told NODE PATTERN
	on "$1" plocks lab:volume > plocks.out && grep -q "$2" plocks.out
}
wait_for 20 "the holder" is_told 1 "posix write 0-0  node1 pid [1-9].*[0-9a-f]$"
wait_for 20 "who waits" is_told 2 "inode $inode set pid [1-9]"
is_told 1 "node2 pid .* waits$" || is_told 2 "node2 pid .* waits$" ||
	fail "nobody decides who waits: $(cat plocks.out)"
on 1 plocks --json lab:volume | grep -q '"answered_at_once"' || fail "no JSON"
exec {keep1}>&-
wait_for 20 "the next holder" grep -q held held2
exec {keep2}>&-
wait

for kind in posix ofd flock; do
	for dir in "$m1" "$m2" "$m1" "$m2"; do
		"$APPLOCK" hammer "$dir/count.$kind" $kind 25 &
	done
done
wait
for kind in posix ofd flock; do
	same "steps under $kind locks" "$(cat "$m1/count.$kind")" 100
done
umount_all 1 2
clean "$volume"
clean_logs
"$lab" down
