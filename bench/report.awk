# SPDX-License-Identifier: GPL-2.0-or-later
# report.awk - figures of bench/run, one a line (fs, work, run, value, unit), to
# a table of medians and ratios, and to a JSON file with every figure.

{
	if (!($2 in known)) {
		known[$2] = 1
		order[++works] = $2
		unit[$2] = $5
	}
	values[$1, $2] = values[$1, $2] " " $4
	line[NR] = sprintf("    {\"fs\": \"%s\", \"work\": \"%s\", \"run\": %d, " \
		"\"value\": %s, \"unit\": \"%s\"}", $1, $2, $3, $4, $5)
}

function median(fs, work,    v, n, i, j, t) {
	n = split(values[fs, work], v, " ")
	if (!n)
		return ""
	for (i = 2; i <= n; i++)
		for (j = i; j > 1 && v[j - 1] + 0 > v[j] + 0; j--) {
			t = v[j]
			v[j] = v[j - 1]
			v[j - 1] = t
		}
	return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
}

function cell(x) {
	return x == "" ? "-" : x + 0 >= 100 ? sprintf("%.0f", x) :
		x + 0 >= 10 ? sprintf("%.1f", x) : sprintf("%.3f", x)
}

function ratio(a, b) {
	return a == "" || b == "" || b + 0 == 0 ? "-" : sprintf("%.2f", a / b)
}

END {
	printf "\n%-20s %-4s %9s %9s %9s %9s  %s\n", "median of " runs, "",
		"ext4", "empty", "ugfs", "ugfs-own",
		"ugfs/ext4  ugfs/empty  own/ext4  own/empty"
	for (i = 1; i <= works; i++) {
		w = order[i]
		e = median("ext4", w)
		m = median("empty", w)
		u = median("ugfs", w)
		o = median("ugfs-own", w)
		printf "%-20s %-4s %9s %9s %9s %9s  %9s  %10s  %8s  %9s\n", w,
			unit[w], cell(e), cell(m), cell(u), cell(o),
			ratio(u, e), ratio(u, m), ratio(o, e), ratio(o, m)
	}
	printf "{\n  \"commit\": \"%s\",\n  \"kernel\": \"%s\",\n" \
		"  \"cpus\": %d,\n  \"runs\": %d,\n  \"scale_percent\": %d,\n" \
		"  \"figures\": [\n", commit, kernel, cpus, runs, scale > json
	for (i = 1; i <= NR; i++)
		printf "%s%s\n", line[i], i < NR ? "," : "" > json
	printf "  ]\n}\n" > json
}
