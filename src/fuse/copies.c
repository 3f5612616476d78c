/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * copies.c - the table of files of which the kernel may have pages.
 *
 * Lock order: copies->lock is taken within nothing but the session's callers,
 * and ops->resume() is called with it. Notifications are sent without it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/log.h"
#include "fuse/copies.h"
#include "fuse/thread.h"

#define BUCKETS 4096u /* a power of two */

#define NS_PER_MS UINT64_C(1000000)
/*
 * A notification returns in 5 to 100 us, if nothing is in its way (docs/spec/
 * fuse.md 4.2). Pages that have to be written take longer, and then a READ that
 * goes on too early costs a further pass, no more.
 */
#define LATE_NS (5 * NS_PER_MS)
#define VERY_LATE_NS (50 * NS_PER_MS)
#define LATELY_NS (1000 * NS_PER_MS)

/*
 * Between notifications of attributes that find no inode, and until it is given
 * up: a task that is about to run has run by then.
 */
#define RETRY_MIN_NS (50 * UINT64_C(1000))
#define RETRY_MAX_NS (2 * NS_PER_MS)
#define RETRY_GIVE_UP_NS (10000 * NS_PER_MS)

struct copies_file {
	struct cds_list_head chain;	/* of its bucket */
	struct cds_list_head used;	/* copies->used, latest first */
	struct cds_list_head notifying; /* copies->notifying, or empty */
	struct cds_list_head waits;	/* parked READs */
	uint64_t nodeid;
	uint64_t since_ns;    /* of the notification */
	uint64_t recalled_ns; /* the end of the last recall */
	unsigned pins;	      /* recalls under way */
	struct kpages pages;
};

struct copies {
	struct copies_ops ops;
	void *arg;
	pthread_t clock_thread;
	unsigned idle_max;

	pthread_mutex_t lock; /* guards the rest */
	pthread_cond_t clock; /* something to look at, or the end */
	pthread_cond_t idle;  /* recalls has become 0 */
	struct cds_list_head buckets[BUCKETS];
	struct cds_list_head used;
	struct cds_list_head notifying; /* files, of recalls */
	unsigned count;
	unsigned recalls;
	bool forgot; /* an unknown file may have pages */
	bool stopped;
	bool ending;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void pause_ns(uint64_t ns)
{
	const struct timespec ts = { .tv_nsec = (long)ns };

	nanosleep(&ts, NULL);
}

/* ---- the table; its lock is held ---- */

static struct cds_list_head *bucket_of(struct copies *copies, uint64_t nodeid)
{
	uint64_t hash = nodeid * 0x9e3779b97f4a7c15u;

	return &copies->buckets[hash >> 52 & (BUCKETS - 1)];
}

static struct copies_file *file_find(struct copies *copies, uint64_t nodeid)
{
	struct copies_file *file;

	cds_list_for_each_entry (file, bucket_of(copies, nodeid), chain)
		if (file->nodeid == nodeid)
			return file;
	return NULL;
}

static void file_free(struct copies *copies, struct copies_file *file)
{
	cds_list_del(&file->chain);
	cds_list_del(&file->used);
	copies->count--;
	free(file);
}

/* Room for one more: the oldest that nobody needs goes, if there is one. */
static void forget_oldest(struct copies *copies)
{
	struct copies_file *file;

	if (copies->count < copies->idle_max)
		return;
	cds_list_for_each_entry_reverse(file, &copies->used, used)
	{
		if (file->pins || file->pages.writers || file->pages.upgrades ||
		    !cds_list_empty(&file->waits))
			continue;
		copies->forgot |= file->pages.count != 0;
		file_free(copies, file);
		return;
	}
}

/* Made if need be. NULL: no memory. */
static struct copies_file *file_get(struct copies *copies, uint64_t nodeid)
{
	struct copies_file *file = file_find(copies, nodeid);

	if (file) {
		cds_list_del(&file->used);
		cds_list_add(&file->used, &copies->used);
		return file;
	}
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	file->nodeid = nodeid;
	CDS_INIT_LIST_HEAD(&file->notifying);
	CDS_INIT_LIST_HEAD(&file->waits);
	if (copies->forgot)
		kpages_set_all(&file->pages);
	/* Before it is there: perhaps nobody needs any but this one. */
	forget_oldest(copies);
	cds_list_add(&file->chain, bucket_of(copies, nodeid));
	cds_list_add(&file->used, &copies->used);
	copies->count++;
	return file;
}

/* ---- parked READs ---- */

static void resume_some(struct copies *copies, struct copies_file *file)
{
	struct copies_read *read, *next;

	cds_list_for_each_entry_safe (read, next, &file->waits, link) {
		if (!kpages_may_go_on(&file->pages, read->range))
			continue;
		cds_list_del(&read->link);
		read->file = NULL;
		copies->ops.resume(read);
	}
}

/* Returns when the file is to be looked at again. */
static uint64_t look_late(struct copies *copies, struct copies_file *file,
			  uint64_t now)
{
	uint64_t passed = now - file->since_ns;

	if (cds_list_empty(&file->waits))
		return UINT64_MAX;
	if (passed < LATE_NS)
		return file->since_ns + LATE_NS;
	kpages_late(&file->pages, passed >= VERY_LATE_NS);
	resume_some(copies, file);
	return passed < VERY_LATE_NS && !cds_list_empty(&file->waits)
		       ? file->since_ns + VERY_LATE_NS
		       : UINT64_MAX;
}

static void rest_until(struct copies *copies, uint64_t when_ns)
{
	const struct timespec until = {
		.tv_sec = (time_t)(when_ns / 1000000000u),
		.tv_nsec = (long)(when_ns % 1000000000u),
	};

	if (when_ns == UINT64_MAX)
		pthread_cond_wait(&copies->clock, &copies->lock);
	else
		pthread_cond_timedwait(&copies->clock, &copies->lock, &until);
}

static void *clock_main(void *arg)
{
	struct copies *copies = arg;
	struct copies_file *file;

	pthread_mutex_lock(&copies->lock);
	while (!copies->ending) {
		uint64_t now = now_ns(), next = UINT64_MAX;

		cds_list_for_each_entry (file, &copies->notifying, notifying) {
			uint64_t when = look_late(copies, file, now);

			next = UG_MIN(next, when);
		}
		rest_until(copies, next);
	}
	pthread_mutex_unlock(&copies->lock);
	return NULL;
}

/* ---- life ---- */

int copies_create(const struct copies_ops *ops, void *arg, unsigned idle_max,
		  struct copies **copiesp)
{
	struct copies *copies = calloc(1, sizeof(*copies));
	pthread_condattr_t monotonic;
	int err;

	if (!copies)
		return -ENOMEM;
	copies->ops = *ops;
	copies->arg = arg;
	copies->idle_max = idle_max;
	pthread_mutex_init(&copies->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&copies->clock, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_cond_init(&copies->idle, NULL);
	for (unsigned i = 0; i < BUCKETS; i++)
		CDS_INIT_LIST_HEAD(&copies->buckets[i]);
	CDS_INIT_LIST_HEAD(&copies->used);
	CDS_INIT_LIST_HEAD(&copies->notifying);
	err = fuse_thread("ugfs-recall", clock_main, copies,
			  &copies->clock_thread);
	if (err) {
		pthread_cond_destroy(&copies->idle);
		pthread_cond_destroy(&copies->clock);
		pthread_mutex_destroy(&copies->lock);
		free(copies);
		return err;
	}
	*copiesp = copies;
	return 0;
}

void copies_stop(struct copies *copies)
{
	if (!copies)
		return;
	pthread_mutex_lock(&copies->lock);
	copies->stopped = true;
	while (copies->recalls)
		pthread_cond_wait(&copies->idle, &copies->lock);
	pthread_mutex_unlock(&copies->lock);
}

void copies_destroy(struct copies *copies)
{
	struct copies_file *file, *next;

	if (!copies)
		return;
	copies_stop(copies);
	pthread_mutex_lock(&copies->lock);
	copies->ending = true;
	pthread_cond_signal(&copies->clock);
	pthread_mutex_unlock(&copies->lock);
	pthread_join(copies->clock_thread, NULL);
	cds_list_for_each_entry_safe (file, next, &copies->used, used)
		file_free(copies, file);
	pthread_cond_destroy(&copies->idle);
	pthread_cond_destroy(&copies->clock);
	pthread_mutex_destroy(&copies->lock);
	free(copies);
}

/* ---- READs ---- */

int copies_read_begin(struct copies *copies, uint64_t nodeid,
		      struct krange range, struct copies_read *read)
{
	struct copies_file *file;

	if (read->begun)
		return 0;
	pthread_mutex_lock(&copies->lock);
	file = file_get(copies, nodeid);
	if (file) {
		read->nodeid = nodeid;
		read->range = range;
		read->exclusive = kpages_read(&file->pages, range);
		read->begun = true;
	}
	pthread_mutex_unlock(&copies->lock);
	return file ? 0 : -ENOMEM;
}

/* Lock held. */
static void park(struct copies *copies, struct copies_file *file,
		 struct copies_read *read)
{
	read->file = file;
	cds_list_add_tail(&read->link, &file->waits);
	pthread_cond_signal(&copies->clock);
}

static int admit(struct copies *copies, struct copies_file *file,
		 struct copies_read *read, bool leaving, bool may_park)
{
	enum kpages_verdict verdict;

	verdict = kpages_admit(&file->pages, read->range, read->exclusive,
			       leaving);
	read->begun = false;
	if (verdict == KPAGES_ADMITTED)
		return 0;
	if (verdict != KPAGES_PARKED || !may_park)
		return -EAGAIN;
	park(copies, file, read);
	return -EINPROGRESS;
}

int copies_read_admit(struct copies *copies, struct copies_read *read,
		      bool leaving, bool may_park)
{
	struct copies_file *file;
	int err = -ENOMEM;

	pthread_mutex_lock(&copies->lock);
	file = file_get(copies, read->nodeid);
	if (file)
		err = admit(copies, file, read, leaving, may_park);
	pthread_mutex_unlock(&copies->lock);
	return err;
}

void copies_read_failed(struct copies *copies, struct copies_read *read)
{
	struct copies_file *file;

	pthread_mutex_lock(&copies->lock);
	file = file_find(copies, read->nodeid);
	if (file)
		kpages_fail(&file->pages, read->range);
	pthread_mutex_unlock(&copies->lock);
}

void copies_read_end(struct copies *copies, struct copies_read *read)
{
	struct copies_file *file;

	pthread_mutex_lock(&copies->lock);
	if (read->file)
		cds_list_del(&read->link);
	read->file = NULL;
	/* Without EX it may have been forgotten. */
	file = read->begun && read->exclusive ? file_find(copies, read->nodeid)
					      : NULL;
	if (file)
		kpages_unread(&file->pages, true);
	read->begun = false;
	pthread_mutex_unlock(&copies->lock);
}

/* ---- writers, and what they change ---- */

int copies_writer(struct copies *copies, uint64_t nodeid, bool exclusive)
{
	struct copies_file *file;
	int err = -ENOMEM;

	pthread_mutex_lock(&copies->lock);
	file = file_get(copies, nodeid);
	if (file)
		err = kpages_writer(&file->pages, exclusive) ? 0 : 1;
	pthread_mutex_unlock(&copies->lock);
	return err;
}

void copies_writer_gone(struct copies *copies, uint64_t nodeid)
{
	struct copies_file *file;

	pthread_mutex_lock(&copies->lock);
	file = file_find(copies, nodeid);
	if (file)
		kpages_writer_gone(&file->pages);
	pthread_mutex_unlock(&copies->lock);
}

bool copies_has_writer(struct copies *copies, uint64_t nodeid)
{
	const struct copies_file *file;
	bool has;

	pthread_mutex_lock(&copies->lock);
	file = file_find(copies, nodeid);
	has = file && file->pages.writers;
	pthread_mutex_unlock(&copies->lock);
	return has;
}

bool copies_overlap(struct copies *copies, uint64_t nodeid, struct krange range)
{
	const struct copies_file *file;
	bool has;

	pthread_mutex_lock(&copies->lock);
	file = file_find(copies, nodeid);
	has = file ? kpages_overlap(&file->pages, range) : copies->forgot;
	pthread_mutex_unlock(&copies->lock);
	return has;
}

void copies_drop(struct copies *copies, uint64_t nodeid, struct krange range)
{
	struct copies_file *file;
	uint32_t admitted = 0;

	pthread_mutex_lock(&copies->lock);
	file = file_get(copies, nodeid);
	if (file)
		admitted = file->pages.admitted;
	pthread_mutex_unlock(&copies->lock);
	/* An error means that the mount is gone, with its pages. */
	copies->ops.drop_pages(copies->arg, nodeid, range);
	pthread_mutex_lock(&copies->lock);
	file = file_find(copies, nodeid);
	if (file)
		kpages_dropped(&file->pages, range, admitted);
	pthread_mutex_unlock(&copies->lock);
}

void copies_none(struct copies *copies, uint64_t nodeid)
{
	struct copies_file *file;

	pthread_mutex_lock(&copies->lock);
	file = file_find(copies, nodeid);
	if (!file && copies->forgot)
		file = file_get(copies, nodeid);
	if (file)
		file->pages.count = 0;
	pthread_mutex_unlock(&copies->lock);
}

/* ---- recalls ---- */

bool copies_recalled_lately(struct copies *copies, uint64_t nodeid)
{
	const struct copies_file *file;
	bool lately;

	pthread_mutex_lock(&copies->lock);
	file = file_find(copies, nodeid);
	lately = file && file->recalled_ns &&
		 now_ns() - file->recalled_ns < LATELY_NS;
	pthread_mutex_unlock(&copies->lock);
	return lately;
}

/* Lock held; dropped while the kernel is told. */
static void notify(struct copies *copies, struct copies_file *file,
		   struct krange range)
{
	file->since_ns = now_ns();
	cds_list_add(&file->notifying, &copies->notifying);
	if (!cds_list_empty(&file->waits))
		pthread_cond_signal(&copies->clock);
	pthread_mutex_unlock(&copies->lock);
	copies->ops.drop_pages(copies->arg, file->nodeid, range);
	pthread_mutex_lock(&copies->lock);
	cds_list_del_init(&file->notifying);
	kpages_notified(&file->pages);
}

static void recall_pages(struct copies *copies, uint64_t nodeid)
{
	struct copies_file *file;
	struct krange range;

	pthread_mutex_lock(&copies->lock);
	while (!(file = file_get(copies, nodeid))) {
		pthread_mutex_unlock(&copies->lock);
		pause_ns(RETRY_MAX_NS);
		pthread_mutex_lock(&copies->lock);
	}
	file->pins++;
	kpages_recall(&file->pages);
	while (kpages_next(&file->pages, &range))
		notify(copies, file, range);
	file->pins--;
	file->recalled_ns = now_ns();
	resume_some(copies, file);
	pthread_mutex_unlock(&copies->lock);
}

static bool is_stopped(struct copies *copies)
{
	bool stopped;

	pthread_mutex_lock(&copies->lock);
	stopped = copies->stopped;
	pthread_mutex_unlock(&copies->lock);
	return stopped;
}

/* An unmounted kernel knows nothing, and forgets nothing: stopped is set then.
 */
static void recall_attr(struct copies *copies, uint64_t nodeid)
{
	uint64_t begin = now_ns(), pause = RETRY_MIN_NS;

	while (copies->ops.drop_attr(copies->arg, nodeid) == -ENOENT &&
	       copies->ops.is_known(copies->arg, nodeid) &&
	       !is_stopped(copies)) {
		if (now_ns() - begin > RETRY_GIVE_UP_NS) {
			ug_error("fuse",
				 "the kernel neither knows nor forgets node "
				 "%llu",
				 (unsigned long long)nodeid);
			return;
		}
		pause_ns(pause);
		pause = UG_MIN(2 * pause, RETRY_MAX_NS);
	}
}

static bool recall_begins(struct copies *copies)
{
	bool begins;

	pthread_mutex_lock(&copies->lock);
	begins = !copies->stopped;
	copies->recalls += begins;
	pthread_mutex_unlock(&copies->lock);
	return begins;
}

static void recall_ends(struct copies *copies)
{
	pthread_mutex_lock(&copies->lock);
	if (--copies->recalls == 0)
		pthread_cond_broadcast(&copies->idle);
	pthread_mutex_unlock(&copies->lock);
}

void copies_recall(struct copies *copies, uint64_t nodeid)
{
	if (!recall_begins(copies))
		return;
	recall_pages(copies, nodeid);
	recall_attr(copies, nodeid);
	recall_ends(copies);
}
