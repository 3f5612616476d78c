/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lockhistory.h - what a lockclient held, and when: a file that it maps, so
 * that nothing is lost when it is killed. CLOCK_MONOTONIC is the same for all
 * processes of a machine, whatever name spaces they are in.
 */
#ifndef UG_TEST_LOCKHISTORY_H
#define UG_TEST_LOCKHISTORY_H

#include <stdatomic.h>
#include <stdint.h>

#define HISTORY_MAGIC 0x7567686973740002u
#define HISTORY_MAX (1u << 20) /* holds of one process */

/*
 * One hold: from after the program was told of the grant to before it asked for
 * anything else, so shorter than in truth. A lock can be held by one process in
 * that time only if it was granted to it; two that exclude each other and meet
 * are a fault.
 */
struct hold {
	uint64_t begin_ns;
	_Atomic uint64_t end_ns; /* 0: to the end of the process */
	uint64_t read;		 /* value that was read, if did_read */
	uint64_t written;	 /* value that was asked to be written, or 0 */
	uint16_t resource;
	int8_t mode;
	uint8_t did_read; /* and it was said to be valid */
	uint32_t thread;
};

/* What the program was told of members. */
enum change_kind {
	CHANGE_PREPARE = 1,
	CHANGE_RUNNING = 2,
};

#define CHANGES_MAX 4096u

struct change {
	uint64_t ns;
	uint32_t kind;
};

struct history {
	uint64_t magic;
	uint32_t node;
	uint32_t pid;
	_Atomic uint64_t alive_ns; /* it was alive then */
	_Atomic uint32_t count;
	_Atomic uint64_t operations;
	_Atomic uint32_t changes;
	struct change change[CHANGES_MAX];
	struct hold hold[HISTORY_MAX];
};

#endif
