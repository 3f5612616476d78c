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
 * the journals clean; their heads in js are the new ones then. The metadata
 * tree has been unloaded and loaded again. -EROFS, -EUCLEAN, -EIO, -ENOMEM with
 * a sentence in why; what was dirty and could not be finished stays dirty.
 */
int recover_journals(struct fs *fs, struct journals *js, const struct why *why);

#endif
