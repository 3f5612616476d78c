/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bufread.c - blocks into the cache: on demand, and ahead.
 *
 * Whoever finds a block missing enters an empty buffer marked BUF_READING and
 * reads it with no lock held; everybody else who wants the block waits for
 * this read. A failed read removes the buffer: of a demanded block, those who
 * waited get the same -EIO; of a read-ahead, which may have failed for
 * another block of the request, they try their own.
 */
#include <errno.h>
#include <stdlib.h>

#include "buf/bufshard.h"

/* Blocks of one read-ahead request: at most a megabyte at 4 KiB. */
#define AHEAD_BLOCKS_MAX 256u

/* Read under a lock that does not cover the block any more (see buf_read()). */
static bool is_of_former_life(const struct buf *b,
			      const struct buf_owner *owner)
{
	return owner && b->b_owner && b->b_owner != owner &&
	       !atomic_load_explicit(&b->b_journal, memory_order_relaxed);
}

/*
 * Find the block up to date and referenced (0), or -ENOENT: it has to be
 * read. Waits for a read under way. Shard lock held; released meanwhile.
 */
static int lookup(struct bufshard *shard, struct buf_owner *owner,
		  uint64_t blkno, unsigned flags, struct buf **bufp)
{
	struct buf *b;

	while ((b = bufshard_find(shard, blkno))) {
		if (ug_likely(atomic_load_explicit(&b->b_state,
						   memory_order_relaxed) &
			      BUF_UPTODATE)) {
			if (ug_unlikely(is_of_former_life(b, owner))) {
				bufshard_remove(shard, b);
				continue;
			}
			shard->hits++;
			buf_touch(b);
			buf_set_owner(b, owner);
			*bufp = buf_ref(b);
			return 0;
		}
		if (flags & BUF_NOWAIT)
			return -EAGAIN;
		if (bufshard_wait_read(shard, b) == -EIO)
			return -EIO;
	}
	return flags & BUF_NOWAIT ? -EAGAIN : -ENOENT;
}

static int read_block(struct bufcache *cache, struct buf *b)
{
	int err = blkdev_read(cache->dev, b->b_data, cache->block_bytes,
			      b->b_blkno << cache->block_shift);

	buf_read_done(b, err, true);
	if (!err)
		return 0;
	buf_put(b);
	return -EIO;
}

int buf_read(struct bufcache *cache, struct buf_owner *owner, uint64_t blkno,
	     unsigned flags, struct buf **bufp)
{
	struct bufshard *shard = bufcache_shard(cache, blkno);
	struct buf *b;
	int err;

	pthread_mutex_lock(&shard->lock);
	err = lookup(shard, owner, blkno, flags, bufp);
	if (ug_likely(err != -ENOENT)) {
		pthread_mutex_unlock(&shard->lock);
		return err;
	}
	if (blkno >= cache->blocks) {
		pthread_mutex_unlock(&shard->lock);
		return -EIO;
	}
	shard->misses++;
	b = bufshard_add(cache, shard, owner, blkno, BUF_READING);
	pthread_mutex_unlock(&shard->lock);
	if (!b)
		return -ENOMEM;
	err = read_block(cache, b);
	if (!err)
		*bufp = b;
	return err;
}

/* One request of read-ahead; the buffers are referenced by it. */
struct buf_ahead {
	struct ioreq req;
	struct bufcache *cache;
	struct buf_ahead *next; /* until it is started */
	unsigned count;
	struct buf **bufs;
	struct iovec iov[];
};

static struct buf_ahead *ahead_new(struct bufcache *cache, unsigned max)
{
	size_t each = sizeof(struct iovec) + sizeof(struct buf *);
	struct buf_ahead *ahead = calloc(1, sizeof(*ahead) + max * each);

	if (!ahead)
		return NULL;
	ahead->cache = cache;
	ahead->bufs = (struct buf **)&ahead->iov[max];
	return ahead;
}

static void ahead_done(struct ioreq *req)
{
	struct buf_ahead *ahead = ug_container_of(req, struct buf_ahead, req);
	struct bufcache *cache = ahead->cache;

	for (unsigned i = 0; i < ahead->count; i++) {
		buf_read_done(ahead->bufs[i], req->result, false);
		buf_put(ahead->bufs[i]);
	}
	free(ahead);
	pthread_mutex_lock(&cache->ahead_lock);
	if (--cache->ahead_count == 0)
		pthread_cond_broadcast(&cache->ahead_idle);
	pthread_mutex_unlock(&cache->ahead_lock);
}

static void ahead_start(struct buf_ahead *ahead)
{
	struct bufcache *cache = ahead->cache;
	struct ioreq *req = &ahead->req;

	req->op = IOREQ_READ;
	req->iov = ahead->iov;
	req->iovcnt = (int)ahead->count;
	req->offset_bytes = ahead->bufs[0]->b_blkno << cache->block_shift;
	req->done = ahead_done;
	pthread_mutex_lock(&cache->ahead_lock);
	cache->ahead_count++;
	pthread_mutex_unlock(&cache->ahead_lock);
	if (cache->pool) {
		iopool_submit(cache->pool, req);
		return;
	}
	req->result = blkdev_readv(cache->dev, req->iov, req->iovcnt,
				   req->offset_bytes);
	ahead_done(req);
}

static bool is_cached(struct bufcache *cache, uint64_t blkno)
{
	struct bufshard *shard = bufcache_shard(cache, blkno);
	bool cached;

	pthread_mutex_lock(&shard->lock);
	cached = bufshard_find(shard, blkno) != NULL;
	pthread_mutex_unlock(&shard->lock);
	return cached;
}

/* A buffer being read, referenced; NULL if it is cached, or no memory. */
static struct buf *ahead_buf(struct bufcache *cache, struct buf_owner *owner,
			     uint64_t blkno)
{
	struct bufshard *shard = bufcache_shard(cache, blkno);
	struct buf *b = NULL;

	pthread_mutex_lock(&shard->lock);
	if (!bufshard_find(shard, blkno))
		b = bufshard_add(cache, shard, owner, blkno, BUF_READING);
	pthread_mutex_unlock(&shard->lock);
	return b;
}

/*
 * One request for the blocks from blkno on, as far as they are missing, onto
 * the list. Returns how many blocks need no further look: at least one, or
 * 0 if there is no memory.
 */
static unsigned ahead_run(struct bufcache *cache, struct buf_owner *owner,
			  uint64_t blkno, unsigned count,
			  struct buf_ahead **list)
{
	struct buf_ahead *ahead;

	if (is_cached(cache, blkno))
		return 1;
	count = UG_MIN(count, AHEAD_BLOCKS_MAX);
	ahead = ahead_new(cache, count);
	if (!ahead)
		return 0;
	while (ahead->count < count) {
		struct buf *b = ahead_buf(cache, owner, blkno + ahead->count);

		if (!b)
			break;
		ahead->bufs[ahead->count] = b;
		ahead->iov[ahead->count].iov_base = b->b_data;
		ahead->iov[ahead->count].iov_len = cache->block_bytes;
		ahead->count++;
	}
	if (!ahead->count) {
		free(ahead);
		return 1; /* it has just been cached, or memory is short */
	}
	ahead->next = *list;
	*list = ahead;
	return ahead->count;
}

void buf_ahead_add(struct bufcache *cache, struct buf_owner *owner,
		   uint64_t blkno, unsigned count, struct buf_ahead **list)
{
	if (blkno >= cache->blocks)
		return;
	count = (unsigned)UG_MIN((uint64_t)count, cache->blocks - blkno);
	while (count) {
		unsigned done = ahead_run(cache, owner, blkno, count, list);

		if (!done)
			return;
		blkno += done;
		count -= done;
	}
}

void buf_ahead_start(struct buf_ahead *list)
{
	while (list) {
		struct buf_ahead *next = list->next;

		ahead_start(list);
		list = next;
	}
}

void buf_readahead(struct bufcache *cache, struct buf_owner *owner,
		   uint64_t blkno, unsigned count)
{
	struct buf_ahead *list = NULL;

	buf_ahead_add(cache, owner, blkno, count, &list);
	buf_ahead_start(list);
}
