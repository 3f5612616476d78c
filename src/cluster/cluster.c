/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cluster.c - one thread between corosync and a membership.
 *
 * The thread sleeps in poll() on corosync's connections (the group's, quorum's,
 * that to the supervisors, the kernel's group) and on an eventfd that other
 * threads ring after they have left a command. Everything about the membership
 * happens on it.
 *
 * With corosync stopped (SIGSTOP) a send can hang; then the lease runs out, as
 * it must: others read it without this thread, and another one tells its end.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/log.h"
#include "cluster/asked.h"
#include "cluster/clock.h"
#include "cluster/cluster_impl.h"
#include "cluster/fenceack.h"
#include "cluster/lifelock.h"

#define ACK_AGAIN_NS (500 * (uint64_t)NS_PER_MS)

void cluster_lose(struct cluster *c, const char *what, int err)
{
	if (!c->lost)
		ug_error(c->who, "%s: %s", what, strerror(-err));
	c->lost = err;
}

static void tell(struct cluster *c, const struct cluster_event *ev)
{
	pthread_mutex_lock(&c->telling);
	c->config.event(c->config.arg, c, ev);
	pthread_mutex_unlock(&c->telling);
}

/* The membership */

static bool is_clear(const struct cluster *c)
{
	return c->repaired || (c->startup && hosts_are_clear(c->hosts));
}

/* Whoever is found dead or cleared is news for the group. */
static void take_news(struct cluster *c)
{
	const struct group_state *table = membership_table(c->membership);
	struct member_event ev = { .kind = MEV_PROOF };
	uint64_t now = clock_now_ns();

	ev.proof.proof = PROOF_FENCED;
	while (!c->lost && hosts_take_proof(c->hosts, &ev.proof.inc))
		cluster_step(c, &ev);
	if (!membership_settled(c->membership) || table->cleared ||
	    !is_clear(c))
		return;
	if (now < c->clear_next_ns) {
		c->proofs.next_ns = UG_MIN(c->proofs.next_ns, c->clear_next_ns);
		return;
	}
	c->clear_next_ns = now + NS_PER_SEC;
	ev.kind = MEV_CLEARED;
	cluster_step(c, &ev);
}

static void look_for_proofs(struct cluster *c)
{
	const struct group_state *table = membership_table(c->membership);

	if (!membership_settled(c->membership))
		return;
	proofs_ask(&c->proofs, table, c->hosts, c->startup && !table->cleared,
		   clock_now_ns());
	take_news(c);
}

static void send_message(struct cluster *c, const struct group_msg *msg)
{
	int err = outqueue_add(&c->queue, msg);

	if (err)
		cluster_lose(c, "send", err);
}

static void flush_queue(struct cluster *c)
{
	int err = outqueue_flush(&c->queue);

	if (err && !c->lost)
		cluster_lose(c, "send", err);
}

/* Before the callback hears of it: no write may begin any more. */
static void settled(struct cluster *c, bool is_settled)
{
	if (is_settled)
		c->lease_next_ns = 0;
	else
		lease_end(&c->lease);
}

/* Who hears CLUSTER_CLEARED may ask at once. */
static void publish_cleared(struct cluster *c)
{
	const struct group_state *table = membership_table(c->membership);

	pthread_mutex_lock(&c->lock);
	c->cleared = table && table->cleared;
	pthread_mutex_unlock(&c->lock);
}

static void do_update(struct cluster *c, const struct member_update *up)
{
	struct cluster_event ev = { CLUSTER_UPDATE };

	if (up->kind == MUP_SEND) {
		send_message(c, &up->send);
		return;
	}
	if (up->kind == MUP_ADMITTED)
		asked_note_admitted();
	if (up->kind == MUP_OUT)
		settled(c, false);
	if (up->kind == MUP_SETTLED)
		settled(c, up->settled);
	if (up->kind == MUP_CLEARED)
		ev.kind = CLUSTER_CLEARED;
	else
		ev.update = up;
	if (up->kind == MUP_CHANGE || up->kind == MUP_SETTLED)
		c->changed_ns = clock_now_ns();
	publish_cleared(c);
	tell(c, &ev);
}

/* Told something that others than the group need to know. */
static bool do_updates(struct cluster *c)
{
	bool any = false;

	for (size_t i = 0; i < c->updates.count && !c->lost; i++) {
		const struct member_update *up = &c->updates.list[i];

		any |= up->kind != MUP_SEND;
		do_update(c, up);
	}
	return any;
}

void cluster_step(struct cluster *c, struct member_event *ev)
{
	bool any;
	int err;

	ev->now_ns = clock_now_ns();
	c->updates.count = 0;
	err = membership_step(c->membership, ev, &c->updates);
	if (err == -ENOMEM)
		cluster_lose(c, "membership", err);
	any = do_updates(c);
	flush_queue(c);
	if (c->lost)
		return;
	if (any) {
		hosts_table(c->hosts, membership_table(c->membership),
			    ev->now_ns);
		look_for_proofs(c);
	}
	waits_publish(c);
}

/* Before the group hears of it: a host that is back is not down. */
void cluster_ring(struct cluster *c, struct member_event *ev)
{
	waits_read_nodes(c);
	hosts_ring(c->hosts, ev->ring.nodes, ev->ring.nodes_count);
	cluster_step(c, ev);
}

void cluster_quorum(struct cluster *c, struct ring_id ring, bool quorate)
{
	struct cluster_event told = { CLUSTER_QUORUM };
	struct member_event ev = { .kind = MEV_QUORUM };

	told.quorate = c->quorate = quorate;
	if (!quorate)
		lease_end(&c->lease);
	tell(c, &told);
	ev.quorum.ring = ring;
	ev.quorum.quorate = quorate;
	cluster_step(c, &ev);
}

static void answer_survey(struct cluster *c, const uint8_t *uuid)
{
	const char *dir =
		c->config.life_dir ? c->config.life_dir : LIFE_LOCK_DIR;
	struct group_msg msg = { .type = GM_HOLDERS,
				 .major = GROUP_VERSION_MAJOR };

	life_lock_holders(dir, uuid, c->proc.node, c->self.boot_id,
			  &msg.holders);
	suplink_send(&c->proofs.link, &msg);
}

static void on_sup_message(void *arg, struct group_proc from,
			   const struct group_msg *msg)
{
	struct member_event ev = { .kind = MEV_PROOF };
	struct cluster *c = arg;

	if (msg->type == GM_ASK)
		return; /* each second, from everybody, and not for members */
	hosts_message(c->hosts, from, msg, clock_now_ns());
	if (msg->type == GM_SURVEY)
		answer_survey(c, msg->uuid);
	if (msg->type == GM_DEAD) {
		ev.proof = msg->dead;
		cluster_step(c, &ev);
	}
	take_news(c);
	waits_publish(c);
}

static void on_sup_procs(void *arg, const struct group_proc *list,
			 unsigned count)
{
	struct cluster *c = arg;

	hosts_procs(c->hosts, list, count);
}

static const struct suplink_ops sup_ops = {
	.message = on_sup_message,
	.procs = on_sup_procs,
};

/* The lease */

/* It does not wait in the queue: late, it would be worth nothing. */
static void send_lease(struct cluster *c, uint64_t now)
{
	struct group_msg msg = { .type = GM_LEASE };

	c->lease_next_ns = now + c->token_ns / 6;
	msg.major = GROUP_VERSION_MAJOR;
	msg.has_state = cluster_table(c) != NULL;
	msg.stamp = now;
	outqueue_try(&c->queue, &msg);
}

void cluster_lease_back(struct cluster *c, uint64_t stamp)
{
	if (c->quorate && membership_settled(c->membership) &&
	    stamp <= clock_now_ns())
		lease_extend(&c->lease, stamp + c->token_ns / 2);
}

static void on_lease(void *arg, bool held)
{
	struct cluster_event ev = { CLUSTER_LEASE };
	struct cluster *c = arg;

	ev.lease = held;
	c->config.event(c->config.arg, c, &ev);
}

/* The thread */

/* Without memory a member cannot say what it must: it is as good as dead. */
static struct command *new_command(enum command_kind kind)
{
	struct command *cmd = calloc(1, sizeof(*cmd));

	if (!cmd)
		abort();
	cmd->kind = kind;
	return cmd;
}

static bool send_ack(struct cluster *c, uint32_t node)
{
	struct group_msg ack = { .type = GM_FENCE_ACK,
				 .major = GROUP_VERSION_MAJOR };

	ack.node = node;
	suplink_retry(&c->proofs.link);
	return suplink_send(&c->proofs.link, &ack);
}

/* Whoever said it has been told that all will hear it. */
static void say_ack(struct cluster *c, uint32_t node)
{
	struct command *cmd;

	if (send_ack(c, node))
		return;
	cmd = new_command(COMMAND_ACK);
	cmd->node = node;
	cmd->next = c->unsaid;
	c->unsaid = cmd;
	c->unsaid_next_ns = clock_now_ns() + ACK_AGAIN_NS;
}

static void say_unsaid(struct cluster *c, uint64_t now)
{
	c->unsaid_next_ns = UINT64_MAX;
	while (c->unsaid) {
		struct command *cmd = c->unsaid;

		if (!send_ack(c, cmd->node)) {
			c->unsaid_next_ns = now + ACK_AGAIN_NS;
			return;
		}
		c->unsaid = cmd->next;
		free(cmd);
	}
}

static void run_command(struct cluster *c, struct command *cmd)
{
	switch (cmd->kind) {
	case COMMAND_EVENT:
		cluster_step(c, &cmd->ev);
		break;
	case COMMAND_REPAIR:
		c->startup = true;
		waits_read_nodes(c);
		hosts_begin_startup(c->hosts, clock_now_ns());
		look_for_proofs(c);
		waits_publish(c);
		break;
	case COMMAND_REPAIRED:
		c->repaired = true;
		take_news(c);
		break;
	case COMMAND_ACK:
		say_ack(c, cmd->node);
		break;
	}
}

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
			run_command(c, cmd);
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

static uint64_t next_due_ns(const struct cluster *c)
{
	uint64_t due = membership_wake_ns(c->membership);

	due = UG_MIN(due, c->queue.retry_ns);
	due = UG_MIN(due, c->lease_next_ns);
	due = UG_MIN(due, c->unsaid_next_ns);
	due = UG_MIN(due, suplink_due_ns(&c->proofs.link));
	return UG_MIN(due, c->proofs.next_ns);
}

static void timers(struct cluster *c)
{
	struct member_event tick = { .kind = MEV_TICK };
	uint64_t now = clock_now_ns();

	if (c->queue.retry_ns <= now)
		flush_queue(c);
	if (c->lease_next_ns <= now)
		send_lease(c, now);
	if (c->unsaid_next_ns <= now)
		say_unsaid(c, now);
	if (suplink_due_ns(&c->proofs.link) <= now)
		suplink_flush(&c->proofs.link);
	if (c->proofs.next_ns <= now) {
		c->proofs.next_ns = UINT64_MAX;
		look_for_proofs(c);
		waits_publish(c);
	}
	if (membership_wake_ns(c->membership) <= now)
		cluster_step(c, &tick);
}

static void dispatch(struct cluster *c, const struct pollfd *fds)
{
	int err = corosync_dispatch(c, fds[0].revents, fds[1].revents);

	if (!err && fds[4].revents)
		err = beside_dispatch(&c->beside);
	if (err)
		cluster_lose(c, "corosync is gone", err);
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
			{ c->quorum.fd, POLLIN, 0 },
			{ c->bell, POLLIN, 0 },
			{ c->proofs.link.fd, POLLIN, 0 },
			{ c->beside.fd, POLLIN, 0 },
		};

		if (poll(fds, UG_ARRAY_SIZE(fds),
			 clock_poll_ms(next_due_ns(c))) > 0)
			dispatch(c, fds);
		if (!c->lost)
			timers(c);
	}
	/* Last words, said while the last event was told. */
	if (!c->lost)
		run_commands(c);
	lease_end(&c->lease);
	if (c->lost) {
		ev.error = c->lost;
		tell(c, &ev);
	}
	return NULL;
}

/* Setting up */

static void free_commands(struct command *cmd)
{
	while (cmd) {
		struct command *next = cmd->next;

		free(cmd);
		cmd = next;
	}
}

static void release(struct cluster *c)
{
	outqueue_free(&c->queue);
	free_commands(c->commands);
	free_commands(c->unsaid);
	member_updates_free(&c->updates);
	if (c->bell >= 0)
		close(c->bell);
	pthread_mutex_destroy(&c->lock);
	pthread_mutex_destroy(&c->telling);
	hosts_free(c->hosts);
	free(c->incoming);
	free(c);
}

static struct cluster *new_cluster(const struct cluster_config *config)
{
	struct cluster *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->config = *config;
	if (!c->config.startup_delay_ns)
		c->config.startup_delay_ns = STARTUP_DELAY_NS;
	snprintf(c->who, sizeof(c->who), "%s: cluster", config->table);
	outqueue_init(&c->queue);
	c->commands_tail = &c->commands;
	c->unsaid_next_ns = UINT64_MAX;
	proofs_init(&c->proofs, config->uuid, &sup_ops, c);
	pthread_mutex_init(&c->lock, NULL);
	pthread_mutex_init(&c->telling, NULL);
	c->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	c->incoming = malloc(sizeof(*c->incoming));
	if (c->bell >= 0 && c->incoming)
		return c;
	release(c);
	return NULL;
}

int cluster_join(const struct cluster_config *config, struct cluster **out,
		 char *why, size_t why_len)
{
	struct cluster *c = new_cluster(config);
	int err;

	if (!c) {
		snprintf(why, why_len, "no memory");
		return -ENOMEM;
	}
	err = corosync_open(c, why, why_len);
	if (err)
		goto release;
	err = lease_open(&c->lease, config->lease_ns, &c->telling, on_lease, c);
	if (err)
		goto disconnect;
	err = -pthread_create(&c->thread, NULL, thread_main, c);
	if (err)
		goto close_lease;
	*out = c;
	return 0;
close_lease:
	lease_close(&c->lease);
disconnect:
	snprintf(why, why_len, "thread: %s", strerror(-err));
	corosync_close(c);
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
	lease_close(&c->lease);
	corosync_close(c);
	release(c);
}

static void give_command(struct cluster *c, struct command *cmd)
{
	pthread_mutex_lock(&c->lock);
	*c->commands_tail = cmd;
	c->commands_tail = &cmd->next;
	pthread_mutex_unlock(&c->lock);
	ring_bell(c);
}

static void command(struct cluster *c, const struct member_event *ev)
{
	struct command *cmd = new_command(COMMAND_EVENT);

	cmd->ev = *ev;
	give_command(c, cmd);
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

void cluster_say_link(struct cluster *c, const struct incarnation *inc,
		      bool silent)
{
	struct member_event ev = { .kind = MEV_LINK };

	ev.link.inc = *inc;
	ev.link.silent = silent;
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
	return atomic_load(c->lease.until_ns);
}

const struct group_state *cluster_table(const struct cluster *c)
{
	return membership_table(c->membership);
}

struct incarnation cluster_self(const struct cluster *c)
{
	return c->self;
}

int cluster_may_repair(struct cluster *c, char *why, size_t why_len)
{
	bool cleared, wanted;

	pthread_mutex_lock(&c->lock);
	cleared = c->cleared;
	wanted = c->repair_wanted;
	c->repair_wanted = true;
	if (!cleared)
		waits_explain(c, why, why_len);
	pthread_mutex_unlock(&c->lock);
	if (!cleared && !wanted)
		give_command(c, new_command(COMMAND_REPAIR));
	return cleared ? 0 : -EAGAIN;
}

void cluster_say_repaired(struct cluster *c)
{
	give_command(c, new_command(COMMAND_REPAIRED));
}

unsigned cluster_waits(struct cluster *c, struct cluster_wait *out,
		       unsigned max)
{
	unsigned n;

	pthread_mutex_lock(&c->lock);
	n = UG_MIN(c->waits_count, max);
	memcpy(out, c->waits, n * sizeof(*out));
	pthread_mutex_unlock(&c->lock);
	return n;
}

int cluster_fence_ack(struct cluster *c, const char *node)
{
	struct command *cmd;
	uint32_t id;
	int err = fence_ack_find(node, &id);

	if (!err && id == c->proc.node)
		err = -EBUSY;
	if (err)
		return err;
	cmd = new_command(COMMAND_ACK);
	cmd->node = id;
	give_command(c, cmd);
	return 0;
}
