/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * copies.h - clustered mounts: what the kernel has copies of, and having it
 * give them up (kpages.h for each file).
 *
 *	reader, lanes		glock worker		clock
 *	READ: .._begin()	copies_recall():	notification late:
 *	 lock, .._admit()	 notify pages, range	 parked READs go on
 *	 parked <- - - - - - -	 by range
 *	 resumed - - - - - - ->	 notify attributes
 *
 * Bounded: of files without writers the most recent ones are known. Of older
 * ones with pages what is known is lost, and from then on every unknown file
 * may have all of its pages in the kernel.
 *
 * Attributes. An answer that was under way when they are dropped is not
 *believed by the kernel afterwards, if the inode was there. If it was not, an
 * answer that makes it may still be on its way to the task that waits for it:
 * but then we have counted a lookup, so the notification is repeated
 * until it finds the inode, or that lookup has been forgotten
 * (docs/spec/fuse.md 4.5, 4.7b, 15.2).
 *
 * Threads: any; one lock, and a thread for the clock.
 */
#ifndef UG_FUSE_COPIES_H
#define UG_FUSE_COPIES_H

#include <urcu/list.h>

#include "fuse/kpages.h"

struct copies;
struct copies_file;

/*
 * A READ that fills pages, from its first attempt to its answer; embedded in
 * the request, all zero at first.
 */
struct copies_read {
	uint64_t nodeid;
	struct krange range;
	bool begun;		  /* and has not got the lock since */
	bool exclusive;		  /* which lock it needs */
	struct copies_file *file; /* where it is parked; NULL: it is not */
	struct cds_list_head link;
};

struct copies_ops {
	/* fuse_conn_inval_data() and fuse_conn_inval_attr(). */
	int (*drop_pages)(void *arg, uint64_t nodeid, struct krange range);
	int (*drop_attr)(void *arg, uint64_t nodeid);
	/* Does the kernel know the node, as far as it has told us? */
	bool (*is_known)(void *arg, uint64_t nodeid);
	/* The READ begins again. The table's lock is held: queue it. */
	void (*resume)(struct copies_read *read);
};

/* arg is that of ops. 0, -EAGAIN, -ENOMEM. */
int copies_create(const struct copies_ops *ops, void *arg, unsigned idle_max,
		  struct copies **copiesp);
/*
 * The session ends: recalls return at once from now on, and those that are
 * under way have returned. Requests must still be served. NULL is accepted.
 */
void copies_stop(struct copies *copies);
void copies_destroy(struct copies *copies); /* NULL is accepted */

/* An attempt begins: which lock it needs is in read. -ENOMEM. */
int copies_read_begin(struct copies *copies, uint64_t nodeid,
		      struct krange range, struct copies_read *read);
/*
 * It has the lock. 0: it may be answered; -EAGAIN: let the lock go and begin
 * again; -EINPROGRESS: the same, when ops->resume() is called for it, if it may
 * be parked (else -EAGAIN).
 */
int copies_read_admit(struct copies *copies, struct copies_read *read,
		      bool leaving, bool may_park);
/* Admitted, it was not answered: the kernel has not got these pages. */
void copies_read_failed(struct copies *copies, struct copies_read *read);
/* It is over, in whatever state; resume() does not come any more. */
void copies_read_end(struct copies *copies, struct copies_read *read);

/*
 * Handles that can write: kpages_writer(). 0; 1: with the lock EX; -ENOMEM.
 */
int copies_writer(struct copies *copies, uint64_t nodeid, bool exclusive);
void copies_writer_gone(struct copies *copies, uint64_t nodeid);
bool copies_has_writer(struct copies *copies, uint64_t nodeid);

/* May the kernel have pages of this range? */
bool copies_overlap(struct copies *copies, uint64_t nodeid,
		    struct krange range);
/* Drop them; waits as fuse_conn_inval_data() does. */
void copies_drop(struct copies *copies, uint64_t nodeid, struct krange range);
/* A file that has just been made: there are none. */
void copies_none(struct copies *copies, uint64_t nodeid);

/* Did another node want it less than a second ago? */
bool copies_recalled_lately(struct copies *copies, uint64_t nodeid);

/*
 * For fs_host_ops.recall: on return the kernel has no copy, and READs that have
 * the lock from before are not admitted any more.
 */
void copies_recall(struct copies *copies, uint64_t nodeid);

#endif
