#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Names made, moved and removed by several at once: nothing hangs, no name is
# left that cannot be opened or removed, and all space comes back.
#
#   names-race.sh MODE [SECONDS of each part]
. "$(dirname "$0")/lib.sh"
seconds=${2:-20}
make_volume vol.img 500M
mount_volume vol.img mnt
free=$(stat -f -c "%f %d" mnt)

during() { # during FUNCTION: until the part is over
	while [ ! -e stop ]; do "$1" 2> /dev/null || true; done
}
together() { # together FUNCTION...
	local f
	rm -f stop
	for f in "$@"; do during "$f" & done
	sleep "$seconds"
	touch stop
	wait_for 60 "the end of: $*" no_jobs
	wait
}
no_jobs() { [ -z "$(jobs -r)" ]; }

# One unpacks what another deletes, with a working directory in it
tar c -C /usr include/linux include/x86_64-linux-gnu 2> /dev/null > tree.tar
mkdir mnt/t mnt/d1 mnt/d2 mnt/d3
unpack() { tar xf tree.tar -C mnt/t; }
delete() { rm -rf mnt/t/*; }
inside() { (cd mnt/t/include/linux && ls -l && pwd && touch x) > list; }
together unpack delete delete inside
rm -rf mnt/t/*
same "left" "$(ls -A mnt/t)" ""
check "unpack again" unpack
rm -r mnt/t/*

# Directories change places while others look into them
move() {
	mkdir -p mnt/d1/a/b mnt/d2/a
	mv mnt/d1/a mnt/d2/moved
	mv -T mnt/d2/moved/b mnt/d3/b
	rmdir mnt/d2/moved mnt/d3/b mnt/d2/a
}
walk() { find mnt/d1 mnt/d2 mnt/d3 -ls > list; }
replace() {
	echo $RANDOM > mnt/d1/$BASHPID
	mv mnt/d1/$BASHPID mnt/d$((1 + RANDOM % 3))/one
	cat mnt/d?/one > all
}
remove() { rmdir mnt/d2 || mkdir mnt/d2; }
together move move walk replace replace remove
find mnt -type f -exec cat {} + > /dev/null
rm -r mnt/d?

# Lock files: made, locked, removed; what holds the lock holds the only one
lock() {
	exec 8>> mnt/lock
	flock -n 8 || return 0
	[ "$(stat -L -c %i /dev/fd/8)" = "$(stat -c %i mnt/lock)" ] || return 0
	mkdir mnt/winner || touch two-winners
	rmdir mnt/winner
	rm mnt/lock
	exec 8>&-
}
together lock lock lock lock lock
[ ! -e two-winners ] || fail "two at once hold the lock"

rm -rf mnt/*
umount_clean mnt vol.img
mount_volume vol.img mnt
same "free blocks and inodes" "$(stat -f -c "%f %d" mnt)" "$free"
umount_clean mnt vol.img
