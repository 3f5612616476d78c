#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The program's face: help for every verb, the foreground, the log, the exit
# status of wrong usage.
. "$(dirname "$0")/../lib/lib.sh"

for verb in mount umount mkfs; do
	"$UGFS" help | grep -q "^  $verb " || fail "help does not list $verb"
	"$UGFS" $verb --help > one
	"$UGFS" help $verb > two
	check "help of $verb" cmp one two
	grep -q "^[Uu]sage: .*$verb" one || fail "$verb --help: $(cat one)"
done
"$UGFS" --version | grep -qx 'ugfs [0-9.]*' || fail "version"
refused 1 'unknown verb "mout"' "$UGFS" mout
refused 1 "usage: ugfs VERB" "$UGFS"
refused 1 "usage: ugfs mount" "$UGFS" mount
refused 1 "usage: ugfs mount" "$UGFS" mount one two three
refused 1 "usage: ugfs umount" "$UGFS" umount
refused 1 "frobnicate: unknown mount option" \
	"$UGFS" mount -o frobnicate vol.img mnt
refused 1 "discard: " "$UGFS" mount -o discard vol.img mnt

make_volume vol.img 100M
"$UGFS" mount -f vol.img mnt > fg.out 2>&1 &
pid=$!
wait_for 20 "the foreground mount" grep -q "mounted on $work/mnt" fg.out
same "the mount process" "$(mount_pid mnt)" "$pid"
touch mnt/x
umount_volume mnt
status=0
wait "$pid" || status=$?
same "exit status of the foreground" "$status" 0
clean_fsck vol.img

# A signal is a clean end, too.
"$UGFS" mount -f vol.img mnt > sig.out 2>&1 &
pid=$!
wait_for 20 "the foreground mount" grep -q "mounted on" sig.out
touch mnt/y
kill -TERM "$pid"
wait "$pid" || fail "exit status $? after SIGTERM"
! mountpoint -q mnt || fail "still mounted"
clean_fsck vol.img
mount_volume vol.img mnt
check "what was written" test -e mnt/y
umount_clean mnt vol.img

# Without the right to stay out of the way of memory reclaim: the log says so.
setpriv --bounding-set=-sys_resource "$UGFS" mount -L rights.log vol.img mnt
grep -q "warn .*vol.img: the OOM killer may" rights.log &&
	grep -q "warn .*vol.img: PR_SET_IO_FLUSHER: Operation not permitted" \
		rights.log || fail "no word of what is not granted"
umount_clean mnt vol.img
