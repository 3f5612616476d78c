/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * opens.c - direct mode: which files this node has open for writing, and of
 * which the kernel may hold pages.
 *
 * An entry exists for every file with writers, and for the last idle_max
 * files without. What is lost is only "no pages": an unknown file is taken
 * for one with pages once anything has been forgotten, which costs a needless
 * notification. No memory for an entry counts as forgetting, too; but a
 * writer that could not be counted would let readers cache, so everybody
 * is refused the cache from then on (uncounted).
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <urcu/list.h>

#include "base/compiler.h"
#include "fuse/opens.h"

#define BUCKETS 4096u /* a power of two */

struct open_file {
	struct cds_list_head chain; /* of its bucket */
	struct cds_list_head idle;  /* opens->idle, latest first; no writers */
	uint64_t nodeid;
	unsigned writers;
	bool pages;
};

struct opens {
	pthread_mutex_t lock; /* guards everything */
	struct cds_list_head buckets[BUCKETS];
	struct cds_list_head idle;
	unsigned nr_idle;
	unsigned idle_max;
	unsigned uncounted; /* writers without an entry */
	bool forgot;	    /* an unknown file may have pages */
};

int opens_create(unsigned idle_max, struct opens **opensp)
{
	struct opens *opens = calloc(1, sizeof(*opens));

	if (!opens)
		return -ENOMEM;
	pthread_mutex_init(&opens->lock, NULL);
	for (unsigned i = 0; i < BUCKETS; i++)
		CDS_INIT_LIST_HEAD(&opens->buckets[i]);
	CDS_INIT_LIST_HEAD(&opens->idle);
	opens->idle_max = idle_max;
	*opensp = opens;
	return 0;
}

void opens_destroy(struct opens *opens)
{
	struct open_file *file, *next;

	if (!opens)
		return;
	for (unsigned i = 0; i < BUCKETS; i++)
		cds_list_for_each_entry_safe (file, next, &opens->buckets[i],
					      chain)
			free(file);
	pthread_mutex_destroy(&opens->lock);
	free(opens);
}

static struct cds_list_head *bucket_of(struct opens *opens, uint64_t nodeid)
{
	/* Addresses of dinodes are close together: multiply, take the top. */
	uint64_t hash = nodeid * 0x9e3779b97f4a7c15u;

	return &opens->buckets[hash >> 52 & (BUCKETS - 1)];
}

static struct open_file *file_find(struct opens *opens, uint64_t nodeid)
{
	struct open_file *file;

	cds_list_for_each_entry (file, bucket_of(opens, nodeid), chain)
		if (file->nodeid == nodeid)
			return file;
	return NULL;
}

static void file_forget(struct opens *opens, struct open_file *file)
{
	cds_list_del(&file->chain);
	cds_list_del(&file->idle);
	opens->nr_idle--;
	free(file);
}

static void file_make_idle(struct opens *opens, struct open_file *file)
{
	cds_list_add(&file->idle, &opens->idle);
	opens->nr_idle++;
	if (opens->nr_idle <= opens->idle_max)
		return;
	opens->forgot = true;
	file_forget(opens,
		    cds_list_entry(opens->idle.prev, struct open_file, idle));
}

/* The file's entry, made if need be, and then idle. NULL: no memory. */
static struct open_file *file_get(struct opens *opens, uint64_t nodeid)
{
	struct open_file *file = file_find(opens, nodeid);

	if (file)
		return file;
	file = calloc(1, sizeof(*file));
	if (!file) {
		opens->forgot = true;
		return NULL;
	}
	file->nodeid = nodeid;
	file->pages = opens->forgot;
	cds_list_add(&file->chain, bucket_of(opens, nodeid));
	file_make_idle(opens, file);
	return file;
}

void opens_begin_write(struct opens *opens, uint64_t nodeid)
{
	struct open_file *file;

	pthread_mutex_lock(&opens->lock);
	file = file_get(opens, nodeid);
	if (!file) {
		opens->uncounted++;
	} else if (file->writers++ == 0) {
		cds_list_del(&file->idle);
		opens->nr_idle--;
	}
	pthread_mutex_unlock(&opens->lock);
}

void opens_end_write(struct opens *opens, uint64_t nodeid)
{
	struct open_file *file;

	pthread_mutex_lock(&opens->lock);
	file = file_find(opens, nodeid);
	if (file && file->writers) {
		if (--file->writers == 0)
			file_make_idle(opens, file);
	} else if (opens->uncounted) {
		opens->uncounted--;
	}
	pthread_mutex_unlock(&opens->lock);
}

bool opens_has_writer(struct opens *opens, uint64_t nodeid)
{
	const struct open_file *file;
	bool has;

	pthread_mutex_lock(&opens->lock);
	file = file_find(opens, nodeid);
	has = opens->uncounted || (file && file->writers);
	pthread_mutex_unlock(&opens->lock);
	return has;
}

void opens_note_pages(struct opens *opens, uint64_t nodeid)
{
	struct open_file *file;

	pthread_mutex_lock(&opens->lock);
	file = file_get(opens, nodeid);
	if (file)
		file->pages = true;
	pthread_mutex_unlock(&opens->lock);
}

static bool has_pages(struct opens *opens, const struct open_file *file)
{
	return file ? file->pages : opens->forgot;
}

bool opens_has_pages(struct opens *opens, uint64_t nodeid)
{
	bool has;

	pthread_mutex_lock(&opens->lock);
	has = has_pages(opens, file_find(opens, nodeid));
	pthread_mutex_unlock(&opens->lock);
	return has;
}

bool opens_take_pages(struct opens *opens, uint64_t nodeid)
{
	struct open_file *file;
	bool has;

	pthread_mutex_lock(&opens->lock);
	file = file_find(opens, nodeid);
	has = has_pages(opens, file);
	if (file)
		file->pages = false;
	pthread_mutex_unlock(&opens->lock);
	return has;
}

void opens_no_pages(struct opens *opens, uint64_t nodeid)
{
	(void)opens_take_pages(opens, nodeid);
}
