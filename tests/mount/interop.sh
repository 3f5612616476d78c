#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The Linux kernel's own GFS2, in a virtual machine, agrees with us: it reads
# what we wrote and replays what we left dirty, and we do the same for it.
. "$(dirname "$0")/../lib/lib.sh"
. "$lib/peer.sh"

m=$work/mnt
describe() { "$peer/guest/sums.sh" "$m" "$1" 2> /dev/null; }

# What the kernel's list and ours have in common; unsynced-* is left to chance.
agree() { # agree OURS THEIRS
	for x in sha256 meta sizes times big; do
		diff <(grep -v '[./]unsynced-' "$1.$x") \
			<(grep -v '[./]unsynced-' "$2.$x") > differences ||
			fail "$x: $(head -5 differences)"
	done
}

fill() { # a bit of everything that GFS2 stores differently
	local n path=$1/deep
	mkdir -p "$1/dir" "$1/many"
	: > "$1/empty"
	for n in 1 3000 3863 3864 3865 4095 4096 4097 70000 30M; do
		"$HELPERS/mt_pattern" write "$1/f$n" 0 "$n" 1
	done
	"$HELPERS/mt_pattern" write "$1/sparse" 5G 10000 2
	"$HELPERS/mt_pattern" write "$1/sparse" 700G 10000 3
	"$HELPERS/mt_pattern" write "$1/cut" 0 9M 4
	truncate -s 1234567 "$1/cut"
	"$HELPERS/mt_dirwalk" fill "$1/many" 3000
	"$HELPERS/mt_dirwalk" change "$1/many" 3000
	for n in $(seq 40); do
		path=$path/d$n
	done
	mkdir -p "$path"
	echo bottom > "$path/f"
	ln -s f1 "$1/link"
	ln -s "$(head -c 3000 /dev/zero | tr '\0' t)" "$1/long-link"
	ln "$1/f30M" "$1/hard"
	mkfifo "$1/fifo"
	mknod "$1/cdev" c 1 3
	mkdir -m 1777 "$1/sticky"
	mkdir -m 2775 "$1/sgid"
	chown 1001:1002 "$1/f4096"
	chmod 4711 "$1/f4095"
	touch -d '1999-12-31 23:59:59.123456789Z' "$1/f4097"
	touch "$1/$(printf '%0255d' 7)" "$1/with blank" "$1/ümläut"
	mv "$1/f3000" "$1/many/moved"
	rm "$1/f3865"
}

echo "ours, read by the kernel"
make_volume vol.img 500M -j 2 -t peer:vol
mount_volume vol.img mnt noatime
fill mnt
describe "$work/ours"
umount_clean mnt vol.img
peer_interop -r -l "$work/ours" vol.img

echo "the kernel's, read by us"
peer_interop vol.img
mount_volume vol.img mnt noatime
describe "$work/ours"
agree "$work/ours" "$work/interop-out/node1/after"
echo more > mnt/more
rm -r mnt/from-kernel-node1/many
umount_clean mnt vol.img
peer_interop -r vol.img

echo "the kernel's crash, recovered by us"
peer_interop -x vol.img
mount_volume vol.img mnt noatime
describe "$work/ours"
agree "$work/ours" "$work/interop-out/node1/after"
umount_clean mnt vol.img

echo "our crash, recovered by the kernel"
# Removed before: the kernel releases unlinked inodes when it feels like it
mount_volume vol.img mnt noatime
rm -r mnt/from-kernel-node1
umount_clean mnt vol.img
mount_volume vol.img mnt noatime,commit=3600
mkdir mnt/second
fill mnt/second
find mnt/second -type f -exec "$HELPERS/mt_sys" fsync {} \;
"$HELPERS/mt_sys" fsync mnt
describe "$work/ours"
mkdir mnt/unsynced-1
echo lost > mnt/unsynced-1/f
kill_volume mnt
peer_interop -r -l "$work/ours" vol.img
mount_volume vol.img mnt
umount_clean mnt vol.img
