/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run.h - the command line of a simulator: NAME [--runs N] [--seed N] [--trace]
 *
 * Runs one schedule for each seed; one that ends in abort() says which it was.
 * What all have done together is printed as a line of counts.
 */
#ifndef UG_SIM_RUN_H
#define UG_SIM_RUN_H

#include <stdbool.h>
#include <stdint.h>

typedef void (*run_fn)(uint64_t seed, bool trace);

/* Ends the program when a word of the command line means nothing. */
void run_schedules(int argc, char **argv, const char *name, run_fn one);

/* Behind "N schedules from seed N": each is ", COUNT WHAT". */
void run_print(const char *what, uint64_t count);

#endif
