/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mountinfo.c - which mounts this process sees.
 *
 * A line has six fields, any number of optional ones, a lone "-", and three
 * more: id, parent, major:minor, root, dir, options, ..., type, source,
 * options. Blanks and newlines in a field stand as \040 and the like.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "daemon/mountinfo.h"

#define FIELDS_BEFORE 6 /* up to the mount options */

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/* Undo \ooo, in place. */
static char *unescape(char *s)
{
	char *from = s, *to = s;

	while (*from) {
		if (from[0] == '\\' && is_octal(from[1]) && is_octal(from[2]) &&
		    is_octal(from[3])) {
			*to++ = (char)((from[1] - '0') << 6 |
				       (from[2] - '0') << 3 | (from[3] - '0'));
			from += 4;
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
	return s;
}

bool mount_entry_parse(char *line, struct mount_entry *entry)
{
	char *before[FIELDS_BEFORE], *word;
	char *rest = line;

	line[strcspn(line, "\n")] = '\0';
	for (int i = 0; i < FIELDS_BEFORE; i++) {
		before[i] = strsep(&rest, " ");
		if (!before[i])
			return false;
	}
	do {
		word = strsep(&rest, " ");
		if (!word)
			return false;
	} while (strcmp(word, "-"));
	entry->type = strsep(&rest, " ");
	entry->source = strsep(&rest, " ");
	if (!entry->type || !entry->source)
		return false;
	if (sscanf(before[2], "%u:%u", &entry->major, &entry->minor) != 2)
		return false;
	entry->root = unescape(before[3]);
	entry->dir = unescape(before[4]);
	unescape(entry->source);
	return true;
}

bool mount_entry_is_ours(const struct mount_entry *entry)
{
	return !strcmp(entry->type, "fuse.ugfs") ||
	       !strcmp(entry->type, "fuseblk.ugfs");
}

int mountinfo_walk(mount_visit_fn visit, void *arg)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t len = 0;
	int ret = 0;

	if (!file)
		return -errno;
	while (!ret && getline(&line, &len, file) > 0) {
		struct mount_entry entry;

		if (mount_entry_parse(line, &entry) && visit(&entry, arg))
			ret = 1;
	}
	free(line);
	fclose(file);
	return ret;
}

void mount_query_free(struct mount_query *query)
{
	free(query->top.root);
	free(query->top.dir);
	free(query->top.type);
	free(query->top.source);
	memset(&query->top, 0, sizeof(query->top));
}

static bool query_visit(const struct mount_entry *entry, void *arg)
{
	struct mount_query *query = arg;

	if (query->dir ? strcmp(entry->dir, query->dir) != 0
		       : entry->major != query->major ||
				 entry->minor != query->minor)
		return false;
	mount_query_free(query);
	query->count++;
	query->top = (struct mount_entry){
		.major = entry->major,
		.minor = entry->minor,
		.root = strdup(entry->root),
		.dir = strdup(entry->dir),
		.type = strdup(entry->type),
		.source = strdup(entry->source),
	};
	return !query->top.root || !query->top.dir || !query->top.type ||
	       !query->top.source;
}

int mountinfo_find(struct mount_query *query)
{
	int ret;

	query->count = 0;
	memset(&query->top, 0, sizeof(query->top));
	ret = mountinfo_walk(query_visit, query);
	if (ret > 0)
		ret = -ENOMEM;
	if (ret < 0)
		mount_query_free(query);
	return ret;
}
