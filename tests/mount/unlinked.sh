#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A removed file lives as long as somebody has it open, gives its space back
# then, and also when a crash came in between.
. "$(dirname "$0")/../lib/lib.sh"

free() { stat -f -c %f mnt; }
is_free() { [ "$(free)" = "$start" ]; }
hold() { # hold NAME BYTES: sets holder, its input is descriptor 6
	mkfifo "in-$1" "out-$1"
	"$HELPERS/mt_hold" "mnt/$1" "$2" < "in-$1" > "out-$1" &
	holder=$!
	exec 6> "in-$1"
	read -r word < "out-$1"
	same "the holder" "$word" ready
	rm "in-$1" "out-$1"
}

make_volume vol.img 300M
mount_volume vol.img mnt
start=$(free)
hold a 20971520
same "no name" "$(ls mnt)" ""
[ $((start - $(free))) -ge 5120 ] || fail "its blocks are free already"
exec 6>&-
wait "$holder" || fail "the holder found something wrong"
wait_for 20 "its blocks to be free" is_free
umount_clean mnt vol.img

# A crash while it is open: the next mount releases it
mount_volume vol.img mnt
hold b 20971520
kill_volume mnt
exec 6>&-
wait "$holder" || true
mount_volume vol.img mnt
wait_for 20 "its blocks to be free" is_free
umount_clean mnt vol.img

# Open at the time of a lazy umount
mount_volume vol.img mnt
pid=$(mount_pid mnt)
hold c 10485760
"$UGFS" umount -l mnt 2> note
exec 6>&-
wait "$holder" || fail "the holder found something wrong"
wait_for 20 "the process to end" process_gone "$pid"
clean_fsck vol.img
mount_volume vol.img mnt
same "free blocks" "$(free)" "$start"

# Replaced by rename while open
echo old > mnt/file
exec 5< mnt/file
echo new > mnt/other
mv mnt/other mnt/file
same "the old contents" "$(cat <&5)" old
same "the new contents" "$(cat mnt/file)" new
exec 5<&-
umount_clean mnt vol.img
