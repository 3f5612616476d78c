/* SPDX-License-Identifier: GPL-2.0-or-later */
/* dlm_engine.h - what the parts of this benchmark share. */
#ifndef UG_BENCH_DLM_ENGINE_H
#define UG_BENCH_DLM_ENGINE_H

#include <stdint.h>

#include "dlm/dlm.h"

/* Print what has failed, and exit with 1. */
void bench_die(const char *what, int error) __attribute__((noreturn));

/* Time that this thread has worked. */
double bench_cpu_ns(void);

/* A name as GFS2 makes them: kind of lock, number of block. */
void bench_name(struct dlm_name *name, unsigned kind, unsigned n);

/* dlm_recovery.c: prints a line per case. */
void measure_recovery(unsigned count, unsigned nodes, unsigned busy);

#endif
