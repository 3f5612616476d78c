/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cpgtool.c - a member without a file system, for tests.
 *
 * Usage: cpgtool [-s] CLUSTER:FS [MEMBER_TIMEOUT_MS]. Joins, holds a life lock
 * once it is admitted, stops its (absent) engine at once when asked, and prints
 * every event as a line. Lines of standard input are commands: "leave", "leave
 * dirty", "expel ID", "prove ID reaped|fenced", "lease". SIGTERM is "leave".
 * With -s this is done by a child, and the parent is its supervisor.
 *
 * Exits 0 when it has left, 3 when it is out otherwise, 4 without corosync.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cluster/cluster.h"
#include "cluster/lifelock.h"
#include "cluster/supervisor.h"

static const char *const cause_names[] = {
	"not", "left", "process", "host", "expelled", "found dead",
};

static const char *const proof_names[] = {
	"none",	     "left",	 "left dirty", "reaped",
	"life lock", "rebooted", "fenced",     "known to others",
};

static const char *const out_names[] = {
	"version", "node id", "full", "expelled", "gone", "behind", "left",
};

static const char *const reason_names[] = { "leave", "process", "host" };

static const uint8_t test_uuid[16] = "ugfs test volume";

static int done[2]; /* a byte: the exit status */

/* Members by id, the last one of each: for commands, on another thread. */
static struct member known[64];
static unsigned known_count;
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;

static void remember(const struct member *member)
{
	unsigned i = 0;

	pthread_mutex_lock(&known_lock);
	while (i < known_count && member_id(&known[i]) != member_id(member))
		i++;
	if (i < sizeof(known) / sizeof(known[0])) {
		known[i] = *member;
		known_count += i == known_count;
	}
	pthread_mutex_unlock(&known_lock);
}

static bool recall(unsigned id, struct incarnation *inc)
{
	bool found = false;

	pthread_mutex_lock(&known_lock);
	for (unsigned i = 0; i < known_count; i++) {
		if (member_id(&known[i]) != id)
			continue;
		*inc = known[i].info.inc;
		found = true;
	}
	pthread_mutex_unlock(&known_lock);
	return found;
}

static void finish(unsigned char status)
{
	if (write(done[1], &status, 1) != 1)
		_exit(5);
}

static void print_members(const struct group_state *table)
{
	for (uint32_t i = 0; i < table->count; i++)
		if (table->members[i].cause == GONE_NOT)
			printf(" %u", member_id(&table->members[i]));
	printf("\n");
}

static void admitted(const struct member_update *up)
{
	struct life_lock_name name = {
		.dir = LIFE_LOCK_DIR,
		.uuid = test_uuid,
		.node = up->member.proc.node,
		.instance = up->member.instance,
	};
	int fd = life_lock_take(&name, &up->member.info.inc);

	if (fd < 0)
		printf("life lock: %s\n", strerror(-fd));
	printf("admitted %u%s\n", member_id(&up->member),
	       up->founder ? " founder" : "");
}

static void on_update(struct cluster *c, const struct member_update *up)
{
	unsigned id = member_id(&up->member);

	switch (up->kind) {
	case MUP_SEND:
	case MUP_CLEARED: /* these are told otherwise */
		break;
	case MUP_ADMITTED:
		admitted(up);
		break;
	case MUP_JOINED:
		remember(&up->member);
		printf("joined %u\n", id);
		break;
	case MUP_MISSING:
		printf("missing %u %s\n", id, reason_names[up->reason]);
		break;
	case MUP_BACK:
		printf("back %u\n", id);
		break;
	case MUP_GONE:
		remember(&up->member);
		printf("gone %u %s\n", id, cause_names[up->member.cause]);
		break;
	case MUP_PROVED:
		printf("proved %u %s\n", id, proof_names[up->member.proof]);
		break;
	case MUP_SETTLED:
		printf("settled %s\n", up->settled ? "yes" : "no");
		break;
	case MUP_CHANGE:
		printf("change %llu:", (unsigned long long)up->generation);
		print_members(cluster_table(c));
		cluster_say_stopped(c, up->generation);
		break;
	case MUP_START:
		printf("start %llu:", (unsigned long long)up->generation);
		print_members(cluster_table(c));
		break;
	case MUP_MINOR:
		printf("minor %u\n", up->minor);
		break;
	case MUP_OUT:
		printf("out %s\n", out_names[up->out.cause]);
		finish(up->out.cause == OUT_LEFT ? 0 : 3);
		break;
	}
}

static void on_event(void *arg, struct cluster *c,
		     const struct cluster_event *ev)
{
	switch (ev->kind) {
	case CLUSTER_UPDATE:
		on_update(c, ev->update);
		break;
	case CLUSTER_QUORUM:
		printf("quorum %s\n", ev->quorate ? "yes" : "no");
		break;
	case CLUSTER_LEASE:
		printf("%s\n", ev->lease ? "lease" : "lease ended");
		break;
	case CLUSTER_CLEARED:
		printf("cleared\n");
		break;
	case CLUSTER_LOST:
		printf("lost: %s\n", strerror(-ev->error));
		finish(4);
		break;
	}
	fflush(stdout);
}

static void on_term(int sig)
{
	unsigned char leave = 255;

	if (write(done[1], &leave, 1) != 1)
		_exit(5);
}

static void tell_lease(struct cluster *c)
{
	struct timespec ts;
	uint64_t now;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	now = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	printf("lease %s\n", cluster_lease_ns(c) > now ? "yes" : "no");
	fflush(stdout);
}

static void run_command(struct cluster *c, const char *line)
{
	struct incarnation inc;
	char what[16] = "";
	unsigned id;

	if (strcmp(line, "leave\n") == 0)
		cluster_say_left(c, false);
	else if (strcmp(line, "leave dirty\n") == 0)
		cluster_say_left(c, true);
	else if (strcmp(line, "lease\n") == 0)
		tell_lease(c);
	else if (sscanf(line, "expel %u", &id) == 1 && recall(id, &inc))
		cluster_expel(c, &inc);
	else if (sscanf(line, "prove %u %15s", &id, what) == 2 &&
		 recall(id, &inc))
		cluster_prove(c, &inc,
			      strcmp(what, "fenced") == 0 ? PROOF_FENCED
							  : PROOF_REAPED);
	else
		fprintf(stderr, "no command: %s", line);
}

static int serve(struct cluster *c)
{
	struct pollfd fds[] = { { done[0], POLLIN, 0 },
				{ STDIN_FILENO, POLLIN, 0 } };
	unsigned char status;
	char line[80];

	for (;;) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return 5;
		if (fds[0].revents & POLLIN) {
			if (read(done[0], &status, 1) != 1)
				return 5;
			if (status != 255)
				return status;
			cluster_say_left(c, false);
		}
		if (!fds[1].revents)
			continue;
		if (fgets(line, sizeof(line), stdin))
			run_command(c, line);
		else
			fds[1].fd = -1;
	}
}

static int run_member(const char *table, const char *timeout_ms)
{
	struct cluster_config config = { .event = on_event };
	char why[256] = "";
	struct cluster *c;
	int err, status;

	if (pipe(done))
		return 5;
	config.table = table;
	memcpy(config.uuid, test_uuid, sizeof(config.uuid));
	if (timeout_ms)
		config.member_timeout_ns =
			strtoull(timeout_ms, NULL, 10) * 1000000u;
	signal(SIGTERM, on_term);
	err = cluster_join(&config, &c, why, sizeof(why));
	if (err) {
		printf("join: %d %s\n", -err, why);
		return 4;
	}
	status = serve(c);
	cluster_close(c);
	return status;
}

static int run_supervised(const char *table, const char *timeout_ms)
{
	struct supervisor_config config = { 0 };
	int err, status;
	pid_t child = fork();

	if (child < 0)
		return 5;
	if (child == 0)
		exit(run_member(table, timeout_ms));
	config.child = child;
	err = supervisor_run(&config, &status);
	if (err) {
		fprintf(stderr, "supervisor: %s\n", strerror(-err));
		return 5;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	bool supervised = argc > 1 && strcmp(argv[1], "-s") == 0;
	char **args = argv + 1 + supervised;

	if (argc < 2 + supervised) {
		fprintf(stderr,
			"usage: cpgtool [-s] CLUSTER:FS [TIMEOUT_MS]\n");
		return 2;
	}
	return supervised ? run_supervised(args[0], args[1])
			  : run_member(args[0], args[1]);
}
