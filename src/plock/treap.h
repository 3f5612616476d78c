/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * treap.h - a balanced tree of pool records that keeps a summary of each
 * subtree up to date: what an interval tree needs.
 *
 * A record's priority is a hash of its number, so balance costs no memory and
 * is the same in every run (Seidel, Aragon: "Randomized search trees", 1996).
 * No record knows its parent. Depth, and so recursion, is about 3 log2(n): the
 * functions are inline so that each kind of tree gets its own, without calls
 * through pointers.
 */
#ifndef UG_PLOCK_TREAP_H
#define UG_PLOCK_TREAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/assert.h"

struct treap_links {
	uint32_t left;
	uint32_t right;
};

struct treap_ops {
	struct treap_links *(*links)(const void *arg, uint32_t id);
	/* A total order: of two records exactly one is before the other. */
	bool (*before)(const void *arg, uint32_t a, uint32_t b);
	/* Make the summary of this record from its own and its children's. */
	void (*update)(const void *arg, uint32_t id);
};

/* Bijective, so that no two records have the same. */
static inline uint32_t treap_priority(uint32_t id)
{
	id *= 0x9e3779b1u;
	id ^= id >> 15;
	id *= 0x85ebca77u;
	id ^= id >> 13;
	return id * 0xc2b2ae3du;
}

/* All records before id into *left, the others into *right. */
static inline void treap_split(const struct treap_ops *ops, const void *arg,
			       uint32_t root, uint32_t id, uint32_t *left,
			       uint32_t *right)
{
	struct treap_links *links;

	if (!root) {
		*left = *right = 0;
		return;
	}
	links = ops->links(arg, root);
	if (ops->before(arg, root, id)) {
		treap_split(ops, arg, links->right, id, &links->right, right);
		*left = root;
	} else {
		treap_split(ops, arg, links->left, id, left, &links->left);
		*right = root;
	}
	ops->update(arg, root);
}

static inline uint32_t treap_merge(const struct treap_ops *ops, const void *arg,
				   uint32_t left, uint32_t right)
{
	struct treap_links *links;

	if (!left || !right)
		return left ? left : right;
	if (treap_priority(left) > treap_priority(right)) {
		links = ops->links(arg, left);
		links->right = treap_merge(ops, arg, links->right, right);
		ops->update(arg, left);
		return left;
	}
	links = ops->links(arg, right);
	links->left = treap_merge(ops, arg, left, links->left);
	ops->update(arg, right);
	return right;
}

/* Returns the new root, as the other functions do. */
static inline ug_must_check uint32_t treap_insert(const struct treap_ops *ops,
						  const void *arg,
						  uint32_t root, uint32_t id)
{
	struct treap_links *links;

	if (!root || treap_priority(id) > treap_priority(root)) {
		links = ops->links(arg, id);
		treap_split(ops, arg, root, id, &links->left, &links->right);
		ops->update(arg, id);
		return id;
	}
	links = ops->links(arg, root);
	if (ops->before(arg, id, root))
		links->left = treap_insert(ops, arg, links->left, id);
	else
		links->right = treap_insert(ops, arg, links->right, id);
	ops->update(arg, root);
	return root;
}

/* id must be in the tree. */
static inline ug_must_check uint32_t treap_remove(const struct treap_ops *ops,
						  const void *arg,
						  uint32_t root, uint32_t id)
{
	struct treap_links *links;

	ug_assert(root);
	links = ops->links(arg, root);
	if (root == id)
		return treap_merge(ops, arg, links->left, links->right);
	if (ops->before(arg, id, root))
		links->left = treap_remove(ops, arg, links->left, id);
	else
		links->right = treap_remove(ops, arg, links->right, id);
	ops->update(arg, root);
	return root;
}

#endif
