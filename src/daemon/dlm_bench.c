/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlm_bench.c - "ugfs dlm bench": what locks cost, measured in a member.
 *
 *   on another node: bench --hold            here: bench
 *     NL on bench.NODE.0 .. : mastered there   reads bench.hold.NODE
 *     bench.hold.NODE, value: echo port        echo, then locks on bench.NODE.*
 *
 * The program joins by itself, so that the library is measured and not the way
 * to a lock process.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/log.h"
#include "daemon/dlm_bench.h"
#include "daemon/dlm_cmd.h"
#include "daemon/dlm_load.h"
#include "daemon/dlm_options.h"
#include "daemon/exitcode.h"

#define JOIN_MS 60000u
#define NAMES_DEFAULT 200000u

static void usage(FILE *out)
{
	fputs("usage: ugfs dlm bench [OPTIONS] CLUSTER:NAME\n"
	      "       ugfs dlm bench --hold [OPTIONS] CLUSTER:NAME\n"
	      "\n"
	      "Measure what locks cost, as a member of its own. With --hold on "
	      "another\n"
	      "host (say it there first, and wait for \"holding\") locks that "
	      "are mastered\n"
	      "there are measured too, beside a bare TCP echo.\n"
	      "\n"
	      "  --hold             hold resources until told to end (SIGINT)\n"
	      "  --names N          how many (200000)\n"
	      "  --seconds SEC      for each row (2)\n"
	      "  --threads N        that call and dispatch (1)\n"
	      "  --depth N          operations under way, of rows with many "
	      "(256)\n"
	      "  --only TEXT        rows with this text in their name\n"
	      "  --dispatch         callbacks on these threads only, not on "
	      "the one that\n"
	      "                     reads from the network\n"
	      "  --held N           hold N more locks, and print their memory\n"
	      "  -o, --options LIST as of join\n"
	      "  --json             as JSON\n"
	      "  -h, --help         this text\n",
	      out);
}

/* Arguments */

static int set_number(const char *what, unsigned max, unsigned *value)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(optarg, &end, 10);
	if (errno || *end || optarg[0] < '0' || optarg[0] > '9' || n < 1 ||
	    n > max)
		return dlm_say(BENCH_VERB, EXIT_USAGE,
			       "%s: expected a number from 1 to %u, not \"%s\"",
			       what, max, optarg);
	*value = (unsigned)n;
	return EXIT_OK;
}

static int set_option(struct bench *b, int c)
{
	char why[512];

	switch (c) {
	case 'H':
		b->hold = true;
		return EXIT_OK;
	case 'n':
		return set_number("names", 100000000, &b->names);
	case 's':
		if (dlm_parse_seconds(optarg, 0.1, 3600, &b->time_ms))
			return EXIT_OK;
		return dlm_say(BENCH_VERB, EXIT_USAGE,
			       "seconds: expected from 0.1 to 3600, not \"%s\"",
			       optarg);
	case 't':
		return set_number("threads", 64, &b->threads);
	case 'd':
		return set_number("depth", LOAD_DEPTH_MAX, &b->depth);
	case 'm':
		return set_number("held", 100000000, &b->held);
	case 'o':
		if (!dlm_options_parse(&b->opt, optarg, why, sizeof(why)))
			return EXIT_OK;
		return dlm_say(BENCH_VERB, EXIT_USAGE, "%s", why);
	case 'O':
		b->only = optarg;
		return EXIT_OK;
	case 'D':
		b->dispatch = true;
		return EXIT_OK;
	case 'j':
		b->json = true;
		return EXIT_OK;
	default:
		usage(stderr);
		return EXIT_USAGE;
	}
}

static int parse(struct bench *b, int argc, char **argv, bool *done)
{
	static const struct option long_options[] = {
		{ "hold", no_argument, NULL, 'H' },
		{ "names", required_argument, NULL, 'n' },
		{ "seconds", required_argument, NULL, 's' },
		{ "threads", required_argument, NULL, 't' },
		{ "depth", required_argument, NULL, 'd' },
		{ "held", required_argument, NULL, 'm' },
		{ "dispatch", no_argument, NULL, 'D' },
		{ "only", required_argument, NULL, 'O' },
		{ "options", required_argument, NULL, 'o' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c, code = EXIT_OK;

	while (!code &&
	       (c = getopt_long(argc, argv, "o:h", long_options, NULL)) != -1) {
		if (c == 'h') {
			usage(stdout);
			*done = true;
			return EXIT_OK;
		}
		code = set_option(b, c);
	}
	if (code)
		return code;
	if (argc - optind != 1) {
		usage(stderr);
		return EXIT_USAGE;
	}
	b->name = argv[optind];
	return geteuid() == 0 ? EXIT_OK
			      : dlm_say(BENCH_VERB, EXIT_USAGE,
					"only root can join a lockspace");
}

/* Membership */

static void on_running(void *arg, uint32_t generation,
		       const struct ugdlm_member *self)
{
	struct bench *b = arg;

	b->running = true;
}

static void on_lost(void *arg, const char *why)
{
	struct bench *b = arg;

	b->lost = true;
	dlm_say(BENCH_VERB, 0, "the lockspace is lost: %s", why);
}

static const struct ugdlm_events events = {
	.running = on_running,
	.lost = on_lost,
};

void bench_dispatch(struct bench *b, int ms)
{
	struct pollfd fd = { ugdlm_fd(b->ls), POLLIN, 0 };

	if (poll(&fd, 1, ms) > 0)
		ugdlm_dispatch(b->ls, 256);
}

/* Before threads are made, which would die of them. */
static void block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static int join(struct bench *b)
{
	struct ugdlm_config config = b->opt.config;
	char why[512];
	int err = ugdlm_supervise(&b->opt.supervise);

	if (err)
		return dlm_say(BENCH_VERB, EXIT_SYSTEM, "supervisor: %s",
			       strerror(-err));
	if (b->hold)
		block_signals();
	config.name = b->name;
	config.events = &events;
	config.arg = b;
	config.direct = !b->dispatch;
	err = ugdlm_join(&config, JOIN_MS, &b->ls, why, sizeof(why));
	if (err)
		return dlm_say(BENCH_VERB, EXIT_MOUNT, "%s", why);
	while (!b->running && !b->lost)
		bench_dispatch(b, 100);
	return b->lost ? EXIT_MOUNT : EXIT_OK;
}

/* A single lock with a value block; this thread dispatches meanwhile. */

static void on_ast(void *ctx, struct ugdlm_lksb *lksb)
{
	struct bench *b = ctx;

	b->ended = true;
}

bool bench_finish(struct bench *b, int err)
{
	while (!err && !b->ended && !b->lost)
		bench_dispatch(b, 100);
	return err >= 0 && !b->lost;
}

bool bench_lock(struct bench *b, const char *name, enum ugdlm_mode mode,
		bool convert, struct ugdlm_lksb *lksb)
{
	struct ugdlm_request req = {
		.mode = mode,
		.flags = UGDLM_VALBLK | (convert ? UGDLM_CONVERT : 0),
		.name = convert ? NULL : name,
		.name_len = convert ? 0 : strlen(name),
		.lksb = lksb,
		.ast = on_ast,
		.ctx = b,
		.inline_ok = true,
	};

	b->ended = false;
	return bench_finish(b, ugdlm_lock(b->ls, &req)) &&
	       lksb->status == UGDLM_OK;
}

json_t *bench_status(struct bench *b)
{
	char *text = NULL;
	json_t *root;

	if (ugdlm_status_json(b->ls, &text))
		return NULL;
	root = json_loads(text, 0, NULL);
	free(text);
	return root;
}

void bench_names(char *prefix, char *hold, size_t len, long node, long instance)
{
	snprintf(prefix, len, "bench.%ld.%ld.", node, instance);
	snprintf(hold, len, "bench.hold.%ld.%ld", node, instance);
}

int dlm_bench_main(int argc, char **argv)
{
	static struct bench b = {
		.time_ms = 2000,
		.threads = 1,
		.depth = 256,
		.names = NAMES_DEFAULT,
	};
	bool done = false;
	int code = parse(&b, argc, argv, &done);

	if (code || done)
		return code;
	b.rows = json_array();
	code = join(&b);
	if (!code)
		code = b.hold ? bench_hold(&b) : bench_measure(&b);
	if (b.ls)
		ugdlm_leave(b.ls, false);
	json_decref(b.rows);
	dlm_options_free(&b.opt);
	return code;
}
