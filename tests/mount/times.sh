#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Timestamps: nanoseconds, which call moves which, and the atime rules of the
# mount options.
. "$(dirname "$0")/../lib/lib.sh"

make_volume vol.img 100M
export TZ=UTC0
t() { stat -c "$1" "$2"; }
written() { date -d "$1"Z '+%Y-%m-%d %H:%M:%S.%N %z'; }
later() { # later WHAT OLD NEW: NEW is after OLD
	[ "$(printf '%s\n%s\n' "$2" "$3" | sort -n | tail -1)" = "$3" ] &&
		[ "$2" != "$3" ] || fail "$1: $2, then $3"
}

mount_volume vol.img mnt
for stamp in 1969-12-31T23:59:58.123456789 1970-01-01T00:00:00.000000001 \
	2038-01-19T03:14:08.5 2200-02-03T04:05:06.999999999; do
	touch -d "$stamp"Z mnt/stamped
	same "mtime" "$(t %y mnt/stamped)" "$(written "$stamp")"
	touch -d "$stamp"Z "mnt/keep-$stamp"
done

touch mnt/f
old_m=$(t %.Y mnt/f) old_c=$(t %.Z mnt/f)
sleep 0.02
chmod 600 mnt/f
same "mtime after chmod" "$(t %.Y mnt/f)" "$old_m"
later "ctime after chmod" "$old_c" "$(t %.Z mnt/f)"
sleep 0.02
echo x > mnt/f
later "mtime after a write" "$old_m" "$(t %.Y mnt/f)"
old_c=$(t %.Z mnt/f)
sleep 0.02
ln mnt/f mnt/g
later "ctime after link" "$old_c" "$(t %.Z mnt/f)"
old_m=$(t %.Y mnt)
sleep 0.02
mv mnt/g mnt/h
later "mtime of the directory after rename" "$old_m" "$(t %.Y mnt)"
old_m=$(t %.Y mnt)
sleep 0.02
rm mnt/h
later "mtime of the directory after unlink" "$old_m" "$(t %.Y mnt)"
umount_clean mnt vol.img

mount_volume vol.img mnt
for stamp in 1969-12-31T23:59:58.123456789 1970-01-01T00:00:00.000000001 \
	2038-01-19T03:14:08.5 2200-02-03T04:05:06.999999999; do
	same "mtime after a remount" "$(t %y "mnt/keep-$stamp")" \
		"$(written "$stamp")"
done
umount_clean mnt vol.img

# atime: each read happens on a fresh mount, which has to ask us
atime_moves() { # atime_moves OPTIONS ATIME yes|no
	local before
	mount_volume vol.img mnt
	echo x > mnt/a
	touch -a -d "$2" mnt/a
	before=$(t %.X mnt/a)
	umount_clean mnt vol.img
	mount_volume vol.img mnt "$1"
	cat mnt/a > /dev/null
	umount_clean mnt vol.img
	mount_volume vol.img mnt ro
	if [ "$3" = yes ]; then
		later "atime with $1" "$before" "$(t %.X mnt/a)"
	else
		same "atime with $1" "$(t %.X mnt/a)" "$before"
	fi
	umount_clean mnt vol.img
}
atime_moves noatime 2001-01-01 no
atime_moves relatime 2001-01-01 yes
atime_moves relatime "now + 1 minute" no
atime_moves strictatime "now - 1 minute" yes
atime_moves ro,strictatime 2001-01-01 no
