/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlm_load.h - one kind of work on locks, as fast as it goes, for a while.
 *
 * Each of threads * depth slots has one operation under way at a time. What is
 * done at once is followed by the next operation; else the callback issues it,
 * on one of the threads, which do nothing but dispatch.
 */
#ifndef UG_DAEMON_DLM_LOAD_H
#define UG_DAEMON_DLM_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/dlm_latency.h"
#include "ugfs/ugdlm.h"

#define LOAD_DEPTH_MAX 65536u

enum load_kind {
	LOAD_LOCK, /* EX and unlock, each slot its own name again and again */
	LOAD_NEW,  /* the same, a new name each time */
	LOAD_CONVERT, /* NL to EX and back, each slot its own name */
	LOAD_HOLD,    /* NL on a new name each time, kept */
};

struct load_config {
	struct ugdlm *ls;
	enum load_kind kind;
	const char *prefix;	 /* names are prefix and a number */
	uint64_t first;		 /* the first number */
	uint64_t names;		 /* of NEW and HOLD: how many there are */
	struct ugdlm_lksb *held; /* HOLD: that many */
	unsigned threads, depth;
	uint32_t time_ms; /* 0: until there are no more names */
	unsigned sample;  /* every so many operations are timed */
};

struct load_result {
	uint64_t pairs; /* both halves done */
	uint64_t used;	/* names, of NEW and HOLD */
	uint64_t ns;
	uint64_t cpu_ns;     /* of all threads of this process */
	struct latency up;   /* lock, or the conversion to EX */
	struct latency down; /* unlock, or the conversion to NL */
};

/* 0; -ENOMEM; what the library refused; -EIO: some lock was not granted. */
int load_run(const struct load_config *config, struct load_result *result);

uint64_t load_now_ns(void);

/* Processor time of this process so far, in ns. */
uint64_t load_cpu_ns(void);

#endif
