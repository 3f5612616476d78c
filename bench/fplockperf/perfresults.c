/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfresults.c - lines or JSON.
 */
#include <errno.h>

#include "perfresults.h"

int perf_results_begin(struct perf_results *results,
		       const struct perf_args *args, FILE *out)
{
	*results = (struct perf_results){ .args = args, .out = out };
	setvbuf(out, NULL, _IOLBF, 0); /* a run can take minutes */
	if (!args->json)
		return 0;
	results->sets = json_array();
	return results->sets ? 0 : -ENOMEM;
}

void perf_results_set(struct perf_results *results, enum file_lock_kind kind,
		      unsigned files)
{
	if (!results->sets)
		return;
	results->set =
		json_pack("{s:s, s:i, s:[]}", "kind", file_lock_name(kind),
			  "files", (int)files, "passes_s");
	json_array_append_new(results->sets, results->set);
	results->passes = json_object_get(results->set, "passes_s");
}

void perf_results_pass(struct perf_results *results, enum file_lock_kind kind,
		       unsigned files, unsigned iteration, double seconds)
{
	if (results->sets)
		json_array_append_new(results->passes, json_real(seconds));
	else
		fprintf(results->out,
			"%s: filecount=%u iteration=%u elapsed time=%.3f s\n",
			file_lock_name(kind), files, iteration, seconds);
}

void perf_results_total(struct perf_results *results, double seconds)
{
	if (results->sets)
		json_object_set_new(results->set, "total_s",
				    json_real(seconds));
	else
		fprintf(results->out, "total elapsed time=%.3f s\n", seconds);
}

void perf_results_delay(struct perf_results *results)
{
	if (!results->sets)
		fprintf(results->out, "%u sec delay...\n",
			results->args->delay_sec);
}

int perf_results_end(struct perf_results *results, bool complete)
{
	const struct perf_args *args = results->args;
	json_t *all;

	if (results->sets) {
		all = json_pack(
			"{s:s, s:s, s:b, s:b, s:i, s:i, s:b, s:o}", "program",
			"fplockperf", "version", UGFS_VERSION, "shared",
			args->shared, "reopen", args->reopen, "iterations",
			(int)args->iterations, "delay_s", (int)args->delay_sec,
			"complete", complete, "sets", results->sets);
		results->sets = NULL;
		if (!all)
			return -ENOMEM;
		json_dumpf(all, results->out,
			   JSON_INDENT(2) | JSON_REAL_PRECISION(9));
		fputc('\n', results->out);
		json_decref(all);
	}
	return fflush(results->out) || ferror(results->out) ? -EIO : 0;
}
