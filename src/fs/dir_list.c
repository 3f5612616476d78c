/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dir_list.c - entries of a directory in the order of their cookies.
 *
 * One range of hashes at a time is gathered and sorted: the dinode's entries,
 * or those of one chain of leaves. A chain may be of any length (names with
 * one hash can be made by the thousand), so a batch keeps only the smallest
 * DIR_BATCH_MAX of them, and a long chain is gone through again for what
 * comes next.
 *
 * Two names with the same key are very rare, and cannot be told apart by a
 * cookie. Up to TIES_MAX of them continue at their common key, so that a
 * listing that ends among them repeats some and misses none. More of them,
 * which nobody gets by accident, have larger keys made up for them: a listing
 * that ends there misses some, but every listing comes to its end.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/dir_ahead.h"
#include "fs/dir_block.h"
#include "fs/dir_list.h"

#define KEY_LOW_BITS 31
/* Free numbers at the end of the low part, for ties and for key + 1. */
#define KEY_LOW_MAX ((1u << KEY_LOW_BITS) - 1024u)
#define TIES_MAX 8u

/*
 * The second hash: any will do as long as it stays the same and is not linear,
 * as that of the format is, so that names made to collide there do not
 * collide here. The multiplier is that of SplitMix64.
 */
static uint64_t mix_name(const char *name, uint32_t len)
{
	uint64_t h = len, word;

	while (len >= sizeof(word)) {
		memcpy(&word, name, sizeof(word));
		h = (h ^ le64toh(word)) * 0xbf58476d1ce4e5b9u;
		h ^= h >> 29;
		name += sizeof(word);
		len -= sizeof(word);
	}
	word = 0;
	memcpy(&word, name, len);
	h = (h ^ le64toh(word)) * 0x94d049bb133111ebu;
	return h >> 32;
}

static uint64_t key_of(const struct gfs2_dirent *de)
{
	uint64_t hash = be32_get(de->de_hash);
	uint64_t low =
		mix_name(gfs2_dirent_name(de), be16_get(de->de_name_len)) %
		KEY_LOW_MAX;

	return (hash << KEY_LOW_BITS | low) + 1;
}

/* The smallest cookie of this hash; 2^32: there is none. */
static uint64_t first_cookie(uint64_t hash)
{
	return hash >> 32 ? 0 : (hash << KEY_LOW_BITS) + 1;
}

static uint32_t hash_of_cookie(uint64_t cookie)
{
	return cookie ? (uint32_t)((cookie - 1) >> KEY_LOW_BITS) : 0;
}

/* By key, then length, then bytes. */
static int compare(const void *a, const void *b)
{
	const struct dir_item *x = a, *y = b;
	uint32_t xlen, ylen;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	xlen = be16_get(x->de->de_name_len);
	ylen = be16_get(y->de->de_name_len);
	if (xlen != ylen)
		return xlen < ylen ? -1 : 1;
	return memcmp(gfs2_dirent_name(x->de), gfs2_dirent_name(y->de), xlen);
}

int dir_batch_init(struct dir_batch *batch)
{
	memset(batch, 0, sizeof(*batch));
	batch->items = malloc(2 * DIR_BATCH_MAX * sizeof(*batch->items));
	return batch->items ? 0 : -ENOMEM;
}

static void drop_items(struct dir_batch *batch, unsigned keep)
{
	while (batch->count > keep)
		buf_put(batch->items[--batch->count].b);
}

void dir_batch_fini(struct dir_batch *batch)
{
	drop_items(batch, 0);
	free(batch->items);
	batch->items = NULL;
}

/* Sort, and keep the smallest. */
static void settle(struct dir_batch *batch)
{
	qsort(batch->items, batch->count, sizeof(*batch->items), compare);
	if (batch->count > DIR_BATCH_MAX) {
		drop_items(batch, DIR_BATCH_MAX);
		batch->cut = true;
	}
}

static void add_item(struct dir_batch *batch, const struct gfs2_dirent *de,
		     uint64_t key, struct buf *b)
{
	if (batch->count == 2 * DIR_BATCH_MAX)
		settle(batch);
	batch->items[batch->count++] = (struct dir_item){
		.key = key,
		.de = de,
		.b = buf_ref(b),
	};
}

static int gather_block(struct dir_batch *batch, struct inode *dir,
			struct buf *b, struct dir_area area, uint64_t cookie)
{
	const struct gfs2_dirent *de;
	uint32_t off;

	for (off = 0; off < area.da_len; off += be16_get(de->de_rec_len)) {
		uint64_t key;

		if (gfs2_dirent_at(area.da_start, area.da_len, off, &de))
			return dir_bad_record(dir, b);
		if (gfs2_dirent_is_sentinel(de))
			continue;
		key = key_of(de);
		if (key >= cookie)
			add_item(batch, de, key, b);
	}
	return 0;
}

static int gather_linear(struct dir_batch *batch, struct inode *dir,
			 uint64_t cookie, bool nowait)
{
	struct buf *b;
	int err;

	batch->next = 0;
	err = inode_dibuf(dir, nowait, &b);
	if (err)
		return err;
	err = gather_block(batch, dir, b, dir_dinode_area(dir, b), cookie);
	buf_put(b);
	return err;
}

/* The chain of leaves that the cookie lies in; next: the one after it. */
static int gather_chain(struct dir_batch *batch, struct inode *dir,
			uint64_t cookie, bool nowait)
{
	uint32_t index = gfs2_hash_index(hash_of_cookie(cookie), dir->i_depth);
	uint64_t slots = 0, steps = 0, addr;
	struct gfs2_leaf_info leaf;
	struct buf *b;
	int err;

	if (!nowait)
		dir_ahead_leaves(dir, index);
	err = dir_table_leaf(dir, index, nowait, &addr);
	while (!err && addr) {
		err = dir_chain_step(dir, addr, &steps);
		if (!err)
			err = dir_leaf_get(dir, addr, nowait, &b, &leaf);
		if (err)
			break;
		if (!slots)
			slots = 1ull << (dir->i_depth - leaf.depth);
		err = gather_block(batch, dir, b, dir_leaf_area(dir, b),
				   cookie);
		buf_put(b);
		addr = leaf.next;
	}
	if (!err)
		batch->next = first_cookie(((index & ~(slots - 1)) + slots)
					   << (32 - dir->i_depth));
	return err;
}

/*
 * If the range goes on, entries with the key of the last one may be among what
 * has been left out: give them all to the next batch.
 */
static void trim_cut(struct dir_batch *batch)
{
	unsigned keep = batch->count;
	uint64_t last = batch->items[keep - 1].key;

	while (keep && batch->items[keep - 1].key == last)
		keep--;
	if (keep)
		drop_items(batch, keep);
}

/* Cookies that continue, and distinct keys where there are too many ties. */
static void number_items(struct dir_batch *batch)
{
	struct dir_item *items = batch->items;
	unsigned i, ties = 0;

	for (i = 1; i < batch->count; i++) {
		if (items[i].key > items[i - 1].key) {
			ties = 0;
		} else if (++ties < TIES_MAX) {
			items[i].key = items[i - 1].key;
		} else {
			items[i].key = items[i - 1].key + 1;
			ties = 0;
		}
	}
	for (i = 0; i < batch->count; i++) {
		bool tied = i + 1 < batch->count &&
			    items[i + 1].key == items[i].key;

		items[i].next = items[i].key + (tied ? 0 : 1);
	}
}

int dir_batch_fill(struct dir_batch *batch, struct inode *dir, uint64_t cookie,
		   bool nowait)
{
	int err;

	drop_items(batch, 0);
	batch->cut = false;
	if (dir_is_hashed(dir))
		err = gather_chain(batch, dir, cookie, nowait);
	else
		err = gather_linear(batch, dir, cookie, nowait);
	if (err)
		return err;
	settle(batch);
	if (batch->cut)
		trim_cut(batch);
	number_items(batch);
	if (batch->cut)
		batch->next = batch->items[batch->count - 1].next;
	return 0;
}
