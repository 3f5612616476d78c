/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlm_process.h - the life of a lock process: a member of a lockspace that
 * holds locks for people.
 *
 *   ugfs dlm join          supervisor                lock process
 *      | fork ----------------->| fork ------------------->|
 *      |                                                   | control socket
 *      |                                                   | join
 *      |<--------------------------------- note SENTENCE --| waits for ...
 *      |<--------------------------------- ready ----------| locks are granted
 *      exits                    |                          | serves, dispatches
 *
 * Called once, in a process that has been set apart for it.
 */
#ifndef UG_DAEMON_DLM_PROCESS_H
#define UG_DAEMON_DLM_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/dlm_options.h"

#define DLM_KIND "dlm" /* of its control socket */

/* Of a lock table's name on disk. */
#define DLM_NAME_BYTES_MAX 64u

struct dlm_request {
	const char *name; /* CLUSTER:NAME */
	struct dlm_options opt;
	bool foreground;
	const char *log_path; /* NULL: the system log */
	uint32_t timeout_ms;  /* to the first grants; 0: none */
};

/* report_fd (report.h) is taken over. The exit code. */
int dlm_process(const struct dlm_request *req, int report_fd);

#endif
