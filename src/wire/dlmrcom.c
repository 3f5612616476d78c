/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlmrcom.c - recovery messages: what stands behind the header of a RCOM.
 *
 *   STATUS	   flags
 *   STATUS_REPLY  configuration, then slots
 *   NAMES, LOOKUP a name, to the end of the packet
 *   NAMES_REPLY   records of length and name, always WIRE_NAMES_BYTES
 *   LOOKUP_REPLY  nothing
 *   LOCK	   one lock, then its value block
 *   LOCK_REPLY	   one lock
 *
 * A record of length 0 ends a block of names, and is also the empty name. The
 * latter is meant when anything but zero bytes follows; a block that is not the
 * last never ends with the empty name (directory.c).
 * Source: docs/spec/dlm.md 4.3.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/dlmlayout.h"

static bool is_zero(const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (bytes[i])
			return false;
	}
	return true;
}

/* What is a legal message */

static bool slots_are_legal(const struct dlm_slots *slots)
{
	if (!slots)
		return true;
	if (slots->count > DLM_SLOTS_MAX)
		return false;
	for (uint32_t i = 0; i < slots->count; i++) {
		const struct dlm_slot *slot = &slots->slot[i];

		if (slot->nodeid < 0 || (!slot->nodeid && !slot->slot) ||
		    (slot->nodeid && (slot->free || slot->incarnation)))
			return false;
	}
	return true;
}

static unsigned record_len(const uint8_t *record)
{
	return (unsigned)record[0] << 8 | record[1];
}

static bool names_are_legal(const struct dlm_names *names)
{
	uint32_t pos = 0;
	unsigned len = 1;

	if (!names || names->len > DLM_NAMES_BYTES)
		return false;
	while (pos < names->len) {
		if (names->len - pos < sizeof(be16))
			return false;
		len = record_len(names->bytes + pos);
		pos += (uint32_t)sizeof(be16);
		if (len > DLM_NAME_MAX || len > names->len - pos)
			return false;
		pos += len;
	}
	return len > 0 || names->last;
}

static bool lock_is_legal(const struct dlm_rcom_lock *lock)
{
	return lock->name.len <= DLM_NAME_MAX &&
	       wire_lvb_is_legal(lock->lvb_len) &&
	       wire_status_is_legal(lock->status) &&
	       wire_mode_is_legal(lock->grmode) &&
	       wire_mode_is_legal(lock->rqmode) &&
	       lock->wait_type <= DLM_MSG_PURGE;
}

/* What only one type has a place for, no other may bring. */
static bool has_stray(const struct dlm_rcom *rc)
{
	return (rc->need_slots && rc->type != DLM_RCOM_STATUS) ||
	       (rc->slots && rc->type != DLM_RCOM_STATUS_REPLY) ||
	       (rc->names && rc->type != DLM_RCOM_NAMES_REPLY);
}

static bool rcom_is_legal(const struct dlm_rcom *rc)
{
	if (has_stray(rc))
		return false;
	switch (rc->type) {
	case DLM_RCOM_STATUS:
	case DLM_RCOM_LOOKUP_REPLY:
		return true;
	case DLM_RCOM_STATUS_REPLY:
		return slots_are_legal(rc->slots);
	case DLM_RCOM_NAMES:
	case DLM_RCOM_LOOKUP:
		return rc->name.len <= DLM_NAME_MAX;
	case DLM_RCOM_NAMES_REPLY:
		return names_are_legal(rc->names);
	case DLM_RCOM_LOCK:
		return lock_is_legal(&rc->lock);
	case DLM_RCOM_LOCK_REPLY:
		return lock_is_legal(&rc->lock) && rc->lock.lvb_len == 0;
	}
	return false; /* no such type */
}

/* Encoding */

static size_t buf_len(const struct dlm_rcom *rc)
{
	switch (rc->type) {
	case DLM_RCOM_STATUS:
		return sizeof(struct wire_status);
	case DLM_RCOM_STATUS_REPLY:
		return sizeof(struct wire_config) +
		       (rc->slots ? rc->slots->count : 0) *
			       sizeof(struct wire_slot);
	case DLM_RCOM_NAMES:
	case DLM_RCOM_LOOKUP:
		return rc->name.len;
	case DLM_RCOM_NAMES_REPLY:
		return WIRE_NAMES_BYTES;
	case DLM_RCOM_LOCK:
	case DLM_RCOM_LOCK_REPLY:
		return sizeof(struct wire_lock) + rc->lock.lvb_len;
	case DLM_RCOM_LOOKUP_REPLY:
		break;
	}
	return 0;
}

long rcom_packet_len(const struct dlm_rcom *rc)
{
	if (!rcom_is_legal(rc))
		return -EINVAL;
	return (long)(sizeof(struct wire_rcom) + buf_len(rc));
}

static void status_put(const struct dlm_rcom *rc, uint8_t *buf)
{
	struct wire_status *out = (struct wire_status *)buf;

	out->rs_flags = le32_of(rc->need_slots ? WIRE_NEED_SLOTS : 0);
}

static void config_put(const struct dlm_rcom *rc, uint8_t *buf)
{
	struct wire_config *out = (struct wire_config *)buf;
	struct wire_slot *slot = (struct wire_slot *)(out + 1);
	uint32_t count = rc->slots ? rc->slots->count : 0;

	out->rf_lvblen = le32_of(rc->status.lvblen);
	out->rf_lsflags = le32_of(rc->status.lsflags);
	out->rf_our_slot = le16_of(rc->status.our_slot);
	out->rf_num_slots = le16_of((uint16_t)count);
	out->rf_generation = le32_of(rc->status.generation);
	for (uint32_t i = 0; i < count; i++) {
		const struct dlm_slot *in = &rc->slots->slot[i];

		slot[i].ro_nodeid = le32_of((uint32_t)in->nodeid);
		slot[i].ro_slot = le16_of(in->slot);
		slot[i].ro_flags = le16_of(in->free ? WIRE_SLOT_FREE : 0);
		slot[i].ro_incarnation = le64_of(in->incarnation);
	}
}

static void names_put(const struct dlm_names *names, uint8_t *buf)
{
	be16 end = be16_of(names->last ? WIRE_NAMES_LAST : 0);

	memcpy(buf, names->bytes, names->len);
	memcpy(buf + names->len, &end, sizeof(end));
}

static void lock_put(const struct dlm_rcom_lock *lock, uint8_t *buf)
{
	struct wire_lock *out = (struct wire_lock *)buf;

	out->rl_ownpid = le32_of(lock->ownpid);
	out->rl_lkid = le32_of(lock->lkid);
	out->rl_remid = le32_of(lock->remid);
	out->rl_exflags = le32_of(lock->exflags);
	out->rl_flags = le32_of(lock->flags);
	out->rl_lvbseq = le32_of(lock->lvbseq);
	out->rl_result = le32_of((uint32_t)lock->result);
	out->rl_rqmode = lock->rqmode;
	out->rl_grmode = lock->grmode;
	out->rl_status = lock->status;
	out->rl_asts = lock->asts;
	out->rl_wait_type = le16_of(lock->wait_type);
	out->rl_namelen = le16_of(lock->name.len);
	memcpy(out->rl_name, lock->name.bytes, lock->name.len);
	memcpy(out->rl_lvb, lock->lvb, lock->lvb_len);
}

void rcom_put(const struct dlm_rcom *rc, struct wire_rcom *packet)
{
	packet->rc_type = le32_of(rc->type);
	packet->rc_result = le32_of((uint32_t)rc->result);
	packet->rc_id = le64_of(rc->id);
	packet->rc_seq = le64_of(rc->seq);
	packet->rc_seq_reply = le64_of(rc->seq_reply);
	switch (rc->type) {
	case DLM_RCOM_STATUS:
		status_put(rc, packet->rc_buf);
		break;
	case DLM_RCOM_STATUS_REPLY:
		config_put(rc, packet->rc_buf);
		break;
	case DLM_RCOM_NAMES:
	case DLM_RCOM_LOOKUP:
		memcpy(packet->rc_buf, rc->name.bytes, rc->name.len);
		break;
	case DLM_RCOM_NAMES_REPLY:
		names_put(rc->names, packet->rc_buf);
		break;
	case DLM_RCOM_LOCK:
	case DLM_RCOM_LOCK_REPLY:
		lock_put(&rc->lock, packet->rc_buf);
		break;
	case DLM_RCOM_LOOKUP_REPLY:
		break;
	}
}

/* Decoding: of each type the buffer, of len bytes */

static int status_get(const uint8_t *buf, size_t len, struct dlm_rcom *rc)
{
	const struct wire_status *in = (const struct wire_status *)buf;
	uint32_t flags;

	if (len != sizeof(*in))
		return -EBADMSG;
	flags = le32_get(in->rs_flags);
	if ((flags & ~WIRE_NEED_SLOTS) ||
	    !is_zero(in->rs_unused, sizeof(in->rs_unused)))
		return -EBADMSG;
	rc->need_slots = flags & WIRE_NEED_SLOTS;
	return 0;
}

static int slots_get(const struct wire_slot *in, uint32_t count,
		     struct dlm_rcom *rc)
{
	struct dlm_slots *slots;

	if (count == 0)
		return 0;
	slots = calloc(1, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	rc->slots = slots;
	slots->count = count;
	for (uint32_t i = 0; i < count; i++) {
		struct dlm_slot *slot = &slots->slot[i];

		if (le16_get(in[i].ro_flags) & ~WIRE_SLOT_FREE)
			return -EBADMSG;
		slot->nodeid = (int32_t)le32_get(in[i].ro_nodeid);
		slot->slot = le16_get(in[i].ro_slot);
		slot->free = le16_get(in[i].ro_flags) & WIRE_SLOT_FREE;
		slot->incarnation = le64_get(in[i].ro_incarnation);
	}
	return 0;
}

static int config_get(const uint8_t *buf, size_t len, struct dlm_rcom *rc)
{
	const struct wire_config *in = (const struct wire_config *)buf;
	uint32_t count;

	if (len < sizeof(*in))
		return -EBADMSG;
	count = le16_get(in->rf_num_slots);
	if (count > DLM_SLOTS_MAX ||
	    len != sizeof(*in) + count * sizeof(struct wire_slot) ||
	    le32_get(in->rf_flags) ||
	    !is_zero(in->rf_unused, sizeof(in->rf_unused)))
		return -EBADMSG;
	rc->status.lvblen = le32_get(in->rf_lvblen);
	rc->status.lsflags = le32_get(in->rf_lsflags);
	rc->status.our_slot = le16_get(in->rf_our_slot);
	rc->status.generation = le32_get(in->rf_generation);
	return slots_get((const struct wire_slot *)(in + 1), count, rc);
}

static int name_get(const uint8_t *buf, size_t len, struct dlm_name *name)
{
	if (len > sizeof(name->bytes))
		return -EBADMSG;
	name->len = (uint8_t)len;
	memcpy(name->bytes, buf, len);
	return 0;
}

/* Where the records end, or -EBADMSG. */
static int names_end(const uint8_t *buf, bool *last)
{
	unsigned used = WIRE_NAMES_BYTES, pos = 0, len;

	while (used && !buf[used - 1])
		used--;
	for (; pos <= DLM_NAMES_BYTES; pos += (unsigned)sizeof(be16) + len) {
		len = record_len(buf + pos);
		*last = len == WIRE_NAMES_LAST;
		if (*last)
			return pos + sizeof(be16) == used ? (int)pos : -EBADMSG;
		if (len == 0 && pos >= used)
			return (int)pos;
		if (len > DLM_NAME_MAX)
			return -EBADMSG;
	}
	return -EBADMSG;
}

static int names_get(const uint8_t *buf, size_t len, struct dlm_rcom *rc)
{
	bool last;
	int end;

	if (len != WIRE_NAMES_BYTES)
		return -EBADMSG;
	end = names_end(buf, &last);
	if (end < 0)
		return end;
	rc->names = calloc(1, sizeof(*rc->names));
	if (!rc->names)
		return -ENOMEM;
	rc->names->last = last;
	rc->names->len = (uint32_t)end;
	memcpy(rc->names->bytes, buf, (size_t)end);
	return 0;
}

static int lock_get(const uint8_t *buf, size_t len, struct dlm_rcom_lock *lock)
{
	const struct wire_lock *in = (const struct wire_lock *)buf;
	size_t namelen, lvb_len = len - sizeof(*in);

	if (len < sizeof(*in) || lvb_len > sizeof(lock->lvb))
		return -EBADMSG;
	namelen = le16_get(in->rl_namelen);
	if (namelen > sizeof(in->rl_name) ||
	    !is_zero(in->rl_name + namelen, sizeof(in->rl_name) - namelen) ||
	    le32_get(in->rl_parent_lkid) || le32_get(in->rl_parent_remid))
		return -EBADMSG;
	lock->ownpid = le32_get(in->rl_ownpid);
	lock->lkid = le32_get(in->rl_lkid);
	lock->remid = le32_get(in->rl_remid);
	lock->exflags = le32_get(in->rl_exflags);
	lock->flags = le32_get(in->rl_flags);
	lock->lvbseq = le32_get(in->rl_lvbseq);
	lock->result = (int32_t)le32_get(in->rl_result);
	lock->rqmode = in->rl_rqmode;
	lock->grmode = in->rl_grmode;
	lock->status = in->rl_status;
	lock->asts = in->rl_asts;
	lock->wait_type = le16_get(in->rl_wait_type);
	lock->lvb_len = (uint16_t)lvb_len;
	memcpy(lock->lvb, in->rl_lvb, lvb_len);
	return name_get(in->rl_name, namelen, &lock->name);
}

static int buf_get(const uint8_t *buf, size_t len, struct dlm_rcom *rc)
{
	switch (rc->type) {
	case DLM_RCOM_STATUS:
		return status_get(buf, len, rc);
	case DLM_RCOM_STATUS_REPLY:
		return config_get(buf, len, rc);
	case DLM_RCOM_NAMES:
	case DLM_RCOM_LOOKUP:
		return name_get(buf, len, &rc->name);
	case DLM_RCOM_NAMES_REPLY:
		return names_get(buf, len, rc);
	case DLM_RCOM_LOCK:
	case DLM_RCOM_LOCK_REPLY:
		return lock_get(buf, len, &rc->lock);
	case DLM_RCOM_LOOKUP_REPLY:
		return len == 0 ? 0 : -EBADMSG;
	}
	return -EBADMSG;
}

int rcom_get(const struct wire_rcom *packet, size_t packet_len,
	     struct dlm_rcom *rc)
{
	int error;

	rc->type = (enum dlm_rcom_type)le32_get(packet->rc_type);
	rc->result = (int32_t)le32_get(packet->rc_result);
	rc->id = le64_get(packet->rc_id);
	rc->seq = le64_get(packet->rc_seq);
	rc->seq_reply = le64_get(packet->rc_seq_reply);
	error = buf_get(packet->rc_buf, packet_len - sizeof(*packet), rc);
	if (error)
		return error;
	return rcom_is_legal(rc) ? 0 : -EBADMSG;
}
