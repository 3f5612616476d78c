/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rangeowner.c - owners: one record for each table in which one has something,
 * and one for all of these (party).
 */
#include "plock/range_impl.h"

uint32_t owner_find(const struct ranges *ranges,
		    const struct range_table *table,
		    const struct range_owner *who)
{
	uint32_t id;

	if (!ranges->owner_heads.first)
		return 0;
	id = ranges->owner_heads.first[heads_slot(&ranges->owner_heads, who,
						  table->number)];
	while (id) {
		const struct owner *owner = owner_at(ranges, id);

		if (owner->table == table->number && owner_is(&owner->who, who))
			return id;
		id = owner->hash_next;
	}
	return 0;
}

static uint32_t party_find(const struct ranges *ranges,
			   const struct range_owner *who)
{
	const struct heads *heads = &ranges->party_heads;
	uint32_t id =
		heads->first ? heads->first[heads_slot(heads, who, 0)] : 0;

	while (id && !owner_is(&party_at(ranges, id)->who, who))
		id = party_at(ranges, id)->hash_next;
	return id;
}

bool range_knows(const struct ranges *ranges, const struct range_owner *who)
{
	return party_find(ranges, who);
}

static void party_get(struct ranges *ranges, const struct range_owner *who)
{
	struct heads *heads = &ranges->party_heads;
	uint32_t id = party_find(ranges, who), slot;

	if (!id) {
		id = pool_take(&ranges->parties);
		slot = heads_slot(heads, who, 0);
		*party_at(ranges, id) =
			(struct party){ .who = *who,
					.hash_next = heads->first[slot] };
		heads->first[slot] = id;
		heads->count++;
	}
	party_at(ranges, id)->tables++;
}

static void party_put(struct ranges *ranges, const struct range_owner *who)
{
	struct heads *heads = &ranges->party_heads;
	uint32_t *at = &heads->first[heads_slot(heads, who, 0)];
	uint32_t id;

	while (!owner_is(&party_at(ranges, *at)->who, who))
		at = &party_at(ranges, *at)->hash_next;
	id = *at;
	if (--party_at(ranges, id)->tables)
		return;
	*at = party_at(ranges, id)->hash_next;
	heads->count--;
	pool_give(&ranges->parties, id);
}

uint32_t owner_open(struct ranges *ranges, struct range_table *table,
		    const struct range_owner *who, enum range_kind kind)
{
	uint32_t id = owner_find(ranges, table, who);
	struct owner *owner;
	uint32_t slot;

	if (id)
		return id;
	id = pool_take(&ranges->owners);
	owner = owner_at(ranges, id);
	*owner = (struct owner){ .who = *who,
				 .table = table->number,
				 .kind = (uint8_t)kind,
				 .next = table->owners };
	if (table->owners)
		owner_at(ranges, table->owners)->prev = id;
	table->owners = id;
	slot = heads_slot(&ranges->owner_heads, who, table->number);
	owner->hash_next = ranges->owner_heads.first[slot];
	ranges->owner_heads.first[slot] = id;
	ranges->owner_heads.count++;
	party_get(ranges, who);
	return id;
}

static void owner_unhash(struct ranges *ranges, uint32_t id)
{
	const struct owner *owner = owner_at(ranges, id);
	uint32_t *at = &ranges->owner_heads.first[heads_slot(
		&ranges->owner_heads, &owner->who, owner->table)];

	while (*at != id)
		at = &owner_at(ranges, *at)->hash_next;
	*at = owner->hash_next;
	ranges->owner_heads.count--;
}

void owner_put(struct ranges *ranges, struct range_table *table, uint32_t id)
{
	struct owner *owner = owner_at(ranges, id);

	if (owner->lock_count || owner->wait_count)
		return;
	owner_unhash(ranges, id);
	party_put(ranges, &owner->who);
	if (owner->prev)
		owner_at(ranges, owner->prev)->next = owner->next;
	else
		table->owners = owner->next;
	if (owner->next)
		owner_at(ranges, owner->next)->prev = owner->prev;
	pool_give(&ranges->owners, id);
}
