#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# ugfs itself on an older kernel, Debian 12's 6.1, in the virtual machine: what
# newer kernels offer is done without.
. "$(dirname "$0")/../lib/lib.sh"
. "$lib/peer.sh"

mkdir guest guest/lib
cp -r "$UGFS" "$HELPERS"/mt_* guest/
rm -rf guest/*.p
for lib_file in $(ldd "$UGFS" "$HELPERS/mt_pattern" |
	awk '$3 ~ /^\// { print $3 }' | sort -u); do
	cp -n "$lib_file" guest/lib/
done

cat > guest.sh << 'END'
set -e
modprobe fuse
s=/shared/guest
run() { /lib64/ld-linux-x86-64.so.2 --library-path $s/lib "$s/$@"; }
mkdir -p /mnt/u
for mode in kernel own; do
	echo "mode $mode on $(uname -r)"
	run ugfs mount -L /job/log.$mode -o pagecache=$mode /dev/vdb /mnt/u
	grep 'fuse.*ugfs' /proc/mounts
	mkdir /mnt/u/$mode
	cd /mnt/u/$mode
	run mt_pattern write big 0 20M 1
	run mt_pattern verify big 0 20M 1
	run mt_pattern write sparse 5G 10000 2
	run mt_pattern verify sparse 5G 10000 2
	run mt_appenders log 4 300
	[ $mode = own ] || run mt_mapped .
	[ $mode = own ] || run mt_oracle oracle 7 1500 direct
	mkdir d t
	run mt_dirwalk fill d 2000
	run mt_dirwalk seek d
	run mt_dirwalk change d 2000
	mkdir -p /tmp/ref.$mode
	run mt_twin t /tmp/ref.$mode 5 2000
	cd /
	run ugfs umount /mnt/u
	run ugfs mount -o pagecache=$mode /dev/vdb /mnt/u
	run mt_pattern verify /mnt/u/$mode/big 0 20M 1
	rm -r /mnt/u/$mode/d
	run ugfs umount /mnt/u
	! grep -E 'assertion|withdrawn' /job/log.$mode
done
END
make_volume vol.img 400M
"$peer/run.sh" -d vol.img -i guest -o out -t "$(patiently 3000)" guest.sh > run.out 2>&1 ||
	fail "$(cat run.out; tail -n 50 out/node1/out)"
cat out/node1/out
clean_fsck vol.img
