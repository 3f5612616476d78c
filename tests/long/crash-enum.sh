#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Thousands of power cuts, after each of which the volume must be whole and what
# was synced be there; one failing seed ends it, and is printed.
#
# CRASH_ROUNDS (4; 200 for a night) rounds, from seed CRASH_SEED (1000) on.
# CRASH is the directory of the programs of tests/crash.
. "$(dirname "$0")/lib.sh"
first=${CRASH_SEED:-1000} rounds=${CRASH_ROUNDS:-4}

for ((seed = first; seed < first + rounds; seed++)); do
	check "journal" "$CRASH/journal_crash" --seed "$seed"
	check "threads" "$CRASH/journal_threads" --seed "$seed" --cuts 1000
	for bsize in 4096 2048 1024 512; do
		check "seed $seed" "$CRASH/fs_crash" --seed "$seed" \
			--bsize $bsize --ops 2500 --cuts 1000 --fsck 25
	done
done
