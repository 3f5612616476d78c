/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * inode.c - reading, locking and logging the core of an inode.
 *
 * The dinode block is read when the glock is first granted, and again when it
 * was given away in between (instantiate). From then on the fields in memory
 * are the truth, and inode_log() carries them into the buffer whenever a
 * transaction changes the inode. Times alone may be newer in memory
 * (INODE_DIRTY_TIMES): write-back logs them.
 *
 * A crash loses at most times that had not been logged, never less than what
 * the last committed transaction said.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "fs/inode.h"
#include "fs/pages.h"
#include "fs/park.h"
#include "fs/rgrp.h"

static void core_from_dinode(struct inode *ip,
			     const struct gfs2_dinode_info *di)
{
	ip->i_formal = di->formal;
	ip->i_mode = di->mode;
	ip->i_uid = di->uid;
	ip->i_gid = di->gid;
	ip->i_nlink = di->nlink;
	ip->i_size = di->size;
	ip->i_disksize = di->size;
	ip->i_blocks = di->blocks;
	ip->i_atime = (struct fs_time){ di->atime.sec, di->atime.nsec };
	ip->i_mtime = (struct fs_time){ di->mtime.sec, di->mtime.nsec };
	ip->i_ctime = (struct fs_time){ di->ctime.sec, di->ctime.nsec };
	ip->i_rdev_major = di->rdev_major;
	ip->i_rdev_minor = di->rdev_minor;
	ip->i_goal = di->goal_meta;
	ip->i_generation = di->generation;
	ip->i_flags = di->flags;
	ip->i_entries = di->entries;
	ip->i_eattr = di->eattr;
	ip->i_height = di->height;
	ip->i_depth = di->depth;
}

static void dinode_from_core(const struct inode *ip,
			     struct gfs2_dinode_info *di)
{
	bool linear = inode_is_dir(ip) && !(ip->i_flags & GFS2_DIF_EXHASH);

	*di = (struct gfs2_dinode_info){
		.formal = ip->i_formal,
		.addr = ip->i_addr,
		.mode = ip->i_mode,
		.uid = ip->i_uid,
		.gid = ip->i_gid,
		.nlink = ip->i_nlink,
		.size = inode_is_reg(ip) ? ip->i_disksize : ip->i_size,
		.blocks = ip->i_blocks,
		.atime = { ip->i_atime.sec, ip->i_atime.nsec },
		.mtime = { ip->i_mtime.sec, ip->i_mtime.nsec },
		.ctime = { ip->i_ctime.sec, ip->i_ctime.nsec },
		.rdev_major = ip->i_rdev_major,
		.rdev_minor = ip->i_rdev_minor,
		.goal_meta = ip->i_goal,
		.goal_data = ip->i_goal,
		.generation = ip->i_generation,
		.flags = ip->i_flags,
		.payload_format = linear ? GFS2_FORMAT_DE : 0,
		.height = ip->i_height,
		.depth = ip->i_depth,
		.entries = ip->i_entries,
		.eattr = ip->i_eattr,
	};
}

/* ---- glock operations ---- */

static int dinode_read(struct inode *ip, bool nowait, struct buf **bp)
{
	struct bufcache *cache = ip->i_fs->fs_cache;
	int err = buf_read(cache, &ip->i_bufs, ip->i_addr, BUF_NOWAIT, bp);

	if (err != -EAGAIN || nowait)
		return err;
	dinode_ahead(ip->i_fs, ip->i_addr);
	return buf_read(cache, &ip->i_bufs, ip->i_addr, 0, bp);
}

/*
 * What the block holds is not the inode that we knew, or one without links. In
 * a cluster other nodes free inodes that we remember: -ESTALE then. 0 if it is
 * ours according to the bitmap.
 */
static int check_not_freed(struct inode *ip, bool nowait)
{
	struct fs *fs = ip->i_fs;
	enum gfs2_blkst state;
	int err;

	if (fs->fs_alone || !fs->fs_rgrps)
		return 0;
	err = rgrp_block_state(fs, ip->i_addr, nowait, &state);
	if (err)
		return err == -ENOENT ? 0 : err;
	return state == GFS2_BLKST_DINODE || state == GFS2_BLKST_UNLINKED
		       ? 0
		       : -ESTALE;
}

/* Another inode has the block by now. */
static int wrong_formal(struct inode *ip, uint64_t found, uint64_t expected)
{
	if (!ip->i_fs->fs_alone)
		return -ESTALE;
	return fs_bad_block(ip->i_fs, ip->i_addr,
			    "dinode has formal number %" PRIu64
			    ", expected %" PRIu64,
			    found, expected);
}

/*
 * What has been freed may look alive on disk: a dinode whose last change and
 * release are in the same flush of the log is not written in place. So who
 * frees it leaves its number in the value block (docs/spec/glocks.md 1.4).
 */
struct inode_lvb {
	be32 ri_magic;
	be32 pad;
	be64 ri_generation_deleted;
};

void inode_note_deleted(struct inode *ip)
{
	struct inode_lvb *lvb = glock_lvb(ip->i_gl);

	if (!lvb)
		return;
	lvb->ri_magic = be32_of(GFS2_MAGIC);
	lvb->ri_generation_deleted = be64_of(ip->i_formal);
}

static bool was_deleted(struct glock *gl, uint64_t formal)
{
	const struct inode_lvb *lvb = glock_lvb(gl);

	return lvb && be32_get(lvb->ri_magic) == GFS2_MAGIC &&
	       be64_get(lvb->ri_generation_deleted) >= formal;
}

static int inode_instantiate(struct glock *gl, bool nowait)
{
	struct inode *ip = glock_object(gl);
	struct gfs2_dinode_info di;
	uint64_t expected = ip->i_formal;
	struct buf *b;
	char why[160];
	int err;

	err = dinode_read(ip, nowait, &b);
	if (err)
		return err;
	err = gfs2_dinode_decode(&ip->i_fs->fs_geom, b->b_data, ip->i_addr, &di,
				 why, sizeof(why));
	if (err) {
		err = check_not_freed(ip, nowait);
		if (!err)
			err = fs_bad_block(ip->i_fs, ip->i_addr, "%s", why);
	} else if (expected && di.formal != expected) {
		err = wrong_formal(ip, di.formal, expected);
	} else if (was_deleted(gl, di.formal)) {
		err = -ESTALE;
	} else if (!di.nlink) {
		err = check_not_freed(ip, nowait);
	}
	if (!err) {
		pthread_rwlock_wrlock(&ip->i_lock);
		core_from_dinode(ip, &di);
		pthread_rwlock_unlock(&ip->i_lock);
		atomic_fetch_and(&ip->i_state, ~INODE_NO_CAPABILITY);
		atomic_fetch_or(&ip->i_state,
				INODE_READ | (di.nlink ? 0 : INODE_UNLINKED));
	}
	buf_put(b);
	return err;
}

/* Before the lock is lowered: data, then the log, then metadata in place. */
static int inode_gl_sync(struct glock *gl)
{
	struct inode *ip = glock_object(gl);
	int err;

	if (!ip || !ip->i_fs->fs_journal)
		return 0;
	/* Of what has been freed, nothing may be logged any more. */
	err = atomic_load(&ip->i_state) & INODE_GONE ? 0 : file_writeback(ip);
	return err ? err
		   : journal_writeback_owner(ip->i_fs->fs_journal, &ip->i_bufs);
}

static void inode_gl_invalidate(struct glock *gl, enum lm_state target)
{
	struct inode *ip = glock_object(gl);

	if (!ip)
		return;
	file_drop_pages(ip);
	if (target != LM_ST_DEFERRED)
		buf_invalidate_owner(ip->i_fs->fs_cache, &ip->i_bufs);
}

static void inode_gl_recall(struct glock *gl, enum lm_state target)
{
	struct inode *ip = glock_object(gl);
	const struct fs_host_ops *host = ip ? ip->i_fs->fs_host : NULL;

	/* What the kernel does not know it keeps nothing of. */
	if (ip && host->recall &&
	    (inode_is_looked_up(ip) || ip == ip->i_fs->fs_root))
		host->recall(ip->i_fs->fs_host_arg, inode_nodeid(ip));
}

const struct glock_ops inode_glock_ops = {
	.type = LM_TYPE_INODE,
	.value_block = true,
	.hold = true,
	.recall = inode_gl_recall,
	.sync = inode_gl_sync,
	.invalidate = inode_gl_invalidate,
	.instantiate = inode_instantiate,
};

/* ---- locking ---- */

static int lock(const struct fs_req *req, struct inode *ip, enum lm_state state,
		unsigned flags, struct glock_holder *gh)
{
	if (req->nowait)
		return glock_nq(ip->i_gl, state, flags | GL_NOWAIT, gh);
	if (req->park)
		return park_lock(req->park, ip, state, flags, gh);
	return glock_nq(ip->i_gl, state, flags, gh);
}

/* The glock, of an inode that is alive. */
static int lock_alive(const struct fs_req *req, struct inode *ip,
		      enum lm_state state, unsigned flags,
		      struct glock_holder *gh)
{
	unsigned st;
	int err;

	err = lock(req, ip, state, flags, gh);
	if (err) {
		glock_holder_init(gh);
		return err;
	}
	st = atomic_load_explicit(&ip->i_state, memory_order_relaxed);
	if (ug_likely(!(st & (INODE_FREEING | INODE_BAD | INODE_GONE))))
		return 0;
	inode_unlock(gh);
	return st & INODE_BAD ? -EIO : -ESTALE;
}

int inode_lock(const struct fs_req *req, struct inode *ip, enum lm_state state,
	       struct glock_holder *gh)
{
	int err = lock_alive(req, ip, state, 0, gh);

	if (err || ug_likely(!(ip->i_flags & GFS2_DIF_TRUNC_IN_PROG)) ||
	    state != LM_ST_EXCLUSIVE || ip->i_fs->fs_rdonly)
		return err;
	/* Whoever sets the flag holds EX until it is off again: a crash has
	 * left it. */
	err = req->nowait ? -EAGAIN : file_finish_truncate(ip);
	if (err)
		inode_unlock(gh);
	return err;
}

int inode_lock_together(const struct fs_req *req, struct inode *ip,
			struct glock_holder *gh)
{
	int err = lock_alive(req, ip, LM_ST_EXCLUSIVE, GL_NODE_SCOPE, gh);

	if (err || ug_likely(!(ip->i_flags & GFS2_DIF_TRUNC_IN_PROG)))
		return err;
	inode_unlock(gh);
	return 1;
}

void inode_unlock(struct glock_holder *gh)
{
	glock_dq(gh);
	glock_holder_init(gh);
}

int inode_rdlock(const struct fs_req *req, struct inode *ip)
{
	if (pthread_rwlock_tryrdlock(&ip->i_lock) == 0)
		return 0;
	if (req->nowait)
		return -EAGAIN;
	pthread_rwlock_rdlock(&ip->i_lock);
	return 0;
}

int inode_wrlock(const struct fs_req *req, struct inode *ip)
{
	if (pthread_rwlock_trywrlock(&ip->i_lock) == 0)
		return 0;
	if (req->nowait)
		return -EAGAIN;
	pthread_rwlock_wrlock(&ip->i_lock);
	return 0;
}

void inode_rwunlock(struct inode *ip)
{
	pthread_rwlock_unlock(&ip->i_lock);
}

/* ---- metadata blocks ---- */

int inode_meta(struct inode *ip, uint64_t blkno, enum gfs2_metatype type,
	       bool nowait, struct buf **bp)
{
	struct fs *fs = ip->i_fs;
	const struct gfs2_meta_header *mh;
	struct buf *b;
	int err;

	err = buf_read(fs->fs_cache, &ip->i_bufs, blkno,
		       nowait ? BUF_NOWAIT : 0, &b);
	if (ug_unlikely(err))
		return err;
	if (ug_unlikely(gfs2_check_meta(b->b_data, type))) {
		mh = b->b_data;
		err = fs_bad_block(fs, blkno,
				   "inode %" PRIu64
				   " needs a block of type %u here, found "
				   "magic %08x type %u",
				   ip->i_addr, (unsigned)type,
				   be32_get(mh->mh_magic),
				   be32_get(mh->mh_type));
		buf_put(b);
		return err;
	}
	*bp = b;
	return 0;
}

int inode_dibuf(struct inode *ip, bool nowait, struct buf **bp)
{
	return inode_meta(ip, ip->i_addr, GFS2_METATYPE_DI, nowait, bp);
}

/* ---- changing ---- */

void inode_log(struct trans *tr, struct inode *ip, struct buf *dibuf)
{
	struct gfs2_dinode_info di;

	trans_add_meta(tr, dibuf);
	glock_set_dirty(ip->i_gl);
	dinode_from_core(ip, &di);
	gfs2_dinode_encode(&di, dibuf->b_data);
	atomic_fetch_and(&ip->i_state, ~INODE_DIRTY_TIMES);
	if (!ip->i_nlink)
		atomic_fetch_or(&ip->i_state, INODE_UNLINKED);
}

void inode_logged(struct inode *ip, uint64_t sequence, bool data)
{
	uint_fast64_t old = atomic_load(&ip->i_seq);

	while (old < sequence &&
	       !atomic_compare_exchange_weak(&ip->i_seq, &old, sequence))
		;
	if (!data)
		return;
	old = atomic_load(&ip->i_seq_data);
	while (old < sequence &&
	       !atomic_compare_exchange_weak(&ip->i_seq_data, &old, sequence))
		;
}

void inode_dirty_times(struct inode *ip)
{
	if (atomic_fetch_or(&ip->i_state, INODE_DIRTY_TIMES) &
	    INODE_DIRTY_TIMES)
		return;
	glock_set_dirty(ip->i_gl);
	inode_mark_dirty(ip);
}

int inode_write_times(struct inode *ip, bool nowait)
{
	struct fs *fs = ip->i_fs;
	struct trans tr;
	struct buf *dibuf;
	uint64_t seq;
	int err;

	if (!(atomic_load(&ip->i_state) & INODE_DIRTY_TIMES))
		return 0;
	err = inode_dibuf(ip, nowait, &dibuf);
	if (err)
		return err;
	err = trans_begin(fs->fs_journal, &tr, 1, 0, nowait ? TRANS_NOWAIT : 0);
	if (!err) {
		pthread_rwlock_wrlock(&ip->i_lock);
		inode_log(&tr, ip, dibuf);
		pthread_rwlock_unlock(&ip->i_lock);
		seq = trans_end(&tr);
		inode_logged(ip, seq, false);
	}
	buf_put(dibuf);
	return err;
}

/* ---- attributes ---- */

static bool time_before(struct fs_time a, struct fs_time b)
{
	return a.sec < b.sec || (a.sec == b.sec && a.nsec < b.nsec);
}

/* relatime: older than a change, or than a day. i_lock held (reading). */
static bool atime_is_due(const struct inode *ip, struct fs_time now)
{
	const struct fs_options *opt = &ip->i_fs->fs_opt;

	if ((ip->i_flags & GFS2_DIF_NOATIME) ||
	    (opt->nodiratime && inode_is_dir(ip)))
		return false;
	if (opt->atime == FS_ATIME_STRICT)
		return time_before(ip->i_atime, now);
	return !time_before(ip->i_mtime, ip->i_atime) ||
	       !time_before(ip->i_ctime, ip->i_atime) ||
	       now.sec - ip->i_atime.sec >= 24 * 60 * 60;
}

static void touch_locked(struct inode *ip)
{
	struct fs_time now = fs_now();
	bool due;

	if (pthread_rwlock_tryrdlock(&ip->i_lock))
		return;
	due = atime_is_due(ip, now);
	pthread_rwlock_unlock(&ip->i_lock);
	if (!due || pthread_rwlock_trywrlock(&ip->i_lock))
		return;
	ip->i_atime = now;
	inode_dirty_times(ip);
	pthread_rwlock_unlock(&ip->i_lock);
}

static void touch(struct inode *ip)
{
	struct fs *fs = ip->i_fs;
	struct glock_holder gh;

	if (fs->fs_alone) {
		touch_locked(ip);
		return;
	}
	if (glock_state(ip->i_gl) != LM_ST_EXCLUSIVE ||
	    glock_nq(ip->i_gl, LM_ST_EXCLUSIVE, GL_NOWAIT, &gh))
		return;
	if (!(atomic_load(&ip->i_state) & (INODE_FREEING | INODE_GONE)))
		touch_locked(ip);
	glock_dq(&gh);
}

/*
 * A time is no reason to wait for a lock: the next reader comes soon enough.
 * Nor to take the lock from other nodes: in a cluster it is noted by the node
 * that has the inode for itself. Nor to keep anybody from a frozen volume.
 */
void inode_touch_atime(const struct fs_req *req, struct inode *ip)
{
	struct fs *fs = ip->i_fs;

	if (fs->fs_opt.atime == FS_ATIME_NOATIME || fs->fs_rdonly ||
	    !fs_change_begin(fs))
		return;
	touch(ip);
	fs_change_end(fs);
}

uint64_t inode_nodeid(const struct inode *ip)
{
	return ip == ip->i_fs->fs_root ? FS_ROOT_NODEID : ip->i_addr;
}

static uint64_t blocks_now(const struct inode *ip)
{
	return ip->i_blocks + ip->i_delayed;
}

void inode_check_shown(struct inode *ip)
{
	const struct fs_host_ops *host = ip->i_fs->fs_host;
	uint64_t now;

	pthread_rwlock_rdlock(&ip->i_lock);
	now = blocks_now(ip);
	pthread_rwlock_unlock(&ip->i_lock);
	if (!host->invalidate || !atomic_load(&ip->i_shown_blocks) ||
	    atomic_exchange(&ip->i_shown_blocks, 0) == now)
		return;
	host->invalidate(ip->i_fs->fs_host_arg, inode_nodeid(ip), false);
}

/* Of one that was another before, the kernel may not see which it is. */
static bool may_keep(const struct inode *ip)
{
	if (ip->i_fs->fs_alone)
		return true;
	return !(atomic_load(&ip->i_state) & INODE_REBORN) &&
	       !glock_is_wanted(ip->i_gl);
}

void inode_fill_attr(struct inode *ip, struct fs_attr *out)
{
	const struct fs *fs = ip->i_fs;

	atomic_store_explicit(&ip->i_shown_blocks, blocks_now(ip),
			      memory_order_relaxed);

	*out = (struct fs_attr){
		.ino = ip->i_addr,
		.size = ip->i_size,
		.blocks_512 = blocks_now(ip) << (fs->fs_geom.bshift - 9),
		.atime = ip->i_atime,
		.mtime = ip->i_mtime,
		.ctime = ip->i_ctime,
		.mode = ip->i_mode,
		.nlink = ip->i_nlink,
		.uid = ip->i_uid,
		.gid = ip->i_gid,
		.rdev_major = ip->i_rdev_major,
		.rdev_minor = ip->i_rdev_minor,
		.blksize = fs->fs_geom.bsize,
		.keep = may_keep(ip),
	};
}

void inode_fill_entry(struct inode *ip, struct fs_entry *out)
{
	out->nodeid = inode_nodeid(ip);
	out->generation = ip->i_formal;
	inode_fill_attr(ip, &out->attr);
}
