/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfresults.h - what fplockperf prints: lines as it goes on, or one JSON
 * object at the end.
 *
 * The lines are those of the program of 2008 whose output is all that is left
 * of it; scripts that read them go on to work. Source: docs/man/fplockperf.1.
 */
#ifndef UG_BENCH_PERFRESULTS_H
#define UG_BENCH_PERFRESULTS_H

#include <jansson.h>
#include <stdio.h>

#include "perfargs.h"

struct perf_results {
	const struct perf_args *args;
	FILE *out;
	json_t *sets;	/* NULL: lines */
	json_t *passes; /* of the set under way; borrowed from sets */
	json_t *set;
};

/* -ENOMEM. args and out are borrowed until perf_results_end(). */
int perf_results_begin(struct perf_results *results,
		       const struct perf_args *args, FILE *out);

void perf_results_set(struct perf_results *results, enum file_lock_kind kind,
		      unsigned files);
void perf_results_pass(struct perf_results *results, enum file_lock_kind kind,
		       unsigned files, unsigned iteration, double seconds);
void perf_results_total(struct perf_results *results, double seconds);
void perf_results_delay(struct perf_results *results);

/* -EIO if not all could be written. complete: nothing has failed. */
int perf_results_end(struct perf_results *results, bool complete);

#endif
