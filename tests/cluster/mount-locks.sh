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
