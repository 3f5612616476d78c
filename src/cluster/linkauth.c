/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linkauth.c - see linkauth.h.
 */
#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "cluster/linkauth.h"

_Static_assert(LINK_MAC_BYTES == crypto_auth_hmacsha256_BYTES, "size of a MAC");

struct link_key {
	size_t len;
	uint8_t bytes[LINK_KEY_MAX];
};

/* Of one length, so that a label never runs into what follows it. */
static const char accept_label[32] = "ugfs link 1: accepting side";
static const char connect_label[32] = "ugfs link 1: connecting side";

int link_auth_init(void)
{
	return sodium_init() < 0 ? -EIO : 0;
}

void link_random(void *bytes, size_t len)
{
	randombytes_buf(bytes, len);
}

int link_key_new(const uint8_t *bytes, size_t len, struct link_key **out)
{
	struct link_key *key;

	if (len < LINK_KEY_MIN || len > LINK_KEY_MAX)
		return -EINVAL;
	key = sodium_malloc(sizeof(*key));
	if (!key)
		return -ENOMEM;
	key->len = len;
	memcpy(key->bytes, bytes, len);
	*out = key;
	return 0;
}

void link_key_free(struct link_key *key)
{
	sodium_free(key);
}

void link_mac(const struct link_key *key, const struct link_talk *talk,
	      uint8_t *mac)
{
	crypto_auth_hmacsha256_state state;
	const char *label = talk->proof ? connect_label : accept_label;

	crypto_auth_hmacsha256_init(&state, key->bytes, key->len);
	crypto_auth_hmacsha256_update(&state, (const uint8_t *)label,
				      sizeof(accept_label));
	crypto_auth_hmacsha256_update(&state, talk->hello, talk->hello_len);
	crypto_auth_hmacsha256_update(&state, talk->welcome, talk->welcome_len);
	if (talk->proof)
		crypto_auth_hmacsha256_update(&state, talk->proof,
					      talk->proof_len);
	crypto_auth_hmacsha256_final(&state, mac);
	sodium_memzero(&state, sizeof(state));
}

bool link_mac_equal(const uint8_t *a, const uint8_t *b)
{
	return sodium_memcmp(a, b, LINK_MAC_BYTES) == 0;
}
