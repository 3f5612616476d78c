/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * why.h - the sentence of a decoder that refuses. Of this folder only.
 */
#ifndef UG_ONDISK_WHY_H
#define UG_ONDISK_WHY_H

#include <stdio.h>

/* Format into why unless it is NULL, and evaluate to the error. */
#define why_return(why, why_len, err, ...)                       \
	({                                                       \
		if (why)                                         \
			snprintf((why), (why_len), __VA_ARGS__); \
		(err);                                           \
	})

#endif
