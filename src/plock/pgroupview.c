/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pgroupview.c - plock_mode=group seen from outside: counts, dumps, rules.
 */
#include "plock/pgroup_impl.h"

void pgroup_count(const struct pgroup_engine *engine, struct pgroup_counts *out)
{
	*out = engine->counts;
	out->files = engine->file_count;
	out->pending = engine->call_count;
	ranges_count(engine->ranges, &out->ranges);
}

struct visit {
	struct pgroup_file_info info;
	void (*lock)(void *arg, const struct pgroup_file_info *info,
		     const struct range_lock *lock);
	void (*wait)(void *arg, const struct pgroup_file_info *info,
		     const struct range_wait *wait);
	void *arg;
};

static void visit_lock(void *arg, const struct range_lock *lock)
{
	const struct visit *v = arg;

	v->lock(v->arg, &v->info, lock);
}

static void visit_wait(void *arg, const struct range_wait *wait)
{
	const struct visit *v = arg;

	v->wait(v->arg, &v->info, wait);
}

void pgroup_visit(const struct pgroup_engine *engine,
		  void (*file)(void *arg, const struct pgroup_file_info *info),
		  void (*lock)(void *arg, const struct pgroup_file_info *info,
			       const struct range_lock *lock),
		  void (*wait)(void *arg, const struct pgroup_file_info *info,
			       const struct range_wait *wait),
		  void *arg)
{
	struct visit v = { .lock = lock, .wait = wait, .arg = arg };
	const struct gfile *f;

	cds_list_for_each_entry (f, &engine->idle, idle) {
		v.info = (struct pgroup_file_info){ .number = f->number,
						    .table = f->kind,
						    .state = f->state,
						    .owner = f->owner,
						    .gen = f->gen,
						    .synced = f->synced,
						    .calls = f->calls };
		if (file)
			file(arg, &v.info);
		range_visit(engine->ranges, &f->table, lock ? visit_lock : NULL,
			    wait ? visit_wait : NULL, &v);
	}
}

bool pgroup_is_live(const struct pgroup_engine *engine)
{
	return engine->phase == GPHASE_LIVE;
}

static void check_call(const struct pgroup_engine *engine,
		       const struct gcall *call)
{
	struct range_owner who = { engine->config.inc, call->op.owner };
	struct range_wait wait;

	ug_assert(gcall_find(engine, call->id) == call);
	ug_assert((call->state == GCALL_WAITING) == !!call->wait_id);
	ug_assert((call->state == GCALL_WAITING) == glist_empty(&call->list));
	if (call->state != GCALL_WAITING)
		return;
	ug_assert(gcall_of_wait(engine, call->wait_id) == call);
	ug_assert(range_wait_find(engine->ranges, &call->file->table, &who,
				  call->wait_id, &wait));
	ug_assert(wait.req.start == call->op.start &&
		  wait.req.end == call->op.end &&
		  wait.req.mode == call->op.mode);
}

static void check_file(const struct pgroup_engine *engine,
		       const struct gfile *file)
{
	const struct gcall *call;
	uint64_t id = 0;

	range_check(engine->ranges, &file->table);
	ug_assert(gfile_find(engine, file->number, file->kind) == file);
	ug_assert((file->state == PGROUP_OWNED) == !!file->owner);
	ug_assert(file->stale <= file->in_flight);
	ug_assert(file->in_flight <= file->calls);
	if (!engine->config.ownership)
		ug_assert(file->state == PGROUP_SHARED && !file->gen);
	if (file->state == PGROUP_UNKNOWN)
		ug_assert(!file->table.lock_count && !file->table.wait_count);
	cds_list_for_each_entry (call, &file->pending, list) {
		ug_assert(call->file == file && call->state == GCALL_PENDING);
		ug_assert(call->id > id);
		id = call->id;
	}
}

void pgroup_check(const struct pgroup_engine *engine)
{
	const struct gfile *file;
	const struct gcall *call;
	uint32_t calls = 0, named = 0;

	cds_list_for_each_entry (file, &engine->idle, idle) {
		check_file(engine, file);
		named += file->calls;
	}
	for (uint32_t i = 0; i <= engine->call_mask; i++) {
		for (call = engine->calls_by_id[i]; call;
		     call = call->id_next) {
			check_call(engine, call);
			calls++;
		}
	}
	ug_assert(calls == engine->call_count && named == calls);
}
