/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fuzz_pgroupwire.c - any bytes as messages of plock_mode=group: as they are,
 * and with a version and a volume that fit. What is decoded is encoded to the
 * same bytes. What the codec lets through an engine must stand: it is given to
 * one that has locks and waits, as that of another member, in a change that is
 * complete and in one that is not.
 */
#include <stdlib.h>
#include <string.h>

#include "wire/pgroupwire.h"

#define VOLUME 0x537888afu
#define US pgroup_proc(2, 1)
#define OTHER pgroup_proc(1, 1)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void give(struct pgroup_engine *engine, struct pgroup_event *event);

/* Ours come back at once, if that is so. */
static void give_back(struct pgroup_engine *engine,
		      const struct pgroup_updates *out)
{
	uint8_t bytes[PGROUP_WIRE_MAX];

	for (size_t i = 0; i < out->count; i++) {
		struct pgroup_event event = { .kind = PGROUP_EV_MESSAGE };

		if (out->list[i].kind != PGROUP_UP_SEND)
			continue;
		must(pgroup_wire_encode(&out->list[i].msg, VOLUME, bytes,
					sizeof(bytes)) > 0);
		event.message.from = US;
		event.message.msg = &out->list[i].msg;
		give(engine, &event);
	}
}

static void give(struct pgroup_engine *engine, struct pgroup_event *event)
{
	struct pgroup_updates out = { 0 };

	pgroup_step(engine, event, &out);
	pgroup_check(engine);
	give_back(engine, &out);
	pgroup_updates_free(&out);
}

static void start_other(struct pgroup_engine *engine, bool has_plocks)
{
	uint32_t ids[] = { 1, 2 };
	struct pgroup_msg start = {
		.type = PGROUP_START,
		.nodeid = 1,
		.flags = PGROUP_OWNERSHIP |
			 (has_plocks ? PGROUP_HAVE_PLOCKS : 0),
		.change = 1,
		.inc = 11,
		.start = { .count = 2, .ids = ids },
	};
	struct pgroup_event event = { .kind = PGROUP_EV_MESSAGE };

	/* For our first change, whatever its checksum is: that of ours. */
	event.message.from = OTHER;
	event.message.msg = &start;
	give(engine, &event);
}

static void call(struct pgroup_engine *engine, uint64_t number)
{
	struct pgroup_event event = { .kind = PGROUP_EV_CALL };

	event.call.number = number;
	event.call.op = (struct plock_op){ .kind = PLOCK_SET,
					   .mode = RANGE_WRITE,
					   .wait = true,
					   .owner = number,
					   .end = 9 };
	give(engine, &event);
}

/* We begin alone, with tables; then the other one comes. */
static struct pgroup_engine *engine_new(bool complete)
{
	struct pgroup_config config = {
		.proc = US, .nodeid = 2, .inc = 22, .ownership = true
	};
	uint64_t procs[] = { US, OTHER };
	struct pgroup_event event = { .kind = PGROUP_EV_CONFIG };
	struct pgroup_engine *engine;

	must(pgroup_engine_new(&config, &engine) == 0);
	event.config.procs = procs;
	event.config.count = 1;
	give(engine, &event);
	event.kind = PGROUP_EV_OTHERS;
	event.others.procs = procs;
	event.others.count = 1;
	give(engine, &event);
	must(pgroup_is_live(engine));
	for (uint64_t n = 0x10; n < 0x14; n++)
		call(engine, n);
	event.kind = PGROUP_EV_CONFIG;
	event.config.procs = procs;
	event.config.count = 2;
	give(engine, &event);
	if (complete)
		start_other(engine, false);
	return engine;
}

/* A newcomer, whom the other one tells. */
static struct pgroup_engine *newcomer_new(void)
{
	struct pgroup_config config = {
		.proc = US, .nodeid = 2, .inc = 22, .ownership = true
	};
	uint64_t procs[] = { US };
	uint64_t both[] = { US, OTHER };
	struct pgroup_event event = { .kind = PGROUP_EV_CONFIG };
	struct pgroup_engine *engine;

	must(pgroup_engine_new(&config, &engine) == 0);
	event.config.procs = procs;
	event.config.count = 1;
	give(engine, &event);
	event.config.procs = both;
	event.config.count = 2;
	give(engine, &event);
	start_other(engine, true);
	call(engine, 0x10);
	return engine;
}

static void decode(struct pgroup_engine *engine, const uint8_t *bytes,
		   size_t len)
{
	struct pgroup_event event = { .kind = PGROUP_EV_MESSAGE };
	static struct pgroup_parts parts;
	uint8_t again[PGROUP_WIRE_MAX];
	struct pgroup_msg msg;

	if (pgroup_wire_decode(bytes, len, VOLUME, &msg, &parts))
		return;
	must(pgroup_wire_encode(&msg, VOLUME, again, sizeof(again)) ==
	     (long)len);
	must(!memcmp(again, bytes, len));
	event.message.from = OTHER;
	event.message.msg = &msg;
	give(engine, &event);
	call(engine, 0x10);
}

static void run(struct pgroup_engine *engine, const uint8_t *data, size_t size)
{
	static const uint8_t version[] = { 3, 0, 1, 0, 1, 0 };
	static const uint8_t volume[] = { 0xaf, 0x88, 0x78, 0x53 };
	uint8_t copy[PGROUP_WIRE_MAX];

	decode(engine, data, size);
	if (size >= 20 && size <= sizeof(copy)) {
		memcpy(copy, data, size);
		memcpy(copy, version, sizeof(version));
		memcpy(copy + 16, volume, sizeof(volume));
		if (size == 104)
			memcpy(copy + 68, volume, sizeof(volume));
		decode(engine, copy, size);
		/* The other one ends: what it left is found by the check. */
		decode(engine, copy, size);
	}
	pgroup_engine_free(engine);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	run(engine_new(true), data, size);
	run(engine_new(false), data, size);
	run(newcomer_new(), data, size);
	return 0;
}
