/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pagetable.h - the pages of one file by index, ordered, with a dirty mark.
 *
 * A radix tree of 64 ways whose root is only as high as the pages need: a small
 * file is one leaf, whatever its offset. Each node knows which of its slots are
 * in use and which lead to a dirty page, so that a sparse giant is walked
 * at the cost of its pages.
 *
 * A leaf stands for 64 pages, 256 KiB of the file. It also counts the delayed
 * blocks among them, and holds what was promised for their pointer blocks.
 *
 * Pure but for malloc(). The caller (struct pages) serialises all calls.
 */
#ifndef UG_FS_PAGETABLE_H
#define UG_FS_PAGETABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/pagepool.h"

#define LEAF_PAGES 64u

struct pnode {
	struct pnode *parent;
	uint64_t first;	  /* index of the first page below */
	uint64_t present; /* slots in use */
	uint64_t dirty;	  /* slots with a dirty page below */
	uint8_t level;	  /* 0: leaf */
	uint8_t slot;	  /* in the parent */
};

struct pleaf {
	struct pnode n;
	uint16_t delayed;	   /* blocks without a place, see pages.h */
	uint16_t meta;		   /* pointer blocks promised for them */
	uint32_t page[LEAF_PAGES]; /* number in the pool */
};

struct pagetable {
	struct page *base;  /* the pool's pages */
	struct pnode *root; /* NULL: empty */
	struct pleaf *last; /* found last; NULL */
};

/* The leaf of this page, or NULL. */
struct pleaf *pagetable_leaf(struct pagetable *t, uint64_t index);

static inline struct page *pleaf_page(const struct pagetable *t,
				      const struct pleaf *leaf, unsigned slot)
{
	if (!(leaf->n.present >> slot & 1))
		return NULL;
	return t->base + leaf->page[slot];
}

static inline struct page *pagetable_get(struct pagetable *t, uint64_t index)
{
	struct pleaf *leaf = pagetable_leaf(t, index);

	return leaf ? pleaf_page(t, leaf, index % LEAF_PAGES) : NULL;
}

/* Enter a page at its pg_index, which is free. -ENOMEM: nothing changed. */
int pagetable_insert(struct pagetable *t, struct page *pg);
/* Take a page out; its dirty mark is clear. */
void pagetable_remove(struct pagetable *t, struct page *pg);

void pagetable_set_dirty(struct pagetable *t, const struct page *pg);
void pagetable_clear_dirty(struct pagetable *t, const struct page *pg);

/* First page at or behind index (dirty_only: with the mark); NULL. */
struct page *pagetable_next(const struct pagetable *t, uint64_t index,
			    bool dirty_only);

static inline bool pagetable_is_dirty(const struct pagetable *t)
{
	return t->root && t->root->dirty;
}

#endif
