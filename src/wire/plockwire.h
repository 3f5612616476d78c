/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plockwire.h - messages of application locks to bytes and back.
 *
 * A message has its length in front, so messages may follow each other in one
 * frame: what is sent to one member at a time goes in one. Every length and
 * enum is checked; no input makes the decoder read outside of it. Pure.
 *
 * Sender and receiver are not in a message: whoever has the link knows both.
 *
 * Ownership: bytes and messages stay the caller's.
 * Source: docs/spec/plocks.md 10.
 */
#ifndef UG_WIRE_PLOCKWIRE_H
#define UG_WIRE_PLOCKWIRE_H

#include <stddef.h>
#include <stdint.h>

#include "plock/plock.h"

/* No message is longer. */
#define PLOCK_WIRE_MAX 512u

/*
 * Append msg to buf, which has room for size bytes. The length; -EMSGSIZE: it
 * does not fit; -EINVAL: no such message, one that every decoder would refuse.
 * On error nothing is written.
 */
long plock_wire_encode(const struct plock_msg *msg, uint8_t *buf, size_t size);

/*
 * Decode the message that begins here, of which len bytes are there. from and
 * to are set to 0: the caller fills them in. Its length; -EBADMSG: a length, an
 * enum or a field that means nothing is wrong. On error msg is as it was.
 */
long plock_wire_decode(const uint8_t *bytes, size_t len, struct plock_msg *msg);

#endif
