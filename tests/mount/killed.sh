#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The process is killed with files open, mapped and being written: everybody
# gets an error and nobody hangs; the dead mount can be taken away, and the
# volume mounted again.
. "$(dirname "$0")/../lib/lib.sh"

make_volume vol.img 300M
mount_volume vol.img mnt
echo before > mnt/before
"$HELPERS/mt_sys" fsync mnt/before
exec 5< mnt/before
( while echo x >> mnt/busy; do :; done ) 2> /dev/null &
writer=$!
wait_for 10 "a write" test -s mnt/busy
"$HELPERS/mt_together" mnt/all 1000000 2> /dev/null &
user=$!
wait_for 10 "a file in every use" eval '[ -s mnt/all ] || [ -s mnt/all-renamed ]'
"$HELPERS/mt_sys" fsync mnt/busy
kill -KILL "$(mount_pid mnt)"
wait "$writer" || true
! wait "$user" || fail "a file of a dead mount could be used to the end"
errno ENOTCONN "$HELPERS/mt_sys" open mnt/before r
! cat <&5 2> /dev/null || fail "an open file can still be read"
exec 5<&-
mountpoint -q mnt 2> /dev/null || grep -q " $work/mnt " /proc/mounts ||
	fail "the dead mount is not there"
refused 32 "unmount it first" "$UGFS" mount vol.img mnt
"$UGFS" umount mnt 2> note || fail "umount of a dead mount returned $?"
grep -q "had died" note || fail "umount said: $(cat note)"

mount_volume vol.img mnt
same "what was synced" "$(cat mnt/before)" before
check "the file that was being written" cat mnt/busy > /dev/null
umount_clean mnt vol.img

# The same through umount -f, with a request in progress
mount_volume vol.img mnt
"$HELPERS/mt_pattern" write mnt/big 0 200M 1 2> /dev/null &
wait_for 10 "a write" test -s mnt/big
"$UGFS" umount -f mnt || "$UGFS" umount -f -l mnt ||
	fail "umount -f returned $?"
wait
wait_for 30 "the end of the process" test -z "$(pgrep -x ugfs || true)"
clean_fsck vol.img
