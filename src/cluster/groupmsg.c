/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * groupmsg.c - group messages to bytes and back.
 *
 *	 0  magic "UGCM"	 8  type	 16  bytes of the whole message
 *	 4  major		10  flags	 20  CRC-32 of all after it
 *	 6  zero		12  zero	 24  body
 *
 * Both directions walk the same cursor, which remembers that it once ran out of
 * room or met a value that cannot be; one check at the end is enough. A message
 * is as long as it says and has nothing behind its body.
 * Source: docs/spec/cluster.md 3.
 */
#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "base/crc.h"
#include "cluster/bytes.h"
#include "cluster/groupmsg.h"

#define MAGIC 0x4d434755u /* "UGCM" */
#define HEADER_BYTES 24
#define CRC_AT 20
#define FLAG_HAS_STATE 1u

/* A byte that names one of first .. last. */
static uint8_t get_enum(struct reader *r, uint8_t first, uint8_t last)
{
	uint8_t v = get8(r);

	if (v < first || v > last) {
		r->bad = true;
		return first;
	}
	return v;
}

static void put_incarnation(struct writer *w, const struct incarnation *inc)
{
	put_bytes(w, inc->boot_id, sizeof(inc->boot_id));
	put32(w, inc->pid);
	put64(w, inc->start_ticks);
}

static void get_incarnation(struct reader *r, struct incarnation *inc)
{
	get_bytes(r, inc->boot_id, sizeof(inc->boot_id));
	inc->pid = get32(r);
	inc->start_ticks = get64(r);
}

static void put_proc(struct writer *w, struct group_proc proc)
{
	put32(w, proc.node);
	put32(w, proc.pid);
}

static struct group_proc get_proc(struct reader *r)
{
	struct group_proc proc;

	proc.node = get32(r);
	proc.pid = get32(r);
	if (!proc.node || proc.node > NODE_ID_MAX)
		r->bad = true;
	return proc;
}

static void put_ring(struct writer *w, struct ring_id ring)
{
	put32(w, ring.node);
	put64(w, ring.seq);
}

static struct ring_id get_ring(struct reader *r)
{
	struct ring_id ring;

	ring.node = get32(r);
	ring.seq = get64(r);
	return ring;
}

static void put_base(struct writer *w, const struct group_base *base)
{
	put_ring(w, base->ring);
	put64(w, base->count);
}

static void get_base(struct reader *r, struct group_base *base)
{
	base->ring = get_ring(r);
	base->count = get64(r);
}

static size_t addr_bytes(uint8_t family)
{
	return family == 4 ? 4 : family == 6 ? 16 : 0;
}

static void put_addr(struct writer *w, const struct link_addr *addr)
{
	put8(w, addr->family);
	put8(w, 0);
	put16(w, addr->port);
	put_bytes(w, addr->bytes, sizeof(addr->bytes));
}

static void get_addr(struct reader *r, struct link_addr *addr)
{
	static const uint8_t zero[16];
	size_t len;

	addr->family = get8(r);
	if (get8(r) || (addr->family && !addr_bytes(addr->family)))
		r->bad = true;
	addr->port = get16(r);
	get_bytes(r, addr->bytes, sizeof(addr->bytes));
	len = addr_bytes(addr->family);
	if (memcmp(addr->bytes + len, zero, sizeof(addr->bytes) - len))
		r->bad = true;
}

static void put_info(struct writer *w, const struct member_info *info)
{
	put_incarnation(w, &info->inc);
	put16(w, info->minor);
	put_addr(w, &info->addr);
}

/* No process is without an incarnation: zero stands for an unknown one. */
static void get_info(struct reader *r, struct member_info *info)
{
	get_incarnation(r, &info->inc);
	if (incarnation_is_zero(&info->inc))
		r->bad = true;
	info->minor = get16(r);
	get_addr(r, &info->addr);
}

static void put_hello(struct writer *w, const struct group_hello *hello)
{
	put_info(w, &hello->info);
	put_ring(w, hello->view.ring);
	put32(w, hello->view.procs_crc);
	put_base(w, &hello->base);
	put8(w, hello->quorum_known);
	put8(w, hello->quorate);
}

static void get_hello(struct reader *r, struct group_hello *hello)
{
	get_info(r, &hello->info);
	hello->view.ring = get_ring(r);
	hello->view.procs_crc = get32(r);
	get_base(r, &hello->base);
	hello->quorum_known = get_enum(r, 0, 1);
	hello->quorate = get_enum(r, 0, hello->quorum_known);
}

static void put_member(struct writer *w, const struct member *member)
{
	put_proc(w, member->proc);
	put8(w, member->instance);
	put8(w, member->cause);
	put8(w, member->proof);
	put8(w, 0);
	put64(w, member->stopped);
	put_info(w, &member->info);
}

/* A proof is of one who is gone, and leaving is one. */
static void get_member(struct reader *r, struct member *member)
{
	member->proc = get_proc(r);
	member->instance = get_enum(r, 0, INSTANCE_MAX);
	member->cause = get_enum(r, GONE_NOT, GONE_FOUND_DEAD);
	member->proof = get_enum(r, PROOF_NONE, PROOF_FENCED);
	if (get8(r) || (member->cause == GONE_NOT && member->proof) ||
	    (member->cause == GONE_LEFT && !member->proof) ||
	    (member->instance && member->proc.node > NODE_ID_SMALL_MAX))
		r->bad = true;
	member->stopped = get64(r);
	get_info(r, &member->info);
}

static void put_state(struct writer *w, const struct group_state *state)
{
	put_base(w, &state->base);
	put64(w, state->generation);
	put8(w, state->cleared);
	put32(w, state->count);
	for (uint32_t i = 0; i < state->count; i++)
		put_member(w, &state->members[i]);
}

static bool members_clash(const struct member *a, const struct member *b)
{
	return member_id(a) == member_id(b) ||
	       incarnation_equal(&a->info.inc, &b->info.inc);
}

static void get_state(struct reader *r, struct group_state *state)
{
	get_base(r, &state->base);
	state->generation = get64(r);
	state->cleared = get_enum(r, 0, 1);
	state->count = get32(r);
	if (!state->base.count || state->count > GROUP_MEMBERS_MAX) {
		r->bad = true;
		state->count = 0;
	}
	for (uint32_t i = 0; i < state->count && !r->bad; i++) {
		get_member(r, &state->members[i]);
		for (uint32_t j = 0; j < i; j++)
			if (members_clash(&state->members[i],
					  &state->members[j]))
				r->bad = true;
	}
}

static void put_ask(struct writer *w, const struct group_ask *ask)
{
	put_proc(w, ask->proc);
	put_incarnation(w, &ask->inc);
	put8(w, ask->instance);
	put_bytes(w, ask->uuid, sizeof(ask->uuid));
}

static void get_ask(struct reader *r, struct group_ask *ask)
{
	ask->proc = get_proc(r);
	get_incarnation(r, &ask->inc);
	ask->instance = get_enum(r, 0, INSTANCE_MAX);
	get_bytes(r, ask->uuid, sizeof(ask->uuid));
}

static uint32_t get_node(struct reader *r)
{
	uint32_t node = get32(r);

	if (!node || node > NODE_ID_MAX)
		r->bad = true;
	return node;
}

static void put_fence(struct writer *w, const struct group_fence *fence)
{
	put32(w, fence->node);
	put8(w, fence->state);
	put32(w, fence->tries);
	put32(w, (uint32_t)fence->status);
}

/* Only a failed one has a status to tell. */
static void get_fence(struct reader *r, struct group_fence *fence)
{
	fence->node = get_node(r);
	fence->state = get_enum(r, FENCE_BEGUN, FENCE_FAILED);
	fence->tries = get32(r);
	fence->status = (int32_t)get32(r);
	if ((fence->state == FENCE_FAILED) != (fence->status != 0) ||
	    fence->status < FENCE_END_NO_QUORUM || fence->status > 255)
		r->bad = true;
}

static void put_holders(struct writer *w, const struct group_holders *holders)
{
	put_bytes(w, holders->uuid, sizeof(holders->uuid));
	put8(w, holders->more);
	put8(w, holders->count);
	for (unsigned i = 0; i < holders->count; i++) {
		put_incarnation(w, &holders->list[i].inc);
		put8(w, holders->list[i].instance);
	}
}

static void get_holders(struct reader *r, struct group_holders *holders)
{
	get_bytes(r, holders->uuid, sizeof(holders->uuid));
	holders->more = get_enum(r, 0, 1);
	holders->count = get_enum(r, 0, GROUP_HOLDERS_MAX);
	for (unsigned i = 0; i < holders->count; i++) {
		get_incarnation(r, &holders->list[i].inc);
		holders->list[i].instance = get_enum(r, 0, INSTANCE_MAX);
	}
}

static void put_body(struct writer *w, const struct group_msg *msg)
{
	switch (msg->type) {
	case GM_HELLO:
		put_hello(w, &msg->hello);
		break;
	case GM_STATE:
		put_state(w, msg->state);
		break;
	case GM_DEAD:
		put_incarnation(w, &msg->dead.inc);
		put8(w, msg->dead.proof);
		break;
	case GM_EXPEL:
		put_proc(w, msg->expel.proc);
		put_incarnation(w, &msg->expel.inc);
		break;
	case GM_STOPPED:
		put64(w, msg->generation);
		break;
	case GM_LEASE:
		put64(w, msg->stamp);
		break;
	case GM_ASK:
		put_ask(w, &msg->ask);
		break;
	case GM_LINK:
		put_incarnation(w, &msg->link.about);
		put8(w, msg->link.state);
		break;
	case GM_JUDGE:
	case GM_CLEARED:
		break;
	case GM_SUPERVISOR:
		put32(w, msg->supervisor.child);
		put8(w, msg->supervisor.fence);
		break;
	case GM_FENCE:
		put_fence(w, &msg->fence);
		break;
	case GM_FENCE_ACK:
		put32(w, msg->node);
		break;
	case GM_SURVEY:
		put_bytes(w, msg->uuid, sizeof(msg->uuid));
		break;
	case GM_HOLDERS:
		put_holders(w, &msg->holders);
		break;
	}
}

static void get_body(struct reader *r, struct group_msg *msg,
		     struct group_state *state)
{
	switch (msg->type) {
	case GM_HELLO:
		get_hello(r, &msg->hello);
		break;
	case GM_STATE:
		get_state(r, state);
		msg->state = state;
		break;
	case GM_DEAD:
		get_incarnation(r, &msg->dead.inc);
		msg->dead.proof = get_enum(r, PROOF_LEFT, PROOF_FENCED);
		break;
	case GM_EXPEL:
		msg->expel.proc = get_proc(r);
		get_incarnation(r, &msg->expel.inc);
		break;
	case GM_STOPPED:
		msg->generation = get64(r);
		break;
	case GM_LEASE:
		msg->stamp = get64(r);
		break;
	case GM_ASK:
		get_ask(r, &msg->ask);
		break;
	case GM_LINK:
		get_incarnation(r, &msg->link.about);
		msg->link.state = get_enum(r, LINK_SILENT, LINK_HERE);
		break;
	case GM_JUDGE:
	case GM_CLEARED:
		break;
	case GM_SUPERVISOR:
		msg->supervisor.child = get32(r);
		msg->supervisor.fence = get_enum(r, FENCE_NONE, FENCE_COMMAND);
		break;
	case GM_FENCE:
		get_fence(r, &msg->fence);
		break;
	case GM_FENCE_ACK:
		msg->node = get_node(r);
		break;
	case GM_SURVEY:
		get_bytes(r, msg->uuid, sizeof(msg->uuid));
		break;
	case GM_HOLDERS:
		get_holders(r, &msg->holders);
		break;
	}
}

long group_msg_encode(const struct group_msg *msg, uint8_t *buf, size_t size)
{
	struct writer w = { buf, size, false };
	uint32_t len, crc;

	put32(&w, MAGIC);
	put16(&w, msg->major);
	put16(&w, 0);
	put16(&w, (uint16_t)msg->type);
	put16(&w, msg->has_state ? FLAG_HAS_STATE : 0);
	put32(&w, 0);
	put64(&w, 0); /* length and checksum, below */
	put_body(&w, msg);
	if (w.full)
		return -EMSGSIZE;
	len = (uint32_t)(w.at - buf);
	w = (struct writer){ buf + CRC_AT - 4, 8, false };
	put32(&w, len);
	crc = ug_crc32(buf + HEADER_BYTES, len - HEADER_BYTES);
	put32(&w, crc);
	return (long)len;
}

static int get_header(struct reader *r, size_t len, struct group_msg *msg)
{
	uint32_t magic = get32(r), crc;
	uint16_t minor, type, flags;

	msg->major = get16(r);
	minor = get16(r);
	type = get16(r);
	flags = get16(r);
	if (get32(r) || get32(r) != len || magic != MAGIC || minor || r->bad)
		return -EBADMSG;
	crc = get32(r);
	if (r->bad || crc != ug_crc32(r->at, r->left))
		return -EBADMSG;
	msg->type = type;
	msg->has_state = flags & FLAG_HAS_STATE;
	if (msg->major != GROUP_VERSION_MAJOR)
		return -EPROTONOSUPPORT;
	if (type < GM_HELLO || type > GM_LAST || (flags & ~FLAG_HAS_STATE))
		return -EBADMSG;
	return 0;
}

int group_msg_decode(const uint8_t *bytes, size_t len, struct group_msg *msg,
		     struct group_state *state)
{
	struct reader r = { bytes, len, false };
	struct group_msg got = { 0 };
	int err;

	err = get_header(&r, len, &got);
	if (!err && got.type == GM_STATE && !state)
		err = -EBADMSG;
	if (!err) {
		get_body(&r, &got, state);
		if (r.bad || r.left)
			err = -EBADMSG;
	}
	if (err != -EBADMSG)
		*msg = got;
	return err;
}

bool incarnation_equal(const struct incarnation *a, const struct incarnation *b)
{
	return a->pid == b->pid && a->start_ticks == b->start_ticks &&
	       memcmp(a->boot_id, b->boot_id, sizeof(a->boot_id)) == 0;
}

bool incarnation_is_zero(const struct incarnation *inc)
{
	static const struct incarnation zero;

	return incarnation_equal(inc, &zero);
}

static uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

uint64_t incarnation_short(const struct incarnation *inc)
{
	struct reader r = { inc->boot_id, sizeof(inc->boot_id), false };
	uint64_t sum = mix(get64(&r) + 0x9e3779b97f4a7c15u);

	sum = mix(sum + get64(&r));
	sum = mix(sum + inc->pid);
	return mix(sum + inc->start_ticks);
}
