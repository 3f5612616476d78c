/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * session.h - serving a mount: from INIT until it is unmounted.
 *
 *	kernel -> reader thread: read, decode, handler "inline"
 *		    |  answered from memory: reply from the same thread
 *		    |
 *		    |  would have to wait (-EAGAIN): the request as a whole
 *		    +--> work lane: handler again, may wait ----------> reply
 *		    +--> urgent lane: what others wait for -----------> reply
 *		    +--> notifier lane: must notify the kernel first -> reply
 *
 * What waits for a lock of another node holds no thread (lockwait.c):
 *
 *	work lane: handler --> parked .. fuse_reply_resume() --> granted lane:
 *	handler again; several locks, lost again and again --> patient lane: may
 *	wait for them
 *
 * A request costs 3 microseconds when the thread that reads it answers it and
 * 10 when another has to wake up (docs/spec/fuse.md 1.1), so readers try
 * everything at once, and never wait. There is always a reader in read():
 * they are more than one, and none does more than copy a megabyte.
 *
 * The session knows nothing of files: the handler does.
 *
 * Threads: stop, invalidate, park, waits and stats from any thread, the rest
 *from one. Source: DESIGN 6; docs/spec/fuse.md 1, 3, 8.8.
 */
#ifndef UG_FUSE_SESSION_H
#define UG_FUSE_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "fuse/conn.h"
#include "fuse/proto.h"
#include "fuse/slot.h"
#include "fuse/waits.h"

struct fuse_session;

/* Where a handler runs, and so what it may do. */
enum fuse_place {
	/* On a reader: must not wait. Returns -EAGAIN if it would have to,
	 * before any visible effect, and is called again elsewhere. */
	FUSE_INLINE,
	/* On a lane: may wait for the disk, not for locks of other nodes. */
	FUSE_WORKER,
	/* On the patient lane: may wait for those, too. */
	FUSE_PATIENT,
	/* On the notifier lane: may wait for notifications too. */
	FUSE_NOTIFIER,
};

/* From an inline or worker call: call me again on the notifier lane. */
#define FUSE_TO_NOTIFIER 1
/*
 * Nothing is answered now, but later: call me again when await() has returned.
 * From inline and worker calls, before any visible effect; also from answer().
 */
#define FUSE_LATER 2
/*
 * From an inline or worker call, before any effect: call me again on the work
 * lane after fuse_session_park(false), without holding a thread until then. If
 * requests are not parked, at once.
 */
#define FUSE_PARK 3
/*
 * From a worker call: call me again, as a worker, when fuse_reply_resume() has
 * been called for this reply. That may be before the call has returned.
 */
#define FUSE_LOCKWAIT 4
/* From a worker call: call me again on the patient lane. */
#define FUSE_TO_PATIENT 5
/*
 * From an inline or worker call: it is under way elsewhere, and may have its
 * effect there. fuse_reply_done() answers it, or fuse_reply_resume() has it
 * called again, as a worker; either may come before this call has returned.
 */
#define FUSE_UNDERWAY 6

struct fuse_handler {
	/*
	 * INIT has been answered; the first request comes afterwards. An error
	 * ends the session.
	 */
	int (*start)(void *ctx, const struct fuse_agreed *agreed);
	/*
	 * Serve a request: 0 with reply filled in, or a negative errno for the
	 * caller (EAGAIN as FUSE_WOULD_BLOCK), -EAGAIN, FUSE_TO_NOTIFIER or
	 * one of the others above. body_len and data_len are 0 on entry. For a
	 * request without an answer the result is ignored. Called from many
	 * threads at once. INTERRUPT, INIT, DESTROY and opcodes without a name
	 * never come here.
	 */
	int (*handle)(void *ctx, const struct fuse_request *req,
		      struct fuse_reply *reply, enum fuse_place place);
	/*
	 * The request has been served with this result: the one to answer with,
	 * or FUSE_LATER if nothing may be answered any more, until await()
	 * returns and this is asked again. NULL: the result.
	 */
	int (*answer)(void *ctx, const struct fuse_request *req, int result);
	/* Wait until requests are answered. Needed by who says FUSE_LATER. */
	void (*await)(void *ctx);
	/*
	 * A parked request will not be called again: whatever it waits for.
	 * fuse_reply_resume() may be running, and is not when this has
	 * returned. NULL: no request is ever parked.
	 */
	void (*give_up)(void *ctx, struct fuse_reply *reply);
	/*
	 * One that is under way, with this reply->call.cancel_id, has been
	 * interrupted: see that it ends soon. It may have ended already. NULL:
	 * none has such a number.
	 */
	void (*cancel)(void *ctx, uint64_t cancel_id);
	/*
	 * The session ends: send no notification from now on, and return when
	 * none is under way. Requests are still served; but what has been put
	 * under way (FUSE_UNDERWAY) ends, and nothing is any more. May be NULL.
	 */
	void (*stop)(void *ctx);
};

/*
 * What the request waited for has come; any thread, takes a lock of the session
 * and one of a lane.
 */
void fuse_reply_resume(struct fuse_reply *reply);

/*
 * What was under way has ended, with this result; the reply is filled in. It is
 * answered by this thread. Once, from any thread that holds nothing a handler's
 * answer() can want; takes the same locks, and makes a system call.
 *
 * -EINTR of one that has not been interrupted is not answered: it is called
 * again.
 */
void fuse_reply_done(struct fuse_reply *reply, int result);

struct fuse_session_params {
	struct fuse_conn *conn; /* mounted; borrowed */
	const struct fuse_handler *handler;
	void *ctx; /* of the handler */
	struct fuse_wants wants;
	const char *who; /* for the log; borrowed */
	/*
	 * From the thread of fuse_session_run(), once the mount can be used:
	 * time to tell whoever waits for it. May be NULL.
	 */
	void (*ready)(void *arg);
	void *ready_arg;
	/* 0: the default. */
	unsigned readers;
	unsigned workers_max;  /* of the work lane */
	unsigned requests_max; /* in progress at once: memory, see slot.h */
	unsigned interrupt_patience_ms;
};

#define FUSE_READERS_DEFAULT 2u
#define FUSE_READERS_MAX 32u
#define FUSE_WORKERS_MIN 2u
#define FUSE_WORKERS_DEFAULT 64u
/* Of 1 MiB address space each; memory as far as they are used. */
#define FUSE_REQUESTS_DEFAULT 1024u
#define FUSE_REQUESTS_MIN 16u
/*
 * An interrupted request that has not begun after that time is answered
 * EINTR. Longer than a disk under load lets a request wait, so that no timer's
 * signal makes a system call fail; short enough for somebody who waits for
 * killed processes to go away.
 */
#define FUSE_INTERRUPT_PATIENCE_MS_DEFAULT 10000u
/*
 * The same for a parked request (FUSE_LOCKWAIT, FUSE_PARK), which waits for
 * another node or until somebody thaws the volume, perhaps for hours; at most
 * interrupt_patience_ms.
 */
#define FUSE_PARK_PATIENCE_MS 1000u

/* 0, -ENOMEM, -EAGAIN (no threads), -EINVAL. */
int fuse_session_create(const struct fuse_session_params *params,
			struct fuse_session **sessionp);

/*
 * Serve until the end. Afterwards no thread of the session runs and every
 * request that was read has been answered. Returns
 *   0            unmounted, or fuse_session_stop();
 *   -ECONNABORTED  aborted by an administrator (fusectl, umount -f);
 *   -EPROTO, ...   INIT failed: nothing was ever served;
 *   other        the error of the handler's start(), of starting threads, or
 *                of reading the device.
 *
 * Uses SIGURG to get its readers out of read(): sets its disposition, once
 * for the process.
 */
int fuse_session_run(struct fuse_session *session);

/*
 * Make fuse_session_run() return soon. The mount is still there, without
 * anybody to serve it: fuse_conn_unmount() or fuse_conn_close() comes next.
 */
void fuse_session_stop(struct fuse_session *session);

/*
 * After fuse_session_run() has returned. A fuseblk mount's umount(2) is still
 * waiting then, so that the volume can be brought to rest: it returns when
 * this is called. NULL is accepted.
 */
void fuse_session_destroy(struct fuse_session *session);

/*
 * The kernel's attributes of the node, or with data its pages too, are out of
 * date. Attributes are gone on return; pages soon, from a thread that may
 * wait. For fs_host_ops.invalidate.
 */
void fuse_session_invalidate(struct fuse_session *session, uint64_t nodeid,
			     bool data);

/*
 * Keep those that ask for it (FUSE_PARK), from now on; or let them go on. Call
 * it before what they wait for is there, and after it has gone.
 */
void fuse_session_park(struct fuse_session *session, bool frozen);

/* Powers of two of nanoseconds: [i] counts times in [2^i, 2^(i+1)). */
#define FUSE_HISTOGRAM 40u

struct fuse_session_stats {
	uint64_t requests;    /* read from the device */
	uint64_t inline_done; /* answered by the reader */
	uint64_t handed_over; /* to any lane */
	uint64_t interrupts;
	uint64_t interrupted; /* requests answered EINTR because of one */
	uint64_t malformed;
	uint64_t by_opcode[FUSE_OPCODES];
	/* Time in the handler and in writing the answer: one request in 32. */
	uint64_t inline_ns[FUSE_HISTOGRAM];
	/* From hand-over to the answer: every request. */
	uint64_t lane_ns[FUSE_HISTOGRAM];
	unsigned readers;
	unsigned workers, workers_peak;
	unsigned queued, queued_peak; /* work lane */
	unsigned slots;		      /* requests that have memory */
};

void fuse_session_get_stats(struct fuse_session *session,
			    struct fuse_session_stats *out);

/* Add the requests that were handed over and are not yet answered. */
void fuse_session_waits(struct fuse_session *session, struct fuse_waits *waits);

#endif
