#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Mount options do what they say, and those without effect do no harm.
. "$(dirname "$0")/../lib/lib.sh"

make_volume vol.img 200M -j 2
mount_volume vol.img mnt nodev,nosuid,noexec
printf '#!/bin/sh\n' > mnt/prog
chmod 755 mnt/prog
! mnt/prog 2> /dev/null || fail "noexec: the program ran"
mknod mnt/null c 1 3
! cat mnt/null 2> /dev/null || fail "nodev: the device works"
umount_clean mnt vol.img

mount_volume vol.img mnt ""
check "exec" mnt/prog
check "device" cat mnt/null
umount_clean mnt vol.img

# The metadata tree, for those who want to see it.
mount_volume vol.img mnt meta,ro
same "meta" "$(ls mnt | tr '\n' ' ')" \
	"inum jindex per_node quota rindex statfs "
same "journals" "$(ls mnt/jindex | tr '\n' ' ')" "journal0 journal1 "
umount_clean mnt vol.img

for opts in sync dirsync data=writeback commit=1 statfs_quantum=0 \
	statfs_percent=10 nobarrier errors=withdraw hostdata=jid=1 suiddir \
	noatime,nodiratime strictatime cache=16M,inodes=1000 threads=2 \
	pagecache=own localflocks,quota=off,noacl,nodiscard,loccookie; do
	mount_volume vol.img mnt "$opts"
	rm -rf mnt/d
	mkdir mnt/d
	for i in 1 2 3 4 5; do
		"$HELPERS/mt_pattern" write mnt/d/$i 0 ${i}00K $i
	done
	umount_clean mnt vol.img
	mount_volume vol.img mnt
	for i in 1 2 3 4 5; do
		check "data after $opts" \
			"$HELPERS/mt_pattern" verify mnt/d/$i 0 ${i}00K $i
	done
	umount_clean mnt vol.img
done

# sync: a change is on disk when it has been answered.
mount_volume vol.img mnt sync,commit=3600
echo durable > mnt/durable
mkdir mnt/durable.d
kill_volume mnt
mount_volume vol.img mnt
same "after sync and a crash" "$(cat mnt/durable)" durable
check "directory after sync and a crash" test -d mnt/durable.d
umount_clean mnt vol.img

chmod 755 "$work"
# suiddir: what is made in such a directory belongs to its owner.
mount_volume vol.img mnt suiddir
mkdir mnt/s
chown 1234:0 mnt/s
chmod 4777 mnt/s
setpriv --reuid=2345 --clear-groups "$HELPERS/mt_sys" \
	open mnt/s/file w,creat
same "owner with suiddir" "$(stat -c %u mnt/s/file)" 1234
umount_clean mnt vol.img
