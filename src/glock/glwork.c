/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * glwork.c - what the host's threads do for the glocks.
 *
 * A glock comes here when it cannot go on without a recall, sync or invalidate,
 * which none but a worker may do: the thread of the lock manager has to bring
 * the next answer, the reader of the kernel's requests the next request. Or
 * when it has to be looked at a few ms later: a wheel of lists, one for each
 * millisecond, moves on with the clock whenever somebody looks.
 *
 *   wheel_ms                                    ready
 *   [ ][ ][gl][ ][gl gl][ ]...   -- clock -->  gl gl gl  -- worker --> run
 *
 * A glock in here is pinned. Who puts its last reference takes it out and does
 * the work himself.
 */
#include "glock/glock_impl.h"

static struct cds_list_head *slot_of(struct glock_queue *q, uint64_t ms)
{
	return &q->wheel[ms % GLOCK_WHEEL_SLOTS];
}

void glock_queue_init(struct glock_queue *q)
{
	pthread_mutex_init(&q->lock, NULL);
	CDS_INIT_LIST_HEAD(&q->ready);
	for (unsigned i = 0; i < GLOCK_WHEEL_SLOTS; i++)
		CDS_INIT_LIST_HEAD(&q->wheel[i]);
	q->announced_ns = UINT64_MAX;
	q->idle_ns = UINT64_MAX;
	q->idle_oldest_sec = UINT32_MAX;
}

void glock_queue_fini(struct glock_queue *q)
{
	pthread_mutex_destroy(&q->lock);
}

static bool is_listed(struct glock *gl)
{
	return !cds_list_empty(&gl->gl_work);
}

/* The queue lock is held: what is due becomes ready. */
static void move_wheel(struct glock_queue *q, uint64_t now_ms)
{
	uint64_t ms = q->wheel_ms;

	/* After a pause longer than the wheel each slot is looked at once. */
	if (now_ms > ms + GLOCK_WHEEL_SLOTS)
		ms = now_ms - GLOCK_WHEEL_SLOTS;
	while (ms < now_ms) {
		struct cds_list_head *slot = slot_of(q, ++ms);

		cds_list_splice(slot, q->ready.prev);
		CDS_INIT_LIST_HEAD(slot);
	}
	q->wheel_ms = UG_MAX(q->wheel_ms, now_ms);
}

/* Was it to be looked at later than this? */
static bool is_earlier(struct glock_queue *q, uint64_t when_ns)
{
	if (when_ns >= q->announced_ns)
		return false;
	/* Once is enough, until somebody has asked again. */
	q->announced_ns = when_ns;
	return true;
}

static void wake(struct glock_table *table)
{
	table->host.wake(table->host.arg);
}

void glock_queue_now(struct glock *gl)
{
	struct glock_queue *q = &gl->gl_table->queue;

	if (gl->gl_flags & GLF_READY)
		return;
	pthread_mutex_lock(&q->lock);
	if (!(gl->gl_flags & GLF_QUEUED)) {
		gl->gl_pins++;
		cds_list_add_tail(&gl->gl_work, &q->ready);
	} else if (is_listed(gl)) {
		cds_list_del(&gl->gl_work);
		cds_list_add_tail(&gl->gl_work, &q->ready);
	}
	/* Else a worker has it in hand, and will run it next. */
	gl->gl_flags |= GLF_QUEUED | GLF_READY;
	q->announced_ns = 0;
	pthread_mutex_unlock(&q->lock);
	wake(gl->gl_table);
}

void glock_queue_at(struct glock *gl, uint64_t due_ms)
{
	struct glock_queue *q = &gl->gl_table->queue;
	bool earlier;

	if (gl->gl_flags & GLF_QUEUED)
		return;
	pthread_mutex_lock(&q->lock);
	move_wheel(q, glock_now_ns() / 1000000u);
	ug_assert(due_ms < q->wheel_ms + GLOCK_WHEEL_SLOTS);
	/* The clock has overtaken it: the next millisecond. */
	due_ms = UG_MAX(due_ms, q->wheel_ms + 1);
	gl->gl_pins++;
	gl->gl_flags |= GLF_QUEUED;
	cds_list_add_tail(&gl->gl_work, slot_of(q, due_ms));
	earlier = is_earlier(q, due_ms * 1000000u);
	pthread_mutex_unlock(&q->lock);
	if (earlier)
		wake(gl->gl_table);
}

void glock_queue_drop(struct glock *gl)
{
	struct glock_queue *q = &gl->gl_table->queue;

	if (!(gl->gl_flags & GLF_QUEUED))
		return;
	pthread_mutex_lock(&q->lock);
	if (is_listed(gl)) {
		cds_list_del_init(&gl->gl_work);
		gl->gl_flags &= ~(GLF_QUEUED | GLF_READY);
		gl->gl_pins--;
	}
	pthread_mutex_unlock(&q->lock);
}

void glock_queue_idle_at(struct glock_table *table, uint64_t when_ns)
{
	struct glock_queue *q = &table->queue;
	bool earlier = false;

	if (!glock_has_workers(table))
		return;
	pthread_mutex_lock(&q->lock);
	if (when_ns < q->idle_ns) {
		q->idle_ns = when_ns;
		earlier = is_earlier(q, when_ns);
	}
	pthread_mutex_unlock(&q->lock);
	if (earlier)
		wake(table);
}

/*
 * The first one that is ready, off the list; it stays pinned. If there are
 * more, and the clock has brought them, nobody else knows.
 */
static struct glock *take_ready(struct glock_table *table)
{
	struct glock_queue *q = &table->queue;
	struct glock *gl = NULL;
	bool more;

	pthread_mutex_lock(&q->lock);
	move_wheel(q, glock_now_ns() / 1000000u);
	if (!cds_list_empty(&q->ready)) {
		gl = cds_list_first_entry(&q->ready, struct glock, gl_work);
		cds_list_del_init(&gl->gl_work);
	}
	more = !cds_list_empty(&q->ready);
	pthread_mutex_unlock(&q->lock);
	if (more)
		wake(table);
	return gl;
}

bool glock_table_work(struct glock_table *table)
{
	struct glock *gl = take_ready(table);

	if (!gl)
		return glock_idle_walk(table);
	pthread_mutex_lock(&gl->gl_lock);
	gl->gl_flags &= ~(GLF_QUEUED | GLF_READY | GLF_BACKOFF);
	glock_hold_look(gl);
	glock_recall(gl);
	glock_run_working(gl);
	glock_unpin_unlock(gl);
	return true;
}

static uint64_t wheel_next_ms(struct glock_queue *q)
{
	for (uint64_t i = 1; i <= GLOCK_WHEEL_SLOTS; i++) {
		if (!cds_list_empty(slot_of(q, q->wheel_ms + i)))
			return q->wheel_ms + i;
	}
	return 0;
}

uint64_t glock_table_wake_ns(struct glock_table *table)
{
	struct glock_queue *q = &table->queue;
	uint64_t when = UINT64_MAX;
	uint64_t ms;

	pthread_mutex_lock(&q->lock);
	ms = wheel_next_ms(q);
	if (ms)
		when = ms * 1000000u;
	if (!q->idle_walking)
		when = UG_MIN(when, q->idle_ns);
	if (!cds_list_empty(&q->ready))
		when = 0;
	q->announced_ns = when;
	pthread_mutex_unlock(&q->lock);
	return when;
}
