/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * slot.c - a request in progress: its bytes, what they mean, its answer.
 *
 * Free slots are kept last in, first out: the one taken next is the one whose
 * memory is still in the processor's cache. More than FREE_MAX of them go
 * back to the system, after a burst of requests that waited.
 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuse/slot.h"

#define SLOT_PAGE 4096u
#define SLOT_BYTES (SLOT_PAGE + FUSE_MAX_WRITE)
#define FREE_MAX 16u

static_assert(sizeof(struct fuse_slot) + FUSE_WRITE_HEAD <= SLOT_PAGE,
	      "a slot and the head of its request share a page");
static_assert(SLOT_IN_MAX >= FUSE_MIN_READ_BUFFER,
	      "the kernel refuses smaller reads");
static_assert(offsetof(struct fuse_reply, entry) ==
		      sizeof(struct fuse_out_header),
	      "header and body are written as one");

struct slot_pool {
	pthread_mutex_t lock;
	pthread_cond_t put; /* a slot has come back */
	struct cds_list_head free;
	unsigned nr_free;
	unsigned nr_slots;
	unsigned max;
};

int slot_pool_create(unsigned max, struct slot_pool **poolp)
{
	struct slot_pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return -ENOMEM;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->put, NULL);
	CDS_INIT_LIST_HEAD(&pool->free);
	pool->max = max;
	*poolp = pool;
	return 0;
}

void slot_pool_destroy(struct slot_pool *pool)
{
	struct fuse_slot *slot, *next;

	if (!pool)
		return;
	cds_list_for_each_entry_safe (slot, next, &pool->free, link)
		munmap(slot, SLOT_BYTES);
	pthread_cond_destroy(&pool->put);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

/* Not reserved: a slot for a small request never needs most of it. */
static struct fuse_slot *slot_map(void)
{
	void *mem = mmap(NULL, SLOT_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct fuse_slot *slot = mem;

	if (mem == MAP_FAILED)
		return NULL;
	slot->reply.data = (char *)mem + SLOT_PAGE;
	slot->reply.data_max = FUSE_MAX_WRITE;
	return slot;
}

static struct fuse_slot *free_take(struct slot_pool *pool)
{
	struct fuse_slot *slot;

	if (!pool->nr_free)
		return NULL;
	slot = cds_list_first_entry(&pool->free, struct fuse_slot, link);
	cds_list_del(&slot->link);
	pool->nr_free--;
	return slot;
}

/* pool->lock held. */
static struct fuse_slot *pool_take(struct slot_pool *pool)
{
	struct fuse_slot *slot = free_take(pool);

	if (slot || pool->nr_slots == pool->max)
		return slot;
	slot = slot_map();
	if (slot)
		pool->nr_slots++;
	return slot;
}

struct fuse_slot *slot_try_get(struct slot_pool *pool)
{
	struct fuse_slot *slot;

	pthread_mutex_lock(&pool->lock);
	slot = pool_take(pool);
	pthread_mutex_unlock(&pool->lock);
	return slot;
}

struct fuse_slot *slot_get(struct slot_pool *pool)
{
	struct fuse_slot *slot;

	pthread_mutex_lock(&pool->lock);
	while (!(slot = pool_take(pool)))
		pthread_cond_wait(&pool->put, &pool->lock);
	pthread_mutex_unlock(&pool->lock);
	return slot;
}

void slot_put(struct slot_pool *pool, struct fuse_slot *slot)
{
	bool keep;

	pthread_mutex_lock(&pool->lock);
	keep = pool->nr_free < FREE_MAX;
	if (keep) {
		cds_list_add(&slot->link, &pool->free);
		pool->nr_free++;
	} else {
		pool->nr_slots--;
	}
	pthread_cond_signal(&pool->put);
	pthread_mutex_unlock(&pool->lock);
	if (!keep)
		munmap(slot, SLOT_BYTES);
}

unsigned slot_pool_count(struct slot_pool *pool)
{
	unsigned n;

	pthread_mutex_lock(&pool->lock);
	n = pool->nr_slots;
	pthread_mutex_unlock(&pool->lock);
	return n;
}

void *slot_in(struct fuse_slot *slot)
{
	return slot->reply.data - FUSE_WRITE_HEAD;
}

/* The device takes numbers from -511 to 0. */
static int32_t error_for_kernel(int err)
{
	if (err == FUSE_WOULD_BLOCK)
		return -EAGAIN;
	return err <= 0 && err > -512 ? err : -EIO;
}

int slot_answer(struct fuse_slot *slot, int err)
{
	struct fuse_reply *reply = &slot->reply;
	const void *from = &reply->head;
	size_t len = sizeof(reply->head);

	if (!err)
		len += reply->data_len ? reply->data_len : reply->body_len;
	reply->head = (struct fuse_out_header){
		.len = (uint32_t)len,
		.error = error_for_kernel(err),
		.unique = slot->req.unique,
	};
	if (!err && reply->data_len) {
		from = reply->data - sizeof(reply->head);
		memcpy((void *)from, &reply->head, sizeof(reply->head));
	}
	return write(slot->fd, from, len) < 0 ? -errno : 0;
}
