/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * isolate.h - make a process fit to be part of the kernel's I/O path.
 *
 * The kernel waits for a mount process when it is short of memory and writes
 * back mapped files; and what the process holds open or stands in cannot be
 * unmounted. Source: docs/spec/fuse.md 11.13, 3.5.
 */
#ifndef UG_DAEMON_ISOLATE_H
#define UG_DAEMON_ISOLATE_H

#include <stdbool.h>

/*
 * Leave session, directory, terminal and all inherited descriptors but keep_fd
 * and the standard ones; in the background those lead to /dev/null, log
 * lines to log_path or, if it is NULL, to the system log. keep_fd stays valid
 * under its number. 0, or the errno of opening log_path or /dev/null.
 */
int isolate_process(bool foreground, const char *log_path, int keep_fd);

/*
 * No core files, no paging out, never chosen by the OOM killer, not throttled
 * or made to wait for pages when writing back. What the system does not grant
 * is done without; the log says so, with who as the object.
 */
void isolate_memory(const char *who);

#endif
