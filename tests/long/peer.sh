#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The real kernel agrees: it reads what we wrote and replays what we left dirty;
# we read what it wrote and replay what it left dirty. Nothing is lost on the way.
#
#   peer.sh MODE BLOCK-SIZE FORMAT|ours     "ours": a volume of ugfs mkfs
. "$(dirname "$0")/lib.sh"
. "$lib/peer.sh"

bsize=$2 format=$3
writer=()
[ "$bsize" = 4096 ] && [ "$format" != 1801 ] ||
	writer=(-s "$lib/../long/peer-writer.guest")
names=4000 # the machine is slow with many
[ "$format" != 1802 ] || names=20000
pattern=$HELPERS/mt_pattern

fill_files() {
	local d=mnt/files s
	mkdir $d
	: > $d/empty
	for s in 1 231 232 $((bsize - 233)) $((bsize - 232)) $((bsize - 231)) \
		$((bsize - 1)) "$bsize" $((bsize + 1)) 70000 1M 30M; do
		"$pattern" write "$d/s$s" 0 "$s" 3
	done
	"$pattern" write $d/holes 0 10 1
	"$pattern" write $d/holes 300K 100 2
	"$pattern" write $d/holes 90M 100K 3
	"$pattern" write $d/huge 1048576G 5000 4
	"$pattern" write $d/huge 5000000001 5000 5
	truncate -s 6G $d/nothing
	"$pattern" write $d/cut 0 9M 6
	truncate -s 777777 $d/cut
	"$pattern" write $d/regrown 0 9M 6
	truncate -s 100 $d/regrown
	truncate -s 2M $d/regrown
	"$pattern" write $d/stuffed-again 0 9M 6
	truncate -s 10 $d/stuffed-again
	"$pattern" write $d/direct 0 3M 7 direct
	for s in $(seq 300); do ln $d/s70000 "$d/hard$s"; done
}
fill_kinds() {
	local d=mnt/kinds s
	mkdir $d
	mkfifo $d/fifo
	mknod $d/char c 240 1000000
	mknod $d/block b 7 3
	mknod $d/whiteout c 0 0
	"$HELPERS/mt_sys" socket $d/socket
	ln -s short $d/short
	ln -s "$(printf '%0*d' $((bsize - 233)) 0)" $d/longest
	touch "$d/$(printf '%0255d' 7)" "$d/$(printf 'new\nline \001\377')"
	for s in 0000 0777 1777 2755 4711 6755; do
		touch $d/m$s
		chown 70000:3000000000 $d/m$s
		chmod $s $d/m$s
	done
	mkdir -m 3777 $d/sticky
	touch -d '1999-12-31 23:59:59.123456789Z' $d/t1
	touch -d '1901-01-01 00:00:00.999999999Z' $d/t2
	touch -d '2399-01-01 00:00:00.000000001Z' $d/t3
}
fill_directories() {
	local path=mnt/deep s
	mkdir mnt/big mnt/shrunk mnt/one-hash
	"$LONG/lt_collide" mnt/one-hash 400
	for s in $(seq 120); do path=$path/level-$s; done
	mkdir -p $path
	echo bottom > $path/bottom
	(cd mnt/big && seq -f 'a-name-of-some-length-%06g' $names | xargs touch &&
		seq -f 'a-name-of-some-length-%06g' 1 3 $names | xargs rm)
	(cd mnt/shrunk && seq 5000 | xargs touch && seq 4990 | xargs rm)
	mkdir mnt/from mnt/to
	for s in $(seq 200); do
		mkdir mnt/from/d$s
		mv mnt/from/d$s mnt/to/e$s
	done
}

# From one inline to those that need an indirect block, and lists.
fill_attributes() {
	local d=mnt/attributes s
	mkdir $d
	touch $d/few $d/many $d/cut $d/list
	setfattr -n user.a -v "a value" $d/few
	setfattr -n user.empty $d/few
	setfattr -n security.of-our-own -v x $d/few
	[ "$format" = 1801 ] || setfattr -n trusted.t -v y $d/few
	setfattr -n user.for-a-directory -v z $d
	for s in $(seq 40); do
		setfattr -n user.$s -v "$(printf '%0*d' $((s * 20)) 0)" $d/many
	done
	for s in $(seq 1 3 40); do setfattr -x user.$s $d/many; done
	# What blocks of 512 bytes have room for is less.
	setfattr -n user.big -v "$(printf '%0*d' $((bsize * 10)) 0)" $d/cut
	setfattr -n user.big -v "$(printf '%0*d' $((bsize * 7)) 7)" $d/cut
	setfattr -n user.gone -v "$(printf '%0*d' $((bsize * 7)) 7)" $d/cut
	setfattr -x user.gone $d/cut
	setfacl -m u:1001:rw,g:1002:r $d/list
	mkdir $d/inherits
	setfacl -m u:1001:rwx -m d:u:1001:rwx,d:g:1002:rx $d/inherits
	mkdir $d/inherits/sub
	touch $d/inherits/file $d/inherits/sub/file
	chmod 640 $d/inherits/file
}

# What we do to a tree that has been through the kernel, the last part unsynced.
work_and_die() {
	local k=mnt/from-kernel-node1 s
	mkdir mnt/unsynced-1
	"$pattern" write $k/jdata 100K 150K 8
	"$pattern" write $k/big 5M 3M 9
	"$pattern" write $k/stuffed 1000 200 10
	truncate -s 3000000 $k/sparse
	rm $k/s20000 $k/hard
	mv $k/deep $k/many/moved
	for s in $(seq 400); do echo "$s" > "$k/many/ours-$s"; done
	rm -r mnt/to mnt/shrunk mnt/attributes/many
	setfattr -x user.small $k/stuffed
	setfattr -n user.big -v changed $k/stuffed
	chmod 600 mnt/attributes/list
	setfacl -m u:1003:x mnt/attributes/inherits
	"$pattern" write mnt/files/s1M 512K 2M 11
	# The last file's log flush makes all names durable; syncfs(2) does not
	# get through to FUSE.
	sync mnt/attributes/list mnt/attributes/inherits
	sync $k/jdata $k/big $k/stuffed $k/sparse $k/many/ours-* mnt/files/s1M
	our_sums
	for s in $(seq 500); do
		head -c $((s * 50)) /dev/zero > mnt/unsynced-1/$s
	done
	kill_volume mnt
}

if [ "$format" = ours ]; then
	truncate -s 700M vol.img
	check "ugfs mkfs" "$UGFS" mkfs -O -p lock_nolock -b "$bsize" -J 16 \
		vol.img > mkfs.out 2>&1
else
	make_volume vol.img 700M -b "$bsize" -o "format=$format" -J 16
fi
mount_volume vol.img mnt acl
fill_files
fill_kinds
fill_directories
fill_attributes
our_sums
umount_clean mnt vol.img

timed "the kernel reads and writes" \
	peer_interop ${writer[@]+"${writer[@]}"} -l "$work/ours" vol.img
mount_volume vol.img mnt acl
peer_agrees "written by the kernel"

work_and_die
timed "the kernel replays, writes and dies" \
	peer_interop ${writer[@]+"${writer[@]}"} -x -l "$work/ours" vol.img
kernel_replayed 0
mount_volume vol.img mnt acl
we_replayed
peer_agrees "replayed by us"
"$pattern" verify mnt/files/s1M 512K 2M 11
rm -r mnt/*
umount_clean mnt vol.img
