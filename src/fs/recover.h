/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * recover.h - replaying the journals that a crash has left dirty.
 */
#ifndef UG_FS_RECOVER_H
#define UG_FS_RECOVER_H

#include "fs/journals.h"
#include "fs/super.h"
#include "fs/why.h"

/*
 * Replay every dirty journal of js, bring the statfs files in order and mark
 * the journals clean; their heads in js are the new ones then. No other node
 * has the volume mounted. The metadata tree is a private one afterwards, to be
 * unloaded. -EROFS, -EUCLEAN, -EIO, -ENOMEM with
 * a sentence in why; what was dirty and could not be finished stays dirty.
 */
int recover_journals(struct fs *fs, struct journals *js, const struct why *why);

/*
 * Find the head of one journal, whose lock is held; if it is dirty, replay it
 * and mark it clean. As fs_recover_journal().
 */
int recover_journal(struct fs *fs, struct journal_info *ji);

/*
 * The mount is complete: what members that have died have left behind may be
 * cleaned up from now on, by the worker.
 */
void recover_mounted(struct fs *fs);

/*
 * From now on fs_recover_journal() leaves it to others; returns when one that
 * runs is over. What follows needs no lock that is not held or waited for.
 */
void recover_end(struct fs *fs);

#endif
