#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Two nodes in a few seconds, for every make check: each reads what the other
# writes; the mount process of one is killed, the other goes on with what that had
# locked; the volume is clean.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mount.sh"

# A busy machine may be late with the ring's token, which is not what is tested.
# With knet, nodes would take half of that time to find each other.
"$lab" up 2 --token 20000 --transport udpu
volume=$("$lab" volume --size 256M)
mount_all 1 2

mkdir "$m1/dir"
echo one > "$m1/dir/log"
same "what node 2 reads" "$(cat "$m2/dir/log")" one
echo two >> "$m2/dir/log"
same "what node 1 reads" "$(tr '\n' ' ' < "$m1/dir/log")" "one two "
same "what node 1 is told" "$(stat -c %s "$m1/dir/log")" 8
# What the kernel of node 1 keeps of a file that it has asked about and read.
echo old > "$m2/dir/kept"
for i in 1 2; do
	same "what node 1 reads" "$(cat "$m1/dir/kept")" old
	same "what node 1 is told" "$(stat -c %s "$m1/dir/kept")" 4
done
echo newer > "$m2/dir/kept"
same "what node 1 is told" "$(stat -c %s "$m1/dir/kept")" 6
same "what node 1 reads" "$(cat "$m1/dir/kept")" newer
rm "$m1/dir/kept"
mv "$m1/dir/log" "$m1/dir/renamed"
same "names on node 2" "$(ls "$m2/dir")" renamed

# Node 2 has all of this locked for itself, and half of it not synced.
echo synced > "$m2/dir/synced"
sync "$m2/dir/synced"
echo lost > "$m2/dir/lost"
"$lab" kill 2
ends_within 120 sh -c 'echo three >> "$0/dir/renamed"' "$m1"
same "the log" "$(tr '\n' ' ' < "$m1/dir/renamed")" "one two three "
same "what was synced" "$(cat "$m1/dir/synced")" synced
rm -r "$m1/dir"
ends_within 120 "$lab" umount 2

# It comes again.
mount_all 2
same "names on node 2" "$(ls -A "$m2")" ""
echo again > "$m2/again"
same "what node 1 reads" "$(cat "$m1/again")" again
umount_all 1 2
clean "$volume"
"$lab" down
clean_logs
