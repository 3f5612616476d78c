#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# One node mounts the shared volume, fills it, unmounts it and mounts it again:
# all is there, flock is refused, fsck finds nothing.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mount.sh"

"$lab" up 1
volume=$("$lab" volume)
m=$("$lab" mount 1)
mkdir "$m/dir"
for i in $(seq 200); do
	echo "$i" > "$m/dir/f$i"
done
head -c 20000000 /dev/urandom > "$m/big"
sum=$(sha256sum < "$m/big")
if flock -n "$m/big" true 2> refused; then
	fail "flock was granted"
fi
grep -q "No locks available" refused || fail "flock: $(cat refused)"
ends_within 60 "$lab" umount 1
clean "$volume"

ends_within 60 "$lab" mount 1 -o localflocks
same "number of files" "$(find "$m/dir" -type f | wc -l)" 200
same "big" "$(sha256sum < "$m/big")" "$sum"
flock -n "$m/big" true
rm -rf "$m/dir"
ends_within 60 "$lab" umount 1
clean "$volume"
"$lab" down
