/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * inode_memory.c - struct inode made and unmade, with all that hangs from it.
 */
#include <errno.h>
#include <stdlib.h>

#include "fs/icache_int.h"
#include "fs/pages.h"
#include "fs/rgrp.h"

int inode_memory_new(struct fs *fs, uint64_t addr, uint64_t formal,
		     struct inode **ipp)
{
	struct inode *ip = calloc(1, sizeof(*ip));
	int err;

	if (!ip)
		return -ENOMEM;
	ip->i_fs = fs;
	ip->i_addr = addr;
	ip->i_formal = formal;
	atomic_init(&ip->i_refs, 1);
	buf_owner_init(&ip->i_bufs);
	pthread_rwlock_init(&ip->i_lock, NULL);
	CDS_INIT_LIST_HEAD(&ip->i_lru);
	CDS_INIT_LIST_HEAD(&ip->i_dirty);
	CDS_INIT_LIST_HEAD(&ip->i_window.rw_list);
	pthread_mutex_init(&ip->i_open_lock, NULL);
	glock_holder_init(&ip->i_iopen_gh);
	err = glock_get(fs->fs_glocks, &inode_glock_ops, addr, ip, &ip->i_gl);
	if (!err && !fs->fs_alone)
		err = glock_get(fs->fs_glocks, &iopen_glock_ops, addr, NULL,
				&ip->i_iopen);
	if (err) {
		if (ip->i_gl)
			glock_put(ip->i_gl);
		buf_owner_destroy(&ip->i_bufs);
		pthread_mutex_destroy(&ip->i_open_lock);
		pthread_rwlock_destroy(&ip->i_lock);
		free(ip);
		return err;
	}
	glock_set_object(ip->i_gl, ip);
	glock_set_instantiate(ip->i_gl, true);
	*ipp = ip;
	return 0;
}

void inode_give_up_locks(struct inode *ip)
{
	glock_dq_if_held(&ip->i_iopen_gh);
	if (ip->i_iopen)
		glock_put(ip->i_iopen);
	glock_put(ip->i_gl);
	ip->i_iopen = ip->i_gl = NULL;
}

void inode_memory_free(struct inode *ip)
{
	struct fs *fs = ip->i_fs;

	rgrp_window_drop(ip);
	pages_free(ip);
	buf_invalidate_owner(fs->fs_cache, &ip->i_bufs);
	if (ip->i_gl) {
		glock_set_object(ip->i_gl, NULL);
		glock_put(ip->i_gl);
	}
	buf_owner_destroy(&ip->i_bufs);
	pthread_mutex_destroy(&ip->i_open_lock);
	pthread_rwlock_destroy(&ip->i_lock);
	free(ip);
}

bool inode_buffers_busy(struct inode *ip)
{
	struct buf *b;
	bool busy = false;

	pthread_mutex_lock(&ip->i_bufs.bo_lock);
	cds_list_for_each_entry (b, &ip->i_bufs.bo_list, b_owner_link) {
		if (atomic_load(&b->b_journal) || atomic_load(&b->b_refs)) {
			busy = true;
			break;
		}
	}
	pthread_mutex_unlock(&ip->i_bufs.bo_lock);
	return busy;
}
