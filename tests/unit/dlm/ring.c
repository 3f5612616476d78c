/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ring.c - see ring.h */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ring.h"

void ring_boot(struct ring *ring, int node)
{
	struct dlm_config config = { .nodeid = node, .lvblen = 32 };

	config.incarnation = ++ring->incarnation[node];
	config.seed = (uint64_t)node * 1000;
	config.hold_slots = ring->hold_slots;
	assert_int_equal(dlm_engine_new(&config, &ring->engine[node]), 0);
}

static void take(struct ring *ring, int node, struct dlm_update *up)
{
	struct dlm_msg *msg;
	int to;

	if (up->kind == DLM_UP_SEND) {
		to = up->msg.to;
		msg = malloc(sizeof(*msg));
		*msg = up->msg;
		up->msg.kind = DLM_MSG;
		ring->sent += msg->kind == DLM_MSG;
		assert_true(ring->tail[node][to] < RING_LOG);
		ring->queue[node][to][ring->tail[node][to]++] = msg;
		return;
	}
	assert_true(ring->told_count < RING_LOG);
	ring->told[ring->told_count].node = node;
	ring->told[ring->told_count].kind = up->kind;
	if (up->kind == DLM_UP_CAST || up->kind == DLM_UP_BAST)
		ring->told[ring->told_count].cast = up->cast;
	else
		ring->told[ring->told_count].running = up->running;
	ring->told_count++;
}

int ring_step(struct ring *ring, int node, struct dlm_event *event)
{
	struct dlm_updates out = { 0 };
	int error;

	event->now_ns = ring->now_ns;
	error = dlm_step(ring->engine[node], event, &out);
	dlm_check(ring->engine[node]);
	dlm_check_grants(ring->engine[node]);
	for (size_t i = 0; i < out.count; i++)
		take(ring, node, &out.list[i]);
	dlm_updates_free(&out);
	return error;
}

bool ring_deliver(struct ring *ring, int from, int to)
{
	struct dlm_event event = { .kind = DLM_EV_MESSAGE };
	struct dlm_msg *msg;

	if (ring->head[from][to] == ring->tail[from][to]) {
		ring->head[from][to] = ring->tail[from][to] = 0;
		return false;
	}
	msg = ring->queue[from][to][ring->head[from][to]++];
	event.message.msg = msg;
	event.message.incarnation = ring->incarnation[from];
	if (ring->engine[to])
		assert_int_equal(ring_step(ring, to, &event), 0);
	dlm_msg_release(msg);
	free(msg);
	return true;
}

static bool deliver_round(struct ring *ring)
{
	bool any = false;

	for (int from = 1; from <= RING_NODES; from++) {
		for (int to = 1; to <= RING_NODES; to++)
			any |= ring_deliver(ring, from, to);
	}
	return any;
}

static bool all_running(const struct ring *ring)
{
	for (int node = 1; node <= RING_NODES; node++) {
		if (ring->engine[node] && !dlm_is_running(ring->engine[node]))
			return false;
	}
	return true;
}

void ring_tick(struct ring *ring, uint64_t ns)
{
	ring->now_ns += ns;
	for (int node = 1; node <= RING_NODES; node++) {
		struct dlm_event event = { .kind = DLM_EV_TICK };

		if (ring->engine[node])
			assert_int_equal(ring_step(ring, node, &event), 0);
	}
}

void ring_settle(struct ring *ring)
{
	for (unsigned i = 0; i < 1000; i++) {
		while (deliver_round(ring))
			;
		if (all_running(ring))
			return;
		ring_tick(ring, 200000000);
	}
	fail_msg("the ring does not settle");
}

void ring_stop(struct ring *ring)
{
	for (int node = 1; node <= RING_NODES; node++) {
		struct dlm_event event = { .kind = DLM_EV_STOP };

		if (ring->engine[node])
			assert_int_equal(ring_step(ring, node, &event), 0);
	}
}

void ring_start(struct ring *ring)
{
	struct dlm_member members[RING_NODES];
	unsigned count = 0;

	for (int node = 1; node <= RING_NODES; node++) {
		if (ring->engine[node])
			members[count++] =
				(struct dlm_member){ node, 1,
						     ring->incarnation[node] };
	}
	for (int node = 1; node <= RING_NODES; node++) {
		struct dlm_event event = { .kind = DLM_EV_START };

		event.start.members = members;
		event.start.count = count;
		if (ring->engine[node])
			assert_int_equal(ring_step(ring, node, &event), 0);
	}
}

void ring_kill(struct ring *ring, int node)
{
	dlm_engine_free(ring->engine[node]);
	ring->engine[node] = NULL;
	for (int to = 1; to <= RING_NODES; to++) {
		while (ring_deliver(ring, to, node))
			;
		for (unsigned i = ring->head[node][to];
		     i < ring->tail[node][to]; i++) {
			dlm_msg_release(ring->queue[node][to][i]);
			free(ring->queue[node][to][i]);
		}
		ring->head[node][to] = ring->tail[node][to] = 0;
	}
}

static struct ring *new_ring(unsigned n, bool hold_slots)
{
	struct ring *ring = calloc(1, sizeof(*ring));

	ring->hold_slots = hold_slots;
	for (int node = 1; node <= (int)n; node++)
		ring_boot(ring, node);
	ring_start(ring);
	ring_settle(ring);
	ring->told_count = 0;
	ring->sent = 0;
	return ring;
}

struct ring *ring_new(unsigned n)
{
	return new_ring(n, false);
}

struct ring *ring_new_holding(unsigned n)
{
	return new_ring(n, true);
}

void ring_free(struct ring *ring)
{
	for (int node = 1; node <= RING_NODES; node++)
		ring_kill(ring, node);
	free(ring);
}

int ring_lock(struct ring *ring, int node, const char *name, enum dlm_mode mode,
	      uint32_t flags, const uint8_t *lvb, uint32_t *lkid)
{
	struct dlm_event event = { .kind = DLM_EV_LOCK };
	int error;

	event.lock = (struct dlm_lock_args){
		.mode = mode,
		.flags = flags,
		.wants_bast = true,
		.owner = 7,
		.pid = 7,
		.lvb = lvb,
	};
	event.lock.name.len = (uint8_t)strlen(name);
	memcpy(event.lock.name.bytes, name, strlen(name));
	error = ring_step(ring, node, &event);
	*lkid = event.lock.lkid;
	return error;
}

int ring_convert(struct ring *ring, int node, uint32_t lkid, enum dlm_mode mode,
		 uint32_t flags, const uint8_t *lvb)
{
	struct dlm_event event = { .kind = DLM_EV_LOCK };

	event.lock = (struct dlm_lock_args){
		.mode = mode,
		.flags = flags | LKF_CONVERT,
		.lkid = lkid,
		.lvb = lvb,
	};
	return ring_step(ring, node, &event);
}

int ring_unlock(struct ring *ring, int node, uint32_t lkid, uint32_t flags,
		const uint8_t *lvb)
{
	struct dlm_event event = { .kind = DLM_EV_UNLOCK };

	event.unlock = (struct dlm_unlock_args){ .lkid = lkid,
						 .flags = flags,
						 .lvb = lvb };
	return ring_step(ring, node, &event);
}

int ring_close(struct ring *ring, int node, uint32_t owner)
{
	struct dlm_event event = { .kind = DLM_EV_CLOSE };

	event.close.owner = owner;
	return ring_step(ring, node, &event);
}

int ring_purge(struct ring *ring, int node, int32_t target, uint32_t pid)
{
	struct dlm_event event = { .kind = DLM_EV_PURGE };

	event.purge.nodeid = target;
	event.purge.pid = pid;
	return ring_step(ring, node, &event);
}

static const struct dlm_cast *last(const struct ring *ring, int node,
				   uint32_t lkid, enum dlm_update_kind kind)
{
	for (unsigned i = ring->told_count; i-- > 0;) {
		const struct ring_told *told = &ring->told[i];

		if (told->node == node && told->kind == kind &&
		    told->cast.lkid == lkid)
			return &told->cast;
	}
	return NULL;
}

const struct dlm_cast *ring_cast(const struct ring *ring, int node,
				 uint32_t lkid)
{
	return last(ring, node, lkid, DLM_UP_CAST);
}

const struct dlm_cast *ring_bast(const struct ring *ring, int node,
				 uint32_t lkid)
{
	return last(ring, node, lkid, DLM_UP_BAST);
}

unsigned ring_casts(const struct ring *ring, int node, uint32_t lkid)
{
	unsigned n = 0;

	for (unsigned i = 0; i < ring->told_count; i++)
		n += ring->told[i].node == node &&
		     ring->told[i].kind == DLM_UP_CAST &&
		     ring->told[i].cast.lkid == lkid;
	return n;
}

void ring_expect(const struct ring *ring, int node, uint32_t lkid,
		 enum dlm_mode mode)
{
	const struct dlm_cast *cast = ring_cast(ring, node, lkid);

	assert_non_null(cast);
	assert_int_equal(cast->status, 0);
	assert_int_equal(cast->mode, mode);
}

const char *ring_name(unsigned n, int dir)
{
	static char names[RING_NODES + 1][8];

	for (unsigned i = 0; i < 100; i++) {
		snprintf(names[dir], sizeof(names[dir]), "r%u", i);
		if ((dlm_hash(names[dir], strlen(names[dir])) >> 16) % n + 1 ==
		    (unsigned)dir)
			return names[dir];
	}
	return NULL;
}
