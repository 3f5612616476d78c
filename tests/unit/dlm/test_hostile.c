/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_hostile.c - a member that sends whatever it likes: the engine may be
 * told lies, but it neither stops nor asserts nor runs out of its bounds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "base/prng.h"
#include "dlm/dlm.h"

#define SEEDS 60
#define STEPS 3000

/* Ids that the engine has shown, so that some messages hit. */
struct hostile {
	struct ug_prng prng;
	struct dlm_engine *engine;
	uint32_t ids[64];
	unsigned id_count;
	uint64_t asked_id;
	uint64_t asked_seq;
	uint64_t now_ns;
};

static uint32_t below(struct hostile *h, uint32_t limit)
{
	return (uint32_t)ug_prng_below(&h->prng, limit);
}

static uint32_t some_id(struct hostile *h)
{
	if (!h->id_count || below(h, 8) == 0)
		return (uint32_t)ug_prng_u64(&h->prng);
	return h->ids[below(h, UG_MIN(h->id_count, 64u))];
}

static void note_id(struct hostile *h, uint32_t id)
{
	h->ids[h->id_count++ % 64] = id;
}

static void learn(struct hostile *h, const struct dlm_updates *out)
{
	for (size_t i = 0; i < out->count; i++) {
		const struct dlm_msg *msg = &out->list[i].msg;

		if (out->list[i].kind != DLM_UP_SEND)
			continue;
		if (msg->kind == DLM_MSG) {
			note_id(h, msg->m.lkid);
			continue;
		}
		h->asked_id = msg->rc.id;
		h->asked_seq = msg->rc.seq;
		if (msg->rc.type == DLM_RCOM_LOCK)
			note_id(h, msg->rc.lock.lkid);
	}
}

static int give(struct hostile *h, struct dlm_event *event)
{
	static struct dlm_updates out;
	int error;

	event->now_ns = h->now_ns += below(h, 20000000);
	error = dlm_step(h->engine, event, &out);
	learn(h, &out);
	dlm_updates_clear(&out);
	return error;
}

static int32_t some_mode(struct hostile *h)
{
	return (int32_t)below(h, 8) - 1;
}

static void some_name(struct hostile *h, uint8_t *bytes, uint32_t *len)
{
	*len = below(h, 30) ? 1 : below(h, 70);
	memset(bytes, 'a' + (int)below(h, 3), DLM_NAME_MAX);
}

static int32_t some_result(struct hostile *h)
{
	static const int32_t results[] = {
		0,	  0,	   -EINPROGRESS, -EAGAIN,      -EDEADLK, -EBADR,
		-ENOTBLK, -ENOENT, -DLM_ECANCEL, -DLM_EUNLOCK, -12345,	 7,
	};

	return results[below(h, sizeof(results) / sizeof(results[0]))];
}

static void fill_msg(struct hostile *h, struct dlm_lockmsg *m)
{
	uint32_t len;

	m->type = (enum dlm_msg_type)below(h, 16);
	m->nodeid = (int32_t)below(h, 5) - 1;
	m->lkid = some_id(h);
	m->remid = some_id(h);
	m->exflags = below(h, 2) ? 0 : below(h, 0x80000);
	m->sbflags = below(h, 8);
	m->flags = below(h, 4) ? 0 : (uint32_t)ug_prng_u64(&h->prng);
	m->grmode = some_mode(h);
	m->rqmode = some_mode(h);
	m->bastmode = some_mode(h);
	m->asts = below(h, 4);
	m->result = some_result(h);
	some_name(h, m->extra, &len);
	m->extra_len = len;
}

static void fill_rcom(struct hostile *h, struct dlm_rcom *rc)
{
	uint32_t len;

	rc->type = (enum dlm_rcom_type)below(h, 10);
	rc->result = below(h, 3) ? 0xff : some_result(h);
	rc->id = below(h, 3) ? h->asked_id : below(h, 10);
	rc->seq_reply = below(h, 5) ? h->asked_seq : below(h, 10);
	switch (rc->type) {
	case DLM_RCOM_NAMES_REPLY:
		rc->names = calloc(1, sizeof(*rc->names));
		rc->names->last = below(h, 2);
		rc->names->len = below(h, 5000);
		for (unsigned i = 0; i < DLM_NAMES_BYTES; i++)
			rc->names->bytes[i] = (uint8_t)(below(h, 3) * (i & 1));
		break;
	case DLM_RCOM_STATUS_REPLY:
		rc->status.lvblen = 32;
		rc->status.our_slot = (uint16_t)below(h, 3);
		break;
	case DLM_RCOM_LOCK:
	case DLM_RCOM_LOCK_REPLY:
		rc->lock.lkid = some_id(h);
		rc->lock.remid = some_id(h);
		rc->lock.grmode = (int8_t)some_mode(h);
		rc->lock.rqmode = (int8_t)some_mode(h);
		rc->lock.status = (int8_t)below(h, 5);
		rc->lock.exflags = below(h, 0x80000);
		rc->lock.lvb_len = (uint16_t)below(h, 70);
		rc->lock.result = some_result(h);
		some_name(h, rc->lock.name.bytes, &len);
		rc->lock.name.len = (uint8_t)len;
		break;
	default:
		some_name(h, rc->name.bytes, &len);
		rc->name.len = (uint8_t)len;
		break;
	}
}

static void send_lie(struct hostile *h)
{
	struct dlm_msg msg = { .from = 2 + (int32_t)below(h, 2), .to = 1 };
	struct dlm_event event = { .kind = DLM_EV_MESSAGE };

	msg.kind = below(h, 3) ? DLM_MSG : DLM_RCOM;
	if (msg.kind == DLM_MSG)
		fill_msg(h, &msg.m);
	else
		fill_rcom(h, &msg.rc);
	event.message.msg = &msg;
	event.message.incarnation = 1;
	give(h, &event);
	dlm_msg_release(&msg);
}

static void call(struct hostile *h)
{
	struct dlm_event event = { .kind = DLM_EV_LOCK };
	uint8_t lvb[DLM_LVB_MAX] = { 0 };
	uint32_t len;

	if (below(h, 2)) {
		event.lock.mode = (enum dlm_mode)below(h, 6);
		event.lock.flags = below(h, 2) ? LKF_VALBLK : 0;
		event.lock.lvb = lvb;
		event.lock.wants_bast = true;
		some_name(h, event.lock.name.bytes, &len);
		event.lock.name.len = (uint8_t)UG_MIN(len, 64u);
		if (below(h, 2)) {
			event.lock.flags |= LKF_CONVERT;
			event.lock.lkid = some_id(h);
		}
	} else {
		event.kind = DLM_EV_UNLOCK;
		event.unlock.lkid = some_id(h);
		event.unlock.flags = below(h, 3) == 0 ? LKF_CANCEL
				     : below(h, 2)    ? LKF_FORCEUNLOCK
						      : 0;
	}
	if (give(h, &event) == 0 && event.kind == DLM_EV_LOCK)
		note_id(h, event.lock.lkid);
}

static void restart(struct hostile *h)
{
	static const struct dlm_member members[] = {
		{ 1, 1, 1 },
		{ 2, 1, 1 },
		{ 3, 1, 1 },
	};
	struct dlm_event event = { .kind = DLM_EV_STOP };

	give(h, &event);
	event.kind = DLM_EV_START;
	event.start.members = members;
	event.start.count = 1 + below(h, 3);
	give(h, &event);
}

static void lie_for_a_while(uint64_t seed)
{
	struct hostile h = { 0 };
	struct dlm_config config = {
		.nodeid = 1, .incarnation = 1, .lvblen = 32, .seed = seed
	};

	ug_prng_seed(&h.prng, seed);
	assert_int_equal(dlm_engine_new(&config, &h.engine), 0);
	restart(&h);
	for (unsigned i = 0; i < STEPS; i++) {
		struct dlm_event tick = { .kind = DLM_EV_TICK };

		switch (below(&h, 300) ? below(&h, 4) : 4) {
		case 0:
			call(&h);
			break;
		case 1:
			give(&h, &tick);
			break;
		case 4:
			restart(&h);
			break;
		default:
			send_lie(&h);
			break;
		}
	}
	dlm_engine_free(h.engine);
}

static void test_lies(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		lie_for_a_while(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_lies) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
