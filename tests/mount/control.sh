#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A mount can be asked what it is and what it waits for, also when it hangs, has
# withdrawn or is gone; its glocks are dumped; its tunables can be changed, and
# that works at once.
. "$(dirname "$0")/../lib/lib.sh"

# says TEXT COMMAND...: what it prints has the text.
says() {
	local text=$1 out
	shift
	out=$("$@" 2>&1) || fail "\"$*\" returned $?: $out"
	case $out in
	*"$text"*) ;;
	*) fail "\"$*\" printed \"$out\", not \"$text\"" ;;
	esac
}

refused 32 "not mounted" "$UGFS" status mnt
same "mounts of this host" "$("$UGFS" status --json)" "[]"

# Found by directory, image and lock table
make_volume vol.img 100M -t alpha:one
mount_volume vol.img mnt commit=1
for name in mnt mnt/ "$work/mnt" vol.img alpha:one; do
	says "mnt: mounted for" "$UGFS" status "$name"
done
says "lock_nolock \"alpha:one\", journal 0 of 1" "$UGFS" status mnt
says "nothing is waited for" "$UGFS" status
same "its process" "$("$UGFS" status --json mnt | awk -F'[:,]' '/"pid"/ { print $2 + 0 }')" \
	"$(mount_pid mnt)"
refused 32 "not a mount of ugfs" "$UGFS" status /
refused 1 "usage" "$UGFS" status mnt mnt
refused 1 "usage" "$UGFS" lockdump

# Glocks: every one once, in GFS2's format
mkdir mnt/d
for i in $(seq 3000); do
	: > "mnt/d/$i"
done
"$UGFS" lockdump mnt > dump
! grep -v -E '^G:  s:(UN|SH|DF|EX) n:[0-9]+/[0-9a-f]+ f:[a-zA-Z]* t:(UN|SH|DF|EX) d:(UN|SH|DF|EX)/[0-9]+ r:[0-9]+ m:[0-9]+$|^ H: s:(SH|DF|EX) f:[a-zA-Z]+ e:[-0-9]+( w:[0-9]+)?$' \
	dump || fail "lines of another form"
for i in 1 1500 3000; do
	hex=$(printf %x "$(stat -c %i "mnt/d/$i")")
	same "glocks of file $i" "$(grep -c " n:2/$hex " dump)" 1
done
same "glocks dumped twice" "$(awk '/^G:/ { print $3 }' dump | sort | uniq -d)" ""
says "inode" "$UGFS" lockdump --stats mnt
refused 1 "json" "$UGFS" lockdump --json mnt
refused 1 "usage" "$UGFS" plocks

# Tunables
same "demote_secs" "$("$UGFS" gettune mnt demote_secs)" "demote_secs = 300"
[ "$("$UGFS" gettune mnt | grep -c '^[a-z_]* = [0-9]*$')" -ge 5 ] ||
	fail "gettune printed $("$UGFS" gettune mnt)"
for bad in 0 -1 1x '' 99999999999999999999; do
	refused 1 "a number from 1 to 86400" "$UGFS" settune mnt demote_secs "$bad"
done
refused 1 "there are: demote_secs, log_flush_secs" "$UGFS" settune mnt quota_quantum 5
refused 1 "there are: demote_secs, log_flush_secs" "$UGFS" gettune mnt quota_quantum
same "demote_secs" "$("$UGFS" gettune mnt demote_secs)" "demote_secs = 300"

# An idle resource group is given up
no_idle_groups() {
	! "$UGFS" lockdump mnt | grep -q '^G:  s:EX n:3/'
}
sync mnt/d/1
! no_idle_groups || fail "no resource group is cached"
check "settune" "$UGFS" settune mnt demote_secs 1
same "demote_secs" "$("$UGFS" gettune mnt demote_secs)" "demote_secs = 1"
wait_for 20 "the idle groups to be given up" no_idle_groups

# What is written reaches the disk without being asked to
on_disk() {
	grep -q -a "$1" vol.img
}
check "settune" "$UGFS" settune mnt log_flush_secs 3600
echo before-the-change > mnt/f
sleep 3
! on_disk before-the-change || fail "log_flush_secs 3600 has no effect"
check "settune" "$UGFS" settune mnt log_flush_secs 1
wait_for 20 "the commit" on_disk before-the-change
umount_clean mnt vol.img
refused 32 "not mounted" "$UGFS" status mnt

# Withdrawn by hand: nothing more is written, and status says why
mount_volume vol.img mnt commit=1
echo lost > mnt/lost
check "withdraw" "$UGFS" withdraw mnt
errno EIO "$HELPERS/mt_sys" mkdir mnt/x
says "withdrawn" "$UGFS" status mnt
says "an administrator has said so" "$UGFS" status mnt
refused 32 "withdrawn before" "$UGFS" withdraw mnt
"$UGFS" umount mnt 2> /dev/null || fail "umount returned $?"
rm mnt.log

# A killed one
mount_volume vol.img mnt commit=1
kill -KILL "$(mount_pid mnt)"
has_died() {
	"$UGFS" status mnt 2>&1 | grep -q "has died"
}
wait_for 10 "its end" has_died
refused 32 "has died" "$UGFS" status mnt
umount -i -l mnt
rm mnt.log

# One that hangs, since its device does: answers, and names the request
mkdir small
truncate -s 200M small.img
mkfs.ext4 -q small.img
mount -o loop small.img small || skip "no loop devices"
make_volume small/vol.img 100M
mount_volume small/vol.img mnt commit=3600
echo one > mnt/f
sync mnt/f
# However this ends: nothing that waits for it could be killed.
trap 'fsfreeze --unfreeze small 2> /dev/null || true' EXIT
fsfreeze --freeze small
echo two > mnt/f
sync mnt/f &
waits() {
	timeout 10 "$UGFS" status mnt > status.out || fail "status returned $?"
	grep -q "request FSYNC of process" status.out
}
wait_for 20 "status to name the request that hangs" waits
fsfreeze --unfreeze small
wait $!
says "nothing is waited for" "$UGFS" status mnt
umount_clean mnt small/vol.img
