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

#endif
