/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plockstep.c - the engine's one door: an event in, its updates carried out.
 *
 * Answers are put where they are told at once; that needs no memory. Sends stay
 * in the list of updates until the lock is about to be released, so that what
 * several steps say to one member goes in one frame. Those that find no memory
 * stay there, and all later ones behind them: to one member they leave in the
 * order in which the engine said them.
 */
#include <errno.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "cluster/limits.h"
#include "cluster/lockspace.h"
#include "cluster/plocks_impl.h"
#include "wire/plockwire.h"

static_assert(sizeof(((struct plocks *)0)->frame) >= PLOCK_WIRE_MAX,
	      "every message fits");

/* A send to nobody is nothing. */
static void set_done(struct plock_update *up)
{
	up->kind = PLOCK_UP_SEND;
	up->msg.to = 0;
}

static bool is_to(const struct plock_update *up, uint64_t node)
{
	return up->kind == PLOCK_UP_SEND && up->msg.to == node;
}

static void take_answers(struct plocks *p, size_t from)
{
	for (size_t i = from; i < p->updates.count; i++) {
		struct plock_update *up = &p->updates.list[i];

		if (up->kind != PLOCK_UP_ANSWER)
			continue;
		plocks_call_answered(p, &up->answer);
		set_done(up);
	}
}

int plocks_step(struct plocks *p, struct plock_event *event)
{
	size_t before = p->updates.count;
	int err;

	event->now_ns = p->now_ns;
	err = plock_step(p->engine, event, &p->updates);
	/* Also what was left before is left then. */
	p->more = p->updates.more || err == -ENOMEM;
	take_answers(p, before);
	return err;
}

void plocks_rest(struct plocks *p)
{
	pthread_mutex_unlock(&p->lock);
	if (p->ls)
		p->ls->env.rest();
	else
		usleep(PLOCKS_RETRY_US);
	pthread_mutex_lock(&p->lock);
}

int plocks_step_surely(struct plocks *p, struct plock_event *event)
{
	int err = plocks_step(p, event);

	while (err == -ENOMEM && !p->lost) {
		plocks_rest(p);
		err = plocks_step(p, event);
	}
	return err;
}

/* Sends */

static struct plocks_peer *find_peer(struct plocks *p, uint64_t node)
{
	for (unsigned i = 0; i < p->peers_count; i++)
		if (p->peers[i].node == node)
			return &p->peers[i];
	return NULL;
}

void plocks_forget_peer(struct plocks *p, uint64_t node)
{
	struct plocks_peer *peer = find_peer(p, node);

	if (peer)
		*peer = p->peers[--p->peers_count];
}

/* Bytes of as many messages to this node as fit; *end is behind the last. */
static size_t gather(struct plocks *p, uint64_t node, size_t first, size_t *end)
{
	size_t len = 0, i;

	for (i = first; i < p->updates.count; i++) {
		const struct plock_update *up = &p->updates.list[i];
		long n;

		if (!is_to(up, node))
			continue;
		n = plock_wire_encode(&up->msg, p->frame + len,
				      sizeof(p->frame) - len);
		if (n == -EMSGSIZE)
			break;
		ug_assert(n > 0);
		len += (size_t)n;
	}
	*end = i;
	return len;
}

static int send_from(struct plocks *p, size_t first)
{
	uint64_t node = p->updates.list[first].msg.to;
	struct plocks_peer *peer = find_peer(p, node);
	size_t len, end = first + 1;

	/* One that is gone: as if it had been lost under way. */
	if (peer) {
		len = gather(p, node, first, &end);
		if (p->ls->env.links->send(p->ls->links, peer->id, LINK_PLOCK,
					   p->frame, len) == -ENOMEM)
			return -ENOMEM;
		p->need_push = true;
	}
	for (size_t i = first; i < end; i++)
		if (is_to(&p->updates.list[i], node))
			set_done(&p->updates.list[i]);
	return 0;
}

void plocks_send(struct plocks *p)
{
	p->stuck = false;
	if (p->lost)
		p->sent = p->updates.count;
	while (p->sent < p->updates.count) {
		const struct plock_update *up = &p->updates.list[p->sent];

		if (up->kind == PLOCK_UP_SEND && up->msg.to &&
		    send_from(p, p->sent)) {
			p->stuck = true;
			return;
		}
		p->sent++;
	}
	p->updates.count = 0;
	p->sent = 0;
}

/* When something is to be done without another event. */
uint64_t plocks_wake_ns(const struct plocks *p)
{
	uint64_t wake;

	if (p->lost)
		return UINT64_MAX;
	wake = plock_wake_ns(p->engine);
	if (p->stuck || p->more || p->look_again)
		wake = UG_MIN(wake, p->now_ns + PLOCKS_RETRY_US * 1000ull);
	return wake;
}
