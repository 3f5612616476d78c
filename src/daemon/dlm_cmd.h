/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlm_cmd.h - the commands "ugfs dlm VERB". Each takes its arguments from its
 * own name on and returns an exit code.
 */
#ifndef UG_DAEMON_DLM_CMD_H
#define UG_DAEMON_DLM_CMD_H

#include <jansson.h>
#include <stdbool.h>

int dlm_join_main(int argc, char **argv);
int dlm_leave_main(int argc, char **argv);
int dlm_ls_main(int argc, char **argv);
int dlm_status_main(int argc, char **argv);
int dlm_lockdump_main(int argc, char **argv);
int dlm_dump_main(int argc, char **argv);
int dlm_fence_ack_main(int argc, char **argv);
int dlm_lock_main(int argc, char **argv);
int dlm_unlock_main(int argc, char **argv);
int dlm_bench_main(int argc, char **argv);

/*
 * Ask the lock process of this lockspace (the first, if there are several) and
 * wait; args is taken over. EXIT_OK and *result, else it has been said what is
 * wrong. verb is also what the user has called.
 */
int dlm_ask(const char *name, const char *verb, json_t *args, int timeout_ms,
	    json_t **result);

/* "ugfs dlm VERB: SENTENCE"; returns code. */
int dlm_say(const char *verb, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Also looks whether all of it could be written. */
int dlm_print_json(const json_t *value);

#endif
