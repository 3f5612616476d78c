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
