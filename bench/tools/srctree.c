/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * srctree.c - srctree [-n FILES] [-s SEED]: a source tree, as a tar archive on
 * standard output.
 *
 * The same arguments give the same bytes on every machine, so a benchmark
 * needs no network. Sizes and depths are like those of a kernel's source tree:
 * half of the files are below 4 KiB, one in a hundred is above 110 KiB, the
 * mean is about 11 KB, and a directory has about 15 files. Directories come
 * before what is in them, and each one's files in one go, as tar writes
 * them.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/prng.h"

#define FILES_PER_DIR 15u
#define DEPTH_MAX 6u
#define DIRS_AT_TOP 20u
#define PATH_LEN_MAX 99u /* of a ustar header without a prefix */
#define TEXT_BYTES (1u << 20)
#define TAR_BLOCK 512u

/* Sizes that 0, 10, ... 90 % of files stay below, then 95, 99 and 100 %. */
static const struct {
	unsigned permille;
	unsigned bytes;
} sizes[] = {
	{ 0, 40 },	  { 100, 260 },	  { 200, 640 },	  { 300, 1100 },
	{ 400, 1800 },	  { 500, 2900 },  { 600, 4500 },  { 700, 7000 },
	{ 800, 11500 },	  { 900, 21500 }, { 950, 40000 }, { 990, 110000 },
	{ 1000, 600000 },
};

static const char *const words[] = {
	"struct", "return", "static", "int",	  "lock",  "queue", "device",
	"if",	  "else",   "while",  "buffer",	  "state", "node",  "register",
	"page",	  "inode",  "flags",  "unsigned", "irq",   "probe", "driver",
};

struct dir {
	char path[PATH_LEN_MAX + 1];
	unsigned depth;
	unsigned files;
};

struct maker {
	struct ug_prng prng;
	char *text; /* what files are cut from */
	struct dir *dirs;
	unsigned dir_count;
	unsigned serial; /* of names */
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void put(const void *bytes, size_t len)
{
	if (fwrite(bytes, 1, len, stdout) != len)
		die("srctree: standard output");
}

static const char *random_word(struct maker *m)
{
	return words[ug_prng_below(&m->prng, UG_ARRAY_SIZE(words))];
}

static void make_text(struct maker *m)
{
	size_t used = 0;

	m->text = malloc(TEXT_BYTES);
	if (!m->text)
		die("srctree");
	while (used < TEXT_BYTES - 32)
		used += (size_t)snprintf(
			m->text + used, 32, "%s%s", random_word(m),
			ug_prng_below(&m->prng, 8) ? " " : ";\n\t");
	memset(m->text + used, '\n', TEXT_BYTES - used);
}

static unsigned random_size(struct maker *m)
{
	unsigned at = (unsigned)ug_prng_below(&m->prng, 1000);
	unsigned i = 0, low, span;

	while (at >= sizes[i + 1].permille)
		i++;
	low = sizes[i].bytes;
	span = sizes[i + 1].bytes - low;
	return low + (unsigned)ug_prng_below(&m->prng, span);
}

/* A numeric field of a header: octal digits, and a zero byte at its end. */
static void put_octal(char *field, size_t len, unsigned value)
{
	snprintf(field, len, "%0*o", (int)len - 1, value);
}

static void put_header(const char *path, bool is_dir, unsigned size)
{
	unsigned char block[TAR_BLOCK] = { 0 };
	char *h = (char *)block;
	unsigned sum = 0;

	memcpy(h, path, strlen(path));
	put_octal(h + 100, 8, is_dir ? 0755 : 0644);
	put_octal(h + 108, 8, 0); /* uid, gid */
	put_octal(h + 116, 8, 0);
	put_octal(h + 124, 12, size);
	put_octal(h + 136, 12, 1000000000);
	h[156] = is_dir ? '5' : '0';
	memcpy(h + 257, "ustar\00000", 8);
	/* The checksum is of a header with blanks in its place. */
	memset(h + 148, ' ', 8);
	for (unsigned i = 0; i < TAR_BLOCK; i++)
		sum += block[i];
	put_octal(h + 148, 7, sum);
	put(block, sizeof(block));
}

static void put_file(struct maker *m, const struct dir *dir)
{
	static const char zeros[TAR_BLOCK];
	static const char *const ends[] = { "c", "c", "c", "h", "h", "txt" };
	unsigned size = random_size(m);
	char path[PATH_LEN_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s_%u.%s", dir->path, random_word(m),
		 m->serial++,
		 ends[ug_prng_below(&m->prng, UG_ARRAY_SIZE(ends))]);
	put_header(path, false, size);
	put(m->text + ug_prng_below(&m->prng, TEXT_BYTES - size), size);
	put(zeros, UG_ALIGN_UP(size, TAR_BLOCK) - size);
}

/* Below a random earlier one, the first few at the top. */
static void make_dir(struct maker *m, struct dir *dir)
{
	const struct dir *parent = &m->dirs[0];

	if (m->dir_count > DIRS_AT_TOP)
		parent = &m->dirs[ug_prng_below(&m->prng, m->dir_count)];
	if (parent->depth >= DEPTH_MAX)
		parent = &m->dirs[0];
	snprintf(dir->path, sizeof(dir->path), "%.70s/%s%u", parent->path,
		 random_word(m), m->serial++);
	dir->depth = parent->depth + 1;
	dir->files = 0;
	m->dir_count++;
}

static void make_dirs(struct maker *m, unsigned files)
{
	unsigned count = UG_DIV_UP(files, FILES_PER_DIR) + 1;

	m->dirs = calloc(count, sizeof(*m->dirs));
	if (!m->dirs)
		die("srctree");
	strcpy(m->dirs[0].path, "tree");
	for (m->dir_count = 1; m->dir_count < count;)
		make_dir(m, &m->dirs[m->dir_count]);
	/* The top directory gets none: the cost per file is of the others. */
	for (unsigned i = 0; i < files; i++)
		m->dirs[1 + ug_prng_below(&m->prng, count - 1)].files++;
}

static void put_tree(struct maker *m)
{
	static const char zeros[2 * TAR_BLOCK];

	for (unsigned i = 0; i < m->dir_count; i++) {
		put_header(m->dirs[i].path, true, 0);
		for (unsigned k = 0; k < m->dirs[i].files; k++)
			put_file(m, &m->dirs[i]);
	}
	put(zeros, sizeof(zeros));
	if (fflush(stdout))
		die("srctree: standard output");
	fprintf(stderr, "%u directories\n", m->dir_count);
}

int main(int argc, char **argv)
{
	struct maker m = { 0 };
	unsigned files = 17000;
	uint64_t seed = 1;
	int c;

	while ((c = getopt(argc, argv, "n:s:")) != -1) {
		if (c == 'n') {
			files = (unsigned)strtoul(optarg, NULL, 10);
		} else if (c == 's') {
			seed = strtoull(optarg, NULL, 10);
		} else {
			fputs("usage: srctree [-n FILES] [-s SEED]\n", stderr);
			return 2;
		}
	}
	if (!files || files > 10000000)
		return 2;
	ug_prng_seed(&m.prng, seed);
	make_text(&m);
	make_dirs(&m, files);
	put_tree(&m);
	free(m.dirs);
	free(m.text);
	return 0;
}
