#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A mount of two that meets damaged metadata withdraws: it answers EIO, the other
# recovers its journal and goes on, and the unmount returns.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mount.sh"

"$lab" up 2
volume=$("$lab" volume)
m1=$("$lab" mount 1)
m2=$("$lab" mount 2)
mkdir "$m1/dir" "$m2/own"
echo x > "$m1/dir/victim"
sync "$m1/dir/victim"
block=$(stat -c %i "$m1/dir/victim")
echo synced > "$m2/own/f"
sync "$m2/own/f"
# In its place and out of the log, or a write-back would repair it.
ends_within 60 "$lab" umount 1
m1=$("$lab" mount 1)
dd if=/dev/zero of="$volume" bs=4096 seek="$block" count=1 conv=notrunc \
	2>/dev/null

if cat "$m2/dir/victim" > /dev/null 2> error; then
	fail "a damaged inode was read"
fi
grep -q "Input/output error" error || fail "$(cat error)"
if ls "$m2" > /dev/null 2> error; then
	fail "a withdrawn mount answers"
fi
grep -q "Input/output error" error || fail "$(cat error)"
ends_within 20 bash -c "echo new > '$m1/own/g'"
same "the synced file" "$(cat "$m1/own/f")" synced
ends_within 60 "$lab" umount 2
ends_within 60 "$lab" mount 2
same "a new file" "$(cat "$m2/own/g")" new
ends_within 60 "$lab" umount 2
ends_within 60 "$lab" umount 1
"$lab" down
