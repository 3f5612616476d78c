/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pgroupfile.c - the files that are known here.
 *
 * Without ownership each is shared, and there as long as it has a lock, a wait
 * or a call. With it a file that somebody owns or owned stays until it is
 * dropped by all: pgroupown.c.
 */
#include <errno.h>
#include <stdlib.h>

#include "plock/pgroup_impl.h"

#define FILES_FIRST 64u

static uint32_t slot_of(uint64_t number, enum plock_table kind, uint32_t mask)
{
	number = (number + (uint64_t)kind) * 0x9e3779b97f4a7c15u;
	return (uint32_t)(number >> 32) & mask;
}

int gfiles_init(struct pgroup_engine *engine)
{
	engine->files = calloc(FILES_FIRST, sizeof(struct gfile *));
	engine->file_mask = FILES_FIRST - 1;
	return engine->files ? 0 : -ENOMEM;
}

void gfiles_free(struct pgroup_engine *engine)
{
	for (uint32_t i = 0; engine->files && i <= engine->file_mask; i++) {
		while (engine->files[i]) {
			struct gfile *file = engine->files[i];

			engine->files[i] = file->hash_next;
			free(file);
		}
	}
	free(engine->files);
}

struct gfile *gfile_find(const struct pgroup_engine *engine, uint64_t number,
			 enum plock_table kind)
{
	struct gfile *file =
		engine->files[slot_of(number, kind, engine->file_mask)];

	while (file && (file->number != number || file->kind != kind))
		file = file->hash_next;
	return file;
}

/* Without memory the chains get longer. */
static void files_grow(struct pgroup_engine *engine)
{
	uint32_t size = (engine->file_mask + 1) * 2;
	struct gfile **files = calloc(size, sizeof(struct gfile *));

	if (!files)
		return;
	for (uint32_t i = 0; i <= engine->file_mask; i++) {
		while (engine->files[i]) {
			struct gfile *file = engine->files[i];
			uint32_t slot =
				slot_of(file->number, file->kind, size - 1);

			engine->files[i] = file->hash_next;
			file->hash_next = files[slot];
			files[slot] = file;
		}
	}
	free(engine->files);
	engine->files = files;
	engine->file_mask = size - 1;
}

struct gfile *gfile_open(struct pgroup_engine *engine, uint64_t number,
			 enum plock_table kind)
{
	struct gfile *file = gfile_find(engine, number, kind);
	uint32_t slot;

	if (file)
		return file;
	if (engine->file_count > engine->file_mask)
		files_grow(engine);
	file = engine->spare_file;
	ug_assert(file);
	engine->spare_file = NULL;
	*file = (struct gfile){ .number = number,
				.kind = kind,
				.state = engine->config.ownership
						 ? PGROUP_UNKNOWN
						 : PGROUP_SHARED,
				.used_ns = engine->now_ns };
	slot = slot_of(number, kind, engine->file_mask);
	file->hash_next = engine->files[slot];
	engine->files[slot] = file;
	engine->file_count++;
	range_table_init(engine->ranges, &file->table);
	CDS_INIT_LIST_HEAD(&file->pending);
	CDS_INIT_LIST_HEAD(&file->runnable);
	cds_list_add_tail(&file->idle, &engine->idle);
	return file;
}

static bool is_needed(const struct pgroup_engine *engine,
		      const struct gfile *file)
{
	if (file->calls || file->table.lock_count || file->table.wait_count ||
	    !glist_empty(&file->runnable))
		return true;
	return engine->config.ownership && file->state != PGROUP_UNKNOWN;
}

void gfile_put(struct pgroup_engine *engine, struct gfile *file)
{
	struct gfile **at;

	if (is_needed(engine, file))
		return;
	at = &engine->files[slot_of(file->number, file->kind,
				    engine->file_mask)];
	while (*at != file)
		at = &(*at)->hash_next;
	*at = file->hash_next;
	engine->file_count--;
	cds_list_del(&file->idle);
	free(file);
}

void gfile_used(struct pgroup_engine *engine, struct gfile *file)
{
	if (file->used_ns == engine->now_ns)
		return;
	file->used_ns = engine->now_ns;
	cds_list_del(&file->idle);
	cds_list_add_tail(&file->idle, &engine->idle);
}

static bool move_is_legal(enum pgroup_file_state from,
			  enum pgroup_file_state to)
{
	static const bool legal[4][4] = {
		[PGROUP_UNKNOWN] = { [PGROUP_OWNED] = true },
		[PGROUP_OWNED] = { [PGROUP_GIVING] = true,
				   [PGROUP_SHARED] = true },
		[PGROUP_GIVING] = { [PGROUP_SHARED] = true },
		[PGROUP_SHARED] = { [PGROUP_UNKNOWN] = true },
	};

	return legal[from][to];
}

void gfile_set_state(struct pgroup_engine *engine, struct gfile *file,
		     enum pgroup_file_state state, uint64_t owner)
{
	ug_assert(move_is_legal(file->state, state));
	GTRACE(engine, "file %llx.%u: state %u to %u, owner %llx",
	       (unsigned long long)file->number, file->kind, file->state, state,
	       (unsigned long long)owner);
	file->state = state;
	file->owner = owner;
	file->synced = 0;
	gfile_run(engine, file);
}

void gfile_run(struct pgroup_engine *engine, struct gfile *file)
{
	if (glist_empty(&file->runnable))
		cds_list_add_tail(&file->runnable, &engine->runnable);
}

void gfiles_each(struct pgroup_engine *engine,
		 void (*each)(struct pgroup_engine *engine, struct gfile *file,
			      uint64_t arg),
		 uint64_t arg)
{
	for (uint32_t i = 0; i <= engine->file_mask; i++) {
		struct gfile *file = engine->files[i], *next;

		for (; file; file = next) {
			next = file->hash_next;
			each(engine, file, arg);
			gfile_put(engine, file);
		}
	}
}

struct gather {
	const struct pgroup_engine *engine;
	struct pgroup_record *out;
	size_t count;
};

static void gather_lock(void *arg, const struct range_lock *lock)
{
	struct gather *g = arg;

	g->out[g->count++] = (struct pgroup_record){
		.start = lock->start,
		.end = lock->end,
		.owner = lock->who.owner,
		.pid = lock->pid,
		.nodeid = gmember_id(g->engine, lock->who.node),
		.mode = lock->mode,
		.kind = lock->kind,
	};
}

static void gather_wait(void *arg, const struct range_wait *wait)
{
	const struct range_request *req = &wait->req;
	struct gather *g = arg;

	g->out[g->count++] = (struct pgroup_record){
		.start = req->start,
		.end = req->end,
		.owner = req->who.owner,
		.pid = req->pid,
		.nodeid = gmember_id(g->engine, req->who.node),
		.mode = req->mode,
		.kind = req->kind,
		.waiter = true,
		.came = req->now_ns,
	};
}

static int by_arrival(const void *a, const void *b)
{
	const struct pgroup_record *ra = a, *rb = b;

	return ra->came < rb->came ? -1 : ra->came > rb->came;
}

size_t gfile_gather(const struct pgroup_engine *engine,
		    const struct gfile *file, struct pgroup_record *out)
{
	struct gather g = { engine, out, 0 };
	size_t locks;

	range_visit(engine->ranges, &file->table, gather_lock, NULL, &g);
	locks = g.count;
	range_visit(engine->ranges, &file->table, NULL, gather_wait, &g);
	if (g.count > locks)
		qsort(out + locks, g.count - locks, sizeof(*out), by_arrival);
	return g.count;
}
