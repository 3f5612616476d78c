/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lsjoin.c - ugdlm_join(): a lockspace among corosync, TCP and clocks.
 */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cluster/lockspace.h"

#define NS_PER_MS 1000000u
#define NS_PER_S 1000000000u

/* How soon an interrupted join ends. */
#define LOOK_NS 100000000u

static uint64_t monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static void rest(void)
{
	usleep(LS_RETRY_NS / 1000);
}

static void wait_for_change(struct ugdlm *ls, uint64_t until_ns)
{
	if (ls->need_push || ls->need_ring || ls->need_plocks) {
		ls_unlock(ls);
		ls_lock(ls);
		return;
	}
	ls_wait_until(ls, &ls->cond, until_ns);
}

static const struct ls_cluster_ops real_cluster = {
	.join = cluster_join,
	.close = cluster_close,
	.say_stopped = cluster_say_stopped,
	.say_left = cluster_say_left,
	.say_link = cluster_say_link,
	.expel = cluster_expel,
	.lease_ns = cluster_lease_ns,
	.table = cluster_table,
	.may_repair = cluster_may_repair,
	.say_repaired = cluster_say_repaired,
	.fence_ack = cluster_fence_ack,
	.waits = cluster_waits,
	.wait_text = cluster_wait_text,
	.nodes = cluster_nodes,
	.incarnation = incarnation_self,
	.life_lock = life_lock_take,
};

static const struct ls_links_ops real_links = {
	.open = links_open,
	.close = links_close,
	.add = links_add,
	.remove = links_remove,
	.send = links_send,
	.push = links_push,
	.full = links_full,
	.info = links_info,
};

static const struct ls_env real_env = {
	.cluster = &real_cluster,
	.links = &real_links,
	.own_addr = ls_own_addr,
	.now_ns = monotonic_ns,
	.rest = rest,
	.wait = wait_for_change,
	.threads = true,
};

/* Not under the lock: the program's own code. */
static bool interrupted(struct ugdlm *ls, const struct ugdlm_config *config)
{
	bool yes;

	if (!config->interrupted)
		return false;
	ls_unlock(ls);
	yes = config->interrupted(config->arg);
	ls_lock(ls);
	return yes;
}

/* Until admitted, lost, or given up: -EINTR, -ETIMEDOUT. */
static int wait_admitted(struct ugdlm *ls, const struct ugdlm_config *config,
			 uint32_t timeout_ms)
{
	uint64_t end = UINT64_MAX;

	if (timeout_ms)
		end = ls->now_ns + timeout_ms * (uint64_t)NS_PER_MS;
	while (!ls->admitted && !ls->lost) {
		if (interrupted(ls, config))
			return -EINTR;
		if (ls->now_ns >= end)
			return -ETIMEDOUT;
		ls->env.wait(ls, config->interrupted
					 ? UG_MIN(end, ls->now_ns + LOOK_NS)
					 : end);
	}
	return 0;
}

/* What has come of it; a newcomer that is not taken in is not to be any more.
 */
static int end_joining(struct ugdlm *ls, int err, uint32_t timeout_ms,
		       char *why, size_t why_len)
{
	if (ls->lost) {
		err = ls->lost_err;
		ls_say(why, why_len, "%s: %s", ls->name, ls->lost_why);
	} else if (ls->admitted) {
		err = ls->join_err;
		if (err)
			ls_say(why, why_len, "%s: life lock or lock engine: %s",
			       ls->name, strerror(-err));
	} else {
		ls->leaving = true;
		if (err == -EINTR)
			ls_say(why, why_len, "%s: interrupted while joining",
			       ls->name);
		else
			ls_say(why, why_len,
			       "%s: not admitted after %u ms: no quorum, or "
			       "other members do not answer",
			       ls->name, timeout_ms);
	}
	return err;
}

int ugdlm_join(const struct ugdlm_config *config, uint32_t timeout_ms,
	       struct ugdlm **out, char *why, size_t why_len)
{
	struct ugdlm *ls;
	int err = ls_new(config, &real_env, &ls, why, why_len);

	if (err)
		return err;
	err = ls_connect(ls, config, why, why_len);
	if (err) {
		ls_free(ls);
		return err;
	}
	ls_lock(ls);
	err = wait_admitted(ls, config, timeout_ms);
	err = end_joining(ls, err, timeout_ms, why, why_len);
	ls_unlock(ls);
	if (err) {
		ugdlm_leave(ls, false);
		return err;
	}
	*out = ls;
	return 0;
}
