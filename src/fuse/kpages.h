/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kpages.h - which pages of one file the kernel may have, and how it is made
 * to give them up before the file's lock goes to another node.
 *
 * R is the set of byte ranges for which a READ that fills pages has been
 * admitted. A READ that comes proves that the kernel has not got its pages:
 * they leave R. Admitted, with the lock held, they enter it, before the
 * answer, so that R never lacks a page that the kernel has. R may be too
 * large: the kernel drops pages without telling.
 *
 *	 FREE --recall--> FIRST --notified, R not empty--> LATER --+
 *	  ^                 |                                |  ^   | the same
 *	  |                 | R empty                        |  +---+
 *	  |                 v                                |
 *	  +--the lock------HELD <-----------R empty----------+
 *	     has moved
 *
 *	        a READ is          notifications name
 *	FREE    admitted
 *	FIRST   admitted           what of R there was at the recall, in one
 *piece LATER   parked; admitted   R, range by range if the notification of its
 *pages is late HELD    to try again: the lock is about to go
 *
 * What must hold when HELD is reached, and then until the lock has moved: the
 * kernel has no page of the file, but locked ones that wait for a READ. A range
 * leaves R when its notification begins; what is admitted from then on is in R
 * again, and needs another pass.
 *
 * What blocks whom. A notification waits for each locked page in its range: for
 * a READ. In FIRST that is admitted; in LATER it has come after the
 * notification began (else it would not be in R), and is admitted after some
 * milliseconds. Admitted READs get the lock, as a recall leaves it as it was:
 * if R is not empty, either the lock is EX, or it is SH and no READ wants more
 * (next paragraph). A notification also waits for dirty pages to be written: by
 * WRITEs that need EX. Pages are dirty only with EX.
 *
 * Stores to a mapping. They tell nobody; so with writers (handles that can
 * write) READs take the lock EX. A writer is counted with the lock held: EX, or
 * SH while R is empty. So with writers either the lock is EX or R is empty:
 *what was filled under SH before is covered by the EX that the open took, and
 *every demotion empties R. A READ that waits for EX counts as a writer to
 *others: who opened the file may have closed it meanwhile, and then pages
 *filled under SH would make a recall wait for that READ, which cannot have EX
 *in a recall.
 *
 * Endless faults cannot keep the lock: in LATER a READ is parked unless it has
 * hit the microseconds of the notification of its very page, and that page
 * alone is then looked at again.
 *
 * Pure: no I/O, clock, threads. Calls on one struct kpages are serialised by
 * the caller. Source: DESIGN 5.3, 5.4; docs/spec/fuse.md 4, 15.
 */
#ifndef UG_FUSE_KPAGES_H
#define UG_FUSE_KPAGES_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes [start, end) of a file; end UINT64_MAX: all there is. */
struct krange {
	uint64_t start;
	uint64_t end;
};

/* The whole pages that these bytes touch; not empty. */
struct krange krange_of(uint64_t offset, uint64_t len);

/* More ranges than this: those with the smallest gap become one. */
#define KPAGES_RANGES 8u

enum kpages_state {
	KPAGES_FREE,
	KPAGES_FIRST,
	KPAGES_LATER,
	KPAGES_HELD,
};

enum kpages_verdict {
	KPAGES_ADMITTED, /* may be answered; the lock is kept until it is read
			  */
	KPAGES_AGAIN,	 /* let the lock go, and begin the READ again */
	KPAGES_PARKED,	 /* let it go, and begin again when told to */
};

/* All zero: a file of which the kernel has nothing. */
struct kpages {
	enum kpages_state state;
	unsigned writers;
	unsigned upgrades; /* READs that wait for EX */
	unsigned count;
	struct krange ranges[KPAGES_RANGES]; /* R: in order, apart */
	bool notifying;
	bool late;	   /* the notification that is under way */
	bool very_late;	   /* ... for so long that it must wait for others */
	struct krange now; /* its range */
	uint32_t admitted; /* how many READs have been */
};

/*
 * A READ has come. True: it needs the lock EX. kpages_admit() or
 * kpages_unread() comes next.
 */
bool kpages_read(struct kpages *kp, struct krange range);
/* It does not get the lock; exclusive: which one it waited for. */
void kpages_unread(struct kpages *kp, bool exclusive);
/* It was admitted, and is not going to be answered with data after all. */
void kpages_fail(struct kpages *kp, struct krange range);
/*
 * It has the lock, EX if exclusive. leaving: glock_is_leaving(). But for
 * KPAGES_ADMITTED it is then as if it had not come.
 */
enum kpages_verdict kpages_admit(struct kpages *kp, struct krange range,
				 bool exclusive, bool leaving);

/* The kernel may have any page of it: what was known has been forgotten. */
void kpages_set_all(struct kpages *kp);
bool kpages_overlap(const struct kpages *kp, struct krange range);
/*
 * A notification for this range, begun when the count of admitted ones was
 * this, has returned: its pages leave R, unless there is a newer READ.
 */
void kpages_dropped(struct kpages *kp, struct krange range, uint32_t admitted);

/*
 * A handle that can write, with the lock held. False: take it EX. Undone by
 * kpages_writer_gone(), without.
 */
bool kpages_writer(struct kpages *kp, bool exclusive);
void kpages_writer_gone(struct kpages *kp);

/* The recall of the lock begins; next comes kpages_next(). */
void kpages_recall(struct kpages *kp);
/*
 * What to notify the kernel of now; kpages_notified() when that has returned.
 * False: it has no page any more, and gets none: the recall is over, and parked
 * READs begin again.
 */
bool kpages_next(struct kpages *kp, struct krange *range);
void kpages_notified(struct kpages *kp);
/*
 * The notification has not returned in good time: parked READs of its range
 * begin again. very: any parked READs do (a page of the kernel may be larger
 * than the READs for it).
 */
void kpages_late(struct kpages *kp, bool very);
/* Is this READ's parking over? */
bool kpages_may_go_on(const struct kpages *kp, struct krange range);

#endif
