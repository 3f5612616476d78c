/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * corosync.c - the edge: one thread between corosync and a membership.
 *
 * The thread sleeps in poll() on corosync's connections (the group's, quorum's,
 * that to the supervisors) and on an eventfd that other threads ring after they
 * have left a command. Everything about the membership happens on it.
 *
 * Messages go through a queue: corosync refuses them for a moment while its
 * ring is being formed, and their order must hold. The lease message does not
 * wait there: late, it would be worth nothing.
 *
 * With corosync stopped (SIGSTOP) a send can hang; then the lease runs out, as
 * it must, because others read it without this thread.
 */
#include <corosync/cpg.h>
#include <corosync/quorum.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "cluster/coroconf.h"
#include "cluster/proofs.h"

#define QUEUE_MAX 4096
#define RETRY_NS 10000000u
#define JOIN_TRIES 100
#define NS_PER_MS 1000000u

struct bytes {
	struct bytes *next;
	size_t len;
	uint8_t data[];
};

struct command {
	struct command *next;
	struct member_event ev;
};

struct cluster {
	struct cluster_config config;
	char who[96]; /* begins every line of the log */
	struct incarnation self;
	struct group_proc proc;
	struct membership *membership;
	struct member_updates updates;
	struct group_state *incoming;
	uint8_t *encoded;

	cpg_handle_t cpg;
	quorum_handle_t quorum;
	struct proofs proofs;
	int cpg_fd, quorum_fd, bell;
	bool stopping; /* read by the thread after the bell */
	int lost;      /* negative errno */
	bool quorate;

	struct bytes *out_head, **out_tail;
	unsigned out_count;
	uint64_t retry_ns;

	uint64_t token_ns, lease_next_ns;
	_Atomic uint64_t lease_ns;

	pthread_t thread;
	pthread_mutex_t lock; /* commands, stopping */
	struct command *commands, **commands_tail;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void lose(struct cluster *c, const char *what, int err)
{
	if (!c->lost)
		ug_error(c->who, "%s: %s", what, strerror(-err));
	c->lost = err;
	atomic_store(&c->lease_ns, 0);
}

/* Sending */

static cs_error_t multicast(struct cluster *c, uint8_t *data, size_t len)
{
	struct iovec iov = { data, len };

	return cpg_mcast_joined(c->cpg, CPG_TYPE_AGREED, &iov, 1);
}

static void flush_queue(struct cluster *c)
{
	while (c->out_head && !c->lost) {
		struct bytes *b = c->out_head;
		cs_error_t status = multicast(c, b->data, b->len);

		if (status == CS_ERR_TRY_AGAIN) {
			c->retry_ns = now_ns() + RETRY_NS;
			return;
		}
		if (status != CS_OK) {
			lose(c, "send", coro_error("send", status));
			return;
		}
		c->out_head = b->next;
		if (!c->out_head)
			c->out_tail = &c->out_head;
		c->out_count--;
		free(b);
	}
	c->retry_ns = UINT64_MAX;
}

static void send_message(struct cluster *c, const struct group_msg *msg)
{
	long len = group_msg_encode(msg, c->encoded, GROUP_MSG_MAX);
	struct bytes *b;

	if (len < 0 || c->out_count == QUEUE_MAX) {
		lose(c, "send", -ENOBUFS);
		return;
	}
	b = malloc(sizeof(*b) + (size_t)len);
	if (!b) {
		lose(c, "send", -ENOMEM);
		return;
	}
	b->next = NULL;
	b->len = (size_t)len;
	memcpy(b->data, c->encoded, (size_t)len);
	*c->out_tail = b;
	c->out_tail = &b->next;
	c->out_count++;
}

/* A lease message is worth nothing behind a queue; the next one comes soon. */
static void send_lease(struct cluster *c, uint64_t now)
{
	struct group_msg msg = { .type = GM_LEASE };
	long len;

	c->lease_next_ns = now + c->token_ns / 6;
	if (c->out_head)
		return;
	msg.major = GROUP_VERSION_MAJOR;
	msg.has_state = cluster_table(c) != NULL;
	msg.stamp = now;
	len = group_msg_encode(&msg, c->encoded, GROUP_MSG_MAX);
	multicast(c, c->encoded, (size_t)len);
}

/* The membership */

static void tell(struct cluster *c, const struct cluster_event *ev)
{
	c->config.event(c->config.arg, c, ev);
}

static void look_for_proofs(struct cluster *c)
{
	if (membership_settled(c->membership))
		proofs_ask(&c->proofs, membership_table(c->membership),
			   now_ns());
}

static void step(struct cluster *c, struct member_event *ev)
{
	bool gone = false;
	int err;

	ev->now_ns = now_ns();
	c->updates.count = 0;
	err = membership_step(c->membership, ev, &c->updates);
	if (err == -ENOMEM)
		lose(c, "membership", err);
	for (size_t i = 0; i < c->updates.count && !c->lost; i++) {
		struct member_update *up = &c->updates.list[i];
		struct cluster_event told = { CLUSTER_UPDATE };

		if (up->kind == MUP_SEND) {
			send_message(c, &up->send);
			continue;
		}
		if (up->kind == MUP_OUT ||
		    (up->kind == MUP_SETTLED && !up->settled))
			atomic_store(&c->lease_ns, 0);
		gone |= up->kind == MUP_GONE ||
			(up->kind == MUP_SETTLED && up->settled);
		told.update = up;
		tell(c, &told);
	}
	flush_queue(c);
	if (gone && !c->lost)
		look_for_proofs(c);
}

static void on_proof(void *arg, const struct group_dead *proof)
{
	struct member_event ev = { .kind = MEV_PROOF };

	ev.proof = *proof;
	step(arg, &ev);
}

static void take_lease(struct cluster *c, uint64_t stamp)
{
	struct cluster_event ev = { CLUSTER_LEASE };

	if (!c->quorate || !membership_settled(c->membership) ||
	    stamp > now_ns())
		return;
	atomic_store(&c->lease_ns, stamp + c->token_ns / 2);
	tell(c, &ev);
}

static void on_message(cpg_handle_t handle, const struct cpg_name *group,
		       uint32_t node, uint32_t pid, void *data, size_t len)
{
	struct group_proc from = { node, pid };
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
			take_lease(c, msg.stamp);
		return;
	}
	ev.message.from = from;
	ev.message.msg = err ? NULL : &msg;
	ev.message.major = msg.major;
	ev.message.has_state = msg.has_state;
	step(c, &ev);
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
		lose(context, "group", -E2BIG);
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
	step(context, &ev);
}

static void on_ring(cpg_handle_t handle, struct cpg_ring_id ring,
		    uint32_t count, const uint32_t *nodes)
{
	struct member_event ev = { .kind = MEV_RING };
	void *context;

	cpg_context_get(handle, &context);
	if (count > GROUP_PROCS_MAX) {
		lose(context, "cluster", -E2BIG);
		return;
	}
	ev.ring.id = (struct ring_id){ ring.nodeid, ring.seq };
	ev.ring.nodes = nodes;
	ev.ring.nodes_count = count;
	step(context, &ev);
}

static void on_quorum(quorum_handle_t handle, uint32_t quorate,
		      struct quorum_ring_id ring, uint32_t count,
		      const uint32_t *nodes)
{
	struct cluster_event told = { CLUSTER_QUORUM };
	struct member_event ev = { .kind = MEV_QUORUM };
	const void *context;
	struct cluster *c;

	quorum_context_get(handle, &context);
	c = (struct cluster *)context;
	told.quorate = c->quorate = quorate;
	if (!quorate)
		atomic_store(&c->lease_ns, 0);
	tell(c, &told);
	ev.quorum.ring = (struct ring_id){ ring.nodeid, ring.seq };
	ev.quorum.quorate = quorate;
	step(c, &ev);
}

/* The thread */

static void run_commands(struct cluster *c)
{
	struct command *cmd, *next;
	uint64_t count;

	if (read(c->bell, &count, sizeof(count)) < 0)
		return;
	pthread_mutex_lock(&c->lock);
	cmd = c->commands;
	c->commands = NULL;
	c->commands_tail = &c->commands;
	pthread_mutex_unlock(&c->lock);
	for (; cmd; cmd = next) {
		next = cmd->next;
		if (!c->lost)
			step(c, &cmd->ev);
		free(cmd);
	}
}

static bool is_stopping(struct cluster *c)
{
	bool stopping;

	pthread_mutex_lock(&c->lock);
	stopping = c->stopping;
	pthread_mutex_unlock(&c->lock);
	return stopping;
}

static int poll_timeout_ms(struct cluster *c)
{
	uint64_t now = now_ns(), due = membership_wake_ns(c->membership);

	due = UG_MIN(due, c->retry_ns);
	due = UG_MIN(due, c->lease_next_ns);
	due = UG_MIN(due, c->proofs.next_ns);
	if (due <= now)
		return 0;
	return (int)UG_MIN((due - now) / NS_PER_MS + 1, 60000u);
}

static void timers(struct cluster *c)
{
	struct member_event tick = { .kind = MEV_TICK };
	uint64_t now = now_ns();

	if (c->retry_ns <= now)
		flush_queue(c);
	if (c->lease_next_ns <= now)
		send_lease(c, now);
	if (c->proofs.next_ns <= now) {
		c->proofs.next_ns = UINT64_MAX;
		look_for_proofs(c);
	}
	if (membership_wake_ns(c->membership) <= now)
		step(c, &tick);
}

static void dispatch(struct cluster *c, const struct pollfd *fds)
{
	cs_error_t status = CS_OK;

	if (fds[0].revents)
		status = cpg_dispatch(c->cpg, CS_DISPATCH_ALL);
	if (status == CS_OK && fds[1].revents)
		status = quorum_dispatch(c->quorum, CS_DISPATCH_ALL);
	if (status != CS_OK && status != CS_ERR_TRY_AGAIN)
		lose(c, "corosync is gone", coro_error("dispatch", status));
	if (fds[2].revents)
		run_commands(c);
	if (fds[3].revents)
		suplink_dispatch(&c->proofs.link);
}

static void *thread_main(void *arg)
{
	struct cluster *c = arg;
	struct cluster_event ev = { CLUSTER_LOST };

	pthread_setname_np(pthread_self(), "ugfs-cluster");
	while (!c->lost && !is_stopping(c)) {
		struct pollfd fds[] = {
			{ c->cpg_fd, POLLIN, 0 },
			{ c->quorum_fd, POLLIN, 0 },
			{ c->bell, POLLIN, 0 },
			{ c->proofs.link.fd, POLLIN, 0 },
		};

		if (poll(fds, UG_ARRAY_SIZE(fds), poll_timeout_ms(c)) > 0)
			dispatch(c, fds);
		if (!c->lost)
			timers(c);
	}
	atomic_store(&c->lease_ns, 0);
	if (c->lost) {
		ev.error = c->lost;
		tell(c, &ev);
	}
	return NULL;
}

/* Setting up */

static int open_group(struct cluster *c, struct group_proc *self)
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
	self->pid = (uint32_t)getpid();
	status = cpg_local_get(c->cpg, &self->node);
	if (status == CS_OK)
		status = cpg_fd_get(c->cpg, &c->cpg_fd);
	if (status != CS_OK)
		cpg_finalize(c->cpg);
	return coro_error("cpg", status);
}

static int open_quorum(struct cluster *c)
{
	quorum_model_v1_data_t model = {
		.model = QUORUM_MODEL_V1,
		.quorum_notify_fn = on_quorum,
	};
	cs_error_t status;
	uint32_t type;

	status = quorum_model_initialize(&c->quorum, QUORUM_MODEL_V1,
					 (quorum_model_data_t *)&model, &type,
					 c);
	if (status != CS_OK)
		return coro_error("quorum", status);
	status = quorum_fd_get(c->quorum, &c->quorum_fd);
	if (status == CS_OK)
		status = quorum_trackstart(c->quorum,
					   CS_TRACK_CURRENT | CS_TRACK_CHANGES);
	if (status != CS_OK)
		quorum_finalize(c->quorum);
	return coro_error("quorum", status);
}

/* corosync says "try again" while its ring is being formed. */
static int join_group(struct cluster *c)
{
	struct cpg_name name;
	cs_error_t status;
	int n;

	n = snprintf(name.value, sizeof(name.value), "ugfs:%s",
		     c->config.table);
	if (n < 0 || (size_t)n >= sizeof(name.value))
		return -ENAMETOOLONG;
	name.length = (uint32_t)n;
	for (unsigned i = 0; i < JOIN_TRIES; i++) {
		status = cpg_join(c->cpg, &name);
		if (status != CS_ERR_TRY_AGAIN)
			break;
		usleep(100000);
	}
	return coro_error("join", status);
}

static int make_membership(struct cluster *c, struct group_proc self)
{
	struct membership_config config = { .self = self };

	config.timeout_ns = c->config.member_timeout_ns;
	config.info.inc = c->self;
	config.info.minor = GROUP_VERSION_MINOR;
	config.info.addr = c->config.addr;
	c->proc = self;
	return membership_new(&config, &c->membership);
}

static int read_config(struct cluster *c)
{
	uint32_t token_ms;
	int err = coroconf_check_two_node();

	if (!err)
		err = coroconf_token_ms(&token_ms);
	if (!err)
		c->token_ns = (uint64_t)token_ms * NS_PER_MS;
	return err;
}

static int connect_all(struct cluster *c)
{
	struct group_proc self;
	int err = read_config(c);

	if (!err)
		err = incarnation_self(&c->self);
	if (!err)
		err = open_group(c, &self);
	if (err)
		return err;
	err = open_quorum(c);
	if (err)
		goto close_group;
	err = make_membership(c, self);
	if (err)
		goto close_quorum;
	/* First: a report that comes while nobody listens is lost. */
	err = suplink_retry(&c->proofs.link);
	if (err)
		goto free_membership;
	err = join_group(c);
	if (err)
		goto close_proofs;
	return 0;
close_proofs:
	suplink_close(&c->proofs.link);
free_membership:
	membership_free(c->membership);
close_quorum:
	quorum_finalize(c->quorum);
close_group:
	cpg_finalize(c->cpg);
	return err;
}

static void disconnect(struct cluster *c)
{
	suplink_close(&c->proofs.link);
	quorum_finalize(c->quorum);
	cpg_finalize(c->cpg);
	membership_free(c->membership);
}

static void release(struct cluster *c)
{
	while (c->out_head) {
		struct bytes *b = c->out_head;

		c->out_head = b->next;
		free(b);
	}
	while (c->commands) {
		struct command *cmd = c->commands;

		c->commands = cmd->next;
		free(cmd);
	}
	member_updates_free(&c->updates);
	if (c->bell >= 0)
		close(c->bell);
	pthread_mutex_destroy(&c->lock);
	free(c->incoming);
	free(c->encoded);
	free(c);
}

static struct cluster *new_cluster(const struct cluster_config *config)
{
	struct cluster *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->config = *config;
	snprintf(c->who, sizeof(c->who), "%s: cluster", config->table);
	c->out_tail = &c->out_head;
	c->commands_tail = &c->commands;
	c->retry_ns = UINT64_MAX;
	proofs_init(&c->proofs, config->uuid, on_proof, c);
	pthread_mutex_init(&c->lock, NULL);
	c->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	c->incoming = malloc(sizeof(*c->incoming));
	c->encoded = malloc(GROUP_MSG_MAX);
	if (c->bell >= 0 && c->incoming && c->encoded)
		return c;
	release(c);
	return NULL;
}

int cluster_join(const struct cluster_config *config, struct cluster **out)
{
	struct cluster *c = new_cluster(config);
	int err;

	if (!c)
		return -ENOMEM;
	err = connect_all(c);
	if (err)
		goto release;
	err = -pthread_create(&c->thread, NULL, thread_main, c);
	if (err)
		goto disconnect;
	*out = c;
	return 0;
disconnect:
	disconnect(c);
release:
	release(c);
	return err;
}

static void ring_bell(struct cluster *c)
{
	uint64_t one = 1;

	/* A full counter has been rung already. */
	if (write(c->bell, &one, sizeof(one)) < 0)
		return;
}

void cluster_close(struct cluster *c)
{
	pthread_mutex_lock(&c->lock);
	c->stopping = true;
	pthread_mutex_unlock(&c->lock);
	ring_bell(c);
	pthread_join(c->thread, NULL);
	disconnect(c);
	release(c);
}

/* Without memory a member cannot say what it must: it is as good as dead. */
static void command(struct cluster *c, const struct member_event *ev)
{
	struct command *cmd = malloc(sizeof(*cmd));

	if (!cmd)
		abort();
	cmd->next = NULL;
	cmd->ev = *ev;
	pthread_mutex_lock(&c->lock);
	*c->commands_tail = cmd;
	c->commands_tail = &cmd->next;
	pthread_mutex_unlock(&c->lock);
	ring_bell(c);
}

void cluster_say_stopped(struct cluster *c, uint64_t generation)
{
	struct member_event ev = { .kind = MEV_STOPPED };

	ev.generation = generation;
	command(c, &ev);
}

void cluster_say_left(struct cluster *c, bool dirty)
{
	struct member_event ev = { .kind = MEV_LEAVE };

	ev.dirty = dirty;
	command(c, &ev);
}

void cluster_expel(struct cluster *c, const struct incarnation *inc)
{
	struct member_event ev = { .kind = MEV_EXPEL };

	ev.inc = *inc;
	command(c, &ev);
}

void cluster_prove(struct cluster *c, const struct incarnation *inc,
		   enum death_proof proof)
{
	struct member_event ev = { .kind = MEV_PROOF };

	ev.proof.inc = *inc;
	ev.proof.proof = proof;
	command(c, &ev);
}

uint64_t cluster_lease_ns(const struct cluster *c)
{
	return atomic_load(&c->lease_ns);
}

const struct group_state *cluster_table(const struct cluster *c)
{
	return membership_table(c->membership);
}

unsigned cluster_silent(const struct cluster *c, struct group_proc *procs,
			unsigned max)
{
	return membership_silent(c->membership, procs, max);
}

struct incarnation cluster_self(const struct cluster *c)
{
	return c->self;
}
