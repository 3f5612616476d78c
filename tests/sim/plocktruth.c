/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plocktruth.c - what must hold, by what processes have been told.
 */
#include <string.h>

#include "base/compiler.h"
#include "plocksim.h"

bool clash(unsigned a, unsigned b)
{
	return a && b && (a == RANGE_WRITE || b == RANGE_WRITE);
}

static void no_clash(struct world *w, const struct proc *p,
		     const struct proc *other, const char *what)
{
	if (other->table != p->table || other == p)
		return;
	for (unsigned f = 0; f < FILES_MAX; f++) {
		for (unsigned b = 0; b < BYTES; b++) {
			if (clash(p->holds[f][b], other->holds[f][b]))
				fail(w,
				     "%u.%llu and %s%u.%llu both hold byte %u "
				     "of file %u",
				     p->node, (unsigned long long)p->owner,
				     what, other->node,
				     (unsigned long long)other->owner, b, f);
		}
	}
}

void truth_check_grant(struct world *w, const struct proc *p)
{
	for (unsigned n = 1; n <= w->node_count; n++) {
		for (unsigned i = 0; w->nodes[n].alive && i < OWNERS; i++)
			no_clash(w, p, &w->nodes[n].procs[i], "");
	}
	for (unsigned d = 0; d < w->dead_count; d++) {
		for (unsigned i = 0; !w->dead[d].released && i < OWNERS; i++)
			no_clash(w, p, &w->dead[d].procs[i], "the dead ");
	}
}

/* Deadlocks */

/* Who asks for another lock has the old one until that is granted. */
static unsigned has(const struct proc *p, unsigned file, unsigned byte)
{
	if (p->calling && !p->close_ctx && p->file == file &&
	    p->op.kind == PLOCK_SET && p->op.mode != RANGE_NONE &&
	    p->kind != RANGE_FLOCK)
		return p->before[byte];
	return p->holds[file][byte];
}

bool waits_for(const struct proc *p, const struct proc *other)
{
	if (!p->calling || p == other || p->table != other->table ||
	    p->op.kind != PLOCK_SET || !p->op.wait)
		return false;
	for (unsigned b = p->first; b <= p->last; b++) {
		if (clash(p->op.mode, has(other, p->file, b)))
			return true;
	}
	return false;
}

static struct proc *proc_at(struct world *w, unsigned i)
{
	struct node *n = &w->nodes[1 + i / OWNERS];

	return n->alive ? &n->procs[i % OWNERS] : NULL;
}

#define ALL ((unsigned)(NODES_MAX * OWNERS))

static bool leads_to(struct world *w, const struct proc *p,
		     const struct proc *goal, bool *seen)
{
	for (unsigned i = 0; i < ALL; i++) {
		struct proc *next = proc_at(w, i);

		if (!next || !waits_for(p, next))
			continue;
		if (next == goal)
			return true;
		if (seen[i])
			continue;
		seen[i] = true;
		if (leads_to(w, next, goal, seen))
			return true;
	}
	return false;
}

static bool is_stuck(struct world *w, const struct proc *p)
{
	bool seen[ALL];

	memset(seen, 0, sizeof(seen));
	return leads_to(w, p, p, seen);
}

void truth_mark_stuck(struct world *w)
{
	for (unsigned i = 0; i < ALL; i++) {
		struct proc *p = proc_at(w, i);

		if (p && p->calling && !p->was_stuck && is_stuck(w, p))
			p->was_stuck = true;
	}
}

void truth_check_deadlock(struct world *w, struct proc *p)
{
	if (!p->was_stuck && !is_stuck(w, p))
		fail(w, "no deadlock: ctx %llu", (unsigned long long)p->ctx);
}

/* Serialisers */

struct seen {
	struct world *w;
	struct node *n;
	struct node *serves[FILES_MAX];
	uint8_t held[FILES_MAX][NODES_MAX + 1][OWNERS + 1][BYTES];
	bool lent[FILES_MAX][NODES_MAX + 1];
	unsigned pass;
};

static void see_serialiser(void *arg, const struct plock_file_info *info)
{
	struct seen *s = arg;
	unsigned f = (unsigned)info->number - 100;

	if (info->lent)
		s->lent[f][s->n - s->w->nodes] = true;
	if (!info->serves)
		return;
	if (s->serves[f])
		fail(s->w, "file %u has two serialisers, %llx and %llx", f,
		     (unsigned long long)s->serves[f]->node,
		     (unsigned long long)s->n->node);
	s->serves[f] = s->n;
	/* With other members homes change; a file that is in use stays. */
	if (s->w->tuning.at_home && s->w->epochs == 1 &&
	    info->home != s->n->node)
		fail(s->w, "file %u is not with its home", f);
}

static void see_all(struct world *w, struct seen *s)
{
	memset(s, 0, sizeof(*s));
	s->w = w;
	for (unsigned i = 1; i <= w->node_count; i++) {
		s->n = &w->nodes[i];
		if (s->n->alive)
			plock_visit(s->n->engine, see_serialiser, NULL, NULL,
				    s);
	}
}

void truth_check_step(struct world *w)
{
	static struct seen s;

	see_all(w, &s);
	for (unsigned f = 0; w->tuning.at_home && f < FILES_MAX; f++) {
		for (unsigned i = 1; i <= w->node_count; i++) {
			if (s.lent[f][i])
				fail(w, "file %u is lent", f);
		}
	}
}

/* When nothing moves: the tables say what processes have been told. */

static void see_lock(void *arg, const struct plock_file_info *info,
		     enum plock_table table, const struct range_lock *lock)
{
	struct seen *s = arg;
	unsigned f = (unsigned)info->number - 100, place = lock->who.node & 255;
	uint64_t last = UG_MIN(lock->end, (uint64_t)BYTES - 1);
	bool own = lock->who.node == s->n->node;

	(void)table;
	if (!place || place > s->w->node_count ||
	    s->w->nodes[place].node != lock->who.node ||
	    !s->w->nodes[place].alive)
		fail(s->w, "file %u: a lock of %llx, which is no more", f,
		     (unsigned long long)lock->who.node);
	/* Where read locks are lent the reader's own table counts. */
	if (info->serves ? s->lent[f][place] : !s->lent[f][place] || !own)
		return;
	if (lock->kind == RANGE_FLOCK)
		last = 0;
	for (uint64_t b = lock->start; b <= last; b++)
		s->held[f][place][lock->who.owner][b] = (uint8_t)lock->mode;
}

static void see_wait(void *arg, const struct plock_file_info *info,
		     enum plock_table table, const struct range_wait *wait)
{
	struct seen *s = arg;
	const struct proc *p;
	unsigned place = wait->req.who.node & 255;

	(void)info;
	(void)table;
	p = &s->w->nodes[place].procs[wait->req.who.owner - 1];
	if (s->w->nodes[place].node != wait->req.who.node || !p->calling ||
	    p->id != wait->req.ctx)
		fail(s->w, "a wait of nobody, call %llu",
		     (unsigned long long)wait->req.ctx);
}

static void compare(struct world *w, const struct seen *s, const struct proc *p)
{
	for (unsigned f = 0; f < w->file_count; f++) {
		for (unsigned b = 0; b < BYTES; b++) {
			unsigned told = p->holds[f][b];
			unsigned is = s->held[f][p->node][p->owner][b];

			if (told != is && !p->calling && !p->close_ctx &&
			    !p->doubt[f])
				fail(w,
				     "byte %u of file %u: %u.%llu has been "
				     "told %u, the table says %u",
				     b, f, p->node,
				     (unsigned long long)p->owner, told, is);
		}
	}
}

void truth_check_quiet(struct world *w)
{
	static struct seen s;

	see_all(w, &s);
	for (unsigned i = 1; i <= w->node_count; i++) {
		s.n = &w->nodes[i];
		if (s.n->alive)
			plock_visit(s.n->engine, NULL, see_lock, see_wait, &s);
	}
	for (unsigned i = 0; i < ALL; i++) {
		struct proc *p = proc_at(w, i);

		if (p)
			compare(w, &s, p);
	}
}

void truth_check_empty(struct world *w)
{
	for (unsigned i = 1; i <= w->node_count; i++) {
		struct plock_counts counts;

		if (!w->nodes[i].alive)
			continue;
		plock_count(w->nodes[i].engine, &counts);
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
