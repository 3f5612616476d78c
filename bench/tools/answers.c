/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * answers.c - answers VOLUME FILES: what our own code takes for a request that
 * is answered from memory, without the kernel's part of it.
 *
 *	bytes as the kernel writes them
 *	  -> fuse_request_decode -> fuse_front_handler, inline -> reply
 *
 * The volume is mounted in this process, and FILES files are made in its root.
 * Then each kind of request is sent for each of them, in several passes. Time
 * is the CPU time of the thread, so other programs of the machine disturb
 * less; of the passes the median counts. Prints lines of opcode, tab,
 * nanoseconds.
 *
 * Nothing here does the file system's background work but for once, after the
 * files have been made: a request that would have to wait ends the program.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "block/block.h"
#include "fs/fs.h"
#include "fuse/front.h"

#define PASSES 11
#define REPLY_BYTES (64u << 10)

struct bench {
	struct blkdev *dev;
	struct fs *fs;
	struct fuse_front *front;
	unsigned files;
	uint64_t *nodeids;
	char *names; /* 16 bytes each */
	struct fuse_reply reply;
};

struct bytes {
	_Alignas(8) char bytes[256];
	size_t len;
};

/* One kind of request: the arguments for file i behind the header. */
struct kind {
	uint32_t opcode;
	void (*put)(const struct bench *b, struct bytes *to, unsigned i);
};

static void die(const char *what, int err)
{
	fprintf(stderr, "answers: %s: %s\n", what, strerror(-err));
	exit(1);
}

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- requests ---- */

static struct fuse_in_header *head_of(struct bytes *to)
{
	return (struct fuse_in_header *)to->bytes;
}

static void put_bytes(struct bytes *to, const void *bytes, size_t len)
{
	memcpy(to->bytes + to->len, bytes, len);
	to->len += len;
}

static const char *name_of(const struct bench *b, unsigned i)
{
	return b->names + 16 * (size_t)i;
}

static void put_name(const struct bench *b, struct bytes *to, unsigned i)
{
	head_of(to)->nodeid = FS_ROOT_NODEID;
	put_bytes(to, name_of(b, i), strlen(name_of(b, i)) + 1);
}

static void put_no_name(const struct bench *b, struct bytes *to, unsigned i)
{
	char name[32];

	snprintf(name, sizeof(name), "absent%u", i);
	head_of(to)->nodeid = FS_ROOT_NODEID;
	put_bytes(to, name, strlen(name) + 1);
}

static void put_getattr(const struct bench *b, struct bytes *to, unsigned i)
{
	const struct fuse_getattr_in in = { 0 };

	put_bytes(to, &in, sizeof(in));
}

static void put_open(const struct bench *b, struct bytes *to, unsigned i)
{
	const struct fuse_open_in in = { .flags = O_RDONLY };

	put_bytes(to, &in, sizeof(in));
}

static void put_flush(const struct bench *b, struct bytes *to, unsigned i)
{
	const struct fuse_flush_in in = { .fh = FUSE_FH_OPEN | FUSE_FH_READ };

	put_bytes(to, &in, sizeof(in));
}

static void put_release(const struct bench *b, struct bytes *to, unsigned i)
{
	const struct fuse_release_in in = { .fh = FUSE_FH_OPEN | FUSE_FH_READ };

	put_bytes(to, &in, sizeof(in));
}

static void put_forget(const struct bench *b, struct bytes *to, unsigned i)
{
	const struct fuse_forget_in in = { .nlookup = 1 };

	put_bytes(to, &in, sizeof(in));
}

static void put_mknod(const struct bench *b, struct bytes *to, unsigned i)
{
	const struct fuse_mknod_in in = { .mode = S_IFREG | 0644 };

	put_bytes(to, &in, sizeof(in));
	put_name(b, to, i);
}

/* In an order in which every request succeeds, again and again. */
static const struct kind kinds[] = {
	{ FUSE_LOOKUP, put_name },     { FUSE_FORGET, put_forget },
	{ FUSE_LOOKUP, put_no_name },  { FUSE_GETATTR, put_getattr },
	{ FUSE_OPEN, put_open },       { FUSE_FLUSH, put_flush },
	{ FUSE_RELEASE, put_release },
};

static int ask(struct bench *b, const struct kind *kind, unsigned i,
	       enum fuse_place place)
{
	struct bytes to = { .len = sizeof(struct fuse_in_header) };
	struct fuse_request req;
	int err;

	*head_of(&to) = (struct fuse_in_header){
		.opcode = kind->opcode,
		.unique = 2,
		.nodeid = b->nodeids[i],
	};
	kind->put(b, &to, i);
	head_of(&to)->len = (uint32_t)to.len;
	b->reply.carry = 0;
	b->reply.body_len = 0;
	b->reply.data_len = 0;
	err = fuse_request_decode(to.bytes, to.len, &req);
	if (!err)
		err = fuse_front_handler.handle(b->front, &req, &b->reply,
						place);
	return err;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double pass(struct bench *b, const struct kind *kind)
{
	uint64_t begin = cpu_ns();

	for (unsigned i = 0; i < b->files; i++) {
		int err = ask(b, kind, i, FUSE_INLINE);

		if (err && !(kind->put == put_no_name && err == -ENOENT))
			die(fuse_opcode_name(kind->opcode), err);
	}
	return (double)(cpu_ns() - begin) / b->files;
}

static void measure(struct bench *b)
{
	double ns[UG_ARRAY_SIZE(kinds)][PASSES];

	for (unsigned p = 0; p < PASSES; p++)
		for (unsigned k = 0; k < UG_ARRAY_SIZE(kinds); k++)
			ns[k][p] = pass(b, &kinds[k]);
	for (unsigned k = 0; k < UG_ARRAY_SIZE(kinds); k++) {
		qsort(ns[k], PASSES, sizeof(ns[k][0]), compare);
		printf("%s%s\t%.0f\n", fuse_opcode_name(kinds[k].opcode),
		       kinds[k].put == put_no_name ? " (absent)" : "",
		       ns[k][PASSES / 2]);
	}
}

/* ---- the volume ---- */

static void no_wake(void *arg, enum fs_work work)
{
}

static const struct fs_host_ops host_ops = { .wake = no_wake };

static void volume_open(struct bench *b, const char *path)
{
	struct fs_params params = {
		.who = "answers",
		.host = &host_ops,
	};
	char why[400] = "";
	int err = blkdev_open_file(path, BLK_OPEN_EXCL, &b->dev);

	if (err)
		die(path, err);
	params.dev = b->dev;
	fs_options_init(&params.opt);
	params.opt.cache_bytes = 1ull << 30;
	err = fs_mount(&params, &b->fs, why, sizeof(why));
	if (err) {
		fprintf(stderr, "answers: %s\n", why);
		exit(1);
	}
}

static void front_open(struct bench *b)
{
	struct fuse_front_params params = { .fs = b->fs, .who = "answers" };
	struct fuse_agreed agreed = { .flags = FUSE_NO_OPENDIR_SUPPORT };
	int err;

	fuse_policy_defaults(&params.policy, FUSE_DATA_CACHED);
	err = fuse_front_create(&params, &b->front);
	if (!err)
		err = fuse_front_handler.start(b->front, &agreed);
	b->reply.data = aligned_alloc(4096, REPLY_BYTES);
	b->reply.data_max = REPLY_BYTES;
	if (err || !b->reply.data)
		die("front", err ? err : -ENOMEM);
}

static void make_files(struct bench *b)
{
	static const struct kind mknod_kind = { FUSE_MKNOD, put_mknod };

	b->nodeids = calloc(b->files, sizeof(*b->nodeids));
	b->names = calloc(b->files, 16);
	if (!b->nodeids || !b->names)
		die("files", -ENOMEM);
	for (unsigned i = 0; i < b->files; i++) {
		int err;

		snprintf(b->names + 16 * (size_t)i, 16, "file%u", i);
		err = ask(b, &mknod_kind, i, FUSE_WORKER);
		if (err)
			die(name_of(b, i), err);
		b->nodeids[i] = b->reply.entry.nodeid;
	}
	fs_work_run(b->fs, FS_WORK_COMMIT, true);
}

static void forget_files(struct bench *b)
{
	static const struct kind forget_kind = { FUSE_FORGET, put_forget };

	for (unsigned i = 0; i < b->files; i++)
		ask(b, &forget_kind, i, FUSE_WORKER);
}

int main(int argc, char **argv)
{
	struct bench b = { 0 };
	int err;

	if (argc != 3 || !(b.files = (unsigned)strtoul(argv[2], NULL, 10))) {
		fputs("usage: answers VOLUME FILES\n", stderr);
		return 2;
	}
	volume_open(&b, argv[1]);
	front_open(&b);
	make_files(&b);
	measure(&b);
	forget_files(&b);
	err = fs_unmount(b.fs);
	fuse_front_destroy(b.front);
	blkdev_close(b.dev);
	free(b.reply.data);
	free(b.nodeids);
	free(b.names);
	if (err)
		die("unmount", err);
	return 0;
}
