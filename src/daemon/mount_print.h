/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mount_print.h - answers of a mount process, for people. What is missing in
 * an answer, as in one of another release, is left out.
 */
#ifndef UG_DAEMON_MOUNT_PRINT_H
#define UG_DAEMON_MOUNT_PRINT_H

#include <jansson.h>
#include <stdio.h>

void mount_print_status(FILE *out, const json_t *status);
void mount_print_lockstats(FILE *out, const json_t *stats);
void mount_print_plocks(FILE *out, const json_t *plocks);

#endif
