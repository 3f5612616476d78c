/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plocklinks.c - messages of application locks, on the links' thread.
 *
 * What the engine has to say is sent, and answers are told, at the pause, for
 * all messages that came together; unless somebody else is here before.
 *
 * A message must not be lost, so this thread waits where the engine cannot take
 * it. Without memory, for memory. If there is enough of an epoch to come, for
 * that: the sender has had its start, and corosync gives ours without the
 * links. Only if the sender is gone nobody waits for it any more, and
 * links_remove() waits for us.
 */
#include <errno.h>

#include "cluster/lockspace.h"
#include "cluster/plocks_impl.h"
#include "wire/plockwire.h"

/* Its end is known: close_link() has begun. */
static bool is_cut(struct ugdlm *ls, const struct link_peer *from)
{
	const struct ls_member *member;
	bool cut;

	ls_lock(ls);
	member = ls_member_of(ls, &from->inc);
	cut = ls->lost || (member && member->m.cause != GONE_NOT);
	ls_unlock(ls);
	return cut;
}

/* Until there is room, or nothing is to be given. */
static int give(struct plocks *p, const struct link_peer *from,
		struct plock_event *event)
{
	int err = plocks_step_surely(p, event);

	while (err == -EAGAIN && !p->lost) {
		plocks_unlock(p);
		if (is_cut(p->ls, from)) {
			plocks_lock(p);
			return 0;
		}
		p->ls->env.rest();
		plocks_lock(p);
		err = plocks_step_surely(p, event);
	}
	return p->lost ? 0 : err;
}

static int take_frame(struct plocks *p, const struct link_peer *from,
		      const uint8_t *bytes, size_t len)
{
	struct plock_event event = { .kind = PLOCK_EV_MESSAGE };
	struct plock_msg msg;

	event.msg = &msg;
	while (len && !p->lost) {
		long n = plock_wire_decode(bytes, len, &msg);
		int err;

		if (n < 0)
			return -EBADMSG;
		msg.from = incarnation_short(&from->inc);
		msg.to = p->node;
		err = give(p, from, &event);
		if (err)
			return err;
		bytes += n;
		len -= (size_t)n;
	}
	return 0;
}

int plocks_receive(struct ugdlm *ls, const struct link_peer *from,
		   const uint8_t *bytes, size_t len)
{
	struct plocks *p = ls->plocks;
	int err;

	if (!p)
		return -EBADMSG;
	plocks_lock(p);
	err = take_frame(p, from, bytes, len);
	plocks_unlock_quietly(p);
	return err;
}

void plocks_catch_up(struct plocks *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	plocks_unlock(p);
}
