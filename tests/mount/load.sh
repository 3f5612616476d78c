#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Programs that others wrote to stress and to measure file systems run to their
# end, verify what they wrote, and leave the volume clean.
. "$(dirname "$0")/../lib/lib.sh"

long=${2:-}
secs() { [ -n "$long" ] && echo "$2" || echo "$1"; }
run() { # run NAME COMMAND...
	local name=$1 start=$SECONDS
	shift
	echo "$name"
	timeout 3600 "$@" > "$name.out" 2>&1 ||
		fail "$name returned $?: $(tail -30 "$name.out")"
	echo "$name: $((SECONDS - start)) s"
	clean_logs
}
fresh() {
	make_volume vol.img 1G -J 32
	mount_volume vol.img mnt
}
have() { command -v "$1" > /dev/null || { echo "no $1"; return 1; }; }

fresh
if have fio; then
	for rw in write randwrite randrw; do
		for engine in psync libaio; do
			direct=0
			[ $engine = psync ] || direct=1
			run fio-$rw-$engine fio --name=$rw --directory=mnt \
				--size="$(secs 40 400)m" --numjobs=2 --rw=$rw \
				--bsrange=4k-128k --ioengine=$engine \
				--direct=$direct --iodepth=8 --verify=crc32c \
				--verify_fatal=1 --do_verify=1 --randseed=3 \
				--unlink=1 --minimal
		done
	done
	run fio-fsync fio --name=fsync --directory=mnt --size=4m --rw=randwrite \
		--bs=4k --fsync=16 --verify=crc32c --verify_fatal=1 --unlink=1 \
		--minimal
fi
if have dbench; then
	run dbench dbench -D mnt -t "$(secs 6 120)" \
		-c /usr/share/dbench/client.txt 4
fi
umount_clean mnt vol.img

fresh
if have bonnie++; then
	# Not byte by byte: a request for each of them says nothing new
	run bonnie bonnie++ -f -d mnt -u 0 -s "$(secs 64 512)" -r "$(secs 32 256)" \
		-n "$(secs 2 16)" -q
fi
if have postmark; then
	printf 'set location mnt\nset number %d\nset transactions %d\nset size 500 40000\nrun\nquit\n' \
		"$(secs 800 10000)" "$(secs 1500 20000)" > postmark.in
	run postmark sh -c 'postmark < postmark.in'
fi
if have fs_mark; then
	run fs_mark fs_mark -d mnt/fsmark -n "$(secs 300 5000)" -s 8000 -t 3 \
		-S 1 -L "$(secs 1 3)"
fi
umount_clean mnt vol.img

# What of stress-ng's class "filesystem" needs only what exists here. If it must
# be short, one half in each of the two modes.
half=0
[ "$mode" != own ] || half=1
if have stress-ng; then
	fresh
	for s in access aiol chdir chmod chown dentry dir dirdeep dirmany \
		fcntl filename flock fstat getdent hdd io iomix lease link \
		locka lockf lockofd mknod open readahead rename revio seek \
		sendfile symlink sync-file touch utime; do
		half=$((1 - half))
		[ -n "$long" ] || [ $half = 1 ] || continue
		run "stress-ng-$s" stress-ng --$s 2 -t "$(secs 1 30)" \
			--temp-path mnt --verify --hdd-bytes 20m \
			--iomix-bytes 20m --seek-size 10m
	done
	umount_clean mnt vol.img
fi
