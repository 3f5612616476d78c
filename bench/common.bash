# SPDX-License-Identifier: GPL-2.0-or-later
# common.bash: what compare and cluster share. $me names the program.

# In a mount namespace of its own: a mount that another one has inherited would
# stay in use when it is unmounted here.
in_own_namespace() {
	[ -z "${UGFS_BENCH_UNSHARED:-}" ] || return 0
	export UGFS_BENCH_UNSHARED=1
	exec unshare --mount --propagation private "$me" "$@"
}

die() {
	echo "$me: $*" >&2
	exit 1
}

# need PROGRAM...: and to be root.
need() {
	local program
	[ "$(id -u)" = 0 ] || die "only root can mount volumes"
	for program in "$@"; do
		[ -x "$program" ] || die "$program has not been built"
	done
}

calc() {
	awk "BEGIN { printf \"%.6f\", $1 }"
}

# sample ROW COLUMN VALUE UNIT: a figure of $round, into $samples.
sample() {
	printf '%s\t%s\t%s\t%s\t%s\n' "$round" "$1" "$2" "$3" "$4" >> "$samples"
}

# The first lines of what the table begins with.
machine() {
	printf 'date\t%s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
	printf 'commit\t%s\n' "$(git rev-parse --short HEAD 2> /dev/null)"
	printf 'kernel\t%s\n' "$(uname -r)"
	printf 'cpus\t%s\n' "$(nproc)"
	printf 'memory\t%s MiB\n' \
		"$(awk '/^MemTotal/ { print int($2 / 1024) }' /proc/meminfo)"
	printf 'load at start\t%s\n' "$(cut -d' ' -f1-3 /proc/loadavg)"
	printf 'rounds\t%s\n' "$rounds"
}
