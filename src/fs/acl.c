/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * acl.c - POSIX access control lists: what a value means.
 *
 *	user::	user:ID: ..  group::  group:ID: ..  mask::  other::
 *
 * in this order; the mask must be there if there are entries with an id, and is
 * what the group bits of the mode then stand for.
 */
#include <errno.h>
#include <sys/stat.h>

#include "base/compiler.h"
#include "base/le.h"
#include "fs/acl.h"

#define ACL_VERSION 2u

/* Tags, in the order in which entries stand. */
#define TAG_USER_OBJ 0x01u
#define TAG_USER 0x02u
#define TAG_GROUP_OBJ 0x04u
#define TAG_GROUP 0x08u
#define TAG_MASK 0x10u
#define TAG_OTHER 0x20u

#define ID_NONE UINT32_MAX
#define RWX 07u

struct acl_head {
	le32 version;
};

struct acl_entry {
	le16 tag;
	le16 perm;
	le32 id;
};

static unsigned entries_of(size_t size)
{
	return (unsigned)((size - sizeof(struct acl_head)) /
			  sizeof(struct acl_entry));
}

static struct acl_entry *entries_at(const void *value)
{
	return (struct acl_entry *)((char *)value + sizeof(struct acl_head));
}

bool acl_is_empty(size_t size)
{
	return size <= sizeof(struct acl_head);
}

/* Does the entry have its place behind one with that tag? 0: it is first. */
static bool follows(unsigned before, const struct acl_entry *ae)
{
	unsigned tag = le16_get(ae->tag);

	switch (tag) {
	case TAG_USER_OBJ:
		return before == 0;
	case TAG_USER:
		return before == TAG_USER_OBJ || before == TAG_USER;
	case TAG_GROUP_OBJ:
		return before == TAG_USER_OBJ || before == TAG_USER;
	case TAG_GROUP:
		return before == TAG_GROUP_OBJ || before == TAG_GROUP;
	case TAG_MASK:
		return before == TAG_GROUP_OBJ || before == TAG_GROUP;
	case TAG_OTHER:
		return before == TAG_GROUP_OBJ || before == TAG_GROUP ||
		       before == TAG_MASK;
	}
	return false;
}

static bool entry_is_valid(const struct acl_entry *ae)
{
	bool has_id = le16_get(ae->tag) & (TAG_USER | TAG_GROUP);

	return le16_get(ae->perm) <= RWX &&
	       (!has_id || le32_get(ae->id) != ID_NONE);
}

int acl_check(const void *value, size_t size, unsigned entries_max)
{
	const struct acl_head *head = value;
	const struct acl_entry *ae = entries_at(value);
	unsigned count, before = 0, seen = 0;

	if (acl_is_empty(size) ||
	    (size - sizeof(*head)) % sizeof(struct acl_entry) ||
	    le32_get(head->version) != ACL_VERSION)
		return -EINVAL;
	count = entries_of(size);
	if (count > entries_max)
		return -E2BIG;
	for (; count--; ae++) {
		if (!follows(before, ae) || !entry_is_valid(ae))
			return -EINVAL;
		before = le16_get(ae->tag);
		seen |= before;
	}
	if ((seen & (TAG_USER | TAG_GROUP)) && !(seen & TAG_MASK))
		return -EINVAL;
	return before == TAG_OTHER ? 0 : -EINVAL;
}

/* The entries that bits of a mode stand for. */
struct classes {
	struct acl_entry *user, *group, *mask, *other;
	bool named; /* there are others */
};

static struct classes classes_of(const void *value, size_t size)
{
	struct acl_entry *ae = entries_at(value);
	struct classes c = { 0 };

	for (unsigned n = entries_of(size); n--; ae++) {
		switch (le16_get(ae->tag)) {
		case TAG_USER_OBJ:
			c.user = ae;
			break;
		case TAG_GROUP_OBJ:
			c.group = ae;
			break;
		case TAG_MASK:
			c.mask = ae;
			break;
		case TAG_OTHER:
			c.other = ae;
			break;
		default:
			c.named = true;
		}
	}
	return c;
}

bool acl_to_mode(const void *value, size_t size, uint32_t *mode)
{
	struct classes c = classes_of(value, size);
	const struct acl_entry *group = c.mask ? c.mask : c.group;

	*mode &= ~(uint32_t)(S_IRWXU | S_IRWXG | S_IRWXO);
	*mode |= (uint32_t)le16_get(c.user->perm) << 6 |
		 (uint32_t)le16_get(group->perm) << 3 |
		 (uint32_t)le16_get(c.other->perm);
	return !c.named && !c.mask;
}

void acl_from_mode(void *value, size_t size, uint32_t mode)
{
	struct classes c = classes_of(value, size);
	struct acl_entry *group = c.mask ? c.mask : c.group;

	c.user->perm = le16_of(mode >> 6 & RWX);
	group->perm = le16_of(mode >> 3 & RWX);
	c.other->perm = le16_of(mode & RWX);
}

static uint32_t limit(struct acl_entry *ae, uint32_t bits)
{
	uint32_t both = le16_get(ae->perm) & bits;

	ae->perm = le16_of((uint16_t)both);
	return both;
}

bool acl_inherit(void *value, size_t size, uint32_t *mode)
{
	struct classes c = classes_of(value, size);
	struct acl_entry *group = c.mask ? c.mask : c.group;
	uint32_t bits = limit(c.user, *mode >> 6 & RWX) << 6 |
			limit(group, *mode >> 3 & RWX) << 3 |
			limit(c.other, *mode & RWX);

	*mode &= ~(uint32_t)(S_IRWXU | S_IRWXG | S_IRWXO);
	*mode |= bits;
	return !c.named && !c.mask;
}
