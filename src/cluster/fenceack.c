/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fenceack.c - see fenceack.h and cluster.h. Members and supervisors listen in
 * SUPLINK_GROUP; whoever speaks there has to be in it, for a moment.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "cluster/clock.h"
#include "cluster/cluster.h"
#include "cluster/fenceack.h"
#include "cluster/suplink.h"

#define RETURN_NS (10 * (uint64_t)NS_PER_SEC)

int fence_ack_find(const char *node, uint32_t *id)
{
	struct cluster_node nodes[GROUP_PROCS_MAX];
	int count = cluster_nodes(nodes, UG_ARRAY_SIZE(nodes));
	char number[16];
	unsigned id_given;
	int end = 0;

	if (count < 0)
		return count;
	for (int i = 0; i < count; i++) {
		snprintf(number, sizeof(number), "%u", nodes[i].id);
		if (strcmp(node, nodes[i].name) && strcmp(node, number) &&
		    strcmp(node, nodes[i].addr))
			continue;
		*id = nodes[i].id;
		return 0;
	}
	/* One that has been taken out of the configuration since. */
	if (sscanf(node, "%u%n", &id_given, &end) != 1 || node[end] ||
	    !id_given || id_given > NODE_ID_MAX)
		return -ENOENT;
	*id = id_given;
	return 0;
}

struct speaker {
	struct suplink link;
	uint32_t node;
	bool returned;
};

static void on_message(void *arg, struct group_proc from,
		       const struct group_msg *msg)
{
	struct speaker *s = arg;

	s->returned |= msg->type == GM_FENCE_ACK && msg->node == s->node &&
		       from.node == s->link.self.node &&
		       from.pid == s->link.self.pid;
}

static void on_procs(void *arg, const struct group_proc *list, unsigned count)
{
}

/* Having come back it has come to everybody. */
static int speak(struct speaker *s)
{
	struct group_msg msg = { .type = GM_FENCE_ACK,
				 .major = GROUP_VERSION_MAJOR,
				 .node = s->node };
	uint64_t end = clock_now_ns() + RETURN_NS;

	if (!suplink_send(&s->link, &msg))
		return -ENOMEM;
	while (!s->returned) {
		struct pollfd pfd = { s->link.fd, POLLIN, 0 };
		uint64_t due = UG_MIN(end, suplink_due_ns(&s->link));

		if (s->link.fd < 0)
			return -ECONNREFUSED;
		if (clock_now_ns() >= end)
			return -ETIMEDOUT;
		if (poll(&pfd, 1, clock_poll_ms(due)) > 0)
			suplink_dispatch(&s->link);
		if (suplink_due_ns(&s->link) <= clock_now_ns())
			suplink_flush(&s->link);
	}
	return 0;
}

static int say(uint32_t node, uint32_t *self)
{
	static const struct suplink_ops ops = {
		.message = on_message,
		.procs = on_procs,
	};
	struct speaker *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->node = node;
	suplink_init(&s->link, &ops, s);
	err = suplink_retry(&s->link);
	if (!err) {
		*self = s->link.self.node;
		err = *self == node ? -EBUSY : speak(s);
	}
	suplink_close(&s->link);
	free(s);
	return err;
}

int fence_ack_send(const char *node, char *why, size_t why_len)
{
	uint32_t id, self = 0;
	int err = fence_ack_find(node, &id);

	if (!err)
		err = say(id, &self);
	if (err == -ENOENT)
		snprintf(why, why_len,
			 "corosync is configured with no node \"%s\"", node);
	else if (err == -EBUSY)
		snprintf(why, why_len, "%s is this host, which is not down",
			 node);
	else if (err)
		snprintf(why, why_len, "corosync: %s", strerror(-err));
	return err;
}
