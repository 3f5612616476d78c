/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pgrouptransfer.c - the tables go to newcomers.
 *
 * What is told is what all members had when the change was complete: of a file
 * that one of them owns, whose it is; and if that one is giving it, what had
 * come of it by then. It is copied at that moment, and sent little by little.
 *
 *	GONE ..		who is gone and not released
 *	DATA ..		the files
 *	DONE		how many there were
 *
 * A newcomer keeps operations meanwhile, and does them behind DONE.
 */
#include <errno.h>
#include <stdlib.h>

#include "plock/pgroup_impl.h"

/* The member that tells */

/* Of its locks and waits, in their order, so many are known to all. */
static size_t known_to_all(const struct pgroup_engine *engine,
			   const struct gfile *file)
{
	if (file->state == PGROUP_GIVING)
		return file->synced;
	if (file->state == PGROUP_UNKNOWN || gfile_is_ours(engine, file))
		return 0;
	return file->table.lock_count + file->table.wait_count;
}

static uint32_t owner_told(const struct pgroup_engine *engine,
			   const struct gfile *file)
{
	if (file->state == PGROUP_SHARED)
		return 0;
	if (file->state == PGROUP_GIVING)
		return engine->config.nodeid;
	return gmember_id(engine, file->owner);
}

struct size {
	size_t files, records, largest;
};

static void measure(const struct pgroup_engine *engine, struct size *size)
{
	const struct gfile *file;

	cds_list_for_each_entry (file, &engine->idle, idle) {
		size_t all = file->table.lock_count + file->table.wait_count;

		size->files++;
		size->records += all;
		size->largest = UG_MAX(size->largest, all);
	}
}

static void copy(struct pgroup_engine *engine, const struct gfile *file)
{
	struct gtransfer *t = &engine->transfer;
	struct gpiece *piece = &t->pieces[t->piece_count];
	size_t first = t->piece_count ? piece[-1].first + piece[-1].count : 0;

	if (file->state == PGROUP_UNKNOWN)
		return;
	*piece = (struct gpiece){ .number = file->number,
				  .table = file->kind,
				  .owner = owner_told(engine, file),
				  .gen = file->gen,
				  .first = first,
				  .count = known_to_all(engine, file) };
	t->piece_count++;
	if (piece->count)
		gfile_gather(engine, file, t->records + first);
}

int gtransfer_prepare(struct pgroup_engine *engine)
{
	struct gtransfer *t = &engine->transfer;
	const struct gfile *file;
	struct size size = { 0 };

	gtransfer_abort(engine);
	measure(engine, &size);
	/* A file that is being given is gathered whole, and cut. */
	t->gone = calloc(engine->gone_count + 1, sizeof(*t->gone));
	t->pieces = calloc(size.files + 1, sizeof(*t->pieces));
	t->records =
		calloc(size.records + size.largest + 1, sizeof(*t->records));
	if (!t->gone || !t->pieces || !t->records) {
		gtransfer_abort(engine);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < engine->gone_count; i++)
		t->gone[t->gone_count++] = engine->gone[i];
	cds_list_for_each_entry (file, &engine->idle, idle)
		copy(engine, file);
	t->last_gen = engine->last_gen;
	t->active = true;
	return 0;
}

void gtransfer_abort(struct pgroup_engine *engine)
{
	free(engine->transfer.gone);
	free(engine->transfer.pieces);
	free(engine->transfer.records);
	engine->transfer = (struct gtransfer){ 0 };
}

static void send_gone(struct pgroup_engine *engine)
{
	struct gtransfer *t = &engine->transfer;
	struct pgroup_msg *msg = pgroup_send(engine, PGROUP_GONE);

	msg->change = engine->change;
	msg->word = (uint32_t)t->gone_at;
	msg->inc = t->gone[t->gone_at++];
}

static void send_data(struct pgroup_engine *engine)
{
	struct gtransfer *t = &engine->transfer;
	const struct gpiece *piece = &t->pieces[t->piece_at];
	struct pgroup_msg *msg = pgroup_send(engine, PGROUP_DATA);
	size_t left = piece->count - t->record_at;

	msg->change = engine->change;
	msg->number = piece->number;
	msg->table = piece->table;
	msg->owner = piece->owner;
	msg->gen = piece->gen;
	msg->count = (uint32_t)UG_MIN(left, (size_t)PGROUP_CHUNK);
	msg->records = t->records + piece->first + t->record_at;
	msg->more = left > PGROUP_CHUNK;
	t->record_at += msg->count;
	if (msg->more)
		return;
	t->record_at = 0;
	t->piece_at++;
}

static void send_done(struct pgroup_engine *engine)
{
	struct gtransfer *t = &engine->transfer;
	struct pgroup_msg *msg = pgroup_send(engine, PGROUP_DONE);

	msg->change = engine->change;
	msg->word = (uint32_t)t->piece_count;
	msg->inc = t->last_gen;
	t->active = false; /* its memory is that of messages, until later */
}

void gtransfer_send(struct pgroup_engine *engine)
{
	const struct gtransfer *t = &engine->transfer;

	for (unsigned i = 0; t->active && i < PGROUP_TRANSFER_BATCH; i++) {
		if (t->gone_at < t->gone_count)
			send_gone(engine);
		else if (t->piece_at < t->piece_count)
			send_data(engine);
		else
			send_done(engine);
	}
	engine->out->more |= t->active;
}

/* The newcomer */

static int receive_gone(struct pgroup_engine *engine,
			const struct pgroup_msg *msg)
{
	if (!msg->inc || msg->word != engine->gone_count ||
	    engine->gone_count == PGROUP_GONE_MAX)
		return -EBADMSG;
	engine->gone[engine->gone_count++] = msg->inc;
	return 0;
}

static int receive_records(struct pgroup_engine *engine, struct gfile *file,
			   const struct pgroup_msg *msg)
{
	while (engine->data_records < msg->count) {
		const struct pgroup_record *record =
			&msg->records[engine->data_records];
		uint64_t inc = gmember_inc(engine, record->nodeid);
		int error = inc ? gapply_record(engine, file, record, inc)
				: -EBADMSG;

		/* It goes on from here when the message is given again. */
		if (error)
			return error;
		engine->data_records++;
	}
	engine->data_records = 0;
	return 0;
}

static int receive_data(struct pgroup_engine *engine,
			const struct pgroup_msg *msg)
{
	uint64_t owner = msg->owner ? gmember_inc(engine, msg->owner) : 0;
	struct gfile *file;
	int error;

	if ((msg->owner && !owner) ||
	    (!engine->config.ownership && (msg->owner || msg->gen)))
		return -EBADMSG;
	file = gfile_open(engine, msg->number, msg->table);
	file->state = owner ? PGROUP_OWNED : PGROUP_SHARED;
	file->owner = owner;
	file->gen = msg->gen;
	error = receive_records(engine, file, msg);
	if (!error && !msg->more)
		engine->data_files++;
	return error;
}

int gtransfer_receive(struct pgroup_engine *engine,
		      const struct pgroup_msg *msg)
{
	if (msg->type == PGROUP_GONE)
		return receive_gone(engine, msg);
	if (msg->type == PGROUP_DATA)
		return receive_data(engine, msg);
	if (msg->word != engine->data_files)
		return -EBADMSG;
	engine->last_gen = (uint32_t)msg->inc;
	engine->phase = GPHASE_REPLAY;
	return 0;
}

int gtransfer_save(struct pgroup_engine *engine, uint64_t from,
		   const struct pgroup_msg *msg)
{
	struct gsaved *saved = engine->spare_saved;

	if (engine->saved_count == PGROUP_SAVED_MAX)
		return -ENOBUFS;
	engine->spare_saved = NULL;
	saved->from = from;
	saved->msg = *msg;
	cds_list_add_tail(&saved->list, &engine->saved);
	engine->saved_count++;
	return 0;
}

static void forget_first(struct pgroup_engine *engine)
{
	struct gsaved *saved =
		cds_list_first_entry(&engine->saved, struct gsaved, list);

	cds_list_del(&saved->list);
	free(saved);
	engine->saved_count--;
}

int gtransfer_replay(struct pgroup_engine *engine)
{
	if (engine->phase != GPHASE_REPLAY)
		return 0;
	while (!glist_empty(&engine->saved)) {
		const struct gsaved *saved = cds_list_first_entry(
			&engine->saved, struct gsaved, list);

		if (pgroup_ready(engine) ||
		    pgroup_ordered(engine, saved->from, &saved->msg) == -ENOMEM)
			return -ENOMEM;
		forget_first(engine);
	}
	gmember_live(engine);
	return 0;
}

void gtransfer_forget(struct pgroup_engine *engine)
{
	while (!glist_empty(&engine->saved))
		forget_first(engine);
	engine->data_files = 0;
	engine->data_records = 0;
}
