#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The mount process of one of two nodes is killed while both write: the other
# goes on, what was synced is there, fsck is clean, the killed node comes back.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mount.sh"

# Names of synced files go to the file "synced"; ends when the mount has gone.
write_synced() {
	local i
	for i in $(seq 5000); do
		{ echo "$i" > "$1/f$i" && sync "$1/f$i"; } 2>/dev/null || return 0
		echo "$i" >> synced
	done
}

write_on() {
	local i
	for i in $(seq "$2"); do
		echo "$i" > "$1/f$i"
	done
}

some_synced() {
	[ "$(wc -l < synced)" -ge 20 ]
}

"$lab" up 2
volume=$("$lab" volume)
m1=$("$lab" mount 1)
m2=$("$lab" mount 2)
mkdir "$m1/n1" "$m2/n2"
: > synced
write_synced "$m2/n2" &
writer=$!
write_on "$m1/n1" 300 &
survivor=$!
wait_for 60 "synced files" some_synced
"$lab" kill 2
wait "$writer"
wait "$survivor"
ends_within 20 ls "$m1/n2"
while read -r i; do
	same "file $i" "$(cat "$m1/n2/f$i")" "$i"
done < synced
same "files of the survivor" "$(find "$m1/n1" -type f | wc -l)" 300

ends_within 20 "$lab" umount 2
ends_within 60 "$lab" mount 2
same "files on the killed node" "$(find "$m2/n1" -type f | wc -l)" 300
echo again > "$m2/n2/again"
same "a new file" "$(cat "$m1/n2/again")" again
ends_within 60 "$lab" umount 1
ends_within 60 "$lab" umount 2
clean "$volume"
"$lab" down
