/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlm_cmd.c - "ugfs dlm": finding the lock process and asking it.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "daemon/control_client.h"
#include "daemon/dlm_cmd.h"
#include "daemon/dlm_process.h"
#include "daemon/exitcode.h"
#include "daemon/say.h"
#include "daemon/verbs.h"

struct dlm_verb {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *summary;
};

static const struct dlm_verb verbs[] = {
	{ "join", dlm_join_main, "join a lockspace" },
	{ "leave", dlm_leave_main, "leave it" },
	{ "ls", dlm_ls_main, "the lockspaces of this host" },
	{ "status", dlm_status_main, "members, quorum, what is waited for" },
	{ "lockdump", dlm_lockdump_main, "resources and locks" },
	{ "dump", dlm_dump_main, "the trace of what happened last" },
	{ "fence_ack", dlm_fence_ack_main, "say that a host is down" },
	{ "lock", dlm_lock_main, "take or convert a lock by hand" },
	{ "unlock", dlm_unlock_main, "release it" },
	{ "bench", dlm_bench_main, "measure what locks cost" },
};

int dlm_say(const char *verb, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say_line("ugfs dlm", verb, fmt, ap);
	va_end(ap);
	return code;
}

int dlm_print_json(const json_t *value)
{
	if (json_dumpf(value, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY) ||
	    putchar('\n') == EOF || fflush(stdout))
		return dlm_say("json", EXIT_SYSTEM, "standard output: %s",
			       strerror(errno));
	return EXIT_OK;
}

static void print_note(const char *text)
{
	fprintf(stderr, "ugfs dlm: %s\n", text);
}

static int ask_peer(const struct control_peer *peer, const char *verb,
		    json_t *args, int timeout_ms, json_t **result)
{
	const struct control_question q = {
		.dir = CONTROL_DIR,
		.peer = peer,
		.verb = verb,
		.args = args,
		.timeout_ms = timeout_ms,
		.note = print_note,
	};
	char why[CONTROL_WHY_LEN];
	int err = control_ask(&q, result, why, sizeof(why));

	return err ? dlm_say(verb, control_exit_code(err), "%s", why) : EXIT_OK;
}

int dlm_ask(const char *name, const char *verb, json_t *args, int timeout_ms,
	    json_t **result)
{
	struct control_peers peers;
	int code, err;

	if (geteuid() != 0) {
		json_decref(args);
		return dlm_say(verb, EXIT_USAGE, "only root may ask");
	}
	err = control_find(CONTROL_DIR, DLM_KIND, name, &peers);
	if (err || !peers.count) {
		json_decref(args);
		if (err)
			return dlm_say(verb, EXIT_SYSTEM, "%s: %s", CONTROL_DIR,
				       strerror(-err));
		return dlm_say(verb, EXIT_MOUNT,
			       "no lock process of %s on this host: \"ugfs dlm "
			       "join %s\" starts one",
			       name, name);
	}
	code = ask_peer(&peers.peer[0], verb, args, timeout_ms, result);
	control_peers_free(&peers);
	return code;
}

static void print_help(FILE *out)
{
	fputs("usage: ugfs dlm VERB [ARGUMENTS]\n"
	      "\n"
	      "The distributed lock manager: lockspaces that this host has "
	      "joined, and\n"
	      "locks in them.\n"
	      "\n",
	      out);
	for (size_t i = 0; i < UG_ARRAY_SIZE(verbs); i++)
		fprintf(out, "  %-10s%s\n", verbs[i].name, verbs[i].summary);
	fputs("\nugfs dlm VERB --help tells more. Manual: ugfs-dlm(8).\n", out);
}

int dlm_main(int argc, char **argv)
{
	static char name[64];

	if (argc > 1 &&
	    (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		print_help(stdout);
		return EXIT_OK;
	}
	for (size_t i = 0; argc > 1 && i < UG_ARRAY_SIZE(verbs); i++) {
		if (strcmp(verbs[i].name, argv[1]) != 0)
			continue;
		/* What getopt_long() begins its complaints with. */
		snprintf(name, sizeof(name), "ugfs dlm %s", argv[1]);
		argv[1] = name;
		return verbs[i].main(argc - 1, argv + 1);
	}
	if (argc > 1)
		fprintf(stderr, "ugfs: unknown verb \"dlm %s\"\n\n", argv[1]);
	print_help(stderr);
	return EXIT_USAGE;
}
