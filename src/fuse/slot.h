/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * slot.h - a request in progress: its bytes, what they mean, its answer.
 *
 *	page 0                                       page 1
 *	| struct fuse_slot ...  | 80 bytes: headers  | bytes of a WRITE ...
 *	^                       ^ in                 ^ data, data_max bytes
 *
 * One read of the device at "in" puts the bytes of a WRITE at a page boundary,
 * fit for O_DIRECT, without a copy. The same pages take the bytes of a
 * READ's answer, whose header is put before them: what a request brought
 * there is decoded by then. Of GETXATTR alone the name may reach so far: it is
 * not looked at any more when the answer is put there.
 *
 * Memory is reserved per slot but used only as far as it was touched, so that
 * hundreds of small requests waiting for a disk cost two pages each.
 *
 * Threads: the pool has its own lock; a slot belongs to one thread at a time.
 */
#ifndef UG_FUSE_SLOT_H
#define UG_FUSE_SLOT_H

#include <stdbool.h>
#include <stdint.h>
#include <urcu/list.h>

#include "fs/fs.h"
#include "fuse/copies.h"
#include "fuse/proto.h"

/* What is under way elsewhere (FUSE_UNDERWAY): the handler's. */
struct fuse_call {
	uint64_t cancel_id; /* for the handler's cancel(); 0: it just ends */
	uint64_t nodeid;
	int kind;
};

/*
 * An error to be answered as EAGAIN: from an inline call -EAGAIN itself would
 * mean something else.
 */
#define FUSE_WOULD_BLOCK (-4096)

/*
 * What a handler fills in. Success without body and data is an answer too.
 * data_len wins over body_len.
 */
struct fuse_reply {
	struct fuse_out_header head; /* the session's; body follows at once */
	union {
		struct fuse_entry_out entry;
		struct {
			struct fuse_entry_out entry;
			struct fuse_open_out open;
		} create;
		struct fuse_attr_out attr;
		struct fuse_open_out open;
		struct fuse_write_out write;
		struct fuse_statfs_out statfs;
		struct fuse_getxattr_out getxattr;
		struct fuse_lk_out lk;
	};
	/*
	 * The handler's, from one call for a request to the next; 0 in the
	 * first. Not 0: the request has had its effect, and only waits to
	 * be answered. The union keeps its content then.
	 */
	uint64_t carry;
	/* What it waits for without a thread (FUSE_LOCKWAIT); the handler's. */
	struct fs_park park;
	struct copies_read fill;
	struct fuse_call call;
	unsigned parks;	 /* how often it has been parked */
	size_t body_len; /* bytes of the union's member; 0: none */
	char *data;	 /* page aligned */
	size_t data_max;
	size_t data_len; /* bytes of data; 0: none */
};

struct fuse_session;

/* What ends the wait of a parked request. */
enum slot_wait {
	WAIT_RESUME, /* FUSE_LOCKWAIT: fuse_reply_resume() */
	WAIT_THAW,   /* FUSE_PARK: fuse_session_park(false) */
	WAIT_CALL,   /* FUSE_UNDERWAY: fuse_reply_done(), and nothing else */
};

struct fuse_slot {
	/* Pool's free list, a lane's queue, or the session's parked ones. */
	struct cds_list_head link;
	struct fuse_session *session; /* that has read it */
	struct fuse_request req;
	struct fuse_reply reply;
	int fd;		  /* it was read from, and is answered to */
	bool interrupted; /* INTERRUPT has come for it */
	bool served;	  /* with this result, which cannot be answered yet */
	int result;
	bool parked;	     /* on the session's list; its lock guards this */
	enum slot_wait wait; /* there: for what */
	bool resumed;	     /* before it was on that list; the same */
	uint64_t read_ns;    /* CLOCK_MONOTONIC when it was handed over */
};

/*
 * May it have had its effect? Then it is answered with its own result: the
 * kernel gives back only what it was told it has (a lookup, an open file).
 */
static inline bool slot_has_had_effect(const struct fuse_slot *slot)
{
	return slot->reply.carry || slot->served;
}

struct slot_pool;

/* At most max slots exist. 0 or -ENOMEM. */
int slot_pool_create(unsigned max, struct slot_pool **poolp);
/* Every slot must be back. NULL is accepted. */
void slot_pool_destroy(struct slot_pool *pool);

/* A free slot; waits for one when there are max, or no memory, already. */
struct fuse_slot *slot_get(struct slot_pool *pool);
/* Like slot_get(), but NULL instead of waiting. */
struct fuse_slot *slot_try_get(struct slot_pool *pool);
void slot_put(struct slot_pool *pool, struct fuse_slot *slot);

/* Slots that exist, free ones included. */
unsigned slot_pool_count(struct slot_pool *pool);

/* Where the device is read to, and how much may come. */
void *slot_in(struct fuse_slot *slot);
#define SLOT_IN_MAX (FUSE_WRITE_HEAD + FUSE_MAX_WRITE)

/*
 * Send the answer: err (0 or negative) alone, or what the reply holds.
 * 0; -ENOENT the kernel waits for it no more; -ENODEV; else a fault of ours.
 */
int slot_answer(struct fuse_slot *slot, int err);

#endif
