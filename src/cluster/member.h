/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * member.h - who is a member of a file system's group, decided alike by all.
 *
 * One struct membership is one process's view of its group. Events go in
 * through membership_step(), updates come out; nothing but the events decides
 * the updates, and after the same ordered events all processes that know the
 * table of members have the same one. Pure: no I/O, clock or threads. Calls on
 * one object are serialised by the caller.
 *
 * What the edge owes it: MEV_CONFIG, MEV_RING and MEV_MESSAGE in the order of
 * delivery, own messages included; MEV_QUORUM whenever quorum is told;
 * MEV_TICK at membership_wake_ns(); and that every MUP_SEND is multicast, in
 * order.
 * Source: docs/spec/cluster.md 2.
 */
#ifndef UG_CLUSTER_MEMBER_H
#define UG_CLUSTER_MEMBER_H

#include "cluster/groupmsg.h"

/* Why a process left the group, as corosync tells it. */
enum leave_reason {
	LEAVE_CALLED,  /* it asked to leave */
	LEAVE_PROCESS, /* it, or its connection to corosync, ended */
	LEAVE_HOST,    /* its host is not in the cluster any more */
};

struct group_left {
	struct group_proc proc;
	enum leave_reason reason;
};

enum member_event_kind {
	MEV_CONFIG,  /* ordered: the processes of the group */
	MEV_RING,    /* ordered: the cluster's membership */
	MEV_MESSAGE, /* ordered */
	MEV_QUORUM,  /* unordered: quorum as this host sees it */
	MEV_TICK,    /* time has passed */
	MEV_STOPPED, /* the lock engine has stopped for this generation */
	MEV_LEAVE,   /* the device is closed: say so to all */
	MEV_EXPEL,   /* this member keeps silent on its links */
	MEV_PROOF,   /* this incarnation's I/O is over */
	MEV_LINK,    /* the link to this member is silent, or well again */
	MEV_CLEARED, /* nobody from before this group can write */
};

struct member_event {
	enum member_event_kind kind;
	uint64_t now_ns; /* monotonic */
	union {
		struct {
			const struct group_proc *procs;
			unsigned procs_count;
			const struct group_left *left;
			unsigned left_count;
		} config;
		struct {
			struct ring_id id;
			const uint32_t *nodes;
			unsigned nodes_count;
		} ring;
		struct {
			struct group_proc from;
			/* NULL: group_msg_decode() found another major, */
			const struct group_msg *msg;
			uint16_t major; /* this one, */
			bool has_state; /* with this flag */
		} message;
		struct {
			struct ring_id ring;
			bool quorate;
		} quorum;
		uint64_t generation; /* MEV_STOPPED */
		bool dirty;	     /* MEV_LEAVE: the journal is not clean */
		struct incarnation inc;	 /* MEV_EXPEL */
		struct group_dead proof; /* MEV_PROOF */
		struct {
			struct incarnation inc;
			bool silent;
		} link;
	};
};

/* Why this process can never be a member, or is one no longer. */
enum out_cause {
	OUT_VERSION,  /* the group speaks another major version */
	OUT_NODE_ID,  /* no id is left for a member of this node */
	OUT_FULL,     /* the group has GROUP_MEMBERS_MAX members */
	OUT_EXPELLED, /* a message said so */
	OUT_GONE,     /* the others went on without it */
	OUT_BEHIND,   /* too much came before the table did */
	OUT_LEFT,     /* its own words have been delivered: it may go */
};

enum member_update_kind {
	MUP_SEND,     /* multicast this */
	MUP_ADMITTED, /* this process is a member now */
	MUP_JOINED,   /* another one */
	MUP_MISSING,  /* reported gone: stop, and search for a proof */
	MUP_BACK,    /* the same one again, and nothing was decided meanwhile */
	MUP_GONE,    /* for good */
	MUP_PROVED,  /* ... and its I/O is over */
	MUP_SETTLED, /* the group can decide (quorate, all present), or not */
	MUP_CHANGE,  /* members changed: stop the engine, give MEV_STOPPED */
	MUP_START,   /* all have stopped, all the gone are proved: start it */
	MUP_MINOR,   /* the group runs at this minor version */
	MUP_CLEARED, /* nobody from before this group can write */
	MUP_OUT,     /* do no more I/O and exit; no update follows */
};

struct member_update {
	enum member_update_kind kind;
	union {
		struct group_msg send; /* a state it has is the membership's,
					  good until the next step */
		struct member member;  /* ADMITTED .. PROVED */
		bool settled;
		uint64_t generation; /* CHANGE, START */
		uint16_t minor;
		struct {
			enum out_cause cause;
			uint16_t major; /* OUT_VERSION: the group's */
		} out;
	};
	bool founder; /* ADMITTED: nobody was a member before, so that the
			 start-up rule applies (DESIGN 4.7) */
	enum leave_reason reason; /* MISSING */
};

/* Zero-initialised by the caller. */
struct member_updates {
	struct member_update *list;
	size_t count;
	size_t space;
};

void member_updates_free(struct member_updates *out);

struct membership_config {
	struct group_proc self;
	struct member_info info;
	uint64_t timeout_ns; /* 0 = MEMBER_TIMEOUT_NS */
};

struct membership;

/* -ENOMEM, -EINVAL. */
int membership_new(const struct membership_config *config,
		   struct membership **out);
void membership_free(struct membership *m);

/*
 * Take one event; updates are appended to out, which the caller empties.
 *
 * 0; -EINVAL: more processes than a group can have, or MEV_LEAVE, MEV_STOPPED
 * of one who is no member; nothing has changed. -ENOMEM: the object is of no
 * use any more, the process has to go.
 */
int membership_step(struct membership *m, const struct member_event *ev,
		    struct member_updates *out);

/* When MEV_TICK is due; UINT64_MAX = never. */
uint64_t membership_wake_ns(const struct membership *m);

/* Looking inside */

/* The table; NULL while this process does not know it. */
const struct group_state *membership_table(const struct membership *m);

/* The group can decide: quorate, and everybody in it has been heard. */
bool membership_settled(const struct membership *m);

/* Processes that have not been heard since the last change, at most max. */
unsigned membership_silent(const struct membership *m, struct group_proc *procs,
			   unsigned max);

/* Its record, NULL if it is not in the table. */
const struct member *membership_find(const struct membership *m,
				     const struct incarnation *inc);

#endif
