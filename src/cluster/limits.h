/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * limits.h - every bound of the cluster layer, in one place.
 */
#ifndef UG_CLUSTER_LIMITS_H
#define UG_CLUSTER_LIMITS_H

/* Processes of one group: what a corosync group holds. */
#define GROUP_PROCS_MAX 128

/* Members of one group, those included whose end is not proved yet. */
#define GROUP_MEMBERS_MAX 256

/* Bytes of one group message: the table of members is the longest. */
#define GROUP_MSG_MAX (64 + GROUP_MEMBERS_MAX * 96)

/* Life locks of one volume that a host tells of in one message. */
#define GROUP_HOLDERS_MAX 16

/* Messages kept by a process that waits for the table of members. */
#define GROUP_SAVED_MAX 1024

/*
 * A second member of one host has its instance in bits 24 to 30 of its id, so
 * that ids stay positive; its node id must leave them free (DESIGN D5).
 */
#define NODE_ID_MAX 0x7fffffffu
#define NODE_ID_SMALL_MAX 0x00ffffffu
#define INSTANCE_SHIFT 24
#define INSTANCE_MAX 127

/* Bytes of a node's name as corosync's configuration has it. */
#define NODE_NAME_MAX 255

/*
 * How long a process of the group may keep silent after a change before it is
 * expelled (DESIGN 4.5). It is corosync's business to notice a host that is
 * gone; this is for a process that is stopped while its host is alive.
 */
#define MEMBER_TIMEOUT_NS 10000000000u

/* Broken links that a group knows of at once; further ones come later. */
#define REPORTS_MAX 512

/*
 * From the first report of a silent link to the judgement: both ends see it
 * with a ping's difference, and the one that is reported has time to answer.
 *
 *   10 s  A reports B    11 s  B reports A, says that it is here
 *   13 s  judged: one of them is expelled
 */
#define REPORTS_GATHER_NS 3000000000u

/* Hosts that are searched for a proof of death at once. */
#define FENCE_TARGETS_MAX 32

/*
 * How long a host may take to come up with its mounts before the start-up rule
 * has it fenced (DESIGN 4.7): after a power failure hosts do not boot equally
 * fast.
 */
#define STARTUP_DELAY_NS 30000000000u

/* Links */

/* Bytes of one message, and of the table's name in a handshake. */
#define LINK_MESSAGE_MAX 65536u
#define LINK_TABLE_MAX 128

/* Members that one process has links to. */
#define LINK_PEERS_MAX GROUP_MEMBERS_MAX

/*
 * With more than LINK_QUEUE_BYTES waiting for a member nothing new is begun
 * with it until half of them are left; with more than LINK_QUEUE_MAX_BYTES it
 * is given up: a member that takes nothing for so long holds up all others.
 */
#define LINK_QUEUE_BYTES (4u << 20)
#define LINK_QUEUE_MAX_BYTES (256u << 20)

/* One port for each instance that a host can have. */
#define LINK_PORT_FIRST 21064
#define LINK_PORT_LAST (LINK_PORT_FIRST + INSTANCE_MAX)

/* Bytes of the cluster's key. */
#define LINK_KEY_MIN 16
#define LINK_KEY_MAX 4096

/* Connections that have not proved yet whose they are; the oldest goes. */
#define LINK_STRANGERS_MAX 64

/* What a receiver takes before it says so, if it has nothing else to say. */
#define LINK_ACK_FRAMES 256
#define LINK_ACK_BYTES 65536u

/* Bytes taken from one connection before others have their turn. */
#define LINK_READ_BYTES 131072u

/*
 * Each second a member says that it is alive. What has not answered for a
 * quarter of MEMBER_TIMEOUT_NS is tried on a new connection: after a gap of the
 * network TCP itself would try again only after as long as the gap had lasted.
 *
 *   0 s  last word    2.5 s  connection dropped, new ones every 10 ms .. 1 s,
 *   10 s  silent      each given up after 2.5 s
 */
#define LINK_PING_NS 1000000000u
#define LINK_RETRY_FIRST_NS 10000000u
#define LINK_RETRY_LAST_NS 1000000000u

/* Application locks */

/* How soon something is tried again that found no memory. */
#define PLOCKS_RETRY_US 10000u

/* Of the times of answers, by powers of 2. */
#define PLOCKS_HIST_SLOTS 40u

#endif
