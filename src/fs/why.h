/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * why.h - the sentence that tells a user why a mount failed.
 */
#ifndef UG_FS_WHY_H
#define UG_FS_WHY_H

#include <stddef.h>

#include "base/compiler.h"

struct why {
	char *text; /* the caller's buffer */
	size_t len; /* its size; 0: nobody wants to know */
};

/* Put the sentence there and return err, for "return why_set(...)". */
int why_set(const struct why *why, int err, const char *fmt, ...)
	ug_printf(3, 4);

#endif
