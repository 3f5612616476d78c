/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlm_bench.h - the parts of "ugfs dlm bench".
 *
 *   dlm_bench.c    arguments, membership, single locks
 *   dlm_hold.c     the side that holds (--hold)
 *   dlm_rows.c     the side that measures
 *
 * All on the main thread.
 */
#ifndef UG_DAEMON_DLM_BENCH_H
#define UG_DAEMON_DLM_BENCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/dlm_options.h"
#include "ugfs/ugdlm.h"

#define BENCH_VERB "bench"
#define HOLDERS_MAX 32u

struct holder {
	long node, instance;
	uint16_t port;
	uint32_t names;
	char address[64];
};

struct bench {
	const char *name;
	const char *only; /* rows with this text; NULL: all */
	struct dlm_options opt;
	bool hold, json, dispatch;
	uint32_t time_ms;
	unsigned threads, depth;
	unsigned names; /* --hold: how many */
	unsigned held;	/* to measure memory; 0: not */
	struct ugdlm *ls;
	_Atomic bool running, lost;
	bool ended; /* the operation of bench_lock() */
	struct holder holders[HOLDERS_MAX];
	unsigned holders_count, members;
	json_t *rows;
	double echo_ns; /* the median, 0: none */
};

/* Callbacks that come within ms. */
void bench_dispatch(struct bench *b, int ms);

/*
 * Ask for a lock with a value block, or convert it, and dispatch until that has
 * ended. False: not granted, or the lockspace is lost.
 */
bool bench_lock(struct bench *b, const char *name, enum ugdlm_mode mode,
		bool convert, struct ugdlm_lksb *lksb);

/* The same for a call that has been made: err is what it returned. */
bool bench_finish(struct bench *b, int err);

/* The lockspace's status, or NULL. The caller's. */
json_t *bench_status(struct bench *b);

/* How names that a member holds begin, and the one that tells of them. */
void bench_names(char *prefix, char *hold, size_t len, long node,
		 long instance);

/* Both leave the lockspace. The exit code. */
int bench_hold(struct bench *b);
int bench_measure(struct bench *b);

#endif
