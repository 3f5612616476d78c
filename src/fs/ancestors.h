/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ancestors.h - the directories above a directory.
 *
 * For renames: valid as long as the caller holds the RENAME glock, since only
 * a holder of it changes which directory lies in which. Ownership: the caller
 * releases the list.
 */
#ifndef UG_FS_ANCESTORS_H
#define UG_FS_ANCESTORS_H

#include "fs/inode.h"

/* Deepest tree in which renames between directories work. */
#define ANCESTORS_MAX (1u << 20)

/* Addresses of dinodes, from the parent up to the root. */
struct ancestors {
	uint64_t *an_addr;
	uint32_t an_count;
	uint32_t an_cap;
};

/*
 * Follow ".." from dir up to the root, taking one glock SH at a time: the
 * caller holds no inode's glock. list is zeroed. -ENOENT a directory on the way
 * has been removed; -ELOOP more than ANCESTORS_MAX of them; -ENOTDIR;
 * -EAGAIN with nowait; -EUCLEAN; -EIO; -ENOMEM. To be released in every case.
 */
int ancestors_find(const struct fs_req *req, struct inode *dir,
		   struct ancestors *list);
void ancestors_release(struct ancestors *list);

bool ancestors_have(const struct ancestors *list, uint64_t addr);

#endif
