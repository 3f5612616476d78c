/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlm_options.c - see dlm_options.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "daemon/dlm_options.h"

enum kind {
	KIND_TEXT,
	KIND_SECONDS, /* milliseconds in memory */
	KIND_WHOLE,   /* seconds in memory */
	KIND_PORTS,
	KIND_FLAG,
	KIND_ACTION,
};

struct option_info {
	const char *name;
	enum kind kind;
	size_t offset;
	const char *expected;
};

#define CONFIG(field) offsetof(struct dlm_options, config.field)
#define SUPERVISE(field) offsetof(struct dlm_options, supervise.field)

static const struct option_info options[] = {
	{ "key_file", KIND_TEXT, CONFIG(key_file), "the path of a file" },
	{ "ports", KIND_PORTS, 0, "FIRST-LAST from 1 to 65535" },
	{ "member_timeout", KIND_SECONDS, CONFIG(member_timeout_ms),
	  "seconds from 0.1 to 3600" },
	{ "toss", KIND_WHOLE, CONFIG(toss_sec), "seconds from 1 to 3600" },
	{ "trace_all", KIND_FLAG, CONFIG(trace_all), "no value" },
	{ "fence", KIND_TEXT, SUPERVISE(fence), "none, manual or a command" },
	{ "fence_action", KIND_ACTION, SUPERVISE(fence_action),
	  "off or reboot" },
	{ "kill_timeout", KIND_SECONDS, SUPERVISE(kill_timeout_ms),
	  "seconds from 0.1 to 3600" },
	{ "fence_delay", KIND_SECONDS, SUPERVISE(fence_delay_ms),
	  "seconds from 0.1 to 3600" },
	{ "fence_timeout", KIND_SECONDS, SUPERVISE(fence_timeout_ms),
	  "seconds from 0.1 to 3600" },
};

bool dlm_parse_seconds(const char *text, double min, double max, uint32_t *ms)
{
	char *end;
	double value;

	/* Not what strtod() takes besides: blanks, hex, infinity. */
	if (!text[0] || text[strspn(text, "0123456789.")])
		return false;
	value = strtod(text, &end);
	if (*end || !(value >= min && value <= max))
		return false;
	*ms = (uint32_t)(value * 1000 + 0.5);
	return true;
}

static bool parse_number(const char *text, unsigned max, unsigned *value)
{
	char *end;
	unsigned long n;

	if (!text[0] || text[strspn(text, "0123456789")])
		return false;
	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno || *end || n < 1 || n > max)
		return false;
	*value = (unsigned)n;
	return true;
}

/* "21064" or "21064-21070". */
static bool parse_ports(struct dlm_options *opt, char *text)
{
	char *dash = strchr(text, '-');
	unsigned first_port, last_port;
	bool good;

	if (dash)
		*dash = '\0';
	good = parse_number(text, 65535, &first_port) &&
	       parse_number(dash ? dash + 1 : text, 65535, &last_port) &&
	       first_port <= last_port;
	/* For the sentence. */
	if (dash)
		*dash = '-';
	if (!good)
		return false;
	opt->config.port_first = (uint16_t)first_port;
	opt->config.port_last = (uint16_t)last_port;
	return true;
}

/* 0, -EINVAL: not as expected, -ENOMEM. */
static int set(struct dlm_options *opt, const struct option_info *info,
	       char *value)
{
	char *field = (char *)opt + info->offset, *copy;
	unsigned n;

	if ((info->kind == KIND_FLAG) != (value == NULL))
		return -EINVAL;
	switch (info->kind) {
	case KIND_FLAG:
		*(bool *)field = true;
		return 0;
	case KIND_SECONDS:
		return dlm_parse_seconds(value, 0.1, 3600, (uint32_t *)field)
			       ? 0
			       : -EINVAL;
	case KIND_WHOLE:
		if (!parse_number(value, 3600, &n))
			return -EINVAL;
		*(uint32_t *)field = n;
		return 0;
	case KIND_PORTS:
		return parse_ports(opt, value) ? 0 : -EINVAL;
	case KIND_ACTION:
		if (strcmp(value, "off") != 0 && strcmp(value, "reboot") != 0)
			return -EINVAL;
		break;
	case KIND_TEXT:
		if (!value[0])
			return -EINVAL;
		break;
	}
	copy = strdup(value);
	if (!copy)
		return -ENOMEM;
	free(*(char **)field);
	*(char **)field = copy;
	return 0;
}

static const struct option_info *find(const char *name, size_t len)
{
	for (size_t i = 0; i < UG_ARRAY_SIZE(options); i++)
		if (strlen(options[i].name) == len &&
		    !strncmp(options[i].name, name, len))
			return &options[i];
	return NULL;
}

/* One option at the beginning of text; *next: what follows it. */
static int parse_one(struct dlm_options *opt, char *text, char **next,
		     char *why, size_t why_len)
{
	size_t name_len = strcspn(text, "=,");
	const struct option_info *info = find(text, name_len);
	char *value = text[name_len] == '=' ? text + name_len + 1 : NULL;
	char *end = text + strcspn(text, ",");
	int err;

	if (!info) {
		snprintf(why, why_len, "%.*s: unknown option", (int)name_len,
			 text);
		return -EINVAL;
	}
	if (info->offset == SUPERVISE(fence) && value)
		end = text + strlen(text);
	*next = *end ? end + 1 : end;
	*end = '\0';
	err = set(opt, info, value);
	if (err == -EINVAL)
		snprintf(why, why_len, "%s: expected %s", text, info->expected);
	else if (err)
		snprintf(why, why_len, "out of memory");
	return err;
}

int dlm_options_parse(struct dlm_options *opt, const char *text, char *why,
		      size_t why_len)
{
	ug_autofree char *copy = strdup(text);
	int err = 0;

	if (!copy) {
		snprintf(why, why_len, "out of memory");
		return -ENOMEM;
	}
	for (char *c = copy; !err && *c;)
		err = parse_one(opt, c, &c, why, why_len);
	return err;
}

void dlm_options_free(struct dlm_options *opt)
{
	for (size_t i = 0; i < UG_ARRAY_SIZE(options); i++)
		if (options[i].kind == KIND_TEXT ||
		    options[i].kind == KIND_ACTION)
			free(*(char **)((char *)opt + options[i].offset));
	memset(opt, 0, sizeof(*opt));
}

static const char *const modes[] = { "NL", "CR", "CW", "PR", "PW", "EX" };

enum ugdlm_mode dlm_parse_mode(const char *text)
{
	for (size_t i = 0; i < UG_ARRAY_SIZE(modes); i++)
		if (!strcasecmp(modes[i], text))
			return (enum ugdlm_mode)i;
	return UGDLM_IV;
}

const char *dlm_mode_name(enum ugdlm_mode mode)
{
	return mode >= UGDLM_NL && mode <= UGDLM_EX ? modes[mode] : "none";
}
