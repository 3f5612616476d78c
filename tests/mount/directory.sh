#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Directories from empty to tens of thousands of entries: listing while they
# change, cookies, shrinking back to nothing.
. "$(dirname "$0")/../lib/lib.sh"

walk=$HELPERS/mt_dirwalk
count=20000
make_volume vol.img 600M
mount_volume vol.img mnt
for n in 1 30 200 5000; do
	mkdir mnt/d$n
	"$walk" fill mnt/d$n $n
	same "entries" "$(ls mnt/d$n | wc -l)" $n
	check "cookies of $n" "$walk" seek mnt/d$n
	check "changes of $n" "$walk" change mnt/d$n $n
done
mkdir mnt/big
"$walk" fill mnt/big $count
umount_clean mnt vol.img

mount_volume vol.img mnt
same "entries" "$(ls -f mnt/big | wc -l)" $((count + 2))
same "distinct" "$(ls -f mnt/big | sort -u | wc -l)" $((count + 2))
check "cookies" "$walk" seek mnt/big
check "lookups" test -e mnt/big/old-019999
! test -e mnt/big/old-020000 || fail "a name that was never made"
check "ls -l" ls -l mnt/big > /dev/null
check "removal while listing" "$walk" remove mnt/big
rmdir mnt/big
check "rm -r" rm -r mnt/d1 mnt/d30 mnt/d200 mnt/d5000
umount_clean mnt vol.img
