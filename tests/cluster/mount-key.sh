#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A cluster with a key: a node without it, or with another one, does not get in,
# is told why, and holds up nobody.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mount.sh"

head -c 32 /dev/urandom > key
head -c 32 /dev/urandom > other
chmod 600 key other

# refused NODE WORDS [-o OPTIONS]
refused() {
	local i=$1 words=$2 status=0
	shift 2
	timeout 90 "$lab" mount "$i" "$@" > refusal 2>&1 || status=$?
	[ "$status" != 0 ] || fail "node $i has mounted: $*"
	[ "$status" != 124 ] || fail "node $i waits: $*"
	grep -q "$words" refusal || fail "node $i: $(cat refusal)"
}

"$lab" up 3
volume=$("$lab" volume)
mount_options=keyfile=$work/key mount_all 1 2
writers 1 2
go_on 30 1 2
refused 3 "key"
refused 3 "key" -o "keyfile=$work/other"
go_on 30 1 2
stop_writers 1 2
intact "$m1"
mount_options=keyfile=$work/key mount_all 3
intact "$m3"
umount_all 1 2 3
clean "$volume"
"$lab" down
