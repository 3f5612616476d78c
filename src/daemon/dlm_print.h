/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlm_print.h - answers of a lock process, for people. What is missing in an
 * answer, as in one of another release, is left out.
 */
#ifndef UG_DAEMON_DLM_PRINT_H
#define UG_DAEMON_DLM_PRINT_H

#include <jansson.h>
#include <stdio.h>

void dlm_print_status(FILE *out, const json_t *status);
/* One line. */
void dlm_print_summary(FILE *out, const json_t *status);
void dlm_print_lockdump(FILE *out, const json_t *dump);
/* The outcome of lock and unlock. */
void dlm_print_lock(FILE *out, const json_t *lock);

#endif
