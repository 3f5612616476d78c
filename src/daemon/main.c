/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * main.c - ugfs VERB, and the names that mount(8) and umount(8) call.
 */
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "daemon/exitcode.h"
#include "daemon/verbs.h"
#include "tools/mkfs.h"

struct verb {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *summary;
};

static int help_main(int argc, char **argv);
static int version_main(int argc, char **argv);

static const struct verb verbs[] = {
	{ "mount", mount_main, "mount a volume" },
	{ "umount", umount_main, "unmount it and wait for the last write" },
	{ "mkfs", mkfs_main, "make a volume" },
	{ "status", status_main, "what a mount is, and what it waits for" },
	{ "lockdump", lockdump_main, "its glocks" },
	{ "plocks", plocks_main, "locks of programs in a clustered one" },
	{ "gettune", gettune_main, "print its tunables" },
	{ "settune", settune_main, "change one" },
	{ "freeze", freeze_main, "keep a volume as it is, on all nodes" },
	{ "unfreeze", unfreeze_main, "let changes go on" },
	{ "withdraw", withdraw_main, "stop a mount at once" },
	{ "dlm", dlm_main, "lockspaces, and locks by hand" },
	{ "help", help_main, "this text, or that of a verb" },
	{ "version", version_main, "print the version" },
};

static const struct verb helpers[] = {
	{ "mount.ugfs", mount_helper_main, NULL },
	{ "mount.fuse.ugfs", mount_helper_main, NULL },
	{ "mount.fuseblk.ugfs", mount_helper_main, NULL },
	{ "umount.ugfs", umount_helper_main, NULL },
	{ "umount.fuse.ugfs", umount_helper_main, NULL },
	{ "umount.fuseblk.ugfs", umount_helper_main, NULL },
	{ "mkfs.ugfs", mkfs_main, NULL },
};

static const struct verb *find(const struct verb *table, size_t count,
			       const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(table[i].name, name))
			return &table[i];
	return NULL;
}

static void print_help(FILE *out)
{
	fputs("usage: ugfs VERB [ARGUMENTS]\n"
	      "\n"
	      "GFS2 volumes in user space.\n"
	      "\n",
	      out);
	for (size_t i = 0; i < UG_ARRAY_SIZE(verbs); i++)
		fprintf(out, "  %-10s%s\n", verbs[i].name, verbs[i].summary);
	fputs("\nugfs VERB --help tells more. Manual: ugfs(8).\n", out);
}

static int unknown_verb(const char *name)
{
	fprintf(stderr, "ugfs: unknown verb \"%s\"\n\n", name);
	print_help(stderr);
	return EXIT_USAGE;
}

static int help_main(int argc, char **argv)
{
	static char name[32], help[] = "--help";
	char *args[] = { name, help, NULL };
	const struct verb *verb;

	if (argc < 2 || !strcmp(argv[1], "help") ||
	    !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		print_help(stdout);
		return EXIT_OK;
	}
	verb = find(verbs, UG_ARRAY_SIZE(verbs), argv[1]);
	if (!verb)
		return unknown_verb(argv[1]);
	snprintf(name, sizeof(name), "%s", verb->name);
	return verb->main(2, args);
}

static int version_main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "--help") == 0)
		puts("usage: ugfs version\n\nPrint the version.");
	else
		puts("ugfs " UGFS_VERSION);
	return EXIT_OK;
}

int main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/');
	const struct verb *verb;

	verb = find(helpers, UG_ARRAY_SIZE(helpers),
		    slash ? slash + 1 : argv[0]);
	if (verb)
		return verb->main(argc, argv);
	if (argc < 2) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		argv[1] = "help";
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))
		argv[1] = "version";
	verb = find(verbs, UG_ARRAY_SIZE(verbs), argv[1]);
	if (!verb)
		return unknown_verb(argv[1]);
	return verb->main(argc - 1, argv + 1);
}
