/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dispatcher.c - what the lockspace tells a mount. See membership_impl.h.
 *
 * One thread runs all callbacks, and waits for nothing: the answers for all
 * glocks come from it.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/membership_impl.h"

static void on_prepare(void *arg)
{
	struct membership *m = arg;

	pthread_mutex_lock(&m->lock);
	m->running = false;
	if (m->fs)
		fs_freeze(m->fs);
	pthread_mutex_unlock(&m->lock);
}

static bool is_dirty(const struct membership *m, uint16_t slot)
{
	for (unsigned i = 0; i < m->dirty_count; i++)
		if (m->dirty[i] == slot)
			return true;
	return false;
}

static void on_gone(void *arg, const struct ugdlm_member *gone,
		    enum ugdlm_end end)
{
	struct membership *m = arg;

	if (end == UGDLM_END_CLEAN || !gone->slot)
		return;
	ug_warn(m->params.who, "node %u (%s) has %s: journal %u is recovered",
		gone->nodeid, gone->nodeid ? gone->name : "earlier member",
		end == UGDLM_END_DIRTY ? "withdrawn" : "died", gone->slot - 1u);
	pthread_mutex_lock(&m->lock);
	/* A lockspace has no more slots than that. */
	if (!is_dirty(m, gone->slot) && m->dirty_count < SLOTS_MAX) {
		m->dirty[m->dirty_count++] = gone->slot;
		m->gone_ns[(gone->slot - 1) % SLOTS_MAX] = now_ns();
	}
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
}

static void on_running(void *arg, uint32_t generation,
		       const struct ugdlm_member *self)
{
	struct membership *m = arg;

	pthread_mutex_lock(&m->lock);
	m->running = m->has_run = true;
	m->slot = self->slot;
	membership_thaw_if_clean(m);
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
}

static void on_quorate(void *arg, bool quorate)
{
	struct membership *m = arg;

	pthread_mutex_lock(&m->lock);
	m->quorate = quorate;
	m->quorate_ns = now_ns();
	if (quorate && m->told_waiting)
		ug_info(m->params.who, "has quorum: work goes on");
	m->told_waiting = false;
	if (m->gate)
		gate_poke(m->gate);
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
}

static void on_cleared(void *arg)
{
	struct membership *m = arg;

	pthread_mutex_lock(&m->lock);
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
}

/* Nothing is written from here on, whatever others are at. */
static void on_lost(void *arg, const char *why)
{
	struct membership *m = arg;
	struct fs *fs;

	pthread_mutex_lock(&m->lock);
	if (m->dev)
		blkdev_shut(m->dev);
	if (m->gate)
		gate_poke(m->gate);
	m->lost = true;
	snprintf(m->lost_why, sizeof(m->lost_why), "%s", why);
	fs = m->mounted ? m->fs : NULL;
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
	ug_error(m->params.who, "out of the cluster: %s", why);
	if (fs)
		fs_withdraw(fs, "out of the cluster: %s", why);
}

const struct ugdlm_events membership_events = {
	.prepare = on_prepare,
	.gone = on_gone,
	.running = on_running,
	.quorate = on_quorate,
	.cleared = on_cleared,
	.lost = on_lost,
};

static void *dispatcher_main(void *arg)
{
	struct membership *m = arg;
	struct pollfd fds[2] = {
		{ ugdlm_fd(m->ls), POLLIN, 0 },
		{ m->stop_fd, POLLIN, 0 },
	};

	pthread_setname_np(pthread_self(), "ugfs-dlm");
	while (!fds[1].revents) {
		ugdlm_dispatch(m->ls, 64);
		poll(fds, 2, -1);
	}
	return NULL;
}

int dispatcher_start(struct membership *m)
{
	m->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (m->stop_fd < 0)
		return -EAGAIN;
	m->dispatching =
		!pthread_create(&m->dispatcher, NULL, dispatcher_main, m);
	return m->dispatching ? 0 : -EAGAIN;
}

void dispatcher_stop(struct membership *m)
{
	if (m->dispatching) {
		eventfd_write(m->stop_fd, 1);
		pthread_join(m->dispatcher, NULL);
	}
	m->dispatching = false;
	if (m->stop_fd >= 0)
		close(m->stop_fd);
	m->stop_fd = -1;
}
