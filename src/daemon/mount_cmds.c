/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mount_cmds.c - the verbs of ugfs that ask a mount process: status, lockdump,
 * plocks, gettune, settune, freeze, unfreeze, withdraw.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "daemon/mount_ask.h"
#include "daemon/mount_print.h"
#include "daemon/verbs.h"

/* A process that lives answers at once. */
#define ANSWER_MS 10000

struct command {
	const char *name;
	const char *usage;
	int args_min, args_max;
	bool can_json, can_stats;
	bool has_value;	  /* a negative number is no option */
	bool json, stats; /* given */
};

/*
 * Options, then the arguments, from optind on. EXIT_OK; or another code, or
 * *done: there is nothing more to do.
 */
static int parse(struct command *cmd, int argc, char **argv, bool *done)
{
	struct option known[4] = { { "help", no_argument, NULL, 'h' } };
	int n = 1, c, args;

	if (cmd->can_json)
		known[n++] = (struct option){ "json", no_argument, NULL, 'j' };
	if (cmd->can_stats)
		known[n++] = (struct option){ "stats", no_argument, NULL, 's' };
	*done = false;
	while ((c = getopt_long(argc, argv, cmd->has_value ? "+h" : "h", known,
				NULL)) != -1) {
		switch (c) {
		case 'j':
			cmd->json = true;
			break;
		case 's':
			cmd->stats = true;
			break;
		case 'h':
			fputs(cmd->usage, stdout);
			*done = true;
			return EXIT_OK;
		default:
			fputs(cmd->usage, stderr);
			return EXIT_USAGE;
		}
	}
	args = argc - optind;
	if (args >= cmd->args_min && args <= cmd->args_max)
		return EXIT_OK;
	fputs(cmd->usage, stderr);
	return EXIT_USAGE;
}

/* Has everything been written? */
static int finish(const struct command *cmd)
{
	if (!fflush(stdout) && !ferror(stdout))
		return EXIT_OK;
	return mount_say(cmd->name, EXIT_SYSTEM, "standard output: %s",
			 strerror(errno));
}

static int print_json(const struct command *cmd, const json_t *value)
{
	json_dumpf(value, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY);
	putchar('\n');
	return finish(cmd);
}

static int ask(const struct command *cmd, const char *verb, json_t *args,
	       const char *name, json_t **result)
{
	const struct mount_question q = {
		.command = cmd->name,
		.verb = verb,
		.args = args,
		.timeout_ms = ANSWER_MS,
	};

	return mount_ask(&q, name, result);
}

/* ---- status ---- */

/* Those that do not answer are told of as well. */
static int status_of_all(const struct command *cmd)
{
	const struct mount_question q = {
		.command = cmd->name,
		.verb = "status",
		.timeout_ms = ANSWER_MS / 2,
	};
	json_t *list = json_array(), *result;
	struct control_peers peers = { 0 };
	int code = mount_peers(cmd->name, &peers), asked;

	for (size_t i = 0; i < peers.count; i++) {
		asked = mount_ask_peer(&q, &peers.peer[i], &result);
		if (asked) {
			code = asked;
			continue;
		}
		if (!cmd->json)
			mount_print_status(stdout, result);
		json_array_append_new(list, result);
	}
	control_peers_free(&peers);
	asked = cmd->json ? print_json(cmd, list) : finish(cmd);
	json_decref(list);
	return code ? code : asked;
}

int status_main(int argc, char **argv)
{
	struct command cmd = {
		.name = "status",
		.usage = "usage: ugfs status [--json] [DIR|DEVICE|LOCKTABLE]\n"
			 "\n"
			 "What a mount is, who is a member, and who waits for "
			 "what and since\n"
			 "when; also if it hangs, has withdrawn, or is being "
			 "mounted. Without an\n"
			 "argument: all mounts of this host.\n"
			 "\n"
			 "  --json      as JSON\n"
			 "  -h, --help  this text\n",
		.args_max = 1,
		.can_json = true,
	};
	json_t *result = NULL;
	bool done;
	int code = parse(&cmd, argc, argv, &done);

	if (code || done)
		return code;
	if (optind == argc)
		return status_of_all(&cmd);
	code = ask(&cmd, "status", NULL, argv[optind], &result);
	if (!code && cmd.json)
		code = print_json(&cmd, result);
	else if (!code)
		mount_print_status(stdout, result);
	json_decref(result);
	return code ? code : finish(&cmd);
}

/* ---- glocks ---- */

static bool put_text(const char *text, size_t len)
{
	return fwrite(text, 1, len, stdout) == len;
}

static int lockdump(const struct command *cmd, const char *name)
{
	const struct mount_question q = {
		.command = cmd->name,
		.verb = "lockdump",
		.timeout_ms = ANSWER_MS,
		.text = put_text,
	};
	json_t *result = NULL;
	int code = mount_ask(&q, name, &result);

	json_decref(result);
	return code ? code : finish(cmd);
}

static int lockstats(const struct command *cmd, const char *name)
{
	json_t *result = NULL;
	int code = ask(cmd, "lockstats", NULL, name, &result);

	if (!code && cmd->json)
		code = print_json(cmd, result);
	else if (!code)
		mount_print_lockstats(stdout, result);
	json_decref(result);
	return code ? code : finish(cmd);
}

int lockdump_main(int argc, char **argv)
{
	struct command cmd = {
		.name = "lockdump",
		.usage = "usage: ugfs lockdump DIR|DEVICE|LOCKTABLE\n"
			 "       ugfs lockdump --stats [--json] "
			 "DIR|DEVICE|LOCKTABLE\n"
			 "\n"
			 "All glocks of a mount with their holders and "
			 "waiters, in GFS2's own\n"
			 "format. \"ugfs dlm lockdump\" is about lockspaces "
			 "joined by hand.\n"
			 "\n"
			 "  --stats     counters by type instead\n"
			 "  --json      these as JSON\n"
			 "  -h, --help  this text\n",
		.args_min = 1,
		.args_max = 1,
		.can_json = true,
		.can_stats = true,
	};
	bool done;
	int code = parse(&cmd, argc, argv, &done);

	if (code || done)
		return code;
	if (cmd.json && !cmd.stats)
		return mount_say(cmd.name, EXIT_USAGE, "--json is for --stats");
	return cmd.stats ? lockstats(&cmd, argv[optind])
			 : lockdump(&cmd, argv[optind]);
}

/* ---- application locks ---- */

int plocks_main(int argc, char **argv)
{
	struct command cmd = {
		.name = "plocks",
		.usage = "usage: ugfs plocks [--json] DIR|DEVICE|LOCKTABLE\n"
			 "\n"
			 "Print the fcntl and flock locks that a clustered "
			 "mount knows of: those\n"
			 "of all nodes on files for which this node decides, "
			 "and its own ones.\n"
			 "\n"
			 "  --json      as JSON, with histograms\n"
			 "  -h, --help  this text\n",
		.args_min = 1,
		.args_max = 1,
		.can_json = true,
	};
	json_t *result = NULL;
	bool done;
	int code = parse(&cmd, argc, argv, &done);

	if (code || done)
		return code;
	code = ask(&cmd, "plocks", NULL, argv[optind], &result);
	if (!code && cmd.json)
		code = print_json(&cmd, result);
	else if (!code)
		mount_print_plocks(stdout, result);
	json_decref(result);
	return code ? code : finish(&cmd);
}

/* ---- tunables ---- */

static int print_tunables(const struct command *cmd, const json_t *list,
			  const char *wanted)
{
	char names[512] = "";
	const json_t *item;
	size_t i, used = 0;

	json_array_foreach(list, i, item)
	{
		const char *name =
			json_string_value(json_object_get(item, "name"));

		if (!name)
			continue;
		if (!wanted || !strcmp(name, wanted))
			printf("%s = %lld\n", name,
			       (long long)json_integer_value(
				       json_object_get(item, "value")));
		if (wanted && !strcmp(name, wanted))
			return EXIT_OK;
		if (used < sizeof(names))
			used += (size_t)snprintf(names + used,
						 sizeof(names) - used, "%s%s",
						 i ? ", " : "", name);
	}
	if (!wanted)
		return EXIT_OK;
	return mount_say(cmd->name, EXIT_USAGE,
			 "no tunable \"%s\"; there are: %s", wanted, names);
}

int gettune_main(int argc, char **argv)
{
	struct command cmd = {
		.name = "gettune",
		.usage = "usage: ugfs gettune [--json] DIR|DEVICE|LOCKTABLE "
			 "[NAME]\n"
			 "\n"
			 "Print the tunables of a mount, \"name = value\" "
			 "each.\n"
			 "\n"
			 "  --json      as JSON, with units and ranges\n"
			 "  -h, --help  this text\n",
		.args_min = 1,
		.args_max = 2,
		.can_json = true,
	};
	json_t *result = NULL;
	bool done;
	int code = parse(&cmd, argc, argv, &done);

	if (code || done)
		return code;
	code = ask(&cmd, "gettune", NULL, argv[optind], &result);
	if (!code && cmd.json)
		code = print_json(&cmd, result);
	else if (!code)
		code = print_tunables(&cmd, result, argv[optind + 1]);
	json_decref(result);
	return code ? code : finish(&cmd);
}

int settune_main(int argc, char **argv)
{
	struct command cmd = {
		.name = "settune",
		.usage = "usage: ugfs settune DIR|DEVICE|LOCKTABLE NAME VALUE\n"
			 "\n"
			 "Change a tunable of a mount, until it is unmounted.\n"
			 "\n"
			 "  -h, --help  this text\n",
		.args_min = 3,
		.args_max = 3,
		.has_value = true,
	};
	json_t *result = NULL, *args;
	bool done;
	int code = parse(&cmd, argc, argv, &done);

	if (code || done)
		return code;
	args = json_pack("{s:s,s:s}", "name", argv[optind + 1], "value",
			 argv[optind + 2]);
	if (!args)
		return mount_say(cmd.name, EXIT_USAGE,
				 "name or value is not UTF-8");
	code = ask(&cmd, "settune", args, argv[optind], &result);
	json_decref(result);
	return code;
}

/* ---- what has no options and no answer ---- */

static int demand(const char *verb, const char *usage, int timeout_ms, int argc,
		  char **argv)
{
	struct command cmd = {
		.name = verb,
		.usage = usage,
		.args_min = 1,
		.args_max = 1,
	};
	const struct mount_question q = {
		.command = verb,
		.verb = verb,
		.timeout_ms = timeout_ms,
	};
	json_t *result = NULL;
	bool done;
	int code = parse(&cmd, argc, argv, &done);

	if (code || done)
		return code;
	code = mount_ask(&q, argv[optind], &result);
	json_decref(result);
	return code;
}

/* Other nodes are waited for, here and in the next one. */
int freeze_main(int argc, char **argv)
{
	return demand("freeze",
		      "usage: ugfs freeze DIR|DEVICE|LOCKTABLE\n"
		      "\n"
		      "Freeze a volume on all nodes that have it mounted: what "
		      "has been changed\n"
		      "is written, and further changes wait for \"ugfs "
		      "unfreeze\". Meanwhile\n"
		      "the device can be copied.\n"
		      "\n"
		      "  -h, --help  this text\n",
		      -1, argc, argv);
}

int unfreeze_main(int argc, char **argv)
{
	return demand("unfreeze",
		      "usage: ugfs unfreeze DIR|DEVICE|LOCKTABLE\n"
		      "\n"
		      "Thaw a volume, on the node that has frozen it: changes "
		      "go on.\n"
		      "\n"
		      "  -h, --help  this text\n",
		      -1, argc, argv);
}

int withdraw_main(int argc, char **argv)
{
	return demand("withdraw",
		      "usage: ugfs withdraw DIR|DEVICE|LOCKTABLE\n"
		      "\n"
		      "Stop this mount at once, as after a fault: nothing more "
		      "is written,\n"
		      "every access fails until it is unmounted. Other nodes "
		      "recover its\n"
		      "journal and go on. What was not yet committed is "
		      "lost.\n"
		      "\n"
		      "  -h, --help  this text\n",
		      ANSWER_MS, argc, argv);
}
