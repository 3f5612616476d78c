#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A frozen volume needs no replay: a copy of it is clean as it is. Readers go on,
# writers wait for the thaw and can be killed meanwhile.
. "$(dirname "$0")/../lib/lib.sh"

# frozen_copy WHAT: of the image, and it is clean.
frozen_copy() {
	cp vol.img copy.img
	clean_fsck copy.img
	rm copy.img
}

is_frozen() {
	"$UGFS" status "${1:-mnt}" | grep -q 'frozen for .* by this node'
}

# waits PID: it has not ended, and the mount says so.
waits_for_thaw() {
	kill -0 "$1" 2> /dev/null || fail "process $1 has not waited"
	"$UGFS" status mnt | grep -q "process $1 on inode .* not yet begun"
}

make_volume vol.img 200M -t alpha:one
mount_volume vol.img mnt
mkdir mnt/old mnt/full
for i in $(seq 200); do
	echo "$i" > "mnt/old/$i"
	echo "$i" > "mnt/full/$i"
done
rm mnt/full/[1-9]*
refused 32 "not frozen" "$UGFS" unfreeze mnt
# The kernel does not ask FUSE file systems, and must not seem to have frozen one.
refused 1 "not supported" fsfreeze --freeze mnt

# With programs at work
writer() {
	local i=0
	while [ ! -e stop ]; do
		i=$((i + 1))
		mkdir "mnt/$1.$i" && echo "$1.$i" > "mnt/$1.$i/f" &&
			mv "mnt/$1.$i/f" "mnt/$1.$i/g" && rm -r "mnt/$1.$i" &&
			echo "$1.$i" > "mnt/$1.last" || exit 1
	done
}
for w in a b c; do
	writer $w &
	writers="${writers:-} $!"
done
at_work() {
	[ -e mnt/a.last ] && [ -e mnt/b.last ] && [ -e mnt/c.last ]
}
wait_for 60 "all writers at work" at_work
for i in 1 2 3; do
	check "freeze" timeout "$(patiently 60)" "$UGFS" freeze mnt
	is_frozen || fail "status says $("$UGFS" status mnt)"
	refused 32 "frozen already" "$UGFS" freeze mnt
	before=$(sha256sum < vol.img)
	frozen_copy
	same "what is read" "$(cat mnt/old/7)" 7
	same "names" "$(ls mnt/old | wc -l)" 200
	# Longer than the interval of commits
	[ $i != 1 ] || sleep 6
	same "the frozen image" "$(sha256sum < vol.img)" "$before"
	check "unfreeze" "$UGFS" unfreeze mnt
	! is_frozen || fail "frozen after the thaw"
	last=$(cat mnt/a.last mnt/b.last mnt/c.last)
	goes_on() {
		[ "$(cat mnt/a.last mnt/b.last mnt/c.last)" != "$last" ]
	}
	wait_for 20 "the writers to go on" goes_on
done
touch stop
for w in $writers; do
	wait "$w" || fail "a writer has failed"
done

# One writer of each kind waits; another is killed
"$UGFS" freeze mnt
echo more >> mnt/old/1 &
append=$!
rm mnt/old/2 &
remove=$!
chmod 600 mnt/old/3 &
mode_of=$!
"$HELPERS/mt_sys" mkdir mnt/never &
doomed=$!
for pid in $append $remove $mode_of $doomed; do
	wait_for 20 "process $pid to wait" waits_for_thaw $pid
done
kill -KILL $doomed
gone() {
	! kill -0 "$1" 2> /dev/null
}
wait_for 10 "a killed writer to end" gone $doomed
same "the file removed" "$(cat mnt/old/2)" 2
check "fsync of what is on disk" timeout 20 sync mnt/old/5
frozen_copy
"$UGFS" unfreeze mnt
wait $append $remove $mode_of
same "what was appended" "$(tail -n 1 mnt/old/1)" more
[ ! -e mnt/old/2 ] || fail "it was not removed"
same "the mode" "$(stat -c %a mnt/old/3)" 600
[ ! -e mnt/never ] || fail "a killed writer has written"

# An unmount ends with the thaw, as the kernel's does
"$UGFS" freeze mnt
"$UGFS" umount mnt 2> umount.err &
umounted=$!
is_unmounting() {
	"$UGFS" status vol.img 2> /dev/null | grep -q unmounting
}
wait_for 20 "the unmount" is_unmounting
kill -0 $umounted || fail "unmounted while it is frozen"
frozen_copy
check "unfreeze by the device" "$UGFS" unfreeze vol.img
wait $umounted || fail "umount returned $?"
clean_fsck vol.img

# A crash while it is frozen leaves nothing to be replayed
mount_volume vol.img mnt
echo here > mnt/last
"$UGFS" freeze mnt
kill_volume mnt
clean_fsck vol.img
mount_volume vol.img mnt
same "what was there" "$(cat mnt/last)" here

# Withdrawn while it is frozen: who waits gets an error, not a hang
"$UGFS" freeze mnt
"$HELPERS/mt_sys" mkdir mnt/x > out 2>&1 &
failed=$!
wait_for 20 "it to wait" waits_for_thaw $failed
"$UGFS" withdraw mnt
! wait $failed || fail "mkdir in a withdrawn volume has succeeded"
grep -q EIO out || fail "mkdir printed $(cat out)"
timeout 60 "$UGFS" umount mnt 2> /dev/null || fail "umount returned $?"
rm mnt.log
clean_fsck vol.img

# A read-only mount can be frozen as well
mount_volume vol.img mnt ro
check "freeze" "$UGFS" freeze mnt
same "what is read" "$(cat mnt/last)" here
check "unfreeze" "$UGFS" unfreeze mnt
umount_clean mnt vol.img

# On a full disk too, with data in memory that has been promised its blocks
make_volume full.img 40M
mount_volume full.img mnt
dd if=/dev/zero of=mnt/a bs=1M 2> dd.err || true
grep -q "No space left" dd.err || fail "it is not full: $(cat dd.err)"
check "freeze" timeout "$(patiently 60)" "$UGFS" freeze mnt
cp full.img copy.img
clean_fsck copy.img
check "unfreeze" "$UGFS" unfreeze mnt
umount_clean mnt full.img
