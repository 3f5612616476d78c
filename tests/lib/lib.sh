# SPDX-License-Identifier: GPL-2.0-or-later
# lib.sh - what the mount tests share. A test begins with
#
#	. "$(dirname "$0")/../lib/lib.sh"
#
# and then runs as the first process of a private process and mount name space:
# when it ends, however it ends, everything it has started is killed and
# everything it has mounted is gone. It has a directory of its own, $work, and
# needs root, FUSE and gfs2-utils: without them it is skipped.
#
# A first argument is the place of the page cache, for mount_volume.
#
# UGFS and HELPERS name the program under test and the directory of the small C
# programs; meson sets them.

set -eu
export LC_ALL=C
lib=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
. "$lib/fsck.sh"

skip() {
	echo "SKIP: $*"
	exit 77
}

# Sanitizers of a program that has no standard error write here.
sanitizer_options() {
	local opts="log_path=$1/sanitizer:print_stacktrace=1"

	export ASAN_OPTIONS="$opts:detect_leaks=1:abort_on_error=0"
	export UBSAN_OPTIONS="$opts:halt_on_error=0"
	# A suppression needs both stacks.
	export TSAN_OPTIONS="$opts:halt_on_error=0:second_deadlock_stack=1:history_size=7:suppressions=$lib/tsan.supp"
	export LSAN_OPTIONS="log_path=$1/sanitizer"
}

# Outside: check what is needed, make the directory, enter the sandbox.
outside() {
	[ "$(id -u)" = 0 ] || skip "not root"
	[ -c /dev/fuse ] || modprobe fuse 2>/dev/null || true
	[ -c /dev/fuse ] || skip "no /dev/fuse"
	command -v mkfs.gfs2 >/dev/null || skip "gfs2-utils is not installed"
	unshare --mount --pid --fork --mount-proc true 2>/dev/null ||
		skip "no name spaces"

	local name dir child status=0
	name=$(basename "$0" .sh)
	dir=$(mktemp -d "${UGFS_TMP:-/var/tmp}/ugfs-$name.XXXXXX")
	trap '[ -n "${UGFS_KEEP:-}" ] || rm -rf "$dir"' EXIT
	trap 'kill -KILL "$child" 2>/dev/null; wait; exit 130' INT TERM HUP
	UGFS_SANDBOX=$dir unshare --mount --pid --fork --kill-child \
		--mount-proc bash "$0" "$@" &
	child=$!
	wait "$child" || status=$?
	exit "$status"
}

[ -n "${UGFS_SANDBOX:-}" ] || outside "$@"

# Inside.
work=$UGFS_SANDBOX
mode=${1:-kernel}
unset UGFS_SANDBOX
mount --make-rprivate /
# Mounts of others that were copied into this name space would keep their
# processes from ending.
awk '{ for (i = 7; $i != "-"; i++); if ($(i + 1) ~ /^fuse/) print $5 }' \
	/proc/self/mountinfo |
	while read -r inherited; do
		umount -i -l "$inherited" || true
	done
mount -t tmpfs -o mode=755 none /run
mkdir "$work/mnt"
sanitizer_options "$work"
cd "$work"

fail() {
	echo "FAIL: $*" >&2
	for f in "$work"/*.log "$work"/sanitizer.*; do
		[ -s "$f" ] || continue
		echo "--- ${f##*/}"
		case $f in
		*.log) tail -n 60 "$f" ;;
		*) head -n 120 "$f" ;;
		esac
	done >&2
	exit 1
}

# What ends a script without a word names itself.
trap 'fail "line $LINENO: $BASH_COMMAND"' ERR
set -E

# check WHAT COMMAND...: the command succeeds.
check() {
	local what=$1
	shift
	"$@" || fail "$what: \"$*\" returned $?"
}

# same WHAT GOT EXPECTED
same() {
	[ "$2" = "$3" ] || fail "$1: got \"$2\", expected \"$3\""
}

# refused STATUS TEXT COMMAND...: exits with this status, and prints the text.
refused() {
	local want=$1 text=$2 status=0 out
	shift 2
	out=$("$@" 2>&1) || status=$?
	[ "$status" = "$want" ] ||
		fail "\"$*\" exited with $status, not $want: $out"
	case $out in
	*"$text"*) ;;
	*) fail "\"$*\" printed \"$out\", not \"$text\"" ;;
	esac
}

# errno NAME COMMAND...: a helper fails with this error.
errno() {
	local want=$1 out status=0
	shift
	out=$("$@" 2>&1) || status=$?
	[ "$status" != 0 ] || fail "\"$*\" succeeded, expected $want"
	case $out in
	*"$want"*) ;;
	*) fail "\"$*\" printed \"$out\", expected $want" ;;
	esac
}

# Seconds of a time limit on this machine, now: UGFS_PATIENCE times as long.
patiently() {
	echo $(($1 * ${UGFS_PATIENCE:-1}))
}

# wait_for SECONDS WHAT COMMAND...: until the command succeeds.
wait_for() {
	local end=$((SECONDS + $(patiently "$1"))) what=$2
	shift 2
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || fail "waiting for $what"
		sleep 0.05
	done
}

# make_volume IMAGE SIZE [mkfs.gfs2 options]
make_volume() {
	local image=$1 size=$2
	shift 2
	rm -f "$image"
	truncate -s "$size" "$image"
	mkfs.gfs2 -q -O -K -p lock_nolock -J 8 "$@" "$image" > mkfs.out 2>&1 ||
		fail "mkfs.gfs2 $*: $(cat mkfs.out)"
}

# loop_device IMAGE [losetup options]: sets dev, which lives as long as this shell
# or somebody else has it open, whatever becomes of the test.
loop_device() {
	local image=$1
	shift
	exec 8<&-
	dev=$(losetup --find --show "$@" "$image") || skip "no loop devices"
	exec 8< "$dev"
	losetup -d "$dev"
}

# mount_volume IMAGE DIR [OPTIONS]: log lines go to DIR.log.
mount_volume() {
	"$UGFS" mount -L "$2.log" -o "pagecache=$mode,${3:-rw}" "$1" "$2" ||
		fail "mount of $1 on $2 with ${3:-rw} returned $?"
}

umount_volume() {
	"$UGFS" umount "$1" || fail "umount of $1 returned $?"
}

# Without a look at it: it may be a dead mount.
full_path() {
	case $1 in
	/*) echo "$1" ;;
	*) echo "$work/$1" ;;
	esac
}

run_file() {
	local dev
	dev=$(awk -v dir="$(full_path "$1")" '$5 == dir { dev = $3 } END { print dev }' \
		/proc/self/mountinfo)
	echo "/run/ugfs/$dev"
}

# The process id of a mount process.
mount_pid() {
	awk '$1 == "pid" { print $2 }' "$(run_file "$1")"
}

# As a crash: nothing is written from here on. The dead mount is cleared away.
# The lock falls when the last thread has gone, which may be in the middle of a
# write; until then the image is in use.
kill_volume() {
	local pid
	pid=$(mount_pid "$1")
	exec 7< "$(run_file "$1")"
	kill -KILL "$pid"
	flock -s 7
	exec 7<&-
	umount -i "$1" 2>/dev/null || umount -i -l "$1"
}

# No thread is left: the first one can be a zombie long before the others go.
process_gone() {
	local tasks
	tasks=$(ls "/proc/$1/task" 2>/dev/null | wc -l)
	[ "$tasks" = 0 ] || {
		[ "$tasks" = 1 ] &&
			grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null
	}
}

clean_fsck() {
	local bad
	bad=$(fsck_faults "$1")
	[ -z "$bad" ] || fail "fsck.gfs2 -n $1 says: $bad"
}

# No sanitizer has reported anything, no assertion has failed.
clean_logs() {
	for f in "$work"/sanitizer.*; do
		[ ! -s "$f" ] || fail "a sanitizer has reported"
	done
	! grep -l -E 'assertion|withdrawn' "$work"/*.log 2>/dev/null ||
		fail "an assertion has failed, or a mount has withdrawn"
}

# umount_clean DIR IMAGE: the usual end.
umount_clean() {
	umount_volume "$1"
	clean_fsck "$2"
	clean_logs
}
