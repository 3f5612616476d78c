/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dir_read.c - listing a directory, with and without attributes.
 *
 * The directory's glock is held SH from the first entry to the last, so that
 * its blocks stand still and names can be handed out from where they are;
 * i_lock only while a batch is gathered.
 *
 * No-wait: inodes that have been emitted are counted, which is not taken back,
 * so a listing that meets something it would have to wait for ends there, and
 * is just a short one. If there is none yet it is -EAGAIN, even if "." and ".."
 * have been emitted: after a short listing the kernel would go on without
 * attributes, and look up every name.
 */
#include <errno.h>
#include <string.h>

#include "fs/dir_ahead.h"
#include "fs/dir_list.h"
#include "fs/namei.h"

/* Inodes whose blocks are read together ahead of a listing with attributes. */
#define AHEAD_INODES 1024u

struct listing {
	const struct fs_req *req;
	struct inode *dir;
	struct dir_batch batch;
	fs_emit_fn emit; /* one of the two */
	fs_emit_plus_fn emit_plus;
	void *arg;
	bool emitted;
	bool full; /* no room for more */
};

static struct fs_dirent dirent_of(const struct dir_item *item)
{
	return (struct fs_dirent){
		.ino = be64_get(item->de->de_inum.no_addr),
		.next = item->next,
		.name = gfs2_dirent_name(item->de),
		.len = be16_get(item->de->de_name_len),
		.type = be16_get(item->de->de_type),
	};
}

/* ---- with attributes ---- */

static bool in_memory(struct fs *fs, uint64_t addr)
{
	struct inode *ip = icache_find(fs, addr);
	bool read = ip && (atomic_load(&ip->i_state) & INODE_READ);
	struct buf *b = read ? NULL : buf_peek(fs->fs_cache, addr);

	inode_put(ip);
	buf_put(b);
	return read || b;
}

struct ahead {
	unsigned seen; /* entries looked at: AHEAD_INODES at most */
	unsigned count;
	uint64_t addrs[AHEAD_INODES];
};

static void collect(struct fs *fs, const struct dir_batch *batch,
		    unsigned first, struct ahead *ahead)
{
	unsigned i;

	for (i = first; i < batch->count && ahead->seen < AHEAD_INODES; i++) {
		const struct gfs2_dirent *de = batch->items[i].de;
		uint64_t addr = be64_get(de->de_inum.no_addr);

		ahead->seen++;
		if (rgrps_valid_block(fs, addr) && !in_memory(fs, addr))
			ahead->addrs[ahead->count++] = addr;
	}
}

/* The same for what follows in the directory. */
static void collect_more(struct listing *l, struct ahead *ahead)
{
	uint64_t cookie = l->batch.next;
	struct dir_batch batch;
	int err;

	if (!cookie || dir_batch_init(&batch))
		return;
	while (cookie && ahead->seen < AHEAD_INODES) {
		err = inode_rdlock(l->req, l->dir);
		if (err)
			break;
		err = dir_batch_fill(&batch, l->dir, cookie, false);
		inode_rwunlock(l->dir);
		if (err)
			break;
		collect(l->dir->i_fs, &batch, 0, ahead);
		cookie = batch.next;
	}
	dir_batch_fini(&batch);
}

/*
 * Bring the dinodes of this and the next items into memory, in the order in
 * which they lie on disk, neighbours in one request: files made one after the
 * other are neighbours. Their glocks are not held yet (fs_may_read_unlocked());
 * the buffers are theirs as soon as the inodes are locked, and what the journal
 * has is never read.
 */
static void read_ahead(struct listing *l, unsigned first)
{
	struct ahead ahead;

	ahead.seen = ahead.count = 0;
	collect(l->dir->i_fs, &l->batch, first, &ahead);
	collect_more(l, &ahead);
	dir_ahead_read(l->dir, ahead.addrs, ahead.count);
}

/*
 * The inode of an entry, referenced, described in entry; *ipp NULL if there
 * is nothing to say about it. Only -EAGAIN is an error.
 */
static int attributes(struct listing *l, const struct dir_item *item,
		      struct fs_entry *entry, struct inode **ipp)
{
	const struct gfs2_inum *inum = &item->de->de_inum;
	const char *name = gfs2_dirent_name(item->de);
	size_t len = be16_get(item->de->de_name_len);
	int err;

	*ipp = NULL;
	memset(entry, 0, sizeof(*entry));
	/* Up is against the order of glocks, and the kernel knows both. */
	if (name_is_dot(name, len) || name_is_dotdot(name, len))
		return 0;
	err = inode_get(l->dir->i_fs, be64_get(inum->no_addr),
			be64_get(inum->no_formal_ino), l->req->nowait, ipp);
	if (err) {
		*ipp = NULL;
		return err == -EAGAIN ? err : 0;
	}
	err = name_entry(l->req, *ipp, entry);
	if (!err)
		return 0;
	inode_put(*ipp);
	*ipp = NULL;
	entry->nodeid = 0;
	return err == -EAGAIN ? err : 0;
}

static int emit_with_attributes(struct listing *l, unsigned i)
{
	const struct dir_item *item = &l->batch.items[i];
	struct fs_dirent de = dirent_of(item);
	struct fs_entry entry;
	struct inode *ip;
	int err;

	if (!l->req->nowait && fs_may_read_unlocked(l->dir->i_fs) &&
	    !in_memory(l->dir->i_fs, de.ino))
		read_ahead(l, i);
	err = attributes(l, item, &entry, &ip);
	if (err)
		return err;
	l->full = !l->emit_plus(l->arg, &de, &entry);
	if (ip && !l->full) {
		name_count(ip);
		name_counted(ip);
	} else {
		inode_put(ip);
	}
	l->emitted |= !l->full && (ip || !l->req->nowait);
	return 0;
}

/* ---- the listing ---- */

static int emit_item(struct listing *l, unsigned i)
{
	struct fs_dirent de;

	if (l->emit_plus)
		return emit_with_attributes(l, i);
	de = dirent_of(&l->batch.items[i]);
	l->full = !l->emit(l->arg, &de);
	l->emitted |= !l->full;
	return 0;
}

/* Gather the next batch. An empty directory that was removed lists nothing. */
static int fill(struct listing *l, uint64_t cookie)
{
	int err = inode_rdlock(l->req, l->dir);

	if (err)
		return err;
	l->batch.next = 0;
	if (!inode_is_dir(l->dir))
		err = -ENOTDIR;
	else if (l->dir->i_nlink != 0)
		err = dir_batch_fill(&l->batch, l->dir, cookie, l->req->nowait);
	inode_rwunlock(l->dir);
	return err;
}

static int list_from(struct listing *l, uint64_t cookie)
{
	unsigned i;
	int err;

	do {
		err = fill(l, cookie);
		for (i = 0; i < l->batch.count && !err && !l->full; i++)
			err = emit_item(l, i);
		cookie = l->batch.next;
	} while (!err && !l->full && cookie);
	return err;
}

static int list_dir(struct listing *l, uint64_t cookie)
{
	struct glock_holder gh;
	int err;

	/* Beyond every cookie. */
	if (cookie > INT64_MAX)
		return 0;
	err = dir_batch_init(&l->batch);
	if (err)
		return err;
	err = inode_lock(l->req, l->dir, LM_ST_SHARED, &gh);
	if (!err) {
		err = list_from(l, cookie);
		dir_batch_fini(&l->batch);
		inode_unlock(&gh);
	} else {
		dir_batch_fini(&l->batch);
	}
	/* Damage is not covered up by what could be listed before it. */
	if (l->emitted && err != -EUCLEAN)
		err = 0;
	if (!err)
		inode_touch_atime(l->req, l->dir);
	return fs_fault(l->dir->i_fs, err);
}

int fs_readdir(const struct fs_req *req, struct inode *dir, uint64_t cookie,
	       fs_emit_fn emit, void *arg)
{
	struct listing l = { .req = req, .dir = dir, .emit = emit, .arg = arg };

	return list_dir(&l, cookie);
}

int fs_readdirplus(const struct fs_req *req, struct inode *dir, uint64_t cookie,
		   fs_emit_plus_fn emit, void *arg)
{
	struct listing l = {
		.req = req, .dir = dir, .emit_plus = emit, .arg = arg
	};

	return list_dir(&l, cookie);
}
