/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * view.c - the service seen from outside: counts, dumps, rules.
 */
#include "plock/engine.h"

void plock_count(const struct plock_engine *engine, struct plock_counts *out)
{
	*out = engine->counts;
	out->files = engine->file_count;
	out->pending = engine->call_count;
	ranges_count(engine->ranges, &out->ranges);
}

struct visit {
	struct plock_file_info info;
	enum plock_table table;
	void (*lock)(void *arg, const struct plock_file_info *info,
		     enum plock_table table, const struct range_lock *lock);
	void (*wait)(void *arg, const struct plock_file_info *info,
		     enum plock_table table, const struct range_wait *wait);
	void *arg;
};

static void visit_lock(void *arg, const struct range_lock *lock)
{
	struct visit *v = arg;

	if (v->lock)
		v->lock(v->arg, &v->info, v->table, lock);
}

static void visit_wait(void *arg, const struct range_wait *wait)
{
	struct visit *v = arg;

	if (v->wait)
		v->wait(v->arg, &v->info, v->table, wait);
}

static unsigned calls_of(const struct file *file)
{
	const struct call *call;
	unsigned count = 0;

	cds_list_for_each_entry (call, &file->calls, list)
		count++;
	cds_list_for_each_entry (call, &file->held, list)
		count++;
	return count;
}

static struct plock_file_info info_of(const struct plock_engine *engine,
				      const struct file *file)
{
	bool serves = file->role == FILE_SERVES;

	return (struct plock_file_info){
		.number = file->number,
		.serves = serves,
		.closed = file->closed,
		.serialiser = serves ? engine->config.node : file->serialiser,
		.gen = file->gen,
		.home = home_of(engine, file->number),
		.lent = file->lent,
		.calls = calls_of(file),
		.parked = file->parked_count,
	};
}

void plock_visit(const struct plock_engine *engine,
		 void (*file)(void *arg, const struct plock_file_info *info),
		 void (*lock)(void *arg, const struct plock_file_info *info,
			      enum plock_table table,
			      const struct range_lock *lock),
		 void (*wait)(void *arg, const struct plock_file_info *info,
			      enum plock_table table,
			      const struct range_wait *wait),
		 void *arg)
{
	struct visit v = { .lock = lock, .wait = wait, .arg = arg };
	const struct file *f;

	cds_list_for_each_entry (f, &engine->idle, idle) {
		v.info = info_of(engine, f);
		if (file)
			file(arg, &v.info);
		for (unsigned t = 0; t < PLOCK_TABLES; t++) {
			v.table = (enum plock_table)t;
			range_visit(engine->ranges, &f->tables[t], visit_lock,
				    visit_wait, &v);
		}
	}
}

static void check_file(const struct plock_engine *engine,
		       const struct file *file)
{
	const struct parked *parked;
	const struct call *call;
	unsigned count = 0;

	ug_assert(file_find(engine, file->number) == file);
	cds_list_for_each_entry (parked, &file->parked, list)
		count++;
	ug_assert(count == file->parked_count);
	cds_list_for_each_entry (call, &file->calls, list)
		ug_assert(call->sent_to && call->file == file);
	cds_list_for_each_entry (call, &file->held, list)
		ug_assert(!call->sent_to && call->file == file);
	ug_assert(file->role != FILE_SERVES || !file->serialiser);
	ug_assert(!file->lent || file->role == FILE_CLIENT);
	ug_assert(!file->recalling || file->lent_count);
	for (unsigned t = 0; t < PLOCK_TABLES; t++) {
		range_check(engine->ranges, &file->tables[t]);
		ug_assert(file->role != FILE_CLIENT ||
			  !file->tables[t].wait_count);
		ug_assert(file->role != FILE_MOVING ||
			  !file->tables[t].wait_count);
	}
	if (file->role == FILE_RELEASING)
		ug_assert(!file_has_locks(file));
}

static size_t kept_in(const struct plock_engine *engine,
		      const struct cds_list_head *list)
{
	const struct parked *parked;
	size_t count = 0;

	cds_list_for_each_entry (parked, list, list)
		count += parked->msg.from != engine->config.node;
	return count;
}

void plock_check(const struct plock_engine *engine)
{
	const struct file *file;
	uint32_t files = 0, calls = 0, moving = 0;
	size_t kept = 0;

	cds_list_for_each_entry (file, &engine->idle, idle) {
		check_file(engine, file);
		files++;
		calls += calls_of(file);
		moving += file->role == FILE_MOVING;
		kept += kept_in(engine, &file->parked);
	}
	kept += kept_in(engine, &engine->future);
	kept += kept_in(engine, &engine->questions);
	for (unsigned i = 0; i < UG_ARRAY_SIZE(engine->senders); i++)
		kept -= engine->senders[i].kept;
	ug_assert(!kept);
	ug_assert(engine->answered_count <= engine->call_count);
	ug_assert(files == engine->file_count);
	ug_assert(calls == engine->call_count);
	ug_assert(moving == engine->moving);
}
