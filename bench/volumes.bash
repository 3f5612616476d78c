# SPDX-License-Identifier: GPL-2.0-or-later
# volumes.bash: the volumes of bench/run, and how each file system is put on
# them. Each has a file of the same size in the same directory, written once
# from end to end, behind a loop device that goes past the page cache of the
# file. So the device of all three is the same, and sync(1) reaches ugfs:
# Linux (6.18) passes it on for block devices only.
#
#	volume_fresh FS [OPTION]...	make a new file system and mount it
#	volume_rest			all is on disk, nothing in memory
#	volume_resume			it can be used again
#	volume_end			as volume_rest, for good
#
# The last two set requests, those of the time since it came up. The empty
# file system never leaves, for it has no disk; but the kernel forgets what it
# knows of it.

declare -A loop_of=() # ext4, gfs2, store
mnt=$work/mnt
log=$work/log
mounted=	# file system that is or should be mounted
resting=0
server=		# its process, if it has one
requests=0
requests_before=0

volumes_make() {
	local kind
	mkdir "$mnt"
	for kind in ext4 gfs2 store; do
		run dd if=/dev/zero of="$work/$kind.img" bs=1M \
			count="$image_mib" oflag=direct status=none
		loop_of[$kind]=$(losetup --find --show --direct-io=on \
			"$work/$kind.img") || die "no loop device"
	done
}

volume_mkfs() {
	case $1 in
	ext4)
		mkfs.ext4 -q -F -J size="$journal_mib" -E \
			lazy_itable_init=0,lazy_journal_init=0,nodiscard \
			"${loop_of[ext4]}"
		;;
	ugfs*)
		mkfs.gfs2 -q -O -K -p lock_nolock -j 1 -J "$journal_mib" \
			"${loop_of[gfs2]}"
		;;
	esac >> "$log" 2>&1 || die "mkfs for $1 failed"
}

# server_start COMMAND...: returns when $mnt is a mount that answers.
server_start() {
	"$@" >> "$log" 2>&1 &
	server=$!
	until mountpoint -q "$mnt"; do
		kill -0 "$server" 2> /dev/null || die "cannot mount: $*"
		sleep 0.02
	done
}

# volume_mount [OPTION]...: options are for the empty file system.
volume_mount() {
	local options="stats"
	[ "$mounted" != emptyfs-own ] || options=$options,direct
	[ $# = 0 ] || options=$options$(printf ',%s' "$@")
	: > "$log"
	case $mounted in
	ext4) run mount -t ext4 "${loop_of[ext4]}" "$mnt" ;;
	emptyfs*) server_start "$emptyfs" -f -o "$options" "$mnt" ;;
	ugfs) server_start "$ugfs" mount -f "${loop_of[gfs2]}" "$mnt" ;;
	ugfs-own)
		server_start "$ugfs" mount -f -o pagecache=own \
			"${loop_of[gfs2]}" "$mnt"
		;;
	*) die "no file system $mounted" ;;
	esac
}

volume_fresh() {
	mounted=$1
	shift
	requests_before=0
	volume_mkfs "$mounted"
	volume_mount "$@"
}

# emptyfs reads nothing but requests (unless it has a store); ugfs logs how
# many there were when it ends.
count_requests() {
	local now
	case $mounted in
	emptyfs*)
		now=$(awk '/^syscr:/ { print $2 }' "/proc/$server/io")
		requests=$((now - requests_before))
		requests_before=$now
		;;
	ugfs*)
		requests=$(sed -n 's/.*fuse: \([0-9]*\) requests served.*/\1/p' \
			"$log")
		;;
	*) requests=0 ;;
	esac
}

volume_leave() {
	if [[ $mounted == ugfs* ]]; then
		run "$ugfs" umount "$mnt"
	else
		run umount "$mnt"
	fi
	[ -z "$server" ] || wait "$server" || die "$mounted has failed"
	server=
}

volume_rest() {
	if [[ $mounted == emptyfs* ]]; then
		count_requests
		run mount -i -o remount "$mnt"
		return
	fi
	volume_leave
	count_requests
	resting=1
}

volume_resume() {
	[ $resting = 0 ] || volume_mount
	resting=0
}

volume_end() {
	[[ $mounted != emptyfs* ]] || count_requests
	volume_leave
	[[ $mounted != ugfs* ]] || count_requests
	mounted=
}

# Microseconds of user and of system time of the process.
volume_cpu() {
	local tick=$((1000000 / $(getconf CLK_TCK)))
	if [ -n "$server" ]; then
		awk -v t="$tick" '{ sub(".*\\) ", ""); print $12 * t, $13 * t }' \
			"/proc/$server/stat"
	else
		echo 0 0
	fi
}

# volume_memory LABEL
volume_memory() {
	local what kib unit
	[ -n "$server" ] || return 0
	while read -r what kib unit; do
		case $what in
		VmRSS: | VmHWM:)
			sample "${what%:}, $1" "$mounted" $((kib / 1024)) MiB
			;;
		esac
	done < "/proc/$server/status"
}

# After a failure: what the programs have said.
volumes_explain() {
	[ ! -s "$log" ] || { echo "last lines of the log:"; tail "$log"; } >&2
}

# Whatever state things are in. A process that does not let go in half a
# minute is killed; then its mount is dead and can be taken away.
volumes_remove() {
	local kind tries=0
	if mountpoint -q "$mnt" || [ -n "$mounted" ]; then
		umount "$mnt" || umount -l "$mnt"
	fi 2> /dev/null
	while [ -n "$server" ] && kill -0 "$server" 2> /dev/null; do
		if [ $((tries += 1)) = 300 ]; then
			kill -KILL "$server"
		fi
		sleep 0.1
	done
	for kind in "${!loop_of[@]}"; do
		losetup --detach "${loop_of[$kind]}"
	done
}
