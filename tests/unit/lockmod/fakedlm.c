/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fakedlm.c - a lock server in memory behind the functions of ugdlm.h.
 *
 * One mutex guards everything. A resource has the three queues of docs/spec/
 * dlm.md 1.8; after each change its queues are gone through again. A call of
 * another member's lock goes into that member's list of callbacks.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <urcu/list.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/prng.h"
#include "fakedlm.h"

struct resource {
	struct cds_list_head list;
	struct cds_list_head granted, converting, waiting;
	char name[UGDLM_NAME_MAX];
	size_t name_len;
	uint8_t lvb[UGDLM_LVB_LEN];
	bool lvb_there;
	bool lvb_lost;
};

struct lock {
	struct cds_list_head queue; /* of the resource */
	struct cds_list_head mine;  /* of the member */
	struct resource *res;
	struct ugdlm *ls;
	struct ugdlm_request req; /* the last one */
	uint32_t lkid;
	enum ugdlm_mode gr, rq;	    /* rq IV: nothing is asked for */
	unsigned called;	    /* modes that a bast has told of */
	uint8_t lvb[UGDLM_LVB_LEN]; /* as passed by the call */
	bool inline_now;	    /* the call under way takes the outcome */
	bool ended;
	unsigned callbacks; /* in the member's list, asts */
};

struct callback {
	struct cds_list_head list;
	struct lock *lock; /* NULL: its lock has gone with the last ast */
	struct ugdlm_lksb *lksb;
	bool is_bast;
	bool is_last;
	enum ugdlm_mode blocked;
	struct ugdlm_lksb outcome;
	struct ugdlm_request req;
};

struct ugdlm {
	struct fakedlm *server;
	struct cds_list_head list;
	struct cds_list_head locks;
	struct cds_list_head callbacks;
	pthread_cond_t called;
	bool woken;
	bool lost;
	unsigned no_memory;
};

struct fakedlm {
	pthread_mutex_t lock;
	struct ug_prng prng;
	unsigned inline_percent;
	uint32_t last_lkid;
	struct cds_list_head members;
	struct cds_list_head resources;
	char trace[2048];
};

static const bool compatible[6][6] = {
	[UGDLM_NL] = { true, true, true, true, true, true },
	[UGDLM_CR] = { true, true, true, true, true, false },
	[UGDLM_CW] = { true, true, true, false, false, false },
	[UGDLM_PR] = { true, true, false, true, false, false },
	[UGDLM_PW] = { true, true, false, false, false, false },
	[UGDLM_EX] = { true, false, false, false, false, false },
};

static const char *const mode_name[] = { "NL", "CR", "CW", "PR", "PW", "EX" };

static void trace(struct fakedlm *f, const char *what, int mode, uint32_t flags)
{
	size_t len = strlen(f->trace);

	snprintf(f->trace + len, sizeof(f->trace) - len, "%s%s%s%s%s%s%s%s",
		 len ? ", " : "", what, mode < 0 ? "" : " ",
		 mode < 0 ? "" : mode_name[mode],
		 flags & UGDLM_NOQUEUE ? " noqueue" : "",
		 flags & UGDLM_NOQUEUEBAST ? " bast" : "",
		 flags & UGDLM_QUECVT ? " quecvt" : "",
		 flags & UGDLM_VALBLK ? " valblk" : "");
}

/* ---- callbacks ---- */

static struct callback *add_callback(struct lock *lk)
{
	struct callback *cb = calloc(1, sizeof(*cb));

	ug_assert(cb);
	cb->lock = lk;
	cb->lksb = lk->req.lksb;
	cb->req = lk->req;
	cds_list_add_tail(&cb->list, &lk->ls->callbacks);
	pthread_cond_signal(&lk->ls->called);
	return cb;
}

static void send_bast(struct lock *lk, enum ugdlm_mode blocked)
{
	struct callback *cb;

	if (lk->called & 1u << blocked)
		return;
	lk->called |= 1u << blocked;
	cb = add_callback(lk);
	cb->is_bast = true;
	cb->blocked = blocked;
}

static void fill_lksb(const struct lock *lk, struct ugdlm_lksb *lksb,
		      enum ugdlm_status status, bool reads)
{
	const struct resource *res = lk->res;

	lksb->status = status;
	lksb->mode = lk->gr;
	lksb->lkid = lk->gr == UGDLM_IV ? 0 : lk->lkid;
	lksb->sbflags = 0;
	lksb->lvb_valid = reads && res->lvb_there;
	if (reads && res->lvb_lost)
		lksb->sbflags |= UGDLM_SB_VALNOTVALID;
	if (lksb->lvb_valid)
		memcpy(lksb->lvb, res->lvb, sizeof(lksb->lvb));
}

static void end_operation(struct lock *lk, enum ugdlm_status status, bool reads)
{
	struct callback *cb;

	lk->rq = UGDLM_IV;
	lk->ended = true;
	if (lk->inline_now) {
		fill_lksb(lk, lk->req.lksb, status, reads);
		return;
	}
	cb = add_callback(lk);
	cb->is_last = lk->gr == UGDLM_IV;
	fill_lksb(lk, &cb->outcome, status, reads);
	lk->callbacks++;
}

/* ---- queues ---- */

static struct resource *find_resource(struct fakedlm *f, const void *name,
				      size_t len)
{
	struct resource *res;

	cds_list_for_each_entry (res, &f->resources, list) {
		if (res->name_len == len && !memcmp(res->name, name, len))
			return res;
	}
	res = calloc(1, sizeof(*res));
	ug_assert(res && len <= UGDLM_NAME_MAX);
	memcpy(res->name, name, len);
	res->name_len = len;
	CDS_INIT_LIST_HEAD(&res->granted);
	CDS_INIT_LIST_HEAD(&res->converting);
	CDS_INIT_LIST_HEAD(&res->waiting);
	cds_list_add(&res->list, &f->resources);
	return res;
}

static void drop_if_empty(struct resource *res)
{
	if (!cds_list_empty(&res->granted) ||
	    !cds_list_empty(&res->converting) || !cds_list_empty(&res->waiting))
		return;
	cds_list_del(&res->list);
	free(res);
}

static bool fits(const struct lock *lk)
{
	const struct lock *other;

	cds_list_for_each_entry (other, &lk->res->granted, queue) {
		if (other != lk && !compatible[other->gr][lk->rq])
			return false;
	}
	cds_list_for_each_entry (other, &lk->res->converting, queue) {
		if (other != lk && !compatible[other->gr][lk->rq])
			return false;
	}
	return true;
}

static void call_blockers(const struct lock *lk)
{
	struct lock *other;

	cds_list_for_each_entry (other, &lk->res->granted, queue) {
		if (other != lk && !compatible[other->gr][lk->rq])
			send_bast(other, lk->rq);
	}
	cds_list_for_each_entry (other, &lk->res->converting, queue) {
		if (other != lk && !compatible[other->gr][lk->rq])
			send_bast(other, lk->rq);
	}
}

static bool passes_lvb(const struct lock *lk, enum ugdlm_mode from)
{
	enum ugdlm_mode to = lk->gr;

	if (!(lk->req.flags & UGDLM_VALBLK))
		return false;
	if (from >= UGDLM_PW && to <= from) {
		memcpy(lk->res->lvb, lk->lvb, sizeof(lk->lvb));
		lk->res->lvb_there = true;
		lk->res->lvb_lost = false;
		return false;
	}
	return from < to || from == UGDLM_IV;
}

/* Off whatever queue it is in. */
static void grant(struct lock *lk)
{
	enum ugdlm_mode from = lk->gr;

	cds_list_del(&lk->queue);
	cds_list_add_tail(&lk->queue, &lk->res->granted);
	lk->gr = lk->rq;
	lk->called = 0;
	end_operation(lk, UGDLM_OK, passes_lvb(lk, from));
}

static struct lock *next_grantable(struct resource *res)
{
	struct lock *lk;
	bool first = true;

	cds_list_for_each_entry (lk, &res->converting, queue) {
		if ((first || !(lk->req.flags & UGDLM_QUECVT)) && fits(lk))
			return lk;
		first = false;
	}
	if (!first || cds_list_empty(&res->waiting))
		return NULL;
	lk = cds_list_first_entry(&res->waiting, struct lock, queue);
	return fits(lk) ? lk : NULL;
}

static void run_queues(struct resource *res)
{
	struct lock *lk;

	while ((lk = next_grantable(res)))
		grant(lk);
	cds_list_for_each_entry (lk, &res->converting, queue)
		call_blockers(lk);
	cds_list_for_each_entry (lk, &res->waiting, queue)
		call_blockers(lk);
}

/* Does a conversion that waits already wait for us? */
static bool is_deadlock(const struct lock *lk)
{
	const struct lock *other;

	cds_list_for_each_entry (other, &lk->res->converting, queue) {
		if (other != lk && !compatible[lk->gr][other->rq])
			return true;
	}
	return false;
}

static bool may_go_first(struct lock *lk)
{
	struct resource *res = lk->res;

	if (lk->gr == UGDLM_IV)
		return cds_list_empty(&res->converting) &&
		       cds_list_empty(&res->waiting);
	return !(lk->req.flags & UGDLM_QUECVT) ||
	       cds_list_empty(&res->converting);
}

/* A request or conversion, in no queue, or in granted. */
static void decide(struct lock *lk)
{
	struct resource *res = lk->res;

	if (may_go_first(lk) && fits(lk)) {
		grant(lk);
	} else if (lk->gr != UGDLM_IV && is_deadlock(lk)) {
		end_operation(lk, UGDLM_DEADLOCK, false);
	} else if (lk->req.flags & UGDLM_NOQUEUE) {
		if (lk->req.flags & UGDLM_NOQUEUEBAST)
			call_blockers(lk);
		end_operation(lk, UGDLM_NOTQUEUED, false);
	} else {
		cds_list_del(&lk->queue);
		cds_list_add_tail(&lk->queue, lk->gr == UGDLM_IV
						      ? &res->waiting
						      : &res->converting);
	}
}

/* ---- the functions of ugdlm.h ---- */

static struct lock *find_lock(struct ugdlm *ls, const struct ugdlm_lksb *lksb)
{
	struct lock *lk;

	cds_list_for_each_entry (lk, &ls->locks, mine) {
		if (lk->req.lksb == lksb)
			return lk;
	}
	return NULL;
}

static struct lock *new_lock(struct ugdlm *ls, const struct ugdlm_request *req)
{
	struct lock *lk = calloc(1, sizeof(*lk));

	ug_assert(lk);
	lk->ls = ls;
	lk->res = find_resource(ls->server, req->name, req->name_len);
	lk->lkid = ++ls->server->last_lkid;
	lk->gr = UGDLM_IV;
	CDS_INIT_LIST_HEAD(&lk->queue);
	cds_list_add(&lk->mine, &ls->locks);
	return lk;
}

/* Not known to the server any more; its last ast may be under way. */
static void remove_lock(struct lock *lk)
{
	struct resource *res = lk->res;

	cds_list_del(&lk->queue);
	cds_list_del(&lk->mine);
	run_queues(res);
	drop_if_empty(res);
}

static void check_request(const struct ugdlm_request *req,
			  const struct lock *lk)
{
	bool convert = req->flags & UGDLM_CONVERT;
	enum ugdlm_mode from = lk ? lk->gr : UGDLM_IV;

	ug_assert(!lk == !convert);
	ug_assert(req->mode >= UGDLM_NL && req->mode <= UGDLM_EX);
	ug_assert(convert || !(req->flags & UGDLM_QUECVT));
	if (req->flags & UGDLM_QUECVT)
		ug_assert(req->mode > from ||
			  (from == UGDLM_PR && req->mode == UGDLM_CW));
	/* One operation at a time, and its ast has been delivered. */
	ug_assert(!lk || (lk->rq == UGDLM_IV && !lk->callbacks));
}

static bool fails(struct ugdlm *ls)
{
	if (!ls->no_memory)
		return false;
	ls->no_memory--;
	return true;
}

static bool may_be_inline(struct ugdlm *ls, bool inline_ok)
{
	return inline_ok && ug_prng_below(&ls->server->prng, 100) <
				    ls->server->inline_percent;
}

int ugdlm_lock(struct ugdlm *ls, const struct ugdlm_request *req)
{
	struct fakedlm *f = ls->server;
	bool ended_inline;
	struct lock *lk;

	pthread_mutex_lock(&f->lock);
	if (ls->lost || fails(ls)) {
		pthread_mutex_unlock(&f->lock);
		return ls->lost ? -ESHUTDOWN : -ENOMEM;
	}
	lk = req->flags & UGDLM_CONVERT ? find_lock(ls, req->lksb) : NULL;
	check_request(req, lk);
	trace(f, lk ? "convert" : "lock", req->mode, req->flags);
	if (!lk)
		lk = new_lock(ls, req);
	lk->req = *req;
	lk->rq = req->mode;
	memcpy(lk->lvb, req->lksb->lvb, sizeof(lk->lvb));
	lk->ended = false;
	lk->inline_now = may_be_inline(ls, req->inline_ok);
	req->lksb->status = UGDLM_INPROGRESS;
	decide(lk);
	ended_inline = lk->inline_now && lk->ended;
	lk->inline_now = false;
	run_queues(lk->res);
	if (lk->gr == UGDLM_IV && lk->ended) {
		remove_lock(lk);
		if (ended_inline)
			free(lk);
	}
	pthread_mutex_unlock(&f->lock);
	return ended_inline;
}

static void cancel(struct lock *lk)
{
	struct resource *res = lk->res;

	if (!lk || lk->rq == UGDLM_IV)
		return;
	if (lk->gr == UGDLM_IV) {
		end_operation(lk, UGDLM_CANCELLED, false);
		remove_lock(lk);
		return;
	}
	cds_list_del(&lk->queue);
	cds_list_add_tail(&lk->queue, &res->granted);
	end_operation(lk, UGDLM_CANCELLED, false);
	run_queues(res);
}

static void unlock(struct lock *lk)
{
	struct resource *res = lk->res;

	ug_assert(lk->rq == UGDLM_IV && !lk->callbacks);
	if ((lk->req.flags & UGDLM_VALBLK) && lk->gr == UGDLM_EX) {
		memcpy(res->lvb, lk->req.lksb->lvb, sizeof(res->lvb));
		res->lvb_there = true;
		res->lvb_lost = false;
	}
	lk->gr = UGDLM_IV;
	end_operation(lk, UGDLM_UNLOCKED, false);
	remove_lock(lk);
}

int ugdlm_unlock(struct ugdlm *ls, struct ugdlm_lksb *lksb, uint32_t flags,
		 bool inline_ok)
{
	struct fakedlm *f = ls->server;
	struct lock *lk;
	int err = 0;

	pthread_mutex_lock(&f->lock);
	lk = find_lock(ls, lksb);
	if (ls->lost) {
		err = -ESHUTDOWN;
	} else if (flags & UGDLM_CANCEL) {
		trace(f, "cancel", -1, 0);
		if (lk)
			cancel(lk);
		else
			err = -ENOENT;
	} else {
		ug_assert(lk);
		trace(f, "unlock", -1, flags);
		unlock(lk);
	}
	pthread_mutex_unlock(&f->lock);
	return err;
}

/* A random one of those that are the first of their lock. */
static struct callback *take_callback(struct ugdlm *ls)
{
	struct callback *cb, *before, *chosen = NULL;
	unsigned count = 0;

	cds_list_for_each_entry (cb, &ls->callbacks, list) {
		bool first = true;

		cds_list_for_each_entry (before, &ls->callbacks, list) {
			if (before == cb)
				break;
			if (before->lksb == cb->lksb) {
				first = false;
				break;
			}
		}
		if (first && ug_prng_below(&ls->server->prng, ++count) == 0)
			chosen = cb;
	}
	if (chosen)
		cds_list_del(&chosen->list);
	return chosen;
}

/* The server's lock is held, and dropped for the call. */
static void run_callback(struct ugdlm *ls, struct callback *cb)
{
	struct ugdlm_lksb *lksb = cb->lksb;

	if (!cb->is_bast) {
		uint8_t lvb[UGDLM_LVB_LEN];

		memcpy(lvb, lksb->lvb, sizeof(lvb));
		*lksb = cb->outcome;
		if (!lksb->lvb_valid)
			memcpy(lksb->lvb, lvb, sizeof(lvb));
		if (cb->is_last)
			free(cb->lock);
		else if (cb->lock)
			cb->lock->callbacks--;
	}
	pthread_mutex_unlock(&ls->server->lock);
	if (cb->is_bast)
		cb->req.bast(cb->req.ctx, lksb, cb->blocked);
	else
		cb->req.ast(cb->req.ctx, lksb);
	free(cb);
	pthread_mutex_lock(&ls->server->lock);
}

int ugdlm_dispatch(struct ugdlm *ls, unsigned max)
{
	struct callback *cb;
	unsigned n = 0;

	pthread_mutex_lock(&ls->server->lock);
	while (n < max && (cb = take_callback(ls))) {
		run_callback(ls, cb);
		n++;
	}
	pthread_mutex_unlock(&ls->server->lock);
	return (int)n;
}

/* ---- for the tests ---- */

bool fakedlm_wait(struct ugdlm *ls)
{
	bool woken;

	pthread_mutex_lock(&ls->server->lock);
	while (cds_list_empty(&ls->callbacks) && !ls->woken)
		pthread_cond_wait(&ls->called, &ls->server->lock);
	woken = ls->woken;
	pthread_mutex_unlock(&ls->server->lock);
	return !woken;
}

void fakedlm_wake(struct ugdlm *ls)
{
	pthread_mutex_lock(&ls->server->lock);
	ls->woken = true;
	pthread_cond_broadcast(&ls->called);
	pthread_mutex_unlock(&ls->server->lock);
}

struct fakedlm *fakedlm_new(uint64_t seed)
{
	struct fakedlm *f = calloc(1, sizeof(*f));

	ug_assert(f);
	pthread_mutex_init(&f->lock, NULL);
	ug_prng_seed(&f->prng, seed);
	CDS_INIT_LIST_HEAD(&f->members);
	CDS_INIT_LIST_HEAD(&f->resources);
	return f;
}

void fakedlm_free(struct fakedlm *f)
{
	ug_assert(cds_list_empty(&f->members));
	ug_assert(cds_list_empty(&f->resources));
	pthread_mutex_destroy(&f->lock);
	free(f);
}

void fakedlm_set_inline(struct fakedlm *f, unsigned percent)
{
	f->inline_percent = percent;
}

struct ugdlm *fakedlm_join(struct fakedlm *f)
{
	struct ugdlm *ls = calloc(1, sizeof(*ls));

	ug_assert(ls);
	ls->server = f;
	CDS_INIT_LIST_HEAD(&ls->locks);
	CDS_INIT_LIST_HEAD(&ls->callbacks);
	pthread_cond_init(&ls->called, NULL);
	pthread_mutex_lock(&f->lock);
	cds_list_add(&ls->list, &f->members);
	pthread_mutex_unlock(&f->lock);
	return ls;
}

static void drop_callbacks(struct ugdlm *ls)
{
	struct callback *cb, *next;

	cds_list_for_each_entry_safe (cb, next, &ls->callbacks, list) {
		if (cb->is_last)
			free(cb->lock);
		free(cb);
	}
	CDS_INIT_LIST_HEAD(&ls->callbacks);
}

static void drop_locks(struct ugdlm *ls, bool dead)
{
	struct lock *lk, *next;

	cds_list_for_each_entry_safe (lk, next, &ls->locks, mine) {
		if (dead && lk->gr == UGDLM_EX)
			lk->res->lvb_lost = true;
		remove_lock(lk);
		free(lk);
	}
}

static void end_member(struct ugdlm *ls, bool dead)
{
	struct fakedlm *f = ls->server;

	pthread_mutex_lock(&f->lock);
	drop_callbacks(ls);
	drop_locks(ls, dead);
	cds_list_del(&ls->list);
	pthread_mutex_unlock(&f->lock);
	pthread_cond_destroy(&ls->called);
	free(ls);
}

void fakedlm_leave(struct ugdlm *ls)
{
	end_member(ls, false);
}

void fakedlm_kill(struct ugdlm *ls)
{
	end_member(ls, true);
}

void fakedlm_lose(struct ugdlm *ls)
{
	struct lock *lk, *next;

	pthread_mutex_lock(&ls->server->lock);
	drop_callbacks(ls);
	ls->lost = true;
	cds_list_for_each_entry_safe (lk, next, &ls->locks, mine) {
		bool asked = lk->rq != UGDLM_IV || lk->callbacks;

		lk->gr = UGDLM_IV;
		if (asked)
			end_operation(lk, UGDLM_LOST, false);
		remove_lock(lk);
		if (!asked)
			free(lk);
	}
	pthread_mutex_unlock(&ls->server->lock);
}

void fakedlm_no_memory(struct ugdlm *ls, unsigned calls)
{
	pthread_mutex_lock(&ls->server->lock);
	ls->no_memory = calls;
	pthread_mutex_unlock(&ls->server->lock);
}

void fakedlm_trace(struct fakedlm *f, char *text, size_t size)
{
	pthread_mutex_lock(&f->lock);
	snprintf(text, size, "%s", f->trace);
	f->trace[0] = '\0';
	pthread_mutex_unlock(&f->lock);
}

unsigned fakedlm_locks(struct fakedlm *f)
{
	struct ugdlm *ls;
	struct lock *lk;
	unsigned count = 0;

	pthread_mutex_lock(&f->lock);
	cds_list_for_each_entry (ls, &f->members, list)
		cds_list_for_each_entry (lk, &ls->locks, mine)
			count++;
	pthread_mutex_unlock(&f->lock);
	return count;
}

static const char *name_of(enum ugdlm_mode mode)
{
	return mode == UGDLM_IV ? "--" : mode_name[mode];
}

static void print_queue(const char *which, struct cds_list_head *queue)
{
	const struct lock *lk;

	cds_list_for_each_entry (lk, queue, queue)
		printf("  %s member %p lkid %x %s to %s called %x callbacks "
		       "%u\n",
		       which, (void *)lk->ls, lk->lkid, name_of(lk->gr),
		       name_of(lk->rq), lk->called, lk->callbacks);
}

void fakedlm_print(struct fakedlm *f)
{
	struct resource *res;

	pthread_mutex_lock(&f->lock);
	cds_list_for_each_entry (res, &f->resources, list) {
		printf("resource %.*s\n", (int)res->name_len, res->name);
		print_queue("granted", &res->granted);
		print_queue("converting", &res->converting);
		print_queue("waiting", &res->waiting);
	}
	pthread_mutex_unlock(&f->lock);
}

static void check_resource(const struct resource *res)
{
	const struct lock *a, *b;

	cds_list_for_each_entry (a, &res->granted, queue)
		cds_list_for_each_entry (b, &res->granted, queue)
			ug_assert(a == b || compatible[a->gr][b->gr]);
	cds_list_for_each_entry (a, &res->converting, queue)
		cds_list_for_each_entry (b, &res->granted, queue)
			ug_assert(compatible[a->gr][b->gr]);
}

void fakedlm_check(struct fakedlm *f)
{
	struct resource *res;

	pthread_mutex_lock(&f->lock);
	cds_list_for_each_entry (res, &f->resources, list)
		check_resource(res);
	pthread_mutex_unlock(&f->lock);
}
