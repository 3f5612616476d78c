/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mountinfo.h - which mounts this process sees.
 *
 * Reads /proc/self/mountinfo, never the mounts themselves: a mount whose
 * process has died answers ENOTCONN, one whose process hangs not at all.
 * Source: proc(5), /proc/pid/mountinfo.
 */
#ifndef UG_DAEMON_MOUNTINFO_H
#define UG_DAEMON_MOUNTINFO_H

#include <stdbool.h>
#include <stddef.h>

/* One mount. The strings belong to the line that was parsed. */
struct mount_entry {
	unsigned major, minor; /* st_dev of the files in it */
	char *root;	       /* what part of the file system: "/" all of it */
	char *dir;	       /* where it is mounted */
	char *type;	       /* with its subtype: "fuseblk.ugfs" */
	char *source;
};

/*
 * Cut a line of mountinfo into its fields, in place, and undo the octal
 * escapes. false: not such a line.
 */
bool mount_entry_parse(char *line, struct mount_entry *entry);

/* fuse.ugfs or fuseblk.ugfs. */
bool mount_entry_is_ours(const struct mount_entry *entry);

/* Called for each mount, in order of mounting; true ends the walk. */
typedef bool (*mount_visit_fn)(const struct mount_entry *entry, void *arg);

/* 0; 1 if visit ended the walk; or the errno of opening the list. */
int mountinfo_walk(mount_visit_fn visit, void *arg);

/* What is wanted of a mount, and what was found. */
struct mount_query {
	const char *dir;	/* match by mount point, or NULL */
	unsigned major, minor;	/* else by device */
	unsigned count;		/* how many matched */
	struct mount_entry top; /* the last one that matched, which hides */
				/* the others; mount_query_free() */
};

/* 0 also if nothing matched; -ENOMEM; or as mountinfo_walk(). */
int mountinfo_find(struct mount_query *query);
void mount_query_free(struct mount_query *query);

#endif
