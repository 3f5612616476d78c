/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * parked.c - messages that wait: for their file, their epoch, or the barrier.
 *
 * How many of one sender are kept is counted over all lists: what a member can
 * make us remember has a bound, whatever it says. Our own calls are as many as
 * processes make here, and are not counted.
 */
#include <errno.h>
#include <stdlib.h>

#include "plock/engine.h"

/* The one of this sender, else an unused one; NULL: none is left. */
static struct sender *sender_of(struct plock_engine *engine, uint64_t node)
{
	struct sender *unused = NULL;

	for (unsigned i = 0; i < UG_ARRAY_SIZE(engine->senders); i++) {
		struct sender *sender = &engine->senders[i];

		if (sender->kept && sender->node == node)
			return sender;
		if (!sender->kept)
			unused = sender;
	}
	if (unused)
		unused->node = node;
	return unused;
}

int parked_keep(struct plock_engine *engine, struct cds_list_head *list,
		const struct plock_msg *msg, size_t most)
{
	struct parked *parked = engine->spare_parked;

	if (msg->from != engine->config.node) {
		struct sender *sender = sender_of(engine, msg->from);

		if (!sender || sender->kept >= most)
			return -ENOBUFS;
		sender->kept++;
	}
	ug_assert(parked);
	engine->spare_parked = NULL;
	parked->msg = *msg;
	cds_list_add_tail(&parked->list, list);
	return 0;
}

void parked_free(struct plock_engine *engine, struct parked *parked)
{
	if (parked->msg.from != engine->config.node) {
		struct sender *sender = sender_of(engine, parked->msg.from);

		ug_assert(sender && sender->kept);
		sender->kept--;
	}
	cds_list_del(&parked->list);
	free(parked);
}

void parked_free_all(struct plock_engine *engine, struct cds_list_head *list)
{
	while (!list_empty(list))
		parked_free(engine,
			    cds_list_first_entry(list, struct parked, list));
}
