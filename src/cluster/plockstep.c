/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plockstep.c - the engine's one door: an event in, its updates carried out.
 */
#include <errno.h>
#include <unistd.h>

#include "base/assert.h"
#include "cluster/limits.h"
#include "cluster/plocks_impl.h"

static void carry_out(struct plocks *p)
{
	for (size_t i = 0; i < p->updates.count; i++) {
		const struct plock_update *up = &p->updates.list[i];

		/* Alone there is nobody to send to. */
		ug_assert(up->kind == PLOCK_UP_ANSWER);
		plocks_call_answered(p, &up->answer);
	}
	p->updates.count = 0;
}

int plocks_step(struct plocks *p, struct plock_event *event)
{
	int err;

	event->now_ns = p->now_ns;
	err = plock_step(p->engine, event, &p->updates);
	carry_out(p);
	return err;
}

void plocks_rest(struct plocks *p)
{
	pthread_mutex_unlock(&p->lock);
	usleep(PLOCKS_RETRY_US);
	pthread_mutex_lock(&p->lock);
}

int plocks_step_surely(struct plocks *p, struct plock_event *event)
{
	int err = plocks_step(p, event);

	while (err == -ENOMEM) {
		plocks_rest(p);
		err = plocks_step(p, event);
	}
	return err;
}
