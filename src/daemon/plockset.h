/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plockset.h - settings of application locks: names, ranges, where each comes
 * from.
 *
 * A mount option beats <dlm> of cluster.conf, which beats <gfs_controld>, which
 * beats what is built in; within one of them the last word counts.
 * Pure. Source: docs/spec/plocks.md 5.7, 13.
 */
#ifndef UG_DAEMON_PLOCKSET_H
#define UG_DAEMON_PLOCKSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plock/plock.h"

enum plock_setting {
	PLOCKSET_OWNERSHIP,
	PLOCKSET_RATE_LIMIT, /* calls per second */
	PLOCKSET_DROP_TIME,  /* ms */
	PLOCKSET_DROP_COUNT,
	PLOCKSET_DROP_AGE, /* ms */
	PLOCKSET_ENABLE,
	PLOCKSET_MODE, /* enum plock_mode */
};
#define PLOCKSET_COUNT 7u

enum plock_mode {
	PLOCK_MODE_DIRECT = 0,
	PLOCK_MODE_GROUP = 1,
};

/* Who has said it; a later one in this list beats an earlier one. */
enum plock_source {
	PLOCK_BUILT_IN,
	PLOCK_GFS_CONTROLD,
	PLOCK_DLM,
	PLOCK_MOUNT_OPTION,
};

struct plock_settings {
	uint32_t value[PLOCKSET_COUNT];
	enum plock_source from[PLOCKSET_COUNT];
};

struct plock_setting_info {
	const char *name;
	const char *unit;
	uint32_t built_in;
	uint32_t min, max;
	const char *words; /* of values that are no numbers: "a or b" */
	bool agreed;	   /* all members of a volume must say the same */
	bool tunable;	   /* can be changed while mounted */
};

extern const struct plock_setting_info plock_setting_infos[PLOCKSET_COUNT];

void plock_settings_init(struct plock_settings *set);

/* False: there is no setting of this name (len bytes). */
bool plock_setting_find(const char *name, size_t len, enum plock_setting *out);

/*
 * Take this value unless something stronger has been said. -EINVAL: it is none,
 * with what would be one in expected ("a number from 0 to 1").
 */
int plock_setting_parse(struct plock_settings *set, enum plock_setting which,
			const char *text, enum plock_source from,
			char *expected, size_t expected_len);

/* As it would be written: "0", "direct". */
const char *plock_setting_text(enum plock_setting which, uint32_t value,
			       char buf[16]);

/* Of the engine: what can be changed, and what cannot. */
struct plock_tuning plock_settings_tuning(const struct plock_settings *set);

#endif
