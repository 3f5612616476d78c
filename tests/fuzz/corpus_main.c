/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * corpus_main.c - a fuzz target run as a test: every file of a corpus folder,
 * whole, cut after each of its first bytes and then here and there, and with
 * single bytes changed. The same bytes on every run.
 *
 * Usage: fuzz_NAME FOLDER [CHANGES]. CHANGES: of single bytes, for each file;
 * fewer for targets that do much for each input, which then are not cut short
 * either. Exits 0, 1 if there is nothing to run; a finding ends it by a signal
 * or by a sanitizer.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"

#define INPUT_MAX (1u << 20)
#define CUTS_ALL 256u /* every length up to here */
#define CUTS_SOME 64u
#define CHANGES 2000u

static unsigned changes = CHANGES;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In memory of exactly this size, so that a sanitizer sees its end. */
static void run_exact(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static void run_variations(uint8_t *data, size_t size)
{
	struct ug_prng prng;

	ug_prng_seed(&prng, size);
	run_exact(data, size);
	for (size_t len = 0; changes == CHANGES && len < size && len < CUTS_ALL;
	     len++)
		run_exact(data, len);
	for (unsigned i = 0; changes == CHANGES && i < CUTS_SOME && size > 0;
	     i++)
		run_exact(data, ug_prng_below(&prng, size));
	for (unsigned i = 0; i < changes && size > 0; i++) {
		/* Headers are where the meaning is: half of the changes. */
		size_t near = size < 256 ? size : 256;
		size_t at = ug_prng_below(&prng, i % 2 ? near : size);
		uint8_t saved = data[at];

		data[at] = i % 4 < 2 ? (uint8_t)ug_prng_u64(&prng)
				     : (uint8_t) - (i & 4);
		run_exact(data, size);
		data[at] = saved;
	}
}

static int run_file(const char *folder, const char *name)
{
	static uint8_t data[INPUT_MAX];
	char path[4096];
	size_t size;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "rb");
	if (!file) {
		perror(path);
		return -1;
	}
	size = fread(data, 1, sizeof(data), file);
	fclose(file);
	run_variations(data, size);
	return 0;
}

int main(int argc, char **argv)
{
	struct dirent *entry;
	unsigned files = 0;
	DIR *dir;

	if (argc < 2 || argc > 3 || !(dir = opendir(argv[1]))) {
		fprintf(stderr, "usage: %s CORPUS_FOLDER [CHANGES]\n", argv[0]);
		return 1;
	}
	if (argc == 3)
		changes = (unsigned)strtoul(argv[2], NULL, 10);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		if (run_file(argv[1], entry->d_name)) {
			closedir(dir);
			return 1;
		}
		files++;
	}
	closedir(dir);
	printf("%u files of %s\n", files, argv[1]);
	return files ? 0 : 1;
}
