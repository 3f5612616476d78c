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
#include "daemon/dlm_cmd.h"
#include "daemon/dlm_echo.h"
#include "daemon/dlm_load.h"
#include "daemon/dlm_options.h"
#include "daemon/exitcode.h"

#define VERB "bench"
#define JOIN_MS 60000u
#define NAMES_DEFAULT 200000u
#define HOLDERS_MAX 32u
/* Local operations take less than asking the clock twice. */
#define LOCAL_SAMPLE 16u

struct holder {
	long node, instance;
	uint16_t port;
	uint32_t names;
	char address[64];
};

struct bench {
	const char *name;
	struct dlm_options opt;
	bool hold, json;
	uint32_t time_ms;
	unsigned threads, depth;
	unsigned names; /* --hold: how many */
	unsigned held;	/* to measure memory; 0: not */
	struct ugdlm *ls;
	_Atomic bool running, lost;
	bool ended; /* the operation of lock_one() */
	struct holder holders[HOLDERS_MAX];
	unsigned holders_count, members;
	json_t *rows;
	double echo_ns; /* the median, 0: none */
};

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
		return dlm_say(VERB, EXIT_USAGE,
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
		return dlm_say(VERB, EXIT_USAGE,
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
		return dlm_say(VERB, EXIT_USAGE, "%s", why);
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
			      : dlm_say(VERB, EXIT_USAGE,
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
	dlm_say(VERB, 0, "the lockspace is lost: %s", why);
}

static const struct ugdlm_events events = {
	.running = on_running,
	.lost = on_lost,
};

static void dispatch(struct bench *b, int ms)
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
		return dlm_say(VERB, EXIT_SYSTEM, "supervisor: %s",
			       strerror(-err));
	if (b->hold)
		block_signals();
	config.name = b->name;
	config.events = &events;
	config.arg = b;
	err = ugdlm_join(&config, JOIN_MS, &b->ls, why, sizeof(why));
	if (err)
		return dlm_say(VERB, EXIT_MOUNT, "%s", why);
	while (!b->running && !b->lost)
		dispatch(b, 100);
	return b->lost ? EXIT_MOUNT : EXIT_OK;
}

/* A single lock with a value block; this thread dispatches meanwhile. */

static void on_ast(void *ctx, struct ugdlm_lksb *lksb)
{
	struct bench *b = ctx;

	b->ended = true;
}

static bool finish(struct bench *b, int err)
{
	while (!err && !b->ended && !b->lost)
		dispatch(b, 100);
	return err >= 0 && !b->lost;
}

static bool lock_one(struct bench *b, const char *name, enum ugdlm_mode mode,
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
	return finish(b, ugdlm_lock(b->ls, &req)) && lksb->status == UGDLM_OK;
}

static json_t *read_status(struct bench *b)
{
	char *text = NULL;
	json_t *root;

	if (ugdlm_status_json(b->ls, &text))
		return NULL;
	root = json_loads(text, 0, NULL);
	free(text);
	return root;
}

/* --hold */

static const json_t *find_self(const json_t *status)
{
	const json_t *m;
	size_t i;

	json_array_foreach(
		json_object_get(status, "members"), i,
		m) if (!strcmp(json_string_value(json_object_get(m, "state")),
			       "self")) return m;
	return NULL;
}

static void hold_names(char *prefix, char *hold, size_t len, long node,
		       long instance)
{
	snprintf(prefix, len, "bench.%ld.%ld.", node, instance);
	snprintf(hold, len, "bench.hold.%ld.%ld", node, instance);
}

static int wait_for_end(struct bench *b)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (fd < 0)
		return dlm_say(VERB, EXIT_SYSTEM, "signalfd: %s",
			       strerror(errno));
	while (!b->lost) {
		struct pollfd fds[] = { { ugdlm_fd(b->ls), POLLIN, 0 },
					{ fd, POLLIN, 0 } };

		if (poll(fds, 2, -1) <= 0)
			continue;
		if (fds[1].revents)
			break;
		ugdlm_dispatch(b->ls, 256);
	}
	close(fd);
	return b->lost ? EXIT_INTERNAL : EXIT_OK;
}

static int hold_all(struct bench *b, const char *prefix,
		    struct ugdlm_lksb *held)
{
	struct load_config config = {
		.ls = b->ls,
		.kind = LOAD_HOLD,
		.prefix = prefix,
		.names = b->names,
		.held = held,
		.threads = 1,
		.depth = b->depth,
		.sample = 1,
	};
	struct load_result result;
	int err = load_run(&config, &result);

	return err ? dlm_say(VERB, EXIT_MOUNT, "holding: %s", strerror(-err))
		   : EXIT_OK;
}

/* The value: port, number of names. */
static bool publish(struct bench *b, const char *name, uint16_t port,
		    struct ugdlm_lksb *lksb)
{
	if (!lock_one(b, name, UGDLM_EX, false, lksb))
		return false;
	memset(lksb->lvb, 0, sizeof(lksb->lvb));
	memcpy(lksb->lvb, &port, sizeof(port));
	memcpy(lksb->lvb + 4, &b->names, sizeof(b->names));
	return lock_one(b, name, UGDLM_NL, true, lksb);
}

static int hold(struct bench *b)
{
	ug_autofree struct ugdlm_lksb *held = calloc(b->names, sizeof(*held));
	struct ugdlm_lksb lksb = { 0 };
	json_t *status = read_status(b);
	const json_t *self = find_self(status);
	char prefix[UGDLM_NAME_MAX], name[UGDLM_NAME_MAX];
	const char *address;
	uint16_t port = 0;
	int err, code;

	address = json_string_value(json_object_get(self, "address"));
	if (!held || !address) {
		json_decref(status);
		return dlm_say(VERB, EXIT_SYSTEM, "out of memory");
	}
	hold_names(prefix, name, sizeof(prefix),
		   json_integer_value(json_object_get(self, "node")),
		   json_integer_value(json_object_get(self, "instance")));
	err = echo_serve(address, &port);
	json_decref(status);
	if (err)
		return dlm_say(VERB, EXIT_SYSTEM, "echo: %s", strerror(-err));
	code = hold_all(b, prefix, held);
	if (code)
		return code;
	if (!publish(b, name, port, &lksb))
		return dlm_say(VERB, EXIT_MOUNT, "%s is held by others", name);
	printf("holding %u names\n", b->names);
	fflush(stdout);
	code = wait_for_end(b);
	/* Before its memory goes. */
	if (ugdlm_leave(b->ls, false))
		code = EXIT_INTERNAL;
	b->ls = NULL;
	return code;
}

/* Rows */

static void print_head(const struct bench *b)
{
	if (b->json)
		return;
	printf("%s: %u members, %u thread%s, many = %u under way, %.1f s a "
	       "row; times in microseconds\n\n"
	       "%-34s %10s %7s %8s %8s %8s %8s %9s\n",
	       b->name, b->members, b->threads, b->threads == 1 ? "" : "s",
	       b->threads * b->depth, b->time_ms / 1000.0, "", "per second",
	       "CPU", "mean", "p50", "p90", "p99", "max");
	fflush(stdout);
}

/* cpu_ns: of this process, for each pair. */
static void add_row(struct bench *b, const char *name, double per_second,
		    double cpu_ns, const struct latency *l)
{
	double p50 = (double)latency_percentile(l, 50);
	double p90 = (double)latency_percentile(l, 90);
	double p99 = (double)latency_percentile(l, 99);

	if (!l->count)
		return;
	json_array_append_new(
		b->rows,
		json_pack("{s:s,s:f,s:f,s:f,s:f,s:f,s:f,s:f}", "name", name,
			  "per_second", per_second, "cpu_ns", cpu_ns, "mean_ns",
			  latency_mean(l), "p50_ns", p50, "p90_ns", p90,
			  "p99_ns", p99, "max_ns", (double)l->max_ns));
	if (b->json)
		return;
	printf("%-34s %10.0f %7.2f %8.2f %8.2f %8.2f %8.2f %9.1f", name,
	       per_second, cpu_ns / 1000, latency_mean(l) / 1000, p50 / 1000,
	       p90 / 1000, p99 / 1000, (double)l->max_ns / 1000);
	if (b->echo_ns > 0 && strstr(name, "one at a time"))
		printf("  %.2f echo", p50 / b->echo_ns);
	putchar('\n');
	fflush(stdout);
}

struct row {
	const char *up, *down;
	enum load_kind kind;
	const char *prefix;
	bool many;
	unsigned sample;
	uint64_t first, names;
};

/* The names used up, or negative. */
static int64_t run_row(struct bench *b, const struct row *row)
{
	struct load_config config = {
		.ls = b->ls,
		.kind = row->kind,
		.prefix = row->prefix,
		.first = row->first,
		.names = row->names,
		.threads = row->many ? b->threads : 1,
		.depth = row->many ? b->depth : 1,
		.time_ms = b->time_ms,
		.sample = row->sample,
	};
	struct load_result *result = malloc(sizeof(*result));
	double rate, cpu_ns;
	int64_t used;
	int err = result ? load_run(&config, result) : -ENOMEM;

	if (err) {
		dlm_say(VERB, 0, "%s: %s", row->up, strerror(-err));
		free(result);
		return err;
	}
	rate = (double)result->pairs * 1e9 / (double)result->ns;
	cpu_ns = result->pairs ? (double)result->cpu_ns / (double)result->pairs
			       : 0;
	add_row(b, row->up, rate, cpu_ns, &result->up);
	add_row(b, row->down, rate, cpu_ns, &result->down);
	used = (int64_t)result->used;
	free(result);
	return used;
}

static bool local_rows(struct bench *b)
{
	char known[UGDLM_NAME_MAX], fresh[UGDLM_NAME_MAX];
	const struct row rows[] = {
		{ "here, known: lock", "here, known: unlock", LOAD_LOCK, known,
		  false, LOCAL_SAMPLE, 0, 0 },
		{ "here, known: convert NL to EX",
		  "here, known: convert EX to NL", LOAD_CONVERT, known, false,
		  LOCAL_SAMPLE, 0, 0 },
		{ "new: lock, one at a time", "new: unlock", LOAD_NEW, fresh,
		  false, 1, 0, UINT64_MAX / 4 },
		{ "new: lock, many", "new: unlock, many", LOAD_NEW, fresh, true,
		  1, UINT64_MAX / 2, UINT64_MAX / 4 },
	};

	snprintf(known, sizeof(known), "bench.known.%d.", (int)getpid());
	snprintf(fresh, sizeof(fresh), "bench.new.%d.", (int)getpid());
	for (size_t i = 0; i < UG_ARRAY_SIZE(rows); i++)
		if (run_row(b, &rows[i]) < 0)
			return false;
	return true;
}

static bool remote_rows(struct bench *b, const struct holder *h)
{
	char prefix[UGDLM_NAME_MAX], hold[UGDLM_NAME_MAX];
	struct row rows[] = {
		{ "there, new: lock, one at a time",
		  "there, new: unlock, one at a time", LOAD_NEW, prefix, false,
		  1, 0, h->names / 2 },
		{ "there, new: lock, many", "there, new: unlock, many",
		  LOAD_NEW, prefix, true, 1, h->names / 2, h->names / 2 },
		{ "there, known: lock, one at a time",
		  "there, known: unlock, one at a time", LOAD_LOCK, prefix,
		  false, 1, 0, 0 },
		{ "there, convert up, one at a time",
		  "there, convert down, one at a time", LOAD_CONVERT, prefix,
		  false, 1, 0, 0 },
		{ "there, known: lock, many", "there, known: unlock, many",
		  LOAD_LOCK, prefix, true, 1, 0, 0 },
		{ "there, convert up, many", "there, convert down, many",
		  LOAD_CONVERT, prefix, true, 1, 0, 0 },
	};

	hold_names(prefix, hold, sizeof(prefix), h->node, h->instance);
	for (size_t i = 0; i < UG_ARRAY_SIZE(rows); i++)
		if (run_row(b, &rows[i]) < 0)
			return false;
	return true;
}

static bool echo_row(struct bench *b, const struct holder *h)
{
	struct latency *l = calloc(1, sizeof(*l));
	uint64_t ns = 1;
	int err = l ? echo_measure(h->address, h->port, b->time_ms, l, &ns)
		    : -ENOMEM;

	if (!err) {
		b->echo_ns = (double)latency_percentile(l, 50);
		add_row(b, "TCP echo", (double)l->count * 1e9 / (double)ns, 0,
			l);
	} else {
		dlm_say(VERB, 0, "echo at %s port %u: %s", h->address, h->port,
			strerror(-err));
	}
	free(l);
	return !err;
}

/* Memory */

static uint64_t resident_bytes(void)
{
	unsigned long long pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	if (file && fscanf(file, "%*u %llu", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static bool memory_row(struct bench *b, struct ugdlm_lksb *held)
{
	char prefix[UGDLM_NAME_MAX];
	struct load_config config = {
		.ls = b->ls,
		.kind = LOAD_HOLD,
		.prefix = prefix,
		.names = b->held,
		.held = held,
		.threads = 1,
		.depth = b->depth,
		.sample = 1,
	};
	struct load_result *result = malloc(sizeof(*result));
	uint64_t before = resident_bytes(), after;
	int err = result ? 0 : -ENOMEM;
	double each;

	snprintf(prefix, sizeof(prefix), "bench.held.%d.", (int)getpid());
	if (!err)
		err = load_run(&config, result);
	if (err) {
		dlm_say(VERB, 0, "held: %s", strerror(-err));
		free(result);
		return false;
	}
	after = resident_bytes();
	each = after > before ? (double)(after - before) / b->held : 0;
	json_array_append_new(
		b->rows,
		json_pack("{s:s,s:i,s:f,s:f}", "name", "held", "locks",
			  (int)b->held, "bytes_each", each, "per_second",
			  (double)result->pairs * 1e9 / (double)result->ns));
	if (!b->json)
		printf("\n%u locks held, each of its own resource: %.0f bytes "
		       "each, with everything; taken at %.0f per second\n",
		       b->held, each,
		       (double)result->pairs * 1e9 / (double)result->ns);
	free(result);
	return true;
}

/* Measuring */

static bool read_holder(struct bench *b, const json_t *m)
{
	struct holder *h = &b->holders[b->holders_count];
	char prefix[UGDLM_NAME_MAX], name[UGDLM_NAME_MAX];
	const char *address = json_string_value(json_object_get(m, "address"));
	struct ugdlm_lksb lksb = { 0 };

	h->node = json_integer_value(json_object_get(m, "node"));
	h->instance = json_integer_value(json_object_get(m, "instance"));
	snprintf(h->address, sizeof(h->address), "%s", address ? address : "");
	hold_names(prefix, name, sizeof(prefix), h->node, h->instance);
	if (!lock_one(b, name, UGDLM_NL, false, &lksb))
		return false;
	memcpy(&h->port, lksb.lvb, sizeof(h->port));
	memcpy(&h->names, lksb.lvb + 4, sizeof(h->names));
	b->holders_count += lksb.lvb_valid && h->port && h->names;
	b->ended = false;
	return finish(b, ugdlm_unlock(b->ls, &lksb, 0, false));
}

static bool find_holders(struct bench *b)
{
	json_t *status = read_status(b);
	const json_t *m;
	bool ok = status;
	size_t i;

	b->members =
		(unsigned)json_array_size(json_object_get(status, "members"));
	json_array_foreach(json_object_get(status, "members"), i, m)
	{
		const char *state =
			json_string_value(json_object_get(m, "state"));

		if (ok && state && !strcmp(state, "member") &&
		    b->holders_count < HOLDERS_MAX)
			ok = read_holder(b, m);
	}
	json_decref(status);
	return ok;
}

static int print_result(const struct bench *b)
{
	json_t *root;
	int code;

	if (!b->json)
		return EXIT_OK;
	root = json_pack("{s:s,s:i,s:i,s:i,s:f,s:O}", "lockspace", b->name,
			 "members", (int)b->members, "threads", (int)b->threads,
			 "many", (int)(b->threads * b->depth), "seconds",
			 b->time_ms / 1000.0, "rows", b->rows);
	code = dlm_print_json(root);
	json_decref(root);
	return code;
}

static int measure(struct bench *b)
{
	ug_autofree struct ugdlm_lksb *held = NULL;
	bool ok = find_holders(b);
	int code;

	/* Touched now, so that it does not count. */
	if (b->held) {
		held = malloc(b->held * sizeof(*held));
		if (!held)
			return dlm_say(VERB, EXIT_SYSTEM, "out of memory");
		memset(held, 0xff, b->held * sizeof(*held));
		memset(held, 0, b->held * sizeof(*held));
	}
	print_head(b);
	/* First, while nothing else has grown. */
	if (ok && held)
		ok = memory_row(b, held);
	if (ok)
		ok = local_rows(b);
	if (ok && !b->holders_count)
		dlm_say(VERB, 0,
			"nobody holds: no locks that are mastered "
			"elsewhere (\"ugfs dlm bench --hold\")");
	else if (ok)
		ok = echo_row(b, &b->holders[0]) &&
		     remote_rows(b, &b->holders[0]);
	code = ok ? print_result(b) : EXIT_MOUNT;
	if (ugdlm_leave(b->ls, false) && !code)
		code = EXIT_INTERNAL;
	b->ls = NULL;
	return code;
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
		code = b.hold ? hold(&b) : measure(&b);
	if (b.ls)
		ugdlm_leave(b.ls, false);
	json_decref(b.rows);
	dlm_options_free(&b.opt);
	return code;
}
