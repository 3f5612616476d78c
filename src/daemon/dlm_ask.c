/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlm_ask.c - the commands that ask a lock process one thing and print the
 * answer.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster/cluster.h"
#include "daemon/control_client.h"
#include "daemon/dlm_cmd.h"
#include "daemon/dlm_print.h"
#include "daemon/dlm_process.h"
#include "daemon/exitcode.h"

/* A process that lives answers at once, or has much to say. */
#define ANSWER_MS 10000
/* Leaving waits for the others for so long at most, and a little. */
#define LEAVE_MS 90000
#define TIMEOUT_MAX_SEC 86400

struct simple {
	const char *verb;
	const char *usage;
	bool json;  /* wanted */
	bool force; /* wanted */
};

/*
 * --json, --help and, where it exists, --force; then exactly count arguments.
 * EXIT_OK and *done: help has been printed.
 */
static int parse_simple(struct simple *s, int argc, char **argv, int count,
			bool can_force, bool *done)
{
	static const struct option long_options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ "force", no_argument, NULL, 'F' },
		{ 0 },
	};
	struct option known[4] = { long_options[0], long_options[1] };
	int c;

	if (can_force)
		known[2] = long_options[2];
	while ((c = getopt_long(argc, argv, "h", known, NULL)) != -1) {
		switch (c) {
		case 'j':
			s->json = true;
			break;
		case 'F':
			s->force = true;
			break;
		case 'h':
			fputs(s->usage, stdout);
			*done = true;
			return EXIT_OK;
		default:
			fputs(s->usage, stderr);
			return EXIT_USAGE;
		}
	}
	if (argc - optind == count)
		return EXIT_OK;
	fputs(s->usage, stderr);
	return EXIT_USAGE;
}

static int print(const struct simple *s, const json_t *result,
		 void (*text)(FILE *out, const json_t *value))
{
	if (s->json)
		return dlm_print_json(result);
	text(stdout, result);
	if (!fflush(stdout) && !ferror(stdout))
		return EXIT_OK;
	return dlm_say(s->verb, EXIT_SYSTEM, "standard output: %s",
		       strerror(errno));
}

/* One question about a lockspace without further arguments. */
static int ask_about(struct simple *s, int argc, char **argv,
		     void (*text)(FILE *out, const json_t *value))
{
	json_t *result = NULL;
	bool done = false;
	int code = parse_simple(s, argc, argv, 1, false, &done);

	if (code || done)
		return code;
	code = dlm_ask(argv[optind], s->verb, NULL, ANSWER_MS, &result);
	if (!code)
		code = print(s, result, text);
	json_decref(result);
	return code;
}

int dlm_status_main(int argc, char **argv)
{
	struct simple s = {
		.verb = "status",
		.usage =
			"usage: ugfs dlm status [--json] CLUSTER:NAME\n"
			"\n"
			"Members, their slots, incarnations and links; quorum, "
			"lease and\n"
			"generation; what a recovery waits for and since when; "
			"locks by hand.\n"
			"\n"
			"  --json      as JSON\n"
			"  -h, --help  this text\n",
	};

	return ask_about(&s, argc, argv, dlm_print_status);
}

int dlm_lockdump_main(int argc, char **argv)
{
	struct simple s = {
		.verb = "lockdump",
		.usage = "usage: ugfs dlm lockdump [--json] CLUSTER:NAME\n"
			 "\n"
			 "What this process knows of resources: master, value "
			 "block, and the\n"
			 "locks that are granted, converting and waiting, each "
			 "with its id,\n"
			 "the mode that it is held in, and in brackets the one "
			 "asked for.\n"
			 "\n"
			 "  --json      as JSON\n"
			 "  -h, --help  this text\n",
	};

	return ask_about(&s, argc, argv, dlm_print_lockdump);
}

static void print_dump(FILE *out, const json_t *value)
{
	const char *text = json_string_value(value);

	fputs(text ? text : "", out);
}

int dlm_dump_main(int argc, char **argv)
{
	struct simple s = {
		.verb = "dump",
		.usage = "usage: ugfs dlm dump [--json] CLUSTER:NAME\n"
			 "\n"
			 "The trace: state changes, messages and callbacks of "
			 "the last moments,\n"
			 "oldest first, with the time since boot.\n"
			 "\n"
			 "  --json      as one JSON string\n"
			 "  -h, --help  this text\n",
	};

	return ask_about(&s, argc, argv, print_dump);
}

/* Leaving */

/* Its socket is closed by its exit. */
static void print_left(FILE *out, const json_t *value)
{
	fputs("left\n", out);
}

int dlm_leave_main(int argc, char **argv)
{
	struct simple s = {
		.verb = "leave",
		.usage = "usage: ugfs dlm leave [--force] [--json] "
			 "CLUSTER:NAME\n"
			 "\n"
			 "Leave a lockspace and end its lock process. Refused "
			 "while locks are\n"
			 "held by hand.\n"
			 "\n"
			 "  --force     release them\n"
			 "  --json      the outcome as JSON\n"
			 "  -h, --help  this text\n",
	};
	json_t *result = NULL;
	bool done = false;
	int code = parse_simple(&s, argc, argv, 1, true, &done);

	if (code || done)
		return code;
	code = dlm_ask(argv[optind], s.verb,
		       json_pack("{s:b}", "force", s.force), LEAVE_MS, &result);
	if (!code)
		code = print(&s, result, print_left);
	json_decref(result);
	return code;
}

/* Listing */

/* One that does not answer is a line, too. */
static json_t *ask_status(const struct control_peer *peer)
{
	const struct control_question q = {
		.dir = CONTROL_DIR,
		.peer = peer,
		.verb = "status",
		.timeout_ms = 2000,
	};
	char why[CONTROL_WHY_LEN];
	json_t *result = NULL;

	if (!control_ask(&q, &result, why, sizeof(why)))
		return result;
	return json_pack("{s:s,s:i,s:s}", "lockspace", peer->name, "pid",
			 peer->pid, "state", "does not answer");
}

static void print_list(FILE *out, const json_t *list)
{
	const json_t *status;
	size_t i;

	json_array_foreach(list, i, status) dlm_print_summary(out, status);
}

int dlm_ls_main(int argc, char **argv)
{
	struct simple s = {
		.verb = "ls",
		.usage = "usage: ugfs dlm ls [--json]\n"
			 "\n"
			 "The lockspaces that lock processes of this host have "
			 "joined.\n"
			 "\n"
			 "  --json      as a JSON list, each as of status\n"
			 "  -h, --help  this text\n",
	};
	struct control_peers peers;
	bool done = false;
	json_t *list;
	int err, code = parse_simple(&s, argc, argv, 0, false, &done);

	if (code || done)
		return code;
	if (geteuid() != 0)
		return dlm_say(s.verb, EXIT_USAGE, "only root may ask");
	err = control_find(CONTROL_DIR, DLM_KIND, NULL, &peers);
	if (err)
		return dlm_say(s.verb, EXIT_SYSTEM, "%s: %s", CONTROL_DIR,
			       strerror(-err));
	list = json_array();
	for (size_t i = 0; i < peers.count; i++)
		json_array_append_new(list, ask_status(&peers.peer[i]));
	control_peers_free(&peers);
	code = print(&s, list, print_list);
	json_decref(list);
	return code;
}

/* Fencing: no lock process is needed for that */

int dlm_fence_ack_main(int argc, char **argv)
{
	struct simple s = {
		.verb = "fence_ack",
		.usage = "usage: ugfs dlm fence_ack [--json] NODE\n"
			 "\n"
			 "Say that a host (by its name, address or number in "
			 "corosync's\n"
			 "configuration) is down and has been since it was "
			 "missed. Make sure of\n"
			 "it first: if it still runs, it can destroy what the "
			 "locks protect.\n"
			 "Works on any host of the cluster.\n"
			 "\n"
			 "  --json      the outcome as JSON\n"
			 "  -h, --help  this text\n",
	};
	char why[512];
	bool done = false;
	json_t *result;
	int err, code = parse_simple(&s, argc, argv, 1, false, &done);

	if (code || done)
		return code;
	if (geteuid() != 0)
		return dlm_say(s.verb, EXIT_USAGE, "only root may say so");
	err = fence_ack_send(argv[optind], why, sizeof(why));
	if (err)
		return dlm_say(s.verb, EXIT_MOUNT, "%s", why);
	if (!s.json) {
		printf("%s is taken to be down\n", argv[optind]);
		return EXIT_OK;
	}
	result = json_pack("{s:s}", "acknowledged", argv[optind]);
	code = dlm_print_json(result);
	json_decref(result);
	return code;
}

/* Locks by hand */

static const char lock_usage[] =
	"usage: ugfs dlm lock [OPTIONS] CLUSTER:NAME RESOURCE MODE\n"
	"       ugfs dlm lock [OPTIONS] --convert ID CLUSTER:NAME MODE\n"
	"\n"
	"Take a lock, or convert one. MODE is NL, CR, CW, PR, PW or EX. The "
	"lock\n"
	"belongs to the lock process, stays until \"ugfs dlm unlock\", and is "
	"known\n"
	"by the number that is printed. One that has to wait says so; an "
	"interrupt\n"
	"cancels it.\n"
	"\n"
	"  --convert ID   the lock with this number\n"
	"  --noqueue      do not wait\n"
	"  --timeout SEC  wait no longer than this\n"
	"  --lvb HEX      the value block to be written, by a conversion from\n"
	"                 PW or EX to a lower mode\n"
	"  --flags LIST   further flags, separated by commas: quecvt, "
	"ivvalblk,\n"
	"                 convdeadlk, nodlckwt, expedite, noqueuebast, "
	"headque,\n"
	"                 noorder, altpr, altcw, persistent, orphan\n"
	"  --json         the outcome as JSON\n"
	"  -h, --help     this text\n"
	"\n"
	"Exit status: 0 granted, 1 wrong usage, 4 the lock process ended or "
	"the\n"
	"lockspace was lost, 16 not granted, 32 something else is wrong.\n";

struct lock_command {
	bool json;
	json_t *args;
	json_t *flags;
	long convert;
	const char *name;
};

static int parse_id(const char *verb, const char *text, long *id)
{
	char *end;

	errno = 0;
	*id = strtol(text, &end, 10);
	if (!errno && !*end && text[0] >= '0' && text[0] <= '9' && *id > 0 &&
	    *id <= INT32_MAX)
		return EXIT_OK;
	return dlm_say(verb, EXIT_USAGE, "\"%s\" is not the number of a lock",
		       text);
}

static void add_flags(struct lock_command *l, const char *list)
{
	while (*list) {
		size_t len = strcspn(list, ",");

		json_array_append_new(l->flags, json_stringn(list, len));
		list += len + (list[len] == ',');
	}
}

static int lock_option(struct lock_command *l, int c)
{
	uint32_t ms;

	switch (c) {
	case 'c':
		return parse_id("lock", optarg, &l->convert);
	case 'n':
		add_flags(l, "noqueue");
		return EXIT_OK;
	case 't':
		if (!dlm_parse_seconds(optarg, 0, TIMEOUT_MAX_SEC, &ms))
			return dlm_say("lock", EXIT_USAGE,
				       "timeout: expected seconds up to %d, "
				       "not \"%s\"",
				       TIMEOUT_MAX_SEC, optarg);
		json_object_set_new(l->args, "timeout_ms", json_integer(ms));
		return EXIT_OK;
	case 'l':
		json_object_set_new(l->args, "lvb", json_string(optarg));
		return EXIT_OK;
	case 'F':
		add_flags(l, optarg);
		return EXIT_OK;
	case 'j':
		l->json = true;
		return EXIT_OK;
	default:
		fputs(lock_usage, stderr);
		return EXIT_USAGE;
	}
}

static int lock_positionals(struct lock_command *l, int argc, char **argv)
{
	if (argc != (l->convert ? 2 : 3)) {
		fputs(lock_usage, stderr);
		return EXIT_USAGE;
	}
	l->name = argv[0];
	if (l->convert)
		json_object_set_new(l->args, "convert",
				    json_integer(l->convert));
	else if (json_object_set_new(l->args, "resource", json_string(argv[1])))
		return dlm_say("lock", EXIT_USAGE,
			       "the name of the resource is not UTF-8");
	if (json_object_set_new(l->args, "mode", json_string(argv[argc - 1])))
		return dlm_say("lock", EXIT_USAGE, "the mode is not UTF-8");
	json_object_set(l->args, "flags", l->flags);
	return EXIT_OK;
}

static int parse_lock(struct lock_command *l, int argc, char **argv, bool *done)
{
	static const struct option long_options[] = {
		{ "convert", required_argument, NULL, 'c' },
		{ "noqueue", no_argument, NULL, 'n' },
		{ "timeout", required_argument, NULL, 't' },
		{ "lvb", required_argument, NULL, 'l' },
		{ "flags", required_argument, NULL, 'F' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c, code = EXIT_OK;

	while (!code &&
	       (c = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
		if (c == 'h') {
			fputs(lock_usage, stdout);
			*done = true;
			return EXIT_OK;
		}
		code = lock_option(l, c);
	}
	return code ? code : lock_positionals(l, argc - optind, argv + optind);
}

static int run_lock(struct lock_command *l)
{
	json_t *result = NULL;
	const char *status;
	int code = dlm_ask(l->name, "lock", json_incref(l->args), -1, &result);

	if (code)
		return code;
	if (l->json)
		code = dlm_print_json(result);
	else
		dlm_print_lock(stdout, result);
	status = json_string_value(json_object_get(result, "status"));
	if (!code && status && !strcmp(status, "lost"))
		code = EXIT_INTERNAL;
	else if (!code && (!status || strcmp(status, "granted") != 0))
		code = EXIT_NOT_GRANTED;
	json_decref(result);
	return code;
}

int dlm_lock_main(int argc, char **argv)
{
	struct lock_command l = { .args = json_object(),
				  .flags = json_array() };
	bool done = false;
	int code = parse_lock(&l, argc, argv, &done);

	if (!code && !done)
		code = run_lock(&l);
	json_decref(l.args);
	json_decref(l.flags);
	return code;
}

static const char unlock_usage[] =
	"usage: ugfs dlm unlock [--lvb HEX] [--json] CLUSTER:NAME ID\n"
	"\n"
	"Release a lock that was taken by \"ugfs dlm lock\".\n"
	"\n"
	"  --lvb HEX   the value block to be written; the lock has to be held\n"
	"              in PW or EX\n"
	"  --json      the outcome as JSON\n"
	"  -h, --help  this text\n";

static int run_unlock(const char *name, long id, const char *lvb, bool json)
{
	json_t *result = NULL, *args = json_pack("{s:i}", "id", (int)id);
	int code;

	if (lvb)
		json_object_set_new(args, "lvb", json_string(lvb));
	code = dlm_ask(name, "unlock", args, -1, &result);
	if (!code && json)
		code = dlm_print_json(result);
	else if (!code)
		dlm_print_lock(stdout, result);
	json_decref(result);
	return code;
}

int dlm_unlock_main(int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "lvb", required_argument, NULL, 'l' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	const char *lvb = NULL;
	bool json = false;
	long id;
	int c, code;

	while ((c = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
		switch (c) {
		case 'l':
			lvb = optarg;
			break;
		case 'j':
			json = true;
			break;
		case 'h':
			fputs(unlock_usage, stdout);
			return EXIT_OK;
		default:
			fputs(unlock_usage, stderr);
			return EXIT_USAGE;
		}
	}
	if (argc - optind != 2) {
		fputs(unlock_usage, stderr);
		return EXIT_USAGE;
	}
	code = parse_id("unlock", argv[optind + 1], &id);
	return code ? code : run_unlock(argv[optind], id, lvb, json);
}
