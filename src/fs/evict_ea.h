/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * evict_ea.h - freeing the extended attributes of an unlinked inode.
 */
#ifndef UG_FS_EVICT_EA_H
#define UG_FS_EVICT_EA_H

#include "fs/inode.h"

/*
 * Free everything below the block that i_eattr names: values in blocks of
 * their own, then the attribute blocks of an indirect block. That block itself
 * stays, with nothing in it that leads on. Glock EX held, and nothing else. In
 * transactions of its own, after each of which the inode is consistent. -EIO,
 * -EUCLEAN, -ENOMEM.
 */
int evict_ea_contents(struct inode *ip);

/*
 * The same for the value of one record, whose block has been checked: free its
 * ED blocks. The record becomes an unused one with the first of them.
 */
int evict_ea_value(struct inode *ip, struct buf *b, uint32_t off);

#endif
