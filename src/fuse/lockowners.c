/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lockowners.c - who may have fcntl locks of which file, and through which
 * handle it has asked for them.
 *
 * Two tables over the same records: by (file, owner), and by handle. Without
 * any record, which is the usual state of a mount, FLUSH and RELEASE read one
 * number.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <urcu/list.h>

#include "base/compiler.h"
#include "fuse/lockowners.h"

#define BUCKETS 4096u /* a power of two */

struct lockowner {
	struct cds_list_head by_owner; /* bucket */
	struct cds_list_head by_fh;    /* bucket */
	uint64_t nodeid;
	uint64_t owner;
	uint64_t fh; /* of its latest lock */
	uint32_t pid;
	bool pid_left; /* that process has closed fh, and it is no lock of its
			*/
	unsigned busy; /* between begin() and end() */
};

struct lockowners {
	pthread_mutex_t lock; /* guards everything */
	struct cds_list_head owners[BUCKETS];
	struct cds_list_head handles[BUCKETS];
	atomic_uint count; /* written under the lock */
};

int lockowners_create(struct lockowners **lop)
{
	struct lockowners *lo = calloc(1, sizeof(*lo));

	if (!lo)
		return -ENOMEM;
	pthread_mutex_init(&lo->lock, NULL);
	for (unsigned i = 0; i < BUCKETS; i++) {
		CDS_INIT_LIST_HEAD(&lo->owners[i]);
		CDS_INIT_LIST_HEAD(&lo->handles[i]);
	}
	*lop = lo;
	return 0;
}

void lockowners_destroy(struct lockowners *lo)
{
	struct lockowner *who, *next;

	if (!lo)
		return;
	for (unsigned i = 0; i < BUCKETS; i++)
		cds_list_for_each_entry_safe (who, next, &lo->owners[i],
					      by_owner)
			free(who);
	pthread_mutex_destroy(&lo->lock);
	free(lo);
}

static unsigned bucket(uint64_t number)
{
	return (number * 0x9e3779b97f4a7c15u) >> 52 & (BUCKETS - 1);
}

static struct cds_list_head *owners_of(struct lockowners *lo, uint64_t nodeid,
				       uint64_t owner)
{
	return &lo->owners[bucket(owner ^ nodeid << 32 ^ nodeid)];
}

static struct lockowner *find(struct lockowners *lo, uint64_t nodeid,
			      uint64_t owner)
{
	struct lockowner *who;

	cds_list_for_each_entry (who, owners_of(lo, nodeid, owner), by_owner)
		if (who->owner == owner && who->nodeid == nodeid)
			return who;
	return NULL;
}

static struct lockowner *add(struct lockowners *lo, uint64_t nodeid,
			     uint64_t owner)
{
	struct lockowner *who = calloc(1, sizeof(*who));

	if (!who)
		return NULL;
	who->nodeid = nodeid;
	who->owner = owner;
	cds_list_add(&who->by_owner, owners_of(lo, nodeid, owner));
	CDS_INIT_LIST_HEAD(&who->by_fh);
	atomic_fetch_add(&lo->count, 1);
	return who;
}

static void forget(struct lockowners *lo, struct lockowner *who)
{
	cds_list_del(&who->by_owner);
	cds_list_del(&who->by_fh);
	atomic_fetch_sub(&lo->count, 1);
	free(who);
}

struct lockowner *lockowners_begin(struct lockowners *lo, uint64_t nodeid,
				   uint64_t owner, uint64_t fh, uint32_t pid)
{
	struct lockowner *who;

	pthread_mutex_lock(&lo->lock);
	who = find(lo, nodeid, owner);
	if (!who)
		who = add(lo, nodeid, owner);
	if (who) {
		cds_list_del(&who->by_fh);
		cds_list_add(&who->by_fh, &lo->handles[bucket(fh)]);
		who->fh = fh;
		who->pid = pid;
		who->pid_left = false;
		who->busy++;
	}
	pthread_mutex_unlock(&lo->lock);
	return who;
}

void lockowners_end(struct lockowners *lo, struct lockowner *who)
{
	pthread_mutex_lock(&lo->lock);
	who->busy--;
	pthread_mutex_unlock(&lo->lock);
}

/*
 * A process has one owner for its POSIX locks. What it has locked through this
 * handle for another owner is an OFD lock, which may outlive it.
 */
static void note_closing(struct lockowners *lo, uint64_t owner, uint64_t fh,
			 uint32_t pid)
{
	struct lockowner *who;

	cds_list_for_each_entry (who, &lo->handles[bucket(fh)], by_fh)
		if (who->fh == fh && who->owner != owner && who->pid == pid)
			who->pid_left = true;
}

bool lockowners_flush(struct lockowners *lo, uint64_t nodeid, uint64_t owner,
		      uint64_t fh, uint32_t pid)
{
	struct lockowner *who;
	bool known;

	if (!lockowners_count(lo))
		return false;
	pthread_mutex_lock(&lo->lock);
	note_closing(lo, owner, fh, pid);
	who = find(lo, nodeid, owner);
	known = who;
	if (who && !who->busy)
		forget(lo, who);
	pthread_mutex_unlock(&lo->lock);
	return known;
}

bool lockowners_release(struct lockowners *lo, uint64_t fh, uint64_t *owner)
{
	struct lockowner *who, *found = NULL;

	if (!lockowners_count(lo))
		return false;
	pthread_mutex_lock(&lo->lock);
	cds_list_for_each_entry (who, &lo->handles[bucket(fh)], by_fh)
		if (who->fh == fh && !who->busy)
			found = who;
	if (found) {
		*owner = found->owner;
		forget(lo, found);
	}
	pthread_mutex_unlock(&lo->lock);
	return found;
}

bool lockowners_has_pid(struct lockowners *lo, uint64_t nodeid, uint64_t owner)
{
	struct lockowner *who;
	bool has;

	pthread_mutex_lock(&lo->lock);
	who = find(lo, nodeid, owner);
	has = who && !who->pid_left;
	pthread_mutex_unlock(&lo->lock);
	return has;
}

unsigned lockowners_count(struct lockowners *lo)
{
	return atomic_load_explicit(&lo->count, memory_order_relaxed);
}
