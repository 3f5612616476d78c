/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pagetable.c - radix tree of a file's pages.
 *
 *            branch (level 1)         64 slots of 64 pages
 *           /        \
 *       leaf          leaf            64 slots of one page
 *
 * Nodes exist only on the way to pages: an insert makes what is missing, a
 * remove frees what has become empty, up to the root.
 */
#include <errno.h>
#include <stdlib.h>

#include "fs/pagetable.h"

#define LEVEL_BITS 6u
#define SLOTS LEAF_PAGES

struct pbranch {
	struct pnode n;
	struct pnode *child[SLOTS];
};

static struct pleaf *leaf_of(struct pnode *node)
{
	return ug_container_of(node, struct pleaf, n);
}

static struct pbranch *branch_of(struct pnode *node)
{
	return ug_container_of(node, struct pbranch, n);
}

/* log2 of the pages below one slot, and below the node. */
static unsigned slot_shift(const struct pnode *node)
{
	return LEVEL_BITS * node->level;
}

static unsigned node_shift(const struct pnode *node)
{
	return LEVEL_BITS * (node->level + 1u);
}

static unsigned slot_of(const struct pnode *node, uint64_t index)
{
	return (index >> slot_shift(node)) % SLOTS;
}

static bool node_covers(const struct pnode *node, uint64_t index)
{
	return index >> node_shift(node) == node->first >> node_shift(node);
}

static struct pnode *node_new(unsigned level, uint64_t index)
{
	struct pnode *node;

	if (level == 0) {
		struct pleaf *leaf = calloc(1, sizeof(*leaf));

		node = leaf ? &leaf->n : NULL;
	} else {
		struct pbranch *branch = calloc(1, sizeof(*branch));

		node = branch ? &branch->n : NULL;
	}
	if (!node)
		return NULL;
	node->level = (uint8_t)level;
	node->first = index >> node_shift(node) << node_shift(node);
	return node;
}

static void node_free(struct pnode *node)
{
	if (node->level == 0)
		free(leaf_of(node));
	else
		free(branch_of(node));
}

static void node_attach(struct pnode *parent, struct pnode *node)
{
	unsigned slot = slot_of(parent, node->first);

	branch_of(parent)->child[slot] = node;
	node->parent = parent;
	node->slot = (uint8_t)slot;
	parent->present |= UINT64_C(1) << slot;
	if (node->dirty)
		parent->dirty |= UINT64_C(1) << slot;
}

/* Free a node if it is empty, and those above that become so. */
static void node_prune(struct pagetable *t, struct pnode *node)
{
	while (node && !node->present) {
		struct pnode *parent = node->parent;

		if (parent)
			parent->present &= ~(UINT64_C(1) << node->slot);
		else
			t->root = NULL;
		if (t->last && &t->last->n == node)
			t->last = NULL;
		node_free(node);
		node = parent;
	}
}

struct pleaf *pagetable_leaf(struct pagetable *t, uint64_t index)
{
	struct pnode *node = t->root;

	if (t->last && node_covers(&t->last->n, index))
		return t->last;
	if (!node || !node_covers(node, index))
		return NULL;
	while (node->level) {
		unsigned slot = slot_of(node, index);

		if (!(node->present >> slot & 1))
			return NULL;
		node = branch_of(node)->child[slot];
	}
	t->last = leaf_of(node);
	return t->last;
}

/* Raise the root until it covers the index. */
static int root_grow(struct pagetable *t, uint64_t index)
{
	while (!node_covers(t->root, index)) {
		struct pnode *root =
			node_new(t->root->level + 1u, t->root->first);

		if (!root)
			return -ENOMEM;
		node_attach(root, t->root);
		t->root = root;
	}
	return 0;
}

/*
 * The leaf for the index, made if missing. After -ENOMEM a taller root stays:
 * it is as good as the old one.
 */
static struct pleaf *leaf_make(struct pagetable *t, uint64_t index)
{
	struct pnode *node;

	if (!t->root)
		t->root = node_new(0, index);
	if (!t->root || root_grow(t, index))
		return NULL;
	node = t->root;
	while (node->level) {
		unsigned slot = slot_of(node, index);
		struct pnode *child = branch_of(node)->child[slot];

		if (!(node->present >> slot & 1)) {
			child = node_new(node->level - 1u, index);
			if (!child) {
				node_prune(t, node);
				return NULL;
			}
			node_attach(node, child);
		}
		node = child;
	}
	return leaf_of(node);
}

int pagetable_insert(struct pagetable *t, struct page *pg)
{
	unsigned slot = pg->pg_index % LEAF_PAGES;
	struct pleaf *leaf = pagetable_leaf(t, pg->pg_index);

	if (!leaf)
		leaf = leaf_make(t, pg->pg_index);
	if (!leaf)
		return -ENOMEM;
	leaf->page[slot] = (uint32_t)(pg - t->base);
	leaf->n.present |= UINT64_C(1) << slot;
	t->last = leaf;
	return 0;
}

void pagetable_remove(struct pagetable *t, struct page *pg)
{
	struct pleaf *leaf = pagetable_leaf(t, pg->pg_index);

	leaf->n.present &= ~(UINT64_C(1) << pg->pg_index % LEAF_PAGES);
	node_prune(t, &leaf->n);
}

void pagetable_set_dirty(struct pagetable *t, const struct page *pg)
{
	struct pnode *node = &pagetable_leaf(t, pg->pg_index)->n;
	uint64_t bit = UINT64_C(1) << pg->pg_index % LEAF_PAGES;

	while (node && !(node->dirty & bit)) {
		node->dirty |= bit;
		bit = UINT64_C(1) << node->slot;
		node = node->parent;
	}
}

void pagetable_clear_dirty(struct pagetable *t, const struct page *pg)
{
	struct pnode *node = &pagetable_leaf(t, pg->pg_index)->n;
	uint64_t bit = UINT64_C(1) << pg->pg_index % LEAF_PAGES;

	while (node) {
		node->dirty &= ~bit;
		if (node->dirty)
			return;
		bit = UINT64_C(1) << node->slot;
		node = node->parent;
	}
}

static struct page *next_below(const struct pagetable *t, struct pnode *node,
			       uint64_t index, bool dirty_only)
{
	uint64_t mask = dirty_only ? node->dirty : node->present;
	uint64_t from = 0;

	if (index > node->first)
		from = (index - node->first) >> slot_shift(node);
	if (from >= SLOTS)
		return NULL;
	for (mask &= ~UINT64_C(0) << from; mask; mask &= mask - 1) {
		unsigned slot = (unsigned)__builtin_ctzll(mask);
		struct page *pg;

		if (node->level == 0)
			return pleaf_page(t, leaf_of(node), slot);
		pg = next_below(t, branch_of(node)->child[slot], index,
				dirty_only);
		if (pg)
			return pg;
	}
	return NULL;
}

struct page *pagetable_next(const struct pagetable *t, uint64_t index,
			    bool dirty_only)
{
	return t->root ? next_below(t, t->root, index, dirty_only) : NULL;
}
