/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mount_print.c - see mount_print.h.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "daemon/mount_print.h"

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "?";
}

static long long number_of(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static bool has(const json_t *object, const char *key)
{
	return json_object_get(object, key);
}

static bool is_true(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

/* "3.2 s", "5 min 7 s", "2 h 5 min", "3 d 4 h" */
static void print_time(FILE *out, long long ms)
{
	long long s = ms / 1000;

	if (s < 60)
		fprintf(out, "%lld.%lld s", s, ms / 100 % 10);
	else if (s < 3600)
		fprintf(out, "%lld min %lld s", s / 60, s % 60);
	else if (s < 86400)
		fprintf(out, "%lld h %lld min", s / 3600, s / 60 % 60);
	else
		fprintf(out, "%lld d %lld h", s / 86400, s / 3600 % 24);
}

static void print_volume(FILE *out, const json_t *st)
{
	fprintf(out, "  device %s\n", text_of(st, "device"));
	if (!has(st, "format"))
		return;
	fprintf(out, "  %s \"%s\", ", text_of(st, "lockproto"),
		text_of(st, "locktable"));
	if (is_true(st, "spectator"))
		fputs("spectator", out);
	else
		fprintf(out, "journal %lld", number_of(st, "journal"));
	fprintf(out, " of %lld%s, format %lld, blocks of %lld bytes\n",
		number_of(st, "journals"),
		is_true(st, "read_only") ? ", read-only" : "",
		number_of(st, "format"), number_of(st, "block_size"));
	fprintf(out, "  uuid %s\n", text_of(st, "uuid"));
}

static void print_faults(FILE *out, const json_t *st)
{
	if (has(st, "withdrawn")) {
		fputs("  withdrawn ", out);
		print_time(out, number_of(st, "withdrawn_for_ms"));
		fprintf(out, " ago, every access fails: %s\n",
			text_of(st, "withdrawn"));
	}
	if (has(st, "frozen")) {
		fputs("  frozen for ", out);
		print_time(out, number_of(st, "frozen_for_ms"));
		fprintf(out, " by %s: all changes wait\n",
			text_of(st, "frozen"));
	}
	if (has(st, "expelled"))
		fprintf(out, "  out of the cluster: %s\n",
			text_of(st, "expelled"));
}

static void print_members(FILE *out, const json_t *st)
{
	const json_t *cluster = json_object_get(st, "cluster"), *m;
	const json_t *members = json_object_get(cluster, "members");
	size_t i;

	if (!cluster)
		return;
	fprintf(out, "  cluster: %s, generation %lld, members %zu:\n",
		text_of(cluster, "state"), number_of(cluster, "generation"),
		json_array_size(members));
	json_array_foreach(members, i, m)
	{
		const char *state = text_of(m, "state");

		fprintf(out, "    node %lld %s", number_of(m, "node"),
			text_of(m, "name"));
		if (number_of(m, "instance"))
			fprintf(out, " instance %lld",
				number_of(m, "instance"));
		if (number_of(m, "slot"))
			fprintf(out, ", journal %lld",
				number_of(m, "slot") - 1);
		fprintf(out, ": %s\n",
			!strcmp(state, "self") ? "this node" : state);
	}
}

static void print_waits(FILE *out, const json_t *st)
{
	const json_t *waits = json_object_get(st, "waiting_for"), *wait;
	long long requests = number_of(st, "requests_overdue");
	long long glocks = number_of(st, "glocks_overdue");
	size_t i;

	if (!json_array_size(waits)) {
		fputs("  nothing is waited for\n", out);
		return;
	}
	fputs("  waits for:\n", out);
	json_array_foreach(waits, i, wait)
	{
		fprintf(out, "    %s (for ", text_of(wait, "text"));
		print_time(out, number_of(wait, "for_ms"));
		fputs(")\n", out);
	}
	if (requests || glocks)
		fprintf(out,
			"    altogether %lld request%s and %lld glock wait%s "
			"of more than 2 s\n",
			requests, requests == 1 ? "" : "s", glocks,
			glocks == 1 ? "" : "s");
}

void mount_print_status(FILE *out, const json_t *st)
{
	fprintf(out, "%s: %s for ", text_of(st, "directory"),
		text_of(st, "state"));
	print_time(out, number_of(st, "state_for_ms"));
	fprintf(out, ", process %lld, ugfs %s\n", number_of(st, "pid"),
		text_of(st, "version"));
	print_volume(out, st);
	print_faults(out, st);
	print_members(out, st);
	print_waits(out, st);
}

/* ---- counters ---- */

/* The bound in us that a share of the times counted stayed below. */
static uint64_t percentile_us(const json_t *slots, unsigned percent)
{
	uint64_t total = 0, seen = 0;
	const json_t *slot;
	size_t i;

	json_array_foreach(slots, i, slot) total +=
		(uint64_t)json_integer_value(slot);
	json_array_foreach(slots, i, slot)
	{
		seen += (uint64_t)json_integer_value(slot);
		if (total && seen * 100 >= total * percent)
			return ((uint64_t)2 << i) / 1000 + 1;
	}
	return 0;
}

void mount_print_lockstats(FILE *out, const json_t *stats)
{
	static const struct {
		const char *key;
		const char *label;
	} columns[] = {
		{ "unlocked", "UN" },	      { "shared", "SH" },
		{ "deferred", "DF" },	      { "exclusive", "EX" },
		{ "requests", "requests" },   { "busy", "busy" },
		{ "cancelled", "cancelled" }, { "callbacks", "callbacks" },
		{ "delayed", "delayed" },     { "given_away", "given" },
		{ "put_away", "idle" },
	};
	const json_t *st;
	const char *type;

	fprintf(out, "%-8s", "type");
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		fprintf(out, " %9s", columns[i].label);
	fputs("  wait 50%/99% us\n", out);
	json_object_foreach((json_t *)stats, type, st)
	{
		const json_t *waits = json_object_get(st, "wait_ns");

		fprintf(out, "%-8s", type);
		for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]);
		     i++)
			fprintf(out, " %9lld", number_of(st, columns[i].key));
		fprintf(out, "  %" PRIu64 "/%" PRIu64 "\n",
			percentile_us(waits, 50), percentile_us(waits, 99));
	}
}

static void print_counters(FILE *out, const json_t *plocks)
{
	static const char *const counters[] = {
		"calls",    "answered_at_once",
		"messages", "moves",
		"lends",    "recalls",
		"bounces",  "deadlocks",
		"delayed",  "files",
		"locks",    "waits",
	};
	const json_t *counts = json_object_get(plocks, "counters");
	const json_t *answers = json_object_get(plocks, "answer_ns");
	const json_t *waits = json_object_get(plocks, "wait_ns");

	fprintf(out, "%s%s%s\n", text_of(plocks, "node"),
		is_true(plocks, "quorate") ? "" : ", no quorum",
		is_true(plocks, "failed") ? ", failed" : "");
	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		fprintf(out, "  %s %lld%s", counters[i],
			number_of(counts, counters[i]), i % 6 == 5 ? "\n" : "");
	fprintf(out, "  answers 50%%/99%% us %" PRIu64 "/%" PRIu64,
		percentile_us(answers, 50), percentile_us(answers, 99));
	fprintf(out, "  waits 50%%/99%% us %" PRIu64 "/%" PRIu64 "\n",
		percentile_us(waits, 50), percentile_us(waits, 99));
}

static void print_range(FILE *out, const json_t *lock)
{
	fprintf(out, "  %-5s %-5s %-5s %lld-", text_of(lock, "table"),
		text_of(lock, "kind"), text_of(lock, "mode"),
		number_of(lock, "start"));
	if (json_is_integer(json_object_get(lock, "end")))
		fprintf(out, "%lld", number_of(lock, "end"));
	else
		fputs("end", out);
}

static void print_plock(FILE *out, const json_t *lock, const char *how)
{
	print_range(out, lock);
	fprintf(out, "  %s pid %lld owner %s%s\n", text_of(lock, "node"),
		number_of(lock, "pid"), text_of(lock, "owner"), how);
}

static void print_file(FILE *out, const json_t *file)
{
	const json_t *lock;
	size_t i;

	fprintf(out, "inode %lld: serialiser %s, home %s%s%s\n",
		number_of(file, "inode"),
		has(file, "serialiser") && !json_is_null(json_object_get(
						   file, "serialiser"))
			? text_of(file, "serialiser")
			: "not known",
		text_of(file, "home"),
		is_true(file, "lent") ? ", lent to this node" : "",
		is_true(file, "closed") ? ", closed until the dead are repaired"
					: "");
	json_array_foreach(json_object_get(file, "locks"), i, lock)
		print_plock(out, lock, "");
	json_array_foreach(json_object_get(file, "waits"), i, lock)
		print_plock(out, lock, " waits");
}

static void print_calls(FILE *out, const json_t *calls)
{
	const json_t *call;
	size_t i;

	if (json_array_size(calls))
		fputs("under way from this node:\n", out);
	json_array_foreach(calls, i, call)
	{
		print_range(out, call);
		fprintf(out, "  inode %lld %s pid %lld owner %s for ",
			number_of(call, "inode"), text_of(call, "op"),
			number_of(call, "pid"), text_of(call, "owner"));
		print_time(out, number_of(call, "for_ms"));
		fputc('\n', out);
	}
}

void mount_print_plocks(FILE *out, const json_t *plocks)
{
	const json_t *file;
	size_t i;

	print_counters(out, plocks);
	json_array_foreach(json_object_get(plocks, "files"), i, file)
		print_file(out, file);
	print_calls(out, json_object_get(plocks, "calls"));
}
