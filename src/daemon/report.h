/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * report.h - what the mount process tells the command that waits for it.
 *
 *   command                       mount process
 *      | fork ------------------------->|  opens the device, mounts
 *      |<------------- note SENTENCE ---|  any number
 *      |<------------- ready -----------|  requests are being served
 *      | statfs of the mount            |
 *      | prints, exits                  |
 *   or |<------------- failed CODE -----|  and exits
 *   or |<------------- end of file -----|  it has died
 *
 * The command asks the mount itself for statfs, since the mount process must
 * never touch its own mount (docs/spec/fuse.md 3.5), and is the one who
 * exits with mount(8)'s codes. In the foreground the two change places: the
 * mount process stays what the user has started, its child is the "command".
 */
#ifndef UG_DAEMON_REPORT_H
#define UG_DAEMON_REPORT_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "daemon/exitcode.h"

/* Of one report; longer sentences are cut. */
#define REPORT_LEN_MAX 1024

/* ---- the mount process; fd is the pipe's writing end ---- */

void report_note(int fd, const char *fmt, ...) ug_printf(2, 3);
void report_ready(int fd);
void report_failed(int fd, enum exit_code code, const char *fmt, ...)
	ug_printf(3, 4);

/* ---- the command ---- */

struct report_wait {
	int fd;		  /* the pipe's reading end, taken over */
	pid_t pid;	  /* the mount process */
	bool is_child;	  /* of the caller; else its parent */
	bool verbose;	  /* say when it is mounted */
	const char *dir;  /* where it mounts; NULL: ready is all there is */
	const char *what; /* "lock process"; NULL: "mount process" */
};

/*
 * Wait until the mount is usable or has failed, and print what there is to be
 * printed. The exit code of the command. An interrupt by the user makes the
 * mount process undo what it has done.
 */
int report_wait(const struct report_wait *rw);

#endif
