# SPDX-License-Identifier: GPL-2.0-or-later
# demo-lib.sh - what the two parts of the demonstration share.
# shellcheck shell=bash

set -eu
export LC_ALL=C
build=$(realpath "${BUILD:-build}")
ugfs=$build/src/daemon/ugfs
cache=$build/demo
summary=

say() {
	printf '\n\033[1m%s\033[0m\n' "$*"
}

note() { # note LABEL TEXT: a line of the summary
	summary+=$(printf '  %-34s %s' "$1" "$2")$'\n'
	printf '  %s: %s\n' "$1" "$2"
}

die() {
	echo "demo: $*" >&2
	exit 1
}

seconds() { # since $1, a reading of date +%s%N
	awk -v ns=$(($(date +%s%N) - $1)) 'BEGIN { printf "%.1f s", ns / 1e9 }'
}

# The sources of a compiler: 15,000 files, without one folder of very small
# tests. Without a network, what this machine has.
fetch_tree() {
	local deb
	[ ! -d "$cache/tree" ] || return 0
	mkdir -p "$cache/new"
	(cd "$cache" && { apt-get download -q rust-src ||
		{ apt-get update -q && apt-get download -q rust-src; }; }) \
		> "$cache/fetch.log" 2>&1 || true
	deb=$(ls "$cache"/rust-src_*.deb 2>/dev/null | head -1)
	if [ -n "$deb" ]; then
		dpkg-deb --fsys-tarfile "$deb" |
			tar x -C "$cache/new" --exclude='*/src/test/ui'
	else
		echo "no source package to be had: using /usr/include, /usr/share"
		cp -a /usr/include /usr/share "$cache/new"
	fi
	mv "$cache/new" "$cache/tree"
	tar cf "$cache/tree.tar" -C "$cache/tree" .
	(cd "$cache/tree" && find . -type f -print0 | sort -z |
		xargs -0 sha256sum) > "$cache/sums"
	(cd "$cache/tree" && find . -printf '%y %m %p %l\n' | sort) \
		> "$cache/list"
}

compare() { # compare DIRECTORY: every byte, name, mode and link
	(cd "$1" && sha256sum --quiet -c "$cache/sums") > "$work/sums" 2>&1 ||
		die "contents differ: $(head -3 "$work/sums")"
	(cd "$1" && find . -printf '%y %m %p %l\n' | sort) |
		cmp -s - "$cache/list" || die "the list of names differs"
}

referee() { # referee IMAGE
	local status=0 bad
	fsck.gfs2 -n "$1" > "$work/fsck" 2>&1 || status=$?
	bad=$(sed 's/\r*[0-9]* percent complete\.\r*//g' "$work/fsck" |
		grep -v -x -f tests/lib/fsck-clean.txt || true)
	[ "$status" = 0 ] && [ -z "$bad" ] ||
		die "fsck.gfs2 -n: exit status $status: $bad"
}
