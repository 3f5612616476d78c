#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Metadata found wrong, or a write that fails: the mount stops writing, answers
# EIO, says which block and why, can be unmounted, and nothing was made worse.
. "$(dirname "$0")/../lib/lib.sh"

make_volume vol.img 100M
mount_volume vol.img mnt
mkdir mnt/good mnt/bad
echo inside > mnt/bad/f
addr=$(stat -c %i mnt/bad)
umount_clean mnt vol.img

# A dinode whose magic number is gone
dd if=vol.img of=saved bs=4096 skip="$addr" count=1 status=none
dd if=/dev/zero of=vol.img bs=4096 seek="$addr" count=1 conv=notrunc status=none
mount_volume vol.img mnt commit=3600
touch mnt/good/committed
sync mnt/good/committed
errno EIO "$HELPERS/mt_sys" open mnt/bad/f r
errno EIO "$HELPERS/mt_sys" mkdir mnt/good/x
errno EIO "$HELPERS/mt_sys" open mnt/good/committed r
grep -q "block $addr" mnt.log || fail "the log does not name the block"
grep -q "withdrawn" mnt.log || fail "the log does not say so"
before=$(sha256sum < vol.img)
"$UGFS" umount mnt 2> note || fail "umount returned $?"
grep -q "recovers the journal" note || fail "umount said: $(cat note)"
same "the image after the withdraw" "$(sha256sum < vol.img)" "$before"
rm mnt.log

# Repaired, the next mount recovers
dd if=saved of=vol.img bs=4096 seek="$addr" conv=notrunc status=none
mount_volume vol.img mnt
check "what was committed" test -e mnt/good/committed
same "the repaired directory" "$(cat mnt/bad/f)" inside
umount_clean mnt vol.img

# The device has no more room: writes fail in the middle of work
mkdir small
truncate -s 60M small.img
mkfs.ext4 -q small.img
mount -o loop small.img small || skip "no loop devices"
make_volume small/vol.img 300M
mount_volume small/vol.img mnt
echo first > mnt/first
sync mnt/first
i=0
while "$HELPERS/mt_pattern" write mnt/f$i 0 4M 1 fsync 2> note; do
	i=$((i + 1))
	[ $i -lt 40 ] || fail "a device without room took everything"
done
# Data that could not be written is the problem of its file ...
grep -q -E "Input/output error|No space left" note || fail "fsync said: $(cat note)"
same "another file" "$(cat mnt/first)" first
# ... but metadata is everybody's
mkdir mnt/d
for i in $(seq 5000); do
	: > mnt/d/$i || break
done 2> /dev/null
wait_for 20 "the withdraw" grep -q withdrawn mnt.log
errno EIO "$HELPERS/mt_sys" mkdir mnt/x
"$UGFS" umount mnt 2> note || fail "umount returned $?"
rm mnt.log
clean_logs
