/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tree.c - the empty file system's inodes and names, in memory.
 *
 * Names of all directories are in one hash table, grown when it gets full.
 * A directory's list gives each name a place that stays; it is emptied
 * when its last name goes, so that a directory that is filled and cleared
 * again and again does not grow.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "tree.h"

#define NODES_PER_CHUNK 4096u
#define CHUNKS_MAX 16384u /* 64 million nodes */

struct tree {
	struct node *chunks[CHUNKS_MAX];
	uint64_t nr_nodes; /* ever made: ids below this plus 1 exist */
	uint64_t nr_used;
	struct node *free;
	struct dentry **buckets;
	uint64_t nr_buckets; /* a power of two */
	uint64_t nr_dentries;
};

struct fs_time tree_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	return (struct fs_time){ now.tv_sec, (uint32_t)now.tv_nsec };
}

uint64_t tree_nodes(const struct tree *tree)
{
	return tree->nr_used;
}

/* ---- nodes ---- */

struct node *tree_node(struct tree *tree, uint64_t nodeid)
{
	uint64_t i = nodeid - 1;

	if (i >= tree->nr_nodes)
		return NULL;
	return &tree->chunks[i / NODES_PER_CHUNK][i % NODES_PER_CHUNK];
}

static struct node *node_fresh(struct tree *tree)
{
	uint64_t chunk = tree->nr_nodes / NODES_PER_CHUNK;
	struct node *node;

	if (chunk == CHUNKS_MAX)
		return NULL;
	if (!tree->chunks[chunk])
		tree->chunks[chunk] = calloc(NODES_PER_CHUNK, sizeof(*node));
	if (!tree->chunks[chunk])
		return NULL;
	node = &tree->chunks[chunk][tree->nr_nodes % NODES_PER_CHUNK];
	node->nodeid = ++tree->nr_nodes;
	return node;
}

static struct node *node_alloc(struct tree *tree, uint32_t mode, uint32_t uid,
			       uint32_t gid)
{
	struct node *node = tree->free;
	struct fs_time now = tree_now();

	if (node)
		tree->free = node->next_free;
	else
		node = node_fresh(tree);
	if (!node)
		return NULL;
	*node = (struct node){
		.nodeid = node->nodeid,
		.generation = node->generation + 1,
		.attr =
			{
				.ino = node->nodeid,
				.mode = mode,
				.uid = uid,
				.gid = gid,
				.blksize = 4096,
				.atime = now,
				.mtime = now,
				.ctime = now,
			},
	};
	tree->nr_used++;
	return node;
}

/* Nobody refers to it any more. */
static void node_put(struct tree *tree, struct node *node)
{
	if (node->nlookup || node->attr.nlink)
		return;
	free(node->list);
	free(node->bytes);
	node->list = NULL;
	node->bytes = NULL;
	node->next_free = tree->free;
	tree->free = node;
	tree->nr_used--;
}

void tree_forget(struct tree *tree, uint64_t nodeid, uint64_t n)
{
	struct node *node = tree_node(tree, nodeid);

	if (!node || node->nlookup < n)
		return;
	node->nlookup -= n;
	node_put(tree, node);
}

int node_reserve(struct node *node, uint64_t size)
{
	uint64_t want = node->bytes_size ? node->bytes_size : 4096;
	char *bytes;

	if (size <= node->bytes_size)
		return 0;
	while (want < size)
		want *= 2;
	bytes = realloc(node->bytes, want);
	if (!bytes)
		return -ENOMEM;
	memset(bytes + node->bytes_size, 0, want - node->bytes_size);
	node->bytes = bytes;
	node->bytes_size = want;
	return 0;
}

void node_set_size(struct node *node, uint64_t size)
{
	/* What is cut off must read as zeros when the file grows again. */
	if (size < node->attr.size && size < node->bytes_size)
		memset(node->bytes + size, 0,
		       (node->attr.size < node->bytes_size ? node->attr.size
							   : node->bytes_size) -
			       size);
	node->attr.size = size;
	node->attr.blocks_512 = (size + 4095) / 4096 * 8;
	node->attr.mtime = node->attr.ctime = tree_now();
}

/* ---- names ---- */

static uint64_t name_hash(const struct node *dir, const char *name,
			  uint32_t len)
{
	uint64_t hash = dir->nodeid * 0x9e3779b97f4a7c15u;

	for (uint32_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)name[i]) * 0x100000001b3u;
	return hash ^ hash >> 32;
}

static struct dentry **bucket_of(struct tree *tree, const struct node *dir,
				 const char *name, uint32_t len)
{
	return &tree->buckets[name_hash(dir, name, len) &
			      (tree->nr_buckets - 1)];
}

static void dentry_hash(struct tree *tree, struct dentry *dentry)
{
	struct dentry **bucket =
		bucket_of(tree, dentry->dir, dentry->name, dentry->len);

	dentry->chain = *bucket;
	*bucket = dentry;
}

static void dentry_unhash(struct tree *tree, struct dentry *dentry)
{
	struct dentry **at =
		bucket_of(tree, dentry->dir, dentry->name, dentry->len);

	while (*at != dentry)
		at = &(*at)->chain;
	*at = dentry->chain;
}

/* Full: twice as many buckets. Without memory the chains get longer. */
static void buckets_grow(struct tree *tree)
{
	uint64_t old_count = tree->nr_buckets;
	struct dentry **old = tree->buckets;
	struct dentry **buckets = calloc(old_count * 2, sizeof(*buckets));

	if (!buckets)
		return;
	tree->buckets = buckets;
	tree->nr_buckets = old_count * 2;
	for (uint64_t i = 0; i < old_count; i++) {
		struct dentry *dentry = old[i];

		while (dentry) {
			struct dentry *next = dentry->chain;

			dentry_hash(tree, dentry);
			dentry = next;
		}
	}
	free(old);
}

struct dentry *tree_find(struct tree *tree, struct node *dir, const char *name,
			 uint32_t len)
{
	struct dentry *dentry = *bucket_of(tree, dir, name, len);

	while (dentry && (dentry->dir != dir || dentry->len != len ||
			  memcmp(dentry->name, name, len) != 0))
		dentry = dentry->chain;
	return dentry;
}

static int list_reserve(struct node *dir)
{
	uint32_t size = dir->list_size ? dir->list_size * 2 : 16;
	struct dentry **list;

	if (dir->list_used < dir->list_size)
		return 0;
	list = realloc(dir->list, size * sizeof(struct dentry *));
	if (!list)
		return -ENOMEM;
	dir->list = list;
	dir->list_size = size;
	return 0;
}

static void dir_changed(struct node *dir)
{
	dir->attr.mtime = dir->attr.ctime = tree_now();
}

int tree_link(struct tree *tree, struct node *node, struct node *dir,
	      const char *name, uint32_t len)
{
	struct dentry *dentry = malloc(sizeof(*dentry) + len);

	if (!dentry || list_reserve(dir)) {
		free(dentry);
		return -ENOMEM;
	}
	if (tree->nr_dentries++ == tree->nr_buckets)
		buckets_grow(tree);
	dentry->dir = dir;
	dentry->node = node;
	dentry->len = len;
	memcpy(dentry->name, name, len);
	dentry->place = dir->list_used;
	dir->list[dir->list_used++] = dentry;
	dir->list_live++;
	dentry_hash(tree, dentry);
	node->attr.nlink++;
	if (S_ISDIR(node->attr.mode)) {
		node->parent = dir;
		node->attr.nlink = 2;
		dir->attr.nlink++;
	}
	dir_changed(dir);
	return 0;
}

struct node *tree_make(struct tree *tree, struct node *dir, const char *name,
		       uint32_t len, uint32_t mode, uint32_t uid, uint32_t gid)
{
	struct node *node = node_alloc(tree, mode, uid, gid);

	if (!node)
		return NULL;
	if (tree_link(tree, node, dir, name, len)) {
		node_put(tree, node);
		return NULL;
	}
	return node;
}

/* Take the name away, whatever becomes of the node. */
static void dentry_remove(struct tree *tree, struct dentry *dentry)
{
	struct node *dir = dentry->dir;

	dentry_unhash(tree, dentry);
	tree->nr_dentries--;
	dir->list[dentry->place] = NULL;
	if (--dir->list_live == 0)
		dir->list_used = 0;
	if (S_ISDIR(dentry->node->attr.mode))
		dir->attr.nlink--;
	dir_changed(dir);
	free(dentry);
}

void tree_unlink(struct tree *tree, struct dentry *dentry)
{
	struct node *node = dentry->node;

	dentry_remove(tree, dentry);
	if (S_ISDIR(node->attr.mode))
		node->attr.nlink = 0;
	else
		node->attr.nlink--;
	node->attr.ctime = tree_now();
	node_put(tree, node);
}

int tree_rename(struct tree *tree, struct dentry *dentry, struct node *dir,
		const char *name, uint32_t len)
{
	struct dentry *victim = tree_find(tree, dir, name, len);
	struct node *node = dentry->node;
	int err;

	if (victim && victim->node == node)
		return 0;
	if (victim)
		tree_unlink(tree, victim);
	err = tree_link(tree, node, dir, name, len);
	if (err)
		return err;
	dentry_remove(tree, dentry);
	if (!S_ISDIR(node->attr.mode))
		node->attr.nlink--;
	node->attr.ctime = tree_now();
	return 0;
}

/* ---- the whole ---- */

struct tree *tree_create(void)
{
	struct tree *tree = calloc(1, sizeof(*tree));
	struct node *root;

	if (!tree)
		return NULL;
	tree->nr_buckets = 65536;
	tree->buckets = calloc(tree->nr_buckets, sizeof(struct dentry *));
	root = tree->buckets ? node_alloc(tree, S_IFDIR | 0755, 0, 0) : NULL;
	if (!root) {
		tree_destroy(tree);
		return NULL;
	}
	root->attr.nlink = 2;
	root->parent = root;
	return tree;
}

void tree_destroy(struct tree *tree)
{
	if (!tree)
		return;
	for (uint64_t i = 0; tree->buckets && i < tree->nr_buckets; i++) {
		struct dentry *dentry = tree->buckets[i];

		while (dentry) {
			struct dentry *next = dentry->chain;

			free(dentry);
			dentry = next;
		}
	}
	for (uint64_t i = 1; i <= tree->nr_nodes; i++) {
		struct node *node = tree_node(tree, i);

		free(node->list);
		free(node->bytes);
	}
	for (unsigned i = 0; i < CHUNKS_MAX; i++)
		free(tree->chunks[i]);
	free(tree->buckets);
	free(tree);
}
