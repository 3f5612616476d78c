/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * keeper.c - the journals of dead members, and the end of a mount that has
 * withdrawn. See membership_impl.h.
 *
 * A journal that somebody else has locked is being recovered by another
 * survivor, or has been, and has a new owner by now: a slot is given away only
 * when some member has called its journal clean.
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "daemon/membership_impl.h"

/* Between attempts at a journal, and between complaints about one. */
#define RETRY_NS (200u * (uint64_t)NS_PER_MS)
#define COMPLAIN_NS (30u * (uint64_t)NS_PER_SEC)

static void complain(struct membership *m, uint16_t slot, const char *why)
{
	uint64_t t = now_ns();

	pthread_mutex_lock(&m->lock);
	snprintf(m->complaint, sizeof(m->complaint), "%s", why);
	pthread_mutex_unlock(&m->lock);
	if (m->complained_ns && t - m->complained_ns < COMPLAIN_NS)
		return;
	m->complained_ns = t;
	ug_error(
		m->params.who,
		"journal %u is not recovered yet, and no lock is granted until "
		"then: %s",
		slot - 1u, why);
}

/*
 * A journal that was dirty before its last owner was a member could be that of
 * somebody who is alive, beyond our sight (DESIGN 4.7). Once any mount of this
 * group has got as far as ours there is none.
 */
static int may_repair(struct membership *m, char *why, size_t why_len)
{
	bool mounted;

	pthread_mutex_lock(&m->lock);
	mounted = m->mounted;
	pthread_mutex_unlock(&m->lock);
	return mounted ? 0 : ugdlm_may_repair(m->ls, why, why_len);
}

static int recover_slot(struct membership *m, struct fs *fs, uint16_t slot)
{
	char why[WHY_LEN] = "";
	int err = may_repair(m, why, sizeof(why));

	if (err) {
		complain(m, slot, why);
		return err;
	}
	err = fs_recover_journal(fs, slot - 1u);
	/* Of a new member: it has been clean since the last one died. */
	if (err == -EAGAIN && ugdlm_slot_has_member(m->ls, slot))
		err = 0;
	if (!err)
		ugdlm_slot_clean(m->ls, slot);
	else if (err != -EAGAIN)
		complain(m, slot,
			 err == -EUCLEAN ? "it is damaged, fsck.gfs2 can clear "
					   "it when nobody has it mounted"
					 : strerror(-err));
	return err;
}

/* The lock is held. */
static void forget_slot(struct membership *m, uint16_t slot)
{
	for (unsigned i = 0; i < m->dirty_count; i++)
		if (m->dirty[i] == slot)
			m->dirty[i] = m->dirty[--m->dirty_count];
}

/* The lock is held, and let go meanwhile. */
static void recover_one(struct membership *m)
{
	uint16_t slot = m->dirty[0];
	struct fs *fs = m->fs;
	int err;

	m->recovering = true;
	pthread_mutex_unlock(&m->lock);
	err = recover_slot(m, fs, slot);
	pthread_mutex_lock(&m->lock);
	m->recovering = false;
	pthread_cond_broadcast(&m->changed);
	if (!err) {
		forget_slot(m, slot);
		m->complained_ns = 0;
		m->complaint[0] = '\0';
		membership_thaw_if_clean(m);
	} else if (!m->ending && m->fs) {
		/* Others first: their owners may be known to be dead. */
		forget_slot(m, slot);
		m->dirty[m->dirty_count++] = slot;
		wait_until(m, now_ns() + RETRY_NS);
	}
}

/*
 * Withdrawn: the device is shut, and let go when the last request has come
 * back from it. Then the others may replay our journal.
 */
static void leave_dirty(struct membership *m)
{
	int err;

	applocks_leave(m->applocks);
	membership_await_askers(m);
	lockmod_dlm_cut(m->dlm);
	dispatcher_stop(m);
	if (m->gate)
		gate_retire(m->gate);
	err = ugdlm_leave(m->ls, true);
	lockmod_dlm_fail(m->dlm);
	if (err && !m->lost)
		ug_error(m->params.who,
			 "the others have not heard that the "
			 "device is closed: %s",
			 strerror(-err));
	else if (!m->lost)
		ug_warn(m->params.who,
			"the device is closed and the cluster "
			"left; the other nodes recover journal %u",
			m->slot - 1u);
	pthread_mutex_lock(&m->lock);
	m->left = true;
	m->leave_err = err;
	pthread_cond_broadcast(&m->changed);
}

/* Each change of members ends the lease for a moment, which says nothing. */
static void rest(struct membership *m)
{
	uint64_t end_ns = m->quorate_ns + PATIENCE_NS;

	if (m->quorate || m->told_waiting || !m->has_run) {
		pthread_cond_wait(&m->changed, &m->lock);
	} else if (now_ns() < end_ns) {
		wait_until(m, end_ns);
	} else {
		ug_warn(m->params.who,
			"no quorum, or not heard by the cluster: all work "
			"waits");
		m->told_waiting = true;
	}
}

static void *keeper_main(void *arg)
{
	struct membership *m = arg;

	pthread_setname_np(pthread_self(), "ugfs-keeper");
	pthread_mutex_lock(&m->lock);
	while (!m->left) {
		if (m->withdrawn) {
			pthread_mutex_unlock(&m->lock);
			leave_dirty(m);
		} else if (m->ending) {
			break;
		} else if (m->fs && m->running && m->dirty_count && !m->lost) {
			recover_one(m);
		} else {
			rest(m);
		}
	}
	pthread_mutex_unlock(&m->lock);
	return NULL;
}

int keeper_start(struct membership *m)
{
	m->keeping = !pthread_create(&m->keeper, NULL, keeper_main, m);
	return m->keeping ? 0 : -EAGAIN;
}

void keeper_stop(struct membership *m)
{
	if (!m->keeping)
		return;
	m->keeping = false;
	pthread_mutex_lock(&m->lock);
	m->ending = true;
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
	pthread_join(m->keeper, NULL);
}
