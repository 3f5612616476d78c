/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlm_print.c - see dlm_print.h.
 */
#include <stdbool.h>
#include <string.h>

#include "daemon/dlm_print.h"

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "?";
}

static long long number_of(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static bool is_true(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

/* Status */

static void print_link(FILE *out, const json_t *link)
{
	if (!link)
		return;
	fprintf(out,
		"      link %s, heard %lld ms ago, sent %lld, received %lld, "
		"connections %lld",
		is_true(link, "connected") ? "up" : "down",
		number_of(link, "silent_ms"), number_of(link, "sent"),
		number_of(link, "received"), number_of(link, "connections"));
	if (number_of(link, "queued_bytes"))
		fprintf(out, ", %lld bytes wait",
			number_of(link, "queued_bytes"));
	fputc('\n', out);
}

static void print_member(FILE *out, const json_t *m)
{
	const json_t *address = json_object_get(m, "address");

	fprintf(out, "  %lld %s", number_of(m, "node"), text_of(m, "name"));
	if (number_of(m, "instance"))
		fprintf(out, " instance %lld", number_of(m, "instance"));
	fprintf(out, " slot %lld pid %lld", number_of(m, "slot"),
		number_of(m, "pid"));
	if (address)
		fprintf(out, " at %s port %lld", json_string_value(address),
			number_of(m, "port"));
	fprintf(out, ": %s\n", text_of(m, "state"));
	fprintf(out, "      incarnation %s\n", text_of(m, "incarnation"));
	print_link(out, json_object_get(m, "link"));
}

static void print_waits(FILE *out, const json_t *waits)
{
	const json_t *wait;
	size_t i;

	if (json_array_size(waits))
		fputs("waits for:\n", out);
	json_array_foreach(waits, i, wait)
		fprintf(out, "  %s (since %lld.%lld s)\n",
			text_of(wait, "text"), number_of(wait, "for_ms") / 1000,
			number_of(wait, "for_ms") / 100 % 10);
}

static void print_hand(FILE *out, const json_t *locks)
{
	const json_t *lock;
	size_t i;

	if (json_array_size(locks))
		fputs("held by hand:\n", out);
	json_array_foreach(locks, i, lock)
	{
		const json_t *blocks = json_object_get(lock, "blocks");
		const json_t *mode = json_object_get(lock, "mode");

		fprintf(out, "  lock %lld \"%s\" %s", number_of(lock, "id"),
			text_of(lock, "resource"),
			mode ? json_string_value(mode) : "waits");
		if (blocks)
			fprintf(out, ", somebody waits for %s",
				json_string_value(blocks));
		fputc('\n', out);
	}
}

static void print_slots(FILE *out, const json_t *slots)
{
	const json_t *slot;
	size_t i;

	if (json_array_size(slots))
		fputs("slots held for members that are gone:", out);
	json_array_foreach(slots, i, slot)
		fprintf(out, " %lld", json_integer_value(slot));
	if (json_array_size(slots))
		fputc('\n', out);
}

void dlm_print_status(FILE *out, const json_t *status)
{
	const json_t *member, *members = json_object_get(status, "members");
	size_t i;

	fprintf(out, "%s: %s, process %lld, ugfs %s\n",
		text_of(status, "lockspace"), text_of(status, "state"),
		number_of(status, "pid"), text_of(status, "version"));
	if (!members)
		return;
	if (json_object_get(status, "lost"))
		fprintf(out, "lost: %s\n", text_of(status, "lost"));
	fprintf(out, "generation %lld, %s", number_of(status, "generation"),
		is_true(status, "quorate") ? "quorate, lease for "
					   : "not quorate or without a lease");
	if (is_true(status, "quorate"))
		fprintf(out, "%lld ms", number_of(status, "lease_ms"));
	fprintf(out, "\nmembers %zu:\n", json_array_size(members));
	json_array_foreach(members, i, member) print_member(out, member);
	print_slots(out, json_object_get(status, "held_slots"));
	print_waits(out, json_object_get(status, "waiting_for"));
	fprintf(out,
		"locks of this process %lld, calls that wait %lld\n"
		"engine: resources %lld, locks %lld, requests under way %lld\n",
		number_of(status, "locks"), number_of(status, "waiting_calls"),
		number_of(status, "resources"),
		number_of(status, "engine_locks"),
		number_of(status, "in_flight"));
	print_hand(out, json_object_get(status, "held_by_hand"));
}

void dlm_print_summary(FILE *out, const json_t *status)
{
	const json_t *members = json_object_get(status, "members");

	fprintf(out, "%s: %s, process %lld", text_of(status, "lockspace"),
		text_of(status, "state"), number_of(status, "pid"));
	if (members)
		fprintf(out, ", members %zu, generation %lld, locks %lld",
			json_array_size(members),
			number_of(status, "generation"),
			number_of(status, "locks"));
	fputc('\n', out);
}

/* Locks */

static void print_queued(FILE *out, const json_t *lock)
{
	const char *requested = text_of(lock, "requested");

	fprintf(out, "  %08llx %s", (unsigned long long)number_of(lock, "lkid"),
		text_of(lock, "granted"));
	if (strcmp(requested, "IV") != 0)
		fprintf(out, " (%s)", requested);
	if (number_of(lock, "node"))
		fprintf(out, " %s: node %lld %08llx",
			is_true(lock, "master_copy") ? "Remote" : "Master",
			number_of(lock, "node"),
			(unsigned long long)number_of(lock, "remid"));
	if (number_of(lock, "pid"))
		fprintf(out, " pid %lld", number_of(lock, "pid"));
	if (is_true(lock, "in_flight"))
		fputs(" under way", out);
	fputc('\n', out);
}

static void print_queue(FILE *out, const char *title, const char *queue,
			const json_t *locks)
{
	const json_t *lock;
	bool first = true;
	size_t i;

	json_array_foreach(locks, i, lock)
	{
		if (strcmp(text_of(lock, "queue"), queue) != 0)
			continue;
		if (first)
			fprintf(out, "%s Queue\n", title);
		first = false;
		print_queued(out, lock);
	}
}

static void print_resource(FILE *out, const json_t *r)
{
	const json_t *locks = json_object_get(r, "locks");

	fprintf(out, "\nResource \"%s\"\n", text_of(r, "name"));
	if (number_of(r, "master"))
		fprintf(out, "Master: node %lld, ", number_of(r, "master"));
	else
		fputs("Master: not known, ", out);
	fprintf(out, "directory: node %lld%s\n", number_of(r, "directory"),
		is_true(r, "in_use") ? "" : ", idle");
	if (json_object_get(r, "lvb"))
		fprintf(out, "LVB: %s seq %lld%s\n", text_of(r, "lvb"),
			number_of(r, "lvb_seq"),
			is_true(r, "lvb_invalid") ? ", not valid" : "");
	print_queue(out, "Granted", "granted", locks);
	print_queue(out, "Conversion", "converting", locks);
	print_queue(out, "Waiting", "waiting", locks);
	print_queue(out, "Lookup", "in flight", locks);
}

void dlm_print_lockdump(FILE *out, const json_t *dump)
{
	const json_t *list = json_object_get(dump, "resources"), *resource;
	size_t i, locks = 0;

	json_array_foreach(list, i, resource)
	{
		locks += json_array_size(json_object_get(resource, "locks"));
		print_resource(out, resource);
	}
	fprintf(out, "%s%s: resources %zu, locks %zu\n", i ? "\n" : "",
		text_of(dump, "lockspace"), json_array_size(list), locks);
}

void dlm_print_lock(FILE *out, const json_t *lock)
{
	fprintf(out, "lock %lld \"%s\" %s", number_of(lock, "id"),
		text_of(lock, "resource"), text_of(lock, "status"));
	if (strcmp(text_of(lock, "mode"), "none") != 0)
		fprintf(out, ", held in %s", text_of(lock, "mode"));
	if (is_true(lock, "alternative"))
		fputs(" (the alternative mode)", out);
	if (is_true(lock, "demoted"))
		fputs(" (it was in NL meanwhile)", out);
	if (json_object_get(lock, "lvb"))
		fprintf(out, ", value %s", text_of(lock, "lvb"));
	if (is_true(lock, "lvb_lost"))
		fputs(", the value block has been lost", out);
	fputc('\n', out);
}
