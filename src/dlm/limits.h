/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * limits.h - every bound of the lock engine, in one place.
 * Source: docs/spec/dlm.md 1.1, 4.3.
 */
#ifndef UG_DLM_LIMITS_H
#define UG_DLM_LIMITS_H

/* Bytes of a resource name; zero bytes are legal, length is identity. */
#define DLM_NAME_MAX 64

/* Bytes of a lock value block; the length is one per lockspace, and 8n. */
#define DLM_LVB_MAX 64

/* Members of a lockspace. */
#define DLM_NODES_MAX 128

/* Entries of a slot table on the wire: members, and slots that are held. */
#define DLM_SLOTS_MAX 249

/* A node's share of the directory: at most this much per weight table. */
#define DLM_WEIGHT_MAX 16

/* Locks of one engine, master copies included. */
#define DLM_LOCKS_MAX (1u << 28)

/* Messages saved while the lockspace is stopped, of all members together. */
#define DLM_QUEUE_MAX (1u << 20)

/*
 * What splits work up. Records of one NAMES_REPLY, without the two bytes that
 * end the block; units of recovery (a resource, a lock, a message) done in one
 * step; questions under way to other members in one recovery step; resources
 * that one tick takes off the cache of idle ones. The simulator, which has a
 * handful of resources, is built with small numbers, so that it comes by there.
 */
#ifdef UG_DLM_SMALL
#define DLM_NAMES_BYTES 66
#define DLM_BATCH 2
#define DLM_ASKED_MAX 2
#define DLM_TOSS_BATCH 1
#else
#define DLM_NAMES_BYTES 4022
#define DLM_BATCH 256
#define DLM_ASKED_MAX 1024
#define DLM_TOSS_BATCH 256
#endif

/*
 * Barrier polls: 1, 2, 4 .. 128 ms. With links of 0.1 ms a barrier of idle
 * members takes 2 ms; a member that is slow for a second is asked 14 times.
 */
#define DLM_POLL_FIRST_NS 1000000u
#define DLM_POLL_LAST_NS 128000000u

/* A question that had no answer is asked again after 5 s (spec 2.4). */
#define DLM_ASK_AGAIN_NS 5000000000u

/* An idle resource is kept for 10 s unless configured (spec 2.4). */
#define DLM_TOSS_NS 10000000000u

#endif
