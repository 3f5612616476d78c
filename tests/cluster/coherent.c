/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * coherent.c - what one node has done the next system call on another sees.
 *
 *	coherent SEED STEPS DIR DIR...
 *
 * Each DIR is the mount of one volume on another node. Random system calls on a
 * few names, each through a random DIR, one after the other; every result is
 * compared with a model in memory, and after each the other nodes look: by
 *name, through descriptors of long standing, through mappings, in listings.
 *
 * Descriptors: on each node and for each file one that reads (cached by the
 * kernel when it may), one that writes, and a shared mapping of the latter's
 * first pages. They are opened, closed and mapped anew at random.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NODES_MAX 8
#define NAMES 6
#define FILES 64
#define SIZE_MAX_BYTES (20 * 4096)
#define MAP_BYTES (8 * 4096)
#define NONE (-1)

/* What is known of an inode. */
struct file {
	unsigned links; /* names that it has */
	mode_t mode;	/* type and permissions */
	size_t size;
	char target[64]; /* of a symlink */
	unsigned char data[SIZE_MAX_BYTES];
};

/* What a node has of a name's inode. */
struct handle {
	int file; /* NONE: closed */
	int fd;
	int wfd;
	unsigned char *map; /* of wfd, NULL: none */
	size_t map_size;    /* of the file, when it was mapped */
};

static struct file files[FILES];
static int names[2][NAMES]; /* two directories: which file; NONE */
static struct handle handles[NODES_MAX][2];
static char *const *roots;
static int nodes;
static uint64_t state;
static unsigned long step_no;
static char step_text[256];

static uint32_t rnd(uint32_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((state >> 33) % below);
}

static void die(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "coherent: step %lu, %s: ", step_no, step_text);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, " (errno %s)\n", strerrorname_np(errno));
	exit(1);
}

static void say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(step_text, sizeof(step_text), fmt, ap);
	va_end(ap);
}

static const char *path_of(int node, int dir, int name)
{
	static char text[4][512];
	static unsigned turn;
	char *to = text[turn++ % 4];

	snprintf(to, sizeof(text[0]), "%s/d%d/n%d", roots[node], dir, name);
	return to;
}

static int new_file(mode_t mode)
{
	for (int i = 0; i < FILES; i++) {
		bool open = false;

		for (int n = 0; n < nodes; n++)
			for (int h = 0; h < 2; h++)
				open |= handles[n][h].file == i;
		if (files[i].links || open)
			continue;
		memset(&files[i], 0, sizeof(files[i]));
		files[i].links = 1;
		files[i].mode = mode;
		return i;
	}
	die("too many files");
	return NONE;
}

/* A result must be what the model says: 0, or the error. */
static void expect(int got, int want)
{
	int err = got < 0 ? errno : 0;

	if (err != want)
		die("got %s, expected %s", err ? strerrorname_np(err) : "done",
		    want ? strerrorname_np(want) : "done");
}

/* ---- looking ---- */

static void check_stat(const struct stat *st, const struct file *f,
		       const char *how)
{
	if (st->st_mode != f->mode)
		die("%s: mode %o, expected %o", how, st->st_mode, f->mode);
	if (st->st_nlink != f->links)
		die("%s: %lu links, expected %u", how,
		    (unsigned long)st->st_nlink, f->links);
	if (S_ISREG(f->mode) && (size_t)st->st_size != f->size)
		die("%s: size %lld, expected %zu", how, (long long)st->st_size,
		    f->size);
}

static void look_at_bytes(int fd, const struct file *f, const char *how)
{
	static unsigned char buf[SIZE_MAX_BYTES + 4096];
	size_t from = rnd(3) ? 0 : rnd((uint32_t)f->size + 1);
	ssize_t n = pread(fd, buf, sizeof(buf), (off_t)from);

	if (n != (ssize_t)(f->size - from))
		die("%s: read %zd bytes at %zu, expected %zu", how, n, from,
		    f->size - from);
	for (size_t i = 0; i < (size_t)n; i++)
		if (buf[i] != f->data[from + i])
			die("%s: byte %zu is %u, expected %u", how, from + i,
			    buf[i], f->data[from + i]);
}

static void look_by_name(int node, int dir, int name)
{
	const char *path = path_of(node, dir, name);
	int i = names[dir][name];
	char target[64] = "";
	struct stat st;

	expect(lstat(path, &st), i == NONE ? ENOENT : 0);
	if (i == NONE)
		return;
	check_stat(&st, &files[i], "by name");
	if (S_ISLNK(files[i].mode)) {
		if (readlink(path, target, sizeof(target) - 1) < 0 ||
		    strcmp(target, files[i].target))
			die("target \"%s\", expected \"%s\"", target,
			    files[i].target);
	} else if (S_ISREG(files[i].mode)) {
		int fd = open(path, O_RDONLY);

		expect(fd, 0);
		look_at_bytes(fd, &files[i], "fresh descriptor");
		close(fd);
	}
}

static void look_at_map(const struct handle *h)
{
	const struct file *f = &files[h->file];
	volatile unsigned char *map = h->map;
	/* What lies behind the end, or was not there, is not looked at. */
	size_t len = f->size < h->map_size ? f->size : h->map_size;

	if (len > MAP_BYTES)
		len = MAP_BYTES;
	for (size_t i = 0; i < len; i++)
		if (map[i] != f->data[i])
			die("mapping: byte %zu is %u, expected %u", i, map[i],
			    f->data[i]);
}

static void look_through(int node, int which)
{
	struct handle *h = &handles[node][which];
	struct stat st;

	if (h->file == NONE)
		return;
	expect(fstat(h->fd, &st), 0);
	check_stat(&st, &files[h->file], "by descriptor");
	look_at_bytes(h->fd, &files[h->file], "old descriptor");
	if (!rnd(3))
		look_at_bytes(h->wfd, &files[h->file], "old writer");
	if (h->map)
		look_at_map(h);
}

static void list_dir(int node, int dir)
{
	bool found[NAMES] = { false };
	const struct dirent *de;
	char path[512];
	DIR *d;

	snprintf(path, sizeof(path), "%s/d%d", roots[node], dir);
	d = opendir(path);
	if (!d)
		die("opendir");
	while ((de = readdir(d))) {
		if (de->d_name[0] == '.')
			continue;
		if (de->d_name[0] != 'n' || de->d_name[1] - '0' >= NAMES)
			die("strange name %s", de->d_name);
		found[de->d_name[1] - '0'] = true;
	}
	closedir(d);
	for (int n = 0; n < NAMES; n++)
		if (found[n] != (names[dir][n] != NONE))
			die("listing: n%d is %s", n,
			    found[n] ? "there" : "not there");
}

static void look(int node)
{
	for (int h = 0; h < 2; h++)
		look_through(node, h);
	for (unsigned i = rnd(3); i > 0; i--)
		look_by_name(node, (int)rnd(2), (int)rnd(NAMES));
	if (!rnd(4))
		list_dir(node, (int)rnd(2));
}

/* ---- names ---- */

static void do_create(int node, int dir, int name)
{
	bool excl = rnd(2);
	int i = names[dir][name];
	int fd, want = 0;

	say("create node %d d%d/n%d%s", node, dir, name, excl ? " excl" : "");
	if (i != NONE && excl)
		want = EEXIST;
	else if (i != NONE && S_ISDIR(files[i].mode))
		want = EISDIR;
	else if (i != NONE && S_ISLNK(files[i].mode))
		return;
	fd = open(path_of(node, dir, name),
		  O_RDWR | O_CREAT | (excl ? O_EXCL : 0), 0644);
	expect(fd, want);
	if (fd >= 0)
		close(fd);
	if (i == NONE)
		names[dir][name] = new_file(S_IFREG | 0644);
}

static void do_mkdir(int node, int dir, int name)
{
	int i = names[dir][name];

	say("mkdir node %d d%d/n%d", node, dir, name);
	expect(mkdir(path_of(node, dir, name), 0755), i == NONE ? 0 : EEXIST);
	if (i != NONE)
		return;
	i = names[dir][name] = new_file(S_IFDIR | 0755);
	files[i].links = 2;
}

static void do_symlink(int node, int dir, int name)
{
	char target[64];
	int i = names[dir][name];

	say("symlink node %d d%d/n%d", node, dir, name);
	snprintf(target, sizeof(target), "to/%u", rnd(100000));
	expect(symlink(target, path_of(node, dir, name)),
	       i == NONE ? 0 : EEXIST);
	if (i != NONE)
		return;
	i = names[dir][name] = new_file(S_IFLNK | 0777);
	strcpy(files[i].target, target);
}

static void drop_name(int dir, int name)
{
	struct file *f = &files[names[dir][name]];

	f->links = S_ISDIR(f->mode) ? 0 : f->links - 1;
	names[dir][name] = NONE;
}

static void do_unlink(int node, int dir, int name)
{
	int i = names[dir][name];
	bool is_dir = i != NONE && S_ISDIR(files[i].mode);
	const char *path = path_of(node, dir, name);

	say("remove node %d d%d/n%d", node, dir, name);
	expect(is_dir ? rmdir(path) : unlink(path), i == NONE ? ENOENT : 0);
	if (i != NONE)
		drop_name(dir, name);
}

static void do_link(int node, int dir, int name)
{
	int dir2 = (int)rnd(2), name2 = (int)rnd(NAMES);
	int i = names[dir][name], want = 0;

	say("link node %d d%d/n%d d%d/n%d", node, dir, name, dir2, name2);
	if (i == NONE)
		want = ENOENT;
	else if (names[dir2][name2] != NONE)
		want = EEXIST;
	else if (S_ISDIR(files[i].mode))
		want = EPERM;
	/* Which of two errors is told first is not our business. */
	if (i != NONE && names[dir2][name2] != NONE && S_ISDIR(files[i].mode))
		return;
	expect(link(path_of(node, dir, name), path_of(node, dir2, name2)),
	       want);
	if (want)
		return;
	names[dir2][name2] = i;
	files[i].links++;
}

static void do_rename(int node, int dir, int name)
{
	int dir2 = (int)rnd(2), name2 = (int)rnd(NAMES);
	int i = names[dir][name], k = names[dir2][name2], want = 0;
	struct stat st;

	say("rename node %d d%d/n%d d%d/n%d", node, dir, name, dir2, name2);
	/*
	 * A directory that another node has moved must not be met in rename()
	 * first: Linux cannot move its name then, and says ESTALE
	 * (docs/spec/fuse.md 15.4).
	 */
	lstat(path_of(node, dir, name), &st);
	lstat(path_of(node, dir2, name2), &st);
	if (i == NONE)
		want = ENOENT;
	else if (i == k)
		want = 0;
	else if (k != NONE && S_ISDIR(files[k].mode) && !S_ISDIR(files[i].mode))
		want = EISDIR;
	else if (k != NONE && !S_ISDIR(files[k].mode) && S_ISDIR(files[i].mode))
		want = ENOTDIR;
	expect(rename(path_of(node, dir, name), path_of(node, dir2, name2)),
	       want);
	if (want || i == k)
		return;
	if (k != NONE)
		drop_name(dir2, name2);
	names[dir][name] = NONE;
	names[dir2][name2] = i;
}

static void do_chmod(int node, int dir, int name)
{
	int i = names[dir][name];
	mode_t mode = rnd(2) ? 0755 : 0640 + rnd(8);

	say("chmod node %d d%d/n%d", node, dir, name);
	if (i != NONE && S_ISLNK(files[i].mode))
		return;
	expect(chmod(path_of(node, dir, name), mode), i == NONE ? ENOENT : 0);
	if (i != NONE)
		files[i].mode = (files[i].mode & S_IFMT) | mode;
}

/* ---- contents ---- */

static void put_bytes(struct file *f, size_t at, const unsigned char *bytes,
		      size_t len)
{
	memcpy(f->data + at, bytes, len);
	if (at + len > f->size)
		f->size = at + len;
}

static void cut(struct file *f, size_t size)
{
	if (size < f->size)
		memset(f->data + size, 0, f->size - size);
	f->size = size;
}

static void do_truncate(int node, int dir, int name)
{
	size_t size = rnd(SIZE_MAX_BYTES);
	int i = names[dir][name];

	say("truncate node %d d%d/n%d %zu", node, dir, name, size);
	if (i == NONE || !S_ISREG(files[i].mode))
		return;
	expect(truncate(path_of(node, dir, name), (off_t)size), 0);
	cut(&files[i], size);
}

static void do_append(int node, int dir, int name)
{
	unsigned char bytes[3000];
	size_t len = 1 + rnd(sizeof(bytes));
	int i = names[dir][name], fd;

	say("append node %d d%d/n%d %zu", node, dir, name, len);
	if (i == NONE || !S_ISREG(files[i].mode) ||
	    files[i].size + len > SIZE_MAX_BYTES)
		return;
	memset(bytes, (int)rnd(256), len);
	fd = open(path_of(node, dir, name), O_WRONLY | O_APPEND);
	expect(fd, 0);
	if (write(fd, bytes, len) != (ssize_t)len)
		die("append");
	close(fd);
	put_bytes(&files[i], files[i].size, bytes, len);
}

static void close_handle(struct handle *h)
{
	if (h->file == NONE)
		return;
	if (h->map)
		munmap(h->map, MAP_BYTES);
	close(h->fd);
	close(h->wfd);
	h->map = NULL;
	h->file = NONE;
}

static void do_open(int node, int dir, int name)
{
	struct handle *h = &handles[node][rnd(2)];
	int i = names[dir][name];

	say("open node %d d%d/n%d", node, dir, name);
	if (i == NONE || !S_ISREG(files[i].mode))
		return;
	close_handle(h);
	/* The reader first: without writers the kernel caches for it. */
	h->fd = open(path_of(node, dir, name), O_RDONLY);
	expect(h->fd, 0);
	if (rnd(2))
		look_at_bytes(h->fd, &files[i], "new descriptor");
	h->wfd = open(path_of(node, dir, name), O_RDWR);
	expect(h->wfd, 0);
	h->file = i;
}

static void do_map(int node)
{
	struct handle *h = &handles[node][rnd(2)];
	void *map;

	say("map node %d", node);
	if (h->file == NONE)
		return;
	if (h->map)
		munmap(h->map, MAP_BYTES);
	map = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, h->wfd,
		   0);
	if (map == MAP_FAILED)
		die("mmap");
	h->map = map;
	h->map_size = files[h->file].size;
}

static void do_store(int node)
{
	struct handle *h = &handles[node][rnd(2)];
	struct stat st;
	size_t len, at;
	int value = (int)rnd(256);

	say("store node %d", node);
	if (h->file == NONE || !h->map)
		return;
	/* Growth under a mapping is seen after a look at the size only. */
	expect(fstat(h->wfd, &st), 0);
	len = files[h->file].size < h->map_size ? files[h->file].size
						: h->map_size;
	if (len > MAP_BYTES)
		len = MAP_BYTES;
	if (!len)
		return;
	at = rnd((uint32_t)len);
	len = 1 + rnd((uint32_t)(len - at));
	memset(h->map + at, value, len);
	memset(files[h->file].data + at, value, len);
}

static void do_write(int node)
{
	struct handle *h = &handles[node][rnd(2)];
	unsigned char bytes[9000];
	size_t at = rnd(SIZE_MAX_BYTES - sizeof(bytes));
	size_t len = 1 + rnd(sizeof(bytes));

	say("write node %d at %zu, %zu", node, at, len);
	if (h->file == NONE)
		return;
	memset(bytes, (int)rnd(256), len);
	if (pwrite(h->wfd, bytes, len, (off_t)at) != (ssize_t)len)
		die("write");
	put_bytes(&files[h->file], at, bytes, len);
}

static void do_ftruncate(int node)
{
	struct handle *h = &handles[node][rnd(2)];
	size_t size = rnd(SIZE_MAX_BYTES);

	say("ftruncate node %d %zu", node, size);
	if (h->file == NONE)
		return;
	expect(ftruncate(h->wfd, (off_t)size), 0);
	cut(&files[h->file], size);
}

static void do_sync(int node)
{
	struct handle *h = &handles[node][rnd(2)];

	say("sync node %d", node);
	if (h->file == NONE)
		return;
	if (h->map && rnd(2))
		expect(msync(h->map, MAP_BYTES, MS_SYNC), 0);
	else
		expect(fsync(h->wfd), 0);
}

static void step(int node)
{
	int dir = (int)rnd(2), name = (int)rnd(NAMES);
	uint32_t which = rnd(100);

	if (which < 10)
		do_create(node, dir, name);
	else if (which < 13)
		do_mkdir(node, dir, name);
	else if (which < 16)
		do_symlink(node, dir, name);
	else if (which < 20)
		do_unlink(node, dir, name);
	else if (which < 24)
		do_link(node, dir, name);
	else if (which < 30)
		do_rename(node, dir, name);
	else if (which < 35)
		do_chmod(node, dir, name);
	else if (which < 39)
		do_truncate(node, dir, name);
	else if (which < 46)
		do_append(node, dir, name);
	else if (which < 56)
		do_open(node, dir, name);
	else if (which < 64)
		do_map(node);
	else if (which < 80)
		do_store(node);
	else if (which < 94)
		do_write(node);
	else if (which < 97)
		do_ftruncate(node);
	else
		do_sync(node);
}

static void begin(void)
{
	char path[512];

	memset(names, NONE, sizeof(names));
	for (int n = 0; n < NODES_MAX; n++)
		for (int h = 0; h < 2; h++)
			handles[n][h].file = NONE;
	for (int d = 0; d < 2; d++) {
		snprintf(path, sizeof(path), "%s/d%d", roots[0], d);
		if (mkdir(path, 0755))
			die("mkdir");
	}
}

int main(int argc, char **argv)
{
	unsigned long steps;

	if (argc < 4 || argc > 3 + NODES_MAX) {
		fprintf(stderr, "usage: coherent SEED STEPS DIR DIR...\n");
		return 2;
	}
	state = strtoull(argv[1], NULL, 0);
	steps = strtoul(argv[2], NULL, 0);
	roots = argv + 3;
	nodes = argc - 3;
	umask(0);
	begin();
	for (step_no = 1; step_no <= steps; step_no++) {
		int node = (int)rnd((uint32_t)nodes);

		step(node);
		look((int)rnd((uint32_t)nodes));
		look((node + 1 +
		      (int)rnd((uint32_t)(nodes > 1 ? nodes - 1 : 1))) %
		     nodes);
	}
	for (int n = 0; n < nodes; n++)
		for (int h = 0; h < 2; h++)
			close_handle(&handles[n][h]);
	return 0;
}
