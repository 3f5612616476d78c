#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What tests/mount/load.sh leaves out of the load that others' programs make:
# mapped and mixed I/O that verifies itself, and the other stressors of stress-ng.
#
#   stress.sh MODE [SECONDS of each]
. "$(dirname "$0")/lib.sh"
have fio
have stress-ng
seconds=${2:-10}

run() { # run NAME COMMAND...
	local name=$1
	shift
	timed "$name" timeout 1800 "$@" > "$name.out" 2>&1 ||
		fail "$name returned $?: $(tail -30 "$name.out")"
	tail -n 1 "$name.out"
	clean_logs
}
verified() { # verified NAME FIO-OPTIONS...
	local name=$1
	shift
	run "fio-$name" fio --name="$name" --directory=mnt --size=48m \
		--numjobs=2 --verify=crc32c --verify_fatal=1 --do_verify=1 \
		--randseed=5 --unlink=1 --minimal "$@"
}

for bsize in 4096 1024 512; do
	make_volume vol.img 800M -b $bsize
	mount_volume vol.img mnt
	verified mmap --ioengine=mmap --rw=randwrite --bs=4k
	verified mmap-seq --ioengine=mmap --rw=rw --bsrange=512-64k
	verified small-direct --ioengine=libaio --direct=1 --iodepth=16 \
		--rw=randwrite --bs=512 --size=6m
	verified overlap --ioengine=libaio --direct=1 --iodepth=16 \
		--serialize_overlap=1 --rw=randwrite --bsrange=512-16k --size=12m \
		--norandommap=1
	verified sync --ioengine=psync --rw=randwrite --sync=1 --bs=8k --size=4m
	verified vector --ioengine=pvsync2 --rw=randrw --bssplit=3k/50:17k/50 \
		--fallocate=none --fdatasync=64 --size=24m
	umount_clean mnt vol.img
done

# Not here: binderfs, bind-mount, dup, eventfd, ioprio and procfs are about other
# file systems; chattr, fallocate, fiemap, fpunch, inode-flags and verity need what
# is refused so far.
make_volume vol.img 1G
mount_volume vol.img mnt acl
for s in acl aio io-uring copy-file dnotify fanotify file-ioctl handle inotify \
	msync msyncmany splice unlink xattr; do
	stress-ng --help | grep -q -e "--$s N" || continue
	run "stress-ng-$s" stress-ng "--$s" 2 -t "$seconds" --temp-path mnt \
		--verify --copy-file-bytes 128m --msync-bytes 8m
done
run stress-ng-mmap stress-ng --mmap 2 --mmap-file --mmap-bytes 16m \
	-t "$seconds" --temp-path mnt --verify
run stress-ng-hdd stress-ng --hdd 2 --hdd-bytes 20m -t "$seconds" \
	--hdd-opts direct,fsync,utimes --temp-path mnt --verify
run stress-ng-all stress-ng --dir 1 --rename 1 --link 1 --symlink 1 --hdd 1 \
	--hdd-bytes 20m --dentry 1 --touch 1 --mknod 1 --utime 1 \
	-t "$seconds" --temp-path mnt --verify
[ -z "$(ls -A mnt)" ] || fail "left: $(ls -A mnt | head -3)"
umount_clean mnt vol.img
