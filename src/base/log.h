/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * log.h - one line per event, to the log and to an in-memory ring.
 *
 * Levels say where a line goes: error and warn and info to the log, debug and
 * trace to the ring only (all lines are in the ring). Every line begins with
 * the file system or lockspace, then the object: ug_info("vol1: journal 0",
 * "replayed 3 flushes"). Safe from any thread. The ring is bounded, always on,
 * and dumped by ug_log_dump() and on a failed assertion.
 */
#ifndef UG_BASE_LOG_H
#define UG_BASE_LOG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/compiler.h"

enum ug_level {
	UG_ERROR,
	UG_WARN,
	UG_INFO,
	UG_DEBUG,
	UG_TRACE,
};

/* Where lines of level UG_INFO and more urgent go. */
enum ug_log_target {
	UG_LOG_STDERR,
	UG_LOG_SYSLOG,
};

void ug_log_set_target(enum ug_log_target target);

/* Lines up to this level leave the ring; default UG_INFO. */
void ug_log_set_level(enum ug_level level);

/* who: file system or lockspace and object, without the colon. */
void ug_log(enum ug_level level, const char *who, const char *fmt, ...)
	ug_printf(3, 4);

#define ug_error(who, ...) ug_log(UG_ERROR, who, __VA_ARGS__)
#define ug_warn(who, ...) ug_log(UG_WARN, who, __VA_ARGS__)
#define ug_info(who, ...) ug_log(UG_INFO, who, __VA_ARGS__)
#define ug_debug(who, ...) ug_log(UG_DEBUG, who, __VA_ARGS__)
#define ug_trace(who, ...) ug_log(UG_TRACE, who, __VA_ARGS__)

/* Print the ring, oldest line first. */
void ug_log_dump(FILE *out);

#endif
