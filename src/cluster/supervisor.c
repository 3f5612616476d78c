/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * supervisor.c - see supervisor.h.
 *
 *   lowest member          supervisor             mount process
 *        |---ASK(incarnation)->|---------SIGKILL------->|
 *        |                     |        (its I/O lands, its locks are dropped)
 *        |                     |<----------exit---------|
 *        |<------DEAD----------|   reaped: nothing of it can write any more
 *
 * A question is repeated until it is answered, so an answer may be lost. The
 * answer about the own child is given only after waitpid() has returned: a
 * SIGKILL that was sent proves nothing, and neither does a process that is a
 * zombie while one of its threads still waits for the disk.
 */
#include <corosync/quorum.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "cluster/lifelock.h"
#include "cluster/supervisor.h"
#include "cluster/suplink.h"

#define RETRY_MS 500

/*
 * After the child's end: how long it tries to tell a quorate cluster so. On a
 * node that is cut off nobody hears it who needs it, so it waits for the
 * network longer than an administrator would.
 */
#define REPORT_MS 600000

struct supervisor {
	struct suplink link;
	pid_t child;
	struct incarnation inc;
	const char *life_dir;
	bool reaped;
	bool told; /* the own report has come back */
	int wait_status;
};

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
	ug_warn("supervisor", "the cluster has expelled process %d: killing it",
		(int)s->child);
	kill(s->child, SIGKILL);
}

/* One of this host, but not the own child. */
static void prove_other(struct supervisor *s, const struct group_ask *ask)
{
	struct life_lock_name name = {
		.dir = s->life_dir,
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

/* What comes back with quorum has come to all who can decide. */
static bool host_is_quorate(void)
{
	quorum_handle_t handle;
	uint32_t type;
	int quorate = 0;

	if (quorum_initialize(&handle, NULL, &type) != CS_OK)
		return false;
	if (quorum_getquorate(handle, &quorate) != CS_OK)
		quorate = 0;
	quorum_finalize(handle);
	return quorate;
}

static void on_message(void *arg, struct group_proc from,
		       const struct group_msg *msg)
{
	struct supervisor *s = arg;

	if (msg->type == GM_DEAD) {
		if (s->reaped && from.node == s->link.node &&
		    incarnation_equal(&msg->dead.inc, &s->inc))
			s->told = host_is_quorate();
		return;
	}
	if (incarnation_equal(&msg->ask.inc, &s->inc))
		kill_child(s);
	else if (msg->ask.proc.node == s->link.node)
		prove_other(s, &msg->ask);
}

static void reap(struct supervisor *s)
{
	pid_t pid = waitpid(s->child, &s->wait_status, WNOHANG);

	if (pid == 0 || (pid < 0 && errno == EINTR))
		return;
	s->reaped = true;
	s->told = WIFEXITED(s->wait_status) && !WEXITSTATUS(s->wait_status);
	answer(s, &s->inc, PROOF_REAPED);
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000u + (uint64_t)ts.tv_nsec / 1000000u;
}

/* While connected and with a living child nothing wakes it for nothing. */
static void wait_once(struct supervisor *s, int pidfd)
{
	struct pollfd fds[] = {
		{ s->link.fd, POLLIN, 0 }, /* -1 is left out */
		{ s->reaped ? -1 : pidfd, POLLIN, 0 },
	};
	int timeout = s->link.fd >= 0 && !s->reaped ? -1 : RETRY_MS;

	if (poll(fds, UG_ARRAY_SIZE(fds), timeout) <= 0)
		return;
	if (fds[1].revents)
		reap(s);
	if (fds[0].revents)
		suplink_dispatch(&s->link);
}

static void watch(struct supervisor *s, int pidfd)
{
	uint64_t end = 0;

	while (!s->told) {
		suplink_retry(&s->link);
		wait_once(s, pidfd);
		if (!s->reaped)
			continue;
		if (!end)
			end = now_ms() + REPORT_MS;
		if (now_ms() >= end)
			return;
		if (!s->told)
			answer(s, &s->inc, PROOF_REAPED);
	}
}

int supervisor_run(const struct supervisor_config *config, int *wait_status)
{
	struct supervisor s = { .child = config->child };
	int pidfd, err = incarnation_of(config->child, &s.inc);

	if (err)
		return err;
	s.life_dir = config->life_dir ? config->life_dir : LIFE_LOCK_DIR;
	pidfd = pidfd_open(config->child, 0);
	if (pidfd < 0)
		return -errno;
	suplink_init(&s.link, on_message, &s);
	watch(&s, pidfd);
	suplink_close(&s.link);
	close(pidfd);
	*wait_status = s.wait_status;
	return 0;
}
