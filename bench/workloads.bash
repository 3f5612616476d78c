# SPDX-License-Identifier: GPL-2.0-or-later
# workloads.bash: what bench/run does on a file system, and which rows of the
# table it gives. Each begins with a new file system and leaves none.

# timed COMMAND...: its duration, in seconds, in $seconds.
timed() {
	local begin=$EPOCHREALTIME
	"$@"
	seconds=$(calc "$EPOCHREALTIME - $begin")
}

# The process's own time between cpu_begin and cpu_end, in microseconds.
cpu_begin() {
	read -r user_begin sys_begin < <(volume_cpu)
}

cpu_end() {
	local user sys
	read -r user sys < <(volume_cpu)
	cpu_user=$((user - user_begin))
	cpu_sys=$((sys - sys_begin))
}

# sample_requests WHAT: of the mount that has just ended, per file of the tree.
sample_requests() {
	[ "$requests" -gt 0 ] || return 0
	sample "requests, $1" "$fs" "$(calc "$requests / $tree_files")" /file
}

# Unpack a tree, get it to the disk, list and remove it with empty caches.
#
# "to disk" lasts until sync(1) has returned and the volume is unmounted: what
# sync leaves undone is then done, so it is the same promise everywhere.
workload_tree() {
	local fs=$1 total
	volume_fresh "$fs"
	cpu_begin
	timed run tar -x -f "$work/tree.tar" -C "$mnt"
	cpu_end
	total=$seconds
	sample untar "$fs" "$seconds" s
	if [ -n "$server" ]; then
		sample "untar, process user" "$fs" \
			"$(calc "$cpu_user / $tree_files")" us/file
		sample "untar, process system" "$fs" \
			"$(calc "$cpu_sys / $tree_files")" us/file
	fi
	timed run sync -f "$mnt/tree"
	sample "untar, sync alone" "$fs" "$seconds" s
	total="$total + $seconds"
	volume_memory untar
	timed volume_rest
	sample_requests untar
	sample "untar to disk" "$fs" "$(calc "$total + $seconds")" s

	volume_resume
	timed run du -s "$mnt" > /dev/null
	sample "du cold" "$fs" "$seconds" s
	timed run du -s "$mnt" > /dev/null
	sample "du warm" "$fs" "$seconds" s
	timed run rm -rf "$mnt/tree"
	sample "rm -rf" "$fs" "$seconds" s
	total=$seconds
	volume_memory "du, rm"
	timed volume_end
	sample_requests "du twice, rm"
	sample "rm -rf to disk" "$fs" "$(calc "$total + $seconds")" s
}

# One file, written and read in blocks of 1 MiB. What the empty file system
# can do at best is without the kernel's page cache, to and from the device.
# A file before it, not measured, makes the memory of all of them warm: under
# a hypervisor the first touch of a page can cost more than writing it.
workload_dd() {
	local fs=$1
	[ "$fs" != emptyfs-own ] || return 0
	volume_fresh "$fs" direct "store=${loop_of[store]}"
	run dd if=/dev/zero of="$mnt/warm" bs=1M count=$((dd_mib / 4)) \
		conv=fsync status=none
	run rm "$mnt/warm"
	timed run dd if=/dev/zero of="$mnt/file" bs=1M count="$dd_mib" \
		conv=fsync status=none
	sample "dd write" "$fs" "$(calc "$dd_mib / $seconds")" MiB/s
	volume_rest
	volume_resume
	timed run dd if="$mnt/file" of=/dev/null bs=1M status=none
	sample "dd read" "$fs" "$(calc "$dd_mib / $seconds")" MiB/s
	volume_memory dd
	volume_end
}

# files_pass VERB DIRS: in $seconds, without the process's start.
files_pass() {
	run "$tools/manyfiles" "$1" "$mnt" "$many_files" "$2" > "$work/seconds"
	seconds=$(< "$work/seconds")
}

# files_in LABEL DIRS
files_in() {
	local verb
	for verb in create stat unlink; do
		files_pass $verb "$2"
		sample "$verb, $1" "$fs" "$(calc "$many_files / $seconds")" /s
	done
}

# The same files again, only looked at: four passes, of which the first fills
# the caches. The time that our code takes for each request of the others.
files_lookups() {
	local pass
	files_pass create 1
	volume_rest
	volume_resume
	files_pass stat 1
	cpu_begin
	for pass in 1 2 3; do
		files_pass stat 1
	done
	cpu_end
	volume_end
	[ "$requests" -ge $((3 * many_files)) ] || return 0
	sample "own code per request" "$fs" \
		"$(calc "$cpu_user / ($requests * 3 / 4)")" us
	sample "process per request" "$fs" \
		"$(calc "($cpu_user + $cpu_sys) / ($requests * 3 / 4)")" us
}

workload_files-one() {
	local fs=$1
	volume_fresh "$fs"
	files_in "1 directory" 1
	volume_memory files
	files_lookups
}

workload_files-many() {
	local fs=$1
	volume_fresh "$fs"
	files_in "$many_dirs directories" "$many_dirs"
	volume_end
}

workload_appends() {
	local fs=$1 writers each
	volume_fresh "$fs"
	for writers in 1 8; do
		each=$((append_count / writers))
		run "$tools/appends" "$mnt" $writers $each > "$work/seconds"
		seconds=$(< "$work/seconds")
		sample "append+fsync, $writers writers" "$fs" \
			"$(calc "$each * $writers / $seconds")" /s
	done
	volume_end
}

# fio_rate RW DEPTH: operations a second; fields 8 and 49 are of reads, writes.
fio_rate() {
	run fio --name=random --filename="$mnt/file" --rw="$1" --bs=4k \
		--direct=1 --ioengine=libaio --iodepth="$2" --fallocate=none \
		--size="${fio_mib}M" --time_based --runtime="$fio_seconds" \
		--output-format=terse --terse-version=3 > "$work/fio" \
		2>> "$log"
	sample "4k $1, depth $2" "$fs" \
		"$(awk -F';' 'NF > 49 { print $8 + $49 }' "$work/fio")" /s
}

workload_randio() {
	local fs=$1 rw depth
	[ "$fs" != emptyfs-own ] || return 0
	volume_fresh "$fs" direct "store=${loop_of[store]}"
	run dd if=/dev/zero of="$mnt/file" bs=1M count="$fio_mib" conv=fsync \
		status=none
	for rw in randread randwrite; do
		for depth in 1 16; do
			fio_rate $rw $depth
		done
	done
	volume_memory randio
	volume_end
}

# What our own code takes for an answer from memory, without the kernel.
workload_answers() {
	local opcode ns
	[ "$1" = ugfs ] || return 0
	volume_mkfs ugfs
	run "$tools/answers" "${loop_of[gfs2]}" "$answer_files" > "$work/ns"
	while IFS=$'\t' read -r opcode ns; do
		sample "own code, $opcode" ugfs "$(calc "$ns / 1000")" us
	done < "$work/ns"
}
