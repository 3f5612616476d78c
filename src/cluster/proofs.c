/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * proofs.c - see proofs.h. Every member asks, not only the lowest: questions
 * are rare and short, and so none depends on one that may be ill itself.
 */
#include <string.h>

#include "cluster/proofs.h"

#define ASK_AGAIN_NS 1000000000u

static void on_message(void *arg, struct group_proc from,
		       const struct group_msg *msg)
{
	struct proofs *p = arg;

	if (msg->type == GM_DEAD)
		p->proved(p->arg, &msg->dead);
}

void proofs_init(struct proofs *p, const uint8_t *uuid,
		 void (*proved)(void *arg, const struct group_dead *proof),
		 void *arg)
{
	memcpy(p->uuid, uuid, sizeof(p->uuid));
	p->next_ns = UINT64_MAX;
	p->proved = proved;
	p->arg = arg;
	suplink_init(&p->link, on_message, p);
}

static void ask_one(struct proofs *p, const struct member *member)
{
	struct group_msg msg = { .type = GM_ASK, .major = GROUP_VERSION_MAJOR };

	msg.ask.proc = member->proc;
	msg.ask.inc = member->info.inc;
	msg.ask.instance = member->instance;
	memcpy(msg.ask.uuid, p->uuid, sizeof(msg.ask.uuid));
	suplink_send(&p->link, &msg);
}

void proofs_ask(struct proofs *p, const struct group_state *table,
		uint64_t now_ns)
{
	p->next_ns = UINT64_MAX;
	for (uint32_t i = 0; i < table->count; i++) {
		const struct member *member = &table->members[i];

		if (member->cause == GONE_NOT || member->proof)
			continue;
		if (p->next_ns == UINT64_MAX) {
			p->next_ns = now_ns + ASK_AGAIN_NS;
			suplink_retry(&p->link);
		}
		ask_one(p, member);
	}
}
