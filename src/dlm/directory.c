/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * directory.c - which member records who masters a name, and that record.
 *
 *   requester                directory                 master
 *      | LOOKUP name            |                        |
 *      |----------------------->| unknown: the requester |
 *      |<-----------------------| becomes master         |
 *      |   LOOKUP_REPLY node    |                        |
 *      | (the directory is the master itself: it treats  |
 *      |  LOOKUP as REQUEST and sends REQUEST_REPLY)      |
 *      |                        |<-----------------------| REMOVE: idle
 *
 * A REMOVE of a name that the directory node uses itself is ignored: its own
 * request is on the way to that master, which takes it from the directory node
 * even though it has forgotten the resource. Unless that request has been given
 * up: then no record is kept of that master.
 * Source: docs/spec/dlm.md 2.1, 2.2, 2.5, 2.7; the hash is Bob Jenkins's
 * lookup3 (public domain, 2006), written from its description.
 */
#include <errno.h>
#include <string.h>

#include "dlm/engine.h"

static uint32_t rotl(uint32_t x, unsigned bits)
{
	return x << bits | x >> (32 - bits);
}

static uint32_t word_le(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
	       (uint32_t)p[3] << 24;
}

/* s[0..2] are a, b, c of the description. */
static void hash_mix(uint32_t s[3])
{
	static const unsigned char turns[6] = { 4, 6, 8, 16, 19, 4 };

	for (unsigned i = 0; i < 6; i++) {
		uint32_t *x = &s[i % 3];
		uint32_t *y = &s[(i + 2) % 3];
		uint32_t *z = &s[(i + 1) % 3];

		*x -= *y;
		*x ^= rotl(*y, turns[i]);
		*y += *z;
	}
}

static void hash_final(uint32_t s[3])
{
	static const unsigned char turns[7] = { 14, 11, 25, 16, 4, 14, 24 };

	for (unsigned i = 0; i < 7; i++) {
		uint32_t *x = &s[(i + 2) % 3];
		uint32_t y = s[(i + 1) % 3];

		*x ^= y;
		*x -= rotl(y, turns[i]);
	}
}

static void hash_add(uint32_t s[3], const uint8_t block[12])
{
	s[0] += word_le(block);
	s[1] += word_le(block + 4);
	s[2] += word_le(block + 8);
}

uint32_t dlm_hash(const void *name, size_t len)
{
	const uint8_t *p = name;
	uint32_t s[3];
	uint8_t rest[12] = { 0 };

	s[0] = s[1] = s[2] = 0xdeadbeefu + (uint32_t)len;
	for (; len > 12; len -= 12, p += 12) {
		hash_add(s, p);
		hash_mix(s);
	}
	if (len == 0)
		return s[2];
	memcpy(rest, p, len);
	hash_add(s, rest);
	hash_final(s);
	return s[2];
}

int32_t directory_pick(const int32_t *array, unsigned total, uint32_t hash)
{
	return array[(hash >> 16) % total];
}

/* 0 before the first start. */
int32_t directory_node(const struct dlm_engine *engine, uint32_t hash)
{
	if (engine->node_total == 0)
		return 0;
	return directory_pick(engine->node_array, engine->node_total, hash);
}

/*
 * Whoever asks first for a name that has no master becomes it. This may name
 * ourselves only if we know it already.
 */
static int32_t record_or_find(struct dlm_engine *engine, int32_t from,
			      const uint8_t *name, unsigned len, uint32_t hash)
{
	struct rsb *rsb = rsb_find(engine, name, len, hash);

	if (!rsb) {
		rsb = rsb_create(engine, name, len, hash);
		rsb->master = from;
		rsb_set_where(engine, rsb, RSB_RECORD);
	} else if (!rsb->master) {
		rsb->master = from;
		if (rsb->where != RSB_KEEP)
			rsb_set_where(engine, rsb, RSB_RECORD);
	}
	/* who asks and is told "you" knows it from now on */
	if (rsb->master == from)
		rsb->flags &= (uint8_t)~RES_UNPROVED;
	return rsb->master;
}

void directory_receive_lookup(struct dlm_engine *engine, int32_t from,
			      const struct dlm_lockmsg *m)
{
	uint32_t hash = dlm_hash(m->extra, m->extra_len);
	int32_t master;

	if (directory_node(engine, hash) != engine->config.nodeid) {
		send_stub(engine, from, DLM_MSG_LOOKUP_REPLY, m->lkid, -1,
			  -EINVAL);
		return;
	}
	master = record_or_find(engine, from, m->extra, m->extra_len, hash);
	TRACE(engine, "lookup %08x by %d: master %d", hash, from, master);
	if (master == engine->config.nodeid)
		message_receive_request(engine, from, m);
	else
		send_stub(engine, from, DLM_MSG_LOOKUP_REPLY, m->lkid, master,
			  0);
}

void directory_receive_remove(struct dlm_engine *engine, int32_t from,
			      const struct dlm_lockmsg *m)
{
	uint32_t hash = dlm_hash(m->extra, m->extra_len);
	struct rsb *rsb = rsb_find(engine, m->extra, m->extra_len, hash);

	if (!rsb || rsb->where != RSB_RECORD || rsb->master != from) {
		TRACE(engine, "remove %08x by %d ignored", hash, from);
		if (rsb && rsb->where == RSB_KEEP && rsb->master == from)
			rsb->flags |= RES_UNPROVED;
		return;
	}
	rsb_free(engine, rsb);
}

/*
 * Recovery: a member has lost the master of a name. What the directory node
 * holds of it itself gets the new master in the same moment, and is marked so
 * that its own locks are sent there.
 */
int32_t directory_recover_lookup(struct dlm_engine *engine, int32_t from,
				 const struct dlm_name *name, uint32_t hash)
{
	struct rsb *rsb = rsb_find(engine, name->bytes, name->len, hash);
	bool lost = rsb && rsb->where == RSB_KEEP && !rsb->master;
	int32_t master =
		record_or_find(engine, from, name->bytes, name->len, hash);

	if (lost && (rsb->flags & RES_REMASTER)) {
		rsb->flags &= (uint8_t)~RES_REMASTER;
		rsb->flags |= RES_NEW_MASTER;
	}
	return master;
}

/*
 * Who was master when we last heard of it has forgotten it. Of our own locks
 * none is known there: new ones are on the way, of old ones the last answer is
 * on the way to us.
 */
static void correct_master(struct rsb *rsb, int32_t us, int32_t from)
{
	if (rsb->master && rsb->master != us)
		rsb->master = from;
}

/* Recovery: "from" says that it masters this name. */
int directory_record(struct dlm_engine *engine, int32_t from,
		     const uint8_t *name, unsigned len)
{
	struct dlm_name copy = { .len = (uint8_t)len };
	uint32_t hash = dlm_hash(name, len);
	struct rsb *rsb;

	if (step_reserve(engine, 1))
		return -ENOMEM;
	rsb = rsb_find(engine, name, len, hash);
	if (rsb && rsb->where == RSB_KEEP)
		correct_master(rsb, engine->config.nodeid, from);
	memcpy(copy.bytes, name, len);
	directory_recover_lookup(engine, from, &copy, hash);
	return 0;
}

static bool names_add(struct dlm_names *names, const struct rsb *rsb)
{
	if (names->len + 2 + rsb->namelen > DLM_NAMES_BYTES)
		return false;
	names->bytes[names->len] = 0;
	names->bytes[names->len + 1] = rsb->namelen;
	memcpy(names->bytes + names->len + 2, rsb->name, rsb->namelen);
	names->len += 2u + rsb->namelen;
	return true;
}

/* Where the asker left off; the list does not change in this step. */
static struct cds_list_head *names_start(struct dlm_engine *engine,
					 const struct dlm_name *last)
{
	struct rsb *rsb;

	if (last->len == 0)
		return engine->keep.next;
	rsb = rsb_find(engine, last->bytes, last->len,
		       dlm_hash(last->bytes, last->len));
	if (!rsb || rsb->where != RSB_KEEP)
		return engine->keep.next;
	return rsb->list.next;
}

/*
 * The names we master whose directory node is "from", after *last. The asker
 * goes on after the last name of the block, and an empty name means "from the
 * start": the resource with the empty name must not be the last.
 */
void directory_fill_names(struct dlm_engine *engine, int32_t from,
			  const struct dlm_name *last, struct dlm_names *names)
{
	struct cds_list_head *pos = names_start(engine, last);
	unsigned last_len = 1;

	names->len = 0;
	names->last = true;
	for (; pos != &engine->keep; pos = pos->next) {
		const struct rsb *rsb = cds_list_entry(pos, struct rsb, list);

		if (!rsb_is_master(engine, rsb) ||
		    directory_node(engine, rsb->hash) != from)
			continue;
		if (!names_add(names, rsb)) {
			names->last = false;
			if (last_len == 0)
				names->len -= 2;
			return;
		}
		last_len = rsb->namelen;
	}
}
