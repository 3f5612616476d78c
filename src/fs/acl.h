/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * acl.h - POSIX access control lists: what a value means.
 *
 * A value is what programs, the kernel and the disk have alike: a version and
 * entries of 8 bytes, little-endian. Pure.
 * Source: POSIX.1e draft 17, 23.1; docs/spec/gfs2-ondisk.md 5.6.
 */
#ifndef UG_FS_ACL_H
#define UG_FS_ACL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A list: its size, entries in order, one of each kind that must be there.
 * -EINVAL if it is none, -E2BIG more than entries_max. What follows wants a
 * value that has passed.
 */
int acl_check(const void *value, size_t size, unsigned entries_max);

/* It has no entries, which is no list at all. Of any value. */
bool acl_is_empty(size_t size);

/* Set the nine bits of *mode as it says; true if it says no more than that. */
bool acl_to_mode(const void *value, size_t size, uint32_t *mode);

/* chmod: the list follows the nine bits. */
void acl_from_mode(void *value, size_t size, uint32_t mode);

/*
 * What a directory's default list gives to a new inode: list and mode limit
 * each other. True if the mode then says it all.
 */
bool acl_inherit(void *value, size_t size, uint32_t *mode);

#endif
