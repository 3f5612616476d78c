/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jtest.c - a small volume with a journal, for tests.
 *
 * Errors of the scaffolding itself abort: a test cannot go on without it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jtest.h"

#define CHECK(expr)                                                            \
	do {                                                                   \
		int check_err = (expr);                                        \
		if (check_err) {                                               \
			fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, \
				#expr, check_err);                             \
			abort();                                               \
		}                                                              \
	} while (0)

static void on_failed(void *arg, int err, const char *what)
{
	struct jtest *jt = arg;

	atomic_fetch_add(&jt->failed_calls, 1);
	atomic_store(&jt->failed_err, err);
	if (jt->on_failed)
		jt->on_failed(jt);
}

static void on_want_flush(void *arg)
{
	atomic_fetch_add(&((struct jtest *)arg)->want_flush, 1);
}

static void on_want_writeback(void *arg)
{
	atomic_fetch_add(&((struct jtest *)arg)->want_writeback, 1);
}

static void on_statfs(void *arg, int64_t *total, int64_t *free_blocks,
		      int64_t *dinodes)
{
	struct jtest *jt = arg;

	*total = jt->local[0];
	*free_blocks = jt->local[1];
	*dinodes = jt->local[2];
}

static const struct journal_ops jt_ops = {
	.failed = on_failed,
	.want_flush = on_want_flush,
	.want_writeback = on_want_writeback,
	.statfs_local = on_statfs,
};

void jt_init(struct jtest *jt, uint32_t bsize, uint32_t log_blocks,
	     unsigned extents, uint32_t meta_blocks)
{
	uint64_t addr = JT_LOG_FIRST;
	uint32_t left = log_blocks;

	memset(jt, 0, sizeof(*jt));
	jt->bsize = bsize;
	jt->log_blocks = log_blocks;
	jt->cache_bytes = 64u << 20;
	CHECK(gfs2_geom_init(&jt->geom, bsize));
	logmap_init(&jt->map);
	for (; extents; extents--) {
		uint32_t count = left / extents;

		CHECK(logmap_add(&jt->map, addr, count));
		addr += count + 1; /* a gap */
		left -= count;
	}
	jt->meta_first = addr;
	jt->fs_blocks = addr + meta_blocks;
}

void jt_fini(struct jtest *jt)
{
	logmap_fini(&jt->map);
}

uint64_t jt_device_bytes(const struct jtest *jt)
{
	uint64_t bytes = jt->fs_blocks * jt->bsize;

	return (bytes + 4095) / 4096 * 4096;
}

void jt_format(struct jtest *jt, struct blkdev *dev, uint64_t sequence)
{
	void *block = blkdev_alloc(jt->bsize);
	uint32_t run;

	for (uint32_t b = 0; b < jt->log_blocks; b++) {
		struct gfs2_lh_info lh = {
			.v2 = true,
			.sequence = (sequence + b) % jt->log_blocks,
			.flags =
				GFS2_LOG_HEAD_UNMOUNT | GFS2_LOG_HEAD_USERSPACE,
			.blkno = b,
			.addr = logmap_addr(&jt->map, b, &run),
			.jinode = JT_JINODE,
		};

		gfs2_lh_encode(&jt->geom, &lh, block);
		CHECK(blkdev_write(dev, block, jt->bsize, lh.addr * jt->bsize,
				   0));
	}
	CHECK(blkdev_flush(dev));
	free(block);
}

int jt_recover(struct jtest *jt, struct blkdev *dev)
{
	int err = replay_scan(dev, jt->bsize, &jt->map, "test", &jt->head);

	memset(&jt->replayed, 0, sizeof(jt->replayed));
	if (err || jt->head.clean)
		return err;
	err = replay_journal(dev, jt->bsize, &jt->map, jt->fs_blocks, &jt->head,
			     "test", &jt->replayed);
	if (err)
		return err;
	return replay_mark_clean(dev, jt->bsize, &jt->map, JT_JID, JT_JINODE,
				 &jt->head);
}

void jt_open(struct jtest *jt, struct blkdev *dev)
{
	struct journal_params params = {
		.dev = dev,
		.map = &jt->map,
		.block_bytes = jt->bsize,
		.jid = JT_JID,
		.jinode_addr = JT_JINODE,
		.statfs_addr = 18,
		.quota_addr = 19,
		.barriers = true,
		.shared = jt->shared,
		.who = "test: journal 3",
		.ops = &jt_ops,
		.arg = jt,
	};

	CHECK(jt_recover(jt, dev));
	jt->dev = dev;
	CHECK(iopool_create(dev, 4, &jt->pool));
	CHECK(bufcache_create(dev, jt->bsize, jt->cache_bytes, &jt->cache));
	buf_owner_init(&jt->owner);
	params.cache = jt->cache;
	params.pool = jt->pool;
	params.head_sequence = jt->head.sequence;
	params.head_blkno = jt->head.blkno;
	CHECK(journal_create(&params, &jt->j));
	atomic_store(&jt->failed_calls, 0);
	atomic_store(&jt->want_flush, 0);
	atomic_store(&jt->want_writeback, 0);
}

void jt_teardown(struct jtest *jt)
{
	journal_destroy(jt->j);
	buf_invalidate_owner(jt->cache, &jt->owner);
	buf_owner_destroy(&jt->owner);
	bufcache_destroy(jt->cache);
	iopool_destroy(jt->pool);
	jt->j = NULL;
	jt->cache = NULL;
	jt->pool = NULL;
}

void jt_close(struct jtest *jt)
{
	CHECK(journal_shutdown(jt->j));
	jt_teardown(jt);
}

void jt_crash(struct jtest *jt)
{
	journal_abort(jt->j, -EIO);
	jt_teardown(jt);
}

void jt_fill(const struct jtest *jt, void *block, uint64_t value)
{
	be64 *words = gfs2_indirect_ptrs(block);
	uint32_t jid = be32_get(((struct gfs2_meta_header *)block)->mh_jid);

	gfs2_meta_init(block, GFS2_METATYPE_IN);
	gfs2_meta_set_jid(block, jid);
	for (uint32_t i = 0; i < jt->geom.inptrs; i++)
		words[i] = be64_of(value ^ i);
}

uint64_t jt_value(const void *block)
{
	return be64_get(gfs2_indirect_ptrs((void *)block)[0]);
}

bool jt_is_whole(const struct jtest *jt, const void *block)
{
	const be64 *words = gfs2_indirect_ptrs((void *)block);
	uint64_t value = be64_get(words[0]);

	if (gfs2_check_meta(block, GFS2_METATYPE_IN))
		return false;
	for (uint32_t i = 0; i < jt->geom.inptrs; i++) {
		if (be64_get(words[i]) != (value ^ i))
			return false;
	}
	return true;
}

struct buf *jt_new(struct jtest *jt, uint32_t i)
{
	struct buf *b;

	CHECK(buf_new(jt->cache, &jt->owner, jt->meta_first + i, &b));
	return b;
}

struct buf *jt_read(struct jtest *jt, uint32_t i)
{
	struct buf *b;

	CHECK(buf_read(jt->cache, &jt->owner, jt->meta_first + i, 0, &b));
	return b;
}

uint64_t jt_set(struct jtest *jt, uint32_t i, uint64_t value)
{
	struct buf *b = jt_read(jt, i);
	struct trans tr;

	CHECK(trans_begin(jt->j, &tr, 1, 0, 0));
	trans_add_meta(&tr, b);
	jt_fill(jt, b->b_data, value);
	buf_put(b);
	return trans_end(&tr);
}

void jt_read_block(struct jtest *jt, uint64_t addr, void *block)
{
	uint8_t *mem = blkdev_alloc(jt->bsize);

	CHECK(blkdev_read(jt->dev, mem, jt->bsize, addr * jt->bsize));
	memcpy(block, mem, jt->bsize);
	free(mem);
}

void jt_write_block(struct jtest *jt, uint64_t addr, const void *block)
{
	uint8_t *mem = blkdev_alloc(jt->bsize);

	memcpy(mem, block, jt->bsize);
	CHECK(blkdev_write(jt->dev, mem, jt->bsize, addr * jt->bsize, 0));
	free(mem);
}

uint64_t jt_on_device(struct jtest *jt, uint32_t i)
{
	uint8_t block[4096];

	jt_read_block(jt, jt->meta_first + i, block);
	return jt_value(block);
}
