/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlm_options.h - how a lock process joins: -o NAME=VALUE,NAME=VALUE. Pure.
 */
#ifndef UG_DAEMON_DLM_OPTIONS_H
#define UG_DAEMON_DLM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ugfs/ugdlm.h"

/* Only what options can say; strings are this structure's. */
struct dlm_options {
	struct ugdlm_config config;
	struct ugdlm_supervise supervise;
};

/*
 * Add a list of options. fence= takes all that follows it, commas too: a
 * command. 0, -ENOMEM, or -EINVAL with a sentence that names the option.
 */
int dlm_options_parse(struct dlm_options *opt, const char *text, char *why,
		      size_t why_len);
void dlm_options_free(struct dlm_options *opt);

/* Seconds with a fraction to milliseconds. False: no number, or out of range.
 */
bool dlm_parse_seconds(const char *text, double min, double max, uint32_t *ms);

/* "EX" or "ex". UGDLM_IV: no mode. */
enum ugdlm_mode dlm_parse_mode(const char *text);
const char *dlm_mode_name(enum ugdlm_mode mode);

#endif
