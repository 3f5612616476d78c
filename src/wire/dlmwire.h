/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlmwire.h - messages of the lock engine to bytes and back.
 *
 * The layout is the Linux DLM's, protocol 3.1: a packet has its own length in
 * the header, so packets may follow each other in a stream. Every length and
 * enum is checked; no input makes a decoder read outside of it. Sets of flags,
 * ids, results and numbers are not: what they may be the engine knows. Pure.
 *
 * The receiver and its incarnation are not in a packet: whoever has the link
 * knows both. He also compares the sender with the peer of the link.
 *
 * Ownership: bytes and messages stay the caller's; a decoded message owns what
 * dlm_msg_release() frees.
 * Source: docs/spec/dlm.md 4.
 */
#ifndef UG_WIRE_DLMWIRE_H
#define UG_WIRE_DLMWIRE_H

#include <stddef.h>
#include <stdint.h>

#include "dlm/dlm.h"

/* No packet is longer. */
#define DLM_WIRE_MAX 4096u

/* Bytes that are needed to know a packet's length. */
#define DLM_WIRE_PEEK 16u

/* The id of a lockspace in packets: a hash of its name. */
uint32_t dlm_wire_lockspace_id(const char *name, size_t len);

/*
 * Encode msg into buf of size bytes. The length, which is at most
 * DLM_WIRE_MAX; -EMSGSIZE: it does not fit; -EINVAL: no such message, one that
 * every decoder would refuse. On error nothing is written.
 */
long dlm_wire_encode(const struct dlm_msg *msg, uint32_t lockspace_id,
		     uint8_t *buf, size_t size);

/*
 * The length of the packet that begins here, of which len bytes are there.
 * 0: more bytes are needed to know; -EBADMSG: no packet begins so;
 * -EPROTONOSUPPORT: of a version other than 3.1 and 3.2, in which a packet that
 * is not wrapped is the same.
 */
long dlm_wire_length(const uint8_t *bytes, size_t len);

/*
 * Decode exactly one packet of len bytes. to and to_incarnation are set to 0:
 * the caller fills them in.
 *
 * 0; -EBADMSG: a length, an enum or a padding is wrong, or it is of another
 * lockspace; -EPROTONOSUPPORT; -ENOMEM. On error msg is as it was.
 */
int dlm_wire_decode(const uint8_t *bytes, size_t len, uint32_t lockspace_id,
		    struct dlm_msg *msg);

#endif
