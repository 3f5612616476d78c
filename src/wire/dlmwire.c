/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlmwire.c - the header of packets, and MSG.
 *
 *	 0  version	    12  length		16  MSG: 18 integers, then
 *	 4  lockspace id    14  1 MSG, 2 RCOM	    a name or a value block
 *	 8  sender	    15  zero		    RCOM: dlmrcom.c
 *
 * One test says what is a legal message; the decoder applies it to what it has
 * read and the encoder to what it is to write. So nothing that a peer refuses
 * is ever sent, and what is decoded is encoded to the same bytes, but for the
 * version. What no field of a message holds must be zero in a packet.
 * Source: docs/spec/dlm.md 4.1, 4.2, 4.9.
 */
#include <errno.h>
#include <string.h>

#include "base/crc.h"
#include "wire/dlmlayout.h"
#include "wire/dlmwire.h"

#define VERSION_MAJOR 3u
#define VERSION_MINOR 1u

/*
 * Kernels since 5.14 stamp 3.2 on all they send, and wrap it only for peers of
 * 3.2: bare packets of both are the same (spec 4.6). 3.0 has no slots.
 */
#define VERSION_MINOR_MAX 2u

/*
 * Results travel as errno values, with the numbers that most architectures
 * have (spec 3.2). Where they differ they would have to be translated.
 */
static_assert(EDEADLK == 35 && EBADR == 53 && EBADSLT == 57 && EPROTO == 71 &&
		      EOPNOTSUPP == 95 && ETIMEDOUT == 110 &&
		      EINPROGRESS == 115,
	      "this architecture's errno values are not those of messages");

uint32_t dlm_wire_lockspace_id(const char *name, size_t len)
{
	static const char prefix[] = "dlm:ls:";
	uint32_t crc = ug_crc32(prefix, sizeof(prefix) - 1);

	crc = ug_crc32_add(crc, name, len);
	return ug_crc32_add(crc, "", 1);
}

static bool extra_is_legal(enum dlm_msg_type type, size_t len)
{
	switch (type) {
	case DLM_MSG_REQUEST:
	case DLM_MSG_LOOKUP:
	case DLM_MSG_REMOVE:
		return len <= DLM_NAME_MAX;
	case DLM_MSG_CONVERT:
	case DLM_MSG_UNLOCK:
	case DLM_MSG_REQUEST_REPLY:
	case DLM_MSG_CONVERT_REPLY:
	case DLM_MSG_GRANT:
		return wire_lvb_is_legal(len);
	case DLM_MSG_CANCEL:
	case DLM_MSG_UNLOCK_REPLY:
	case DLM_MSG_CANCEL_REPLY:
	case DLM_MSG_BAST:
	case DLM_MSG_LOOKUP_REPLY:
	case DLM_MSG_PURGE:
		return len == 0;
	}
	return false; /* no such type */
}

static bool lockmsg_is_legal(const struct dlm_lockmsg *m)
{
	return extra_is_legal(m->type, m->extra_len) &&
	       wire_status_is_legal(m->status) &&
	       wire_mode_is_legal(m->grmode) && wire_mode_is_legal(m->rqmode) &&
	       wire_mode_is_legal(m->bastmode);
}

static void lockmsg_put(const struct dlm_lockmsg *m, struct wire_msg *packet)
{
	packet->m_type = le32_of(m->type);
	packet->m_nodeid = le32_of((uint32_t)m->nodeid);
	packet->m_pid = le32_of(m->pid);
	packet->m_lkid = le32_of(m->lkid);
	packet->m_remid = le32_of(m->remid);
	packet->m_exflags = le32_of(m->exflags);
	packet->m_sbflags = le32_of(m->sbflags);
	packet->m_flags = le32_of(m->flags);
	packet->m_lvbseq = le32_of(m->lvbseq);
	packet->m_hash = le32_of(m->hash);
	packet->m_status = le32_of((uint32_t)m->status);
	packet->m_grmode = le32_of((uint32_t)m->grmode);
	packet->m_rqmode = le32_of((uint32_t)m->rqmode);
	packet->m_bastmode = le32_of((uint32_t)m->bastmode);
	packet->m_asts = le32_of(m->asts);
	packet->m_result = le32_of((uint32_t)m->result);
	memcpy(packet->m_extra, m->extra, m->extra_len);
}

static int lockmsg_get(const struct wire_msg *packet, size_t packet_len,
		       struct dlm_lockmsg *m)
{
	size_t extra_len = packet_len - sizeof(*packet);

	if (extra_len > sizeof(m->extra) || le32_get(packet->m_parent_lkid) ||
	    le32_get(packet->m_parent_remid))
		return -EBADMSG;
	m->type = (enum dlm_msg_type)le32_get(packet->m_type);
	m->nodeid = (int32_t)le32_get(packet->m_nodeid);
	m->pid = le32_get(packet->m_pid);
	m->lkid = le32_get(packet->m_lkid);
	m->remid = le32_get(packet->m_remid);
	m->exflags = le32_get(packet->m_exflags);
	m->sbflags = le32_get(packet->m_sbflags);
	m->flags = le32_get(packet->m_flags);
	m->lvbseq = le32_get(packet->m_lvbseq);
	m->hash = le32_get(packet->m_hash);
	m->status = (int32_t)le32_get(packet->m_status);
	m->grmode = (int32_t)le32_get(packet->m_grmode);
	m->rqmode = (int32_t)le32_get(packet->m_rqmode);
	m->bastmode = (int32_t)le32_get(packet->m_bastmode);
	m->asts = le32_get(packet->m_asts);
	m->result = (int32_t)le32_get(packet->m_result);
	m->extra_len = (uint32_t)extra_len;
	memcpy(m->extra, packet->m_extra, extra_len);
	return lockmsg_is_legal(m) ? 0 : -EBADMSG;
}

static long lockmsg_packet_len(const struct dlm_lockmsg *m)
{
	if (!lockmsg_is_legal(m))
		return -EINVAL;
	return (long)(sizeof(struct wire_msg) + m->extra_len);
}

static long packet_len(const struct dlm_msg *msg)
{
	if (msg->from <= 0)
		return -EINVAL;
	switch (msg->kind) {
	case DLM_MSG:
		return lockmsg_packet_len(&msg->m);
	case DLM_RCOM:
		return rcom_packet_len(&msg->rc);
	}
	return -EINVAL;
}

static void header_put(const struct dlm_msg *msg, uint32_t lockspace_id,
		       size_t len, struct wire_header *header)
{
	header->h_version = le32_of(VERSION_MAJOR << 16 | VERSION_MINOR);
	header->h_lockspace = le32_of(lockspace_id);
	header->h_nodeid = le32_of((uint32_t)msg->from);
	header->h_length = le16_of((uint16_t)len);
	header->h_cmd = msg->kind == DLM_MSG ? WIRE_CMD_MSG : WIRE_CMD_RCOM;
}

long dlm_wire_encode(const struct dlm_msg *msg, uint32_t lockspace_id,
		     uint8_t *buf, size_t size)
{
	long len = packet_len(msg);

	if (len < 0)
		return len;
	if ((size_t)len > size)
		return -EMSGSIZE;
	memset(buf, 0, (size_t)len);
	header_put(msg, lockspace_id, (size_t)len, (struct wire_header *)buf);
	if (msg->kind == DLM_MSG)
		lockmsg_put(&msg->m, (struct wire_msg *)buf);
	else
		rcom_put(&msg->rc, (struct wire_rcom *)buf);
	return len;
}

static bool version_is_spoken(uint32_t version)
{
	uint32_t minor = version & 0xffff;

	return version >> 16 == VERSION_MAJOR && minor >= VERSION_MINOR &&
	       minor <= VERSION_MINOR_MAX;
}

long dlm_wire_length(const uint8_t *bytes, size_t len)
{
	const struct wire_header *header = (const struct wire_header *)bytes;
	size_t packet, least;

	if (len < DLM_WIRE_PEEK)
		return 0;
	if (!version_is_spoken(le32_get(header->h_version)))
		return -EPROTONOSUPPORT;
	switch (header->h_cmd) {
	case WIRE_CMD_MSG:
		least = sizeof(struct wire_msg);
		break;
	case WIRE_CMD_RCOM:
		least = sizeof(struct wire_rcom);
		break;
	default:
		return -EBADMSG;
	}
	packet = le16_get(header->h_length);
	if (header->h_pad || packet < least || packet > DLM_WIRE_MAX)
		return -EBADMSG;
	return (long)packet;
}

int dlm_wire_decode(const uint8_t *bytes, size_t len, uint32_t lockspace_id,
		    struct dlm_msg *msg)
{
	const struct wire_header *header = (const struct wire_header *)bytes;
	struct dlm_msg got = { .kind = DLM_MSG };
	long packet = dlm_wire_length(bytes, len);
	int error;

	if (packet < 0)
		return (int)packet;
	if (packet == 0 || (size_t)packet != len ||
	    le32_get(header->h_lockspace) != lockspace_id)
		return -EBADMSG;
	got.from = (int32_t)le32_get(header->h_nodeid);
	if (got.from <= 0)
		return -EBADMSG;
	if (header->h_cmd == WIRE_CMD_RCOM) {
		got.kind = DLM_RCOM;
		error = rcom_get((const struct wire_rcom *)bytes, len, &got.rc);
	} else {
		error = lockmsg_get((const struct wire_msg *)bytes, len,
				    &got.m);
	}
	if (error)
		dlm_msg_release(&got);
	else
		*msg = got;
	return error;
}
