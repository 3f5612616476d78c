/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_file_race.c - many threads on one file.
 *
 * The file is made of records. A writer writes a whole record, all of whose
 * words have the record's number and the writer's turn; a truncation cuts
 * anywhere. So at any time a record is a row of words of one turn, and
 * zeros behind it. Readers look for anything else: torn writes, data of
 * other places, old data under holes. At the end the same is true on disk.
 */
#include <fcntl.h>

#include "fs/file.h"
#include "tests/unit/fs/names.h"

/*
 * A page may be changed while its bytes are on their way to the device: it is
 * dirty again then, and goes once more. To ThreadSanitizer that is a race.
 */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
	return "race:copy_in\n";
}

#define RECORD_BYTES 49152u /* not a power of two: shares pages' leaves */
#define RECORD_WORDS (RECORD_BYTES / 8)
#define RECORDS 60u

static struct volume vol;
static struct inode *file;
static atomic_uint turns;
static atomic_bool stop;
static atomic_uint mistakes;

static uint64_t word_of(uint64_t record, uint64_t turn)
{
	return turn << 16 | (record + 1);
}

/* Threads cannot use cmocka's assertions: note it and stop. */
static void mistake(const char *what, uint64_t record, uint64_t word)
{
	if (atomic_fetch_add(&mistakes, 1) < 5)
		fprintf(stderr, "%s: record %llu, word %llx\n", what,
			(unsigned long long)record, (unsigned long long)word);
	atomic_store(&stop, true);
}

static void check_record(const uint64_t *words, size_t n, uint64_t record)
{
	uint64_t first = n ? words[0] : 0;
	size_t i = 0;

	if (first && (first & 0xffff) != record + 1)
		mistake("foreign data", record, first);
	while (i < n && words[i] == first)
		i++;
	while (i < n && !words[i])
		i++;
	if (i < n)
		mistake("torn or old data", record, words[i]);
}

static void *aligned_buffer(void)
{
	void *p = blkdev_alloc(UG_ALIGN_UP(RECORD_BYTES, BLKDEV_ALIGN));

	if (!p)
		abort();
	return p;
}

struct worker {
	pthread_t thread;
	struct ug_prng prng;
	unsigned rounds;
};

static unsigned random_flags(struct worker *w)
{
	static const unsigned flags[] = { 0, FS_IO_NOCACHE, FS_IO_DIRECT };

	return flags[ug_prng_below(&w->prng, UG_ARRAY_SIZE(flags))];
}

static void *writer(void *arg)
{
	struct worker *w = arg;
	uint64_t *buf = aligned_buffer();

	for (unsigned i = 0; i < w->rounds && !atomic_load(&stop); i++) {
		uint64_t record = ug_prng_below(&w->prng, RECORDS);
		uint64_t word = word_of(record, atomic_fetch_add(&turns, 1));
		ssize_t n;

		for (size_t k = 0; k < RECORD_WORDS; k++)
			buf[k] = word;
		n = fs_write(&volume_req, file, buf, RECORD_BYTES,
			     record * RECORD_BYTES, random_flags(w));
		if (n != RECORD_BYTES)
			mistake("write failed", record, (uint64_t)n);
	}
	free(buf);
	return NULL;
}

static void *reader(void *arg)
{
	struct worker *w = arg;
	uint64_t *buf = aligned_buffer();

	while (!atomic_load(&stop)) {
		uint64_t record = ug_prng_below(&w->prng, RECORDS);
		struct fs_req req = volume_req;
		ssize_t n;

		req.nowait = ug_prng_below(&w->prng, 2);
		n = fs_read(&req, file, buf, RECORD_BYTES,
			    record * RECORD_BYTES, random_flags(w));
		if (n == -EAGAIN && req.nowait)
			continue;
		if (n < 0)
			mistake("read failed", record, (uint64_t)n);
		else
			check_record(buf, (size_t)n / 8, record);
	}
	free(buf);
	return NULL;
}

static void *cutter(void *arg)
{
	struct worker *w = arg;

	while (!atomic_load(&stop)) {
		struct fs_setattr set = {
			.valid = FS_SET_SIZE,
			.size = ug_prng_below(&w->prng,
					      RECORDS * RECORD_BYTES) &
				~7ull,
		};
		struct fs_attr attr;
		int err;

		if (ug_prng_below(&w->prng, 10) == 0)
			set.size %= 3000;
		err = fs_setattr(&volume_req, file, &set, &attr);
		if (err)
			mistake("truncate failed", 0, (uint64_t)err);
		usleep(2000);
	}
	return NULL;
}

static void *syncer(void *arg)
{
	struct worker *w = arg;

	while (!atomic_load(&stop)) {
		int err;

		switch (ug_prng_below(&w->prng, 3)) {
		case 0:
			err = file_writeback(file);
			break;
		case 1:
			err = file_writeback_many(&file, 1, true);
			break;
		default:
			err = fs_fsync(&volume_req, file, true);
		}
		if (err)
			mistake("write-back failed", 0, (uint64_t)err);
		usleep(500);
	}
	return NULL;
}

static void start(struct worker *w, void *(*fn)(void *), unsigned rounds)
{
	static uint64_t seed = 1;

	ug_prng_seed(&w->prng, seed++);
	w->rounds = rounds;
	assert_int_equal(pthread_create(&w->thread, NULL, fn, w), 0);
}

static void check_all(void)
{
	uint64_t *buf = aligned_buffer();

	for (uint64_t r = 0; r < RECORDS; r++) {
		ssize_t n = fs_read(&volume_req, file, buf, RECORD_BYTES,
				    r * RECORD_BYTES, FS_IO_NOCACHE);

		assert_true(n >= 0);
		check_record(buf, (size_t)n / 8, r);
	}
	free(buf);
	assert_int_equal(atomic_load(&mistakes), 0);
}

static void race(uint32_t bsize, unsigned rounds)
{
	struct volume_geometry g = { .bsize = bsize };
	struct worker writers[2], others[5];
	uint64_t id;

	volume_make(&vol, &g);
	/* The smallest pool there is: pages are taken away as well. */
	vol.opt.cache_bytes = 1;
	volume_mount(&vol);
	atomic_store(&stop, false);
	id = make_file(&vol, ROOT, "race");
	file = node(&vol, id);
	assert_int_equal(fs_open(&volume_req, file, O_RDWR), 0);
	start(&others[0], reader, 0);
	start(&others[1], reader, 0);
	start(&others[2], cutter, 0);
	start(&others[3], syncer, 0);
	start(&others[4], syncer, 0);
	start(&writers[0], writer, rounds);
	start(&writers[1], writer, rounds);
	pthread_join(writers[0].thread, NULL);
	pthread_join(writers[1].thread, NULL);
	atomic_store(&stop, true);
	for (unsigned i = 0; i < UG_ARRAY_SIZE(others); i++)
		pthread_join(others[i].thread, NULL);
	check_all();
	assert_int_equal(fs_fsync(&volume_req, file, false), 0);
	assert_int_equal(space_promised(vol.fs), 0);
	fs_release(file, O_RDWR);
	inode_put(file);
	volume_unmount(&vol);
	volume_fsck(&vol);
	volume_mount(&vol);
	file = node(&vol, id);
	check_all();
	inode_put(file);
	volume_unmount(&vol);
	volume_remove(&vol);
}

static void test_race_4096(void **state)
{
	race(4096, 400);
}

static void test_race_512(void **state)
{
	race(512, 300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_race_4096),
		cmocka_unit_test(test_race_512),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
