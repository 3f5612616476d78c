/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ugdlm.h - the distributed lock manager of ugfs, for programs.
 *
 * A process joins a lockspace and takes locks on names in it; processes on
 * other nodes of the same corosync cluster that joined it do the same. Modes,
 * flags and value blocks are those of the VAX and Linux DLM (ugdlm-locks(7)).
 *
 * Threads: any function may be called from any thread unless it says otherwise.
 * Callbacks (asts, basts, events) come from ugdlm_dispatch(), in the order in
 * which they arose for each lock; never two at a time for one lock. Events
 * (struct ugdlm_events) are in order among themselves, one at a time;
 * prepare(), quorate(false) and lost() come when no ast or bast runs. Callbacks
 * may call any function but ugdlm_leave(). What an ast or bast asks for is sent
 * when it has returned, so it must not wait for the answer.
 *
 * Death: a process that joined is a member until it leaves. When it dies, or
 * its host is lost, the others go on only when it is proved dead; see
 * ugdlm_supervise() and the option fence. Its locks end with it. A process
 * joins a lockspace once in its life, and any number of different ones.
 */
#ifndef UGFS_UGDLM_H
#define UGFS_UGDLM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define UGDLM_NAME_MAX 64 /* bytes of a resource name */
#define UGDLM_LVB_LEN 32  /* bytes of a value block */

enum ugdlm_mode {
	UGDLM_IV = -1, /* no lock */
	UGDLM_NL = 0,
	UGDLM_CR = 1,
	UGDLM_CW = 2,
	UGDLM_PR = 3,
	UGDLM_PW = 4,
	UGDLM_EX = 5,
};

/* Flags of ugdlm_lock() and ugdlm_unlock(): see ugdlm-locks(7). */
#define UGDLM_NOQUEUE 0x00000001u
#define UGDLM_CANCEL 0x00000002u /* ugdlm_unlock() only */
#define UGDLM_CONVERT 0x00000004u
#define UGDLM_VALBLK 0x00000008u
#define UGDLM_QUECVT 0x00000010u
#define UGDLM_IVVALBLK 0x00000020u
#define UGDLM_CONVDEADLK 0x00000040u
#define UGDLM_PERSISTENT 0x00000080u
#define UGDLM_NODLCKWT 0x00000100u
#define UGDLM_EXPEDITE 0x00000400u
#define UGDLM_NOQUEUEBAST 0x00000800u
#define UGDLM_HEADQUE 0x00001000u
#define UGDLM_NOORDER 0x00002000u
#define UGDLM_ORPHAN 0x00004000u
#define UGDLM_ALTPR 0x00008000u
#define UGDLM_ALTCW 0x00010000u
#define UGDLM_FORCEUNLOCK 0x00020000u /* ugdlm_unlock() only */
#define UGDLM_TIMEOUT 0x00040000u

/* How an operation ended, in ugdlm_lksb.status. */
enum ugdlm_status {
	UGDLM_OK = 0,
	UGDLM_NOTQUEUED = 1, /* NOQUEUE: it is held by others */
	UGDLM_DEADLOCK = 2,  /* two conversions wait for each other */
	UGDLM_CANCELLED = 3,
	UGDLM_TIMEDOUT = 4,
	UGDLM_UNLOCKED = 5,
	UGDLM_LOST = 6,	      /* the lockspace is lost; nothing is held */
	UGDLM_INPROGRESS = 7, /* not ended yet */
};

#define UGDLM_SB_DEMOTED 1u	/* CONVDEADLK: held in NL meanwhile */
#define UGDLM_SB_VALNOTVALID 2u /* the value block has been lost */
#define UGDLM_SB_ALTMODE 4u	/* granted in the alternative mode */

/*
 * A lock as its owner sees it. The caller's; must stay where it is until the
 * lock is gone: mode is UGDLM_IV at the end of an operation (UGDLM_UNLOCKED,
 * UGDLM_LOST, or a request that failed). The library writes it before the ast,
 * or before the call returns; status is UGDLM_INPROGRESS in between.
 */
struct ugdlm_lksb {
	enum ugdlm_status status;
	enum ugdlm_mode mode; /* held now; UGDLM_IV: none */
	uint32_t lkid;	      /* the library's; 0: no lock, or not asked yet */
	uint32_t sbflags;
	uint8_t lvb[UGDLM_LVB_LEN]; /* UGDLM_VALBLK: read and written */
	bool lvb_valid;		    /* lvb has been read from the resource */
};

struct ugdlm; /* a lockspace that this process has joined */

struct ugdlm_request {
	enum ugdlm_mode mode;
	uint32_t flags;
	const void *name; /* not with UGDLM_CONVERT */
	size_t name_len;
	struct ugdlm_lksb *lksb; /* with CONVERT: of the lock */
	/* The operation has ended. */
	void (*ast)(void *ctx, struct ugdlm_lksb *lksb);
	/* Somebody waits for a mode that this lock blocks. NULL: not wanted. */
	void (*bast)(void *ctx, struct ugdlm_lksb *lksb,
		     enum ugdlm_mode blocked);
	void *ctx;
	/* The outcome may be given by return value 1 instead of the ast. */
	bool inline_ok;
	/*
	 * With UGDLM_TIMEOUT: waiting longer than this ends as UGDLM_TIMEDOUT.
	 * Time in which nothing is granted does not count.
	 */
	uint32_t timeout_ms;
};

/*
 * Ask for a lock or a conversion. 0: the ast comes. 1: it has ended already,
 * lksb tells, and no ast comes (inline_ok only). Never blocks: a request waits
 * in the library while members change, while quorum or the lease is missing,
 * and while too much is under way to some member.
 * -EINVAL: flags or mode that do not go together; -EBUSY: an operation on this
 * lock is under way, or its ast has not been delivered yet; -ENOENT: CONVERT of
 * a lock that is not there, or UGDLM_ORPHAN (locks end with their process, so
 * there is none); -ENOMEM; -ESHUTDOWN: the lockspace is lost or left. On error
 * lksb is unchanged.
 */
int ugdlm_lock(struct ugdlm *ls, const struct ugdlm_request *req);

/*
 * Unlock; UGDLM_CANCEL: end the operation under way instead; FORCEUNLOCK: both,
 * and a grant that has not been told yet is not told any more.
 * UGDLM_VALBLK writes lksb->lvb if the lock is held in PW or EX. The end is
 * told by the ast of the last request: UGDLM_UNLOCKED, or, of a cancelled
 * operation, UGDLM_CANCELLED (or another status, if it ended first). Of a
 * cancel with nothing to cancel there is no ast. Return values as ugdlm_lock();
 * 1 only if inline_ok.
 */
int ugdlm_unlock(struct ugdlm *ls, struct ugdlm_lksb *lksb, uint32_t flags,
		 bool inline_ok);

/* ---- members ---- */

struct ugdlm_member {
	uint32_t nodeid;  /* corosync's */
	uint8_t instance; /* 0 but for further members of one host */
	uint16_t slot;	  /* 1..; what a journal id is made of */
	uint32_t pid;
	bool self;
	char name[256]; /* of the node */
};

/* How a member that is gone was proved to do no more I/O. */
enum ugdlm_end {
	UGDLM_END_CLEAN, /* it left, everything written */
	UGDLM_END_DIRTY, /* it left without writing everything */
	UGDLM_END_DIED,
};

struct ugdlm_events {
	/*
	 * Members change: nothing is granted from here to running(). Comes at
	 * once when a member is missed, long before it is proved dead.
	 */
	void (*prepare)(void *arg);
	/*
	 * This member's I/O is over. If the lockspace has a uuid and end is not
	 * clean, its slot stays taken until ugdlm_slot_clean(). nodeid 0: one
	 * that was gone before this process came, whose slot is still taken.
	 * Between prepare() and running(); not for one who never had a slot.
	 */
	void (*gone)(void *arg, const struct ugdlm_member *m,
		     enum ugdlm_end end);
	/* All members agree; locks are granted again. self has the slot. */
	void (*running)(void *arg, uint32_t generation,
			const struct ugdlm_member *self);
	/*
	 * The right to act as a member: quorum, and proof of being alive
	 * (the lease). While it is missing nothing may be written.
	 */
	void (*quorate)(void *arg, bool quorate);
	/* From now on ugdlm_may_repair() is 0. */
	void (*cleared)(void *arg);
	/* Out of the lockspace for good. No I/O from now on. Last event. */
	void (*lost)(void *arg, const char *why);
};

struct ugdlm_config {
	const char *name; /* "cluster:fs", with the cluster's name */
	/*
	 * Of what the locks protect, the same on all members. 0: nothing whose
	 * slots need ugdlm_slot_clean().
	 */
	uint8_t uuid[16];
	uint32_t toss_sec;    /* idle resources are kept this long, 0 = 10 */
	const char *key_file; /* the cluster's secret, NULL: none */
	uint16_t port_first, port_last;	   /* 0, 0: 21064.. */
	uint32_t member_timeout_ms;	   /* 0 = 10000 */
	const struct ugdlm_events *events; /* may be NULL */
	void *arg;
	bool trace_all; /* every decision in the trace, also in normal running;
			   costs a microsecond each */
	/*
	 * Not NULL: memory of the caller's, where the time of ugdlm_lease_ns()
	 * is kept while the lockspace is joined, and 0 from then on. For who
	 * asks often, from many threads, or at the end: one atomic read.
	 */
	uint64_t *lease_ns;
	/*
	 * Asts and basts may also come on the library's thread that has read
	 * what they tell, at once: no other thread has to be woken. They must
	 * wait for nothing then, not even for a disk: that thread also serves
	 * the other members. Events come from ugdlm_dispatch() all the same.
	 */
	bool direct;
	/* Asked ten times a second while joining: true ends it. May be NULL. */
	bool (*interrupted)(void *arg);
	/* The first member: how long hosts that tell nothing are given to join
	 * before they are fenced (ugdlm_may_repair()). 0 = 30000 */
	uint32_t startup_delay_ms;
};

/*
 * Fork: the caller returns as the child, which may join lockspaces, with 0. The
 * parent watches it, ends it when the cluster has expelled it, proves its death
 * to the others, runs fence commands, and does not return: it exits with the
 * child's status, or 128 and the signal that ended it. SIGTERM, SIGINT and
 * SIGHUP are handed on to the child. To be called before threads are made and
 * devices are opened. Negative errno; -EINVAL: fence_action.
 *
 * The parent closes all descriptors but 0, 1, 2 and keep_fd (its log lines go
 * where they went: syslog is opened anew, with the program's name). When the
 * child has ended it tells the others so for ten minutes at most, unless the
 * child has left with status 0 or had not yet asked to join; a further signal,
 * and an exit of a child that was never admitted, cuts that to two seconds.
 */
struct ugdlm_supervise {
	/* NULL or "none"; "manual"; else a command for sh(1), which does as
	 * fence agents do. */
	const char *fence;
	const char *fence_action;  /* "off" (also if NULL) or "reboot" */
	uint32_t kill_timeout_ms;  /* 0 = 5000 */
	uint32_t fence_delay_ms;   /* of the higher node of two, 0 = 2000 */
	uint32_t fence_timeout_ms; /* of one run, 0 = 60000 */
	/*
	 * In the parent; both may be NULL. ended: the child has been reaped;
	 * left: with status 0, by its own words. Must not wait. last:
	 * what there was to tell has been told, the parent ends when this
	 * returns. keep_fd: a descriptor that it keeps for them, 0: none.
	 */
	void (*ended)(void *arg, bool left);
	void (*last)(void *arg);
	void *arg;
	int keep_fd;
};
int ugdlm_supervise(const struct ugdlm_supervise *config);

/*
 * Join: connect, start the library's threads, and wait until admitted (for at
 * most timeout_ms, 0 = for ever; events come only when dispatched). The
 * lockspace works after the first running(). why: a sentence for the user when
 * it fails. config is copied, the events too.
 * -ECONNREFUSED no corosync, -EPERM it does not let this process in; -EXDEV
 * another cluster's name; -ENOTUNIQ two_node without wait_for_all;
 * -EADDRINUSE no port is free, -EADDRNOTAVAIL this node has no address in
 * corosync's list of nodes; -EPROTO other version; -EBUSY a kernel lockspace of
 * this name has members, or an earlier process still holds the life lock;
 * -EKEYREJECTED a member has another key, or none;
 * -ETIMEDOUT not admitted in time, or corosync takes too long; -EINTR
 * interrupted() has said so; -EINVAL,
 * -ENAMETOOLONG the name, the ports or the key; what open(2) says of the key;
 * -ENOMEM; -EIO. *out is written on success only.
 */
int ugdlm_join(const struct ugdlm_config *config, uint32_t timeout_ms,
	       struct ugdlm **out, char *why, size_t why_len);

/*
 * Leave: locks are dropped, the others told. All I/O that the locks protect
 * must be over. dirty: not everything was written. Frees ls, whatever it
 * returns; no other call may be under way or follow, and no callback comes any
 * more. After lost() it only frees.
 * -ETIMEDOUT: it could not be told in 30 s; to the others this is a process
 * that died, and its supervisor must see it end with another status than 0.
 * -ESHUTDOWN: the lockspace was lost before or meanwhile; the same holds.
 */
int ugdlm_leave(struct ugdlm *ls, bool dirty);

/* Readable when there are callbacks; for poll(2). The library's, not to be
 * read or closed. */
int ugdlm_fd(const struct ugdlm *ls);
/*
 * Run callbacks until there are none, or max of them. Several threads may
 * do so at once. The number that were run.
 */
int ugdlm_dispatch(struct ugdlm *ls, unsigned max);

/* This process may write until this CLOCK_MONOTONIC time in ns; 0: not now. */
uint64_t ugdlm_lease_ns(const struct ugdlm *ls);

/*
 * The journal of this slot is clean: the slot may be given to a new member. To
 * be said for each gone() whose end was not clean, from that callback on. 0;
 * -ENOENT: no slot of this number is held, or its gone() has not been called.
 */
int ugdlm_slot_clean(struct ugdlm *ls, uint16_t slot);
/* Has a member this slot that is not gone? As of the last running(). */
bool ugdlm_slot_has_member(struct ugdlm *ls, uint16_t slot);

/*
 * Nobody was a member before this process: before what is left of earlier
 * members is repaired, those who could still be alive must be ruled out
 * (each configured node has been fenced or acknowledged since, or a process of
 * ours there tells who holds a life lock, members all of them). 0: so it is.
 * -EAGAIN: not yet, nodes are named in why; the first such call begins the
 * asking and fencing, and cleared() tells the end. -ESHUTDOWN: the lockspace is
 * lost.
 */
int ugdlm_may_repair(struct ugdlm *ls, char *why, size_t why_len);

/*
 * This member has found what earlier members left behind to be in order, or has
 * repaired it: from now on ugdlm_may_repair() is 0, for all, without asking.
 */
void ugdlm_repaired(struct ugdlm *ls);

/*
 * An administrator says that this node (name, address or number) is down, and
 * has been since it was missed: as good as a fence. 0: everybody will be told.
 * -ENOENT: no such node; -EBUSY: it is this one; -ESHUTDOWN: the lockspace is
 * lost; -EIO.
 */
int ugdlm_fence_ack(struct ugdlm *ls, const char *node);

/*
 * ---- looking inside ----
 *
 * The text is the caller's, to be freed. 0 or -ENOMEM.
 */

/* Members, links, slots, who is waited for: one JSON object. */
int ugdlm_status_json(struct ugdlm *ls, char **text);
/* Resources and locks that this process knows of, as JSON. */
int ugdlm_locks_json(struct ugdlm *ls, char **text);
/* The trace ring, not JSON: one line per state change, message, callback. */
int ugdlm_trace_text(struct ugdlm *ls, char **text);

#ifdef __cplusplus
}
#endif
#endif
