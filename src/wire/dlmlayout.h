/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlmlayout.h - the packets of the lock engine, byte by byte; for the files of
 * this folder only.
 *
 * Packets follow each other without padding, so that nothing in them is
 * aligned; the types allow for that. The offsets asserted are those of the
 * tables of docs/spec/dlm.md 4.1 - 4.3.
 */
#ifndef UG_WIRE_DLMLAYOUT_H
#define UG_WIRE_DLMLAYOUT_H

#include <assert.h>
#include <stddef.h>

#include "base/be.h"
#include "base/le.h"
#include "dlm/dlm.h"

enum {
	WIRE_CMD_MSG = 1,
	WIRE_CMD_RCOM = 2,
};

struct wire_header {
	le32 h_version; /* major in the high half */
	le32 h_lockspace;
	le32 h_nodeid; /* of the sender */
	le16 h_length; /* of the packet, this included */
	uint8_t h_cmd;
	uint8_t h_pad;
};
static_assert(sizeof(struct wire_header) == 16, "4.1");
static_assert(offsetof(struct wire_header, h_length) == 12, "4.1");
static_assert(offsetof(struct wire_header, h_cmd) == 14, "4.1");

struct wire_msg {
	struct wire_header header;
	le32 m_type;
	le32 m_nodeid;
	le32 m_pid;
	le32 m_lkid;
	le32 m_remid;
	le32 m_parent_lkid;
	le32 m_parent_remid;
	le32 m_exflags;
	le32 m_sbflags;
	le32 m_flags;
	le32 m_lvbseq;
	le32 m_hash;
	le32 m_status;
	le32 m_grmode;
	le32 m_rqmode;
	le32 m_bastmode;
	le32 m_asts;
	le32 m_result;
	uint8_t m_extra[];
};
static_assert(sizeof(struct wire_msg) == 88, "4.2");
static_assert(offsetof(struct wire_msg, m_remid) == 32, "4.2");
static_assert(offsetof(struct wire_msg, m_parent_remid) == 40, "4.2");
static_assert(offsetof(struct wire_msg, m_hash) == 60, "4.2");
static_assert(offsetof(struct wire_msg, m_status) == 64, "4.2");
static_assert(offsetof(struct wire_msg, m_result) == 84, "4.2");

struct wire_rcom {
	struct wire_header header;
	le32 rc_type;
	le32 rc_result;
	le64 rc_id;
	le64 rc_seq;
	le64 rc_seq_reply;
	uint8_t rc_buf[];
};
static_assert(sizeof(struct wire_rcom) == 48, "4.3");
static_assert(offsetof(struct wire_rcom, rc_id) == 24, "4.3");
static_assert(offsetof(struct wire_rcom, rc_seq_reply) == 40, "4.3");

#define WIRE_NEED_SLOTS 1u

struct wire_status {
	le32 rs_flags;
	uint8_t rs_unused[12];
};
static_assert(sizeof(struct wire_status) == 16, "4.3");

struct wire_config {
	le32 rf_lvblen;
	le32 rf_lsflags;
	le32 rf_flags; /* 0 */
	le16 rf_our_slot;
	le16 rf_num_slots;
	le32 rf_generation;
	uint8_t rf_unused[12];
};
static_assert(sizeof(struct wire_config) == 32, "4.3");
static_assert(offsetof(struct wire_config, rf_our_slot) == 12, "4.3");
static_assert(offsetof(struct wire_config, rf_generation) == 16, "4.3");

struct wire_slot {
	le32 ro_nodeid;
	le16 ro_slot;
	le16 ro_flags;	     /* WIRE_SLOT_*; 0 with a nodeid */
	le64 ro_incarnation; /* the same */
};
static_assert(sizeof(struct wire_slot) == 16, "4.3");
static_assert(offsetof(struct wire_slot, ro_incarnation) == 8, "4.3");
#define WIRE_SLOT_FREE 1u

struct wire_lock {
	le32 rl_ownpid;
	le32 rl_lkid;
	le32 rl_remid;
	le32 rl_parent_lkid;
	le32 rl_parent_remid;
	le32 rl_exflags;
	le32 rl_flags;
	le32 rl_lvbseq;
	le32 rl_result;
	int8_t rl_rqmode;
	int8_t rl_grmode;
	int8_t rl_status;
	int8_t rl_asts;
	le16 rl_wait_type;
	le16 rl_namelen;
	uint8_t rl_name[DLM_NAME_MAX]; /* filled up with zero bytes */
	uint8_t rl_lvb[];
};
static_assert(sizeof(struct wire_lock) == 108, "4.3");
static_assert(offsetof(struct wire_lock, rl_exflags) == 20, "4.3");
static_assert(offsetof(struct wire_lock, rl_rqmode) == 36, "4.3");
static_assert(offsetof(struct wire_lock, rl_wait_type) == 40, "4.3");
static_assert(offsetof(struct wire_lock, rl_name) == 44, "4.3");

/* Records and what ends them; the packet has this length however few. */
#define WIRE_NAMES_BYTES 4024u
#define WIRE_NAMES_LAST 0xffffu
static_assert(DLM_NAMES_BYTES + sizeof(be16) == WIRE_NAMES_BYTES, "4.3");

/* dlmrcom.c: the part behind the header of a RCOM */

/* The length of the whole packet, or -EINVAL. */
long rcom_packet_len(const struct dlm_rcom *rc);

/* Into a packet of that length, which is all zero bytes. */
void rcom_put(const struct dlm_rcom *rc, struct wire_rcom *packet);

/* 0, -EBADMSG, -ENOMEM; what *rc owns in any case is the caller's. */
int rcom_get(const struct wire_rcom *packet, size_t packet_len,
	     struct dlm_rcom *rc);

/* What both kinds contain */
static inline bool wire_mode_is_legal(int32_t mode)
{
	return mode >= LKM_IV && mode <= LKM_EX;
}

static inline bool wire_status_is_legal(int32_t status)
{
	return status >= LKS_NONE && status <= LKS_CONVERT;
}

static inline bool wire_lvb_is_legal(size_t len)
{
	return len <= DLM_LVB_MAX && len % 8 == 0;
}

#endif
