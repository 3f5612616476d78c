#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A volume far beyond 2 TiB, on a sparse image: mounts quickly, blocks with
# large numbers work, df is right.
. "$(dirname "$0")/../lib/lib.sh"

truncate -s 5T vol.img 2> /dev/null || skip "no sparse files of 5 TiB here"
make_volume vol.img 5T -r 2048 -J 8
mount_volume vol.img mnt
total=$(stat -f -c %b mnt)
[ "$total" -gt $((4900 << 18)) ] || fail "df sees $total blocks"
# Directories are spread over the volume
for n in $(seq 40); do
	mkdir mnt/d$n
	"$HELPERS/mt_pattern" write mnt/d$n/f 0 300K $n
done
"$HELPERS/mt_pattern" write mnt/big 0 200M 3
sum=$(cd mnt && sha256sum big d*/f | sha256sum)
umount_volume mnt
mount_volume vol.img mnt
same "contents" "$(cd mnt && sha256sum big d*/f | sha256sum)" "$sum"
highest=$(stat -c %i mnt/d* | sort -n | tail -1)
[ "$highest" -gt $((2 << 28)) ] ||
	fail "no inode beyond 2 TiB: the highest is $highest"
rm -r mnt/d*
umount_clean mnt vol.img
