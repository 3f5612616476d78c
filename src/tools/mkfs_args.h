/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mkfs_args.h - the command line of mkfs. Its options are those of mkfs.gfs2.
 */
#ifndef UG_TOOLS_MKFS_ARGS_H
#define UG_TOOLS_MKFS_ARGS_H

#include <stdio.h>

#include "tools/mkfs_image.h"

enum mkfs_action {
	MKFS_RUN,
	MKFS_HELP,
	MKFS_HELP_EXTENDED,
	MKFS_VERSION,
};

struct mkfs_args {
	enum mkfs_action action;
	const char *device; /* of argv */
	struct mkfs_wishes wishes;
	struct mkfs_identity identity; /* lock fields; uuid if have_uuid */
	bool have_uuid;
	bool debug;
	bool quiet;
	bool override; /* do not ask */
	bool keep;     /* do not discard */
};

/*
 * Returns 0, or -EINVAL with a sentence in why. Everything that needs no
 * device is checked: the plan checks the rest.
 */
int mkfs_args_parse(int argc, char **argv, struct mkfs_args *args, char *why,
		    size_t why_len);

void mkfs_args_help(FILE *out, const char *program);
void mkfs_args_help_extended(FILE *out);

#endif
