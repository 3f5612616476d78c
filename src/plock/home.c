/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * home.c - who serialises a file? Each file has a home among the members that
 * remembers just that.
 *
 *	client		 home		 serialiser
 *	  | ACQUIRE ------>|		     |
 *	  |<--- SERVES ----|  it, or you     |
 *	  | OP ------------------------------>|
 *	  |		   |<----- RELEASE --|  idle
 *	  |		   |---- FREED ----->|  forgotten, unless it has moved
 *
 * A serialiser forgets a file only when the home's record names it: else the
 * home could send others to one that is no more, for ever. In each epoch the
 * serialisers claim their files; the home answers when all members have. What
 * nobody claims nobody serialises, or one that is gone.
 */
#include <errno.h>
#include <stdlib.h>

#include "plock/engine.h"

static uint64_t mix(uint64_t v)
{
	v ^= v >> 32;
	v *= 0xd6e8feb86659fd93u;
	v ^= v >> 32;
	v *= 0xd6e8feb86659fd93u;
	return v ^ (v >> 32);
}

/* The member with the highest hash: others keep their files when one goes. */
static uint64_t home_among(const uint64_t *nodes, unsigned count,
			   uint64_t number)
{
	uint64_t best = 0, best_hash = 0;

	for (unsigned i = 0; i < count; i++) {
		uint64_t hash = mix(mix(nodes[i]) + number);

		if (!best || hash > best_hash ||
		    (hash == best_hash && nodes[i] > best)) {
			best = nodes[i];
			best_hash = hash;
		}
	}
	return best;
}

uint64_t home_of(const struct plock_engine *engine, uint64_t number)
{
	return home_among(engine->nodes, engine->node_count, number);
}

static uint64_t new_gen(struct plock_engine *engine)
{
	engine->last_gen = UG_MAX(engine->last_gen + 1, engine->epoch << 32);
	return engine->last_gen;
}

static void set_home(struct plock_engine *engine, struct file *file,
		     uint64_t node, uint64_t gen)
{
	file->home_node = node;
	file->home_gen = gen;
	file->home_stale = false;
	engine->last_gen = UG_MAX(engine->last_gen, gen);
}

/*
 * With no record: has nobody ever locked the file, or one that is gone, whom we
 * never knew as its serialiser? The former is sure if we have been its home for
 * as long as anybody who is gone can have locked it.
 */
static bool nobody_unknown(const struct plock_engine *engine, uint64_t number)
{
	if (!engine->gone_count)
		return true;
	return engine->seen && home_among(engine->seen, engine->seen_count,
					  number) == engine->config.node;
}

/*
 * We serialise it ourselves, from what the clients have registered. Closed: one
 * that is gone may hold locks of it.
 */
static void take_over(struct plock_engine *engine, struct file *file,
		      bool closed)
{
	uint64_t gen = new_gen(engine);

	serve_start(engine, file, gen);
	file->closed = closed;
	set_home(engine, file, engine->config.node, gen);
	TRACE(engine, "file %llu: taken over%s",
	      (unsigned long long)file->number, file->closed ? ", closed" : "");
}

int home_acquire(struct plock_engine *engine, const struct plock_msg *msg)
{
	struct plock_msg *reply;
	struct file *file;
	bool unknown;

	if (home_of(engine, msg->number) != engine->config.node)
		return 0;
	if (!engine->settled)
		return parked_keep(engine, &engine->questions, msg,
				   2 * engine->config.kept_max)
			       ? -EBADMSG
			       : 0;
	file = file_open(engine, msg->number);
	unknown = !nobody_unknown(engine, msg->number);
	if (!file->home_node && (unknown || engine->config.tuning.at_home) &&
	    file->role == FILE_CLIENT)
		take_over(engine, file, unknown);
	else if (!file->home_node)
		set_home(engine, file, msg->from, new_gen(engine));
	reply = plock_send(engine, msg->from, PLOCK_MSG_SERVES, file);
	reply->node = file->home_node;
	reply->gen = file->home_gen;
	return 0;
}

void home_release(struct plock_engine *engine, const struct plock_msg *msg)
{
	struct file *file = file_find(engine, msg->number);
	bool free_it = file && file->home_node == msg->from &&
		       file->home_gen == msg->gen;
	struct plock_msg *reply;

	if (free_it)
		file->home_node = 0;
	reply = plock_send(engine, msg->from, PLOCK_MSG_FREED, NULL);
	reply->number = msg->number;
	reply->gen = msg->gen;
	reply->status = free_it ? 0 : -ESTALE;
}

void home_freed(struct plock_engine *engine, const struct plock_msg *msg)
{
	struct file *file = file_find(engine, msg->number);

	if (!file || file->role != FILE_RELEASING || file->gen != msg->gen)
		return;
	file_set_role(engine, file, msg->status ? FILE_SERVES : FILE_CLIENT);
}

/*
 * MOVED and CLAIM: gens of one file rise, so the highest is the latest. Only a
 * claim against a record of an earlier epoch always counts: a member that took
 * the file and died may have claimed it before with a higher one.
 */
void home_moved(struct plock_engine *engine, const struct plock_msg *msg)
{
	struct file *file = file_open(engine, msg->number);

	if (!file->home_node || file->home_stale || msg->gen >= file->home_gen)
		set_home(engine, file, msg->node, msg->gen);
}

void home_claim(struct plock_engine *engine, const struct file *file)
{
	struct plock_msg *msg = plock_send(
		engine, home_of(engine, file->number), PLOCK_MSG_CLAIM, file);

	msg->node = engine->config.node;
}

int home_register(struct plock_engine *engine, const struct plock_msg *msg)
{
	struct file *file = file_open(engine, msg->number);
	int error;

	/* Whom we took for its serialiser may be one that was it before. */
	if (file->role == FILE_CLIENT)
		file_set_role(engine, file, FILE_REBUILT);
	if (file->role != FILE_REBUILT || msg->from == engine->config.node)
		return 0;
	error = records_put(engine, file, msg);
	return error == -EINVAL ? -EBADMSG : error;
}

static void settle_file(struct plock_engine *engine, struct file *file)
{
	bool lost;

	if (home_of(engine, file->number) != engine->config.node)
		return;
	/*
	 * Nobody has claimed it: whom we knew has died, or has given it to one
	 * that has, or would forget it.
	 */
	lost = file->home_stale;
	if (lost)
		file->home_node = 0;
	file->home_stale = false;
	if (file->home_node && file->role == FILE_REBUILT) {
		/* Who serialises it is alive, and knows all this. */
		file_drop_others(engine, file);
		file_set_role(engine, file, FILE_CLIENT);
	} else if (!file->home_node && (lost || file->role == FILE_REBUILT)) {
		take_over(engine, file, engine->gone_count > 0);
	}
}

void home_settle(struct plock_engine *engine)
{
	files_each(engine, settle_file);
}

void home_new_epoch(struct plock_engine *engine, struct file *file)
{
	if (file->role == FILE_REBUILT) {
		file_drop_others(engine, file);
		file_set_role(engine, file, FILE_CLIENT);
	}
	if (home_of(engine, file->number) != engine->config.node)
		file->home_node = 0;
	file->home_stale = file->home_node != 0;
}
