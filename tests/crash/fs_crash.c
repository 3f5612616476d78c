/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fs_crash.c - cut the power after every write of a busy file system, mount
 * again, and see that nothing that was synced is missing and nothing foreign
 * has appeared.
 *
 *   mkfs.gfs2 -> memory -> record layer -> fs_mount, random operations
 *   for chosen events n, with writes since the last flush kept, lost or torn:
 *       the disk as of n -> fs_mount (replay) -> look at every name
 *                        -> unmount -> image file -> fsck.gfs2 -n
 *
 * Each name has a history: "touched from event e on" and "durable with this
 * content at event e". At a cut, a name whose last durable entry is not
 * followed by a touch must be exactly that. For all others one thing holds: a
 * file carries its own number in each word it was given, so what it holds after
 * the crash is its own data or zeros, never another's. Its attribute is whole
 * in any case, one of those it was given, or missing.
 *
 *   fs_crash [--seed N] [--ops N] [--cuts N] [--fsck N] [--bsize N]
 *
 * Cuts are spread evenly over the events; every --fsck'th is checked by
 * fsck.gfs2 as well. The same seed gives the same operations.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/log.h"
#include "base/prng.h"
#include "block/block.h"
#include "block/record.h"
#include "fs/fs.h"

#define DIRS 4u
#define NAMES_PER_DIR 12u
#define NAMES (DIRS * NAMES_PER_DIR)
#define FILE_MAX (192u << 10)
#define IMAGE_BYTES (48ull << 20)

static unsigned bsize = 4096;
static uint64_t seed = 1;

static void ug_noreturn ug_printf(1, 2) die(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "fs_crash: seed %" PRIu64 ": ", seed);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

static void *must(void *p)
{
	if (!p)
		die("out of memory");
	return p;
}

/* ---- what should be there ---- */

struct content {
	bool exists;
	uint32_t len;
	uint8_t *data;
	/* Its attribute, 0: none; the bytes are made of both numbers. */
	uint32_t attr_len;
	uint32_t attr_salt;
};

struct entry {
	size_t event;
	bool durable;		/* else: touched */
	struct content content; /* of a durable entry */
};

struct name {
	struct content now;
	uint32_t file; /* number in the words of the file */
	struct entry *history;
	size_t count;
};

struct run {
	struct ug_prng prng;
	struct record *rec;
	struct blkdev *dev;
	struct fs *fs;
	unsigned wanted; /* background work asked for */
	struct name names[NAMES];
	uint32_t files;	    /* numbers given out */
	size_t first_event; /* the mount and the directories are behind it */
};

static struct content copy_of(const struct content *c)
{
	struct content d = *c;

	d.data = NULL;
	if (c->exists && c->len) {
		d.data = must(malloc(c->len));
		memcpy(d.data, c->data, c->len);
	}
	return d;
}

static void note(struct run *r, struct name *n, bool durable)
{
	struct entry *e;

	n->history =
		must(realloc(n->history, (n->count + 1) * sizeof(*n->history)));
	e = &n->history[n->count++];
	*e = (struct entry){ .event = record_count(r->rec),
			     .durable = durable };
	if (durable)
		e->content = copy_of(&n->now);
}

/* ---- the file system under test ---- */

static const struct fs_req req = { .pid = 1 };

static void wake(void *arg, enum fs_work work)
{
	unsigned *wanted = arg;

	__atomic_fetch_or(wanted, 1u << work, __ATOMIC_SEQ_CST);
}

static const struct fs_host_ops host_ops = { .wake = wake };

static int mount_dev(struct blkdev *dev, unsigned *wanted, struct fs **fsp,
		     char *why, size_t why_len)
{
	struct fs_params params = {
		.dev = dev,
		.who = "crash",
		.host = &host_ops,
		.arg = wanted,
	};

	fs_options_init(&params.opt);
	return fs_mount(&params, fsp, why, why_len);
}

static void run_wanted(struct run *r)
{
	unsigned wanted = __atomic_exchange_n(&r->wanted, 0, __ATOMIC_SEQ_CST);
	unsigned w;

	for (w = 0; w < FS_WORK_COUNT; w++)
		if (wanted & (1u << w))
			fs_work_run(r->fs, (enum fs_work)w, true);
}

static void name_text(unsigned i, char *text, size_t len)
{
	/* Long names fill directory blocks, so that leaves split. */
	snprintf(text, len, "name-%02u-%s", i % NAMES_PER_DIR,
		 i % 3 ? "x"
		       : "a-long-name-that-takes-its-room-in-the-directory-"
			 "block-and-makes-it-overflow-sooner-than-others-do");
}

static struct inode *get_dir(struct fs *fs, unsigned dir)
{
	struct inode *root = fs_inode_get(fs, FS_ROOT_NODEID), *ip;
	struct fs_entry ent;
	char text[16];
	int err;

	snprintf(text, sizeof(text), "dir%u", dir);
	err = fs_lookup(&req, root, text, strlen(text), &ent);
	if (err)
		die("lookup of %s: %s", text, strerror(-err));
	inode_put(root);
	ip = fs_inode_get(fs, ent.nodeid);
	fs_forget(fs, ent.nodeid, 1);
	return ip;
}

static struct inode *get_file(struct fs *fs, unsigned i, uint64_t *size)
{
	struct inode *dir = get_dir(fs, i / NAMES_PER_DIR), *ip = NULL;
	struct fs_entry ent;
	char text[160];
	int err;

	name_text(i, text, sizeof(text));
	err = fs_lookup(&req, dir, text, strlen(text), &ent);
	inode_put(dir);
	if (err && err != -ENOENT)
		die("lookup of name %u: %s", i, strerror(-err));
	if (!err) {
		*size = ent.attr.size;
		ip = fs_inode_get(fs, ent.nodeid);
		fs_forget(fs, ent.nodeid, 1);
	}
	return ip;
}

/* ---- operations ---- */

static void fill(struct name *n, uint8_t *buf, uint32_t len, uint32_t salt)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		buf[i] = i % 8 < 4 ? (uint8_t)(n->file >> (8 * (i % 4)))
				   : (uint8_t)(salt + i / 8);
}

static void op_create(struct run *r, unsigned i)
{
	struct name *n = &r->names[i];
	struct inode *dir;
	struct fs_entry ent;
	struct fs_make mk = { .mode = S_IFREG | 0644 };
	char text[160];
	bool created;
	int err;

	if (n->now.exists)
		return;
	name_text(i, text, sizeof(text));
	mk.name = text;
	mk.len = strlen(text);
	note(r, n, false);
	dir = get_dir(r->fs, i / NAMES_PER_DIR);
	err = fs_create(&req, dir, &mk, O_RDWR | O_CREAT, &ent, &created);
	if (err || !created)
		die("create of name %u: %s", i, strerror(-err));
	inode_put(dir);
	dir = fs_inode_get(r->fs, ent.nodeid);
	fs_release(dir, O_RDWR);
	inode_put(dir);
	fs_forget(r->fs, ent.nodeid, 1);
	n->now = (struct content){ .exists = true };
	n->file = ++r->files;
}

static void op_write(struct run *r, unsigned i)
{
	struct name *n = &r->names[i];
	uint32_t off, len, end;
	struct inode *ip;
	uint64_t size;
	uint8_t *buf;
	ssize_t done;

	op_create(r, i);
	off = (uint32_t)ug_prng_below(&r->prng, n->now.len + 1);
	if (ug_prng_below(&r->prng, 8) == 0)
		off += (uint32_t)ug_prng_below(&r->prng, 20000);
	off &= ~7u; /* words stay whole */
	len = (uint32_t)(ug_prng_below(&r->prng, 3)
				 ? 8 + ug_prng_below(&r->prng, 6000)
				 : 8 + ug_prng_below(&r->prng, 100000));
	len &= ~7u;
	if (off + len > FILE_MAX)
		return;
	end = off + len;
	if (end > n->now.len) {
		n->now.data = must(realloc(n->now.data, end));
		memset(n->now.data + n->now.len, 0, end - n->now.len);
		n->now.len = end;
	}
	fill(n, n->now.data + off, len, (uint32_t)ug_prng_u64(&r->prng));
	note(r, n, false);
	ip = get_file(r->fs, i, &size);
	buf = must(blkdev_alloc(UG_ALIGN_UP(len, 4096u)));
	memcpy(buf, n->now.data + off, len);
	done = fs_write(&req, ip, buf, len, off, 0);
	if (done != (ssize_t)len)
		die("write to name %u: %zd of %u", i, done, len);
	free(buf);
	inode_put(ip);
}

static void op_truncate(struct run *r, unsigned i)
{
	struct name *n = &r->names[i];
	struct fs_setattr set = { .valid = FS_SET_SIZE };
	struct fs_attr attr;
	struct inode *ip;
	uint64_t size;
	uint32_t len;
	int err;

	if (!n->now.exists)
		return;
	len = (uint32_t)ug_prng_below(&r->prng, n->now.len * 3 / 2 + 1) & ~7u;
	if (len > FILE_MAX)
		return;
	note(r, n, false);
	set.size = len;
	ip = get_file(r->fs, i, &size);
	err = fs_setattr(&req, ip, &set, &attr);
	if (err)
		die("truncate of name %u: %s", i, strerror(-err));
	inode_put(ip);
	n->now.data = must(realloc(n->now.data, len + 1));
	if (len > n->now.len)
		memset(n->now.data + n->now.len, 0, len - n->now.len);
	n->now.len = len;
}

#define ATTR "user.attribute"
#define ATTR_MAX 25000u

/* Says how long it is, and which one. */
static void attr_fill(uint8_t *buf, uint32_t len, uint32_t salt)
{
	for (uint32_t i = 0; i < len; i++)
		buf[i] = (uint8_t)(salt + len + i * (salt | 1) + i / 251);
	if (len >= 8) {
		memcpy(buf, &len, 4);
		memcpy(buf + 4, &salt, 4);
	}
}

static void op_attr(struct run *r, unsigned i)
{
	struct name *n = &r->names[i];
	static uint8_t buf[ATTR_MAX];
	struct inode *ip;
	uint64_t size;
	uint32_t len;
	int err;

	if (!n->now.exists)
		return;
	len = (uint32_t)ug_prng_below(
		&r->prng, ug_prng_below(&r->prng, 2) ? 400 : ATTR_MAX);
	if (len < 100)
		len = 0;
	n->now.attr_salt = (uint32_t)ug_prng_u64(&r->prng);
	attr_fill(buf, len, n->now.attr_salt);
	note(r, n, false);
	ip = get_file(r->fs, i, &size);
	err = len ? fs_setxattr(&req, ip, ATTR, buf, len, 0)
		  : fs_removexattr(&req, ip, ATTR);
	if (err && (len || n->now.attr_len || err != -ENODATA))
		die("attribute of name %u: %s", i, strerror(-err));
	inode_put(ip);
	n->now.attr_len = len;
}

static void op_unlink(struct run *r, unsigned i)
{
	struct name *n = &r->names[i];
	struct inode *dir;
	char text[160];
	int err;

	if (!n->now.exists)
		return;
	name_text(i, text, sizeof(text));
	note(r, n, false);
	dir = get_dir(r->fs, i / NAMES_PER_DIR);
	err = fs_unlink(&req, dir, text, strlen(text));
	if (err)
		die("unlink of name %u: %s", i, strerror(-err));
	inode_put(dir);
	free(n->now.data);
	n->now = (struct content){ 0 };
}

static void op_rename(struct run *r, unsigned i)
{
	unsigned k = (unsigned)ug_prng_below(&r->prng, NAMES);
	struct name *from = &r->names[i], *to = &r->names[k];
	struct inode *d1, *d2;
	char t1[160], t2[160];
	int err;

	if (!from->now.exists || i == k)
		return;
	name_text(i, t1, sizeof(t1));
	name_text(k, t2, sizeof(t2));
	note(r, from, false);
	note(r, to, false);
	d1 = get_dir(r->fs, i / NAMES_PER_DIR);
	d2 = get_dir(r->fs, k / NAMES_PER_DIR);
	err = fs_rename(&req, d1, t1, strlen(t1), d2, t2, strlen(t2), 0);
	if (err)
		die("rename of %u to %u: %s", i, k, strerror(-err));
	inode_put(d1);
	inode_put(d2);
	free(to->now.data);
	to->now = from->now;
	to->file = from->file;
	from->now = (struct content){ 0 };
}

static void op_fsync(struct run *r, unsigned i)
{
	struct name *n = &r->names[i];
	struct inode *ip;
	uint64_t size;
	int err;

	if (!n->now.exists)
		return;
	ip = get_file(r->fs, i, &size);
	err = fs_fsync(&req, ip, ug_prng_below(&r->prng, 2));
	if (err)
		die("fsync of name %u: %s", i, strerror(-err));
	inode_put(ip);
	note(r, n, true);
}

static void op_sync(struct run *r)
{
	int err = fs_sync(r->fs);
	unsigned i;

	if (err)
		die("sync: %s", strerror(-err));
	for (i = 0; i < NAMES; i++)
		note(r, &r->names[i], true);
}

/* Background work at any time is as good as work that was asked for. */
static void op_work(struct run *r)
{
	enum fs_work w = (enum fs_work)ug_prng_below(&r->prng, FS_WORK_COUNT);

	fs_work_run(r->fs, w, true);
}

static void one_op(struct run *r)
{
	unsigned i = (unsigned)ug_prng_below(&r->prng, NAMES);

	switch (ug_prng_below(&r->prng, 22)) {
	case 0:
	case 1:
	case 2:
		op_create(r, i);
		break;
	case 3:
	case 4:
	case 5:
		op_truncate(r, i);
		break;
	case 6:
	case 7:
		op_unlink(r, i);
		break;
	case 8:
	case 9:
		op_rename(r, i);
		break;
	case 10:
	case 11:
		op_fsync(r, i);
		break;
	case 12:
	case 13:
		op_work(r);
		break;
	case 14:
		if (ug_prng_below(&r->prng, 4) == 0)
			op_sync(r);
		break;
	case 20:
	case 21:
		op_attr(r, i);
		break;
	default:
		op_write(r, i);
		break;
	}
	run_wanted(r);
}

/* ---- the run ---- */

static int shell(const char *cmd)
{
	int status = system(cmd);

	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static void temp_path(char *path, size_t len)
{
	int fd;

	snprintf(path, len, "/var/tmp/ugfs-crash-XXXXXX");
	fd = mkstemp(path);
	if (fd < 0 || ftruncate(fd, (off_t)IMAGE_BYTES))
		die("temporary image: %s", strerror(errno));
	close(fd);
}

/* A fresh volume in memory. */
static struct blkdev *make_volume(void)
{
	struct blkdev *file, *mem;
	char path[64], cmd[300];
	uint64_t at;
	void *chunk = must(blkdev_alloc(1 << 20));

	temp_path(path, sizeof(path));
	snprintf(cmd, sizeof(cmd),
		 "mkfs.gfs2 -O -q -p lock_nolock -j 1 -J 8 -b %u %s >/dev/null",
		 bsize, path);
	if (shell(cmd))
		die("failed: %s", cmd);
	if (blkdev_open_file(path, BLK_OPEN_READONLY, &file) ||
	    blkdev_open_memory(IMAGE_BYTES, 512, &mem))
		die("cannot open %s", path);
	for (at = 0; at < IMAGE_BYTES; at += 1 << 20)
		if (blkdev_read(file, chunk, 1 << 20, at) ||
		    blkdev_write(mem, chunk, 1 << 20, at, 0))
			die("cannot copy %s", path);
	blkdev_close(file);
	unlink(path);
	free(chunk);
	return mem;
}

static void make_dirs(struct run *r)
{
	struct inode *root = fs_inode_get(r->fs, FS_ROOT_NODEID);
	struct fs_entry ent;
	unsigned d;

	for (d = 0; d < DIRS; d++) {
		char text[16];
		struct fs_make mk = { .name = text, .mode = S_IFDIR | 0755 };
		int err;

		mk.len = (size_t)snprintf(text, sizeof(text), "dir%u", d);
		err = fs_make(&req, root, &mk, &ent);
		if (err)
			die("mkdir: %s", strerror(-err));
		fs_forget(r->fs, ent.nodeid, 1);
	}
	inode_put(root);
}

static void record_run(struct run *r, unsigned ops)
{
	char why[300] = "";
	unsigned i;

	ug_prng_seed(&r->prng, seed);
	if (record_create(make_volume(), &r->rec, &r->dev))
		die("record layer");
	if (mount_dev(r->dev, &r->wanted, &r->fs, why, sizeof(why)))
		die("mount: %s", why);
	make_dirs(r);
	op_sync(r);
	r->first_event = record_count(r->rec);
	for (i = 0; i < ops; i++)
		one_op(r);
	if (fs_unmount(r->fs))
		die("unmount failed");
	blkdev_close(r->dev);
}

/* ---- after the cut ---- */

/* The last durable state of a name, if nothing has touched it since. */
static const struct content *expected(const struct name *n, size_t upto,
				      bool last_in_flight)
{
	const struct content *c = NULL;
	size_t i;

	for (i = 0; i < n->count; i++) {
		const struct entry *e = &n->history[i];

		if (e->durable && e->event + last_in_flight <= upto)
			c = &e->content;
		else if (!e->durable && e->event < upto)
			c = NULL;
	}
	return c;
}

static uint8_t *read_all(struct inode *ip, unsigned i, uint64_t size)
{
	uint8_t *buf = must(blkdev_alloc(UG_ALIGN_UP(size + 1, 4096u)));
	ssize_t got = fs_read(&req, ip, buf, size, 0, FS_IO_NOCACHE);

	if (got != (ssize_t)size)
		die("name %u: read %zd of %" PRIu64, i, got, size);
	return buf;
}

/* c NULL: any that is whole. */
static void check_attr(const struct content *c, unsigned i, size_t upto,
		       struct inode *ip)
{
	static uint8_t got[ATTR_MAX], want[ATTR_MAX];
	ssize_t n = fs_getxattr(&req, ip, ATTR, got, sizeof(got));
	uint32_t len, salt;

	if (n == -ENODATA && (!c || !c->attr_len))
		return;
	if (n < 100)
		die("cut %zu: attribute of name %u: %zd", upto, i, n);
	memcpy(&len, got, 4);
	memcpy(&salt, got + 4, 4);
	if (c ? n != (ssize_t)c->attr_len || salt != c->attr_salt
	      : n != (ssize_t)len)
		die("cut %zu: attribute of name %u has %zd bytes, durable was "
		    "another one",
		    upto, i, n);
	attr_fill(want, len, salt);
	if (memcmp(got, want, len))
		die("cut %zu: attribute of name %u is not whole", upto, i);
}

static void check_exact(const struct content *c, unsigned i, size_t upto,
			const struct inode *ip, const uint8_t *buf,
			uint64_t size)
{
	uint64_t at;

	if (c->exists != !!ip)
		die("cut %zu: name %u %s, but was durable as %s", upto, i,
		    ip ? "exists" : "is missing",
		    c->exists ? "existing" : "removed");
	if (!ip)
		return;
	if (size != c->len)
		die("cut %zu: name %u has size %" PRIu64 ", durable was %u",
		    upto, i, size, c->len);
	for (at = 0; at < size; at++)
		if (buf[at] != c->data[at])
			die("cut %zu: name %u differs at byte %" PRIu64
			    " (%02x, durable was %02x)",
			    upto, i, at, buf[at], c->data[at]);
}

/* All words of one file carry one number, or are zero. */
static void check_own(unsigned i, size_t upto, const uint8_t *buf,
		      uint64_t size)
{
	uint32_t own = 0, word;
	uint64_t at;

	for (at = 0; at + 8 <= size; at += 8) {
		memcpy(&word, buf + at, 4);
		if (!word)
			continue;
		if (own && word != own)
			die("cut %zu: name %u holds data of file %u at %" PRIu64
			    " beside that of file %u",
			    upto, i, word, at, own);
		own = word;
	}
}

static void check_names(struct run *r, struct fs *fs,
			const struct record_crash *crash)
{
	unsigned i;

	for (i = 0; i < NAMES; i++) {
		const struct content *c = expected(&r->names[i], crash->upto,
						   crash->last_in_flight);
		uint64_t size = 0;
		struct inode *ip = get_file(fs, i, &size);
		uint8_t *buf = ip ? read_all(ip, i, size) : NULL;

		if (c)
			check_exact(c, i, crash->upto, ip, buf, size);
		if (buf) {
			check_own(i, crash->upto, buf, size);
			check_attr(c, i, crash->upto, ip);
		}
		free(buf);
		inode_put(ip);
	}
}

static void fsck_device(struct blkdev *dev, size_t upto)
{
	void *chunk = must(blkdev_alloc(1 << 20));
	static const char zero[4096];
	char path[64], cmd[400];
	uint64_t at, k;
	int fd;

	temp_path(path, sizeof(path));
	fd = open(path, O_WRONLY | O_CLOEXEC);
	for (at = 0; fd >= 0 && at < IMAGE_BYTES; at += 1 << 20) {
		if (blkdev_read(dev, chunk, 1 << 20, at))
			die("cannot read the image");
		for (k = 0; k < 1 << 20; k += 4096)
			if (memcmp((char *)chunk + k, zero, 4096) &&
			    pwrite(fd, (char *)chunk + k, 4096,
				   (off_t)(at + k)) != 4096)
				die("%s: %s", path, strerror(errno));
	}
	close(fd);
	free(chunk);
	snprintf(cmd, sizeof(cmd),
		 "fsck.gfs2 -n %s > %s.out 2>&1 && "
		 "! grep -qiE 'dirty|corrupt|error|wrong|bad|unlinked|"
		 "should be|free|invalid|(inconsist|mismatch)' %s.out",
		 path, path, path);
	if (shell(cmd)) {
		snprintf(cmd, sizeof(cmd), "cat %s.out >&2", path);
		shell(cmd);
		die("cut %zu: fsck.gfs2 -n complains (image kept: %s)", upto,
		    path);
	}
	unlink(path);
	snprintf(cmd, sizeof(cmd), "%s.out", path);
	unlink(cmd);
}

static void check_cut(struct run *r, const struct record_crash *crash,
		      bool fsck)
{
	struct blkdev *dev;
	unsigned wanted = 0;
	char why[300] = "";
	struct fs *fs;
	int err;

	err = record_image(r->rec, crash, &dev);
	if (err)
		die("image of cut %zu: %s", crash->upto, strerror(-err));
	err = mount_dev(dev, &wanted, &fs, why, sizeof(why));
	if (err)
		die("cut %zu: mount: %s", crash->upto, why);
	check_names(r, fs, crash);
	err = fs_unmount(fs);
	if (err)
		die("cut %zu: unmount: %s", crash->upto, strerror(-err));
	if (fsck)
		fsck_device(dev, crash->upto);
	blkdev_close(dev);
}

static void check_cuts(struct run *r, size_t cuts, size_t fsck_every)
{
	size_t events = record_count(r->rec), span, i;
	struct record_loss *losses = must(calloc(events + 1, sizeof(*losses)));

	span = events - r->first_event;
	if (cuts > span * 3)
		cuts = span * 3;
	for (i = 0; i < cuts; i++) {
		struct record_crash crash = {
			.upto = r->first_event + i * span / cuts + 1,
			.last_in_flight = i % 3 == 2,
		};

		/* A third as if all had arrived, the rest with losses. */
		if (i % 3) {
			crash.losses_count = record_losses_random(
				r->rec, &crash, &r->prng, losses);
			crash.losses = losses;
		}
		check_cut(r, &crash, i % fsck_every == 0);
	}
	printf("%zu events, %zu cuts, every %zuth by fsck.gfs2: seed %" PRIu64
	       ", block size %u: all good\n",
	       span, cuts, fsck_every, seed, bsize);
	free(losses);
}

static void run_free(struct run *r)
{
	unsigned i;
	size_t k;

	for (i = 0; i < NAMES; i++) {
		for (k = 0; k < r->names[i].count; k++)
			free(r->names[i].history[k].content.data);
		free(r->names[i].history);
		free(r->names[i].now.data);
	}
	record_destroy(r->rec);
	free(r);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "ops", required_argument, NULL, 'o' },
		{ "cuts", required_argument, NULL, 'c' },
		{ "fsck", required_argument, NULL, 'f' },
		{ "bsize", required_argument, NULL, 'b' },
		{ 0 },
	};
	size_t cuts = 300, fsck_every = 10;
	struct run *r = must(calloc(1, sizeof(*r)));
	unsigned ops = 400;
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 's')
			seed = strtoull(optarg, NULL, 0);
		else if (opt == 'o')
			ops = (unsigned)strtoul(optarg, NULL, 0);
		else if (opt == 'c')
			cuts = strtoul(optarg, NULL, 0);
		else if (opt == 'f')
			fsck_every = strtoul(optarg, NULL, 0);
		else if (opt == 'b')
			bsize = (unsigned)strtoul(optarg, NULL, 0);
		else
			return 2;
	}
	if (shell("command -v mkfs.gfs2 fsck.gfs2 >/dev/null"))
		return 77;
	ug_log_set_level(UG_WARN);
	record_run(r, ops);
	check_cuts(r, cuts, fsck_every ? fsck_every : 1);
	run_free(r);
	return 0;
}
