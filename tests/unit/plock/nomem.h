/* SPDX-License-Identifier: GPL-2.0-or-later */
/* nomem.h - allocations that fail: the linker puts them in place (--wrap). */
#ifndef UG_TEST_PLOCK_NOMEM_H
#define UG_TEST_PLOCK_NOMEM_H

/* So many succeed from now on, then all fail; negative: none does. */
extern long nomem_after;

#endif
