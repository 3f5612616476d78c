/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * supervisor.c - see supervisor.h.
 *
 *   members                supervisor             mount process
 *        |---ASK(incarnation)->|---------SIGKILL------->|
 *        |                     |        (its I/O lands, its locks are dropped)
 *        |                     |<----------exit---------|
 *        |<------DEAD----------|   reaped: nothing of it can write any more
 *
 * A question is repeated until it is answered, so an answer may be lost. The
 * answer about the own child is given only after waitpid() has returned: a
 * SIGKILL that was sent proves nothing, and neither does a process that is a
 * zombie while one of its threads still waits for the disk.
 *
 * Hosts that give no answer are fenced: fencer.h decides, fenceagent.h does it.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/log.h"
#include "cluster/asked.h"
#include "cluster/clock.h"
#include "cluster/cluster.h"
#include "cluster/coroconf.h"
#include "cluster/fenceagent.h"
#include "cluster/fencer.h"
#include "cluster/lifelock.h"
#include "cluster/quorumlink.h"
#include "cluster/supervisor.h"
#include "cluster/suplink.h"

#define RETRY_NS (500 * (uint64_t)NS_PER_MS)

/*
 * After the child's end: how long it tries to tell a quorate cluster so. On a
 * node that is cut off nobody hears it who needs it, so it waits for the
 * network longer than an administrator would.
 */
#define REPORT_NS (600 * (uint64_t)NS_PER_SEC)

/* When it has to end soon: enough where somebody can hear it. */
#define LAST_REPORT_NS (2 * (uint64_t)NS_PER_SEC)

#define KILL_TIMEOUT_MS 5000
#define FENCE_DELAY_MS 2000
#define FENCE_TIMEOUT_MS 60000

struct supervisor {
	struct supervisor_config config;
	struct suplink link;
	struct quorum_link quorum;
	struct incarnation inc; /* of the child */
	int pidfd;
	bool killing; /* said so */
	bool reaped;
	bool told; /* the own report has come back, or nobody needs it */
	bool hurrying;
	int wait_status;
	uint64_t end_ns;    /* of the attempts to report */
	uint64_t report_ns; /* the next one of them */

	struct fencer *fencer;
	bool two_node;
	struct fence_agent agents[FENCE_TARGETS_MAX];
};

/* Fencing */

static void fencing_step(struct supervisor *s, struct fencer_event *ev);

static struct fence_agent *find_agent(struct supervisor *s, uint32_t node)
{
	for (unsigned i = 0; i < FENCE_TARGETS_MAX; i++)
		if (s->agents[i].pidfd >= 0 && s->agents[i].node == node)
			return &s->agents[i];
	return NULL;
}

static struct fence_agent *free_agent(struct supervisor *s)
{
	for (unsigned i = 0; i < FENCE_TARGETS_MAX; i++)
		if (s->agents[i].pidfd < 0)
			return &s->agents[i];
	return NULL;
}

/* A node that is not configured any more has no name but its number. */
static void find_name(uint32_t node, char *name, size_t size)
{
	struct cluster_node nodes[GROUP_PROCS_MAX];
	int count = cluster_nodes(nodes, UG_ARRAY_SIZE(nodes));

	snprintf(name, size, "%u", node);
	for (int i = 0; i < count; i++)
		if (nodes[i].id == node)
			snprintf(name, size, "%s", nodes[i].name);
}

static void fence_ended(struct supervisor *s, uint32_t node, int status)
{
	struct fencer_event ev = { .kind = FENCER_ENDED };
	char failure[64];

	fence_end_text(status, failure, sizeof(failure));
	if (status)
		ug_warn("fence", "node %u: the fence command %s", node,
			failure);
	else
		ug_info("fence", "node %u: the fence command has succeeded",
			node);
	ev.ended.node = node;
	ev.ended.status = status;
	fencing_step(s, &ev);
}

static void run_fence(struct supervisor *s, uint32_t node)
{
	struct fence_agent *agent = free_agent(s);
	struct fence_order order = { s->config.fence, s->config.fence_action,
				     node, NULL };
	char name[NODE_NAME_MAX + 1];
	int err = -EAGAIN;

	find_name(node, name, sizeof(name));
	order.name = name;
	ug_warn("fence", "node %u (%s) gives no proof of death: fencing it",
		node, name);
	if (agent)
		err = fence_agent_start(agent, &order,
					s->config.fence_timeout_ms *
						(uint64_t)NS_PER_MS);
	if (!err)
		return;
	ug_error("fence", "cannot run \"%s\": %s", s->config.fence,
		 strerror(-err));
	fence_ended(s, node, FENCE_END_NOT_RUN);
}

static void fencing_step(struct supervisor *s, struct fencer_event *ev)
{
	struct fence_agent *agent;
	struct fencer_updates out;

	ev->now_ns = clock_now_ns();
	fencer_step(s->fencer, ev, &out);
	for (unsigned i = 0; i < out.count; i++) {
		const struct fencer_update *up = &out.list[i];

		switch (up->kind) {
		case FENCER_SEND:
			suplink_send(&s->link, &up->send);
			break;
		case FENCER_RUN:
			run_fence(s, up->node);
			break;
		case FENCER_STOP:
			agent = find_agent(s, up->node);
			if (agent)
				fence_agent_kill(agent, FENCE_END_NO_QUORUM);
			break;
		}
	}
}

static void watch_agents(struct supervisor *s)
{
	uint64_t now = clock_now_ns();

	for (unsigned i = 0; i < FENCE_TARGETS_MAX; i++) {
		struct fence_agent *agent = &s->agents[i];
		int status;

		if (agent->pidfd < 0)
			continue;
		fence_agent_read(agent);
		if (now >= agent->end_ns)
			fence_agent_kill(agent, FENCE_END_TIMEOUT);
		if (fence_agent_ended(agent, &status))
			fence_ended(s, agent->node, status);
	}
}

static void end_agents(struct supervisor *s)
{
	for (unsigned i = 0; i < FENCE_TARGETS_MAX; i++) {
		struct fence_agent *agent = &s->agents[i];
		int status;

		if (agent->pidfd < 0)
			continue;
		fence_agent_kill(agent, FENCE_END_NO_QUORUM);
		while (!fence_agent_ended(agent, &status))
			usleep(1000);
	}
}

/* Proofs */

static void answer(struct supervisor *s, const struct incarnation *inc,
		   enum death_proof proof)
{
	struct group_msg msg = { .type = GM_DEAD,
				 .major = GROUP_VERSION_MAJOR };

	msg.dead.inc = *inc;
	msg.dead.proof = proof;
	suplink_send(&s->link, &msg);
}

static void kill_child(struct supervisor *s)
{
	if (s->reaped) {
		answer(s, &s->inc, PROOF_REAPED);
		return;
	}
	if (!s->killing)
		ug_warn("supervisor",
			"the cluster has expelled process %d: killing it",
			(int)s->config.child);
	s->killing = true;
	kill(s->config.child, SIGKILL);
}

/* One of this host, but not the own child. */
static void prove_other(struct supervisor *s, const struct group_ask *ask)
{
	struct life_lock_name name = {
		.dir = s->config.life_dir,
		.uuid = ask->uuid,
		.node = ask->proc.node,
		.instance = ask->instance,
	};
	int fd;

	if (memcmp(ask->inc.boot_id, s->inc.boot_id, sizeof(s->inc.boot_id))) {
		answer(s, &ask->inc, PROOF_REBOOTED);
		return;
	}
	if (life_lock_prove(&name, &ask->inc, &fd))
		return; /* alive, or nothing known: then it is to be fenced */
	close(fd);
	answer(s, &ask->inc, PROOF_LIFE_LOCK);
}

static void on_ask(struct supervisor *s, const struct group_ask *ask)
{
	if (incarnation_equal(&ask->inc, &s->inc))
		kill_child(s);
	else if (ask->proc.node == s->link.self.node &&
		 !incarnation_is_zero(&ask->inc))
		prove_other(s, ask);
}

static void on_survey(struct supervisor *s, const uint8_t *uuid)
{
	struct group_msg msg = { .type = GM_HOLDERS,
				 .major = GROUP_VERSION_MAJOR };

	life_lock_holders(s->config.life_dir, uuid, s->link.self.node,
			  s->inc.boot_id, &msg.holders);
	suplink_send(&s->link, &msg);
}

static void on_message(void *arg, struct group_proc from,
		       const struct group_msg *msg)
{
	struct fencer_event ev = { .kind = FENCER_MESSAGE };
	struct supervisor *s = arg;

	if (msg->type == GM_ASK)
		on_ask(s, &msg->ask);
	else if (msg->type == GM_SURVEY)
		on_survey(s, msg->uuid);
	else if (msg->type == GM_DEAD && s->reaped &&
		 from.node == s->link.self.node &&
		 incarnation_equal(&msg->dead.inc, &s->inc))
		/* With quorum it has come to all who can decide. */
		s->told |= quorum_link_is_quorate(&s->quorum);
	ev.message.from = from;
	ev.message.msg = msg;
	fencing_step(s, &ev);
}

/*
 * One that has given up before it was let in: if it is a member to anybody, he
 * is here and hears it at once.
 */
static bool gave_up_joining(const struct supervisor *s)
{
	return WIFEXITED(s->wait_status) && !asked_was_admitted();
}

static void reap(struct supervisor *s)
{
	pid_t pid = waitpid(s->config.child, &s->wait_status, WNOHANG);
	bool left;

	if (pid == 0 || (pid < 0 && errno == EINTR))
		return;
	s->reaped = true;
	left = WIFEXITED(s->wait_status) && !WEXITSTATUS(s->wait_status);
	s->told = !asked_ever() || left;
	s->end_ns = clock_now_ns() +
		    (gave_up_joining(s) ? LAST_REPORT_NS : REPORT_NS);
	if (s->config.ended)
		s->config.ended(s->config.arg, left);
}

static void hurry_if_told(struct supervisor *s)
{
	uint64_t last;

	if (!s->reaped || s->hurrying || !s->config.hurry || !*s->config.hurry)
		return;
	s->hurrying = true;
	last = clock_now_ns() + LAST_REPORT_NS;
	s->end_ns = UG_MIN(s->end_ns, last);
}

/* Not at each wake-up: without quorum the own message comes back and wakes. */
static void report_if_due(struct supervisor *s)
{
	uint64_t now = clock_now_ns();

	if (!s->reaped || s->told || now < s->report_ns)
		return;
	s->report_ns = now + RETRY_NS;
	answer(s, &s->inc, PROOF_REAPED);
}

/* corosync */

static void on_procs(void *arg, const struct group_proc *list, unsigned count)
{
	struct fencer_event ev = { .kind = FENCER_PROCS };
	struct supervisor *s = arg;

	ev.procs.self = s->link.self;
	ev.procs.list = list;
	ev.procs.count = count;
	fencing_step(s, &ev);
}

static void on_quorum(void *arg, struct ring_id ring, bool quorate,
		      const uint32_t *nodes, unsigned count)
{
	struct fencer_event ev = { .kind = FENCER_QUORUM };
	struct supervisor *s = arg;

	ev.quorum.quorate = quorate;
	ev.quorum.two_node = s->two_node;
	ev.quorum.nodes = nodes;
	ev.quorum.count = count;
	fencing_step(s, &ev);
}

static void disconnect(struct supervisor *s)
{
	suplink_close(&s->link);
	quorum_link_close(&s->quorum);
	on_quorum(s, (struct ring_id){ 0 }, false, NULL, 0);
}

static void connect_if_lost(struct supervisor *s)
{
	bool wait_for_all;

	if (s->link.fd >= 0 && s->quorum.fd >= 0)
		return;
	disconnect(s);
	if (suplink_retry(&s->link) ||
	    coroconf_two_node(&s->two_node, &wait_for_all) ||
	    quorum_link_open(&s->quorum, on_quorum, s))
		suplink_close(&s->link);
}

/* The loop */

static uint64_t next_due_ns(const struct supervisor *s)
{
	uint64_t due = fencer_wake_ns(s->fencer);

	due = UG_MIN(due, suplink_due_ns(&s->link));
	for (unsigned i = 0; i < FENCE_TARGETS_MAX; i++)
		if (s->agents[i].pidfd >= 0)
			due = UG_MIN(due, s->agents[i].end_ns);
	if (s->reaped)
		due = UG_MIN(due, s->report_ns);
	if (s->link.fd < 0)
		due = UG_MIN(due, clock_now_ns() + RETRY_NS);
	return due;
}

static void dispatch(struct supervisor *s, const struct pollfd *fds)
{
	if (fds[0].revents)
		reap(s);
	if (fds[1].revents)
		suplink_dispatch(&s->link);
	if (fds[2].revents && s->quorum.fd >= 0 &&
	    quorum_link_dispatch(&s->quorum))
		quorum_link_close(&s->quorum);
}

static void wait_once(struct supervisor *s)
{
	struct pollfd fds[3 + 2 * FENCE_TARGETS_MAX] = {
		{ s->reaped ? -1 : s->pidfd, POLLIN, 0 },
		{ s->link.fd, POLLIN, 0 }, /* -1 is left out */
		{ s->quorum.fd, POLLIN, 0 },
	};
	unsigned count = 3;

	for (unsigned i = 0; i < FENCE_TARGETS_MAX; i++) {
		if (s->agents[i].pidfd < 0)
			continue;
		fds[count++] = (struct pollfd){ s->agents[i].pidfd, POLLIN, 0 };
		fds[count++] =
			(struct pollfd){ s->agents[i].output, POLLIN, 0 };
	}
	if (poll(fds, count, clock_poll_ms(next_due_ns(s))) > 0)
		dispatch(s, fds);
}

static void watch(struct supervisor *s)
{
	struct fencer_event tick = { .kind = FENCER_TICK };

	while (!s->told && (!s->reaped || clock_now_ns() < s->end_ns)) {
		connect_if_lost(s);
		wait_once(s);
		hurry_if_told(s);
		watch_agents(s);
		if (suplink_due_ns(&s->link) <= clock_now_ns())
			suplink_flush(&s->link);
		if (fencer_wake_ns(s->fencer) <= clock_now_ns())
			fencing_step(s, &tick);
		report_if_due(s);
	}
}

/* Setting up */

static enum fence_kind kind_of(const char *fence)
{
	if (!fence || strcmp(fence, "none") == 0)
		return FENCE_NONE;
	return strcmp(fence, "manual") == 0 ? FENCE_MANUAL : FENCE_COMMAND;
}

static int fill_config(struct supervisor_config *config)
{
	if (!config->life_dir)
		config->life_dir = LIFE_LOCK_DIR;
	if (!config->fence_action)
		config->fence_action = "off";
	if (!config->kill_timeout_ms)
		config->kill_timeout_ms = KILL_TIMEOUT_MS;
	if (!config->fence_delay_ms)
		config->fence_delay_ms = FENCE_DELAY_MS;
	if (!config->fence_timeout_ms)
		config->fence_timeout_ms = FENCE_TIMEOUT_MS;
	return strcmp(config->fence_action, "off") == 0 ||
			       strcmp(config->fence_action, "reboot") == 0
		       ? 0
		       : -EINVAL;
}

static int make_fencer(struct supervisor *s)
{
	struct fencer_config config = {
		.child = (uint32_t)s->config.child,
		.kind = kind_of(s->config.fence),
		.kill_timeout_ns =
			s->config.kill_timeout_ms * (uint64_t)NS_PER_MS,
		.delay_ns = s->config.fence_delay_ms * (uint64_t)NS_PER_MS,
		.run_max_ns = s->config.fence_timeout_ms * (uint64_t)NS_PER_MS,
	};

	s->fencer = fencer_new(&config);
	return s->fencer ? 0 : -ENOMEM;
}

static const struct suplink_ops link_ops = {
	.message = on_message,
	.procs = on_procs,
};

int supervisor_run(const struct supervisor_config *config, int *wait_status)
{
	struct supervisor *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->config = *config;
	s->quorum.fd = -1;
	for (unsigned i = 0; i < FENCE_TARGETS_MAX; i++)
		s->agents[i].pidfd = -1;
	suplink_init(&s->link, &link_ops, s);
	err = fill_config(&s->config);
	if (!err)
		err = incarnation_of(config->child, &s->inc);
	if (!err)
		err = make_fencer(s);
	if (err)
		goto free;
	s->pidfd = pidfd_open(config->child, 0);
	if (s->pidfd < 0) {
		err = -errno;
		goto free;
	}
	watch(s);
	end_agents(s);
	disconnect(s);
	close(s->pidfd);
	*wait_status = s->wait_status;
free:
	fencer_free(s->fencer);
	free(s);
	return err;
}
