/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tree_free.c - taking the pointer tree of an inode apart.
 *
 * A walk in order of the file, children before their pointer block:
 *
 *   dinode [ . . p q ]        first block to free: below p, in the middle
 *                | |
 *              IN  IN         the left one stays (its front is in use), its
 *             [..xx] [xxxx]   rear pointers go; the right one goes as well
 *
 * What is found is handed to a free_batch, which makes transactions of it. The
 * blocks on the edge, which also lead to what stays, are kept even if they end
 * up empty; the format allows it, and the kernel does the same.
 *
 * Pointer blocks are read ahead, so that a large file costs the device's
 * bandwidth and not its latency. They go out of memory as they are freed.
 * Source: docs/spec/gfs2-ondisk.md 3.7.
 */
#include <errno.h>
#include <inttypes.h>

#include "fs/free_batch.h"
#include "fs/tree.h"

/* Pointer blocks being read ahead of the walk. */
#define AHEAD_BLOCKS 32u

struct walk {
	struct inode *ip;
	struct free_batch *fb;
	unsigned height;
	bool metadata;			/* bottom blocks may be in the log */
	uint16_t path[GFS2_HEIGHT_MAX]; /* to the first block to free */
};

/* One pointer block under way. */
struct node {
	struct buf *b;
	const be64 *ptrs;
	unsigned level; /* 0: the dinode */
	uint32_t count; /* of pointers */
	uint32_t first; /* the first to free */
	bool edge; /* the way to the first block to free leads through it */
};

static void node_init(const struct walk *w, struct node *node, struct buf *b,
		      unsigned level, bool edge)
{
	const struct gfs2_geom *geom = &w->ip->i_fs->fs_geom;

	*node = (struct node){
		.b = b,
		.ptrs = level ? gfs2_indirect_ptrs(b->b_data)
			      : gfs2_dinode_ptrs(b->b_data),
		.level = level,
		.count = level ? geom->inptrs : geom->diptrs,
		.first = edge ? w->path[level] : 0,
		.edge = edge,
	};
}

/* Is everything below the node to be freed? */
static bool goes_wholly(const struct walk *w, const struct node *node)
{
	if (!node->edge)
		return true;
	for (unsigned level = node->level; level < w->height; level++)
		if (w->path[level])
			return false;
	return true;
}

/* ---- the bottom: data, or blocks of a directory's table ---- */

static int bottom_free(struct walk *w, const struct node *node)
{
	uint32_t i = node->first;

	while (i < node->count) {
		uint64_t start = be64_get(node->ptrs[i]);
		uint32_t n = 1;
		int err;

		while (start && i + n < node->count &&
		       be64_get(node->ptrs[i + n]) == start + n)
			n++;
		err = start ? free_batch_add(w->fb, node->b, i, start, n,
					     w->metadata)
			    : 0;
		if (err)
			return err;
		i += n;
	}
	return 0;
}

/* ---- above it ---- */

static bool is_valid(struct walk *w, uint64_t blkno)
{
	return blkno && rgrps_valid_block(w->ip->i_fs, blkno);
}

/* Keep AHEAD_BLOCKS children from i on in memory or on their way. */
static void read_ahead(struct walk *w, const struct node *node, uint32_t i,
		       uint32_t *ahead)
{
	uint32_t end = i + UG_MIN(AHEAD_BLOCKS, node->count - i);

	for (*ahead = UG_MAX(*ahead, i); *ahead < end; (*ahead)++) {
		uint64_t blkno = be64_get(node->ptrs[*ahead]);

		if (is_valid(w, blkno))
			buf_readahead(w->ip->i_fs->fs_cache, &w->ip->i_bufs,
				      blkno, 1);
	}
}

static int child_read(struct walk *w, const struct node *node, uint32_t i,
		      struct buf **bp)
{
	uint64_t blkno = be64_get(node->ptrs[i]);

	if (!is_valid(w, blkno))
		return fs_bad_block(w->ip->i_fs, node->b->b_blkno,
				    "inode %" PRIu64
				    ": pointer %u leads to block %" PRIu64,
				    w->ip->i_addr, i, blkno);
	return inode_meta(w->ip, blkno, GFS2_METATYPE_IN, false, bp);
}

static int node_free(struct walk *w, const struct node *node);

/* The child at pointer i and all below it. */
static int child_free(struct walk *w, const struct node *node, uint32_t i)
{
	struct node child;
	struct buf *b;
	int err;

	err = child_read(w, node, i, &b);
	if (err)
		return err;
	node_init(w, &child, b, node->level + 1,
		  node->edge && i == node->first);
	err = node_free(w, &child);
	if (!err && goes_wholly(w, &child))
		err = free_batch_add_node(w->fb, node->b, i, b);
	buf_put(b);
	return err;
}

/* Recursion is as deep as the tree: at most GFS2_HEIGHT_MAX. */
static int node_free(struct walk *w, const struct node *node)
{
	uint32_t ahead = 0;
	int err = 0;

	if (node->level + 1 == w->height)
		return bottom_free(w, node);
	for (uint32_t i = node->first; !err && i < node->count; i++) {
		if (!node->ptrs[i].raw)
			continue;
		read_ahead(w, node, i, &ahead);
		err = child_free(w, node, i);
	}
	return err;
}

int tree_collect(struct free_batch *fb, uint64_t lblock)
{
	struct inode *ip = fb->fb_ip;
	struct walk w = { .ip = ip, .fb = fb };
	struct node root;

	pthread_rwlock_rdlock(&ip->i_lock);
	w.height = ip->i_height;
	w.metadata = inode_is_dir(ip) || inode_is_jdata(ip);
	pthread_rwlock_unlock(&ip->i_lock);
	if (!w.height ||
	    !gfs2_tree_path(&ip->i_fs->fs_geom, w.height, lblock, w.path))
		return 0;
	node_init(&w, &root, fb->fb_dibuf, 0, true);
	return node_free(&w, &root);
}

int tree_free_from(struct inode *ip, uint64_t lblock)
{
	struct free_batch fb;
	bool stuffed, emptied;
	int err;

	pthread_rwlock_rdlock(&ip->i_lock);
	stuffed = inode_is_stuffed(ip);
	emptied = lblock == 0 && !inode_is_dir(ip);
	pthread_rwlock_unlock(&ip->i_lock);
	if (stuffed)
		return 0;
	err = free_batch_init(&fb, ip);
	if (err)
		return err;
	err = tree_collect(&fb, lblock);
	if (!err)
		err = emptied ? free_batch_commit_emptied(&fb)
			      : free_batch_commit(&fb);
	free_batch_fini(&fb);
	return err;
}
