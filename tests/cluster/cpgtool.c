/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cpgtool.c - a member without a file system, for tests.
 *
 * Usage: cpgtool [-s] [-f FENCE] [-k KILL_MS] [-d FENCE_DELAY_MS]
 *	[-b STARTUP_MS] [-t MEMBER_TIMEOUT_MS] CLUSTER:FS
 *
 * Joins, holds a life lock once it is admitted, stops its (absent) engine at
 * once when asked, and prints every event as a line. Lines of standard input
 * are commands: "leave", "leave dirty", "expel ID", "prove ID reaped|fenced",
 * "link ID silent|well", "lease", "repair", "repaired",
 * "waits", "ack NODE". SIGTERM is
 * "leave". With -s or -f this is done by a child, and the parent is its
 * supervisor.
 *
 * cpgtool -a NODE says that this node is down; cpgtool -K FS is in the group of
 * the kernel's lockspace FS, as its hosts are, until it is killed.
 *
 * Exits 0 when it has left, 3 when it is out otherwise, 4 without corosync.
 */
#include <corosync/cpg.h>
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

static void tell_repair(struct cluster *c)
{
	char why[1024];
	int err = cluster_may_repair(c, why, sizeof(why));

	printf("repair %s\n", err ? why : "yes");
	fflush(stdout);
}

static void tell_waits(struct cluster *c)
{
	struct cluster_wait waits[16];
	unsigned n = cluster_waits(c, waits, 16);
	char text[512];

	for (unsigned i = 0; i < n; i++) {
		cluster_wait_text(&waits[i], text, sizeof(text));
		printf("wait: %s\n", text);
	}
	if (!n)
		printf("no waits\n");
	fflush(stdout);
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

/* Its effects may have been told of before that. */
static void tell_ack(struct cluster *c, const char *node)
{
	printf("ack %d\n", -cluster_fence_ack(c, node));
	fflush(stdout);
}

static void run_command(struct cluster *c, const char *line)
{
	struct incarnation inc;
	char what[80] = "";
	unsigned id;

	if (strcmp(line, "leave\n") == 0)
		cluster_say_left(c, false);
	else if (strcmp(line, "leave dirty\n") == 0)
		cluster_say_left(c, true);
	else if (strcmp(line, "lease\n") == 0)
		tell_lease(c);
	else if (strcmp(line, "repair\n") == 0)
		tell_repair(c);
	else if (strcmp(line, "repaired\n") == 0)
		cluster_say_repaired(c);
	else if (strcmp(line, "waits\n") == 0)
		tell_waits(c);
	else if (sscanf(line, "ack %79s", what) == 1)
		tell_ack(c, what);
	else if (sscanf(line, "link %u %79s", &id, what) == 2 &&
		 recall(id, &inc))
		cluster_say_link(c, &inc, strcmp(what, "silent") == 0);
	else if (sscanf(line, "expel %u", &id) == 1 && recall(id, &inc))
		cluster_expel(c, &inc);
	else if (sscanf(line, "prove %u %79s", &id, what) == 2 &&
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

struct options {
	const char *table;
	bool supervised;
	struct supervisor_config supervisor;
	uint64_t startup_ns, timeout_ns;
};

static int run_member(const struct options *o)
{
	struct cluster_config config = { .event = on_event };
	char why[256] = "";
	struct cluster *c;
	int err, status;

	if (pipe(done))
		return 5;
	config.table = o->table;
	memcpy(config.uuid, test_uuid, sizeof(config.uuid));
	config.member_timeout_ns = o->timeout_ns;
	config.startup_delay_ns = o->startup_ns;
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

static int run_supervised(struct options *o)
{
	int err, status;
	pid_t child = fork();

	if (child < 0)
		return 5;
	if (child == 0)
		exit(run_member(o));
	o->supervisor.child = child;
	err = supervisor_run(&o->supervisor, &status);
	if (err) {
		fprintf(stderr, "supervisor: %s\n", strerror(-err));
		return 5;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int acknowledge(const char *node)
{
	char why[256];
	int err = fence_ack_send(node, why, sizeof(why));

	if (err)
		printf("ack: %s\n", why);
	return err ? 1 : 0;
}

/* In place of the kernel's host: its group is named with the zero byte. */
static int be_kernel(const char *fs)
{
	cpg_callbacks_t none = { 0 };
	struct cpg_name name;
	cpg_handle_t cpg;

	name.length = (uint32_t)snprintf(name.value, sizeof(name.value),
					 "dlm:ls:%s", fs) +
		      1;
	if (cpg_initialize(&cpg, &none) != CS_OK ||
	    cpg_join(cpg, &name) != CS_OK)
		return 4;
	printf("kernel\n");
	fflush(stdout);
	for (;;)
		pause();
}

static uint64_t ms_to_ns(const char *ms)
{
	return strtoull(ms, NULL, 10) * 1000000u;
}

int main(int argc, char **argv)
{
	struct options o = { 0 };
	int opt;

	while ((opt = getopt(argc, argv, "sf:k:d:b:t:a:K:")) != -1) {
		switch (opt) {
		case 's':
			o.supervised = true;
			break;
		case 'f':
			o.supervised = true;
			o.supervisor.fence = optarg;
			break;
		case 'k':
			o.supervisor.kill_timeout_ms = (uint32_t)atoi(optarg);
			break;
		case 'd':
			o.supervisor.fence_delay_ms = (uint32_t)atoi(optarg);
			break;
		case 'b':
			o.startup_ns = ms_to_ns(optarg);
			break;
		case 't':
			o.timeout_ns = ms_to_ns(optarg);
			break;
		case 'a':
			return acknowledge(optarg);
		case 'K':
			return be_kernel(optarg);
		default:
			return 2;
		}
	}
	if (optind != argc - 1) {
		fprintf(stderr, "usage: cpgtool [options] CLUSTER:FS\n");
		return 2;
	}
	o.table = argv[optind];
	return o.supervised ? run_supervised(&o) : run_member(&o);
}
