/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * story.c - one member, and what is said to it.
 */
#include "story.h"

int step(struct story *s, struct plock_event *event)
{
	int error;

	s->out.count = 0;
	event->now_ns = s->now_ns;
	error = plock_step(s->engine, event, &s->out);
	assert_false(s->out.more);
	plock_check(s->engine);
	return error;
}

void members(struct story *s, uint64_t epoch)
{
	static const uint64_t nodes[] = { 1, 2, 3 };
	struct plock_event event = {
		.kind = PLOCK_EV_MEMBERS,
		.members = { .epoch = epoch, .nodes = nodes, .count = 3 }
	};

	assert_int_equal(step(s, &event), 0);
}

/* The others are gone. */
void alone(struct story *s, uint64_t epoch)
{
	static const uint64_t nodes[] = { 1 }, gone[] = { 2, 3 };
	struct plock_event event = { .kind = PLOCK_EV_MEMBERS,
				     .members = { .epoch = epoch,
						  .nodes = nodes,
						  .count = 1,
						  .gone = gone,
						  .gone_count = 2 } };

	assert_int_equal(step(s, &event), 0);
	assert_true(plock_is_settled(s->engine));
}

void released(struct story *s, uint64_t node)
{
	struct plock_event event = { .kind = PLOCK_EV_RELEASED,
				     .released.node = node };

	assert_int_equal(step(s, &event), 0);
}

void quorum(struct story *s, bool quorate)
{
	struct plock_event event = { .kind = PLOCK_EV_QUORUM,
				     .quorum.quorate = quorate };

	assert_int_equal(step(s, &event), 0);
}

int say(struct story *s, struct plock_msg msg)
{
	struct plock_event event = { .kind = PLOCK_EV_MESSAGE, .msg = &msg };

	msg.to = 1;
	return step(s, &event);
}

int say_done(struct story *s, uint64_t from, uint64_t epoch)
{
	return say(s, (struct plock_msg){ .type = PLOCK_MSG_DONE,
					  .from = from,
					  .epoch = epoch });
}

unsigned count(const struct story *s, enum plock_msg_type type, int status)
{
	unsigned n = 0;

	for (size_t i = 0; i < s->out.count; i++)
		n += s->out.list[i].kind == PLOCK_UP_SEND &&
		     s->out.list[i].msg.type == type &&
		     s->out.list[i].msg.status == status;
	return n;
}

unsigned answers(const struct story *s)
{
	unsigned n = 0;

	for (size_t i = 0; i < s->out.count; i++)
		n += s->out.list[i].kind == PLOCK_UP_ANSWER &&
		     !s->out.list[i].answer.status;
	return n;
}

void call_of(struct story *s, uint64_t number, uint64_t owner,
	     enum range_mode mode)
{
	struct plock_event event = { .kind = PLOCK_EV_CALL };

	event.call.number = number;
	event.call.ctx = ++s->next_id;
	event.call.op = (struct plock_op){ .kind = PLOCK_SET,
					   .mode = mode,
					   .wait = true,
					   .owner = owner,
					   .end = 9 };
	assert_int_equal(step(s, &event), 0);
	s->call_id = event.call.id;
}

void call(struct story *s, uint64_t number, enum range_mode mode)
{
	call_of(s, number, 1, mode);
}

static void see(void *arg, const struct plock_file_info *info)
{
	struct story *s = arg;

	if (info->serves)
		s->served = info->number;
}

void begin_with(struct story *s, struct plock_config config)
{
	config.node = 1;
	config.kept_max = MOST;
	memset(s, 0, sizeof(*s));
	s->now_ns = 1000;
	assert_int_equal(plock_engine_new(&config, &s->engine), 0);
	members(s, 1);
	assert_int_equal(say_done(s, 2, 1), 0);
	assert_int_equal(say_done(s, 3, 1), 0);
	assert_true(plock_is_settled(s->engine));
	/* The first one whose home is member 1, too. */
	for (uint64_t number = 1; !s->served; number++) {
		call(s, number, RANGE_READ);
		plock_visit(s->engine, see, NULL, NULL, s);
	}
}

void begin(struct story *s)
{
	begin_with(s, (struct plock_config){ 0 });
}

void end(struct story *s)
{
	plock_engine_free(s->engine);
	plock_updates_free(&s->out);
}

struct wanted {
	uint64_t number;
	uint64_t gen;
};

static void see_gen(void *arg, const struct plock_file_info *info)
{
	struct wanted *wanted = arg;

	if (info->number == wanted->number)
		wanted->gen = info->gen;
}

uint64_t gen_of(const struct story *s, uint64_t number)
{
	struct wanted wanted = { .number = number };

	plock_visit(s->engine, see_gen, NULL, NULL, &wanted);
	return wanted.gen;
}

int say_op(struct story *s, uint64_t from, enum range_mode mode)
{
	return say(s, (struct plock_msg){ .type = PLOCK_MSG_OP,
					  .from = from,
					  .epoch = 1,
					  .number = s->served,
					  .gen = gen_of(s, s->served),
					  .id = ++s->next_id,
					  .op = { .kind = PLOCK_SET,
						  .mode = mode,
						  .wait = true,
						  .owner = s->next_id,
						  .end = 9 } });
}

/* A file whose home is member 2: its number. */
uint64_t home_at_2(struct story *s)
{
	for (uint64_t number = 1000;; number++) {
		call(s, number, RANGE_READ);
		if (count(s, PLOCK_MSG_ACQUIRE, 0) &&
		    s->out.list[0].msg.to == 2)
			return number;
	}
}

int say_serves(struct story *s, uint64_t number, uint64_t node,
	       uint64_t its_gen)
{
	return say(s, (struct plock_msg){ .type = PLOCK_MSG_SERVES,
					  .from = 2,
					  .epoch = 1,
					  .number = number,
					  .node = node,
					  .gen = its_gen });
}

unsigned locks(const struct story *s)
{
	struct plock_counts counts;

	plock_count(s->engine, &counts);
	return counts.ranges.locks;
}
