/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_stall.c - writers that want more than the cache holds, on a slow device.
 *
 * Each of them waits for the others' pages again and again, while log flushes,
 * write-back in the background, an fsync now and then and statfs go on. Who
 * waits must be woken when there is something to have: not by a tick of a
 * second, not never. So no request may get old, and all together must be done
 * in the time that a device of this speed needs, with a wide margin.
 */
#include <time.h>

#include "block/delay.h"
#include "tests/unit/fs/names.h"

#define WRITERS 6u
#define FILE_BYTES (10u << 20)
#define PIECE_MAX (128u << 10)

/*
 * A write of the device takes 4 ms at least, a flush 10. Written in pieces of
 * 16 pages it would all be 6 s; the time limit is ten times that.
 */
#define WRITE_US 4000u
#define FLUSH_US 10000u
#define AGE_MAX_SEC 10u
#define TOTAL_MAX_SEC 60u

static struct volume vol;
static struct delay *delay;

struct writer {
	pthread_t thread;
	unsigned number;
	uint64_t id;
	unsigned io_flags;
	const char *doing; /* valid while since is not 0 */
	_Atomic uint64_t since_ns;
	_Atomic uint64_t oldest_ns; /* of requests that are done */
	atomic_int error;
	atomic_bool done;
};

static struct writer writers[WRITERS];

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* On a machine with other work: UGFS_PATIENCE times as long. */
static uint64_t limit_ns(unsigned sec)
{
	const char *patience = getenv("UGFS_PATIENCE");

	return sec * 1000000000ull * (unsigned)(patience ? atoi(patience) : 1);
}

static void begin_request(struct writer *w, const char *doing)
{
	w->doing = doing;
	atomic_store(&w->since_ns, now_ns());
}

static void end_request(struct writer *w, ssize_t result, ssize_t expected)
{
	uint64_t age = now_ns() - atomic_load(&w->since_ns);

	if (age > atomic_load(&w->oldest_ns))
		atomic_store(&w->oldest_ns, age);
	atomic_store(&w->since_ns, 0);
	if (result != expected)
		atomic_store(&w->error, result < 0 ? (int)result : -EIO);
}

/* The word at an offset of a writer's file. */
static uint64_t word_at(const struct writer *w, uint64_t offset)
{
	return offset << 8 | w->number;
}

static void write_piece(struct writer *w, struct inode *ip, uint64_t *buf,
			size_t len, uint64_t at)
{
	for (size_t i = 0; i < len / 8; i++)
		buf[i] = word_at(w, at + 8 * i);
	begin_request(w, "write");
	end_request(w, fs_write(&volume_req, ip, buf, len, at, w->io_flags),
		    (ssize_t)len);
}

/* In order at first, then all over the place. */
static void *writer_main(void *arg)
{
	struct writer *w = arg;
	struct inode *ip = fs_inode_get(vol.fs, w->id);
	uint64_t *buf = blkdev_alloc(PIECE_MAX), at, n = 0;
	struct ug_prng prng;
	size_t len;

	ug_prng_seed(&prng, w->number);
	for (at = 0; at < FILE_BYTES && !atomic_load(&w->error); at += len) {
		len = 8 * (1 + ug_prng_below(&prng, PIECE_MAX / 8));
		len = UG_MIN(len, FILE_BYTES - at);
		write_piece(w, ip, buf, len, at);
	}
	for (n = 0; n < 300 && !atomic_load(&w->error); n++) {
		len = 8 * (1 + ug_prng_below(&prng, PIECE_MAX / 64));
		at = 8 * ug_prng_below(&prng, (FILE_BYTES - PIECE_MAX) / 8);
		write_piece(w, ip, buf, len, at);
		if (w->number || n % 50)
			continue;
		begin_request(w, "fsync");
		end_request(w, fs_fsync(&volume_req, ip, false), 0);
	}
	free(buf);
	inode_put(ip);
	atomic_store(&w->done, true);
	return NULL;
}

static bool all_done(void)
{
	for (unsigned i = 0; i < WRITERS; i++)
		if (!atomic_load(&writers[i].done))
			return false;
	return true;
}

/* Looked at by itself: statfs waits for nobody. */
static void watch_statfs(void)
{
	uint64_t start = now_ns();
	struct fs_statfs st;

	fs_statfs(vol.fs, &st);
	if (now_ns() - start > limit_ns(1))
		fail_msg("statfs took more than a second");
}

static void watch_writers(void)
{
	uint64_t start = now_ns(), since, now;
	struct timespec pause = { .tv_nsec = 20000000 };

	while (!all_done()) {
		nanosleep(&pause, NULL);
		watch_statfs();
		for (unsigned i = 0; i < WRITERS; i++) {
			since = atomic_load(&writers[i].since_ns);
			now = now_ns();
			if (since && now > since &&
			    now - since > limit_ns(AGE_MAX_SEC))
				fail_msg("writer %u: a %s has been waiting for "
					 "more than %u s",
					 i, writers[i].doing, AGE_MAX_SEC);
		}
		if (now_ns() - start > limit_ns(TOTAL_MAX_SEC))
			fail_msg("not done after %u s", TOTAL_MAX_SEC);
	}
	print_message("%u MiB in %.1f s, ",
		      WRITERS * (unsigned)(FILE_BYTES >> 20),
		      (double)(now_ns() - start) / 1e9);
}

static void check_file(const struct writer *w)
{
	struct inode *ip = node(&vol, w->id);
	uint64_t *buf = blkdev_alloc(PIECE_MAX);

	assert_int_equal(attr_of(&vol, w->id).size, FILE_BYTES);
	for (uint64_t at = 0; at < FILE_BYTES; at += PIECE_MAX) {
		assert_int_equal(
			fs_read(&volume_req, ip, buf, PIECE_MAX, at, 0),
			PIECE_MAX);
		for (size_t i = 0; i < PIECE_MAX / 8; i++)
			assert_int_equal(buf[i], word_at(w, at + 8 * i));
	}
	free(buf);
	inode_put(ip);
}

static void stall_run(unsigned bsize, unsigned io_flags)
{
	struct volume_geometry g = { .bsize = bsize, .size_mib = 128 };
	uint64_t oldest = 0;
	struct blkdev *lower, *dev;
	char name[20];
	unsigned i;

	volume_make(&vol, &g);
	vol.opt.cache_bytes = 1 << 20;
	vol.opt.commit_sec = 1;
	assert_int_equal(blkdev_open_file(vol.path, BLK_OPEN_EXCL, &lower), 0);
	assert_int_equal(delay_open(lower, &delay, &dev), 0);
	volume_mount_on(&vol, dev);
	for (i = 0; i < WRITERS; i++) {
		sprintf(name, "file %u", i);
		writers[i] =
			(struct writer){ .number = i, .io_flags = io_flags };
		writers[i].id = make_file(&vol, ROOT, name);
	}
	delay_set(delay, LAYER_WRITE, WRITE_US);
	delay_set(delay, LAYER_FLUSH, FLUSH_US);
	for (i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_create(&writers[i].thread, NULL,
						writer_main, &writers[i]),
				 0);
	watch_writers();
	for (i = 0; i < WRITERS; i++) {
		pthread_join(writers[i].thread, NULL);
		assert_int_equal(atomic_load(&writers[i].error), 0);
		oldest = UG_MAX(oldest, atomic_load(&writers[i].oldest_ns));
	}
	print_message("the longest request %.2f s\n", (double)oldest / 1e9);
	delay_set(delay, LAYER_ALL, 0);
	for (i = 0; i < WRITERS; i++)
		check_file(&writers[i]);
	volume_unmount(&vol);
	volume_fsck(&vol);
	volume_remove(&vol);
}

static void test_own_pages(void **state)
{
	stall_run(4096, 0);
	stall_run(1024, 0);
}

/* The kernel keeps the pages, so ours go as soon as they are written. */
static void test_kernel_pages(void **state)
{
	stall_run(4096, FS_IO_NOCACHE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_pages),
		cmocka_unit_test(test_kernel_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
