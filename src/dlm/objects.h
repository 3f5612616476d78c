/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * objects.h - locks and resources, for the files of this folder only.
 *
 * Two ways to say where a resource is mastered are one too many (spec 1.2):
 * res_master is the node id, our own included, or 0 while unknown.
 */
#ifndef UG_DLM_OBJECTS_H
#define UG_DLM_OBJECTS_H

#include <assert.h>
#include <stdint.h>
#include <urcu/list.h>

#include "dlm/dlm.h"

/*
 * lkb_flags. The low half travels (spec 1.3).
 *   USER            made by an application; set at birth, never cleared
 *   ORPHAN          owner gone, lock kept; set by close, cleared by adoption
 *   LVB_DOUBT       the lock's own copy of the value block was marked invalid
 *                   when it was read; ours, Linux nodes neither set nor read
 *                   it, and take such a copy for a good one after a crash
 *   MSTCPY          twin of another member's lock; set at birth
 *   RESEND          recovery will repeat the operation in flight; set by
 *                   recovery, cleared by any reply and by the repetition
 *   DEAD            owner gone: no more callbacks
 *   OVERLAP_*       unlock or cancel while another operation is in flight
 *   PARKED          on the resource's lookup list
 *   CONVERTING      master copy: set by a recovery LOCK, until the repair of
 *                   conversions; LVB_READ until the next CAST; REBUILD from
 *                   our LOCK to its reply
 *   TIMEOUT_CANCEL, DEADLOCK_CANCEL  what a cancel turns into at the holder
 *   WANTS_BAST      has a blocking function
 */
enum {
	LKB_USER = 0x00000001,
	LKB_ORPHAN = 0x00000002,
	LKB_LVB_DOUBT = 0x00000004,
	LKB_WIRE_MASK = 0x0000ffff,
	LKB_MSTCPY = 0x00010000,
	LKB_RESEND = 0x00020000,
	LKB_DEAD = 0x00040000,
	LKB_OVERLAP_UNLOCK = 0x00080000,
	LKB_OVERLAP_CANCEL = 0x00100000,
	LKB_PARKED = 0x00200000,
	LKB_WANTS_BAST = 0x00400000,
	LKB_TIMEOUT_CANCEL = 0x00800000,
	LKB_DEADLOCK_CANCEL = 0x01000000,
	LKB_CONVERTING = 0x02000000, /* rebuilt with a conversion in flight */
	LKB_LVB_READ = 0x04000000,   /* lvb is to be handed to the user */
	LKB_REBUILD = 0x08000000,    /* a LOCK_REPLY is due */
	/* the highest that lkb_flags has room for: 0x10000000 */
};
#define LKB_OVERLAP (LKB_OVERLAP_UNLOCK | LKB_OVERLAP_CANCEL)

/*
 * res_flags.
 *   UNCERTAIN    the recorded master may have forgotten the resource: one
 *                request at a time until it answers (spec 2.6)
 *   REMASTER     the master is gone; cleared when another is found
 *   NEW_MASTER   found in this recovery or in one that was aborted; kept until
 *                the locks of all are known to be sent (spec 9.1 #6)
 *   LVB_INVALID  VALNOTVALID; cleared by the next write
 *   LVB_LOST     a dead holder could have written (spec 5.6)
 *   GRANT        recovery owes a grant pass
 *   UNPROVED     since the last start, or since its REMOVE, the master has not
 *                said that it still knows the resource; cleared by its NAMES or
 *                its reply
 */
enum {
	RES_UNCERTAIN = 1,
	RES_REMASTER = 2,
	RES_NEW_MASTER = 4,
	RES_LVB_INVALID = 8,
	RES_LVB_LOST = 16,
	RES_GRANT = 32,
	RES_UNPROVED = 64,
};

struct rsb;

/* A value block; bytes is as long as the lockspace says. */
struct lvb {
	uint32_t seq; /* rises with each write */
	uint8_t bytes[];
};

/*
 * 88 bytes, and 8 of malloc() make a multiple of 16: a million of them are
 * held at once.
 */
struct lkb {
	struct lkb *next; /* in the queue of its status, circular */
	struct lkb *prev;
	struct cds_list_head wait; /* in engine->waiters while in flight */
	struct rsb *rsb;
	struct lvb *lvb; /* its own copy; NULL: never had LKF_VALBLK */
	union {
		uint64_t ctx;	       /* of a process here */
		struct lkb *copy_next; /* master copy: copies.c */
	};
	uint32_t id;
	uint32_t remid;
	union {
		int32_t nodeid; /* master copy: the holder */
		uint32_t owner; /* of a process here */
	};
	int32_t wait_nodeid;	 /* whom the operation in flight went to */
	uint32_t exflags : 24;	 /* a flag that is above means nothing */
	uint32_t wait_type : 4;	 /* enum dlm_msg_type of the main operation */
	uint32_t wait_count : 4; /* replies due */
	uint32_t flags : 29;
	uint32_t sbflags : 3;
	uint32_t pid;
	int8_t grmode;
	int8_t rqmode;
	int8_t highbast : 4;	/* highest mode a master has sent a BAST for */
	int8_t castmode : 4;	/* mode of the last CAST: what the user knows */
	uint8_t status : 2;	/* enum dlm_lock_status */
	uint8_t basts_told : 6; /* bit per mode, since the last CAST */
};
static_assert(sizeof(struct lkb) == 88, "a held lock is to stay small");
static_assert(LKF_TIMEOUT < 1 << 24, "exflags is too short");
static_assert(DLM_MSG_PURGE < 16, "wait_type is too short");

struct lkb_queue {
	struct lkb *first;
};

enum rsb_where {
	RSB_KEEP,   /* has locks */
	RSB_TOSS,   /* idle, oldest first */
	RSB_RECORD, /* directory record: another member masters it */
};

/* Between two steps each of its locks is on one of the five queues. */
struct rsb {
	struct rsb *hash_next;
	struct cds_list_head list; /* in engine->keep, toss, records or todo */
	struct lkb_queue granted;
	struct lkb_queue convert;
	struct lkb_queue waiting;
	struct lkb_queue lookup;    /* parked until the master is known */
	struct lkb_queue in_flight; /* the request is under way */
	union {
		struct lvb *lvb;  /* RSB_KEEP; or NULL */
		uint64_t toss_ns; /* else: since when it is idle */
	};
	uint32_t hash;
	uint32_t first_lkid; /* the lock whose request finds the master */
	int32_t master;
	uint32_t nlocks;
	uint8_t flags;
	uint8_t where;
	uint8_t namelen;
	uint8_t name[];
};

#endif
