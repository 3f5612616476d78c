/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * main.c - fplockperf: how long it takes to lock and unlock many files.
 *
 * For each kind of lock and each number of files one set: some passes, each of
 * which locks and unlocks every file once.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "perfargs.h"
#include "perffiles.h"
#include "perfresults.h"

enum perf_exit {
	PERF_OK = 0,
	PERF_USAGE = 1,
	PERF_FAILED = 2,
};

static volatile sig_atomic_t stopped; /* by this signal */

static void on_signal(int sig)
{
	stopped = sig;
}

/* Without SA_RESTART: who waits for a lock shall end, too. */
static void catch_signals(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = on_signal };

	for (size_t i = 0; i < UG_ARRAY_SIZE(signals); i++)
		sigaction(signals[i], &action, NULL);
	signal(SIGPIPE, SIG_IGN); /* the files are removed nevertheless */
}

static int run_set(struct perf_files *files, struct perf_results *results,
		   enum file_lock_kind kind, unsigned count)
{
	const struct perf_args *args = results->args;
	double begin = perf_now(), seconds;

	perf_results_set(results, kind, count);
	for (unsigned i = 0; i < args->iterations; i++) {
		int err = perf_files_pass(files, count, kind, args->shared,
					  &seconds);

		if (stopped)
			return -EINTR;
		if (err)
			return err;
		perf_results_pass(results, kind, count, i, seconds);
	}
	perf_results_total(results, perf_now() - begin);
	return 0;
}

static int run_sets(struct perf_files *files, struct perf_results *results)
{
	const struct perf_args *args = results->args;
	unsigned sets = args->kinds_used * args->counts_used;
	int err;

	for (unsigned i = 0; i < sets; i++) {
		if (i && args->delay_sec) {
			perf_results_delay(results);
			sleep(args->delay_sec);
		}
		if (stopped)
			return -EINTR;
		err = run_set(files, results,
			      args->kinds[i / args->counts_used],
			      args->counts[i % args->counts_used]);
		if (err)
			return err;
	}
	return 0;
}

static unsigned files_needed(const struct perf_args *args)
{
	unsigned max = 0;

	for (unsigned i = 0; i < args->counts_used; i++)
		max = UG_MAX(max, args->counts[i]);
	return max;
}

static int run(const struct perf_args *args)
{
	struct perf_files files;
	struct perf_results results;
	char why[512] = "no memory";
	int err, out_err;

	catch_signals();
	err = perf_files_make(&files, args->dir, files_needed(args),
			      args->reopen, why, sizeof(why));
	if (!err && !stopped) {
		err = perf_results_begin(&results, args, stdout);
		if (!err) {
			err = run_sets(&files, &results);
			out_err = perf_results_end(&results, !err);
			if (!err && out_err) {
				snprintf(why, sizeof(why), "output: %s",
					 strerror(-out_err));
				err = out_err;
			}
		}
	}
	perf_files_remove(&files);
	if (stopped) {
		signal(stopped, SIG_DFL);
		raise(stopped);
	}
	if (!err)
		return PERF_OK;
	fprintf(stderr, "fplockperf: %s\n", why);
	return PERF_FAILED;
}

int main(int argc, char **argv)
{
	struct perf_args args;
	char why[256];

	if (perf_args_parse(argc, argv, &args, why, sizeof(why))) {
		fprintf(stderr, "fplockperf: %s; fplockperf -h helps\n", why);
		return PERF_USAGE;
	}
	switch (args.action) {
	case PERF_HELP:
		perf_args_help(stdout);
		return PERF_OK;
	case PERF_VERSION:
		puts("fplockperf, ugfs " UGFS_VERSION);
		return PERF_OK;
	case PERF_RUN:
		break;
	}
	return run(&args);
}
