/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * limits.h - every bound of application locks, in one place.
 * Source: docs/spec/plocks.md.
 */
#ifndef UG_PLOCK_LIMITS_H
#define UG_PLOCK_LIMITS_H

/* Locks, waiting requests and owners of one node's tables, each. */
#define RANGE_RECORDS_MAX (1u << 28)

/*
 * A reader may pass a writer that waits if it comes this soon after him (spec
 * 2.6): readers that come together are served together.
 */
#define RANGE_BATCH_NS 10000000u

/*
 * Locks that the search for a deadlock looks at. Beyond them it gives up: a
 * deadlock may go unnoticed, a wrong one may not be reported.
 */
#define RANGE_SEARCH_MAX 1000u

/* Members of a volume, and those that are gone and not released. */
#define PLOCK_NODES_MAX 128

/* A file that nobody uses is forgotten after 10 s. */
#define PLOCK_IDLE_NS 10000000000u
/* Files that one tick looks at, if not told otherwise. */
#define PLOCK_IDLE_BATCH 64u

/*
 * A file moves to the member that has made MOVE_OF of the last MOVE_WINDOW
 * calls, if the one that serves it has made none; not within 10 ms of the last
 * move, and not with more locks of ours than fit into a few messages.
 *
 * After LEND_AFTER calls that only read, the next reader gets the right to
 * grant read locks itself; not within 1 s after a writer has had it recalled.
 *
 * Who has waited for 1 s looks for a deadlock, then every 5 s. The simulator
 * is built with small numbers, so that all this happens in its short runs.
 */
#define MOVE_LOCKS_MAX 300u
#define PLOCK_STAY_NS 10000000u
#define PLOCK_PROBE_NS 1000000000u
#ifdef UG_PLOCK_SMALL
#define PLOCK_RECORDS 2
#define MOVE_WINDOW 5u
#define MOVE_OF 4u
#define LEND_AFTER 3u
#define LEND_PAUSE_NS 20000000u
#define PROBE_AGAIN_NS 200000000u
#else
#define PLOCK_RECORDS 6
#define MOVE_WINDOW 20u
#define MOVE_OF 16u
#define LEND_AFTER 20u
#define LEND_PAUSE_NS 1000000000u
#define PROBE_AGAIN_NS 5000000000u
#endif

/*
 * Messages of one member that are kept for later (half a kilobyte each); twice
 * as many if they are unlocks or questions to a home, which cannot be refused.
 * Also unlocks of processes here that are answered before they are done: who
 * unlocks when so many are left waits for its turn.
 */
#define PLOCK_KEPT_MAX (1u << 20)

/* Waits on the way of a probe: longer deadlocks go unnoticed. */
#define PLOCK_HOPS 8

/* Probes that one tick sends. */
#define PROBE_BATCH 64u

/* Owners in the way of one wait that a probe follows. */
#define PROBE_BLOCKERS_MAX 16u

/* Members that have read locks of one file lent to them. */
#define LENT_MAX 8

/*
 * plock_mode=group: those that are gone and not released; messages that a
 * newcomer keeps while the tables are on their way; messages of tables that one
 * step sends, and records in each.
 */
#define PGROUP_GONE_MAX (2 * PLOCK_NODES_MAX)
#define PGROUP_SAVED_MAX (1u << 20)
#ifdef UG_PLOCK_SMALL
#define PGROUP_TRANSFER_BATCH 2u
#define PGROUP_CHUNK 2u
#else
#define PGROUP_TRANSFER_BATCH 16u
#define PGROUP_CHUNK 24u
#endif

/*
 * plock_rate_limit operations may leave in a window. The historic daemons
 * looked after each so many whether a second had passed, and if not again every
 * 100 ms: a window was 1.00 to 1.10 s, and 100 a second came to 97.2 to 97.5.
 */
#define PGROUP_RATE_WINDOW_NS 1027000000u

/* Every 10 s up to 10 files are dropped that were idle for 10 s. */
#define PGROUP_DROP_NS 10000000000u
#define PGROUP_DROP_AGE_NS 10000000000u
#define PGROUP_DROP_COUNT 10u

#endif
