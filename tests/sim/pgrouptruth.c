/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pgrouptruth.c - what must hold of the tables of plock_mode=group.
 */
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "pgroupsim.h"

/* What all have in common, in one number */

#define RECORDS_MAX 1024

struct item {
	uint64_t came;
	uint64_t hash;
};

struct sum {
	const struct pgroup_engine *engine;
	struct pgroup_file_info file;
	struct item locks[RECORDS_MAX], waits[RECORDS_MAX];
	size_t lock_count, wait_count;
	uint64_t total;
};

static uint64_t mix(uint64_t a, uint64_t b)
{
	a = (a ^ b) * 0x9e3779b97f4a7c15u;
	return a ^ a >> 29;
}

static int by_came(const void *a, const void *b)
{
	const struct item *ia = a, *ib = b;

	return ia->came < ib->came ? -1 : ia->came > ib->came;
}

/* The file seen last: locks in any order, waits as they came. */
static void close_file(struct sum *s)
{
	const struct pgroup_file_info *f = &s->file;
	size_t locks = s->lock_count, waits = s->wait_count;
	uint64_t hash = mix(f->number, f->table), rank = 0;

	if (!f->number || f->state == PGROUP_UNKNOWN)
		return;
	if (f->state == PGROUP_SHARED && !f->gen && !locks && !waits)
		return; /* without ownership: only a call keeps it here */
	if (f->state == PGROUP_SHARED) {
		hash = mix(hash, f->gen);
	} else {
		hash = mix(hash, f->owner);
		locks = UG_MIN(locks, (size_t)f->synced);
		waits = UG_MIN(waits, f->synced - locks);
	}
	for (size_t i = 0; i < locks; i++)
		s->total += mix(hash, s->locks[i].hash);
	qsort(s->waits, s->wait_count, sizeof(struct item), by_came);
	for (size_t i = 0; i < waits; i++)
		s->total += mix(mix(hash, ++rank), s->waits[i].hash);
	s->total += mix(hash, 1);
}

static uint64_t self_of(const struct pgroup_engine *engine)
{
	for (unsigned i = 1; i <= NODES_MAX; i++) {
		if (gnodes[i].engine == engine)
			return gnodes[i].proc & 0xffffffff;
	}
	return 0;
}

static void see_file(void *arg, const struct pgroup_file_info *info)
{
	struct sum *s = arg;

	close_file(s);
	s->file = *info;
	s->lock_count = s->wait_count = 0;
	/* Incarnations are pids here. What others own has come by SYNCs. */
	if (info->state == PGROUP_GIVING)
		s->file.owner = self_of(s->engine);
	else if (info->state == PGROUP_OWNED &&
		 info->owner != self_of(s->engine))
		s->file.synced = UINT32_MAX;
}

static void see_lock(void *arg, const struct pgroup_file_info *info,
		     const struct range_lock *lock)
{
	struct sum *s = arg;
	uint64_t hash = mix(lock->who.node, lock->who.owner);

	(void)info;
	hash = mix(mix(hash, lock->start), lock->end);
	hash = mix(mix(hash, lock->mode), lock->kind);
	s->locks[s->lock_count++].hash = mix(hash, lock->pid);
}

static void see_wait(void *arg, const struct pgroup_file_info *info,
		     const struct range_wait *wait)
{
	const struct range_request *req = &wait->req;
	struct sum *s = arg;
	uint64_t hash = mix(req->who.node, req->who.owner);

	(void)info;
	hash = mix(mix(hash, req->start), req->end);
	hash = mix(mix(hash, req->mode), req->kind);
	s->waits[s->wait_count].came = req->now_ns;
	s->waits[s->wait_count++].hash = mix(hash, req->pid);
}

uint64_t digest_of(const struct pgroup_engine *engine)
{
	static struct sum s;

	memset(&s.file, 0, sizeof(s.file));
	s.engine = engine;
	s.total = 1;
	pgroup_visit(engine, see_file, see_lock, see_wait, &s);
	close_file(&s);
	return s.total;
}

/* When nothing moves: the tables say what processes have been told. */

struct told {
	struct world *w;
	const struct node *n;
	uint8_t held[FILES_MAX][OWNERS + 1][BYTES];
};

static const struct node *node_of(const struct world *w, uint64_t inc)
{
	for (unsigned i = 1; i <= w->node_count; i++) {
		if (w->nodes[i].alive && w->nodes[i].node == inc)
			return &w->nodes[i];
	}
	return NULL;
}

static void hold(void *arg, const struct pgroup_file_info *info,
		 const struct range_lock *lock)
{
	struct told *t = arg;
	unsigned f = (unsigned)info->number - 100;
	uint64_t last = lock->kind == RANGE_FLOCK
				? 0
				: UG_MIN(lock->end, (uint64_t)BYTES - 1);

	if (!node_of(t->w, lock->who.node))
		fail(t->w, "file %u: a lock of %llx, which is no more", f,
		     (unsigned long long)lock->who.node);
	if (lock->who.node != t->n->node)
		return;
	for (uint64_t b = lock->start; b <= last; b++)
		t->held[f][lock->who.owner][b] = (uint8_t)lock->mode;
}

static void wait(void *arg, const struct pgroup_file_info *info,
		 const struct range_wait *wait)
{
	const struct told *t = arg;
	const struct node *n = node_of(t->w, wait->req.who.node);
	const struct proc *p = n ? &n->procs[wait->req.who.owner - 1] : NULL;

	if (!p || !p->calling || p->file != info->number - 100)
		fail(t->w, "file %llu: a wait of nobody, of %llx",
		     (unsigned long long)info->number,
		     (unsigned long long)wait->req.who.node);
}

static bool is_in_the_way(const struct world *w, const struct proc *p)
{
	for (unsigned i = 1; i <= w->node_count; i++) {
		for (unsigned o = 0; w->nodes[i].alive && o < OWNERS; o++) {
			if (waits_for(p, &w->nodes[i].procs[o]))
				return true;
		}
	}
	return false;
}

static void compare(struct told *t, const struct proc *p)
{
	bool lock = p->op.kind == PLOCK_SET && p->op.mode != RANGE_NONE;

	if (p->close_ctx || (p->calling && !(lock && p->op.wait)))
		fail(t->w, "ctx %llu is not answered",
		     (unsigned long long)p->ctx);
	if (p->calling && p->cancelled)
		fail(t->w, "ctx %llu is interrupted, and waits",
		     (unsigned long long)p->ctx);
	if (p->calling && !is_in_the_way(t->w, p))
		fail(t->w, "ctx %llu waits for nothing",
		     (unsigned long long)p->ctx);
	for (unsigned f = 0; f < t->w->file_count; f++) {
		for (unsigned b = 0; b < BYTES; b++) {
			unsigned is = t->held[f][p->owner][b];

			if (p->holds[f][b] != is && !p->doubt[f] &&
			    !(p->calling && p->file == f))
				fail(t->w,
				     "byte %u of file %u: %u.%llu has been "
				     "told %u, the table says %u",
				     b, f, p->node,
				     (unsigned long long)p->owner,
				     p->holds[f][b], is);
		}
	}
}

void gtruth_check_quiet(struct world *w)
{
	static struct told t;

	for (unsigned i = 1; i <= w->node_count; i++) {
		if (!w->nodes[i].alive)
			continue;
		memset(&t, 0, sizeof(t));
		t.w = w;
		t.n = &w->nodes[i];
		pgroup_visit(gnodes[i].engine, NULL, hold, wait, &t);
		for (unsigned o = 0; o < OWNERS; o++)
			compare(&t, &w->nodes[i].procs[o]);
	}
}

void gtruth_check_empty(struct world *w)
{
	for (unsigned i = 1; i <= w->node_count; i++) {
		struct pgroup_counts counts;

		if (!w->nodes[i].alive)
			continue;
		pgroup_count(gnodes[i].engine, &counts);
		if (counts.ranges.locks || counts.ranges.waits ||
		    counts.pending || counts.files)
			fail(w,
			     "%llx has %u locks, %u waits, %u calls, %u files "
			     "at the end",
			     (unsigned long long)w->nodes[i].node,
			     counts.ranges.locks, counts.ranges.waits,
			     counts.pending, counts.files);
	}
}
