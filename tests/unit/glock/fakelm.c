/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fakelm.c - the scripted lock manager, and the object behind its glock.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fakelm.h"

static const char *const state_name[] = { "UN", "EX", "DF", "SH" };

void fake_trace(struct fake *f, const char *fmt, ...)
{
	va_list args;
	size_t len;

	pthread_mutex_lock(&f->lock);
	if (f->trace[0])
		strcat(f->trace, ", ");
	len = strlen(f->trace);
	va_start(args, fmt);
	vsnprintf(f->trace + len, sizeof(f->trace) - len - 2, fmt, args);
	va_end(args);
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
}

void fake_expect(struct fake *f, const char *expected)
{
	glock_table_check(f->table);
	pthread_mutex_lock(&f->lock);
	assert_string_equal(f->trace, expected);
	f->trace[0] = '\0';
	pthread_mutex_unlock(&f->lock);
}

static void fake_lock(void *mod, struct glock *gl, enum lm_state state,
		      unsigned flags)
{
	struct fake *f = mod;

	fake_trace(f, "lock %s%s%s", state_name[state],
		   flags & GL_TRY ? " try" : "",
		   flags & GL_TRY_1CB ? " try1cb" : "");
	if (f->at_once)
		glock_complete(gl, state, LM_OUT_DONE);
}

static void fake_cancel(void *mod, struct glock *gl)
{
	struct fake *f = mod;

	fake_trace(f, "cancel");
	if (!f->cancel_at_once)
		return;
	glock_complete(gl, LM_ST_UNLOCKED, LM_OUT_CANCELLED);
	fake_trace(f, "cancel returns");
}

static void fake_put(void *mod, struct glock *gl, bool keep)
{
	fake_trace(mod, keep ? "put keep" : "put");
}

static bool fake_at_once(void *mod)
{
	struct fake *f = mod;

	return f->at_once || f->says_at_once;
}

static const struct lockmod_ops fake_lm_ops = {
	.name = "lock_fake",
	.lock = fake_lock,
	.cancel = fake_cancel,
	.put = fake_put,
	.at_once = fake_at_once,
};

static void pass_gate(struct fake *f)
{
	pthread_mutex_lock(&f->lock);
	f->at_gate = true;
	pthread_cond_broadcast(&f->changed);
	while (f->gate_closed)
		pthread_cond_wait(&f->changed, &f->lock);
	f->at_gate = false;
	pthread_mutex_unlock(&f->lock);
}

static int fake_sync(struct glock *gl)
{
	struct fake *f = glock_object(gl);

	fake_trace(f, "sync");
	pass_gate(f);
	return f->sync_error;
}

static void fake_invalidate(struct glock *gl, enum lm_state target)
{
	fake_trace(glock_object(gl), "invalidate %s", state_name[target]);
}

static int fake_instantiate(struct glock *gl, bool nowait)
{
	struct fake *f = glock_object(gl);

	fake_trace(f, "instantiate%s", nowait ? " nowait" : "");
	pass_gate(f);
	return f->instantiate_error;
}

static void fake_callback(struct glock *gl, enum lm_state wanted)
{
	fake_trace(glock_object(gl), "callback %s", state_name[wanted]);
}

const struct glock_ops fake_worked_ops = {
	.type = LM_TYPE_INODE,
	.hold = true,
	.sync = fake_sync,
	.invalidate = fake_invalidate,
	.instantiate = fake_instantiate,
	.callback = fake_callback,
};

const struct glock_ops fake_inode_ops = {
	.type = LM_TYPE_INODE,
	.sync = fake_sync,
	.invalidate = fake_invalidate,
	.instantiate = fake_instantiate,
};

void fake_answer(struct fake *f, enum lm_state state, enum lm_outcome outcome)
{
	glock_complete(f->gl, state, outcome);
}

void fake_grant(struct fake *f, enum lm_state state)
{
	fake_answer(f, state, LM_OUT_DONE);
}

void fake_close_gate(struct fake *f)
{
	pthread_mutex_lock(&f->lock);
	f->gate_closed = true;
	pthread_mutex_unlock(&f->lock);
}

void fake_wait_at_gate(struct fake *f)
{
	pthread_mutex_lock(&f->lock);
	while (!f->at_gate)
		pthread_cond_wait(&f->changed, &f->lock);
	pthread_mutex_unlock(&f->lock);
}

void fake_open_gate(struct fake *f)
{
	pthread_mutex_lock(&f->lock);
	f->gate_closed = false;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
}

static struct fake *fake_new(void)
{
	struct fake *f = calloc(1, sizeof(*f));
	struct lockmod mod = { .ops = &fake_lm_ops, .mod = f };

	alarm(20);
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->changed, NULL);
	assert_int_equal(glock_table_create(&mod, "test", &f->table), 0);
	return f;
}

static void fake_get(struct fake *f, const struct glock_ops *ops)
{
	assert_int_equal(glock_get(f->table, ops, FAKE_NUMBER, f, &f->gl), 0);
}

int fake_setup(void **state)
{
	struct fake *f = fake_new();

	fake_get(f, &fake_inode_ops);
	*state = f;
	return 0;
}

static void fake_wake(void *arg)
{
	((struct fake *)arg)->woken++;
}

int fake_setup_worked(void **state)
{
	struct fake *f = fake_new();
	struct glock_host host = { .wake = fake_wake, .arg = f };

	glock_table_set_host(f->table, &host);
	fake_get(f, &fake_worked_ops);
	*state = f;
	return 0;
}

void fake_work(struct fake *f)
{
	while (glock_table_work(f->table))
		;
	glock_table_check(f->table);
}

int fake_teardown(void **state)
{
	struct fake *f = *state;

	f->at_once = true;
	if (f->gl)
		glock_put(f->gl);
	glock_table_destroy(f->table);
	pthread_cond_destroy(&f->changed);
	pthread_mutex_destroy(&f->lock);
	free(f);
	return 0;
}
