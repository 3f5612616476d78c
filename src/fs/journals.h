/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * journals.h - the journals of a volume as a mount finds them.
 */
#ifndef UG_FS_JOURNALS_H
#define UG_FS_JOURNALS_H

#include "fs/super.h"
#include "fs/why.h"
#include "journal/logmap.h"
#include "journal/replay.h"

struct journal_info {
	uint64_t addr;	      /* dinode of the journal */
	uint64_t statfs_addr; /* of its statfs_change file */
	struct logmap map;
	struct replay_head head;
	char who[96]; /* for the log */
};

struct journals {
	unsigned count;
	struct journal_info *infos;
};

/*
 * Find journal0, journal1, ... in jindex and map their blocks. Writes nothing.
 * -EUCLEAN, -EIO, -ENOMEM with a sentence in why.
 */
int journals_open(struct fs *fs, struct journals *js, const struct why *why);

/* Find the heads, of journals that nobody writes. As journals_open(). */
int journals_find_heads(struct fs *fs, struct journals *js,
			const struct why *why);

bool journals_any_dirty(const struct journals *js);

/* Fill in statfs_addr of each. */
int journals_find_statfs(struct fs *fs, struct journals *js,
			 const struct why *why);

void journals_fini(struct journals *js);

#endif
