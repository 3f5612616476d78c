/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plockproc.c - processes that lock, and what they must never be told.
 */
#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "plocksim.h"

void procs_boot(struct world *w, unsigned node)
{
	static const enum range_kind kinds[OWNERS] = { RANGE_POSIX, RANGE_POSIX,
						       RANGE_OFD, RANGE_FLOCK };

	for (unsigned i = 0; i < OWNERS; i++) {
		struct proc *p = &w->nodes[node].procs[i];

		memset(p, 0, sizeof(*p));
		p->node = node;
		p->owner = i + 1;
		p->kind = kinds[i];
		p->table = kinds[i] == RANGE_FLOCK ? PLOCK_FLOCK : PLOCK_FCNTL;
	}
}

static bool holds_any(const struct proc *p)
{
	for (unsigned f = 0; f < FILES_MAX; f++) {
		for (unsigned b = 0; b < BYTES; b++) {
			if (p->holds[f][b] || p->doubt[f])
				return true;
		}
	}
	return false;
}

/* From now on it relies on no more than what it would have either way. */
static void rely_less(struct proc *p)
{
	unsigned first = p->first, last = p->last;
	unsigned mode = p->op.mode;

	if (p->op.kind == PLOCK_GET)
		return;
	if (p->op.kind == PLOCK_CLOSE) {
		first = 0;
		last = BYTES - 1;
		mode = RANGE_NONE;
	}
	for (unsigned b = first; b <= last; b++) {
		uint8_t *held = &p->holds[p->file][b];

		if (p->kind == RANGE_FLOCK && mode > *held)
			*held = RANGE_NONE;
		*held = (uint8_t)UG_MIN(*held, mode);
	}
}

static const char *kind_name(const struct plock_op *op)
{
	if (op->kind == PLOCK_GET)
		return "get";
	if (op->kind == PLOCK_CLOSE)
		return "close";
	return op->mode == RANGE_WRITE	? "write"
	       : op->mode == RANGE_READ ? "read"
					: "unlock";
}

static void call(struct world *w, struct proc *p)
{
	struct plock_event event = { .kind = PLOCK_EV_CALL };
	struct node *n = &w->nodes[p->node];

	p->calling = true;
	p->cancelled = false;
	p->was_stuck = false;
	p->ctx = w->next_ctx++;
	p->since_ns = w->now_ns;
	p->op.table = p->table;
	p->op.owner_kind = p->kind;
	p->op.owner = p->owner;
	p->op.pid = 1000 * p->node + (uint32_t)p->owner;
	p->op.start = p->kind == RANGE_FLOCK ? 0 : p->first;
	p->op.end = p->kind == RANGE_FLOCK ? RANGE_END : p->last;
	if (p->kind == RANGE_FLOCK)
		p->first = p->last = 0;
	truth_mark_stuck(w);
	memcpy(p->before, p->holds[p->file], sizeof(p->before));
	rely_less(p);
	w->calls++;
	if (w->trace)
		printf("%.6f %u.%llu file %u %s%s %u-%u ctx %llu\n",
		       (double)w->now_ns / 1e9, p->node,
		       (unsigned long long)p->owner, p->file, kind_name(&p->op),
		       p->op.wait ? " wait" : "", p->first, p->last,
		       (unsigned long long)p->ctx);
	event.call.number = 100 + p->file;
	event.call.op = p->op;
	event.call.ctx = p->ctx;
	if (node_step(w, n, &event))
		fail(w, "a call is refused");
	if (p->calling)
		p->id = event.call.id;
}

/*
 * Another thread closes the file while a call is under way that does not wait:
 * the close is behind it, so nothing is left in the end.
 */
static void close_behind(struct world *w, struct proc *p)
{
	struct plock_event event = { .kind = PLOCK_EV_CALL };

	p->close_ctx = w->next_ctx++;
	truth_mark_stuck(w);
	memset(p->holds[p->file], 0, sizeof(p->holds[p->file]));
	w->calls++;
	if (w->trace)
		printf("%.6f %u.%llu file %u close behind, ctx %llu\n",
		       (double)w->now_ns / 1e9, p->node,
		       (unsigned long long)p->owner, p->file,
		       (unsigned long long)p->close_ctx);
	event.call.number = 100 + p->file;
	event.call.op = p->op;
	event.call.op.kind = PLOCK_CLOSE;
	event.call.op.mode = RANGE_NONE;
	event.call.op.wait = false;
	event.call.ctx = p->close_ctx;
	if (node_step(w, &w->nodes[p->node], &event))
		fail(w, "a close is refused");
}

static void cancel(struct world *w, struct proc *p)
{
	struct plock_event event = { .kind = PLOCK_EV_CANCEL };

	truth_mark_stuck(w);
	event.cancel.id = p->id;
	p->cancelled = true;
	if (w->trace)
		printf("%.6f %u.%llu cancel ctx %llu\n",
		       (double)w->now_ns / 1e9, p->node,
		       (unsigned long long)p->owner,
		       (unsigned long long)p->ctx);
	if (node_step(w, &w->nodes[p->node], &event))
		fail(w, "a call that has no answer cannot be cancelled");
}

static void new_call(struct world *w, struct proc *p)
{
	unsigned a, b;

	memset(&p->op, 0, sizeof(p->op));
	p->file = (unsigned)choose(w, w->file_count);
	if (chance(w, w->homely))
		p->file = p->node % w->file_count;
	a = (unsigned)choose(w, BYTES);
	b = (unsigned)choose(w, BYTES);
	p->first = UG_MIN(a, b);
	p->last = chance(w, 60) ? p->first : UG_MAX(a, b);
	p->op.kind = PLOCK_SET;
	p->op.mode = chance(w, w->reads) ? RANGE_READ : RANGE_WRITE;
	p->op.wait = chance(w, w->waits);
	if (chance(w, w->unlocks) && holds_any(p))
		p->op.mode = RANGE_NONE;
	if (chance(w, 5) && p->op.mode != RANGE_NONE)
		p->op.kind = PLOCK_GET;
	if (chance(w, 8))
		p->op.kind = PLOCK_CLOSE;
	call(w, p);
}

static void give_back(struct world *w, struct proc *p)
{
	for (unsigned f = 0; f < w->file_count; f++) {
		for (unsigned b = 0; b < BYTES; b++) {
			if (!p->holds[f][b] && !p->doubt[f])
				continue;
			memset(&p->op, 0, sizeof(p->op));
			p->file = f;
			p->op.kind = PLOCK_CLOSE;
			call(w, p);
			return;
		}
	}
}

/* Then files move to whose turn it is. */
static bool is_not_its_turn(struct world *w, unsigned node)
{
	uint64_t turn = w->now_ns / (25 * MS) % w->node_count + 1;

	return w->turns && !w->quiet && turn != node && chance(w, 95);
}

void proc_act(struct world *w, unsigned node)
{
	struct proc *p = &w->nodes[node].procs[choose(w, OWNERS)];
	bool waits = p->op.kind == PLOCK_SET && p->op.wait && p->op.mode;

	if (is_not_its_turn(w, node))
		return;
	if (p->calling && !waits && !p->close_ctx && !w->quiet &&
	    p->op.kind == PLOCK_SET && chance(w, w->group ? 60 : 20))
		close_behind(w, p);
	if (p->close_ctx)
		return;
	if (!p->calling && w->draining)
		give_back(w, p);
	else if (!p->calling && !w->quiet)
		new_call(w, p);
	else if (p->calling && waits && !p->cancelled &&
		 ((!w->quiet && chance(w, w->cancels)) ||
		  (w->draining && (p->kind != RANGE_POSIX || w->group) &&
		   w->now_ns - p->since_ns > 2 * SEC)))
		cancel(w, p);
}

static void granted(struct world *w, struct proc *p)
{
	if (p->op.kind == PLOCK_CLOSE)
		p->doubt[p->file] = false;
	if (p->op.kind != PLOCK_SET || p->op.mode == RANGE_NONE)
		return;
	for (unsigned b = p->first; b <= p->last; b++)
		p->holds[p->file][b] = (uint8_t)p->op.mode;
	w->grants++;
	truth_check_grant(w, p);
}

/* What is refused changes nothing; an flock has given back what it had. */
static void refused(struct world *w, struct proc *p, int status)
{
	if (p->kind == RANGE_FLOCK) {
		p->doubt[p->file] |= status != -EAGAIN;
		return;
	}
	if (status == -EIO)
		return;
	memcpy(p->holds[p->file], p->before, sizeof(p->before));
	truth_check_grant(w, p);
}

static void check_status(struct world *w, struct proc *p, int status)
{
	bool lock = p->op.kind == PLOCK_SET && p->op.mode != RANGE_NONE;

	switch (status) {
	case 0:
		return;
	case -EAGAIN:
		if (!lock || p->op.wait)
			fail(w, "refused: ctx %llu",
			     (unsigned long long)p->ctx);
		return;
	case -EINTR:
		if (!p->cancelled && !(w->group && (p->closed || p->close_ctx)))
			fail(w, "EINTR without cancel: ctx %llu",
			     (unsigned long long)p->ctx);
		w->cancelled++;
		return;
	case -EDEADLK:
		if (!lock || !p->op.wait || p->kind != RANGE_POSIX)
			fail(w, "EDEADLK for ctx %llu",
			     (unsigned long long)p->ctx);
		truth_check_deadlock(w, p);
		w->deadlocks++;
		return;
	case -ENOLCK:
		if (!w->nomem)
			fail(w, "ENOLCK with memory");
		return;
	case -EIO: /* refused, but lowered */
		if (!lock || p->op.mode != RANGE_READ || !w->faults_done)
			fail(w, "EIO for ctx %llu", (unsigned long long)p->ctx);
		return;
	default:
		fail(w, "ctx %llu ends with %d", (unsigned long long)p->ctx,
		     status);
	}
}

void proc_answer(struct world *w, struct node *n,
		 const struct plock_result *answer)
{
	struct proc *p = NULL;

	for (unsigned i = 0; i < OWNERS; i++) {
		if (answer->ctx && n->procs[i].close_ctx == answer->ctx) {
			if (answer->status)
				fail(w, "a close is answered with %d",
				     answer->status);
			n->procs[i].close_ctx = 0;
			n->procs[i].closed = n->procs[i].calling;
			return;
		}
		if (n->procs[i].calling && n->procs[i].ctx == answer->ctx)
			p = &n->procs[i];
	}
	if (!p)
		fail(w, "answered twice, or never asked: ctx %llu",
		     (unsigned long long)answer->ctx);
	if (w->trace)
		printf("%.6f %u.%llu ctx %llu: %d\n", (double)w->now_ns / 1e9,
		       p->node, (unsigned long long)p->owner,
		       (unsigned long long)p->ctx, answer->status);
	truth_mark_stuck(w);
	check_status(w, p, answer->status);
	p->calling = false;
	if (p->closed || p->close_ctx) {
		p->doubt[p->file] = false;
		p->closed = false;
		return;
	}
	if (!answer->status)
		granted(w, p);
	else
		refused(w, p, answer->status);
}

unsigned procs_left(const struct world *w)
{
	unsigned count = 0;

	for (unsigned n = 1; n <= w->node_count; n++) {
		for (unsigned i = 0; w->nodes[n].alive && i < OWNERS; i++)
			count += w->nodes[n].procs[i].calling ||
				 w->nodes[n].procs[i].close_ctx ||
				 holds_any(&w->nodes[n].procs[i]);
	}
	return count;
}

void procs_print(const struct world *w)
{
	for (unsigned n = 1; n <= w->node_count; n++) {
		for (unsigned i = 0; w->nodes[n].alive && i < OWNERS; i++) {
			const struct proc *p = &w->nodes[n].procs[i];

			if (p->calling)
				printf("  %u.%llu file %u %s%s %u-%u ctx %llu "
				       "since %.6f\n",
				       n, (unsigned long long)p->owner, p->file,
				       kind_name(&p->op),
				       p->op.wait ? " wait" : "", p->first,
				       p->last, (unsigned long long)p->ctx,
				       (double)p->since_ns / 1e9);
		}
	}
}
