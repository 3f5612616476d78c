#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Mapped files: shared and private, beyond the end, over holes; programs run
# from the volume.
. "$(dirname "$0")/../lib/lib.sh"

make_volume vol.img 300M
mount_volume vol.img mnt
check "mapped" "$HELPERS/mt_mapped" mnt
cp /bin/ls /bin/sha256sum mnt/
check "a program" mnt/ls mnt > /dev/null
# A running program cannot be written
mnt/sha256sum < /dev/zero > /dev/null &
running=$!
wait_for 10 "the program" test mnt/sha256sum -ef "/proc/$running/exe"
errno ETXTBSY "$HELPERS/mt_sys" open mnt/sha256sum w
kill "$running"
wait "$running" || true

# Stores that nobody has synced are there after an unmount
fio --name=map --filename=mnt/fio --size=40M --ioengine=mmap --rw=randwrite \
	--bs=4k --verify=crc32c --do_verify=1 --verify_fatal=1 --randseed=7 \
	--minimal > fio.log 2>&1 || fail "fio: $(tail -5 fio.log)"
sha256sum mnt/* > sums
umount_clean mnt vol.img
mount_volume vol.img mnt
check "after a remount" sha256sum -c --quiet sums
umount_clean mnt vol.img
