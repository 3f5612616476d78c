/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ancestors.c - the directories above a directory.
 *
 * The way up goes against the order of glocks, hence one at a time. Between
 * two of them the tree may change in every way but one: with RENAME held no
 * directory gets another parent, and as a directory with subdirectories cannot
 * be removed, what is above a living one stays above it.
 * Source: docs/spec/glocks-and-recovery.md 4.10 step 3.
 */
#include <errno.h>
#include <stdlib.h>

#include "fs/ancestors.h"
#include "fs/dir.h"

static int append(struct ancestors *list, uint64_t addr)
{
	uint64_t *bigger;
	uint32_t cap;

	if (list->an_count == ANCESTORS_MAX)
		return -ELOOP;
	if (list->an_count == list->an_cap) {
		cap = list->an_cap ? 2 * list->an_cap : 16;
		bigger = realloc(list->an_addr, cap * sizeof(*bigger));
		if (!bigger)
			return -ENOMEM;
		list->an_addr = bigger;
		list->an_cap = cap;
	}
	list->an_addr[list->an_count++] = addr;
	return 0;
}

static int find_parent(const struct fs_req *req, struct inode *dir,
		       struct dir_found *parent)
{
	struct glock_holder gh;
	int err;

	err = inode_lock(req, dir, LM_ST_SHARED, &gh);
	if (err)
		return err;
	err = inode_rdlock(req, dir);
	if (!err) {
		if (!inode_is_dir(dir))
			err = -ENOTDIR;
		else if (dir->i_nlink == 0)
			err = -ENOENT;
		else
			err = dir_search(dir, "..", 2, req->nowait, parent);
		inode_rwunlock(dir);
	}
	inode_unlock(&gh);
	return err;
}

int ancestors_find(const struct fs_req *req, struct inode *dir,
		   struct ancestors *list)
{
	struct dir_found parent;
	struct inode *up;
	int err;

	inode_ref(dir, 1);
	for (;;) {
		err = find_parent(req, dir, &parent);
		/* The root is its own parent. */
		if (err || parent.addr == dir->i_addr)
			break;
		err = append(list, parent.addr);
		if (!err)
			err = inode_get(dir->i_fs, parent.addr, parent.formal,
					req->nowait, &up);
		if (err)
			break;
		inode_put(dir);
		dir = up;
	}
	inode_put(dir);
	return err;
}

void ancestors_release(struct ancestors *list)
{
	free(list->an_addr);
	*list = (struct ancestors){ 0 };
}

bool ancestors_have(const struct ancestors *list, uint64_t addr)
{
	uint32_t i;

	for (i = 0; i < list->an_count; i++)
		if (list->an_addr[i] == addr)
			return true;
	return false;
}
