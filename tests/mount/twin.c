/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * twin.c - the same random operations on names in two directories.
 *
 *   twin DIR REFERENCE SEED OPERATIONS
 *
 * REFERENCE lies on a file system that is trusted. Both must give the same
 * result or error to every call, and the same attributes; the script compares
 * the trees afterwards. A small set of names makes collisions frequent.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

#define PATH_LEN 600
#define NAMES 9
#define DEPTH_MAX 4

static uint64_t state;
static unsigned long step_no;

struct call {
	const char *name;
	char a[2][PATH_LEN], b[2][PATH_LEN]; /* per twin */
	mode_t mode;
	off_t size;
};

static uint32_t rnd(uint32_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((state >> 33) % below);
}

/* The same relative path below both roots. */
static void random_path(char path[2][PATH_LEN], char *const *argv)
{
	char rel[PATH_LEN / 2] = "";
	unsigned depth = 1 + rnd(DEPTH_MAX);

	for (unsigned i = 0; i < depth; i++) {
		size_t len = strlen(rel);
		unsigned name = rnd(NAMES);

		/* One of the names is as long as a name can be. */
		if (name == NAMES - 1 && i == depth - 1)
			snprintf(rel + len, sizeof(rel) - len, "/%0255d", 7);
		else
			snprintf(rel + len, sizeof(rel) - len, "/n%u", name);
	}
	for (int t = 0; t < 2; t++)
		snprintf(path[t], PATH_LEN, "%s%s", argv[1 + t], rel);
}

static int do_create(const struct call *c, int t)
{
	int fd = open(c->a[t], O_WRONLY | O_CREAT | O_EXCL, c->mode);
	int ret = 0;

	if (fd < 0)
		return -1;
	if (write(fd, c->a[0], strlen(c->a[0])) < 0 || ftruncate(fd, c->size))
		ret = -1;
	return close(fd) || ret ? -1 : 0;
}

static int do_mkdir(const struct call *c, int t)
{
	return mkdir(c->a[t], c->mode);
}

static int do_mknod(const struct call *c, int t)
{
	return mknod(c->a[t], S_IFIFO | c->mode, 0);
}

static int do_symlink(const struct call *c, int t)
{
	char target[4096];

	memset(target, 'x', sizeof(target));
	/* Below what a dinode's block has room for. */
	target[c->size % 3800 + 1] = '\0';
	return symlink(target, c->a[t]);
}

static int do_link(const struct call *c, int t)
{
	return link(c->a[t], c->b[t]);
}

static int do_unlink(const struct call *c, int t)
{
	return unlink(c->a[t]);
}

static int do_rmdir(const struct call *c, int t)
{
	return rmdir(c->a[t]);
}

static int do_rename(const struct call *c, int t)
{
	return rename(c->a[t], c->b[t]);
}

static int do_noreplace(const struct call *c, int t)
{
	return renameat2(AT_FDCWD, c->a[t], AT_FDCWD, c->b[t],
			 RENAME_NOREPLACE);
}

static int do_chmod(const struct call *c, int t)
{
	return chmod(c->a[t], c->mode);
}

static int do_chown(const struct call *c, int t)
{
	return lchown(c->a[t], (uid_t)c->size, (gid_t)c->mode);
}

static int do_truncate(const struct call *c, int t)
{
	struct stat st;

	/* Of a FIFO it would be an error with another name for each. */
	if (!lstat(c->a[t], &st) && !S_ISREG(st.st_mode))
		return 0;
	return truncate(c->a[t], c->size);
}

/* Not a failure of the call but of the twins: what stat says must agree. */
static int do_stat(const struct call *c, int t)
{
	static struct stat first;
	struct stat st;

	if (lstat(c->a[t], &st))
		return -1;
	if (t == 0) {
		first = st;
		return 0;
	}
	errno = ESTALE;
	return st.st_mode != first.st_mode || st.st_uid != first.st_uid ||
			       st.st_gid != first.st_gid ||
			       (!S_ISDIR(st.st_mode) &&
				(st.st_size != first.st_size ||
				 st.st_nlink != first.st_nlink))
		       ? -1
		       : 0;
}

static const struct {
	const char *name;
	int (*call)(const struct call *c, int t);
	unsigned weight;
} calls[] = {
	{ "create", do_create, 20 },	  { "mkdir", do_mkdir, 14 },
	{ "mknod", do_mknod, 3 },	  { "symlink", do_symlink, 5 },
	{ "link", do_link, 8 },		  { "unlink", do_unlink, 8 },
	{ "rmdir", do_rmdir, 6 },	  { "rename", do_rename, 16 },
	{ "noreplace", do_noreplace, 4 }, { "chmod", do_chmod, 4 },
	{ "chown", do_chown, 3 },	  { "truncate", do_truncate, 4 },
	{ "stat", do_stat, 5 },
};
#define CALLS (sizeof(calls) / sizeof(calls[0]))

static size_t random_call(void)
{
	unsigned total = 0, pick;
	size_t i;

	for (i = 0; i < CALLS; i++)
		total += calls[i].weight;
	pick = rnd(total);
	for (i = 0; pick >= calls[i].weight; i++)
		pick -= calls[i].weight;
	return i;
}

static void step(char *const *argv)
{
	size_t which = random_call();
	struct call c = { .mode = rnd(2) ? 0755 : 0600 };
	int err[2];

	random_path(c.a, argv);
	random_path(c.b, argv);
	c.size = rnd(3) ? rnd(20000) : rnd(200);
	for (int t = 0; t < 2; t++)
		err[t] = calls[which].call(&c, t) ? errno : 0;
	if (err[0] == err[1])
		return;
	fprintf(stderr, "twin: step %lu, %s %s %s: %s, reference %s\n", step_no,
		calls[which].name, c.a[0], c.b[0],
		err[0] ? strerrorname_np(err[0]) : "done",
		err[1] ? strerrorname_np(err[1]) : "done");
	exit(1);
}

int main(int argc, char **argv)
{
	unsigned long steps;

	if (argc != 5) {
		fprintf(stderr, "usage: twin DIR REFERENCE SEED OPERATIONS\n");
		return 2;
	}
	state = strtoull(argv[3], NULL, 0);
	steps = strtoul(argv[4], NULL, 0);
	umask(022);
	for (step_no = 1; step_no <= steps; step_no++)
		step(argv);
	return 0;
}
