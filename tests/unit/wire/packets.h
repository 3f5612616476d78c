/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * packets.h - legal messages of every type, at random.
 *
 * Ownership: a message that was made is the caller's, who releases it with
 * dlm_msg_release().
 */
#ifndef UG_TESTS_WIRE_PACKETS_H
#define UG_TESTS_WIRE_PACKETS_H

#include "base/prng.h"
#include "dlm/dlm.h"

/* Kinds and types in one row: 1 .. 14 are MSGs, 15 .. 22 are RCOMs. */
#define PACKETS_FIRST 1u
#define PACKETS_LAST 22u

/*
 * What a packet does not say is garbage: bytes behind a name, the union's
 * other members.
 */
void packets_make(struct ug_prng *prng, unsigned which, struct dlm_msg *msg);

/* Fails the test if they differ in anything that means something. */
void packets_expect_equal(const struct dlm_msg *a, const struct dlm_msg *b);

#endif
