#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# fplockperf.sh PROGRAM: its lines, its JSON, its exit codes, and that it leaves
# nothing behind.
set -eu
program=$1
dir=$(mktemp -d "${TMPDIR:-/tmp}/fplockperf-test.XXXXXX")
trap 'rm -rf "$dir"' EXIT

fail() {
	echo "FAIL: $*" >&2
	exit 1
}

# lines FILE REGEX...: exactly these lines, in this order.
lines() {
	local file=$1 line regex
	shift
	exec 3< "$file"
	for regex in "$@"; do
		IFS= read -r line <&3 || fail "no line for $regex"
		[[ $line =~ ^$regex$ ]] || fail "\"$line\" is not $regex"
	done
	! IFS= read -r line <&3 || fail "\"$line\" is one too many"
	exec 3<&-
}

mkdir "$dir/files"
s='[0-9]+\.[0-9]{3} s'
(cd "$dir/files" && "$program" -n 3,2 -i 2 1) > "$dir/out"
lines "$dir/out" \
	"flock: filecount=3 iteration=0 elapsed time=$s" \
	"flock: filecount=3 iteration=1 elapsed time=$s" \
	"total elapsed time=$s" '1 sec delay\.\.\.' \
	"flock: filecount=2 iteration=0 elapsed time=$s" \
	"flock: filecount=2 iteration=1 elapsed time=$s" \
	"total elapsed time=$s" '1 sec delay\.\.\.' \
	"plock: filecount=3 iteration=0 elapsed time=$s" \
	"plock: filecount=3 iteration=1 elapsed time=$s" \
	"total elapsed time=$s" '1 sec delay\.\.\.' \
	"plock: filecount=2 iteration=0 elapsed time=$s" \
	"plock: filecount=2 iteration=1 elapsed time=$s" \
	"total elapsed time=$s"

"$program" -d "$dir/files" -n 2 -i 1 -t ofd -s -r > "$dir/out"
lines "$dir/out" "ofd: filecount=2 iteration=0 elapsed time=$s" \
	"total elapsed time=$s"

"$program" -d "$dir/files" -n 2,1 -i 2 -j 0 > "$dir/out"
tr -d ' \n' < "$dir/out" > "$dir/flat"
n='[0-9.e-]+'
pair="\"passes_s\":\[$n,$n\],\"total_s\":$n"
want="\"complete\":true,\"sets\":\["
for set in flock,2 flock,1 plock,2 plock,1; do
	want+="\{\"kind\":\"${set%,*}\",\"files\":${set#*,},$pair\},"
done
[[ $(< "$dir/flat") =~ ${want%,}\]\}$ ]] ||
	fail "JSON: $(cat "$dir/out")"

# More files than descriptors: this is root, or -r is told of.
if (ulimit -n 64 && "$program" -d "$dir/files" -n 100 -i 1 -t flock) \
	> "$dir/out" 2> "$dir/err"; then
	[ "$(id -u)" = 0 ] || fail "100 files with 64 descriptors"
else
	[ $? = 2 ] || fail "exit code of too many files"
	grep -q 'with -r one is enough' "$dir/err" || fail "$(cat "$dir/err")"
fi
(ulimit -n 64 && "$program" -d "$dir/files" -n 100 -i 1 -t flock -r) \
	> "$dir/out" || fail "-r needs many descriptors"

code=0
"$program" -t what > "$dir/out" 2> "$dir/err" || code=$?
[ $code = 1 ] && [ ! -s "$dir/out" ] || fail "wrong usage: code $code"
code=0
"$program" -d "$dir/absent" 2> "$dir/err" || code=$?
[ $code = 2 ] || fail "no directory: code $code"
grep -q "$dir/absent: No such file" "$dir/err" || fail "$(cat "$dir/err")"
code=0
"$program" -d "$dir/files" -n 1 -i 1 > /dev/full 2> "$dir/err" || code=$?
[ $code = 2 ] || fail "full output: code $code"

# A signal ends a delay, and its files go.
"$program" -d "$dir/files" -n 1 -i 1 1000 > "$dir/out" &
pid=$!
until grep -q 'sec delay' "$dir/out"; do sleep 0.01; done
[ -n "$(ls "$dir/files")" ] || fail "no files while it runs"
kill -TERM $pid
code=0
wait $pid || code=$?
[ $code = 143 ] || fail "after SIGTERM: code $code"
[ -z "$(ls -A "$dir/files")" ] || fail "left: $(ls "$dir/files")"
