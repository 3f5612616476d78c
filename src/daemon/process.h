/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * process.h - the life of a mount process, from the device to its end.
 *
 * Called once, in a process that has been set apart for it: not yet any
 * thread, no descriptor of use but the standard ones and the pipe of report.h.
 * It never forks (DESIGN D8), but to leave its supervisor behind, before it has
 * opened anything (DESIGN 4.4).
 */
#ifndef UG_DAEMON_PROCESS_H
#define UG_DAEMON_PROCESS_H

#include <stdbool.h>

#include "daemon/options.h"

struct mount_request {
	const char *source; /* full path of a device or image */
	const char *dir;    /* full path of the mount point */
	struct mount_options opt;
	bool foreground; /* keep terminal and standard error */
	bool verbose;
	const char *log_path; /* log lines go there; NULL: the system log */
};

/*
 * Mount, serve until the mount ends, leave everything on disk. What happens
 * is told through report_fd, which is taken over. The exit code.
 */
int mount_process(const struct mount_request *req, int report_fd);

#endif
