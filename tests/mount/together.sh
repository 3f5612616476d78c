#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# One file in every kind of use at once, and locks however their holders end:
# nothing hangs, nothing is old or foreign, nothing is left.
. "$(dirname "$0")/../lib/lib.sh"

make_volume vol.img 100M
mount_volume vol.img mnt
check "together" timeout "$(patiently 120)" "$HELPERS/mt_together" mnt/file 20
sha256sum mnt/file > sum
check "locks" timeout "$(patiently 120)" "$HELPERS/mt_locks" mnt/locks
umount_clean mnt vol.img
mount_volume vol.img mnt
check "after a remount" sha256sum -c --quiet sum
umount_clean mnt vol.img
