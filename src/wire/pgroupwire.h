/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pgroupwire.h - messages of plock_mode=group to bytes and back.
 *
 * The layout is that of the historic lock daemons, protocol 3.1.1, with what it
 * leaves zero used for what it has no room for. Every length, enum and padding
 * is checked; no input makes the decoder read outside of it. Pure.
 *
 * Ownership: bytes and messages stay the caller's.
 * Source: docs/spec/plocks.md 12.5.
 */
#ifndef UG_WIRE_PGROUPWIRE_H
#define UG_WIRE_PGROUPWIRE_H

#include <stddef.h>
#include <stdint.h>

#include "plock/pgroup.h"

/* No message is longer. */
#define PGROUP_WIRE_MAX 1024u

/*
 * Encode msg for the volume with this id (dlm_wire_lockspace_id()) into buf of
 * size bytes. The length; -EMSGSIZE: it does not fit; -EINVAL: no such message,
 * one that every decoder would refuse. On error nothing is written.
 */
long pgroup_wire_encode(const struct pgroup_msg *msg, uint32_t global_id,
			uint8_t *buf, size_t size);

/*
 * Decode exactly one message of len bytes. What msg points to then is in parts.
 *
 * 0; -EPROTONOSUPPORT: of another version; -EBADMSG: a length, an enum or a
 * field that means nothing is wrong, or it is another volume's. On error msg is
 * as it was.
 */
int pgroup_wire_decode(const uint8_t *bytes, size_t len, uint32_t global_id,
		       struct pgroup_msg *msg, struct pgroup_parts *parts);

#endif
