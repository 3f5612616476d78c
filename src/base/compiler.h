/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * compiler.h - the few language extensions that the project uses.
 *
 * Everything that depends on GNU C is named here once, so that the rest of
 * the code reads as C17.
 */
#ifndef UG_BASE_COMPILER_H
#define UG_BASE_COMPILER_H

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define ug_printf(fmt, args) __attribute__((format(printf, fmt, args)))
#define ug_must_check __attribute__((warn_unused_result))
#define ug_noreturn __attribute__((noreturn))
#define ug_unused __attribute__((unused))
#define ug_packed __attribute__((packed))
#define ug_likely(x) __builtin_expect(!!(x), 1)
#define ug_unlikely(x) __builtin_expect(!!(x), 0)

#define ug_container_of(ptr, type, member) \
	((type *)((char *)(ptr)-offsetof(type, member)))
#define UG_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define UG_MIN(a, b) ((a) < (b) ? (a) : (b))
#define UG_MAX(a, b) ((a) > (b) ? (a) : (b))

/* x rounded up to a multiple of the power of two a; a must divide 2^64. */
#define UG_ALIGN_UP(x, a) (((x) + ((a)-1)) & ~((__typeof__(x))(a)-1))
#define UG_DIV_UP(x, y) (((x) + ((y)-1)) / (y))

static inline void ug_free_ptr(void *p)
{
	free(*(void **)p);
}

static inline void ug_close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

/* Released at the end of the scope. Never in a function that uses goto. */
#define ug_autofree __attribute__((cleanup(ug_free_ptr)))
#define ug_autoclose __attribute__((cleanup(ug_close_fd)))

#endif
