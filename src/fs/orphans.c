/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * orphans.c - see orphans.h.
 *
 * At each moment some node answers for every inode without a name:
 *
 *	who takes the last link		until it has looked whether others use
 *					it, and released it
 *	who finds it in use elsewhere	until it is gone: it stays here
 *	who finds it in use by its own	until the last close, which looks
 *	programs
 *	every survivor of a death	for whatever the bitmaps call unlinked:
 *					the dead may have answered for it
 *
 * A last close on another node looks as well, and is sooner, if it has heard
 * that iopen was wanted, or that no link is left. That is not sure: a message
 * may come after the close, who has it open may be mounted read-only, and of
 * two who look at the same time each may find the other one using it. So
 * whoever gave way looks again here; at first after a second, then more and
 * more seldom, since a file can be open without a name for days.
 *
 * This is memory of one node, lost with it: then its survivors look. Beyond its
 * bound all bitmaps are looked at instead. A node that unmounts looks once
 * more, and has then told everybody who still uses one.
 */
#include <stdlib.h>
#include <time.h>

#include "fs/evict.h"
#include "fs/orphans.h"
#include "fs/rgrp.h"

#define ORPHANS_MAX 1024u
#define FIRST_NS 1000000000u
#define LONGEST_NS (64u * (uint64_t)FIRST_NS)

struct orphan {
	struct cds_list_head o_list;
	uint64_t o_addr;
	uint64_t o_pause_ns;
	uint64_t o_due_ns; /* UINT64_MAX: it is being looked at */
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void orphans_init(struct orphans * or)
{
	* or = (struct orphans){ 0 };
	pthread_mutex_init(& or->or_lock, NULL);
	CDS_INIT_LIST_HEAD(& or->or_list);
}

static void forget(struct orphans * or, struct orphan *o)
{
	cds_list_del(&o->o_list);
	or->or_count--;
	free(o);
}

void orphans_fini(struct orphans * or)
{
	struct orphan *o, *next;

	cds_list_for_each_entry_safe (o, next, & or->or_list, o_list)
		forget(or, o);
	pthread_mutex_destroy(& or->or_lock);
}

static struct orphan *find(struct orphans * or, uint64_t addr)
{
	struct orphan *o;

	cds_list_for_each_entry (o, & or->or_list, o_list)
		if (o->o_addr == addr)
			return o;
	return NULL;
}

/* NULL: no memory, or too many. */
static struct orphan *make(struct orphans * or, uint64_t addr)
{
	struct orphan *o;

	if (or->or_count >= ORPHANS_MAX)
		return NULL;
	o = malloc(sizeof(*o));
	if (!o)
		return NULL;
	*o = (struct orphan){ .o_addr = addr, .o_pause_ns = FIRST_NS / 2 };
	cds_list_add_tail(&o->o_list, & or->or_list);
	or->or_count++;
	return o;
}

void orphans_add(struct fs *fs, uint64_t addr)
{
	struct orphans * or = &fs->fs_orphans;
	uint64_t t = now_ns();
	struct orphan *o;

	pthread_mutex_lock(& or->or_lock);
	o = find(or, addr);
	if (!o)
		o = make(or, addr);
	if (o) {
		o->o_pause_ns = UG_MIN(2 * o->o_pause_ns, LONGEST_NS);
		o->o_due_ns = t + o->o_pause_ns;
	} else {
		or->or_more = true;
		or->or_more_due_ns = t + LONGEST_NS;
	}
	pthread_mutex_unlock(& or->or_lock);
}

/* The first one that is due at t, marked as being looked at. */
static bool next_due(struct orphans * or, uint64_t t, uint64_t *addr)
{
	struct orphan *o;
	bool found = false;

	pthread_mutex_lock(& or->or_lock);
	cds_list_for_each_entry (o, & or->or_list, o_list) {
		if (o->o_due_ns > t)
			continue;
		o->o_due_ns = UINT64_MAX;
		*addr = o->o_addr;
		found = true;
		break;
	}
	pthread_mutex_unlock(& or->or_lock);
	return found;
}

/* It has been looked at. Not added again meanwhile: it is gone. */
static void looked_at(struct orphans * or, uint64_t addr)
{
	struct orphan *o;

	pthread_mutex_lock(& or->or_lock);
	o = find(or, addr);
	if (o->o_due_ns == UINT64_MAX)
		forget(or, o);
	pthread_mutex_unlock(& or->or_lock);
}

static void look_at_bitmaps(struct fs *fs, uint64_t t)
{
	struct orphans * or = &fs->fs_orphans;
	bool due;

	pthread_mutex_lock(& or->or_lock);
	due = or->or_more && or->or_more_due_ns <= t;
	if (due)
		or->or_more = false;
	pthread_mutex_unlock(& or->or_lock);
	if (due)
		rgrps_want_clean(fs, false);
}

static void all_are_due(struct orphans * or)
{
	struct orphan *o;

	pthread_mutex_lock(& or->or_lock);
	cds_list_for_each_entry (o, & or->or_list, o_list)
		o->o_due_ns = 0;
	pthread_mutex_unlock(& or->or_lock);
}

/* Until t, so that this ends: what is added again is due later. */
void orphans_look(struct fs *fs, bool now)
{
	struct orphans * or = &fs->fs_orphans;
	uint64_t t = now_ns(), addr;

	if (now)
		all_are_due(or);
	while (!fs_is_withdrawn(fs) && next_due(or, t, &addr)) {
		fs_fault(fs, evict_again(fs, addr));
		looked_at(or, addr);
	}
	look_at_bitmaps(fs, t);
}
