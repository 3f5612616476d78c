/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * inode.h - an inode in memory.
 *
 * Life: see "Life of an inode" in ARCHITECTURE.md. i_refs counts everything
 * that keeps it: one per kernel lookup, one per open handle, one per transient
 * user (fs_inode_get, inode_get) and one while it is on the dirty list.
 *
 * Locks: the glock says what this node may do and is the lock that requests
 * hold for their whole length (SH to look, EX to change). i_lock guards
 * the fields and the metadata blocks against write-back, which holds no
 * glock holder but relies on the cached EX: every reader of a field marked
 * [i_lock] holds it for reading, every change holds it for writing, inside the
 * transaction that logs the change.
 */
#ifndef UG_FS_INODE_H
#define UG_FS_INODE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <urcu/list.h>

#include "buf/buf.h"
#include "fs/fs.h"
#include "fs/super.h"
#include "glock/glock.h"
#include "journal/journal.h"

struct pages;

/* i_state bits, atomic. */
#define INODE_DIRTY_TIMES 0x01u	 /* times are newer than the buffer */
#define INODE_DIRTY_LISTED 0x02u /* on the dirty list */
#define INODE_FREEING 0x04u	 /* being evicted, or gone: -ESTALE */
#define INODE_BAD 0x08u		 /* could not be read: -EIO */
#define INODE_LRU 0x10u		 /* on the list of unreferenced inodes */
#define INODE_EVICT_QUEUED 0x20u
#define INODE_READ 0x40u     /* the core fields are those of a dinode */
#define INODE_UNLINKED 0x80u /* no links are left: there will never be any */
/* With other nodes: its dinode is free, or somebody else's by now: -ESTALE. */
#define INODE_GONE 0x100u
/*
 * The kernel has known another inode by this address: it may still have that
 * one when it is told of this one.
 */
#define INODE_REBORN 0x200u
/* Its attributes have been looked through: no security.capability. */
#define INODE_NO_CAPABILITY 0x400u

/* Soft reservation of an inode: others allocate elsewhere if they can. */
struct rgrp_window {
	struct cds_list_head rw_list; /* of the rgrp; rg_lock */
	uint64_t rw_start;	      /* 0: none */
	uint32_t rw_len;
};

struct inode {
	struct fs *i_fs;
	uint64_t i_addr;
	uint64_t i_formal; /* no_formal_ino */
	struct glock *i_gl;
	struct inode *i_hash_next; /* icache.c's, under the shard lock */
	atomic_uint_fast64_t i_refs;
	atomic_uint_fast64_t i_lookups; /* the kernel's, if not alone */
	atomic_uint i_state;		/* INODE_* */
	atomic_uint i_opens;		/* open handles */
	atomic_uint i_writers;		/* of these, handles that can write */

	pthread_rwlock_t i_lock;
	/* [i_lock] the core of the dinode */
	uint32_t i_mode;
	uint32_t i_uid;
	uint32_t i_gid;
	uint32_t i_nlink;
	uint64_t i_size;     /* as the user sees it */
	uint64_t i_disksize; /* as the next logged dinode will say */
	uint64_t i_blocks;   /* fs blocks, as the next logged dinode will say */
	uint64_t i_delayed;  /* blocks promised to dirty pages, not yet in
				i_blocks */
	struct fs_time i_atime, i_mtime, i_ctime;
	uint32_t i_rdev_major, i_rdev_minor;
	uint64_t i_goal; /* last block allocated for it */
	uint64_t i_generation;
	uint32_t i_flags; /* GFS2_DIF_* */
	uint32_t i_entries;
	uint64_t i_eattr;
	uint16_t i_height;
	uint16_t i_depth;
	struct rgrp_window i_window; /* rgrp.c's */

	/* Sequence of the last transaction that changed ... */
	atomic_uint_fast64_t i_seq; /* ... anything of the inode's metadata */
	atomic_uint_fast64_t i_seq_data; /* ... what fdatasync needs */

	/* Blocks in the last attributes given out; 0: none since the check. */
	atomic_uint_fast64_t i_shown_blocks;

	_Atomic(struct pages *) i_pages; /* pages.h; NULL until first use */
	atomic_int i_wb_error; /* lost write, to be reported by fsync */

	struct buf_owner i_bufs; /* its metadata blocks */

	pthread_mutex_t i_open_lock;	/* inode_opened(), inode_closed() */
	struct glock *i_iopen;		/* NULL: no other nodes */
	struct glock_holder i_iopen_gh; /* SH, while there are handles */

	/* icache_lists.c's, under the lock of the lists */
	struct cds_list_head i_lru;
	struct cds_list_head i_dirty;
	uint64_t i_dirtied_ns; /* CLOCK_MONOTONIC, when put on the dirty list */
};

static inline bool inode_is_dir(const struct inode *ip)
{
	return S_ISDIR(ip->i_mode);
}
static inline bool inode_is_reg(const struct inode *ip)
{
	return S_ISREG(ip->i_mode);
}
static inline bool inode_is_stuffed(const struct inode *ip)
{
	return ip->i_height == 0;
}
static inline bool inode_is_jdata(const struct inode *ip)
{
	return ip->i_flags & GFS2_DIF_JDATA;
}

/* ---- getting inodes (icache.c, icache_lists.c) ---- */

int icache_create(struct fs *fs, uint64_t unreferenced_max);
/* Every inode must be unreferenced and clean. */
void icache_destroy(struct fs *fs);

/*
 * The inode with this dinode address, made if it is not in memory, referenced.
 * Nothing is read: the first holder of its glock does that, and finds -EUCLEAN
 * if the block is no dinode. formal 0: not known. -ESTALE if the inode in
 * memory has another formal number or is being freed; -EAGAIN with nowait if
 * it is just being freed; -ENOMEM.
 *
 * With other nodes the number comes from a directory that is locked: it is the
 * truth. What is in memory under another one has been freed by another node,
 * and becomes the inode that is there now; one that is being freed or leaving
 * memory is waited for.
 */
int inode_get(struct fs *fs, uint64_t addr, uint64_t formal, bool nowait,
	      struct inode **ipp);

/* Only if it is in memory; NULL else. */
struct inode *icache_find(struct fs *fs, uint64_t addr);

static inline bool inode_is_looked_up(const struct inode *ip)
{
	return atomic_load(&ip->i_lookups);
}

void inode_ref(struct inode *ip, uint64_t n);
void inode_unref(struct inode *ip, uint64_t n); /* inode_put: n = 1 */

/*
 * A new inode whose dinode block has just been allocated in this transaction:
 * in memory, referenced, glock EX held by gh, core fields zero but for those
 * of the address. No old inode of that address is in memory. -ENOMEM. Called
 * before trans_begin with the address reserved. -EAGAIN: try again later, or,
 * with nowait, from a thread that may wait.
 */
int inode_new(struct fs *fs, uint64_t addr, bool nowait,
	      struct glock_holder *gh, struct inode **ipp);
/* Give up an inode_new whose dinode was never written; releases gh and ip. */
void inode_new_abort(struct inode *ip, struct glock_holder *gh);

/*
 * Other nodes have released it, and another inode without a name is in its
 * block: what its first holder reads is that one. Nothing happens if it leaves
 * memory anyway.
 */
void icache_forget_old(struct inode *ip);

/* Have it released if it has no links: another node may have taken the last. */
void icache_check_links(struct inode *ip);

/* ---- handles (file_open.c) ---- */

/* Of every inode's iopen glock; there is no object. */
extern const struct glock_ops iopen_glock_ops;

/*
 * One more handle; its inode glock is held. From now on no node releases the
 * contents. -EAGAIN (req->nowait), -EIO.
 */
int inode_opened(const struct fs_req *req, struct inode *ip);
void inode_closed(struct inode *ip);

/* ---- locking (inode.c) ---- */

/* Of every inode's glock; the object is the inode. */
extern const struct glock_ops inode_glock_ops;

/*
 * Take the inode glock and make sure that the inode is alive and read.
 * state: LM_ST_SHARED or LM_ST_EXCLUSIVE. -EAGAIN (req->nowait), -ESTALE,
 * -EIO.
 */
int inode_lock(const struct fs_req *req, struct inode *ip, enum lm_state state,
	       struct glock_holder *gh);
/*
 * EX, together with other holders of this kind: nobody reads, and nobody
 * changes size or mapping. 1, with nothing locked: something must be put in
 * order first, which inode_lock() does. Errors as of inode_lock().
 */
int inode_lock_together(const struct fs_req *req, struct inode *ip,
			struct glock_holder *gh);
void inode_unlock(struct glock_holder *gh);

/* i_lock with respect to req->nowait: 0 or -EAGAIN. */
int inode_rdlock(const struct fs_req *req, struct inode *ip);
int inode_wrlock(const struct fs_req *req, struct inode *ip);
void inode_rwunlock(struct inode *ip);

/* It has been released, EX held: other nodes that remember it will see. */
void inode_note_deleted(struct inode *ip);

/* The inode's dinode buffer, checked. -EAGAIN with nowait. */
int inode_dibuf(struct inode *ip, bool nowait, struct buf **bp);

/* A metadata block of the inode, of the given type. -EAGAIN with nowait. */
int inode_meta(struct inode *ip, uint64_t blkno, enum gfs2_metatype type,
	       bool nowait, struct buf **bp);

/* ---- changing (inode.c) ---- */

/*
 * Write the core fields into the dinode buffer as part of the transaction.
 * i_lock held for writing. Clears INODE_DIRTY_TIMES. The transaction has
 * counted one block for it. Further changes of the block's payload by the same
 * transaction may follow.
 */
void inode_log(struct trans *tr, struct inode *ip, struct buf *dibuf);

/*
 * After trans_end: remember what an fsync has to wait for. i_lock need not be
 * held. data: the change matters to fdatasync.
 */
void inode_logged(struct inode *ip, uint64_t sequence, bool data);

/*
 * mtime and ctime (or atime) have changed in memory only; write-back will log
 * them. i_lock held for writing.
 */
void inode_dirty_times(struct inode *ip);

/* Put it on the dirty list (keeps a reference) and wake write-back if due. */
void inode_mark_dirty(struct inode *ip);

/*
 * Log the times if INODE_DIRTY_TIMES. In its own transaction; holds no locks on
 * entry. nowait as usual.
 */
int inode_write_times(struct inode *ip, bool nowait);

/* Take the oldest inode from the dirty list, with its reference; NULL. */
struct inode *icache_next_dirty(struct fs *fs, uint64_t dirtied_before_ns);
bool icache_has_dirty(struct fs *fs);

/* Read access changes atime according to the options. No lock held. */
void inode_touch_atime(const struct fs_req *req, struct inode *ip);

/* The glock is held, and i_lock (reading). */
void inode_fill_attr(struct inode *ip, struct fs_attr *out);
void inode_fill_entry(struct inode *ip, struct fs_entry *out);

/*
 * Write-back has entered blocks, pointer blocks among them perhaps: if the
 * front end was told another number, it hears of it. No lock held.
 */
void inode_check_shown(struct inode *ip);
uint64_t inode_nodeid(const struct inode *ip);

#endif
