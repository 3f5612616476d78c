#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# umount: busy, lazy, forced, by signal; it returns when the image is free and
# everything is on it.
. "$(dirname "$0")/../lib/lib.sh"

make_volume vol.img 400M
mount_volume vol.img mnt
pid=$(mount_pid mnt)
head -c 100000000 /dev/urandom > data
cp data mnt/data
umount_volume mnt
wait_for 5 "the process to have gone" process_gone "$pid"
clean_fsck vol.img
same "files left in /run/ugfs" "$(ls /run/ugfs)" ""
mount_volume vol.img mnt
check "contents" cmp data mnt/data

# Busy
exec 5< mnt/data
refused 32 "in use" "$UGFS" umount mnt
mountpoint -q mnt || fail "a refused umount has unmounted"

# Lazy: gone from the tree, alive for who has it open
pid=$(mount_pid mnt)
"$UGFS" umount -l mnt 2> note
grep -q "still in use" note || fail "umount -l said: $(cat note)"
! mountpoint -q mnt || fail "still mounted after umount -l"
cmp - data <&5 || fail "an open file after umount -l"
exec 5<&-
wait_for 20 "the process to end" process_gone "$pid"
clean_fsck vol.img

# By a signal, with a user who does not go away: ends all the same
mount_volume vol.img mnt
pid=$(mount_pid mnt)
echo last > mnt/last
exec 5< mnt/data
kill -TERM "$pid"
wait_for 40 "the process to end" process_gone "$pid"
! mountpoint -q mnt || fail "still mounted after SIGTERM"
exec 5<&-
clean_fsck vol.img

# Two views of one mount: the process ends with the last
mount_volume vol.img mnt
same "the last write before SIGTERM" "$(cat mnt/last)" last
mkdir other
mount --bind mnt other
pid=$(mount_pid mnt)
umount_volume mnt
! process_gone "$pid" || fail "the process went with the first of two views"
same "the other view" "$(cat other/last)" last
umount_volume other
wait_for 5 "the process to go with the last view" process_gone "$pid"

# Covered by another mount: that one stays
mount_volume vol.img mnt
pid=$(mount_pid mnt)
mount -t tmpfs cover mnt
kill -TERM "$pid"
sleep 0.2
grep -q "^cover $work/mnt tmpfs" /proc/mounts || fail "took away the cover"
umount mnt
umount_volume mnt

refused 32 "is not mounted" "$UGFS" umount mnt
refused 32 "not a mount of ugfs" "$UGFS" umount /run
clean_fsck vol.img
clean_logs
