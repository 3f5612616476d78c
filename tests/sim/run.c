/* SPDX-License-Identifier: GPL-2.0-or-later */
/* run.c - the command line of a simulator, and its line of counts. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "run.h"

static uint64_t seed_under_way;

static void on_abort(int signal)
{
	(void)signal;
	printf("FAILED: the engine has aborted; replay: --seed %llu --trace\n",
	       (unsigned long long)seed_under_way);
	fflush(stdout);
}

void run_print(const char *what, uint64_t count)
{
	printf(", %llu %s", (unsigned long long)count, what);
}

void run_schedules(int argc, char **argv, const char *name, run_fn one)
{
	static const struct option options[] = {
		{ "runs", required_argument, NULL, 'r' },
		{ "seed", required_argument, NULL, 's' },
		{ "trace", no_argument, NULL, 't' },
		{ 0 },
	};
	uint64_t runs = 1, seed = 1;
	bool trace = false;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'r') {
			runs = strtoull(optarg, NULL, 0);
		} else if (option == 's') {
			seed = strtoull(optarg, NULL, 0);
		} else if (option == 't') {
			trace = true;
		} else {
			printf("usage: %s [--runs N] [--seed N] [--trace]\n",
			       name);
			exit(2);
		}
	}
	signal(SIGABRT, on_abort);
	for (uint64_t i = 0; i < runs; i++) {
		seed_under_way = seed + i;
		one(seed_under_way, trace);
	}
	printf("%llu schedules from seed %llu", (unsigned long long)runs,
	       (unsigned long long)seed);
}
