/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fuzz_clusterconf.c - any bytes as a cluster.conf.
 *
 * What is taken is in range. What is not has a sentence with the file's name
 * and a line, and has changed nothing.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/clusterconf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void note(void *arg, const char *sentence)
{
	must(!strncmp(sentence, "f:", 2));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct plock_settings set, before;
	char why[512] = "";
	int line, err;

	plock_settings_init(&set);
	before = set;
	err = clusterconf_parse((const char *)data, size, "f", &set, note, NULL,
				why, sizeof(why));
	if (err) {
		must(err == -EINVAL);
		must(sscanf(why, "f:%d: ", &line) == 1 && line >= 1);
		must(!memcmp(&set, &before, sizeof(set)));
		return 0;
	}
	for (unsigned i = 0; i < PLOCKSET_COUNT; i++)
		must(set.value[i] >= plock_setting_infos[i].min &&
		     set.value[i] <= plock_setting_infos[i].max &&
		     set.from[i] < PLOCK_MOUNT_OPTION);
	return 0;
}
