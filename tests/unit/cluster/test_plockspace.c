/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_plockspace.c - application locks of several members: who gets what, what
 * the death of a member leaves, quorum, joining and leaving, memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <jansson.h>

#include "cluster/plocks.h"
#include "lsworld.h"

/* Allocations that succeed before one fails; 0: none does. */
static unsigned until_failure;
static bool has_failed;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

static bool fails(void)
{
	if (!until_failure || --until_failure)
		return false;
	has_failed = true;
	return true;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails() ? NULL : __real_realloc(p, size);
}

/* Mounts */

#define PENDING 1 /* no status */
#define NO_CALL 2
#define CTX_MAX 64

struct mount {
	struct plocks *p;
	int status[CTX_MAX]; /* of a call; PENDING: under way */
	uint64_t id[CTX_MAX];
};

static struct mount mounts[WORLD_NODES + 1];

static void done(void *arg, const struct plock_result *res)
{
	struct mount *m = arg;

	assert_int_equal(m->status[res->ctx], PENDING);
	m->status[res->ctx] = res->status;
}

static void mount(struct world *w, unsigned id)
{
	struct mount *m = &mounts[id];
	struct plocks_params params = { .ls = w->node[id].ls,
					.done = done,
					.arg = m };

	memset(m, 0, sizeof(*m));
	for (unsigned ctx = 0; ctx < CTX_MAX; ctx++)
		m->status[ctx] = NO_CALL;
	assert_int_equal(plocks_create(&params, &m->p), 0);
}

static struct world *begin(unsigned n)
{
	struct world *w = world_new(n, true);

	for (unsigned id = 1; id <= n; id++)
		mount(w, id);
	return w;
}

static void end(struct world *w)
{
	for (unsigned id = 1; id <= WORLD_NODES; id++)
		if (w->node[id].ls)
			plocks_destroy(mounts[id].p);
	world_free(w);
}

static void start_call(unsigned id, uint64_t ctx, uint64_t number,
		       const struct plock_op *op)
{
	struct mount *m = &mounts[id];
	struct plock_result res;
	int err;

	m->status[ctx] = PENDING;
	err = plocks_call(m->p, number, op, ctx, &m->id[ctx], &res);
	if (err == -EINPROGRESS)
		return;
	assert_int_equal(m->status[ctx], PENDING);
	m->status[ctx] = err ? err : res.status;
}

/* ctx is the owner, too, of the whole file. */
static void start_set(unsigned id, uint64_t ctx, uint64_t number,
		      enum range_mode mode, bool wait)
{
	struct plock_op op = { .kind = PLOCK_SET,
			       .table = PLOCK_FCNTL,
			       .owner_kind = RANGE_POSIX,
			       .mode = mode,
			       .owner = ctx,
			       .end = RANGE_END,
			       .pid = (uint32_t)ctx,
			       .wait = wait };

	start_call(id, ctx, number, &op);
}

static int set(struct world *w, unsigned id, uint64_t ctx, uint64_t number,
	       enum range_mode mode, bool wait)
{
	start_set(id, ctx, number, mode, wait);
	world_settle(w);
	return mounts[id].status[ctx];
}

static int try(struct world *w, unsigned id, uint64_t ctx, uint64_t number)
{
	return set(w, id, ctx, number, RANGE_WRITE, false);
}

static int lock(struct world *w, unsigned id, uint64_t ctx, uint64_t number)
{
	return set(w, id, ctx, number, RANGE_WRITE, true);
}

static int unlock(struct world *w, unsigned id, uint64_t ctx, uint64_t number)
{
	return set(w, id, ctx, number, RANGE_NONE, false);
}

static void die(struct world *w, unsigned id)
{
	world_kill(w, id);
	world_gone(w, id, GONE_PROCESS);
	world_settle(w);
	world_prove(w, id, PROOF_REAPED);
	world_settle(w);
}

static void join(struct world *w, unsigned id)
{
	world_join(w, id);
	mount(w, id);
	world_settle(w);
}

static void clean(struct world *w, unsigned id, uint16_t slot)
{
	assert_int_equal(ugdlm_slot_clean(w->node[id].ls, slot), 0);
	world_settle(w);
}

/* The first one decides; what only it needs costs no message. */
static void test_contention(void **state)
{
	struct world *w = begin(3);

	assert_int_equal(lock(w, 1, 1, 7), 0);
	start_set(1, 2, 7, RANGE_READ, false);
	assert_int_equal(mounts[1].status[2], -EAGAIN);
	assert_int_equal(try(w, 2, 1, 7), -EAGAIN);
	assert_int_equal(lock(w, 2, 1, 7), PENDING);
	assert_int_equal(lock(w, 3, 1, 7), PENDING);
	assert_int_equal(unlock(w, 1, 1, 7), 0);
	assert_int_equal(mounts[2].status[1], 0);
	assert_int_equal(mounts[3].status[1], PENDING);
	assert_int_equal(unlock(w, 2, 1, 7), 0);
	assert_int_equal(mounts[3].status[1], 0);
	end(w);
}

static void test_cancel(void **state)
{
	struct world *w = begin(2);

	lock(w, 1, 1, 7);
	assert_int_equal(lock(w, 2, 1, 7), PENDING);
	assert_int_equal(plocks_cancel(mounts[2].p, mounts[2].id[1]), 0);
	world_settle(w);
	assert_int_equal(mounts[2].status[1], -EINTR);
	assert_int_equal(plocks_cancel(mounts[2].p, mounts[2].id[1]), -ENOENT);
	unlock(w, 1, 1, 7);
	assert_int_equal(try(w, 1, 2, 7), 0);
	end(w);
}

/* What is said to one member at a time is one message of the links. */
static void test_one_frame(void **state)
{
	struct world *w = begin(2);
	struct plock_op op = { .kind = PLOCK_CLOSE, .owner = 1 };

	assert_int_equal(lock(w, 1, 1, 7), 0);
	for (uint64_t ctx = 1; ctx < 9; ctx++)
		assert_int_equal(set(w, 2, ctx, 7, RANGE_READ, true), PENDING);
	start_call(1, 1, 7, &op);
	assert_true(world_deliver(w, 1, 2));
	assert_false(world_deliver(w, 1, 2));
	for (uint64_t ctx = 1; ctx < 9; ctx++)
		assert_int_equal(mounts[2].status[ctx], 0);
	end(w);
}

/* Also of files that it decided for, and that were decided here. */
static void test_death(void **state)
{
	struct world *w = begin(3);

	assert_int_equal(lock(w, 3, 1, 7), 0);
	assert_int_equal(lock(w, 1, 1, 8), 0);
	assert_int_equal(unlock(w, 1, 1, 8), 0);
	assert_int_equal(lock(w, 3, 1, 8), 0);
	assert_int_equal(lock(w, 1, 5, 9), 0);
	assert_int_equal(lock(w, 3, 2, 9), PENDING);
	die(w, 3);
	assert_int_equal(try(w, 1, 2, 8), -EAGAIN);
	assert_int_equal(lock(w, 1, 3, 7), PENDING);
	assert_int_equal(lock(w, 2, 3, 8), PENDING);
	/* A wait ends with who waits. */
	assert_int_equal(unlock(w, 1, 5, 9), 0);
	assert_int_equal(lock(w, 2, 5, 9), 0);
	clean(w, 1, 3);
	clean(w, 2, 3);
	assert_int_equal(mounts[1].status[3], 0);
	assert_int_equal(mounts[2].status[3], 0);
	end(w);
}

/* A death that was repaired before the next is none any more. */
static void test_two_deaths(void **state)
{
	struct world *w = begin(4);

	assert_int_equal(lock(w, 4, 1, 7), 0);
	assert_int_equal(lock(w, 3, 1, 8), 0);
	die(w, 4);
	die(w, 3);
	assert_int_equal(lock(w, 1, 1, 7), PENDING);
	assert_int_equal(lock(w, 1, 2, 8), PENDING);
	clean(w, 1, 4);
	clean(w, 2, 4);
	assert_int_equal(mounts[1].status[1], PENDING);
	assert_int_equal(mounts[1].status[2], PENDING);
	clean(w, 1, 3);
	clean(w, 2, 3);
	assert_int_equal(mounts[1].status[1], 0);
	assert_int_equal(mounts[1].status[2], 0);
	end(w);
}

/* It never ran: nothing is to be repaired, nobody has to wait. */
static void test_death_without_slot(void **state)
{
	struct world *w = begin(2);

	assert_int_equal(lock(w, 2, 1, 7), 0);
	world_join(w, 3);
	die(w, 3);
	assert_int_equal(lock(w, 1, 1, 8), 0);
	assert_int_equal(lock(w, 1, 1, 7), PENDING);
	assert_int_equal(unlock(w, 2, 1, 7), 0);
	assert_int_equal(mounts[1].status[1], 0);
	for (uint64_t number = 100; number < 140; number++)
		assert_int_equal(lock(w, 2, 1, number), 0);
	end(w);
}

/*
 * Of some of these files the newcomer is the home, and knows that it does not
 * know who has them.
 */
static void test_newcomer_and_the_dead(void **state)
{
	struct world *w = begin(3);

	for (uint64_t number = 100; number < 130; number++)
		assert_int_equal(lock(w, 3, 1, number), 0);
	die(w, 3);
	join(w, 4);
	for (uint64_t i = 0; i < 30; i++)
		assert_int_equal(lock(w, 1 + i % 2 * 3, i, 100 + i), PENDING);
	clean(w, 4, 3);
	clean(w, 1, 3);
	clean(w, 2, 3);
	for (uint64_t i = 0; i < 30; i++)
		assert_int_equal(mounts[1 + i % 2 * 3].status[i], 0);
	end(w);
}

static void test_leave(void **state)
{
	struct world *w = begin(3);

	/* One that is decided elsewhere. */
	assert_int_equal(lock(w, 1, 10, 7), 0);
	assert_int_equal(unlock(w, 1, 10, 7), 0);
	assert_int_equal(lock(w, 3, 10, 7), 0);
	assert_int_equal(lock(w, 1, 10, 7), PENDING);
	for (uint64_t i = 0; i < 10; i++)
		assert_int_equal(lock(w, 3, i, 100 + i), 0);
	for (uint64_t i = 0; i < 10; i++)
		assert_int_equal(lock(w, 1, i, 100 + i), PENDING);
	plocks_destroy(mounts[3].p);
	assert_int_equal(ugdlm_leave(w->node[3].ls, false), 0);
	world_settle(w);
	for (uint64_t i = 0; i <= 10; i++)
		assert_int_equal(mounts[1].status[i], 0);
	end(w);
}

/* Its journal is to be replayed by somebody first. */
static void test_leave_dirty(void **state)
{
	struct world *w = begin(3);

	assert_int_equal(lock(w, 3, 1, 7), 0);
	plocks_destroy(mounts[3].p);
	assert_int_equal(ugdlm_leave(w->node[3].ls, true), 0);
	world_settle(w);
	assert_int_equal(lock(w, 1, 1, 7), PENDING);
	clean(w, 1, 3);
	clean(w, 2, 3);
	assert_int_equal(mounts[1].status[1], 0);
	end(w);
}

static void test_quorum(void **state)
{
	struct world *w = begin(2);

	assert_int_equal(lock(w, 1, 1, 7), 0);
	world_quorum(w, 1, false);
	assert_int_equal(lock(w, 1, 2, 8), PENDING);
	assert_int_equal(unlock(w, 1, 1, 7), 0);
	assert_int_equal(lock(w, 2, 1, 7), PENDING);
	world_quorum(w, 1, true);
	world_settle(w);
	assert_int_equal(mounts[1].status[2], 0);
	assert_int_equal(mounts[2].status[1], 0);
	end(w);
}

/* The lease ends by itself: the next call must not be granted. */
static void test_lease_is_looked_at(void **state)
{
	struct world *w = begin(1);

	assert_int_equal(lock(w, 1, 1, 7), 0);
	w->node[1].quorate = false;
	start_set(1, 2, 8, RANGE_WRITE, false);
	assert_int_equal(mounts[1].status[2], PENDING);
	w->node[1].quorate = true;
	world_settle(w);
	assert_int_equal(mounts[1].status[2], 0);
	end(w);
}

/* A member that is missed, and comes back, stops no lock. */
static void test_missing(void **state)
{
	struct world *w = begin(2);

	world_missing(w, 2);
	assert_int_equal(lock(w, 1, 1, 7), 0);
	assert_int_equal(lock(w, 2, 1, 7), PENDING);
	assert_int_equal(unlock(w, 1, 1, 7), 0);
	assert_int_equal(mounts[2].status[1], 0);
	world_back(w, 2);
	end(w);
}

static void test_lost(void **state)
{
	struct world *w = begin(2);

	assert_int_equal(lock(w, 1, 1, 7), 0);
	assert_int_equal(lock(w, 2, 1, 7), PENDING);
	world_out(w, 2, OUT_EXPELLED);
	assert_int_equal(mounts[2].status[1], -EIO);
	assert_int_equal(try(w, 2, 2, 8), -EIO);
	assert_int_equal(unlock(w, 2, 1, 7), 0);
	end(w);
}

/* Without a mount the member still serves; a lock of a volume that has failed
 * is not given away before that has been repaired. */
static void test_fail(void **state)
{
	struct world *w = begin(2);

	assert_int_equal(lock(w, 1, 1, 7), 0);
	assert_int_equal(lock(w, 2, 2, 7), PENDING);
	assert_int_equal(lock(w, 1, 3, 8), 0);
	assert_int_equal(lock(w, 2, 3, 9), 0);
	assert_int_equal(lock(w, 1, 4, 9), PENDING);
	plocks_fail(mounts[1].p);
	assert_int_equal(mounts[1].status[4], -EIO);
	assert_int_equal(unlock(w, 1, 1, 7), 0);
	assert_int_equal(mounts[2].status[2], PENDING);
	assert_int_equal(lock(w, 2, 4, 100), 0);
	/* Whoever waited here is in nobody's way. */
	assert_int_equal(unlock(w, 2, 3, 9), 0);
	assert_int_equal(try(w, 2, 5, 9), 0);
	end(w);
}

/* Only a volume has application locks, and one mount. */
static void test_create(void **state)
{
	struct world *w = world_new(1, false);
	struct plocks_params params = { .ls = w->node[1].ls, .done = done };
	struct plocks *p;

	assert_int_equal(plocks_create(&params, &p), -EINVAL);
	world_free(w);
	w = begin(1);
	params.ls = w->node[1].ls;
	assert_int_equal(plocks_create(&params, &p), -EBUSY);
	end(w);
}

static json_t *look_inside(unsigned id)
{
	json_t *root;
	char *text;

	assert_int_equal(plocks_json(mounts[id].p, &text), 0);
	root = json_loads(text, 0, NULL);
	assert_non_null(root);
	free(text);
	return root;
}

static const json_t *file_of(const json_t *root, json_int_t number)
{
	const json_t *files = json_object_get(root, "files");

	for (size_t i = 0; i < json_array_size(files); i++) {
		const json_t *file = json_array_get(files, i);

		if (json_integer_value(json_object_get(file, "inode")) ==
		    number)
			return file;
	}
	fail_msg("no file %lld", (long long)number);
	return NULL;
}

static void assert_text(const json_t *object, const char *key, const char *text)
{
	assert_string_equal(json_string_value(json_object_get(object, key)),
			    text);
}

static const json_t *only(const json_t *object, const char *key)
{
	const json_t *array = json_object_get(object, key);

	assert_int_equal(json_array_size(array), 1);
	return json_array_get(array, 0);
}

/* Who holds and who waits, with names; of the dead their slots. */
static void test_json(void **state)
{
	struct world *w = begin(3);
	json_t *root;
	const json_t *file, *entry;

	lock(w, 1, 1, 7);
	lock(w, 2, 5, 7);
	root = look_inside(1);
	assert_text(root, "node", "node1");
	file = file_of(root, 7);
	assert_text(file, "serialiser", "node1");
	entry = only(file, "locks");
	assert_text(entry, "node", "node1");
	assert_text(entry, "mode", "write");
	assert_text(entry, "table", "fcntl");
	assert_true(json_is_null(json_object_get(entry, "end")));
	entry = only(file, "waits");
	assert_text(entry, "node", "node2");
	assert_text(entry, "owner", "0000000000000005");
	assert_int_equal(json_integer_value(json_object_get(entry, "pid")), 5);
	json_decref(root);

	/* Where it is not decided only the own calls are known. */
	root = look_inside(2);
	assert_text(file_of(root, 7), "serialiser", "node1");
	entry = only(root, "calls");
	assert_int_equal(json_integer_value(json_object_get(entry, "inode")),
			 7);
	assert_true(json_integer_value(json_object_get(entry, "for_ms")) > 0);
	json_decref(root);

	lock(w, 1, 2, 8);
	unlock(w, 1, 2, 8);
	lock(w, 3, 3, 8);
	die(w, 3);
	root = look_inside(1);
	assert_text(only(file_of(root, 8), "locks"), "node", "gone, slot 3");
	json_decref(root);
	end(w);
}

/* Of two calls a second that may leave the third one waits. */
static void test_tune(void **state)
{
	struct plock_tuning tuning = { .rate_limit = 2 };
	struct world *w = begin(2);

	for (uint64_t number = 1; number < 10; number++)
		lock(w, 1, 1, number);
	tuning.rate_limit = PLOCK_RATE_MAX + 1;
	assert_int_equal(plocks_tune(mounts[2].p, &tuning), -EINVAL);
	tuning.rate_limit = 2;
	assert_int_equal(plocks_tune(mounts[2].p, &tuning), 0);
	for (uint64_t number = 1; number < 10; number++)
		start_set(2, number, number, RANGE_WRITE, false);
	assert_int_equal(mounts[2].status[9], PENDING);
	while (world_deliver(w, 1, 2) || world_deliver(w, 2, 1))
		;
	assert_int_equal(mounts[2].status[9], PENDING);
	tuning.rate_limit = 0;
	assert_int_equal(plocks_tune(mounts[2].p, &tuning), 0);
	while (world_deliver(w, 1, 2) || world_deliver(w, 2, 1))
		;
	assert_int_equal(mounts[2].status[9], -EAGAIN);
	end(w);
}

/* What one member asks first for is still decided at the file's home. */
static void test_at_home(void **state)
{
	struct world *w = world_new(2, true);
	unsigned elsewhere = 0;

	for (unsigned id = 1; id <= 2; id++) {
		struct plocks_params params = { .ls = w->node[id].ls,
						.done = done,
						.arg = &mounts[id],
						.tuning.at_home = true };

		assert_int_equal(plocks_create(&params, &mounts[id].p), 0);
	}
	for (uint64_t number = 1; number < 20; number++) {
		lock(w, 1, 1, number);
		assert_int_equal(mounts[1].status[1], 0);
	}
	json_t *root = look_inside(1);

	for (uint64_t number = 1; number < 20; number++) {
		const json_t *file = file_of(root, (json_int_t)number);

		assert_true(json_equal(json_object_get(file, "serialiser"),
				       json_object_get(file, "home")));
		elsewhere +=
			!json_is_true(json_object_get(file, "served_here"));
	}
	assert_in_range(elsewhere, 1, 18);
	json_decref(root);
	end(w);
}

/*
 * More of an epoch to come than is kept: the link waits for the start. Member 2
 * starts late, the others claim their files at once.
 */
static void let_start(struct world *w)
{
	world_start(w);
}

static void test_early_messages_wait(void **state)
{
	struct world *w;

	memset(mounts, 0, sizeof(mounts));
	w = world_new(0, true);
	w->plocks_kept_max = 4;
	for (unsigned id = 1; id <= 3; id++)
		join(w, id);
	for (uint64_t number = 100; number < 160; number++)
		assert_int_equal(lock(w, 1, 1, number), 0);
	world_kill(w, 3);
	world_gone(w, 3, GONE_PROCESS);
	world_settle(w);
	world_start_later(w, 2);
	world_prove(w, 3, PROOF_REAPED);
	w->rest = let_start;
	world_settle(w);
	assert_true(w->rests > 0);
	assert_int_equal(w->late, 0);
	clean(w, 1, 3);
	clean(w, 2, 3);
	/* Each claim has arrived: nobody gets a lock twice. */
	for (uint64_t number = 100; number < 160; number++)
		assert_int_equal(try(w, 2, 1, number), -EAGAIN);
	end(w);
}

/* Load: holders, outside of all engines, as their processes know them */

#define FILES 6

struct load {
	struct world *w;
	uint64_t random;
	unsigned holder[FILES]; /* a node; 0: nobody */
	bool dead[WORLD_NODES + 1];
};

static unsigned below(struct load *l, unsigned n)
{
	l->random = l->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(l->random >> 33) % n;
}

/* One owner for each file and member: ctx is both. */
static void look(struct load *l)
{
	for (unsigned id = 1; id <= WORLD_NODES; id++) {
		if (!l->w->node[id].ls)
			continue;
		for (unsigned f = 0; f < FILES; f++) {
			int *status = &mounts[id].status[f];

			if (*status != 0)
				continue;
			assert_int_equal(l->holder[f], 0);
			l->holder[f] = id;
			*status = NO_CALL; /* noticed */
		}
	}
}

static void give_back(struct load *l, unsigned id, unsigned f)
{
	struct plock_op op = { .kind = PLOCK_CLOSE, .owner = f };

	if (mounts[id].status[f + FILES] == PENDING)
		return;
	l->holder[f] = 0;
	start_call(id, f + FILES, 100 + f, &op);
}

static void use(struct load *l, unsigned id)
{
	unsigned f = below(l, FILES);

	if (mounts[id].status[f] == PENDING)
		plocks_cancel(mounts[id].p, mounts[id].id[f]);
	else if (l->holder[f] == id)
		give_back(l, id, f);
	else
		start_set(id, f, 100 + f, RANGE_WRITE, below(l, 2));
	look(l);
}

static void some_messages(struct load *l)
{
	for (unsigned i = below(l, 4); i; i--) {
		unsigned from = 1 + below(l, WORLD_NODES);

		while (world_deliver(l->w, from, 1 + below(l, WORLD_NODES)))
			look(l);
	}
}

static void forget(struct load *l, unsigned id)
{
	for (unsigned f = 0; f < FILES; f++)
		if (l->holder[f] == id)
			l->holder[f] = 0;
}

static void leave(struct load *l, unsigned id)
{
	plocks_destroy(mounts[id].p);
	forget(l, id);
	assert_int_equal(ugdlm_leave(l->w->node[id].ls, false), 0);
	look(l);
	world_settle(l->w);
	look(l);
}

/* Its locks are its own until the others have repaired what it left. */
static void die_under_load(struct load *l, unsigned id)
{
	uint16_t slot = l->w->node[id].ls->self.slot;

	die(l->w, id);
	look(l);
	for (unsigned i = 0; i < 20; i++) {
		use(l, 1);
		some_messages(l);
	}
	world_settle(l->w);
	look(l);
	forget(l, id);
	for (unsigned other = 1; other <= WORLD_NODES; other++)
		if (l->w->node[other].ls)
			ugdlm_slot_clean(l->w->node[other].ls, slot);
	look(l);
}

static void change(struct load *l)
{
	unsigned id = 2 + below(l, WORLD_NODES - 1);

	if (!l->w->node[id].ls)
		join(l->w, id);
	else if (below(l, 2))
		leave(l, id);
	else
		die_under_load(l, id);
	look(l);
}

static void run_load(uint64_t seed, unsigned steps)
{
	struct load l = { .w = begin(3), .random = seed };

	for (unsigned i = 0; i < steps; i++) {
		unsigned id = 1 + below(&l, WORLD_NODES);

		if (l.w->node[id].ls)
			use(&l, id);
		some_messages(&l);
		look(&l);
		if (!below(&l, 40))
			change(&l);
	}
	world_settle(l.w);
	look(&l);
	for (unsigned f = 0; f < FILES; f++)
		if (l.holder[f])
			assert_non_null(l.w->node[l.holder[f]].ls);
	end(l.w);
}

static void test_load(void **state)
{
	for (uint64_t seed = 1; seed <= 20; seed++)
		run_load(seed, 400);
}

static bool is_refused(int status)
{
	return status == -ENOMEM || status == -ENOLCK;
}

/*
 * Each allocation fails once, in turn: calls may be refused, nothing is lost,
 * and nobody gets what another has.
 */
static void story_without_memory(unsigned n)
{
	struct world *w = begin(3);
	int first, second;

	until_failure = n;
	first = lock(w, 1, 1, 7);
	second = lock(w, 2, 1, 7);
	world_kill(w, 3);
	world_gone(w, 3, GONE_PROCESS);
	world_settle(w);
	world_prove(w, 3, PROOF_REAPED);
	world_settle(w);
	ugdlm_slot_clean(w->node[1].ls, 3);
	ugdlm_slot_clean(w->node[2].ls, 3);
	assert_int_equal(unlock(w, 1, 1, 7), 0);
	world_settle(w);
	until_failure = 0;
	world_settle(w);
	assert_true(first == 0 || is_refused(first));
	if (is_refused(second))
		assert_int_equal(lock(w, 2, 1, 7), 0);
	assert_int_equal(mounts[2].status[1], 0);
	assert_int_equal(try(w, 1, 2, 7), -EAGAIN);
	assert_int_equal(unlock(w, 2, 1, 7), 0);
	assert_int_equal(try(w, 1, 2, 7), 0);
	end(w);
}

static void test_memory(void **state)
{
	unsigned n = 0;

	do {
		has_failed = false;
		story_without_memory(++n);
	} while (has_failed);
	print_message("%u allocations\n", n - 1);
	assert_true(n > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_create),
		cmocka_unit_test(test_contention),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_one_frame),
		cmocka_unit_test(test_death),
		cmocka_unit_test(test_two_deaths),
		cmocka_unit_test(test_death_without_slot),
		cmocka_unit_test(test_newcomer_and_the_dead),
		cmocka_unit_test(test_leave),
		cmocka_unit_test(test_leave_dirty),
		cmocka_unit_test(test_quorum),
		cmocka_unit_test(test_lease_is_looked_at),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_fail),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_tune),
		cmocka_unit_test(test_at_home),
		cmocka_unit_test(test_early_messages_wait),
		cmocka_unit_test(test_load),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
