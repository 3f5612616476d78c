/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * packets.c - making and comparing messages for the tests of the codec.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "packets.h"

static void garbage(struct ug_prng *prng, void *bytes, size_t len)
{
	uint8_t *at = bytes;

	for (size_t i = 0; i < len; i++)
		at[i] = (uint8_t)ug_prng_u64(prng);
}

static uint32_t below(struct ug_prng *prng, uint32_t limit)
{
	return (uint32_t)ug_prng_below(prng, limit);
}

static uint32_t any(struct ug_prng *prng)
{
	return (uint32_t)ug_prng_u64(prng);
}

static int32_t mode(struct ug_prng *prng)
{
	return (int32_t)below(prng, 7) - 1;
}

/* The extremes more often than chance would have it. */
static uint32_t name_len(struct ug_prng *prng)
{
	switch (below(prng, 4)) {
	case 0:
		return 0;
	case 1:
		return DLM_NAME_MAX;
	default:
		return below(prng, DLM_NAME_MAX + 1);
	}
}

static uint32_t extra_len(struct ug_prng *prng, enum dlm_msg_type type)
{
	switch (type) {
	case DLM_MSG_REQUEST:
	case DLM_MSG_LOOKUP:
	case DLM_MSG_REMOVE:
		return name_len(prng);
	case DLM_MSG_CONVERT:
	case DLM_MSG_UNLOCK:
	case DLM_MSG_REQUEST_REPLY:
	case DLM_MSG_CONVERT_REPLY:
	case DLM_MSG_GRANT:
		return below(prng, 9) * 8;
	default:
		return 0;
	}
}

static void make_lockmsg(struct ug_prng *prng, enum dlm_msg_type type,
			 struct dlm_lockmsg *m)
{
	garbage(prng, m, sizeof(*m));
	m->type = type;
	m->status = (int32_t)below(prng, 4);
	m->grmode = mode(prng);
	m->rqmode = mode(prng);
	m->bastmode = mode(prng);
	m->extra_len = extra_len(prng, type);
}

static struct dlm_slots *make_slots(struct ug_prng *prng)
{
	struct dlm_slots *slots = malloc(sizeof(*slots));

	garbage(prng, slots, sizeof(*slots));
	slots->count = 1 + below(prng, DLM_SLOTS_MAX);
	for (uint32_t i = 0; i < slots->count; i++) {
		bool held = below(prng, 2);
		uint16_t number = (uint16_t)(any(prng) | 1);

		slots->slot[i] = (struct dlm_slot){
			.nodeid = held ? 0 : (int32_t)(any(prng) >> 1 | 1),
			.slot = number,
			.free = held && below(prng, 2),
			.incarnation = held ? any(prng) : 0,
		};
	}
	return slots;
}

/* A block that is not the last does not end with the empty name. */
static struct dlm_names *make_names(struct ug_prng *prng)
{
	struct dlm_names *names = malloc(sizeof(*names));
	uint32_t stop = below(prng, 2) ? DLM_NAMES_BYTES : below(prng, 4100);
	uint32_t end = 0; /* of the last record that is not empty */

	garbage(prng, names, sizeof(*names));
	names->last = below(prng, 2);
	names->len = 0;
	for (;;) {
		uint32_t len = below(prng, 16) ? below(prng, 65) : 0;
		uint32_t pos = names->len;

		if (pos + 2 + len > DLM_NAMES_BYTES || pos + 2 + len > stop)
			break;
		names->bytes[pos] = 0;
		names->bytes[pos + 1] = (uint8_t)len;
		if (below(prng, 8) == 0)
			memset(names->bytes + pos + 2, 0, len);
		names->len += 2 + len;
		if (len)
			end = names->len;
	}
	if (!names->last)
		names->len = end;
	return names;
}

static void make_lock(struct ug_prng *prng, struct dlm_rcom_lock *lock)
{
	lock->rqmode = (int8_t)mode(prng);
	lock->grmode = (int8_t)mode(prng);
	lock->status = (int8_t)below(prng, 4);
	lock->wait_type = (uint16_t)below(prng, 15);
	lock->lvb_len = (uint16_t)(below(prng, 9) * 8);
	lock->name.len = (uint8_t)name_len(prng);
}

static void make_rcom(struct ug_prng *prng, enum dlm_rcom_type type,
		      struct dlm_rcom *rc)
{
	garbage(prng, rc, sizeof(*rc));
	rc->type = type;
	rc->need_slots = false;
	rc->slots = NULL;
	rc->names = NULL;
	switch (type) {
	case DLM_RCOM_STATUS:
		rc->need_slots = below(prng, 2);
		break;
	case DLM_RCOM_STATUS_REPLY:
		if (below(prng, 4))
			rc->slots = make_slots(prng);
		break;
	case DLM_RCOM_NAMES:
	case DLM_RCOM_LOOKUP:
		rc->name.len = (uint8_t)name_len(prng);
		break;
	case DLM_RCOM_NAMES_REPLY:
		rc->names = make_names(prng);
		break;
	case DLM_RCOM_LOCK:
	case DLM_RCOM_LOCK_REPLY:
		make_lock(prng, &rc->lock);
		if (type == DLM_RCOM_LOCK_REPLY)
			rc->lock.lvb_len = 0;
		break;
	case DLM_RCOM_LOOKUP_REPLY:
		break;
	}
}

void packets_make(struct ug_prng *prng, unsigned which, struct dlm_msg *msg)
{
	garbage(prng, msg, sizeof(*msg));
	msg->from = (int32_t)(any(prng) >> 1 | 1);
	if (which <= DLM_MSG_PURGE) {
		msg->kind = DLM_MSG;
		make_lockmsg(prng, (enum dlm_msg_type)which, &msg->m);
	} else {
		msg->kind = DLM_RCOM;
		make_rcom(prng, (enum dlm_rcom_type)(which - DLM_MSG_PURGE),
			  &msg->rc);
	}
}

static void expect_lockmsg(const struct dlm_lockmsg *a,
			   const struct dlm_lockmsg *b)
{
	assert_int_equal(a->type, b->type);
	assert_int_equal(a->nodeid, b->nodeid);
	assert_int_equal(a->pid, b->pid);
	assert_int_equal(a->lkid, b->lkid);
	assert_int_equal(a->remid, b->remid);
	assert_int_equal(a->exflags, b->exflags);
	assert_int_equal(a->sbflags, b->sbflags);
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->lvbseq, b->lvbseq);
	assert_int_equal(a->hash, b->hash);
	assert_int_equal(a->status, b->status);
	assert_int_equal(a->grmode, b->grmode);
	assert_int_equal(a->rqmode, b->rqmode);
	assert_int_equal(a->bastmode, b->bastmode);
	assert_int_equal(a->asts, b->asts);
	assert_int_equal(a->result, b->result);
	assert_int_equal(a->extra_len, b->extra_len);
	assert_memory_equal(a->extra, b->extra, a->extra_len);
}

static void expect_name(const struct dlm_name *a, const struct dlm_name *b)
{
	assert_int_equal(a->len, b->len);
	assert_memory_equal(a->bytes, b->bytes, a->len);
}

static void expect_slots(const struct dlm_slots *a, const struct dlm_slots *b)
{
	assert_int_equal(!a, !b);
	if (!a)
		return;
	assert_int_equal(a->count, b->count);
	for (uint32_t i = 0; i < a->count; i++) {
		assert_int_equal(a->slot[i].nodeid, b->slot[i].nodeid);
		assert_int_equal(a->slot[i].slot, b->slot[i].slot);
		assert_int_equal(a->slot[i].free, b->slot[i].free);
		assert_true(a->slot[i].incarnation == b->slot[i].incarnation);
	}
}

static void expect_lock(const struct dlm_rcom_lock *a,
			const struct dlm_rcom_lock *b)
{
	assert_int_equal(a->ownpid, b->ownpid);
	assert_int_equal(a->lkid, b->lkid);
	assert_int_equal(a->remid, b->remid);
	assert_int_equal(a->exflags, b->exflags);
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->lvbseq, b->lvbseq);
	assert_int_equal(a->result, b->result);
	assert_int_equal(a->rqmode, b->rqmode);
	assert_int_equal(a->grmode, b->grmode);
	assert_int_equal(a->status, b->status);
	assert_int_equal(a->asts, b->asts);
	assert_int_equal(a->wait_type, b->wait_type);
	assert_int_equal(a->lvb_len, b->lvb_len);
	expect_name(&a->name, &b->name);
	assert_memory_equal(a->lvb, b->lvb, a->lvb_len);
}

static void expect_rcom(const struct dlm_rcom *a, const struct dlm_rcom *b)
{
	assert_int_equal(a->type, b->type);
	assert_int_equal(a->result, b->result);
	assert_int_equal(a->id, b->id);
	assert_int_equal(a->seq, b->seq);
	assert_int_equal(a->seq_reply, b->seq_reply);
	assert_int_equal(a->need_slots, b->need_slots);
	expect_slots(a->slots, b->slots);
	assert_int_equal(!a->names, !b->names);
	switch (a->type) {
	case DLM_RCOM_STATUS_REPLY:
		assert_int_equal(a->status.lvblen, b->status.lvblen);
		assert_int_equal(a->status.lsflags, b->status.lsflags);
		assert_int_equal(a->status.our_slot, b->status.our_slot);
		assert_int_equal(a->status.generation, b->status.generation);
		break;
	case DLM_RCOM_NAMES:
	case DLM_RCOM_LOOKUP:
		expect_name(&a->name, &b->name);
		break;
	case DLM_RCOM_NAMES_REPLY:
		assert_int_equal(a->names->last, b->names->last);
		assert_int_equal(a->names->len, b->names->len);
		assert_memory_equal(a->names->bytes, b->names->bytes,
				    a->names->len);
		break;
	case DLM_RCOM_LOCK:
	case DLM_RCOM_LOCK_REPLY:
		expect_lock(&a->lock, &b->lock);
		break;
	case DLM_RCOM_STATUS:
	case DLM_RCOM_LOOKUP_REPLY:
		break;
	}
}

void packets_expect_equal(const struct dlm_msg *a, const struct dlm_msg *b)
{
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->from, b->from);
	if (a->kind == DLM_MSG)
		expect_lockmsg(&a->m, &b->m);
	else
		expect_rcom(&a->rc, &b->rc);
}
