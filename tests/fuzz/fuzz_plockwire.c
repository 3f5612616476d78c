/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fuzz_plockwire.c - any bytes as messages of application locks: as a frame of
 * several, and with a header whose length and version fit. What is decoded is
 * encoded to the same bytes. What the codec lets through an engine must stand:
 * it is given to one that serialises files.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/plockwire.h"

#define US 1u
#define OTHER 2u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void give(struct plock_engine *engine, struct plock_event *event)
{
	static struct plock_updates out;
	uint8_t bytes[PLOCK_WIRE_MAX];

	plock_step(engine, event, &out);
	plock_check(engine);
	for (size_t i = 0; i < out.count; i++) {
		if (out.list[i].kind == PLOCK_UP_SEND)
			must(plock_wire_encode(&out.list[i].msg, bytes,
					       sizeof(bytes)) > 0);
	}
	out.count = 0;
}

/* Two members, the other one has said DONE; some locks here. */
static struct plock_engine *engine_new(void)
{
	struct plock_config config = { .node = US };
	struct plock_msg done = {
		.type = PLOCK_MSG_DONE, .from = OTHER, .to = US, .epoch = 1
	};
	uint64_t nodes[] = { US, OTHER };
	struct plock_event event = { .kind = PLOCK_EV_MEMBERS };
	struct plock_engine *engine;

	must(plock_engine_new(&config, &engine) == 0);
	event.members.epoch = 1;
	event.members.nodes = nodes;
	event.members.count = 2;
	give(engine, &event);
	event = (struct plock_event){ .kind = PLOCK_EV_MESSAGE };
	event.msg = &done;
	give(engine, &event);
	for (uint64_t n = 0; n < 8; n++) {
		event = (struct plock_event){ .kind = PLOCK_EV_CALL };
		event.call.number = n;
		event.call.op = (struct plock_op){ .kind = PLOCK_SET,
						   .mode = RANGE_WRITE,
						   .wait = true,
						   .owner = n,
						   .end = 9 };
		give(engine, &event);
	}
	return engine;
}

static void decode(struct plock_engine *engine, const uint8_t *bytes,
		   size_t len)
{
	struct plock_event event = { .kind = PLOCK_EV_MESSAGE };
	uint8_t again[PLOCK_WIRE_MAX];
	struct plock_msg msg;
	long got;

	while ((got = plock_wire_decode(bytes, len, &msg)) > 0) {
		must((size_t)got <= len);
		must(plock_wire_encode(&msg, again, sizeof(again)) == got);
		must(!memcmp(again, bytes, (size_t)got));
		msg.from = OTHER;
		msg.to = US;
		event.msg = &msg;
		event.now_ns += 1000000;
		give(engine, &event);
		bytes += got;
		len -= (size_t)got;
	}
	must(got == -EBADMSG);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct plock_engine *engine = engine_new();
	uint8_t copy[PLOCK_WIRE_MAX];

	decode(engine, data, size);
	if (size >= 4 && size <= sizeof(copy)) {
		memcpy(copy, data, size);
		copy[0] = (uint8_t)size;
		copy[1] = (uint8_t)(size >> 8);
		copy[2] = 1;
		decode(engine, copy, size);
	}
	plock_engine_free(engine);
	return 0;
}
