/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * proofs.c - see proofs.h. Every member asks, not only the lowest: questions
 * are rare and short, and so none depends on one that may be ill itself.
 */
#include <string.h>

#include "cluster/proofs.h"

#define ASK_AGAIN_NS 1000000000u
#define ASKS_MAX 64

void proofs_init(struct proofs *p, const uint8_t *uuid,
		 const struct suplink_ops *ops, void *arg)
{
	memcpy(p->uuid, uuid, sizeof(p->uuid));
	p->next_ns = UINT64_MAX;
	suplink_init(&p->link, ops, arg);
}

static void send_ask(struct proofs *p, const struct group_ask *ask)
{
	struct group_msg msg = { .type = GM_ASK, .major = GROUP_VERSION_MAJOR };

	msg.ask = *ask;
	suplink_send(&p->link, &msg);
}

static void ask_for_member(struct proofs *p, const struct member *member)
{
	struct group_ask ask = { .proc = member->proc,
				 .inc = member->info.inc,
				 .instance = member->instance };

	memcpy(ask.uuid, p->uuid, sizeof(ask.uuid));
	send_ask(p, &ask);
}

static unsigned ask_for_members(struct proofs *p,
				const struct group_state *table)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < table->count; i++) {
		const struct member *member = &table->members[i];

		if (member->cause == GONE_NOT || member->proof)
			continue;
		ask_for_member(p, member);
		n++;
	}
	return n;
}

static unsigned ask_for_hosts(struct proofs *p, const struct hosts *hosts,
			      uint64_t now_ns)
{
	struct group_ask asks[ASKS_MAX];
	struct group_msg survey = { .type = GM_SURVEY,
				    .major = GROUP_VERSION_MAJOR };
	unsigned n = hosts_asks(hosts, now_ns, asks, ASKS_MAX);

	for (unsigned i = 0; i < n; i++)
		send_ask(p, &asks[i]);
	memcpy(survey.uuid, p->uuid, sizeof(survey.uuid));
	if (hosts_want_survey(hosts))
		suplink_send(&p->link, &survey);
	return n;
}

void proofs_ask(struct proofs *p, const struct group_state *table,
		const struct hosts *hosts, bool startup, uint64_t now_ns)
{
	unsigned asked;

	suplink_retry(&p->link);
	asked = ask_for_members(p, table);
	if (startup)
		asked += ask_for_hosts(p, hosts, now_ns);
	p->next_ns = asked || startup ? now_ns + ASK_AGAIN_NS : UINT64_MAX;
}
