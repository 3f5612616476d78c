/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linkauth.h - proof that both ends of a connection know the cluster's key.
 *
 * Each side signs everything that was said before, nonces of both included, so
 * that no answer can be used again, for the other role or for another stream.
 * HMAC-SHA-256 and random bytes are libsodium's. No state but the key; safe
 * from any thread.
 * Source: docs/spec/cluster.md 5.2.
 */
#ifndef UG_CLUSTER_LINKAUTH_H
#define UG_CLUSTER_LINKAUTH_H

#include "cluster/linkwire.h"

struct link_key;

/*
 * A copy of the key in memory that is kept out of core files. -EINVAL: shorter
 * than LINK_KEY_MIN or longer than LINK_KEY_MAX; -ENOMEM.
 */
int link_key_new(const uint8_t *bytes, size_t len, struct link_key **out);
void link_key_free(struct link_key *key);

/* What was said: whole messages, the last without its own mac. */
struct link_talk {
	const uint8_t *hello;
	size_t hello_len;
	const uint8_t *welcome;
	size_t welcome_len;
	const uint8_t *proof; /* NULL in the accepting side's */
	size_t proof_len;
};

/* Of the side that talk is of: LINK_MAC_BYTES at mac. */
void link_mac(const struct link_key *key, const struct link_talk *talk,
	      uint8_t *mac);

/* LINK_MAC_BYTES each, in a time that does not tell where they differ. */
bool link_mac_equal(const uint8_t *a, const uint8_t *b);

/* -EIO: libsodium finds no source of randomness. Before the others here. */
int link_auth_init(void);
void link_random(void *bytes, size_t len);

#endif
