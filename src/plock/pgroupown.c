/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pgroupown.c - plock_ownership: files that one member has for itself.
 *
 *	unknown -- OWN by a member --> owned by it: its calls cost no message
 *	   ^				  |
 *	  DROP				  | another one asks by its OWN: what
 *	   |				  | the owner has is SYNCed, then its
 *	shared <-- OWN by nobody ---------'  OWN says: nobody's
 *
 * The order of the group decides who is first. The owner that gives does not
 * change the file between the first SYNC and its own OWN, so all have the same
 * then. Once shared, a file stays so until it is idle and all forget it.
 *
 * A file whose owner died stays owned by it until it is released: what its
 * processes had locked is known to nobody, and may not be locked before.
 */
#include <errno.h>

#include "plock/pgroup_impl.h"

bool gfile_is_ours(const struct pgroup_engine *engine, const struct gfile *file)
{
	return file->state == PGROUP_OWNED && file->owner == engine->config.inc;
}

static void send_own(struct pgroup_engine *engine, const struct gfile *file,
		     uint32_t owner)
{
	struct pgroup_msg *msg = pgroup_send(engine, PGROUP_OWN);

	msg->number = file->number;
	msg->table = file->kind;
	msg->owner = owner;
}

void gown_claim(struct pgroup_engine *engine, struct gfile *file)
{
	if (file->claimed)
		return;
	file->claimed = true;
	send_own(engine, file, engine->config.nodeid);
}

static void send_sync(struct pgroup_engine *engine, const struct gfile *file,
		      const struct pgroup_record *record)
{
	struct pgroup_msg *msg = pgroup_send(
		engine, record->waiter ? PGROUP_SYNC_WAITER : PGROUP_SYNC_LOCK);

	msg->number = file->number;
	msg->op = (struct plock_op){ .kind = PLOCK_SET,
				     .table = file->kind,
				     .owner_kind = record->kind,
				     .mode = record->mode,
				     .wait = record->waiter,
				     .owner = record->owner,
				     .start = record->start,
				     .end = record->end,
				     .pid = record->pid };
	engine->counts.syncs++;
}

/* Tell all what we have, and that it is nobody's. -ENOMEM */
static int give(struct pgroup_engine *engine, struct gfile *file)
{
	size_t count = file->table.lock_count + file->table.wait_count;

	if (pgroup_scratch(engine, count) || pgroup_reserve(engine, count + 1))
		return -ENOMEM;
	count = gfile_gather(engine, file, engine->scratch);
	for (size_t i = 0; i < count; i++)
		send_sync(engine, file, &engine->scratch[i]);
	send_own(engine, file, 0);
	gfile_set_state(engine, file, PGROUP_GIVING, 0);
	return 0;
}

static void share(struct pgroup_engine *engine, struct gfile *file)
{
	file->gen = engine->last_gen;
	file->claimed = false;
	gfile_set_state(engine, file, PGROUP_SHARED, 0);
}

static int claimed_by(struct pgroup_engine *engine, struct gfile *file,
		      const struct gmember *member)
{
	if (file->state == PGROUP_UNKNOWN) {
		if (member->inc == engine->config.inc)
			file->claimed = false;
		gfile_set_state(engine, file, PGROUP_OWNED, member->inc);
		return 0;
	}
	if (gfile_is_ours(engine, file) && member->inc != engine->config.inc)
		return give(engine, file);
	return 0;
}

static int given_by(struct pgroup_engine *engine, struct gfile *file,
		    const struct gmember *member)
{
	bool ours = member->inc == engine->config.inc;

	if (ours ? file->state != PGROUP_GIVING
		 : file->state != PGROUP_OWNED || file->owner != member->inc)
		return -EBADMSG;
	engine->last_gen++;
	share(engine, file);
	return 0;
}

int gown_receive(struct pgroup_engine *engine, const struct gmember *member,
		 const struct pgroup_msg *msg)
{
	struct gfile *file;
	int error;

	if (!engine->config.ownership)
		return -EBADMSG;
	file = gfile_open(engine, msg->number, msg->table);
	gfile_used(engine, file);
	if (msg->owner)
		error = claimed_by(engine, file, member);
	else
		error = given_by(engine, file, member);
	gfile_put(engine, file);
	return error;
}

int gown_sync(struct pgroup_engine *engine, const struct gmember *member,
	      const struct pgroup_msg *msg)
{
	struct gfile *file = gfile_find(engine, msg->number, msg->op.table);
	struct pgroup_record record = {
		.start = msg->op.start,
		.end = msg->op.end,
		.owner = msg->op.owner,
		.pid = msg->op.pid,
		.mode = msg->op.mode,
		.kind = msg->op.owner_kind,
		.waiter = msg->type == PGROUP_SYNC_WAITER,
	};

	if (!file)
		return -EBADMSG;
	if (member->inc == engine->config.inc) {
		if (file->state != PGROUP_GIVING)
			return -EBADMSG;
		file->synced++;
		return 0;
	}
	if (file->state != PGROUP_OWNED || file->owner != member->inc)
		return -EBADMSG;
	return gapply_record(engine, file, &record, member->inc);
}

int gown_drop(struct pgroup_engine *engine, const struct pgroup_msg *msg)
{
	struct gfile *file = gfile_find(engine, msg->number, msg->table);

	if (!engine->config.ownership)
		return -EBADMSG;
	if (!file || file->state != PGROUP_SHARED || file->table.lock_count ||
	    file->table.wait_count)
		return 0;
	file->stale = file->in_flight;
	gfile_set_state(engine, file, PGROUP_UNKNOWN, 0);
	gcalls_unsend(engine, file);
	engine->counts.drops++;
	return 0;
}

void gown_released(struct pgroup_engine *engine, struct gfile *file,
		   uint64_t inc)
{
	if (file->state == PGROUP_OWNED && file->owner == inc)
		share(engine, file);
}

/* Idle files */

static bool is_idle(const struct pgroup_engine *engine,
		    const struct gfile *file)
{
	return !file->calls && !file->table.lock_count &&
	       !file->table.wait_count &&
	       (file->state == PGROUP_SHARED || gfile_is_ours(engine, file));
}

static int let_go(struct pgroup_engine *engine, struct gfile *file)
{
	struct pgroup_msg *msg;

	if (gfile_is_ours(engine, file))
		return give(engine, file);
	msg = pgroup_send(engine, PGROUP_DROP);
	msg->number = file->number;
	msg->table = file->kind;
	return 0;
}

static uint64_t or_else(uint64_t set, uint64_t by_default)
{
	return set ? set : by_default;
}

int gown_tick(struct pgroup_engine *engine)
{
	const struct plock_tuning *tune = &engine->config.tune;
	uint64_t age = or_else(tune->idle_ns, PGROUP_DROP_AGE_NS);
	uint64_t left = or_else(tune->drop_count, PGROUP_DROP_COUNT);
	struct gfile *file;

	if (engine->phase != GPHASE_LIVE || !engine->config.ownership ||
	    engine->now_ns < engine->drop_at_ns)
		return 0;
	if (pgroup_reserve(engine, left))
		return -ENOMEM;
	cds_list_for_each_entry (file, &engine->idle, idle) {
		if (engine->now_ns - file->used_ns < age || !left)
			break;
		if (!is_idle(engine, file))
			continue;
		if (let_go(engine, file))
			return -ENOMEM;
		left--;
	}
	engine->drop_at_ns =
		engine->now_ns + or_else(tune->drop_every_ns, PGROUP_DROP_NS);
	return 0;
}

uint64_t gown_wake_ns(const struct pgroup_engine *engine)
{
	if (engine->phase != GPHASE_LIVE || !engine->config.ownership ||
	    glist_empty(&engine->idle))
		return UINT64_MAX;
	return engine->drop_at_ns;
}
