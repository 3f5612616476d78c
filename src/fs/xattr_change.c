/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * xattr_change.c - setting and removing an attribute.
 *
 *   plan       the old record, a block with room for the new one, places for
 *              what must be allocated; nothing has changed
 *   apply      one transaction: old record out, new record in, its value
 *   finish     values in blocks of their own: the old one's blocks, in
 *              transactions of their own
 *
 * A crash leaves the old value or the new one. A value in blocks of its own may
 * have them in any resource groups, and with other nodes a transaction has one
 * group at a time: so such a record is retired first, which means unused, but
 * still leading to its blocks. Retired records count for fsck, for the release
 * of the inode, and are cleaned by whoever changes an attribute next.
 *
 * A new block for records is needed when no block has room:
 *
 *   none yet   di_eattr -> new
 *   one        di_eattr -> IN (new) -> one, new
 *   more       di_eattr -> IN -> .., new
 *
 * They stay until the inode goes. Source: docs/spec/gfs2-ondisk.md 5.3, 5.4.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/assert.h"
#include "fs/evict_ea.h"
#include "fs/xattr.h"

/* ---- plan ---- */

struct planner {
	struct xattr_change *ch;
	char *image; /* of the old record's block, without that */
	struct buf *retired_in;
	uint32_t retired_off;
};

#define STOP 1

static int note_retired(struct inode *ip, struct buf *b, void *arg)
{
	struct planner *pl = arg;
	uint32_t off = GFS2_EA_FIRST_OFF;
	struct gfs2_ea_info ea;
	unsigned ptrs;

	do {
		xattr_record(ip, b, off, &ea);
		gfs2_ea_ptrs(b->b_data, off, &ptrs);
		if (ea.type == GFS2_EATYPE_UNUSED && ptrs) {
			pl->retired_in = buf_ref(b);
			pl->retired_off = off;
			return STOP;
		}
		off += ea.rec_len;
	} while (!ea.last);
	return 0;
}

/* What a crash has left. i_lock is not held. */
static int clean_retired(struct inode *ip, bool nowait, struct planner *pl)
{
	int err;

	for (;;) {
		pl->retired_in = NULL;
		pthread_rwlock_rdlock(&ip->i_lock);
		err = xattr_each_block(ip, nowait, note_retired, pl);
		inode_rwunlock(ip);
		if (err != STOP)
			return err;
		err = nowait ? -EAGAIN
			     : evict_ea_value(ip, pl->retired_in,
					      pl->retired_off);
		buf_put(pl->retired_in);
		if (err)
			return err;
	}
}

static int check_flags(const struct xattr_change *ch, int flags)
{
	if (ch->xc_old.b && (flags & XATTR_CREATE))
		return -EEXIST;
	if (!ch->xc_old.b && ((flags & XATTR_REPLACE) || !ch->xc_value))
		return -ENODATA;
	return 0;
}

static int find_old(struct inode *ip, int flags, bool nowait,
		    struct xattr_change *ch)
{
	int err = xattr_find(ip, ch->xc_key, nowait, &ch->xc_old);

	if (err && err != -ENODATA)
		return err;
	ch->xc_retires = ch->xc_old.b && ch->xc_old.ea.num_ptrs;
	/* Its blocks are freed by who may wait. */
	if (ch->xc_retires && nowait)
		return -EAGAIN;
	return check_flags(ch, flags);
}

/* The old record, out of its block or a copy of that. */
static void record_out(const struct xattr_change *ch, void *block)
{
	if (ch->xc_retires)
		gfs2_ea_retire(block, ch->xc_old.off);
	else
		gfs2_ea_remove(block, ch->xc_old.off);
}

static int try_room(struct inode *ip, struct buf *b, void *arg)
{
	struct planner *pl = arg;
	struct xattr_change *ch = pl->ch;
	const void *block = b->b_data;
	uint32_t off;

	if (b == ch->xc_old.b) {
		memcpy(pl->image, block, ip->i_fs->fs_geom.bsize);
		record_out(ch, pl->image);
		block = pl->image;
	}
	if (!gfs2_ea_room(block, ch->xc_rec_len, &off))
		return 0;
	ch->xc_room = buf_ref(b);
	return STOP;
}

/* No block has room: what to allocate for one more. */
static int plan_block(struct inode *ip, bool nowait, struct xattr_change *ch)
{
	const be64 *ptrs;
	int err;

	ch->xc_alloc++;
	if (!ip->i_eattr)
		return 0;
	if (!(ip->i_flags & GFS2_DIF_EA_INDIRECT)) {
		ch->xc_alloc++;
		return 0;
	}
	err = inode_meta(ip, ip->i_eattr, GFS2_METATYPE_IN, nowait,
			 &ch->xc_ind);
	if (err)
		return err;
	ptrs = gfs2_indirect_ptrs(ch->xc_ind->b_data);
	while (ch->xc_slot < ip->i_fs->fs_geom.inptrs && ptrs[ch->xc_slot].raw)
		ch->xc_slot++;
	return ch->xc_slot < ip->i_fs->fs_geom.inptrs ? 0 : -ENOSPC;
}

static int plan_new(struct inode *ip, bool nowait, struct planner *pl)
{
	struct xattr_change *ch = pl->ch;
	int err;

	err = gfs2_ea_size(&ip->i_fs->fs_geom, ch->xc_key->len, ch->xc_size,
			   &ch->xc_rec_len, &ch->xc_ptrs);
	if (err)
		return err;
	ch->xc_alloc = ch->xc_ptrs;
	pl->image = malloc(ip->i_fs->fs_geom.bsize);
	if (!pl->image)
		return -ENOMEM;
	err = xattr_each_block(ip, nowait, try_room, pl);
	free(pl->image);
	if (err)
		return err == STOP ? 0 : err;
	return plan_block(ip, nowait, ch);
}

int xattr_change_plan(struct inode *ip, const struct xattr_key *key,
		      const void *value, uint32_t size, int flags, bool nowait,
		      struct xattr_change *ch)
{
	struct planner pl = { .ch = ch };
	int err;

	*ch = (struct xattr_change){
		.xc_key = key,
		.xc_value = value,
		.xc_size = size,
		.xc_from = &ch->xc_hold,
	};
	rgrp_hold_init(&ch->xc_hold);
	err = clean_retired(ip, nowait, &pl);
	if (err)
		return err;
	pthread_rwlock_rdlock(&ip->i_lock);
	err = find_old(ip, flags, nowait, ch);
	if (!err && value)
		err = plan_new(ip, nowait, &pl);
	inode_rwunlock(ip);
	if (!err && ch->xc_alloc)
		err = rgrp_reserve(ip, ch->xc_alloc, ch->xc_alloc, RGRP_META,
				   nowait, &ch->xc_hold);
	return err;
}

void xattr_change_release(struct xattr_change *ch)
{
	rgrp_drop(&ch->xc_hold);
	buf_put(ch->xc_old.b);
	buf_put(ch->xc_room);
	buf_put(ch->xc_ind);
}

/* ---- apply ---- */

unsigned xattr_change_blocks(const struct xattr_change *ch)
{
	unsigned blocks = ch->xc_alloc;

	if (ch->xc_alloc)
		blocks += rgrp_trans_blocks(&ch->xc_hold, ch->xc_alloc);
	return blocks + (ch->xc_old.b != NULL) + (ch->xc_room != NULL) +
	       (ch->xc_ind != NULL);
}

/* A new metadata block of the inode. */
static int block_new(struct trans *tr, struct inode *ip,
		     struct xattr_change *ch, enum gfs2_metatype type,
		     struct buf **bp)
{
	uint64_t addr;
	int err;

	ug_assert(ch->xc_from->rh_blocks > 0);
	rgrp_alloc(tr, ch->xc_from, ip, 1, &addr);
	err = buf_new(ip->i_fs->fs_cache, &ip->i_bufs, addr, bp);
	if (err)
		return err;
	/* First the header, since the journal stamps its number there. */
	if (type == GFS2_METATYPE_EA)
		gfs2_ea_init(&ip->i_fs->fs_geom, (*bp)->b_data);
	else
		gfs2_meta_init((*bp)->b_data, type);
	trans_add_meta(tr, *bp);
	return 0;
}

static int one_becomes_more(struct trans *tr, struct inode *ip,
			    struct xattr_change *ch)
{
	int err = block_new(tr, ip, ch, GFS2_METATYPE_IN, &ch->xc_ind);

	if (err)
		return err;
	gfs2_indirect_ptrs(ch->xc_ind->b_data)[0] = be64_of(ip->i_eattr);
	ch->xc_slot = 1;
	ip->i_eattr = ch->xc_ind->b_blkno;
	ip->i_flags |= GFS2_DIF_EA_INDIRECT;
	return 0;
}

/* The block that the record goes to. */
static int room_make(struct trans *tr, struct inode *ip,
		     struct xattr_change *ch)
{
	int err;

	if (ch->xc_room) {
		trans_add_meta(tr, ch->xc_room);
		return 0;
	}
	err = block_new(tr, ip, ch, GFS2_METATYPE_EA, &ch->xc_room);
	if (err)
		return err;
	if (!ip->i_eattr) {
		ip->i_eattr = ch->xc_room->b_blkno;
		return 0;
	}
	if (!ch->xc_ind)
		err = one_becomes_more(tr, ip, ch);
	else
		trans_add_meta(tr, ch->xc_ind);
	if (err)
		return err;
	gfs2_indirect_ptrs(ch->xc_ind->b_data)[ch->xc_slot] =
		be64_of(ch->xc_room->b_blkno);
	return 0;
}

/* The value into blocks of its own. */
static int value_write(struct trans *tr, struct inode *ip,
		       struct xattr_change *ch, uint32_t off)
{
	const uint32_t per = ip->i_fs->fs_geom.jbsize;
	const char *from = ch->xc_value;
	uint32_t left = ch->xc_size;
	unsigned count;
	be64 *ptrs = gfs2_ea_ptrs(ch->xc_room->b_data, off, &count);

	for (unsigned i = 0; i < count; i++) {
		uint32_t n = UG_MIN(left, per);
		struct buf *b;
		int err = block_new(tr, ip, ch, GFS2_METATYPE_ED, &b);

		if (err)
			return err;
		memcpy((char *)b->b_data + sizeof(struct gfs2_meta_header),
		       from, n);
		ptrs[i] = be64_of(b->b_blkno);
		buf_put(b);
		from += n;
		left -= n;
	}
	return 0;
}

static void old_out(struct trans *tr, struct xattr_change *ch)
{
	if (!ch->xc_old.b)
		return;
	trans_add_meta(tr, ch->xc_old.b);
	record_out(ch, ch->xc_old.b->b_data);
}

static int new_in(struct trans *tr, struct inode *ip, struct xattr_change *ch)
{
	const struct gfs2_ea_info ea = {
		.type = ch->xc_key->type,
		.name_len = ch->xc_key->len,
		.name = ch->xc_key->text,
		.data_len = ch->xc_size,
		.value = ch->xc_value,
		.num_ptrs = (uint8_t)ch->xc_ptrs,
	};
	uint32_t off;
	bool has_room;
	int err = room_make(tr, ip, ch);

	if (err)
		return err;
	has_room = gfs2_ea_room(ch->xc_room->b_data, ch->xc_rec_len, &off);
	ug_assert(has_room);
	off = gfs2_ea_insert(ch->xc_room->b_data, off, &ea);
	return value_write(tr, ip, ch, off);
}

int xattr_change_apply(struct trans *tr, struct inode *ip,
		       struct xattr_change *ch)
{
	int err = 0;

	old_out(tr, ch);
	if (ch->xc_value)
		err = new_in(tr, ip, ch);
	if (ch->xc_set_mode)
		ip->i_mode = ch->xc_mode;
	if (ch->xc_value && ch->xc_key->type == GFS2_EATYPE_SECURITY)
		atomic_fetch_and(&ip->i_state, ~INODE_NO_CAPABILITY);
	return err;
}

void xattr_change_finish(struct inode *ip, struct xattr_change *ch)
{
	rgrp_drop(&ch->xc_hold);
	/* The change has been made. What cannot be freed now stays with the
	 * inode, for the next change or its release. */
	if (ch->xc_retires)
		evict_ea_value(ip, ch->xc_old.b, ch->xc_old.off);
}

int xattr_change_commit(const struct fs_req *req, struct inode *ip,
			struct xattr_change *ch)
{
	struct fs *fs = ip->i_fs;
	struct trans tr;
	struct buf *dibuf;
	uint64_t seq;
	int err;

	err = inode_dibuf(ip, req->nowait, &dibuf);
	if (err)
		return err;
	err = trans_begin(fs->fs_journal, &tr, 1 + xattr_change_blocks(ch), 0,
			  req->nowait ? TRANS_NOWAIT : 0);
	if (err)
		goto out;
	err = inode_wrlock(req, ip);
	if (err) {
		trans_end(&tr);
		goto out;
	}
	err = xattr_change_apply(&tr, ip, ch);
	if (err)
		fs_withdraw(fs, "changing attributes of inode %llu broke off",
			    (unsigned long long)ip->i_addr);
	ip->i_ctime = fs_now();
	inode_log(&tr, ip, dibuf);
	inode_rwunlock(ip);
	seq = trans_end(&tr);
	inode_logged(ip, seq, true);
	if (!err) {
		xattr_change_finish(ip, ch);
		if (fs->fs_opt.sync)
			err = journal_flush(fs->fs_journal, seq);
	}
out:
	buf_put(dibuf);
	return err;
}

/* ---- security.capability ---- */

bool xattr_may_have_capability(const struct inode *ip)
{
	return ip->i_eattr &&
	       !(atomic_load_explicit(&ip->i_state, memory_order_relaxed) &
		 INODE_NO_CAPABILITY);
}

int xattr_drop_capability(const struct fs_req *req, struct inode *ip)
{
	const struct xattr_key key = xattr_key_of(XATTR_CAPABILITY);
	struct xattr_change ch;
	int err;

	if (ug_likely(!xattr_may_have_capability(ip)))
		return 0;
	err = xattr_change_plan(ip, &key, NULL, 0, 0, req->nowait, &ch);
	if (!err)
		err = xattr_change_commit(req, ip, &ch);
	xattr_change_release(&ch);
	if (err && err != -ENODATA)
		return err;
	atomic_fetch_or(&ip->i_state, INODE_NO_CAPABILITY);
	return 0;
}
