#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What is neither file nor directory: hard and symbolic links, devices, fifos,
# sockets; and what is refused by name, not faked.
. "$(dirname "$0")/../lib/lib.sh"

sys=$HELPERS/mt_sys
make_volume vol.img 200M
mount_volume vol.img mnt

# Hard links
echo one > mnt/a
for i in $(seq 200); do
	ln mnt/a mnt/l$i
done
same "links" "$(stat -c %h mnt/a)" 201
same "one inode" "$(stat -c %i mnt/l200)" "$(stat -c %i mnt/a)"
echo two > mnt/l7
same "through another name" "$(cat mnt/a)" two
rm mnt/a mnt/l[1-9]*
same "all names gone" "$(ls mnt)" ""

# Symbolic links from one byte to what fits a dinode's block
for n in 1 59 60 3000 3863; do
	target=$(head -c $n /dev/zero | tr '\0' t)
	check "symlink of $n" "$sys" symlink "$target" mnt/s$n
	same "target of $n" "$(readlink mnt/s$n)" "$target"
	same "size of $n" "$(stat -c %s mnt/s$n)" $n
done
errno ENAMETOOLONG "$sys" symlink "$(head -c 3864 /dev/zero | tr '\0' t)" \
	mnt/long
errno ENOENT "$sys" open mnt/s1 r
ln -s loop2 mnt/loop1
ln -s loop1 mnt/loop2
errno ELOOP "$sys" open mnt/loop1 r
errno EINVAL "$sys" readlink mnt

# Devices, fifos, sockets
mknod mnt/null c 1 3
mknod mnt/big b 259 70000
check "a character device" dd if=/dev/zero of=mnt/null bs=1 count=1 status=none
same "numbers" "$(stat -c %t:%T mnt/big)" "103:11170"
mkfifo mnt/fifo
echo through > mnt/fifo &
same "through the fifo" "$(cat mnt/fifo)" through
wait
check "a socket" "$sys" socket mnt/socket
same "its type" "$(stat -c %F mnt/socket)" socket

# Refused properly
echo x > mnt/x
errno EOPNOTSUPP "$sys" fallocate mnt/x 100000
errno EOPNOTSUPP "$sys" open mnt tmpfile,rw

umount_clean mnt vol.img
mount_volume vol.img mnt
same "types" "$(stat -c %F mnt/null mnt/big mnt/fifo mnt/socket)" \
	"character special file
block special file
fifo
socket"
for n in 1 59 60 3000 3863; do
	same "target of $n" "$(readlink mnt/s$n | tr -d '\n' | wc -c)" $n
done
umount_clean mnt vol.img
