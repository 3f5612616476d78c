/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * record.c - the log of writes and flushes, and images of a crashed disk.
 *
 * Concurrency is what makes durability subtle. Each write notes how many
 * events there were when it returned (returned_at), each flush how many there
 * were when it was called (covers). A write is durable by that flush if
 * returned_at <= covers: it had returned before the flush began.
 *
 *   events:       0 write A    1 write B    2 flush
 *   A returns when 1 event exists: returned_at 1
 *   flush is called then:          covers 1    -> A is durable
 *   B is issued during the flush, returned_at 2 -> B is not
 *
 * Locks: rec->lock guards the array of events. Their data never change.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "block/pagestore.h"
#include "block/record.h"

/* How much is copied at once from and to devices. */
#define COPY_BYTES (1u << 20)

#define NEVER SIZE_MAX

struct event {
	enum record_kind kind;
	bool fua;
	bool failed;
	uint64_t offset_bytes;
	uint64_t len_bytes;
	uint8_t *data;
	size_t returned_at; /* of a write; NEVER: in flight, or failed */
	/* The largest `covers` of the flushes up to this event, included. */
	size_t covered;
};

struct record {
	pthread_mutex_t lock;
	uint64_t size_bytes;
	uint32_t sector_bytes;
	struct pagestore base;
	struct event *events;
	size_t count;
	size_t capacity;
};

struct recdev {
	struct blkdev dev;
	struct record *rec;
};

/* Caller holds the lock. The new event, or NULL without memory. */
static struct event *event_add(struct record *rec, enum record_kind kind)
{
	struct event *ev;

	if (rec->count == rec->capacity) {
		size_t capacity = rec->capacity ? 2 * rec->capacity : 1024;
		struct event *events =
			reallocarray(rec->events, capacity, sizeof(*events));

		if (!events)
			return NULL;
		rec->events = events;
		rec->capacity = capacity;
	}
	ev = &rec->events[rec->count];
	*ev = (struct event){ .kind = kind, .returned_at = NEVER };
	if (rec->count)
		ev->covered = ev[-1].covered;
	rec->count++;
	return ev;
}

static uint8_t *iov_copy(const struct iovec *iov, int iovcnt,
			 uint64_t len_bytes)
{
	uint8_t *data = malloc(len_bytes);
	uint8_t *to = data;

	if (!data)
		return NULL;
	for (int i = 0; i < iovcnt; i++) {
		memcpy(to, iov[i].iov_base, iov[i].iov_len);
		to += iov[i].iov_len;
	}
	return data;
}

/* Enter a write that is about to be issued. *index is its number. */
static int record_write_issued(struct record *rec, const struct iovec *iov,
			       int iovcnt, uint64_t offset_bytes, bool fua,
			       size_t *index)
{
	uint64_t len_bytes = layer_iov_bytes(iov, iovcnt);
	uint8_t *data = iov_copy(iov, iovcnt, len_bytes);
	struct event *ev;

	if (!data)
		return -ENOMEM;
	pthread_mutex_lock(&rec->lock);
	ev = event_add(rec, RECORD_WRITE);
	if (ev) {
		ev->fua = fua;
		ev->offset_bytes = offset_bytes;
		ev->len_bytes = len_bytes;
		ev->data = data;
		*index = rec->count - 1;
	}
	pthread_mutex_unlock(&rec->lock);
	if (ev)
		return 0;
	free(data);
	return -ENOMEM;
}

static void record_write_returned(struct record *rec, size_t index, int err)
{
	pthread_mutex_lock(&rec->lock);
	if (err)
		rec->events[index].failed = true;
	else
		rec->events[index].returned_at = rec->count;
	pthread_mutex_unlock(&rec->lock);
}

static int record_writev(struct blkdev *dev, const struct iovec *iov,
			 int iovcnt, uint64_t offset_bytes, unsigned flags)
{
	struct record *rec = ug_container_of(dev, struct recdev, dev)->rec;
	size_t index;
	int err = record_write_issued(rec, iov, iovcnt, offset_bytes,
				      flags & BLK_FUA, &index);

	if (err)
		return err;
	err = blkdev_writev(dev->lower, iov, iovcnt, offset_bytes, flags);
	record_write_returned(rec, index, err);
	return err;
}

static int record_readv(struct blkdev *dev, const struct iovec *iov, int iovcnt,
			uint64_t offset_bytes)
{
	return blkdev_readv(dev->lower, iov, iovcnt, offset_bytes);
}

static int record_flush(struct blkdev *dev)
{
	struct record *rec = ug_container_of(dev, struct recdev, dev)->rec;
	size_t covers = record_count(rec);
	struct event *ev;
	int err = blkdev_flush(dev->lower);

	pthread_mutex_lock(&rec->lock);
	ev = event_add(rec, RECORD_FLUSH);
	if (ev && err)
		ev->failed = true;
	else if (ev)
		ev->covered = UG_MAX(ev->covered, covers);
	pthread_mutex_unlock(&rec->lock);
	return err || ev ? err : -ENOMEM;
}

static void record_close(struct blkdev *dev)
{
	free(ug_container_of(dev, struct recdev, dev));
}

static const struct blkdev_ops record_ops = {
	.readv = record_readv,
	.writev = record_writev,
	.flush = record_flush,
	.close = record_close,
};

static bool is_zero(const char *data, uint64_t len_bytes)
{
	return data[0] == 0 && !memcmp(data, data + 1, len_bytes - 1);
}

/* Copy what is not zero of a piece of the device, read into buf. */
static int snapshot_piece(struct pagestore *base, const char *buf,
			  uint64_t offset_bytes, uint64_t len_bytes)
{
	for (uint64_t pos = 0; pos < len_bytes; pos += PAGESTORE_PAGE) {
		uint64_t n = UG_MIN(len_bytes - pos, PAGESTORE_PAGE);
		int err;

		if (is_zero(buf + pos, n))
			continue;
		err = pagestore_write(base, offset_bytes + pos, buf + pos, n);
		if (err)
			return err;
	}
	return 0;
}

static int snapshot(struct pagestore *base, struct blkdev *dev)
{
	char *buf = blkdev_alloc(COPY_BYTES);
	uint64_t pos = 0;
	int err = 0;

	if (!buf)
		return -ENOMEM;
	while (!err && pos < dev->size_bytes) {
		uint64_t n = UG_MIN(dev->size_bytes - pos, COPY_BYTES);

		err = blkdev_read(dev, buf, n, pos);
		if (!err)
			err = snapshot_piece(base, buf, pos, n);
		pos += n;
	}
	free(buf);
	return err;
}

int record_create(struct blkdev *lower, struct record **recp,
		  struct blkdev **devp)
{
	struct record *rec = calloc(1, sizeof(*rec));
	struct recdev *rdev = calloc(1, sizeof(*rdev));
	int err = -ENOMEM;

	if (!rec || !rdev)
		goto free_both;
	rec->size_bytes = lower->size_bytes;
	rec->sector_bytes = lower->sector_bytes;
	err = pagestore_init(&rec->base, lower->size_bytes);
	if (err)
		goto free_both;
	err = snapshot(&rec->base, lower);
	if (err)
		goto fini_base;
	pthread_mutex_init(&rec->lock, NULL);
	layer_init(&rdev->dev, &record_ops, lower, "record");
	rdev->rec = rec;
	*recp = rec;
	*devp = &rdev->dev;
	return 0;

fini_base:
	pagestore_fini(&rec->base);
free_both:
	free(rdev);
	free(rec);
	return err;
}

void record_destroy(struct record *rec)
{
	for (size_t i = 0; i < rec->count; i++)
		free(rec->events[i].data);
	free(rec->events);
	pagestore_fini(&rec->base);
	pthread_mutex_destroy(&rec->lock);
	free(rec);
}

size_t record_count(struct record *rec)
{
	size_t count;

	pthread_mutex_lock(&rec->lock);
	count = rec->count;
	pthread_mutex_unlock(&rec->lock);
	return count;
}

void record_event(struct record *rec, size_t index, struct record_event *ev)
{
	const struct event *from;

	pthread_mutex_lock(&rec->lock);
	from = &rec->events[index];
	*ev = (struct record_event){
		.kind = from->kind,
		.fua = from->fua,
		.failed = from->failed,
		.offset_bytes = from->offset_bytes,
		.len_bytes = from->len_bytes,
		.data = from->data,
	};
	pthread_mutex_unlock(&rec->lock);
}

/*
 * The moment of the crash is as late as can be with upto events: just before
 * the next one was entered. With last_in_flight it is as early as can be.
 * This is the number of events that were over and done with.
 */
static size_t crash_done(const struct record_crash *crash)
{
	return crash->upto && crash->last_in_flight ? crash->upto - 1
						    : crash->upto;
}

/* Writes with returned_at up to this are durable by a flush. */
static size_t crash_covered(const struct record *rec,
			    const struct record_crash *crash)
{
	size_t done = crash_done(crash);

	return done ? rec->events[done - 1].covered : 0;
}

/* May this event, below crash->upto, be missing? Caller holds the lock. */
static bool event_pending(const struct record *rec,
			  const struct record_crash *crash, size_t index,
			  size_t covered)
{
	const struct event *ev = &rec->events[index];

	if (ev->kind != RECORD_WRITE)
		return false;
	if (ev->fua && ev->returned_at <= crash_done(crash))
		return false;
	return ev->returned_at > covered;
}

size_t record_pending(struct record *rec, const struct record_crash *crash,
		      size_t *events, size_t max)
{
	size_t found = 0;

	pthread_mutex_lock(&rec->lock);
	if (crash->upto <= rec->count) {
		size_t covered = crash_covered(rec, crash);

		for (size_t i = 0; i < crash->upto; i++) {
			if (!event_pending(rec, crash, i, covered))
				continue;
			if (found < max)
				events[found] = i;
			found++;
		}
	}
	pthread_mutex_unlock(&rec->lock);
	return found;
}

/* Returns false when the write is kept whole. */
static bool loss_random(struct ug_prng *prng, uint64_t sectors,
			struct record_loss *loss)
{
	switch (ug_prng_below(prng, 4)) {
	case 0:
	case 1:
		return false;
	case 2:
		loss->first_sector = 0;
		loss->sectors_count = 0;
		return true;
	default:
		loss->first_sector = ug_prng_below(prng, sectors);
		loss->sectors_count =
			ug_prng_below(prng, sectors - loss->first_sector);
		return true;
	}
}

size_t record_losses_random(struct record *rec,
			    const struct record_crash *crash,
			    struct ug_prng *prng, struct record_loss *losses)
{
	size_t stored = 0;

	pthread_mutex_lock(&rec->lock);
	if (crash->upto <= rec->count) {
		size_t covered = crash_covered(rec, crash);

		for (size_t i = 0; i < crash->upto; i++) {
			uint64_t sectors =
				rec->events[i].len_bytes / rec->sector_bytes;

			if (!event_pending(rec, crash, i, covered))
				continue;
			losses[stored].event = i;
			if (loss_random(prng, sectors, &losses[stored]))
				stored++;
		}
	}
	pthread_mutex_unlock(&rec->lock);
	return stored;
}

/* What the disk holds after a crash: a device over a store of pages. */
struct imagedev {
	struct blkdev dev;
	pthread_mutex_t lock;
	struct pagestore store;
};

static int image_readv(struct blkdev *dev, const struct iovec *iov, int iovcnt,
		       uint64_t offset_bytes)
{
	struct imagedev *img = ug_container_of(dev, struct imagedev, dev);

	pthread_mutex_lock(&img->lock);
	for (int i = 0; i < iovcnt; i++) {
		pagestore_read(&img->store, offset_bytes, iov[i].iov_base,
			       iov[i].iov_len);
		offset_bytes += iov[i].iov_len;
	}
	pthread_mutex_unlock(&img->lock);
	return 0;
}

static int image_writev(struct blkdev *dev, const struct iovec *iov, int iovcnt,
			uint64_t offset_bytes, unsigned flags)
{
	struct imagedev *img = ug_container_of(dev, struct imagedev, dev);
	int err = 0;

	pthread_mutex_lock(&img->lock);
	for (int i = 0; !err && i < iovcnt; i++) {
		err = pagestore_write(&img->store, offset_bytes,
				      iov[i].iov_base, iov[i].iov_len);
		offset_bytes += iov[i].iov_len;
	}
	pthread_mutex_unlock(&img->lock);
	return err;
}

static int image_flush(struct blkdev *dev)
{
	return 0;
}

static void image_close(struct blkdev *dev)
{
	struct imagedev *img = ug_container_of(dev, struct imagedev, dev);

	pagestore_fini(&img->store);
	pthread_mutex_destroy(&img->lock);
	free(img);
}

static const struct blkdev_ops image_ops = {
	.readv = image_readv,
	.writev = image_writev,
	.flush = image_flush,
	.close = image_close,
};

/* Put the sectors of a write that arrived into the store. */
static int apply_event(struct pagestore *store, const struct event *ev,
		       const struct record_loss *loss, uint32_t sector_bytes)
{
	uint64_t skip, len;

	if (!loss)
		return pagestore_lend(store, ev->offset_bytes, ev->data,
				      ev->len_bytes);
	if (!loss->sectors_count)
		return 0;
	skip = loss->first_sector * sector_bytes;
	len = loss->sectors_count * sector_bytes;
	if (loss->first_sector >= ev->len_bytes / sector_bytes ||
	    loss->sectors_count > ev->len_bytes / sector_bytes ||
	    len > ev->len_bytes - skip)
		return -EINVAL;
	return pagestore_lend(store, ev->offset_bytes + skip, ev->data + skip,
			      len);
}

/* Caller holds the lock; store is a copy of the base. */
static int apply_events(struct record *rec, const struct record_crash *crash,
			struct pagestore *store)
{
	size_t covered, next = 0; /* index of the next loss */

	if (crash->upto > rec->count)
		return -EINVAL;
	covered = crash_covered(rec, crash);
	for (size_t i = 0; i < crash->upto; i++) {
		const struct event *ev = &rec->events[i];
		const struct record_loss *loss = NULL;
		int err;

		if (next < crash->losses_count &&
		    crash->losses[next].event == i)
			loss = &crash->losses[next];

		if (loss && !event_pending(rec, crash, i, covered))
			return -EINVAL;
		if (ev->kind != RECORD_WRITE)
			continue;
		err = apply_event(store, ev, loss, rec->sector_bytes);
		if (err)
			return err;
		next += loss != NULL;
	}
	/* One that names nothing, or comes out of order. */
	return next == crash->losses_count ? 0 : -EINVAL;
}

int record_image(struct record *rec, const struct record_crash *crash,
		 struct blkdev **devp)
{
	struct imagedev *img = calloc(1, sizeof(*img));
	int err = -ENOMEM;

	if (!img)
		return -ENOMEM;
	err = pagestore_init_copy(&img->store, &rec->base);
	if (err)
		goto free_img;
	pthread_mutex_lock(&rec->lock);
	err = apply_events(rec, crash, &img->store);
	pthread_mutex_unlock(&rec->lock);
	if (err)
		goto fini_store;
	pthread_mutex_init(&img->lock, NULL);
	img->dev.ops = &image_ops;
	img->dev.size_bytes = rec->size_bytes;
	img->dev.sector_bytes = rec->sector_bytes;
	img->dev.name = "image";
	*devp = &img->dev;
	return 0;

fini_store:
	pagestore_fini(&img->store);
free_img:
	free(img);
	return err;
}

static int copy_store(const struct pagestore *store, uint64_t size_bytes,
		      struct blkdev *dev)
{
	char *buf = blkdev_alloc(COPY_BYTES);
	int err = 0;

	if (!buf)
		return -ENOMEM;
	for (uint64_t pos = 0; !err && pos < size_bytes; pos += COPY_BYTES) {
		uint64_t n = UG_MIN(size_bytes - pos, COPY_BYTES);

		if (pagestore_is_absent(store, pos, n))
			continue;
		pagestore_read(store, pos, buf, n);
		err = blkdev_write(dev, buf, n, pos, 0);
	}
	free(buf);
	return err ? err : blkdev_flush(dev);
}

int record_replay_onto(struct record *rec, const struct record_crash *crash,
		       struct blkdev *dev)
{
	struct blkdev *image;
	struct imagedev *img;
	int err;

	if (dev->size_bytes < rec->size_bytes ||
	    dev->sector_bytes > rec->sector_bytes)
		return -EINVAL;
	err = record_image(rec, crash, &image);
	if (err)
		return err;
	img = ug_container_of(image, struct imagedev, dev);
	err = copy_store(&img->store, rec->size_bytes, dev);
	blkdev_close(image);
	return err;
}
