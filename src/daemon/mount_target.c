/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mount_target.c - see mount_target.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/mount_target.h"
#include "daemon/mountinfo.h"

struct search {
	struct mount_target *target;
	const char *path;
	bool by_source;
};

static bool visit(const struct mount_entry *entry, void *arg)
{
	struct search *search = arg;
	struct mount_target *target = search->target;
	const char *key = search->by_source ? entry->source : entry->dir;

	if (strcmp(key, search->path) ||
	    (search->by_source && !mount_entry_is_ours(entry)))
		return false;
	if (!target->found || target->major != entry->major ||
	    target->minor != entry->minor)
		target->count++;
	target->found = true;
	target->ours = mount_entry_is_ours(entry);
	target->major = entry->major;
	target->minor = entry->minor;
	snprintf(target->dir, sizeof(target->dir), "%s", entry->dir);
	return false; /* the last one is on top */
}

/*
 * Without the slashes at the end, which would be looked up in the mount. A dead
 * mount cannot be resolved further, but is a full path.
 */
static void full_path(const char *name, char path[PATH_MAX])
{
	char bare[PATH_MAX];
	size_t len = strlen(name);

	while (len > 1 && name[len - 1] == '/')
		len--;
	snprintf(bare, sizeof(bare), "%.*s", (int)len, name);
	if (!realpath(bare, path))
		snprintf(path, PATH_MAX, "%s", bare);
}

int mount_target_find(const char *name, struct mount_target *out)
{
	char path[PATH_MAX];
	struct search search = { .target = out, .path = path };
	int err;

	*out = (struct mount_target){ .name = name };
	full_path(name, path);
	err = mountinfo_walk(visit, &search);
	if (!err && !out->found) {
		search.by_source = true;
		err = mountinfo_walk(visit, &search);
	}
	return err;
}
