/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rangehash.c - owners by (table, owner); parties and waits by owner.
 *
 * Tables grow before anything is added; if there is no memory then, chains get
 * longer and nothing else happens.
 */
#include <errno.h>
#include <stdlib.h>

#include "plock/range_impl.h"

#define HEADS_FIRST 64u

static uint64_t mix(uint64_t v)
{
	v ^= v >> 32;
	v *= 0xd6e8feb86659fd93u;
	v ^= v >> 32;
	v *= 0xd6e8feb86659fd93u;
	return v ^ (v >> 32);
}

uint32_t heads_slot(const struct heads *heads, const struct range_owner *who,
		    uint64_t table)
{
	return (uint32_t)mix(mix(who->owner ^ mix(who->node)) + table) &
	       heads->mask;
}

static void rehash_owners(struct ranges *ranges, const struct heads *old)
{
	for (uint32_t i = 0; old->first && i <= old->mask; i++) {
		uint32_t id = old->first[i];

		while (id) {
			struct owner *owner = owner_at(ranges, id);
			uint32_t next = owner->hash_next;
			uint32_t slot = heads_slot(&ranges->owner_heads,
						   &owner->who, owner->table);

			owner->hash_next = ranges->owner_heads.first[slot];
			ranges->owner_heads.first[slot] = id;
			id = next;
		}
	}
}

static void rehash_parties(struct ranges *ranges, const struct heads *old)
{
	for (uint32_t i = 0; old->first && i <= old->mask; i++) {
		uint32_t id = old->first[i];

		while (id) {
			struct party *party = party_at(ranges, id);
			uint32_t next = party->hash_next;
			uint32_t slot = heads_slot(&ranges->party_heads,
						   &party->who, 0);

			party->hash_next = ranges->party_heads.first[slot];
			ranges->party_heads.first[slot] = id;
			id = next;
		}
	}
}

static void rehash_waits(struct ranges *ranges, const struct heads *old)
{
	for (uint32_t i = 0; old->first && i <= old->mask; i++) {
		uint32_t id = old->first[i];

		while (id) {
			struct wait *wait = wait_at(ranges, id);
			uint32_t next = wait->hash_next;
			uint32_t slot =
				heads_slot(&ranges->wait_heads, &wait->who, 0);

			wait->hash_next = ranges->wait_heads.first[slot];
			ranges->wait_heads.first[slot] = id;
			id = next;
		}
	}
}

/* *old is what there was, to be taken over and freed; or nothing. */
static int heads_grow(struct heads *heads, struct heads *old)
{
	uint32_t size = heads->first ? heads->mask + 1 : 0;
	uint32_t *first;

	*old = (struct heads){ 0 };
	if (heads->count < size || size >= RANGE_RECORDS_MAX)
		return 0;
	size = size ? size * 2 : HEADS_FIRST;
	first = calloc(size, sizeof(*first));
	if (!first)
		return heads->first ? 0 : -ENOMEM;
	*old = *heads;
	heads->first = first;
	heads->mask = size - 1;
	return 0;
}

int heads_make_room(struct ranges *ranges)
{
	struct heads old;

	if (heads_grow(&ranges->owner_heads, &old))
		return -ENOMEM;
	rehash_owners(ranges, &old);
	free(old.first);
	if (heads_grow(&ranges->party_heads, &old))
		return -ENOMEM;
	rehash_parties(ranges, &old);
	free(old.first);
	if (heads_grow(&ranges->wait_heads, &old))
		return -ENOMEM;
	rehash_waits(ranges, &old);
	free(old.first);
	return 0;
}

void heads_free(struct ranges *ranges)
{
	free(ranges->owner_heads.first);
	free(ranges->party_heads.first);
	free(ranges->wait_heads.first);
}
