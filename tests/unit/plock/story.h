/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * story.h - stories of one engine, member 1; members 2 and 3 are played.
 *
 * A step that fails an assertion ends the test. out has the updates of the last
 * step only.
 */
#ifndef UG_TEST_PLOCK_STORY_H
#define UG_TEST_PLOCK_STORY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "plock/plock.h"

/* Messages that it keeps of one sender. */
#define MOST 8u

struct story {
	struct plock_engine *engine;
	struct plock_updates out;
	uint64_t now_ns;
	uint64_t next_id;
	uint64_t call_id; /* of the last call */
	uint64_t served;  /* a file that member 1 serialises */
};

/* Settled in epoch 1, with a file that it serves and reads. */
void begin(struct story *s);
void begin_with(struct story *s, struct plock_config config);
void end(struct story *s);

int step(struct story *s, struct plock_event *event);
void members(struct story *s, uint64_t epoch);
/* The others are gone. */
void alone(struct story *s, uint64_t epoch);
void released(struct story *s, uint64_t node);
void quorum(struct story *s, bool quorate);

int say(struct story *s, struct plock_msg msg);
int say_done(struct story *s, uint64_t from, uint64_t epoch);
int say_op(struct story *s, uint64_t from, enum range_mode mode);
int say_serves(struct story *s, uint64_t number, uint64_t node,
	       uint64_t its_gen);

void call(struct story *s, uint64_t number, enum range_mode mode);
void call_of(struct story *s, uint64_t number, uint64_t owner,
	     enum range_mode mode);
/* A file whose home is member 2, which is asked for it: its number. */
uint64_t home_at_2(struct story *s);

/* Of the last step */
unsigned count(const struct story *s, enum plock_msg_type type, int status);
unsigned answers(const struct story *s);

uint64_t gen_of(const struct story *s, uint64_t number);
unsigned locks(const struct story *s);

#endif
