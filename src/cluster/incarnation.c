/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * incarnation.c - what makes one process different from every other one.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "cluster/cluster.h"

static int read_line(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "re");
	char *got;

	if (!file)
		return -EIO;
	got = fgets(line, (int)size, file);
	fclose(file);
	return got ? 0 : -EIO;
}

static int read_boot_id(uint8_t *id)
{
	char line[64];
	unsigned digits = 0;

	if (read_line("/proc/sys/kernel/random/boot_id", line, sizeof(line)))
		return -EIO;
	for (const char *c = line; *c && *c != '\n'; c++) {
		char digit[2] = { *c, 0 };
		char *end;
		unsigned value;

		if (*c == '-')
			continue;
		value = (unsigned)strtoul(digit, &end, 16);
		if (*end || digits == 32)
			return -EIO;
		id[digits / 2] = (uint8_t)(id[digits / 2] << 4 | value);
		digits++;
	}
	return digits == 32 ? 0 : -EIO;
}

/* Field 22; the name before it is in brackets and may hold anything. */
static int read_start(pid_t pid, uint64_t *ticks)
{
	char path[32], line[1024], *at;
	unsigned long long value;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (read_line(path, line, sizeof(line)))
		return -EIO;
	at = strrchr(line, ')');
	if (!at || sscanf(at + 1,
			  " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u"
			  " %*u %*d %*d %*d %*d %*d %*d %llu",
			  &value) != 1)
		return -EIO;
	*ticks = value;
	return 0;
}

int incarnation_of(pid_t pid, struct incarnation *out)
{
	struct incarnation inc = { .pid = (uint32_t)pid };

	if (read_boot_id(inc.boot_id) || read_start(pid, &inc.start_ticks))
		return -EIO;
	*out = inc;
	return 0;
}

int incarnation_self(struct incarnation *out)
{
	return incarnation_of(getpid(), out);
}
