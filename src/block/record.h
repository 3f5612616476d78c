/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * record.h - a layer that remembers every write and flush, and shows the
 * disk as a loss of power at any moment could have left it.
 *
 * What is durable at the crash, and what may have happened to the rest:
 *
 *   write A   flush   write B   write C (FUA)   write D   <- crash
 *   durable           ?         durable         ?
 *
 * A write marked ? may have reached the disk, or not, or in part: the test
 * says which by a list of losses. Writes to one sector are never reordered
 * among themselves. A flush covers the writes that had returned when it was
 * called; a write with BLK_FUA is durable once it has returned.
 *
 * The record is kept apart from the device: it stays when the program under
 * test closes what it has been given. Memory: one copy of what was
 * written, plus the pages of the device that were not zero at the beginning.
 * Threads: any. Devices of some GiB at most (16 bytes per 4 KiB of size for
 * the record and for each image).
 */
#ifndef UG_BLOCK_RECORD_H
#define UG_BLOCK_RECORD_H

#include "base/prng.h"
#include "block/layer.h"

struct record;

/*
 * Reads lower once, whole, as the state before the first event. lower
 * belongs to *devp then; the record is released by record_destroy(), after
 * the device has been closed. 0, -ENOMEM, or the error of reading.
 */
int record_create(struct blkdev *lower, struct record **recp,
		  struct blkdev **devp);
/* No image made from it may be in use. */
void record_destroy(struct record *rec);

enum record_kind {
	RECORD_WRITE,
	RECORD_FLUSH,
};

struct record_event {
	enum record_kind kind;
	bool fua;
	bool failed; /* the device below failed it: may have happened or not */
	uint64_t offset_bytes;
	uint64_t len_bytes;
	const void *data; /* the record's, stays until record_destroy() */
};

/*
 * The number of events until now. Events are numbered from 0; a write is
 * entered when it is issued, a flush when it has returned.
 */
size_t record_count(struct record *rec);

/* index < record_count(). */
void record_event(struct record *rec, size_t index, struct record_event *ev);

/* Of the write with this number only sectors [first, first + count) arrived. */
struct record_loss {
	size_t event;
	uint64_t first_sector;	/* within the write */
	uint64_t sectors_count; /* 0: all is lost */
};

struct record_crash {
	size_t upto; /* events [0, upto) had been issued */
	/*
	 * The last of them had not returned, nor had others that were under
	 * way when it was issued: a flush has done nothing, a write can be
	 * lost even if it is FUA. Use it to tear a log header.
	 */
	bool last_in_flight;
	const struct record_loss *losses; /* by ascending event */
	size_t losses_count;
};

/*
 * The writes that may be missing after this crash (its losses are not looked
 * at). Stores up to max of their numbers, ascending; returns how many there
 * are in all. max 0 with events NULL is allowed.
 */
size_t record_pending(struct record *rec, const struct record_crash *crash,
		      size_t *events, size_t max);

/*
 * Choose a fate for each write that may be missing: lost, kept, or torn.
 * losses has room for record_pending(); returns how many were stored. The
 * same seed gives the same losses.
 */
size_t record_losses_random(struct record *rec,
			    const struct record_crash *crash,
			    struct ug_prng *prng, struct record_loss *losses);

/*
 * The disk after the crash, as a new device in memory that may be written.
 * Cheap: a pointer per page, no copies. 0; -ENOMEM; -EINVAL when upto is
 * beyond the end, or a loss names something that was durable.
 */
int record_image(struct record *rec, const struct record_crash *crash,
		 struct blkdev **devp);

/*
 * The same onto a device that reads as zeros (a new image file, say, for a
 * tool to check). -EINVAL also when it is smaller, or its sectors larger.
 */
int record_replay_onto(struct record *rec, const struct record_crash *crash,
		       struct blkdev *dev);

#endif
