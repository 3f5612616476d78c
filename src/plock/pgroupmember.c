/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pgroupmember.c - members come and go.
 *
 *	CONFIG		every member multicasts a START: "I have seen it"
 *	last START	the change is complete, at this point of the order for
 *			all. The member with tables and the lowest id tells the
 *			others what was in them then; who has none keeps what
 *			comes after it.
 *
 * A CONFIG before the last START begins anew; who has tables goes on with all
 * operations meanwhile.
 *
 * If nobody has tables somebody may have had some who is dead. Then the member
 * with the lowest id lets all BEGIN with empty ones, when it knows that whoever
 * is not with them is released: else locks of the dead could be given away.
 *
 * Of a member that is gone the waits go at the CONFIG. Its locks stay until one
 * member has heard, and told all by RELEASE, that its host cannot write any
 * more and that its journal is replayed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"
#include "plock/pgroup_impl.h"

struct gmember *gmember_find(struct pgroup_engine *engine, uint64_t proc)
{
	for (unsigned i = 0; i < engine->member_count; i++) {
		if (engine->members[i].proc == proc)
			return &engine->members[i];
	}
	return NULL;
}

uint32_t gmember_id(const struct pgroup_engine *engine, uint64_t inc)
{
	for (unsigned i = 0; i < engine->member_count; i++) {
		if (engine->members[i].inc == inc)
			return engine->members[i].nodeid;
	}
	for (unsigned i = 0; i < engine->gone_count; i++) {
		if (engine->gone[i] == inc)
			return PGROUP_GONE_BIT | i;
	}
	ug_assert(!"a lock of somebody unknown");
	return 0;
}

uint64_t gmember_inc(const struct pgroup_engine *engine, uint32_t id)
{
	if (id & PGROUP_GONE_BIT) {
		id &= ~PGROUP_GONE_BIT;
		return id < engine->gone_count ? engine->gone[id] : 0;
	}
	for (unsigned i = 0; i < engine->member_count; i++) {
		if (engine->members[i].nodeid == id)
			return engine->members[i].inc;
	}
	return 0;
}

/* Released */

static void drop_node(struct pgroup_engine *engine, struct gfile *file,
		      uint64_t inc)
{
	range_drop_node(engine->ranges, &file->table, inc);
	gown_released(engine, file, inc);
	gapply_done(engine);
}

void gmember_release(struct pgroup_engine *engine, uint64_t inc)
{
	for (unsigned i = 0; i < engine->gone_count; i++) {
		if (engine->gone[i] != inc)
			continue;
		engine->gone[i] = engine->gone[--engine->gone_count];
		/* One for all its files: each member finds them differently. */
		engine->last_gen++;
		gfiles_each(engine, drop_node, inc);
		return;
	}
}

/*
 * Of one that has not left yet, as this group sees it, nothing is released: it
 * is said again when it leaves.
 */
int gmember_released(struct pgroup_engine *engine, uint64_t inc)
{
	if (engine->phase == GPHASE_OUT)
		return -EAGAIN;
	for (unsigned i = 0; i < engine->member_count; i++) {
		if (engine->members[i].inc == inc)
			engine->members[i].heard = true;
	}
	pgroup_send(engine, PGROUP_RELEASE)->inc = inc;
	return 0;
}

/* Change */

static int compare_procs(const void *a, const void *b)
{
	const uint64_t *pa = a, *pb = b;

	return *pa < *pb ? -1 : *pa > *pb;
}

static bool is_in(const uint64_t *procs, unsigned count, uint64_t proc)
{
	for (unsigned i = 0; i < count; i++) {
		if (procs[i] == proc)
			return true;
	}
	return false;
}

static void drop_waits(struct pgroup_engine *engine, struct gfile *file,
		       uint64_t inc)
{
	range_drop_waits(engine->ranges, &file->table, inc);
	gapply_done(engine);
}

/* Who has not said START has done nothing else either. */
static void bury(struct pgroup_engine *engine, const struct gmember *member)
{
	if (!member->nodeid)
		return;
	if (member->heard)
		pgroup_send(engine, PGROUP_RELEASE)->inc = member->inc;
	if (engine->phase != GPHASE_LIVE)
		return;
	gfiles_each(engine, drop_waits, member->inc);
	engine->gone[engine->gone_count++] = member->inc;
}

static unsigned remove_members(struct pgroup_engine *engine,
			       const uint64_t *procs, unsigned count)
{
	unsigned kept = 0, removed = 0;

	for (unsigned i = 0; i < engine->member_count; i++) {
		struct gmember member = engine->members[i];

		if (is_in(procs, count, member.proc)) {
			engine->members[kept++] = member;
			continue;
		}
		removed++;
		bury(engine, &member);
	}
	engine->member_count = kept;
	return removed;
}

static unsigned add_members(struct pgroup_engine *engine, const uint64_t *procs,
			    unsigned count)
{
	unsigned joined = 0;

	for (unsigned i = 0; i < count; i++) {
		struct gmember *member;

		if (gmember_find(engine, procs[i]))
			continue;
		member = &engine->members[engine->member_count++];
		/* Who comes after us has nothing under way from before. */
		*member = (struct gmember){ .proc = procs[i],
					    .counted = engine->change > 0 };
		joined++;
	}
	return joined;
}

static uint32_t checksum(const uint64_t *procs, unsigned count)
{
	uint64_t sorted[PLOCK_NODES_MAX];

	memcpy(sorted, procs, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), compare_procs);
	return ug_crc32(sorted, count * sizeof(*sorted));
}

static void forget_table(struct pgroup_engine *engine, struct gfile *file,
			 uint64_t arg)
{
	(void)arg;
	range_table_clear(engine->ranges, &file->table);
	file->state = engine->config.ownership ? PGROUP_UNKNOWN : PGROUP_SHARED;
	file->owner = 0;
	file->gen = 0;
}

static void send_start(struct pgroup_engine *engine, unsigned joined,
		       unsigned removed, unsigned failed)
{
	struct pgroup_msg *msg = pgroup_send(engine, PGROUP_START);

	for (unsigned i = 0; i < engine->member_count; i++)
		engine->start_ids[i] =
			(uint32_t)(engine->members[i].proc >> 32);
	msg->flags = (engine->completed ? 0 : PGROUP_JOINING) |
		     (engine->phase == GPHASE_LIVE ? PGROUP_HAVE_PLOCKS : 0) |
		     (engine->config.ownership ? PGROUP_OWNERSHIP : 0);
	msg->change = engine->change;
	msg->word = engine->procs_crc;
	msg->inc = engine->config.inc;
	msg->start.started = engine->completed;
	msg->start.joined = joined;
	msg->start.removed = removed;
	msg->start.failed = failed;
	msg->start.count = engine->member_count;
	msg->start.ids = engine->start_ids;
}

int gmember_config(struct pgroup_engine *engine,
		   const struct pgroup_event *event)
{
	const uint64_t *procs = event->config.procs;
	unsigned count = event->config.count, joined, removed;

	if (count > PLOCK_NODES_MAX ||
	    !is_in(procs, count, engine->config.proc) ||
	    engine->gone_count + engine->member_count > PGROUP_GONE_MAX)
		return -EINVAL;
	if (pgroup_reserve(engine, engine->member_count))
		return -ENOMEM;
	removed = remove_members(engine, procs, count);
	joined = add_members(engine, procs, count);
	engine->procs_crc = checksum(procs, count);
	if (!engine->change++)
		engine->first_crc = engine->procs_crc;
	for (unsigned i = 0; i < engine->member_count; i++)
		engine->members[i].due++;
	engine->alone = false;
	engine->begun = false;
	gtransfer_abort(engine);
	if (engine->phase != GPHASE_LIVE && engine->phase != GPHASE_REFUSED) {
		gfiles_each(engine, forget_table, 0);
		gtransfer_forget(engine);
		engine->gone_count = 0;
		engine->phase = GPHASE_STARTS;
	}
	GTRACE(engine, "change %u: %u members, %u came, %u went",
	       engine->change, count, joined, removed);
	send_start(engine, joined, removed, event->config.failed);
	return 0;
}

/* The last START */

static bool is_complete(const struct pgroup_engine *engine)
{
	for (unsigned i = 0; i < engine->member_count; i++) {
		if (!engine->members[i].counted || engine->members[i].due)
			return false;
	}
	return true;
}

/* Who tells; if nobody has tables, who would. */
static const struct gmember *teller(const struct pgroup_engine *engine)
{
	const struct gmember *best = NULL;

	for (unsigned i = 0; i < engine->member_count; i++) {
		const struct gmember *m = &engine->members[i];

		if (!best || m->has_plocks > best->has_plocks ||
		    (m->has_plocks == best->has_plocks &&
		     m->nodeid < best->nodeid))
			best = m;
	}
	return best;
}

static bool somebody_lacks(const struct pgroup_engine *engine)
{
	for (unsigned i = 0; i < engine->member_count; i++) {
		if (!engine->members[i].has_plocks)
			return true;
	}
	return false;
}

static void try_begin(struct pgroup_engine *engine)
{
	if (engine->phase != GPHASE_FIRST || !engine->alone || engine->begun ||
	    teller(engine)->proc != engine->config.proc)
		return;
	engine->begun = true;
	pgroup_send(engine, PGROUP_BEGIN)->change = engine->change;
}

void gmember_others(struct pgroup_engine *engine,
		    const struct pgroup_event *event)
{
	engine->alone = true;
	for (unsigned i = 0; i < event->others.count; i++)
		engine->alone &=
			gmember_find(engine, event->others.procs[i]) != NULL;
	try_begin(engine);
}

void gmember_begin(struct pgroup_engine *engine, const struct gmember *member,
		   const struct pgroup_msg *msg)
{
	if (engine->phase == GPHASE_FIRST && member == teller(engine) &&
	    msg->change == member->change)
		gmember_live(engine);
}

static int complete(struct pgroup_engine *engine)
{
	const struct gmember *from = teller(engine);

	if (engine->phase == GPHASE_LIVE && from->has_plocks &&
	    from->proc == engine->config.proc && somebody_lacks(engine) &&
	    gtransfer_prepare(engine))
		return -ENOMEM;
	engine->completed++;
	GTRACE(engine, "change %u is complete, %u %s", engine->change,
	       from->nodeid, from->has_plocks ? "tells" : "is first");
	if (engine->phase == GPHASE_LIVE)
		return 0;
	if (from->ownership != engine->config.ownership) {
		engine->phase = GPHASE_REFUSED;
		pgroup_refuse(engine);
	} else if (!from->has_plocks) {
		engine->phase = GPHASE_FIRST;
		try_begin(engine);
	} else {
		engine->phase = GPHASE_LOADING;
		engine->data_from = from->proc;
		engine->data_change = from->change;
	}
	return 0;
}

/* The hosts of ids and of processes are the same; an id may have an instance.
 */
static bool id_fits(uint32_t nodeid, uint64_t proc)
{
	uint32_t node = (uint32_t)(proc >> 32);

	return nodeid == node || (nodeid & 0x00ffffffu) == node;
}

int gmember_start(struct pgroup_engine *engine, struct gmember *member,
		  const struct pgroup_msg *msg)
{
	struct gmember before = *member;

	if (!msg->inc || !id_fits(msg->nodeid, member->proc))
		return -EBADMSG;
	if (!member->counted && msg->word != engine->first_crc)
		return 0; /* for a change of before our time */
	if (!member->due)
		return -EBADMSG;
	member->counted = true;
	member->due--;
	member->nodeid = msg->nodeid;
	member->inc = msg->inc;
	member->change = msg->change;
	member->has_plocks = msg->flags & PGROUP_HAVE_PLOCKS;
	member->ownership = msg->flags & PGROUP_OWNERSHIP;
	if (is_complete(engine) && engine->phase != GPHASE_REFUSED &&
	    complete(engine)) {
		*member = before;
		return -ENOMEM;
	}
	return 0;
}

static void run_file(struct pgroup_engine *engine, struct gfile *file,
		     uint64_t arg)
{
	(void)arg;
	gfile_run(engine, file);
}

void gmember_live(struct pgroup_engine *engine)
{
	engine->phase = GPHASE_LIVE;
	engine->drop_at_ns = engine->now_ns;
	GTRACE(engine, "has the tables: %u files", engine->file_count);
	gfiles_each(engine, run_file, 0);
}
