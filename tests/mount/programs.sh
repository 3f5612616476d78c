#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Programs that people use, two at a time where they share something: data bases,
# repositories, copies that are kept up to date, locks with many waiters.
. "$(dirname "$0")/../lib/lib.sh"

have() { command -v "$1" > /dev/null || { echo "no $1"; return 1; }; }
make_volume vol.img 300M
mount_volume vol.img mnt

# A data base that two write to at once. A write-ahead log is mapped by both.
insert() { # insert DB WHO
	local i
	for i in $(seq 60); do
		sqlite3 -cmd ".timeout 60000" "$1" \
			"insert into t values ('$2', $i);" || return 1
	done
}
data_base() { # data_base JOURNAL-MODE
	local db=mnt/$1.db first
	sqlite3 "$db" "pragma journal_mode=$1; create table t (who, n);" > note
	insert "$db" a &
	first=$!
	check "$1: a writer" insert "$db" b
	check "$1: the other writer" wait $first
	same "$1: rows" "$(sqlite3 "$db" "select count(*) from t;")" 120
	same "$1: check" "$(sqlite3 "$db" "pragma integrity_check;")" ok
}
if have sqlite3; then
	data_base delete
	data_base wal
fi

# A repository: its objects are renamed, linked, mapped and packed
tar c -C /usr/include linux | tar x -C .
repository() {
	export HOME=$work GIT_CONFIG_NOSYSTEM=1
	git config --global user.name test
	git config --global user.email test@localhost
	git init -q mnt/repo
	cp -r linux mnt/repo/
	git -C mnt/repo add .
	git -C mnt/repo commit -q -m first
	rm -r mnt/repo/linux/netfilter
	git -C mnt/repo commit -q -a -m second
	git -C mnt/repo gc -q --prune=now
	git -C mnt/repo checkout -q HEAD~
	git -C mnt/repo fsck --strict
	git clone -q --no-local mnt/repo mnt/clone
}
if have git; then
	repository > git.log 2>&1
	same "status" "$(git -C mnt/repo status --porcelain)" ""
	check "the files" diff -r linux mnt/clone/linux
fi

# A copy that is up to date needs nothing
if have rsync; then
	check "rsync" rsync -aHX linux mnt/copy
	same "a second time" "$(rsync -aHXni linux mnt/copy)" ""
	echo more >> linux/fs.h
	rm linux/stat.h
	check "rsync" rsync -a --delete linux mnt/copy
	check "the files" diff -r linux mnt/copy/linux
fi

# Many wait for a lock: everything else goes on, one of them can be killed, the
# others get it in turn, and in the end it is free
exec 9> mnt/lock
flock 9
for i in $(seq 60); do
	flock mnt/lock sh -c 'echo x >> mnt/turns' 9>&- &
done
victim=$!
check "listing while many wait" timeout 20 ls -l mnt > note
check "a file while many wait" timeout 20 touch mnt/other
kill -KILL $victim
wait $victim || true
exec 9>&-
wait
same "turns" "$(wc -l < mnt/turns)" 59
check "the lock" flock -n mnt/lock true

sha256sum mnt/*.db > sums || true
umount_clean mnt vol.img
mount_volume vol.img mnt
check "after a remount" sha256sum -c --quiet sums
! have git || check "git fsck" git -C mnt/clone fsck 2> note
umount_clean mnt vol.img
