/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lslinks.c - what the links tell, on their thread.
 *
 * A message is given to the engine at once; what the engine has to say to it is
 * pushed at the pause, together with the answers to all that came with it, and
 * only then a dispatcher is woken, or the callbacks run (lscallbacks.c). The
 * lock is taken with the first message and released at the pause; others have
 * their turn after every TURN_MESSAGES.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"
#include "cluster/lockspace.h"
#include "cluster/plocks_impl.h"
#include "wire/dlmwire.h"

#define TURN_MESSAGES 64u

/* On the links' thread, which has the lock from the first message on. */
static void begin_message(struct ugdlm *ls)
{
	if (!ls->receiving) {
		ls_lock(ls);
		ls->receiving = true;
		ls->received = 0;
	} else if (++ls->received % TURN_MESSAGES == 0) {
		ls_unlock_quietly(ls);
		ls_lock(ls);
	}
}

/*
 * What the links' thread tells beside messages: among them it has the lock.
 * Whether it was taken now, which is for end_news().
 */
static bool begin_news(struct ugdlm *ls)
{
	bool alone = !ls->receiving;

	if (alone)
		ls_lock(ls);
	return alone;
}

static void end_news(struct ugdlm *ls, bool alone)
{
	if (alone)
		ls_unlock(ls);
}

static bool answers_flush(struct ugdlm *ls, const struct dlm_msg *msg)
{
	struct ls_member *member = ls_member_find(ls, (uint32_t)msg->from);

	if (msg->kind != DLM_RCOM || msg->rc.type != DLM_RCOM_STATUS_REPLY ||
	    !ls->flush_id || msg->rc.id != ls->flush_id)
		return false;
	if (member && member->asked) {
		member->asked = false;
		ls->flush_due--;
		pthread_cond_broadcast(&ls->cond);
	}
	return true;
}

static void trace_received(struct ugdlm *ls, const struct dlm_msg *msg)
{
	bool lockmsg = msg->kind == DLM_MSG;

	ls_trace(ls, LS_TR_RECEIVE, lockmsg ? msg->m.remid : 0, msg->from,
		 msg->kind << 8 |
			 (lockmsg ? (int)msg->m.type : (int)msg->rc.type),
		 lockmsg ? msg->m.result : msg->rc.result);
}

static int decode(struct ugdlm *ls, const uint8_t *bytes, size_t len,
		  struct dlm_msg *msg)
{
	int err = dlm_wire_decode(bytes, len, ls->wire_id, msg);

	while (err == -ENOMEM && !ls->lost) {
		ls_unlock_quietly(ls);
		ls->env.rest();
		ls_lock(ls);
		err = dlm_wire_decode(bytes, len, ls->wire_id, msg);
	}
	return err;
}

static void pause_receiving(void *arg)
{
	struct ugdlm *ls = arg;

	if (ls->receiving) {
		ls->receiving = false;
		ls_dispatch_direct(ls);
		ls_unlock(ls); /* pushes, rings */
	}
	if (ls->received_plocks) {
		ls->received_plocks = false;
		plocks_catch_up(ls->plocks);
	}
}

/* A message must not be lost: without memory this thread has to wait. */
static int receive(void *arg, const struct link_peer *from,
		   enum link_channel channel, const uint8_t *bytes, size_t len)
{
	struct dlm_event event = { .kind = DLM_EV_MESSAGE };
	struct ugdlm *ls = arg;
	struct dlm_msg msg;
	int err;

	if (channel == LINK_PLOCK) {
		pause_receiving(ls); /* the lock may be held */
		ls->received_plocks = true;
		return plocks_receive(ls, from, bytes, len);
	}
	if (channel != LINK_DLM)
		return -EBADMSG;
	begin_message(ls);
	err = decode(ls, bytes, len, &msg);
	if (err) /* no memory: it is lost, and listens to nobody */
		return err == -ENOMEM ? 0 : -EBADMSG;
	err = -EBADMSG;
	if (ls->lost || !ls->engine) {
		err = 0;
		goto out;
	}
	if (msg.from != (int32_t)from->id)
		goto out;
	msg.to = (int32_t)(ls->self.nodeid | (uint32_t)ls->self.instance
						     << INSTANCE_SHIFT);
	trace_received(ls, &msg);
	if (answers_flush(ls, &msg)) {
		err = 0;
		goto out;
	}
	event.message.msg = &msg;
	event.message.incarnation = incarnation_short(&from->inc);
	err = ls_step_surely(ls, &event);
	ls_resume_refused(ls);
out:
	dlm_msg_release(&msg);
	return err;
}

/* Of a timer: never among messages. */
static void silent(void *arg, const struct link_peer *peer)
{
	struct ugdlm *ls = arg;
	struct ls_member *member;

	ls_lock(ls);
	member = ls_member_of(ls, &peer->inc);
	if (!ls->lost && !ls->left && member && member->linked &&
	    !member->silent) {
		member->silent = true;
		ls->silent++;
		ls_trace_text(ls, "node %u keeps silent", peer->id);
		ls->env.cluster->say_link(ls->cluster, &peer->inc, true);
		ls_wake_thread(ls, ls->now_ns);
	}
	ls_unlock(ls);
}

static void well_again(struct ugdlm *ls, const struct link_info *info)
{
	struct ls_member *member = ls_member_of(ls, &info->peer.inc);

	if (!member || !member->silent || !info->connected ||
	    info->silent_ns > LS_SILENT_NS * 2ull)
		return;
	member->silent = false;
	ls->silent--;
	ls_trace_text(ls, "node %u is heard again", member->id);
	ls->env.cluster->say_link(ls->cluster, &member->m.info.inc, false);
}

/* Nothing else tells it; silent links are rare, and do not last. */
uint64_t ls_check_silent(struct ugdlm *ls)
{
	struct link_info *infos;
	unsigned count;

	if (ug_likely(!ls->silent))
		return UINT64_MAX;
	if (ls->silent_check_ns > ls->now_ns)
		return ls->silent_check_ns;
	ls->silent_check_ns = ls->now_ns + LS_SILENT_NS;
	infos = calloc(GROUP_MEMBERS_MAX, sizeof(*infos));
	if (!infos)
		return ls->silent_check_ns;
	count = ls->env.links->info(ls->links, infos, GROUP_MEMBERS_MAX);
	for (unsigned i = 0; i < count; i++)
		well_again(ls, &infos[i]);
	free(infos);
	return ls->silent_check_ns;
}

/*
 * Who is new and cannot be linked to a member goes by itself, at once: the
 * members would wait for it until they expel one of the two, and with as many
 * broken links that could be the one that works.
 */
static void refused(void *arg, const struct link_peer *peer, const char *why)
{
	const struct ls_member *member;
	struct ugdlm *ls = arg;
	bool alone = begin_news(ls);

	member = ls_member_of(ls, &peer->inc);
	if (member && !ls->lost && !ls->left && !ls->generation)
		ls_lose(ls, -EKEYREJECTED, "no link with %s: %s", member->name,
			why);
	end_news(ls, alone);
}

static void room(void *arg, uint32_t id)
{
	struct ugdlm *ls = arg;
	struct ls_member *member;
	bool alone = begin_news(ls);

	member = ls_member_find(ls, id);
	if (member && member->full) {
		member->full = false;
		ls->full--;
		ls_trace_text(ls, "node %u: room in its queue", id);
	}
	if (!ls->full && !ls->lost)
		ls_resume(ls);
	end_news(ls, alone);
}

const struct links_ops ls_links_callbacks = {
	.receive = receive,
	.pause = pause_receiving,
	.silent = silent,
	.refused = refused,
	.room = room,
};

/* Any answer is behind all that was said before the question. */
int ls_ask_all(struct ugdlm *ls)
{
	struct ls_member *member;

	ls->flush_id = (ls->self.pid + 1) * 0x9e3779b97f4a7c15u;
	cds_list_for_each_entry (member, &ls->members, list) {
		struct dlm_msg msg = { .kind = DLM_RCOM };
		long len;

		if (!member->linked || member->asked)
			continue;
		msg.from =
			(int32_t)(ls->self.nodeid | (uint32_t)ls->self.instance
							    << INSTANCE_SHIFT);
		msg.to = (int32_t)member->id;
		msg.rc.type = DLM_RCOM_STATUS;
		msg.rc.id = ls->flush_id;
		len = dlm_wire_encode(&msg, ls->wire_id, ls->encoded,
				      sizeof(ls->encoded));
		ug_assert(len > 0);
		if (ls->env.links->send(ls->links, member->id, LINK_DLM,
					ls->encoded, (size_t)len) == -ENOMEM)
			return -ENOMEM;
		member->asked = true;
		ls->flush_due++;
		ls->need_push = true;
	}
	return 0;
}
