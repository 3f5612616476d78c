/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlm_rows.c - what "ugfs dlm bench" measures and prints.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "daemon/dlm_bench.h"
#include "daemon/dlm_cmd.h"
#include "daemon/dlm_echo.h"
#include "daemon/dlm_load.h"
#include "daemon/exitcode.h"

/* Local operations take less than asking the clock twice. */
#define LOCAL_SAMPLE 16u
/* Of many, each notes times in a table of its own: that costs memory. */
#define MANY_SAMPLE 8u

/* Rows */

static void print_head(const struct bench *b)
{
	if (b->json)
		return;
	printf("%s: %u members, %u thread%s, many = %u under way, %.1f s a "
	       "row; times in microseconds\n\n"
	       "%-34s %10s %7s %8s %8s %8s %8s %9s\n",
	       b->name, b->members, b->threads, b->threads == 1 ? "" : "s",
	       b->threads * b->depth, b->time_ms / 1000.0, "", "per second",
	       "CPU", "mean", "p50", "p90", "p99", "max");
	fflush(stdout);
}

/* cpu_ns: of this process, for each pair, or each echo. */
static void add_row(struct bench *b, const char *name, double per_second,
		    double cpu_ns, const struct latency *l)
{
	double p50 = (double)latency_percentile(l, 50);
	double p90 = (double)latency_percentile(l, 90);
	double p99 = (double)latency_percentile(l, 99);

	if (!l->count)
		return;
	json_array_append_new(
		b->rows,
		json_pack("{s:s,s:f,s:f,s:f,s:f,s:f,s:f,s:f}", "name", name,
			  "per_second", per_second, "cpu_ns", cpu_ns, "mean_ns",
			  latency_mean(l), "p50_ns", p50, "p90_ns", p90,
			  "p99_ns", p99, "max_ns", (double)l->max_ns));
	if (b->json)
		return;
	printf("%-34s %10.0f %7.2f %8.2f %8.2f %8.2f %8.2f %9.1f", name,
	       per_second, cpu_ns / 1000, latency_mean(l) / 1000, p50 / 1000,
	       p90 / 1000, p99 / 1000, (double)l->max_ns / 1000);
	if (b->echo_ns > 0 && strstr(name, "one at a time"))
		printf("  %.2f echo", p50 / b->echo_ns);
	putchar('\n');
	fflush(stdout);
}

struct row {
	const char *up, *down;
	enum load_kind kind;
	const char *prefix;
	bool many;
	unsigned sample;
	uint64_t first, names;
};

static bool is_wanted(const struct bench *b, const struct row *row)
{
	return !b->only || strstr(row->up, b->only) ||
	       strstr(row->down, b->only);
}

/* The names used up, or negative. */
static int64_t run_row(struct bench *b, const struct row *row)
{
	struct load_config config = {
		.ls = b->ls,
		.kind = row->kind,
		.prefix = row->prefix,
		.first = row->first,
		.names = row->names,
		.threads = row->many ? b->threads : 1,
		.depth = row->many ? b->depth : 1,
		.time_ms = b->time_ms,
		.sample = row->sample,
	};
	struct load_result *result = malloc(sizeof(*result));
	double rate, cpu_ns;
	int64_t used;
	int err = result ? load_run(&config, result) : -ENOMEM;

	if (err) {
		dlm_say(BENCH_VERB, 0, "%s: %s", row->up, strerror(-err));
		free(result);
		return err;
	}
	rate = (double)result->pairs * 1e9 / (double)result->ns;
	cpu_ns = result->pairs ? (double)result->cpu_ns / (double)result->pairs
			       : 0;
	add_row(b, row->up, rate, cpu_ns, &result->up);
	add_row(b, row->down, rate, cpu_ns, &result->down);
	used = (int64_t)result->used;
	free(result);
	return used;
}

static bool local_rows(struct bench *b)
{
	char known[UGDLM_NAME_MAX], fresh[UGDLM_NAME_MAX];
	const struct row rows[] = {
		{ "here, known: lock", "here, known: unlock", LOAD_LOCK, known,
		  false, LOCAL_SAMPLE, 0, 0 },
		{ "here, known: convert NL to EX",
		  "here, known: convert EX to NL", LOAD_CONVERT, known, false,
		  LOCAL_SAMPLE, 0, 0 },
		{ "new: lock, one at a time", "new: unlock", LOAD_NEW, fresh,
		  false, 1, 0, UINT64_MAX / 4 },
		{ "new: lock, many", "new: unlock, many", LOAD_NEW, fresh, true,
		  MANY_SAMPLE, UINT64_MAX / 2, UINT64_MAX / 4 },
	};

	snprintf(known, sizeof(known), "bench.known.%d.", (int)getpid());
	snprintf(fresh, sizeof(fresh), "bench.new.%d.", (int)getpid());
	for (size_t i = 0; i < UG_ARRAY_SIZE(rows); i++)
		if (is_wanted(b, &rows[i]) && run_row(b, &rows[i]) < 0)
			return false;
	return true;
}

static bool remote_rows(struct bench *b, const struct holder *h)
{
	char prefix[UGDLM_NAME_MAX], hold[UGDLM_NAME_MAX];
	struct row rows[] = {
		{ "there, new: lock, one at a time",
		  "there, new: unlock, one at a time", LOAD_NEW, prefix, false,
		  1, 0, h->names / 2 },
		{ "there, new: lock, many", "there, new: unlock, many",
		  LOAD_NEW, prefix, true, MANY_SAMPLE, h->names / 2,
		  h->names / 2 },
		{ "there, known: lock, one at a time",
		  "there, known: unlock, one at a time", LOAD_LOCK, prefix,
		  false, 1, 0, 0 },
		{ "there, convert up, one at a time",
		  "there, convert down, one at a time", LOAD_CONVERT, prefix,
		  false, 1, 0, 0 },
		{ "there, known: lock, many", "there, known: unlock, many",
		  LOAD_LOCK, prefix, true, MANY_SAMPLE, 0, 0 },
		{ "there, convert up, many", "there, convert down, many",
		  LOAD_CONVERT, prefix, true, MANY_SAMPLE, 0, 0 },
	};

	bench_names(prefix, hold, sizeof(prefix), h->node, h->instance);
	for (size_t i = 0; i < UG_ARRAY_SIZE(rows); i++)
		if (is_wanted(b, &rows[i]) && run_row(b, &rows[i]) < 0)
			return false;
	return true;
}

static bool echo_row(struct bench *b, const struct holder *h)
{
	struct latency *l = calloc(1, sizeof(*l));
	uint64_t ns = 1, cpu_ns = load_cpu_ns();
	int err = l ? echo_measure(h->address, h->port, b->time_ms, l, &ns)
		    : -ENOMEM;

	if (!err) {
		b->echo_ns = (double)latency_percentile(l, 50);
		cpu_ns = load_cpu_ns() - cpu_ns;
		add_row(b, "TCP echo", (double)l->count * 1e9 / (double)ns,
			(double)cpu_ns / (double)(l->count ? l->count : 1), l);
	} else {
		dlm_say(BENCH_VERB, 0, "echo at %s port %u: %s", h->address,
			h->port, strerror(-err));
	}
	free(l);
	return !err;
}

/* Memory */

static uint64_t resident_bytes(void)
{
	unsigned long long pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	if (file && fscanf(file, "%*u %llu", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static bool memory_row(struct bench *b, struct ugdlm_lksb *held)
{
	char prefix[UGDLM_NAME_MAX];
	struct load_config config = {
		.ls = b->ls,
		.kind = LOAD_HOLD,
		.prefix = prefix,
		.names = b->held,
		.held = held,
		.threads = 1,
		.depth = b->depth,
		.sample = 1,
	};
	struct load_result *result = malloc(sizeof(*result));
	uint64_t before = resident_bytes(), after;
	int err = result ? 0 : -ENOMEM;
	double each;

	snprintf(prefix, sizeof(prefix), "bench.held.%d.", (int)getpid());
	if (!err)
		err = load_run(&config, result);
	if (err) {
		dlm_say(BENCH_VERB, 0, "held: %s", strerror(-err));
		free(result);
		return false;
	}
	after = resident_bytes();
	each = after > before ? (double)(after - before) / b->held : 0;
	json_array_append_new(
		b->rows,
		json_pack("{s:s,s:i,s:f,s:f}", "name", "held", "locks",
			  (int)b->held, "bytes_each", each, "per_second",
			  (double)result->pairs * 1e9 / (double)result->ns));
	if (!b->json)
		printf("\n%u locks held, each of its own resource: %.0f bytes "
		       "each, with everything; taken at %.0f per second\n",
		       b->held, each,
		       (double)result->pairs * 1e9 / (double)result->ns);
	free(result);
	return true;
}

/* Measuring */

static bool read_holder(struct bench *b, const json_t *m)
{
	struct holder *h = &b->holders[b->holders_count];
	char prefix[UGDLM_NAME_MAX], name[UGDLM_NAME_MAX];
	const char *address = json_string_value(json_object_get(m, "address"));
	struct ugdlm_lksb lksb = { 0 };

	h->node = json_integer_value(json_object_get(m, "node"));
	h->instance = json_integer_value(json_object_get(m, "instance"));
	snprintf(h->address, sizeof(h->address), "%s", address ? address : "");
	bench_names(prefix, name, sizeof(prefix), h->node, h->instance);
	if (!bench_lock(b, name, UGDLM_NL, false, &lksb))
		return false;
	memcpy(&h->port, lksb.lvb, sizeof(h->port));
	memcpy(&h->names, lksb.lvb + 4, sizeof(h->names));
	b->holders_count += lksb.lvb_valid && h->port && h->names;
	b->ended = false;
	return bench_finish(b, ugdlm_unlock(b->ls, &lksb, 0, false));
}

static bool find_holders(struct bench *b)
{
	json_t *status = bench_status(b);
	const json_t *m;
	bool ok = status;
	size_t i;

	b->members =
		(unsigned)json_array_size(json_object_get(status, "members"));
	json_array_foreach(json_object_get(status, "members"), i, m)
	{
		const char *state =
			json_string_value(json_object_get(m, "state"));

		if (ok && state && !strcmp(state, "member") &&
		    b->holders_count < HOLDERS_MAX)
			ok = read_holder(b, m);
	}
	json_decref(status);
	return ok;
}

static int print_result(const struct bench *b)
{
	json_t *root;
	int code;

	if (!b->json)
		return EXIT_OK;
	root = json_pack("{s:s,s:i,s:i,s:i,s:f,s:O}", "lockspace", b->name,
			 "members", (int)b->members, "threads", (int)b->threads,
			 "many", (int)(b->threads * b->depth), "seconds",
			 b->time_ms / 1000.0, "rows", b->rows);
	code = dlm_print_json(root);
	json_decref(root);
	return code;
}

int bench_measure(struct bench *b)
{
	ug_autofree struct ugdlm_lksb *held = NULL;
	bool ok = find_holders(b);
	int code;

	/* Touched now, so that it does not count. */
	if (b->held) {
		held = malloc(b->held * sizeof(*held));
		if (!held)
			return dlm_say(BENCH_VERB, EXIT_SYSTEM,
				       "out of memory");
		memset(held, 0xff, b->held * sizeof(*held));
		memset(held, 0, b->held * sizeof(*held));
	}
	print_head(b);
	/* First, while nothing else has grown. */
	if (ok && held)
		ok = memory_row(b, held);
	if (ok)
		ok = local_rows(b);
	if (ok && !b->holders_count)
		dlm_say(BENCH_VERB, 0,
			"nobody holds: no locks that are mastered "
			"elsewhere (\"ugfs dlm bench --hold\")");
	else if (ok)
		ok = echo_row(b, &b->holders[0]) &&
		     remote_rows(b, &b->holders[0]);
	code = ok ? print_result(b) : EXIT_MOUNT;
	if (ugdlm_leave(b->ls, false) && !code)
		code = EXIT_INTERNAL;
	b->ls = NULL;
	return code;
}
