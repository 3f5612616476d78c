/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perffiles.h - the files that fplockperf locks: empty, in a directory of their
 * own, and open all the time unless each is opened for its lock.
 *
 * Ownership: files and directory are removed by perf_files_remove(). One
 * thread.
 */
#ifndef UG_BENCH_PERFFILES_H
#define UG_BENCH_PERFFILES_H

#include <stddef.h>

#include "filelock.h"

struct perf_files {
	int dir; /* -1: there is none */
	int parent;
	char name[32]; /* of the directory, in its parent */
	unsigned count;
	bool reopen;
	int *fds;  /* NULL with reopen */
	char *why; /* where a failure is told, in a sentence */
	size_t why_len;
};

/*
 * Make them. 0 or -errno with a sentence in why, which is kept for what comes
 * later; perf_files_remove() is to be called in either case.
 */
int perf_files_make(struct perf_files *files, const char *dir, unsigned count,
		    bool reopen, char *why, size_t why_len);

/*
 * Lock and unlock the first count files, one after the other. Seconds in
 * *seconds. 0 or -errno with a sentence; -EINTR after a signal.
 */
int perf_files_pass(struct perf_files *files, unsigned count,
		    enum file_lock_kind kind, bool shared, double *seconds);

/* What cannot be removed is left. */
void perf_files_remove(struct perf_files *files);

double perf_now(void);

#endif
