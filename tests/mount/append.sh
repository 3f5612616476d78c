#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# O_APPEND from several processes: no record is lost, torn or written over.
. "$(dirname "$0")/../lib/lib.sh"

make_volume vol.img 200M
mount_volume vol.img mnt
check "appenders" "$HELPERS/mt_appenders" mnt/log 6 2000
sha256sum < mnt/log > before

# Shells that redirect with >>, and a reader that sees whole lines only
for n in 1 2 3 4; do
	( for i in $(seq 300); do echo "shell $n line $i" >> mnt/shared; done ) &
done
wait
same "lines" "$(sort -u mnt/shared | wc -l)" 1200

# At the end even if the offset says otherwise
"$HELPERS/mt_pattern" write mnt/p 0 10000 1
"$HELPERS/mt_pattern" write mnt/p 10000 5000 1 append,bs=700
"$HELPERS/mt_pattern" verify mnt/p 0 15000 1
umount_clean mnt vol.img
mount_volume vol.img mnt
same "after a remount" "$(sha256sum < mnt/log)" "$(cat before)"
umount_clean mnt vol.img
