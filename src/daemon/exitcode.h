/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * exitcode.h - what our programs tell their callers.
 *
 * The codes of mount(8), which scripts and systemd know; the other verbs use
 * the first two.
 */
#ifndef UG_DAEMON_EXITCODE_H
#define UG_DAEMON_EXITCODE_H

enum exit_code {
	EXIT_OK = 0,
	EXIT_USAGE = 1,	       /* arguments, options, permissions */
	EXIT_SYSTEM = 2,       /* memory, processes, no /dev/fuse */
	EXIT_INTERNAL = 4,     /* the mount process died by itself */
	EXIT_INTERRUPTED = 8,  /* by the user */
	EXIT_NOT_GRANTED = 16, /* ugfs dlm: somebody else holds the lock */
	EXIT_MOUNT = 32,       /* everything about this device and directory,
				  or about this lockspace */
};

#endif
