/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * file.c - the files that are known here, as client, serialiser or home.
 *
 * All are in one list, the least used first: what has been idle for long is
 * forgotten, after its home has agreed if it is served here.
 */
#include <errno.h>
#include <stdlib.h>

#include "plock/engine.h"

#define FILES_FIRST 64u

static uint32_t slot_of(uint64_t number, uint32_t mask)
{
	number *= 0x9e3779b97f4a7c15u;
	return (uint32_t)(number >> 32) & mask;
}

int files_init(struct plock_engine *engine)
{
	engine->files = calloc(FILES_FIRST, sizeof(struct file *));
	engine->file_mask = FILES_FIRST - 1;
	return engine->files ? 0 : -ENOMEM;
}

static void file_free(struct plock_engine *engine, struct file *file)
{
	parked_free_all(engine, &file->parked);
	for (unsigned t = 0; t < PLOCK_TABLES; t++)
		range_table_clear(engine->ranges, &file->tables[t]);
	free(file);
}

void files_free(struct plock_engine *engine)
{
	for (uint32_t i = 0; engine->files && i <= engine->file_mask; i++) {
		while (engine->files[i]) {
			struct file *file = engine->files[i];

			engine->files[i] = file->hash_next;
			file_free(engine, file);
		}
	}
	free(engine->files);
}

struct file *file_find(const struct plock_engine *engine, uint64_t number)
{
	struct file *file = engine->files[slot_of(number, engine->file_mask)];

	while (file && file->number != number)
		file = file->hash_next;
	return file;
}

/* Without memory the chains get longer. */
static void files_grow(struct plock_engine *engine)
{
	uint32_t size = (engine->file_mask + 1) * 2;
	struct file **files = calloc(size, sizeof(*files));

	if (!files)
		return;
	for (uint32_t i = 0; i <= engine->file_mask; i++) {
		while (engine->files[i]) {
			struct file *file = engine->files[i];
			uint32_t slot = slot_of(file->number, size - 1);

			engine->files[i] = file->hash_next;
			file->hash_next = files[slot];
			files[slot] = file;
		}
	}
	free(engine->files);
	engine->files = files;
	engine->file_mask = size - 1;
}

struct file *file_open(struct plock_engine *engine, uint64_t number)
{
	struct file *file = file_find(engine, number);
	uint32_t slot;

	if (file)
		return file;
	if (engine->file_count > engine->file_mask)
		files_grow(engine);
	file = engine->spare_file;
	ug_assert(file);
	engine->spare_file = NULL;
	*file = (struct file){ .number = number };
	slot = slot_of(number, engine->file_mask);
	file->hash_next = engine->files[slot];
	engine->files[slot] = file;
	engine->file_count++;
	for (unsigned t = 0; t < PLOCK_TABLES; t++)
		range_table_init(engine->ranges, &file->tables[t]);
	CDS_INIT_LIST_HEAD(&file->calls);
	CDS_INIT_LIST_HEAD(&file->held);
	CDS_INIT_LIST_HEAD(&file->parked);
	CDS_INIT_LIST_HEAD(&file->runnable);
	CDS_INIT_LIST_HEAD(&file->throttled);
	file->used_ns = engine->now_ns;
	cds_list_add_tail(&file->idle, &engine->idle);
	return file;
}

void file_used(struct plock_engine *engine, struct file *file)
{
	if (file->used_ns == engine->now_ns)
		return;
	file->used_ns = engine->now_ns;
	cds_list_del(&file->idle);
	cds_list_add_tail(&file->idle, &engine->idle);
}

void file_run(struct plock_engine *engine, struct file *file)
{
	if (list_empty(&file->runnable))
		cds_list_add_tail(&file->runnable, &engine->runnable);
}

static const char *role_name(enum file_role role)
{
	switch (role) {
	case FILE_CLIENT:
		return "client";
	case FILE_SERVES:
		return "serves";
	case FILE_MOVING:
		return "moving";
	case FILE_RELEASING:
		return "releasing";
	case FILE_REBUILT:
		return "rebuilt";
	}
	return "?";
}

static bool move_is_legal(enum file_role from, enum file_role to)
{
	switch (from) {
	case FILE_CLIENT:
		return to == FILE_SERVES || to == FILE_REBUILT;
	case FILE_SERVES:
		return to == FILE_MOVING || to == FILE_RELEASING;
	case FILE_MOVING:
	case FILE_RELEASING:
	case FILE_REBUILT:
		return to == FILE_CLIENT || to == FILE_SERVES;
	}
	return false;
}

void file_set_role(struct plock_engine *engine, struct file *file,
		   enum file_role role)
{
	ug_assert(move_is_legal(file->role, role));
	TRACE(engine, "file %llu: %s, was %s, gen %llx",
	      (unsigned long long)file->number, role_name(role),
	      role_name(file->role), (unsigned long long)file->gen);
	file->role = role;
	file_run(engine, file);
}

bool file_has_locks(const struct file *file)
{
	return file->tables[PLOCK_FCNTL].lock_count ||
	       file->tables[PLOCK_FLOCK].lock_count;
}

static bool file_has_waits(const struct file *file)
{
	return file->tables[PLOCK_FCNTL].wait_count ||
	       file->tables[PLOCK_FLOCK].wait_count;
}

void file_drop_others(struct plock_engine *engine, struct file *file)
{
	for (unsigned t = 0; t < PLOCK_TABLES; t++)
		range_keep_node(engine->ranges, &file->tables[t],
				engine->config.node);
}

void files_each(struct plock_engine *engine,
		void (*each)(struct plock_engine *engine, struct file *file))
{
	struct file *file, *next;

	cds_list_for_each_entry_safe (file, next, &engine->idle, idle)
		each(engine, file);
}

static bool file_is_unused(const struct file *file)
{
	return !file_has_locks(file) && !file_has_waits(file) &&
	       list_empty(&file->calls) && list_empty(&file->held) &&
	       list_empty(&file->parked) && !file->asking && !file->taking_from;
}

static void file_forget(struct plock_engine *engine, struct file *file)
{
	struct file **at =
		&engine->files[slot_of(file->number, engine->file_mask)];

	while (*at != file)
		at = &(*at)->hash_next;
	*at = file->hash_next;
	engine->file_count--;
	cds_list_del(&file->idle);
	if (!list_empty(&file->runnable))
		cds_list_del(&file->runnable);
	rate_forget(engine, file);
	file_free(engine, file);
}

static void file_is_idle(struct plock_engine *engine, struct file *file)
{
	if (!engine->settled || file->role != FILE_SERVES)
		return;
	if (file->lent_count) {
		lend_recall(engine, file); /* who knows what they still hold */
	} else if (file_is_unused(file) && !file->closed) {
		file_set_role(engine, file, FILE_RELEASING);
		plock_send(engine, home_of(engine, file->number),
			   PLOCK_MSG_RELEASE, file);
	}
}

void files_tick(struct plock_engine *engine)
{
	if (engine->now_ns < engine->drop_ns)
		return;
	engine->drop_ns = engine->now_ns + engine->config.tuning.drop_every_ns;
	for (uint32_t n = 0; n < engine->config.tuning.drop_count; n++) {
		struct file *file;

		/* Of one file they can be as many as it is lent to. */
		if (list_empty(&engine->idle) || plock_reserve(engine))
			return;
		file = cds_list_first_entry(&engine->idle, struct file, idle);
		if (file->used_ns + engine->config.tuning.idle_ns >
		    engine->now_ns)
			return;
		if (file->role == FILE_CLIENT && file_is_unused(file) &&
		    !file->home_node) {
			file_forget(engine, file);
			continue;
		}
		file_used(engine, file);
		file_is_idle(engine, file);
	}
}
