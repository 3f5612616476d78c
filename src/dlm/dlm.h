/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlm.h - the face of the distributed lock manager's engine.
 *
 * One struct dlm_engine is one member's view of one lockspace. Events go in
 * through dlm_step(), updates come out; nothing but the events decides the
 * updates. Pure: no I/O, clock, threads or globals; the one outward call is
 * the trace hook. Calls on one engine are serialised by the caller.
 *
 * What the edge owes the engine:
 *  - messages of one (from, to) pair arrive once and in order for as long as
 *    both are members; a message of a member that has been replaced carries
 *    the incarnation of its sender;
 *  - no member is given DLM_EV_START before every member of the list has been
 *    given DLM_EV_STOP for that change, and the failed ones are proved dead;
 *  - DLM_EV_CONTINUE is given for as long as updates say so (more), and
 *    DLM_EV_TICK at dlm_wake_ns().
 *
 * Ownership: an event and what it points to stay the caller's; updates belong
 * to the caller, who empties them with dlm_updates_clear().
 * Source: docs/spec/dlm.md.
 */
#ifndef UG_DLM_DLM_H
#define UG_DLM_DLM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dlm/limits.h"

/* Lock modes (spec 1.4). */
enum dlm_mode {
	LKM_IV = -1,
	LKM_NL = 0,
	LKM_CR = 1,
	LKM_CW = 2,
	LKM_PR = 3,
	LKM_PW = 4,
	LKM_EX = 5,
};

/* Request flags (spec 1.5); the values are those of the wire. */
enum {
	LKF_NOQUEUE = 0x00000001,
	LKF_CANCEL = 0x00000002,
	LKF_CONVERT = 0x00000004,
	LKF_VALBLK = 0x00000008,
	LKF_QUECVT = 0x00000010,
	LKF_IVVALBLK = 0x00000020,
	LKF_CONVDEADLK = 0x00000040,
	LKF_PERSISTENT = 0x00000080,
	LKF_NODLCKWT = 0x00000100,
	LKF_NODLCKBLK = 0x00000200,
	LKF_EXPEDITE = 0x00000400,
	LKF_NOQUEUEBAST = 0x00000800,
	LKF_HEADQUE = 0x00001000,
	LKF_NOORDER = 0x00002000,
	LKF_ORPHAN = 0x00004000,
	LKF_ALTPR = 0x00008000,
	LKF_ALTCW = 0x00010000,
	LKF_FORCEUNLOCK = 0x00020000,
	LKF_TIMEOUT = 0x00040000,
};

/* Flags of a completion (spec 1.7). */
enum {
	SBF_DEMOTED = 1,
	SBF_VALNOTVALID = 2,
	SBF_ALTMODE = 4,
};

/* Completion status beside errno values, negated (spec 1.7). */
#define DLM_ECANCEL 0x10001
#define DLM_EUNLOCK 0x10002

/* Status of a lock as told to other members. */
enum dlm_lock_status {
	LKS_NONE = 0,
	LKS_WAITING = 1,
	LKS_GRANTED = 2,
	LKS_CONVERT = 3,
};

/* Messages (spec 3.1) */
enum dlm_msg_type {
	DLM_MSG_REQUEST = 1,
	DLM_MSG_CONVERT = 2,
	DLM_MSG_UNLOCK = 3,
	DLM_MSG_CANCEL = 4,
	DLM_MSG_REQUEST_REPLY = 5,
	DLM_MSG_CONVERT_REPLY = 6,
	DLM_MSG_UNLOCK_REPLY = 7,
	DLM_MSG_CANCEL_REPLY = 8,
	DLM_MSG_GRANT = 9,
	DLM_MSG_BAST = 10,
	DLM_MSG_LOOKUP = 11,
	DLM_MSG_REMOVE = 12,
	DLM_MSG_LOOKUP_REPLY = 13,
	DLM_MSG_PURGE = 14,
};

/* Recovery messages (spec 4.3) */
enum dlm_rcom_type {
	DLM_RCOM_STATUS = 1,
	DLM_RCOM_NAMES = 2,
	DLM_RCOM_LOOKUP = 3,
	DLM_RCOM_LOCK = 4,
	DLM_RCOM_STATUS_REPLY = 5,
	DLM_RCOM_NAMES_REPLY = 6,
	DLM_RCOM_LOOKUP_REPLY = 7,
	DLM_RCOM_LOCK_REPLY = 8,
};

/* m_asts and the asts of a recovery LOCK */
enum {
	DLM_WANTS_CAST = 1,
	DLM_WANTS_BAST = 2,
};

/*
 * A MSG, field by field as spec 4.2; parents are always 0 and left out.
 * extra is the name (REQUEST, LOOKUP, REMOVE) or the value block.
 */
struct dlm_lockmsg {
	enum dlm_msg_type type;
	int32_t nodeid;
	uint32_t pid;
	uint32_t lkid;
	uint32_t remid;
	uint32_t exflags;
	uint32_t sbflags;
	uint32_t flags;
	uint32_t lvbseq;
	uint32_t hash;
	int32_t status;
	int32_t grmode;
	int32_t rqmode;
	int32_t bastmode;
	uint32_t asts;
	int32_t result;
	uint32_t extra_len;
	uint8_t extra[DLM_NAME_MAX];
};

struct dlm_name {
	uint8_t len;
	uint8_t bytes[DLM_NAME_MAX];
};

/*
 * One slot: of a member, or (nodeid 0) held for one that is gone, which its
 * incarnation names; free: its journal is clean, the next assignment may use
 * it.
 */
struct dlm_slot {
	int32_t nodeid;
	uint16_t slot;
	bool free;
	uint64_t incarnation; /* 0 with a nodeid */
};

struct dlm_slots {
	uint32_t count;
	struct dlm_slot slot[DLM_SLOTS_MAX];
};

/* Names of a NAMES_REPLY: records of two bytes (big-endian length) and name */
struct dlm_names {
	bool last; /* the list ends with this block */
	uint32_t len;
	uint8_t bytes[DLM_NAMES_BYTES];
};

struct dlm_rcom_status {
	uint32_t lvblen;
	uint32_t lsflags;
	uint16_t our_slot;
	uint32_t generation;
};

struct dlm_rcom_lock {
	uint32_t ownpid;
	uint32_t lkid;
	uint32_t remid;
	uint32_t exflags;
	uint32_t flags;
	uint32_t lvbseq;
	int32_t result;
	int8_t rqmode;
	int8_t grmode;
	int8_t status;
	int8_t asts;
	uint16_t wait_type;
	uint16_t lvb_len;
	struct dlm_name name;
	uint8_t lvb[DLM_LVB_MAX];
};

/* An RCOM (spec 4.3); what is valid depends on the type. */
struct dlm_rcom {
	enum dlm_rcom_type type;
	int32_t result;
	uint64_t id;
	uint64_t seq;
	uint64_t seq_reply;
	bool need_slots; /* STATUS */
	union {
		struct dlm_rcom_status status; /* STATUS_REPLY */
		struct dlm_name name;	       /* NAMES, LOOKUP */
		struct dlm_rcom_lock lock;     /* LOCK, LOCK_REPLY */
	};
	struct dlm_slots *slots; /* STATUS_REPLY, or NULL; owned */
	struct dlm_names *names; /* NAMES_REPLY; owned */
};

enum dlm_msg_kind {
	DLM_MSG = 1,
	DLM_RCOM = 2,
};

struct dlm_msg {
	enum dlm_msg_kind kind;
	int32_t from;
	int32_t to;
	uint64_t to_incarnation; /* never to be given to another incarnation */
	union {
		struct dlm_lockmsg m;
		struct dlm_rcom rc;
	};
};

/* Free what a message owns (slots, names), not the message. */
void dlm_msg_release(struct dlm_msg *msg);

/* Updates */
enum dlm_update_kind {
	DLM_UP_SEND,
	DLM_UP_CAST,	  /* an operation is complete */
	DLM_UP_BAST,	  /* the granted mode blocks somebody */
	DLM_UP_PREPARE,	  /* the lockspace stopped; once per running period */
	DLM_UP_SLOT_GONE, /* a member is gone, with the slot it had; nodeid 0:
			     one that was gone before we came, with hold_slots
			   */
	DLM_UP_RUNNING,	  /* recovery is complete; calls are accepted */
	DLM_UP_MISMATCH,  /* a member has another lvblen: recovery waits */
};

struct dlm_cast {
	uint64_t ctx; /* of the lock call */
	uint32_t lkid;
	int32_t status; /* 0 or negative (spec 1.7) */
	uint32_t sbflags;
	int8_t mode;	/* held now, LKM_IV: the lock is gone */
	int8_t bast;	/* DLM_UP_BAST: the mode of the blocked lock */
	bool lvb_valid; /* lvb has been read from the resource */
	uint8_t lvb[DLM_LVB_MAX];
};

struct dlm_running {
	int32_t nodeid; /* DLM_UP_SLOT_GONE, DLM_UP_MISMATCH: whose */
	uint16_t slot;	/* ours, or of nodeid; 0 = none */
	uint32_t generation;
	uint64_t incarnation; /* DLM_UP_SLOT_GONE: of nodeid */
};

struct dlm_update {
	enum dlm_update_kind kind;
	union {
		struct dlm_msg msg;
		struct dlm_cast cast;
		struct dlm_running running;
	};
};

/* Zero-initialised by the caller; order is the order of events. */
struct dlm_updates {
	struct dlm_update *list;
	size_t count;
	size_t space;
	bool more; /* give DLM_EV_CONTINUE */
};

/* Empty, keep the memory; release what messages own. */
void dlm_updates_clear(struct dlm_updates *out);
void dlm_updates_free(struct dlm_updates *out);

/* Events */
enum dlm_event_kind {
	DLM_EV_LOCK,	  /* request, convert or adopt an orphan */
	DLM_EV_UNLOCK,	  /* unlock, cancel, force-unlock */
	DLM_EV_CLOSE,	  /* an owner is gone */
	DLM_EV_PURGE,	  /* release orphans, here or elsewhere */
	DLM_EV_MESSAGE,	  /* from another member */
	DLM_EV_STOP,	  /* membership is changing */
	DLM_EV_START,	  /* these are the members */
	DLM_EV_TICK,	  /* time has passed */
	DLM_EV_CONTINUE,  /* recovery has more to do */
	DLM_EV_SLOT_FREE, /* the journal of a gone member is clean */
};

/*
 * DLM_EV_LOCK: a new lock, or with LKF_CONVERT another mode for lkid.
 * lvb is read (lvblen bytes) when the table of spec 1.13 says write.
 */
struct dlm_lock_args {
	enum dlm_mode mode;
	uint32_t flags;
	uint32_t lkid; /* in for LKF_CONVERT, else out */
	struct dlm_name name;
	bool wants_bast;
	bool user; /* made by an application, not a file system */
	uint32_t pid;
	uint32_t owner; /* handle for DLM_EV_CLOSE, 0 = none */
	uint64_t ctx;
	const uint8_t *lvb; /* needed with LKF_VALBLK, else NULL */
};

/* DLM_EV_UNLOCK */
struct dlm_unlock_args {
	uint32_t lkid;
	uint32_t flags; /* CANCEL, VALBLK, IVVALBLK, FORCEUNLOCK */
	const uint8_t *lvb;
	int cancel_status; /* what a cancelled operation ends with, instead of
			      -DLM_ECANCEL: 0, -EDEADLK or -ETIMEDOUT */
};

struct dlm_member {
	int32_t nodeid; /* > 0 */
	uint32_t weight;
	uint64_t incarnation;
};

struct dlm_event {
	enum dlm_event_kind kind;
	uint64_t now_ns; /* monotonic */
	union {
		struct dlm_lock_args lock;
		struct dlm_unlock_args unlock;
		struct {
			uint32_t owner;
		} close;
		struct {
			int32_t nodeid; /* 0 = this member */
			uint32_t pid;	/* 0 = all */
		} purge;
		struct {
			uint64_t incarnation; /* of the sender */
			const struct dlm_msg *msg;
		} message;
		struct {
			const struct dlm_member *members;
			unsigned count;
		} start;
		struct {
			uint16_t slot; /* both of a DLM_UP_SLOT_GONE */
			uint64_t incarnation;
		} slot_free;
	};
};

struct dlm_config {
	int32_t nodeid; /* 1 .. 2^31-1: node id and instance (DESIGN D5) */
	uint64_t incarnation;
	uint32_t lvblen;  /* 8n, at most DLM_LVB_MAX */
	uint64_t toss_ns; /* 0 = DLM_TOSS_NS */
	uint64_t seed;	  /* of question ids and lock ids */
	/*
	 * The same on all members: who is gone keeps its slot until one member
	 * has given DLM_EV_SLOT_FREE for it (spec 5.11). A file system whose
	 * journals go by slots needs it.
	 */
	bool hold_slots;
	/* One line without newline per decision; NULL = none. */
	void (*trace)(void *arg, const char *line);
	void *trace_arg;
};

struct dlm_engine;

/* -EINVAL for a bad configuration, -ENOMEM. Stopped until DLM_EV_START. */
int dlm_engine_new(const struct dlm_config *config, struct dlm_engine **out);
void dlm_engine_free(struct dlm_engine *engine);

/*
 * Take one event. Updates are appended to out.
 *
 * Returns 0 if accepted. -ENOMEM: nothing has changed, give the event again
 * (DLM_EV_CLOSE, DLM_EV_PURGE: the rest is to be given again).
 * -EAGAIN: the lockspace is stopped, give the call again after
 * DLM_UP_RUNNING; an orphan of that name has another mode.
 * -EINVAL, -EBUSY, -ENOENT: spec 1.6; DLM_EV_SLOT_FREE, which is taken in any
 * state: no such slot is held (others have freed it already). -EBADMSG: no
 * member that keeps to the protocol sends this message; nothing has changed.
 * -EPROTO: start without stop, or a list without this member.
 */
int dlm_step(struct dlm_engine *engine, struct dlm_event *event,
	     struct dlm_updates *out);

/* When DLM_EV_TICK is due at the latest; UINT64_MAX = never. */
uint64_t dlm_wake_ns(const struct dlm_engine *engine);

bool dlm_is_running(const struct dlm_engine *engine);

/* The trace hook from now on; its argument stays. A line costs 0.2 us. */
void dlm_set_trace(struct dlm_engine *engine,
		   void (*trace)(void *arg, const char *line));

/* The hash of a resource name, the same on all members (spec 2.1). */
uint32_t dlm_hash(const void *name, size_t len);

bool dlm_modes_compatible(enum dlm_mode a, enum dlm_mode b);

/* Looking inside, for dumps and checkers */

struct dlm_lock_info {
	uint32_t lkid;
	uint32_t remid;
	int32_t nodeid; /* of the other end, 0 = local copy */
	bool master_copy;
	bool in_flight;
	enum dlm_lock_status status; /* LKS_NONE: not queued anywhere yet */
	int8_t grmode;
	int8_t rqmode;
	uint32_t exflags;
	uint32_t pid;
};

struct dlm_resource_info {
	struct dlm_name name;
	int32_t master; /* 0 = unknown */
	int32_t dir;
	bool in_use; /* has locks; else cached or a directory record */
	bool lvb_invalid;
	bool grant_pending; /* a queued lock could be granted */
	uint32_t locks;
	const uint8_t *lvb; /* during the visit; NULL: none here */
	uint32_t lvb_seq;
};

struct dlm_counts {
	uint32_t resources;
	uint32_t locks;
	uint32_t in_flight;
	uint32_t saved_messages;
	uint32_t generation;
};

void dlm_count(const struct dlm_engine *engine, struct dlm_counts *out);

/*
 * Visit every resource, then its locks in the order granted, converting,
 * waiting, not queued. Either function may be NULL.
 */
void dlm_visit(const struct dlm_engine *engine,
	       void (*resource)(void *arg, const struct dlm_resource_info *),
	       void (*lock)(void *arg, const struct dlm_resource_info *,
			    const struct dlm_lock_info *),
	       void *arg);

/* The slots of the last recovery, and those that are held. */
void dlm_slots_view(const struct dlm_engine *engine, struct dlm_slots *out);

/* Assert every rule of the engine's structures, whatever others have said. */
void dlm_check(const struct dlm_engine *engine);

/*
 * Assert that what is mastered here has been granted in modes that go together.
 * That is true while all members keep to the protocol: what a master granted
 * that then was lost, nobody can prove.
 */
void dlm_check_grants(const struct dlm_engine *engine);

#endif
