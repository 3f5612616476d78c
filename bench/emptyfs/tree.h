/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tree.h - the empty file system's inodes and names, in memory.
 *
 * As little as a file system can do and still be one: hash tables, arrays, and
 * one lock of the caller's around every call. Node ids are indexes; a node
 * is reused, with a new generation, when the kernel has forgotten it and it
 * has no name.
 */
#ifndef EMPTYFS_TREE_H
#define EMPTYFS_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/fs.h"

struct node;

/* A name in a directory. Its place in the directory's list is its cookie. */
struct dentry {
	struct dentry *chain; /* of the hash bucket */
	struct node *dir;
	struct node *node;
	uint32_t place;
	uint32_t len;
	char name[]; /* not terminated */
};

struct node {
	uint64_t nodeid;
	uint64_t generation;
	struct fs_attr attr;
	uint64_t nlookup; /* of the kernel */
	/* Directory */
	struct node *parent;
	struct dentry **list; /* with holes where names were removed */
	uint32_t list_used, list_size, list_live;
	/* File kept in memory, symlink */
	char *bytes;
	uint64_t bytes_size;
	/* Free nodes */
	struct node *next_free;
};

struct tree;

struct tree *tree_create(void); /* with its root; NULL: no memory */
void tree_destroy(struct tree *tree);

struct node *tree_node(struct tree *tree, uint64_t nodeid); /* NULL: none */
struct dentry *tree_find(struct tree *tree, struct node *dir, const char *name,
			 uint32_t len);

/* A new node with a name: NULL without memory. nlookup is left at 0. */
struct node *tree_make(struct tree *tree, struct node *dir, const char *name,
		       uint32_t len, uint32_t mode, uint32_t uid, uint32_t gid);

/* One more name. 0 or -ENOMEM. */
int tree_link(struct tree *tree, struct node *node, struct node *dir,
	      const char *name, uint32_t len);

/* Remove a name; the node goes when nothing else holds it. */
void tree_unlink(struct tree *tree, struct dentry *dentry);

/* Move a name, over an existing one if there is one. 0 or -ENOMEM. */
int tree_rename(struct tree *tree, struct dentry *dentry, struct node *dir,
		const char *name, uint32_t len);

void tree_forget(struct tree *tree, uint64_t nodeid, uint64_t n);

/* Room for size bytes of content. 0 or -ENOMEM. */
int node_reserve(struct node *node, uint64_t size);

void node_set_size(struct node *node, uint64_t size);
struct fs_time tree_now(void);
uint64_t tree_nodes(const struct tree *tree); /* in use */

#endif
