/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * corosync.c - the connections of a mount process to corosync: what has to be
 * in order before it may join, and what corosync says afterwards, as events.
 *
 * The order of joins matters: "ugfs:sup" first, since a proof that comes while
 * nobody listens is lost, and since others know us by it; then the kernel's
 * group, which may have a reason to turn back; then the group of the file
 * system, where turning back would cost the others a proof of death.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cluster/asked.h"
#include "cluster/cluster_impl.h"
#include "cluster/clock.h"
#include "cluster/coroconf.h"

#define CLUSTER_NAME_MAX 255

/* What corosync calls */

static void on_message(cpg_handle_t handle, const struct cpg_name *group,
		       uint32_t node, uint32_t pid, void *data, size_t len)
{
	struct member_event ev = { .kind = MEV_MESSAGE };
	struct group_msg msg = { 0 };
	struct cluster *c;
	void *context;
	int err;

	cpg_context_get(handle, &context);
	c = context;
	err = group_msg_decode(data, len, &msg, c->incoming);
	if (err == -EBADMSG) {
		ug_warn(c->who,
			"not a message: %zu bytes of process %u on "
			"node %u",
			len, pid, node);
		return;
	}
	if (!err && msg.type == GM_LEASE) {
		if (node == c->proc.node && pid == c->proc.pid)
			cluster_lease_back(c, msg.stamp);
		return;
	}
	ev.message.from = (struct group_proc){ node, pid };
	ev.message.msg = err ? NULL : &msg;
	ev.message.major = msg.major;
	ev.message.has_state = msg.has_state;
	cluster_step(c, &ev);
}

static enum leave_reason reason_of(uint32_t reason)
{
	switch (reason) {
	case CPG_REASON_LEAVE:
		return LEAVE_CALLED;
	case CPG_REASON_NODEDOWN:
		return LEAVE_HOST;
	default:
		return LEAVE_PROCESS;
	}
}

static void on_config(cpg_handle_t handle, const struct cpg_name *group,
		      const struct cpg_address *members, size_t members_count,
		      const struct cpg_address *left, size_t left_count,
		      const struct cpg_address *joined, size_t joined_count)
{
	struct group_proc procs[CPG_MEMBERS_MAX];
	struct group_left gone[CPG_MEMBERS_MAX];
	struct member_event ev = { .kind = MEV_CONFIG };
	void *context;

	cpg_context_get(handle, &context);
	if (members_count > CPG_MEMBERS_MAX || left_count > CPG_MEMBERS_MAX) {
		cluster_lose(context, "group", -E2BIG);
		return;
	}
	for (size_t i = 0; i < members_count; i++)
		procs[i] = (struct group_proc){ members[i].nodeid,
						members[i].pid };
	for (size_t i = 0; i < left_count; i++)
		gone[i] = (struct group_left){ { left[i].nodeid, left[i].pid },
					       reason_of(left[i].reason) };
	ev.config.procs = procs;
	ev.config.procs_count = (unsigned)members_count;
	ev.config.left = gone;
	ev.config.left_count = (unsigned)left_count;
	cluster_step(context, &ev);
}

static void on_ring(cpg_handle_t handle, struct cpg_ring_id ring,
		    uint32_t count, const uint32_t *nodes)
{
	struct member_event ev = { .kind = MEV_RING };
	void *context;

	cpg_context_get(handle, &context);
	if (count > GROUP_PROCS_MAX) {
		cluster_lose(context, "cluster", -E2BIG);
		return;
	}
	ev.ring.id = (struct ring_id){ ring.nodeid, ring.seq };
	ev.ring.nodes = nodes;
	ev.ring.nodes_count = count;
	cluster_ring(context, &ev);
}

static void on_quorum(void *arg, struct ring_id ring, bool quorate,
		      const uint32_t *nodes, unsigned count)
{
	cluster_quorum(arg, ring, quorate);
}

int corosync_dispatch(struct cluster *c, bool group, bool quorum)
{
	cs_error_t status = CS_OK;
	int err;

	if (group)
		status = cpg_dispatch(c->cpg, CS_DISPATCH_ALL);
	err = status == CS_ERR_TRY_AGAIN ? 0 : coro_error("dispatch", status);
	if (!err && quorum)
		err = quorum_link_dispatch(&c->quorum);
	return err;
}

/* Setting up */

struct reason {
	char *why;
	size_t len;
};

__attribute__((format(printf, 3, 4))) static int
refuse(struct reason *r, int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(r->why, r->len, fmt, args);
	va_end(args);
	return err;
}

/* An error of corosync's, if it is one: in words. */
static int explain(struct reason *r, const char *what, int err)
{
	if (err == -ECONNREFUSED)
		return refuse(r, err, "corosync is not running on this host");
	if (err == -EPERM)
		return refuse(r, err,
			      "corosync does not speak with this user (its "
			      "uidgid section names who may)");
	if (err)
		return refuse(r, err, "%s: %s", what, strerror(-err));
	return 0;
}

static int open_group(struct cluster *c)
{
	cpg_model_v1_data_t model = {
		.cpg_deliver_fn = on_message,
		.cpg_confchg_fn = on_config,
		.cpg_totem_confchg_fn = on_ring,
		.flags = CPG_MODEL_V1_DELIVER_INITIAL_TOTEM_CONF,
	};
	cs_error_t status;

	status = cpg_model_initialize(&c->cpg, CPG_MODEL_V1,
				      (cpg_model_data_t *)&model, c);
	if (status != CS_OK)
		return coro_error("cpg", status);
	c->queue.cpg = c->cpg;
	c->proc.pid = (uint32_t)getpid();
	status = cpg_local_get(c->cpg, &c->proc.node);
	if (status == CS_OK)
		status = cpg_fd_get(c->cpg, &c->cpg_fd);
	if (status != CS_OK)
		cpg_finalize(c->cpg);
	return coro_error("cpg", status);
}

static int join_group(struct cluster *c, struct reason *r)
{
	struct cpg_name name;
	int n = snprintf(name.value, sizeof(name.value), "ugfs:%s",
			 c->config.table);

	if (n < 0 || (size_t)n >= sizeof(name.value))
		return refuse(r, -ENAMETOOLONG,
			      "the lock table \"%s\" is longer than the name "
			      "of a corosync group can be",
			      c->config.table);
	name.length = (uint32_t)n;
	asked_note();
	return explain(r, "join", coro_join(c->cpg, &name));
}

static int make_membership(struct cluster *c)
{
	struct hosts_config hosts = { .self = c->proc };
	struct membership_config config = { .self = c->proc };

	memcpy(hosts.uuid, c->config.uuid, sizeof(hosts.uuid));
	hosts.startup_delay_ns = c->config.startup_delay_ns;
	c->hosts = hosts_new(&hosts);
	if (!c->hosts)
		return -ENOMEM;
	waits_read_nodes(c);

	config.timeout_ns = c->config.member_timeout_ns;
	config.info.inc = c->self;
	config.info.minor = GROUP_VERSION_MINOR;
	config.info.addr = c->config.addr;
	return membership_new(&config, &c->membership);
}

/* "cluster:fs", of this cluster. */
static int check_table(const char *table, struct reason *r)
{
	const char *colon = strchr(table, ':');
	char name[CLUSTER_NAME_MAX + 1];
	int err;

	if (!colon || colon == table || !colon[1])
		return refuse(r, -EINVAL,
			      "the lock table is \"%s\", not \"CLUSTER:FS\"",
			      table);
	err = coroconf_cluster_name(name, sizeof(name));
	if (err)
		return explain(r, "cluster_name", err);
	if (strlen(name) == (size_t)(colon - table) &&
	    strncmp(name, table, (size_t)(colon - table)) == 0)
		return 0;
	return refuse(r, -EXDEV,
		      "the lock table \"%s\" is of the cluster \"%.*s\", but "
		      "corosync's cluster_name is \"%s\"",
		      table, (int)(colon - table), table, name);
}

static int read_config(struct cluster *c, struct reason *r)
{
	bool two_node = false, wait_for_all = false;
	uint32_t token_ms = 0;
	int err = coroconf_two_node(&two_node, &wait_for_all);

	if (!err && two_node && !wait_for_all)
		return refuse(r, -ENOTUNIQ,
			      "corosync has two_node without wait_for_all, so "
			      "that each of two nodes could start alone");
	if (!err)
		err = coroconf_token_ms(&token_ms);
	c->token_ns = (uint64_t)token_ms * NS_PER_MS;
	return explain(r, "corosync's configuration", err);
}

/* corosync says "try again" while its ring is being formed. */
static int join_supervisors(struct cluster *c)
{
	int err = suplink_retry(&c->proofs.link);

	for (unsigned i = 0; err == -EAGAIN && i < JOIN_TRIES; i++) {
		usleep(JOIN_PAUSE_US);
		err = suplink_retry(&c->proofs.link);
	}
	return err;
}

static int open_beside(struct cluster *c, struct reason *r)
{
	const char *fs = strchr(c->config.table, ':') + 1;
	unsigned node = 0;
	int err = beside_open(&c->beside, fs, c->who, &node);

	if (err == -EBUSY)
		return refuse(r, err,
			      "the kernel has the file system \"%s\" mounted "
			      "on node %u; it cannot be mounted beside it",
			      fs, node);
	return explain(r, "the kernel's group", err);
}

static int connect_first(struct cluster *c, struct reason *r)
{
	int err = check_table(c->config.table, r);

	if (!err)
		err = read_config(c, r);
	if (!err)
		err = explain(r, "/proc", incarnation_self(&c->self));
	if (!err)
		err = explain(r, "group", open_group(c));
	return err;
}

int corosync_open(struct cluster *c, char *why, size_t why_len)
{
	struct reason r = { why, why_len };
	int err = connect_first(c, &r);

	if (err)
		return err;
	err = explain(&r, "quorum", quorum_link_open(&c->quorum, on_quorum, c));
	if (err)
		goto close_group;
	err = explain(&r, "membership", make_membership(c));
	if (err)
		goto close_quorum;
	err = explain(&r, "supervisors", join_supervisors(c));
	if (err)
		goto free_membership;
	err = open_beside(c, &r);
	if (err)
		goto close_proofs;
	err = join_group(c, &r);
	if (err)
		goto close_beside;
	return 0;
close_beside:
	beside_close(&c->beside);
close_proofs:
	suplink_close(&c->proofs.link);
free_membership:
	membership_free(c->membership);
close_quorum:
	quorum_link_close(&c->quorum);
close_group:
	cpg_finalize(c->cpg);
	return err;
}

void corosync_close(struct cluster *c)
{
	beside_close(&c->beside);
	suplink_close(&c->proofs.link);
	quorum_link_close(&c->quorum);
	cpg_finalize(c->cpg);
	membership_free(c->membership);
}
