/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * groupmsg.h - the ordered messages of a file system's process group.
 *
 * Encode to bytes and decode from them, every length and enum checked. Pure.
 * Integers are little-endian. The header (the first 24 bytes) is the same in
 * every major version, so that a process of another one can be refused by name.
 * Source: docs/spec/cluster.md 3.
 */
#ifndef UG_CLUSTER_GROUPMSG_H
#define UG_CLUSTER_GROUPMSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/limits.h"

#define GROUP_VERSION_MAJOR 1
#define GROUP_VERSION_MINOR 0

/* One life of one process: never the same twice, anywhere. */
struct incarnation {
	uint8_t boot_id[16];
	uint32_t pid;
	uint64_t start_ticks; /* since boot, as the kernel tells it */
};

/* A process as corosync names it. */
struct group_proc {
	uint32_t node;
	uint32_t pid;
};

/* A membership of the whole cluster: a later one has a higher seq. */
struct ring_id {
	uint32_t node;
	uint64_t seq;
};

/* Where a member listens for links; family 0 = nowhere. */
struct link_addr {
	uint8_t family; /* 0, 4 or 6 */
	uint16_t port;
	uint8_t bytes[16]; /* 4 or 16 of them, network order; the rest zero */
};

struct member_info {
	struct incarnation inc;
	uint16_t minor; /* highest minor version that it speaks */
	struct link_addr addr;
};

/*
 * How old a process's knowledge is: the last moment at which it took part in a
 * decision of the group. count 0 = it knows nothing yet.
 */
struct group_base {
	struct ring_id ring;
	uint64_t count;
};

/* What everybody in it calls a configuration of the group. */
struct view_id {
	struct ring_id ring;
	uint32_t procs_crc; /* of the sorted list of processes */
};

enum group_msg_type {
	GM_HELLO = 1,	 /* I am here, and know this much */
	GM_STATE = 2,	 /* the table of members, for those who lack it */
	GM_DEAD = 3,	 /* a proof: the I/O of this incarnation is over */
	GM_EXPEL = 4,	 /* this process is gone for everybody */
	GM_STOPPED = 5,	 /* the lock engine has stopped for this generation */
	GM_LEASE = 6,	 /* the sender wants to see it return */
	GM_ASK = 7,	 /* to the supervisors: end it, and prove it dead */
	GM_LINK = 8,	 /* what the sender's link to this member does */
	GM_JUDGE = 9,	 /* of those with broken links, expel the worst */
	GM_CLEARED = 10, /* nobody from before this group can write */
	/* In SUPLINK_GROUP only, as GM_ASK is and GM_DEAD too: */
	GM_SUPERVISOR = 11, /* I watch this process, and can fence or not */
	GM_FENCE = 12,	    /* how far the fence of a host is */
	GM_FENCE_ACK = 13,  /* an administrator says that a host is down */
	GM_SURVEY = 14,	    /* who holds life locks of this volume? */
	GM_HOLDERS = 15,    /* these, on my host */
};

#define GM_LAST GM_HOLDERS

/* How the I/O of a member is known to be over (DESIGN 4.2). */
enum death_proof {
	PROOF_NONE = 0,
	PROOF_LEFT = 1,	      /* it said so, with a clean journal */
	PROOF_LEFT_DIRTY = 2, /* it said so, its journal needs replay */
	PROOF_REAPED = 3,     /* its supervisor has seen the exit */
	PROOF_LIFE_LOCK = 4,  /* its host holds its life lock */
	PROOF_REBOOTED = 5,   /* its host has another boot id */
	PROOF_FENCED = 6,     /* a fence succeeded after the failure */
	PROOF_OF_OTHERS = 7,  /* never sent: others had it and have forgotten
				 the member since */
};

/* Why a member is gone. */
enum gone_cause {
	GONE_NOT = 0,	    /* it is a member */
	GONE_LEFT = 1,	    /* it said so */
	GONE_PROCESS = 2,   /* the process left the group without a word */
	GONE_HOST = 3,	    /* its host left the cluster */
	GONE_EXPELLED = 4,  /* it kept silent */
	GONE_FOUND_DEAD = 5 /* a proof came first */
};

enum link_state {
	LINK_SILENT = 1, /* nothing is heard, and it cannot be restored */
	LINK_WELL = 2,	 /* it was, and is not any more */
	LINK_HERE = 3,	 /* the member itself: I am alive, and heard that */
};

/* What a supervisor does about hosts that give no proof. */
enum fence_kind {
	FENCE_NONE = 0,
	FENCE_MANUAL = 1, /* an administrator is expected to */
	FENCE_COMMAND = 2,
};

enum fence_state {
	FENCE_IDLE = 0, /* never sent */
	FENCE_BEGUN = 1,
	FENCE_DONE = 2, /* the host is down, or was since FENCE_BEGUN */
	FENCE_FAILED = 3,
};

/* Why a fence has failed, if not by its exit status, which is 1 to 255. */
enum fence_end {
	FENCE_END_OK = 0,
	FENCE_END_KILLED = -1,	 /* by a signal */
	FENCE_END_TIMEOUT = -2,	 /* ran for too long */
	FENCE_END_NOT_RUN = -3,	 /* could not be started */
	FENCE_END_IN_RING = -4,	 /* it says off, but the host is still there */
	FENCE_END_NO_QUORUM = -5 /* stopped: the cluster is not quorate */
};

struct group_hello {
	struct member_info info;
	struct view_id view;
	struct group_base base;
	bool quorum_known; /* of the view's ring */
	bool quorate;
};

/* A member, or one that is gone and not proved dead for all yet. */
struct member {
	struct group_proc proc;
	uint8_t instance;
	enum gone_cause cause;
	enum death_proof proof;
	uint64_t stopped; /* generation for which its engine has stopped */
	struct member_info info;
};

struct group_state {
	struct group_base base;
	uint64_t generation;
	bool cleared; /* nobody from before this group can write */
	uint32_t count;
	struct member members[GROUP_MEMBERS_MAX];
};

struct group_dead {
	struct incarnation inc;
	enum death_proof proof;
};

/* The incarnation is all zero when the process has never told it. */
struct group_expel {
	struct group_proc proc;
	struct incarnation inc;
};

/*
 * What a supervisor must know to find a proof on its host. With a zero
 * incarnation and pid the question is whether the host as a whole is down.
 */
struct group_ask {
	struct group_proc proc;
	struct incarnation inc;
	uint8_t instance;
	uint8_t uuid[16]; /* of the volume: part of the life lock's name */
};

struct group_link {
	struct incarnation about;
	enum link_state state;
};

struct group_supervisor {
	uint32_t child; /* pid of the mount process, on the same node */
	enum fence_kind fence;
};

struct group_fence {
	uint32_t node;
	enum fence_state state;
	uint32_t tries; /* fences of this host so far, all nodes' together */
	int32_t status; /* FENCE_FAILED: exit status, or enum fence_end */
};

struct group_holder {
	struct incarnation inc;
	uint8_t instance;
};

/* Who holds a life lock of the volume, on the sender's host. */
struct group_holders {
	uint8_t uuid[16];
	bool more; /* more than fit, or one that cannot be named */
	uint8_t count;
	struct group_holder list[GROUP_HOLDERS_MAX];
};

struct group_msg {
	enum group_msg_type type;
	uint16_t major; /* of the sender */
	bool has_state; /* the sender knows the table of members */
	union {
		struct group_hello hello;
		const struct group_state *state; /* to be encoded */
		struct group_dead dead;
		struct group_expel expel;
		struct group_ask ask;
		struct group_link link;
		struct group_supervisor supervisor;
		struct group_fence fence;
		struct group_holders holders;
		uint8_t uuid[16];    /* GM_SURVEY */
		uint32_t node;	     /* GM_FENCE_ACK */
		uint64_t generation; /* GM_STOPPED */
		uint64_t stamp;	     /* GM_LEASE: the sender's own business */
	};
};

/*
 * Encode into buf of size bytes. The length, or -EMSGSIZE; GROUP_MSG_MAX bytes
 * are always enough.
 */
long group_msg_encode(const struct group_msg *msg, uint8_t *buf, size_t size);

/*
 * Decode len bytes. A GM_STATE is put into *state, which msg->state then points
 * to; state is the caller's. With state NULL there is no such message.
 *
 * 0; -EPROTONOSUPPORT: of another major version, and only type, major and
 * has_state are set; -EBADMSG: not a message, nothing is set.
 */
int group_msg_decode(const uint8_t *bytes, size_t len, struct group_msg *msg,
		     struct group_state *state);

bool incarnation_equal(const struct incarnation *a,
		       const struct incarnation *b);
bool incarnation_is_zero(const struct incarnation *inc);

/* 64 bits that stand for an incarnation where a message has no room for it. */
uint64_t incarnation_short(const struct incarnation *inc);

/* What the lock engine calls a member: 1 .. 2^31-1 (DESIGN D5). */
static inline uint32_t member_id(const struct member *member)
{
	return member->proc.node | (uint32_t)member->instance << INSTANCE_SHIFT;
}

#endif
