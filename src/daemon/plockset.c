/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plockset.c - settings of application locks.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/plockset.h"

#define DAY_MS 86400000u
#define NS_PER_MS 1000000ull

const struct plock_setting_info plock_setting_infos[PLOCKSET_COUNT] = {
	[PLOCKSET_OWNERSHIP] = { .name = "plock_ownership",
				 .unit = "",
				 .built_in = 1,
				 .max = 1,
				 .agreed = true },
	[PLOCKSET_RATE_LIMIT] = { .name = "plock_rate_limit",
				  .unit = "per second",
				  .max = PLOCK_RATE_MAX,
				  .tunable = true },
	[PLOCKSET_DROP_TIME] = { .name = "drop_resources_time",
				 .unit = "ms",
				 .max = DAY_MS,
				 .tunable = true },
	[PLOCKSET_DROP_COUNT] = { .name = "drop_resources_count",
				  .unit = "files",
				  .built_in = 64,
				  .min = 1,
				  .max = 1000000,
				  .tunable = true },
	[PLOCKSET_DROP_AGE] = { .name = "drop_resources_age",
				.unit = "ms",
				.built_in = 10000,
				.min = 1,
				.max = DAY_MS,
				.tunable = true },
	[PLOCKSET_ENABLE] = { .name = "enable_plock",
			      .unit = "",
			      .built_in = 1,
			      .max = 1 },
	[PLOCKSET_MODE] = { .name = "plock_mode",
			    .unit = "",
			    .built_in = PLOCK_MODE_DIRECT,
			    .max = PLOCK_MODE_GROUP,
			    .words = "direct or group",
			    .agreed = true },
};

static const char *const mode_names[] = {
	[PLOCK_MODE_DIRECT] = "direct",
	[PLOCK_MODE_GROUP] = "group",
};

void plock_settings_init(struct plock_settings *set)
{
	for (unsigned i = 0; i < PLOCKSET_COUNT; i++) {
		set->value[i] = plock_setting_infos[i].built_in;
		set->from[i] = PLOCK_BUILT_IN;
	}
}

bool plock_setting_find(const char *name, size_t len, enum plock_setting *out)
{
	for (unsigned i = 0; i < PLOCKSET_COUNT; i++) {
		const char *known = plock_setting_infos[i].name;

		if (strlen(known) != len || memcmp(known, name, len))
			continue;
		*out = (enum plock_setting)i;
		return true;
	}
	return false;
}

static bool parse_word(const char *text, uint32_t *value)
{
	for (uint32_t i = 0; i <= PLOCK_MODE_GROUP; i++) {
		if (strcmp(text, mode_names[i]))
			continue;
		*value = i;
		return true;
	}
	return false;
}

/* Decimal digits and nothing else. */
static bool parse_number(const struct plock_setting_info *info,
			 const char *text, uint32_t *value)
{
	unsigned long long number;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno || *end || number < info->min || number > info->max)
		return false;
	*value = (uint32_t)number;
	return true;
}

int plock_setting_parse(struct plock_settings *set, enum plock_setting which,
			const char *text, enum plock_source from,
			char *expected, size_t expected_len)
{
	const struct plock_setting_info *info = &plock_setting_infos[which];
	uint32_t value;

	if (info->words && !parse_word(text, &value)) {
		snprintf(expected, expected_len, "%s", info->words);
		return -EINVAL;
	}
	if (!info->words && !parse_number(info, text, &value)) {
		snprintf(expected, expected_len, "a number from %u to %u",
			 info->min, info->max);
		return -EINVAL;
	}
	if (from < set->from[which])
		return 0;
	set->value[which] = value;
	set->from[which] = from;
	return 0;
}

const char *plock_setting_text(enum plock_setting which, uint32_t value,
			       char buf[16])
{
	if (which == PLOCKSET_MODE && value <= PLOCK_MODE_GROUP)
		return mode_names[value];
	snprintf(buf, 16, "%u", value);
	return buf;
}

struct plock_tuning plock_settings_tuning(const struct plock_settings *set)
{
	return (struct plock_tuning){
		.idle_ns = set->value[PLOCKSET_DROP_AGE] * NS_PER_MS,
		.drop_every_ns = set->value[PLOCKSET_DROP_TIME] * NS_PER_MS,
		.drop_count = set->value[PLOCKSET_DROP_COUNT],
		.rate_limit = set->value[PLOCKSET_RATE_LIMIT],
		.at_home = !set->value[PLOCKSET_OWNERSHIP],
	};
}
