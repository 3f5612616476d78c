/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linkwire.c - see linkwire.h.
 *
 *   handshake				     frame
 *    0  "UGLK"	 8  type		      0  length	      8  number
 *    4  major	 9  flags (1: keyed)	      4  kind	     12  ack
 *    6  minor	10  length of the message     5  zero	     16  message
 *
 * Source: docs/spec/cluster.md 5.2, 5.3.
 */
#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "cluster/bytes.h"
#include "cluster/linkwire.h"

#define MAGIC 0x4b4c4755u /* "UGLK" */
#define FLAG_KEYED 1u
#define LENGTH_AT 10

/* Frames */

void link_frame_encode(const struct link_frame *frame, uint8_t *head)
{
	struct writer c = { .at = head, .left = LINK_FRAME_BYTES };

	put32(&c, frame->len);
	put32(&c, frame->kind);
	put32(&c, frame->number);
	put32(&c, frame->ack);
}

int link_frame_decode(const uint8_t *head, struct link_frame *frame)
{
	struct reader c = { .at = head, .left = LINK_FRAME_BYTES };
	uint32_t kind;

	frame->len = get32(&c);
	kind = get32(&c);
	frame->kind = (uint8_t)kind;
	frame->number = get32(&c);
	frame->ack = get32(&c);
	if (kind > LINK_CHANNEL_LAST || frame->len > LINK_MESSAGE_MAX)
		return -EBADMSG;
	if (kind == LINK_PING && (frame->len || frame->number))
		return -EBADMSG;
	return 0;
}

/* The handshake */

static void put_incarnation(struct writer *c, const struct incarnation *inc)
{
	put_bytes(c, inc->boot_id, sizeof(inc->boot_id));
	put32(c, inc->pid);
	put64(c, inc->start_ticks);
}

static void get_incarnation(struct reader *c, struct incarnation *inc)
{
	get_bytes(c, inc->boot_id, sizeof(inc->boot_id));
	inc->pid = get32(c);
	inc->start_ticks = get64(c);
}

static void put_names(struct writer *c, const struct link_shake *shake)
{
	size_t len = strnlen(shake->table, LINK_TABLE_MAX);

	put_incarnation(c, &shake->from);
	put_incarnation(c, &shake->to);
	put64(c, shake->stream);
	put_bytes(c, shake->nonce, sizeof(shake->nonce));
	put8(c, (uint8_t)len);
	put_bytes(c, shake->table, len);
}

static void get_names(struct reader *c, struct link_shake *shake)
{
	size_t len;

	get_incarnation(c, &shake->from);
	get_incarnation(c, &shake->to);
	shake->stream = get64(c);
	get_bytes(c, shake->nonce, sizeof(shake->nonce));
	len = get8(c);
	if (!shake->stream || len > LINK_TABLE_MAX) {
		c->bad = true;
		return;
	}
	get_bytes(c, shake->table, len);
	if (strnlen(shake->table, len) != len)
		c->bad = true;
}

static void put_proof(struct writer *c, const struct link_shake *shake)
{
	put64(c, shake->received);
	put_bytes(c, shake->mac, sizeof(shake->mac));
}

static void get_proof(struct reader *c, struct link_shake *shake)
{
	shake->received = get64(c);
	get_bytes(c, shake->mac, sizeof(shake->mac));
}

size_t link_shake_encode(const struct link_shake *shake, uint8_t *buf)
{
	struct writer c = { .at = buf, .left = LINK_SHAKE_MAX };
	struct writer length = { .at = buf + LENGTH_AT, .left = 2 };

	put32(&c, MAGIC);
	put16(&c, shake->major);
	put16(&c, shake->minor);
	put8(&c, (uint8_t)shake->type);
	put8(&c, shake->keyed ? FLAG_KEYED : 0);
	put16(&c, 0);
	switch (shake->type) {
	case LS_WELCOME:
		put_names(&c, shake);
		put_proof(&c, shake);
		break;
	case LS_HELLO:
		put_names(&c, shake);
		break;
	case LS_PROOF:
		put_proof(&c, shake);
		break;
	case LS_READY:
		break;
	case LS_REFUSE:
		put8(&c, (uint8_t)shake->refusal);
		break;
	}
	ug_assert(!c.full);
	put16(&length, (uint16_t)(LINK_SHAKE_MAX - c.left));
	return LINK_SHAKE_MAX - c.left;
}

long link_shake_length(const uint8_t *head)
{
	struct reader c = { .at = head, .left = LINK_SHAKE_HEAD };
	uint16_t len;

	if (get32(&c) != MAGIC)
		return -EBADMSG;
	c.at = head + LENGTH_AT;
	len = get16(&c);
	return len >= LINK_SHAKE_HEAD && len <= LINK_SHAKE_MAX ? len : -EBADMSG;
}

static void get_body(struct reader *c, struct link_shake *shake)
{
	switch (shake->type) {
	case LS_WELCOME:
		get_names(c, shake);
		get_proof(c, shake);
		return;
	case LS_HELLO:
		get_names(c, shake);
		return;
	case LS_PROOF:
		get_proof(c, shake);
		return;
	case LS_READY:
		return;
	case LS_REFUSE:
		shake->refusal = (enum link_refusal)get8(c);
		if (shake->refusal < LR_MAJOR || shake->refusal > LR_LAST)
			c->bad = true;
		return;
	}
	c->bad = true;
}

int link_shake_decode(const uint8_t *bytes, size_t len,
		      struct link_shake *shake)
{
	struct reader c = { .at = bytes, .left = len };
	struct link_shake got = { 0 };
	uint8_t flags;

	if (len < LINK_SHAKE_HEAD || link_shake_length(bytes) != (long)len)
		return -EBADMSG;
	get32(&c);
	got.major = get16(&c);
	got.minor = get16(&c);
	got.type = (enum link_shake_type)get8(&c);
	flags = get8(&c);
	get16(&c);
	if (got.major != LINK_VERSION_MAJOR && got.type != LS_REFUSE) {
		*shake = got;
		return -EPROTONOSUPPORT;
	}
	got.keyed = flags & FLAG_KEYED;
	get_body(&c, &got);
	if (c.bad || c.left || flags & ~FLAG_KEYED)
		return -EBADMSG;
	*shake = got;
	return 0;
}

const char *link_refusal_text(enum link_refusal refusal, bool refusing)
{
	static const char *const texts[LR_LAST + 1][2] = {
		[LR_MAJOR] = { "this process speaks another major version",
			       "it speaks another major version" },
		[LR_TABLE] = { "this process is of another lock table",
			       "it is of another lock table" },
		[LR_OTHER_LIFE] = { "its process is not the one looked for",
				    "it looks for another process than this" },
		[LR_STRANGER] = { "it does not know this process as a member",
				  "it is no member as far as is known here" },
		[LR_KEY_NONE] = { "it has a key, none is configured here",
				  "it has no key, one is configured here" },
		[LR_KEY_EXTRA] = { "it has no key, one is configured here",
				   "it has a key, none is configured here" },
		[LR_KEY_WRONG] = { "its key is not the one configured here",
				   "its key is not the one configured here" },
		[LR_STREAM] = { "the messages that it and this process have "
				"had do not fit together",
				"the messages that it and this process have "
				"had do not fit together" },
		[LR_LATER] = { "it has had nonsense from this process",
			       "it has sent nonsense a moment ago" },
	};

	if (refusal < LR_MAJOR || refusal > LR_LAST)
		return "for a reason that is not known here";
	return texts[refusal][refusing];
}
