/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * waits.c - what the group waits for, as data and in words.
 *
 * The cluster's thread makes the list anew whenever something has changed, and
 * others read it: they never wait for that thread, which corosync can hold up.
 */
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/log.h"
#include "cluster/clock.h"
#include "cluster/cluster_impl.h"
#include "cluster/fenceagent.h"

void waits_read_nodes(struct cluster *c)
{
	int count = cluster_nodes(c->nodes, UG_ARRAY_SIZE(c->nodes));

	if (count < 0)
		return; /* corosync is gone, which is told otherwise */
	c->nodes_count = (unsigned)count;
	hosts_nodes(c->hosts, c->nodes, c->nodes_count);
}

/* The list */

struct list {
	struct cluster *c;
	unsigned count;
	struct cluster_wait waits[WAITS_MAX];
};

static void add(struct list *l, enum cluster_wait_reason reason, uint32_t node,
		const struct incarnation *inc)
{
	struct cluster_wait wait = { .reason = reason, .node = node };

	wait.since_ns = l->c->changed_ns;
	if (inc)
		wait.inc = *inc;
	if (l->count < WAITS_MAX)
		l->waits[l->count++] = wait;
}

static void add_silent(struct list *l)
{
	struct group_proc procs[GROUP_PROCS_MAX];
	unsigned n = membership_silent(l->c->membership, procs,
				       UG_ARRAY_SIZE(procs));

	for (unsigned i = 0; i < n; i++) {
		struct incarnation inc = { .pid = procs[i].pid };

		add(l, CLUSTER_WAIT_HELLO, procs[i].node, &inc);
	}
}

static void add_running(struct list *l)
{
	const struct group_state *table = membership_table(l->c->membership);

	if (!membership_settled(l->c->membership))
		return;
	for (uint32_t i = 0; i < table->count; i++) {
		const struct member *member = &table->members[i];

		if (member->cause == GONE_NOT &&
		    member->stopped != table->generation)
			add(l, CLUSTER_WAIT_STOP, member->proc.node,
			    &member->info.inc);
	}
}

static void set_names(struct list *l)
{
	for (unsigned i = 0; i < l->count; i++) {
		struct cluster_wait *wait = &l->waits[i];

		for (unsigned j = 0; j < l->c->nodes_count; j++)
			if (l->c->nodes[j].id == wait->node)
				memcpy(wait->name, l->c->nodes[j].name,
				       sizeof(wait->name));
	}
}

static bool is_known(const struct cluster *c, const struct cluster_wait *wait)
{
	for (unsigned i = 0; i < c->waits_count; i++) {
		const struct cluster_wait *old = &c->waits[i];

		if (old->reason == wait->reason && old->node == wait->node &&
		    old->tries == wait->tries &&
		    incarnation_equal(&old->inc, &wait->inc))
			return true;
	}
	return false;
}

/* Those that last, and those that want somebody. */
static void log_new(struct cluster *c, const struct list *l)
{
	char text[512];

	for (unsigned i = 0; i < l->count; i++) {
		const struct cluster_wait *wait = &l->waits[i];

		if (wait->reason < CLUSTER_WAIT_DEATH || is_known(c, wait))
			continue;
		cluster_wait_text(wait, text, sizeof(text));
		ug_log(wait->reason == CLUSTER_WAIT_MANUAL ||
				       wait->reason == CLUSTER_WAIT_NOFENCE ||
				       wait->reason == CLUSTER_WAIT_ALONE
			       ? UG_WARN
			       : UG_INFO,
		       c->who, "waiting: %s", text);
	}
}

void waits_publish(struct cluster *c)
{
	struct list l = { .c = c };

	if (!c->quorate)
		add(&l, CLUSTER_WAIT_QUORUM, 0, NULL);
	add_silent(&l);
	add_running(&l);
	l.count += hosts_waits(c->hosts, clock_now_ns(), l.waits + l.count,
			       WAITS_MAX - l.count);
	if (!l.count && !c->waits_count)
		return;
	set_names(&l);
	log_new(c, &l);
	pthread_mutex_lock(&c->lock);
	memcpy(c->waits, l.waits, l.count * sizeof(*l.waits));
	c->waits_count = l.count;
	pthread_mutex_unlock(&c->lock);
}

/* In words */

static void who_text(const struct cluster_wait *wait, char *buf, size_t len)
{
	if (wait->inc.pid)
		snprintf(buf, len, "%s (%u): process %u",
			 wait->name[0] ? wait->name : "node", wait->node,
			 wait->inc.pid);
	else
		snprintf(buf, len, "%s (%u): the host",
			 wait->name[0] ? wait->name : "node", wait->node);
}

void cluster_wait_text(const struct cluster_wait *wait, char *buf, size_t len)
{
	char who[NODE_NAME_MAX + 64], failure[64], node[NODE_NAME_MAX + 1];
	const char *missed = wait->inc.pid ? "is gone and not proved dead"
					   : "may have used the volume before";

	snprintf(node, sizeof(node), "%u", wait->node);
	who_text(wait, who, sizeof(who));
	fence_end_text(wait->status, failure, sizeof(failure));
	switch (wait->reason) {
	case CLUSTER_WAIT_QUORUM:
		snprintf(buf, len, "the cluster has no quorum");
		break;
	case CLUSTER_WAIT_HELLO:
		snprintf(buf, len, "%s has said nothing since the last change",
			 who);
		break;
	case CLUSTER_WAIT_STOP:
		snprintf(buf, len, "%s has not stopped its locks yet", who);
		break;
	case CLUSTER_WAIT_DEATH:
		snprintf(buf, len, "%s %s; its host has been asked about it",
			 who, missed);
		break;
	case CLUSTER_WAIT_FENCE:
		snprintf(buf, len, "%s %s; node %u is fencing it (attempt %u)",
			 who, missed, wait->by, wait->tries);
		break;
	case CLUSTER_WAIT_RETRY:
		snprintf(buf, len,
			 "%s %s; the fence command of node %u %s (attempt %u) "
			 "and is tried again",
			 who, missed, wait->by, failure, wait->tries);
		break;
	case CLUSTER_WAIT_MANUAL:
	case CLUSTER_WAIT_NOFENCE:
		snprintf(buf, len,
			 "%s %s, and %s: make sure that the host is down, then "
			 "say \"ugfs dlm fence_ack %s\"",
			 who, missed,
			 wait->reason == CLUSTER_WAIT_MANUAL
				 ? "fencing is manual"
				 : "no fence command is configured",
			 wait->name[0] ? wait->name : node);
		break;
	case CLUSTER_WAIT_ALONE:
		snprintf(buf, len,
			 "%s %s, and no member on another host could fence its "
			 "host: end the process, or restart the host",
			 who, missed);
		break;
	case CLUSTER_WAIT_STARTUP:
		snprintf(buf, len,
			 "%s %s; it is given time to mount it, then fenced",
			 who, missed);
		break;
	}
}

void waits_explain(const struct cluster *c, char *why, size_t why_len)
{
	size_t used = 0;

	snprintf(why, why_len, "the other hosts are being asked");
	for (unsigned i = 0; i < c->waits_count && used < why_len; i++) {
		char text[512];
		int n;

		cluster_wait_text(&c->waits[i], text, sizeof(text));
		n = snprintf(why + used, why_len - used, "%s%s",
			     used ? "; " : "", text);
		used += n > 0 ? (size_t)n : 0;
	}
}
