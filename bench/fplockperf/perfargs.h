/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfargs.h - the command line of fplockperf.
 *
 * Pure but for getopt(). Ownership: dir is of argv.
 * Source: docs/man/fplockperf.1.
 */
#ifndef UG_BENCH_PERFARGS_H
#define UG_BENCH_PERFARGS_H

#include <stdio.h>

#include "filelock.h"

#define PERF_COUNTS_MAX 32u
#define PERF_FILES_MAX 1000000u
#define PERF_ITERATIONS_MAX 100000u
#define PERF_DELAY_MAX 86400u /* seconds */

enum perf_action {
	PERF_RUN,
	PERF_HELP,
	PERF_VERSION,
};

struct perf_args {
	enum perf_action action;
	const char *dir;
	unsigned counts[PERF_COUNTS_MAX]; /* of files, one set each */
	unsigned counts_used;
	unsigned iterations; /* of each set */
	unsigned delay_sec;  /* between sets */
	enum file_lock_kind kinds[2];
	unsigned kinds_used;
	bool shared;
	bool reopen; /* each file is opened for its lock */
	bool json;
};

/* 0, or -EINVAL with a sentence in why. */
int perf_args_parse(int argc, char **argv, struct perf_args *args, char *why,
		    size_t why_len);

void perf_args_help(FILE *out);

#endif
