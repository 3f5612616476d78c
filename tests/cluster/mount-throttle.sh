#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A mount process is killed with writes in flight on a device that takes them
# slowly: the others begin when the last of them has landed, and what they write
# in the same place then stays.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mount.sh"
cgroup=/sys/fs/cgroup/blkio/ugfs-test-$$

[ -e /sys/fs/cgroup/blkio/blkio.throttle.write_bps_device ] ||
	skip "no cgroup that throttles a block device"
truncate -s 1500M disk.img
loop=$(losetup -f --show disk.img) || skip "no loop devices"
trap 'end_device' EXIT

end_device() {
	"$lab" down || true
	umount -l "$work/disk" 2>/dev/null || true
	losetup -d "$loop" 2>/dev/null || true
	wait_for 30 "the end of the cgroup" leave_cgroup
}

leave_cgroup() {
	[ ! -d "$cgroup" ] || rmdir "$cgroup" 2>/dev/null
}

# throttle PID RATE: bytes in a second, of its direct writes to the device.
throttle() {
	local dev
	dev=$(lsblk -n -d -o MAJ:MIN "$loop" | tr -d ' ')
	mkdir -p "$cgroup"
	echo "$dev $2" > "$cgroup/blkio.throttle.write_bps_device"
	echo "$1" > "$cgroup/cgroup.procs"
}

taken_over() {
	grep -q "node 2 (node2) has died" "$UGFS_LAB/log/mount1"
}

# One of its threads waits for the device.
is_writing() {
	grep -q -s ') D ' /proc/"$1"/task/*/stat
}

mkfs.ext4 -q -F "$loop"
mkdir disk
mount "$loop" disk
export UGFS_LAB=$work/disk/lab
"$lab" up 2
volume=$("$lab" volume --size 1G)
mount_all 1 2
# Blocks that node 2 has, and writes again.
head -c 16M /dev/zero | tr '\0' a > "$m2/file"
sync "$m2/file"
pid=$(mount_pid 2)
throttle "$pid" 400000
(head -c 16M /dev/zero | tr '\0' b | dd of="$m2/file" bs=1M conv=notrunc \
	oflag=direct iflag=fullblock || true) > written 2>&1 &
writer=$!
# A megabyte takes longer than all that follows here.
wait_for 30 "a write in flight" is_writing "$pid"
sleep 0.1
wait_for 30 "a write in flight" is_writing "$pid"
kill -KILL "$pid"
is_writing "$pid" || fail "no write was in flight any more"
wait_for 60 "the end of node 2" taken_over
[ ! -e "/proc/$pid" ] || fail "process $pid lives, and is taken for dead"
ends_within 30 bash -c "head -c 16M /dev/zero | tr '\0' c |
	dd of='$m1/file' bs=1M conv=notrunc,fsync iflag=fullblock"
wait "$writer"
sleep 3
same "bytes of others" "$(tr -d c < "$m1/file" | wc -c)" 0
ends_within 30 "$lab" umount 2
umount_all 1
clean "$volume"
