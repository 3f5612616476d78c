/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_file.c - file data on real volumes, against an array of bytes.
 *
 * The seed of a random run is printed; UGFS_TEST_SEED repeats it.
 */
#include <fcntl.h>
#include <time.h>

#include "block/fault.h"
#include "fs/file.h"
#include "tests/unit/fs/names.h"

static struct volume vol;

/* ---- files with an oracle ---- */

struct file {
	struct inode *ip;
	uint64_t id;
	uint8_t *bytes; /* what a read must see */
	size_t size;
	size_t max;
};

static void *scratch; /* aligned, as large as the largest file and more */
#define SCRATCH_BYTES (8u << 20)

static void file_open_it(struct file *f)
{
	f->ip = node(&vol, f->id);
	assert_int_equal(fs_open(&volume_req, f->ip, O_RDWR), 0);
}

static void file_close_it(struct file *f)
{
	fs_release(f->ip, O_RDWR);
	inode_put(f->ip);
	f->ip = NULL;
}

static void file_init(struct file *f, uint64_t dir, const char *name,
		      size_t max)
{
	f->id = make_file(&vol, dir, name);
	f->bytes = calloc(1, max);
	f->size = 0;
	f->max = max;
	assert_non_null(f->bytes);
	file_open_it(f);
}

static void file_fini(struct file *f)
{
	file_close_it(f);
	free(f->bytes);
}

/* First without waiting, as the front end does. */
static ssize_t do_write(struct inode *ip, const void *buf, size_t len,
			uint64_t offset, unsigned flags)
{
	struct fs_req req = volume_req;
	ssize_t n;

	req.nowait = true;
	n = fs_write(&req, ip, buf, len, offset, flags);
	if (n != -EAGAIN)
		return n;
	req.nowait = false;
	return fs_write(&req, ip, buf, len, offset, flags);
}

static ssize_t do_read(struct inode *ip, void *buf, size_t len, uint64_t offset,
		       unsigned flags)
{
	struct fs_req req = volume_req;
	ssize_t n;

	req.nowait = true;
	n = fs_read(&req, ip, buf, len, offset, flags);
	if (n != -EAGAIN)
		return n;
	req.nowait = false;
	return fs_read(&req, ip, buf, len, offset, flags);
}

static void oracle_write(struct file *f, const void *buf, size_t len,
			 size_t offset)
{
	memcpy(f->bytes + offset, buf, len);
	f->size = UG_MAX(f->size, offset + len);
}

static void write_file(struct file *f, const void *buf, size_t len,
		       size_t offset, unsigned flags)
{
	assert_int_equal(do_write(f->ip, buf, len, offset, flags), len);
	oracle_write(f, buf, len, flags & FS_IO_APPEND ? f->size : offset);
}

static void set_size_of(struct inode *ip, uint64_t size)
{
	struct fs_setattr set = { .valid = FS_SET_SIZE, .size = size };
	struct fs_attr attr;

	assert_int_equal(fs_setattr(&volume_req, ip, &set, &attr), 0);
	assert_int_equal(attr.size, size);
}

static void set_size(struct file *f, size_t size)
{
	set_size_of(f->ip, size);
	if (size < f->size)
		memset(f->bytes + size, 0, f->size - size);
	f->size = size;
}

static void check_range(struct file *f, size_t len, size_t offset,
			unsigned flags)
{
	size_t want = offset >= f->size ? 0 : UG_MIN(len, f->size - offset);
	ssize_t n = do_read(f->ip, scratch, len, offset, flags);

	assert_int_equal(n, want);
	for (size_t i = 0; i < want; i++) {
		if (((uint8_t *)scratch)[i] == f->bytes[offset + i])
			continue;
		print_error("byte %zu is %02x, expected %02x (size %zu)\n",
			    offset + i, ((uint8_t *)scratch)[i],
			    f->bytes[offset + i], f->size);
		fail();
	}
}

static void check_file(struct file *f, unsigned flags)
{
	struct fs_attr attr;

	assert_int_equal(fs_getattr(&volume_req, f->ip, &attr), 0);
	assert_int_equal(attr.size, f->size);
	check_range(f, f->max, 0, flags);
}

static void begin(const struct volume_geometry *g)
{
	volume_make(&vol, g);
	volume_mount(&vol);
}

static void end(void)
{
	volume_unmount(&vol);
	volume_fsck(&vol);
	volume_remove(&vol);
}

/* Everything that was promised has been allocated or given back. */
static void assert_nothing_promised(void)
{
	assert_int_equal(space_promised(vol.fs), 0);
}

static void sync_all(void)
{
	assert_int_equal(fs_sync(vol.fs), 0);
	assert_nothing_promised();
}

/* ---- random operations ---- */

#define FILES 3

struct run {
	struct ug_prng prng;
	struct file files[FILES];
	unsigned io_flags; /* FS_IO_NOCACHE or 0 */
	uint32_t bsize;
};

static size_t random_offset(struct run *r, const struct file *f)
{
	size_t offset = ug_prng_below(&r->prng, f->max);

	switch (ug_prng_below(&r->prng, 4)) {
	case 0: /* near the beginning: stuffed files */
		return offset % 6000;
	case 1: /* at the end */
		return UG_MIN(f->size, f->max - 1);
	case 2:
		return offset & ~(size_t)4095;
	default:
		return offset;
	}
}

static size_t random_len(struct run *r, const struct file *f, size_t offset)
{
	static const size_t limits[] = { 16, 300, 5000, 70000, 1200000 };
	size_t limit = limits[ug_prng_below(&r->prng, UG_ARRAY_SIZE(limits))];
	size_t len = 1 + ug_prng_below(&r->prng, limit);

	if (ug_prng_below(&r->prng, 4) == 0)
		len = UG_ALIGN_UP(len, (size_t)4096);
	return UG_MIN(len, f->max - offset);
}

static void random_write(struct run *r, struct file *f)
{
	size_t offset = random_offset(r, f), len = random_len(r, f, offset);
	unsigned flags = r->io_flags;
	uint8_t *p = scratch;

	switch (ug_prng_below(&r->prng, 10)) {
	case 0:
		flags |= FS_IO_DIRECT;
		offset &= ~(size_t)(r->bsize - 1);
		break;
	case 1:
		flags |= FS_IO_APPEND;
		len = UG_MIN(len, f->max - f->size);
		break;
	case 2:
		flags |= FS_IO_DSYNC;
		break;
	default:
		break;
	}
	if (!len)
		return;
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(i % 251 + ug_prng_u64(&r->prng) % 3 + 1);
	write_file(f, scratch, len, offset, flags);
}

static void random_read(struct run *r, struct file *f)
{
	size_t offset = random_offset(r, f), len = random_len(r, f, offset);
	unsigned flags = r->io_flags;

	if (ug_prng_below(&r->prng, 5) == 0)
		flags |= FS_IO_DIRECT;
	check_range(f, len, offset, flags);
}

static void random_size(struct run *r, struct file *f)
{
	size_t size = random_offset(r, f);

	if (ug_prng_below(&r->prng, 5) == 0)
		size = 0;
	set_size(f, size);
}

static void remount(struct run *r)
{
	for (unsigned i = 0; i < FILES; i++)
		file_close_it(&r->files[i]);
	volume_unmount(&vol);
	volume_fsck(&vol);
	volume_mount(&vol);
	for (unsigned i = 0; i < FILES; i++)
		file_open_it(&r->files[i]);
}

static void random_step(struct run *r)
{
	struct file *f = &r->files[ug_prng_below(&r->prng, FILES)];
	unsigned what = (unsigned)ug_prng_below(&r->prng, 100);

	if (what < 45)
		random_write(r, f);
	else if (what < 75)
		random_read(r, f);
	else if (what < 85)
		random_size(r, f);
	else if (what < 90)
		assert_int_equal(file_writeback(f->ip), 0);
	else if (what < 93)
		assert_int_equal(fs_fsync(&volume_req, f->ip, what & 1), 0);
	else if (what < 96)
		/* As by a demotion of the glock. */
		assert_int_equal(file_writeback(f->ip), 0),
			file_drop_pages(f->ip);
	else if (what < 98)
		check_file(f, r->io_flags);
	else if (what < 99)
		sync_all();
	else if (ug_prng_below(&r->prng, 4) == 0)
		remount(r);
}

static uint64_t choose_seed(void)
{
	const char *s = getenv("UGFS_TEST_SEED");

	return s ? strtoull(s, NULL, 0) : (uint64_t)time(NULL);
}

static void random_run(uint32_t bsize, unsigned io_flags, unsigned steps)
{
	struct volume_geometry g = { .bsize = bsize, .size_mib = 96 };
	/* Beyond two pointer levels with 512-byte blocks. */
	static const size_t max[FILES] = { 3 << 20, 1 << 20, 40000 };
	struct run r = { .io_flags = io_flags, .bsize = bsize };
	uint64_t seed = choose_seed();

	print_message("bsize %u flags %x seed %llu\n", bsize, io_flags,
		      (unsigned long long)seed);
	ug_prng_seed(&r.prng, seed);
	begin(&g);
	for (unsigned i = 0; i < FILES; i++) {
		char name[] = { 'f', (char)('0' + i), 0 };

		file_init(&r.files[i], ROOT, name, max[i]);
	}
	for (unsigned i = 0; i < steps; i++)
		random_step(&r);
	remount(&r);
	for (unsigned i = 0; i < FILES; i++)
		check_file(&r.files[i], io_flags);
	assert_nothing_promised();
	for (unsigned i = 0; i < FILES; i++)
		file_fini(&r.files[i]);
	end();
}

static void test_random_512(void **state)
{
	random_run(512, 0, 400);
	random_run(512, FS_IO_NOCACHE, 400);
}

static void test_random_1024(void **state)
{
	random_run(1024, 0, 400);
	random_run(1024, FS_IO_NOCACHE, 400);
}

static void test_random_4096(void **state)
{
	random_run(4096, 0, 600);
	random_run(4096, FS_IO_NOCACHE, 600);
}

/* ---- stuffed files ---- */

/* Small files live in their dinode; one byte too many, and they do not. */
static void test_stuffed(void **state)
{
	struct volume_geometry g = { 0 };
	struct file f;
	uint32_t max;

	begin(&g);
	max = vol.fs->fs_geom.stuffed_max;
	file_init(&f, ROOT, "f", 10000);
	memset(scratch, 'a', 10000);
	write_file(&f, scratch, max, 0, 0);
	assert_int_equal(file_writeback(f.ip), 0);
	assert_int_equal(f.ip->i_height, 0);
	assert_int_equal(f.ip->i_blocks, 1);
	assert_nothing_promised();
	file_drop_pages(f.ip);
	check_file(&f, FS_IO_NOCACHE);
	check_file(&f, 0);

	/* The contents that are on disk only have to come along. */
	file_drop_pages(f.ip);
	memset(scratch, 'b', 10);
	write_file(&f, scratch, 10, max, 0);
	assert_true(attr_of(&vol, f.id).blocks_512 == 16);
	assert_int_equal(file_writeback(f.ip), 0);
	assert_int_equal(f.ip->i_height, 1);
	assert_int_equal(f.ip->i_blocks, 2);
	file_drop_pages(f.ip);
	check_file(&f, FS_IO_NOCACHE);
	check_file(&f, 0);

	/* Large in memory only, then small again: stays in the dinode. */
	set_size(&f, 0);
	assert_int_equal(f.ip->i_height, 0);
	memset(scratch, 'c', 9000);
	write_file(&f, scratch, 100, 0, 0);
	assert_int_equal(file_writeback(f.ip), 0);
	write_file(&f, scratch, 9000, 50, 0);
	set_size(&f, 70);
	assert_int_equal(file_writeback(f.ip), 0);
	assert_int_equal(f.ip->i_height, 0);
	assert_int_equal(f.ip->i_blocks, 1);
	assert_nothing_promised();
	file_drop_pages(f.ip);
	check_file(&f, 0);

	/* Grown by its size alone. */
	set_size(&f, 10000);
	assert_int_equal(file_writeback(f.ip), 0);
	assert_int_equal(f.ip->i_height, 1);
	check_file(&f, 0);
	set_size(&f, 0);
	set_size(&f, 9999);
	assert_int_equal(file_writeback(f.ip), 0);
	assert_int_equal(f.ip->i_blocks, 1);
	file_fini(&f);
	end();
}

/* ---- far away ---- */

static void far_write(struct inode *ip, uint64_t offset)
{
	char text[64];

	snprintf(text, sizeof(text), "here is byte %llu",
		 (unsigned long long)offset);
	assert_int_equal(do_write(ip, text, sizeof(text), offset, 0),
			 sizeof(text));
}

static void far_check(struct inode *ip, uint64_t offset, unsigned flags)
{
	static const char zeros[64];
	char text[64], *got = scratch;

	snprintf(text, sizeof(text), "here is byte %llu",
		 (unsigned long long)offset);
	assert_int_equal(do_read(ip, got, 64, offset, flags), 64);
	assert_memory_equal(got, text, strlen(text) + 1);
	assert_int_equal(do_read(ip, got, 64, offset - 64, flags), 64);
	assert_memory_equal(got, zeros, 64);
}

static void far_run(uint32_t bsize)
{
	static const uint64_t offsets[] = {
		(UINT64_C(4) << 30) + 5,
		UINT64_C(1) << 40,
		(UINT64_C(1) << 50) + 1234567,
		INT64_MAX - 64,
		/* After the tree has grown: low offsets and the middle. */
		100000,
		3000000,
		UINT64_C(1) << 45,
	};
	struct volume_geometry g = { .bsize = bsize };
	uint64_t id;
	struct inode *ip;

	begin(&g);
	id = make_file(&vol, ROOT, "far");
	ip = node(&vol, id);
	for (unsigned i = 0; i < UG_ARRAY_SIZE(offsets); i++) {
		far_write(ip, offsets[i]);
		if (i % 2)
			assert_int_equal(file_writeback(ip), 0);
	}
	assert_int_equal(do_write(ip, "xy", 2, INT64_MAX - 1, 0), 1);
	assert_int_equal(do_write(ip, "xy", 2, INT64_MAX, 0), -EFBIG);
	inode_put(ip);
	volume_unmount(&vol);
	volume_fsck(&vol);
	volume_mount(&vol);
	ip = node(&vol, id);
	assert_int_equal(attr_of(&vol, id).size, INT64_MAX);
	for (unsigned i = 0; i < UG_ARRAY_SIZE(offsets); i++) {
		far_check(ip, offsets[i], FS_IO_NOCACHE);
		far_check(ip, offsets[i], 0);
	}
	inode_put(ip);
	end();
}

static void test_far(void **state)
{
	far_run(4096);
	far_run(1024);
	far_run(512);
}

/* ---- no space ---- */

/*
 * Fill the volume; what was written before stays, what did not fit was
 * said, and after a removal there is room again.
 */
static void full_run(uint32_t bsize, size_t chunk)
{
	struct volume_geometry g = { .bsize = bsize, .size_mib = 40 };
	uint64_t id, total = 0, free_before;
	struct fs_statfs st;
	struct inode *ip;
	ssize_t n;

	begin(&g);
	id = make_file(&vol, ROOT, "full");
	ip = node(&vol, id);
	fs_statfs(vol.fs, &st);
	free_before = st.bfree;
	for (;;) {
		for (size_t i = 0; i < chunk / 8; i++)
			((uint64_t *)scratch)[i] = total / 8 + i;
		/* A short count first, then the error. */
		n = do_write(ip, scratch, chunk, total, 0);
		if (n < 0)
			break;
		total += (uint64_t)n;
	}
	assert_int_equal(n, -ENOSPC);
	/* All but what must be kept for pointer blocks and groups. */
	assert_true(total / bsize > free_before * 95 / 100);
	assert_int_equal(fs_fsync(&volume_req, ip, false), 0);
	assert_nothing_promised();
	/* No more is said to be available than one block may need. */
	fs_statfs(vol.fs, &st);
	assert_in_range(st.bavail, 0, 15);
	assert_true(st.bfree > st.bavail);
	inode_put(ip);
	volume_unmount(&vol);
	volume_fsck(&vol);
	volume_mount(&vol);
	ip = node(&vol, id);
	assert_int_equal(attr_of(&vol, id).size, total);
	for (uint64_t at = 0; at < total; at += chunk) {
		size_t want = UG_MIN(chunk, total - at);

		assert_int_equal(do_read(ip, scratch, want, at, 0), want);
		for (size_t i = 0; i < want / 8; i++)
			assert_int_equal(((uint64_t *)scratch)[i], at / 8 + i);
	}
	/* Overwriting needs no space. */
	assert_int_equal(do_write(ip, scratch, bsize, 0, 0), bsize);
	assert_int_equal(unlink_name(&vol, ROOT, "full"), 0);
	inode_put(ip);
	/* The space of a removed file is there for the next write. */
	id = make_file(&vol, ROOT, "again");
	ip = node(&vol, id);
	for (uint64_t at = 0; at < total / 2; at += chunk)
		assert_int_equal(do_write(ip, scratch, chunk, at, 0), chunk);
	inode_put(ip);
	end();
}

static void test_full(void **state)
{
	full_run(4096, 1 << 20);
	full_run(1024, 100 * 1024);
}

/* ---- journaled files ---- */

static void test_jdata(void **state)
{
	struct volume_geometry g = { .bsize = 1024 };
	uint64_t dir_id, seed = choose_seed();
	struct inode *dir;
	struct run r = { .bsize = 1024 };

	print_message("seed %llu\n", (unsigned long long)seed);
	ug_prng_seed(&r.prng, seed);
	begin(&g);
	dir_id = make_dir(&vol, ROOT, "d");
	dir = node(&vol, dir_id);
	dir->i_flags |= GFS2_DIF_INHERIT_JDATA;
	inode_put(dir);
	for (unsigned i = 0; i < FILES; i++) {
		char name[] = { 'f', (char)('0' + i), 0 };

		file_init(&r.files[i], dir_id, name, 300000u >> (3 * i));
		assert_true(inode_is_jdata(r.files[i].ip));
	}
	for (unsigned i = 0; i < 400; i++)
		random_step(&r);
	remount(&r);
	for (unsigned i = 0; i < FILES; i++)
		check_file(&r.files[i], 0);
	/* As plain data next: no old image may come over it (revokes). */
	for (unsigned i = 0; i < FILES; i++)
		file_fini(&r.files[i]);
	end();
}

/* Data of a journaled file that was synced is there after a crash. */
static void test_jdata_crash(void **state)
{
	struct volume_geometry g = { 0 };
	uint64_t dir_id;
	struct inode *dir;
	struct file f;

	begin(&g);
	dir_id = make_dir(&vol, ROOT, "d");
	dir = node(&vol, dir_id);
	dir->i_flags |= GFS2_DIF_INHERIT_JDATA;
	inode_put(dir);
	file_init(&f, dir_id, "f", 500000);
	memset(scratch, 'j', 400000);
	/* A block that looks like metadata must survive the log. */
	memcpy(scratch, "\x01\x16\x19\x70 looks like metadata", 25);
	write_file(&f, scratch, 400000, 0, 0);
	assert_int_equal(fs_fsync(&volume_req, f.ip, true), 0);
	file_close_it(&f);
	volume_crash(&vol);
	volume_mount(&vol);
	file_open_it(&f);
	check_file(&f, 0);
	file_fini(&f);
	end();
}

/* ---- crashes ---- */

/*
 * Synced data survives; what was written later may be missing, but no byte of
 * the file is anything but what was written there, or zero.
 */
static void test_crash(void **state)
{
	struct volume_geometry g = { 0 };
	struct fs_attr attr;
	struct file f;

	begin(&g);
	file_init(&f, ROOT, "f", 4 << 20);
	memset(scratch, 'x', 3 << 20);
	write_file(&f, scratch, 1 << 20, 0, 0);
	assert_int_equal(fs_fsync(&volume_req, f.ip, false), 0);
	write_file(&f, scratch, 1 << 20, 1 << 20, 0);
	assert_int_equal(file_writeback(f.ip), 0);
	write_file(&f, scratch, 1 << 20, 2 << 20, 0);
	file_close_it(&f);
	volume_crash(&vol);
	volume_mount(&vol);
	file_open_it(&f);
	assert_int_equal(fs_getattr(&volume_req, f.ip, &attr), 0);
	assert_true(attr.size >= 1 << 20 && attr.size <= 3 << 20);
	assert_int_equal(do_read(f.ip, scratch, 4 << 20, 0, 0), attr.size);
	for (size_t i = 0; i < attr.size; i++)
		assert_true(((char *)scratch)[i] == 'x');
	file_fini(&f);
	end();
}

/* ---- batches ---- */

#define SMALL_FILES 300

static void test_many_small_files(void **state)
{
	struct volume_geometry g = { 0 };
	static struct inode *ips[SMALL_FILES];
	struct journal_stats before, after;
	char name[16];

	begin(&g);
	for (unsigned i = 0; i < SMALL_FILES; i++) {
		size_t len = 1 + i * 50 % 9000;

		snprintf(name, sizeof(name), "f%u", i);
		ips[i] = node(&vol, make_file(&vol, ROOT, name));
		memset(scratch, 'a' + i % 26, len);
		assert_int_equal(do_write(ips[i], scratch, len, 0, 0), len);
	}
	journal_stats(vol.fs->fs_journal, &before);
	assert_int_equal(file_writeback_many(ips, SMALL_FILES, true), 0);
	journal_stats(vol.fs->fs_journal, &after);
	/* One transaction each. */
	assert_int_equal(after.transactions - before.transactions, SMALL_FILES);
	assert_nothing_promised();
	for (unsigned i = 0; i < SMALL_FILES; i++) {
		size_t len = 1 + i * 50 % 9000;

		assert_false(file_is_dirty(ips[i]));
		file_drop_pages(ips[i]);
		assert_int_equal(do_read(ips[i], scratch, 10000, 0, 0), len);
		for (size_t k = 0; k < len; k++)
			assert_true(((char *)scratch)[k] ==
				    (char)('a' + i % 26));
		inode_put(ips[i]);
	}
	end();
}

/* ---- rules ---- */

static void test_open_flags(void **state)
{
	struct volume_geometry g = { 0 };
	struct inode *ip;
	struct file f;

	begin(&g);
	file_init(&f, ROOT, "f", 100);
	write_file(&f, "hello", 5, 0, 0);
	ip = f.ip;
	ip->i_flags |= GFS2_DIF_IMMUTABLE;
	assert_int_equal(fs_open(&volume_req, ip, O_WRONLY), -EPERM);
	assert_int_equal(fs_open(&volume_req, ip, O_RDONLY), 0);
	fs_release(ip, O_RDONLY);
	ip->i_flags &= ~GFS2_DIF_IMMUTABLE;
	ip->i_flags |= GFS2_DIF_APPENDONLY;
	assert_int_equal(fs_open(&volume_req, ip, O_WRONLY), -EPERM);
	assert_int_equal(fs_open(&volume_req, ip, O_WRONLY | O_APPEND), 0);
	fs_release(ip, O_WRONLY | O_APPEND);
	assert_int_equal(
		fs_open(&volume_req, ip, O_WRONLY | O_APPEND | O_TRUNC),
		-EPERM);
	ip->i_flags &= ~GFS2_DIF_APPENDONLY;
	assert_int_equal(fs_open(&volume_req, ip, O_WRONLY | O_TRUNC), 0);
	fs_release(ip, O_WRONLY);
	assert_int_equal(attr_of(&vol, f.id).size, 0);
	ip = node(&vol, ROOT);
	assert_int_equal(fs_open(&volume_req, ip, O_RDWR), -EISDIR);
	inode_put(ip);
	file_fini(&f);
	end();
}

static void test_privileges(void **state)
{
	struct fs_req user = { .uid = 1000, .gid = 1000, .pid = 1 };
	struct fs_setattr set = { .valid = FS_SET_MODE, .mode = 06755 };
	struct volume_geometry g = { 0 };
	struct fs_attr attr;
	struct file f;

	begin(&g);
	file_init(&f, ROOT, "f", 100);
	assert_int_equal(fs_setattr(&volume_req, f.ip, &set, &attr), 0);
	write_file(&f, "a", 1, 0, 0);
	assert_int_equal(attr_of(&vol, f.id).mode & 07777, 06755);
	assert_int_equal(fs_write(&user, f.ip, "b", 1, 0, 0), 1);
	assert_int_equal(attr_of(&vol, f.id).mode & 07777, 0755);
	assert_int_equal(fs_setattr(&volume_req, f.ip, &set, &attr), 0);
	assert_int_equal(fs_write(&volume_req, f.ip, "b", 1, 0, FS_IO_KILLPRIV),
			 1);
	assert_int_equal(attr_of(&vol, f.id).mode & 07777, 0755);
	file_fini(&f);
	end();
}

/* Pages of a mapping never make a file longer. */
static void test_mapped_write(void **state)
{
	struct volume_geometry g = { 0 };
	struct file f;

	begin(&g);
	file_init(&f, ROOT, "f", 8192);
	write_file(&f, "0123456789", 10, 0, 0);
	memset(scratch, 'm', 8192);
	assert_int_equal(do_write(f.ip, scratch, 4096, 0, FS_IO_MAPPED), 4096);
	assert_int_equal(do_write(f.ip, scratch, 4096, 4096, FS_IO_MAPPED),
			 4096);
	memset(f.bytes, 'm', 10);
	check_file(&f, 0);
	set_size(&f, 8192);
	check_file(&f, 0);
	file_fini(&f);
	end();
}

/* What lies behind the end in the last block on disk does not come to light. */
static void test_tail_of_last_block(void **state)
{
	struct volume_geometry g = { 0 };
	struct file f;
	char *block = blkdev_alloc(4096);
	uint64_t pblock;
	struct buf *b;

	begin(&g);
	file_init(&f, ROOT, "f", 20000);
	memset(scratch, 'a', 5000);
	write_file(&f, scratch, 5000, 0, 0);
	assert_int_equal(fs_fsync(&volume_req, f.ip, false), 0);
	file_drop_pages(f.ip);
	assert_int_equal(inode_dibuf(f.ip, false, &b), 0);
	pblock = be64_get(gfs2_dinode_ptrs(b->b_data)[1]);
	buf_put(b);
	/* As a crash between data and size can leave it. */
	memset(block, 'z', 4096);
	memset(block, 'a', 5000 - 4096);
	assert_int_equal(blkdev_write(vol.dev, block, 4096, pblock * 4096, 0),
			 0);
	set_size(&f, 7000);
	check_file(&f, FS_IO_NOCACHE);
	write_file(&f, "end", 3, 15000, 0);
	check_file(&f, 0);
	assert_int_equal(fs_fsync(&volume_req, f.ip, false), 0);
	file_drop_pages(f.ip);
	check_file(&f, 0);
	free(block);
	file_fini(&f);
	end();
}

/* ---- bounds ---- */

#define BIG_BYTES (60ull << 20)
#define BIG_PIECE (1u << 20)

static void fill_words(uint64_t *words, uint64_t offset, size_t len)
{
	for (size_t i = 0; i < len / 8; i++)
		words[i] = offset / 8 + i;
}

static void check_words(const uint64_t *words, uint64_t offset, size_t len)
{
	for (size_t i = 0; i < len / 8; i++)
		assert_int_equal(words[i], offset / 8 + i);
}

/* A file much larger than the pool, written and read at its own pace. */
static void test_small_pool(void **state)
{
	struct volume_geometry g = { .size_mib = 128 };
	uint64_t bytes, dirty, limit = 64 * 64 * 4096;
	struct inode *ip;

	volume_make(&vol, &g);
	vol.opt.cache_bytes = 1; /* the smallest pool there is: 16 MiB */
	volume_mount(&vol);
	ip = node(&vol, make_file(&vol, ROOT, "big"));
	for (uint64_t at = 0; at < BIG_BYTES; at += BIG_PIECE) {
		fill_words(scratch, at, BIG_PIECE);
		assert_int_equal(do_write(ip, scratch, BIG_PIECE, at, 0),
				 BIG_PIECE);
		pagepool_stats(vol.fs, &bytes, &dirty);
		assert_true(bytes <= limit);
		assert_true(dirty <= limit / 2 + BIG_PIECE);
	}
	for (uint64_t at = 0; at < BIG_BYTES; at += BIG_PIECE) {
		assert_int_equal(do_read(ip, scratch, BIG_PIECE, at, 0),
				 BIG_PIECE);
		check_words(scratch, at, BIG_PIECE);
		pagepool_stats(vol.fs, &bytes, &dirty);
		assert_true(bytes <= limit);
	}
	/* Backwards, so that read-ahead is of no use. */
	for (uint64_t at = BIG_BYTES; at > 0; at -= 4096 * 17) {
		uint64_t from = at < 4096 * 17 ? 0 : at - 4096 * 17;

		assert_int_equal(do_read(ip, scratch, 4096, from, 0), 4096);
		check_words(scratch, from, 4096);
		if (!from)
			break;
	}
	inode_put(ip);
	end();
}

/* ---- a device that fails ---- */

static struct fault *fault;

static void no_wake(void *arg, enum fs_work work)
{
}

/* Without background work: what fails is what the test has asked for. */
static void mount_on_fault(void)
{
	static const struct fs_host_ops host = { .wake = no_wake };
	struct fs_params params = { .who = "test", .host = &host };
	struct blkdev *lower;
	char why[400];

	assert_int_equal(blkdev_open_file(vol.path, BLK_OPEN_EXCL, &lower), 0);
	assert_int_equal(fault_open(lower, &fault, &vol.dev), 0);
	params.dev = vol.dev;
	params.opt = vol.opt;
	assert_int_equal(fs_mount(&params, &vol.fs, why, sizeof(why)), 0);
}

static int unmount_fault(void)
{
	int err = fs_unmount(vol.fs);

	blkdev_close(vol.dev);
	return err;
}

/* All writes behind the root directory's dinode: data, not the log. */
static void fail_data(unsigned ops)
{
	struct fault_rule rule = {
		.ops = ops,
		.from_bytes = vol.fs->fs_root->i_addr * 4096,
		.to_bytes = vol.dev->size_bytes,
	};

	fault_set(fault, &rule);
}

static void test_failing_writes(void **state)
{
	struct volume_geometry g = { 0 };
	uint64_t promised;
	struct file f;

	volume_make(&vol, &g);
	mount_on_fault();
	file_init(&f, ROOT, "f", 3 << 20);
	fail_data(LAYER_WRITE);
	memset(scratch, 'n', 2 << 20);
	write_file(&f, scratch, 2 << 20, 0, 0);
	promised = space_promised(vol.fs);
	assert_true(promised >= 512);
	/* New blocks: nothing is mapped, nothing is lost. */
	assert_int_equal(file_writeback(f.ip), -EIO);
	assert_int_equal(f.ip->i_blocks, 1);
	assert_int_equal(space_promised(vol.fs), promised);
	check_file(&f, 0);
	check_file(&f, FS_IO_NOCACHE);
	fault_set(fault, NULL);
	/* The attempt that failed is reported once, although all is well. */
	assert_int_equal(fs_fsync(&volume_req, f.ip, false), -EIO);
	assert_int_equal(fs_fsync(&volume_req, f.ip, false), 0);
	assert_nothing_promised();

	/* Mapped blocks. */
	memset(scratch, 'o', 1 << 20);
	write_file(&f, scratch, 1 << 20, 500000, 0);
	fail_data(LAYER_WRITE);
	assert_int_equal(fs_fsync(&volume_req, f.ip, false), -EIO);
	fault_set(fault, NULL);
	assert_int_equal(fs_fsync(&volume_req, f.ip, false), 0);
	file_drop_pages(f.ip);

	/* Reading. */
	fail_data(LAYER_READ);
	assert_int_equal(do_read(f.ip, scratch, 4096, 0, 0), -EIO);
	assert_int_equal(do_read(f.ip, scratch, 4096, 0, FS_IO_NOCACHE), -EIO);
	assert_int_equal(do_write(f.ip, "x", 1, 100, 0), -EIO);
	fault_set(fault, NULL);
	check_file(&f, 0);
	file_fini(&f);
	assert_int_equal(unmount_fault(), 0);
	volume_fsck(&vol);
	volume_remove(&vol);
}

/* After a withdraw all is -EIO, and dirty pages are in nobody's way. */
static void test_withdrawn(void **state)
{
	struct volume_geometry g = { 0 };
	struct file f;

	volume_make(&vol, &g);
	mount_on_fault();
	file_init(&f, ROOT, "f", 1 << 20);
	memset(scratch, 'w', 1 << 20);
	write_file(&f, scratch, 1 << 20, 0, 0);
	fs_withdraw(vol.fs, "for the test");
	assert_int_equal(do_read(f.ip, scratch, 10, 0, 0), -EIO);
	assert_int_equal(do_write(f.ip, scratch, 10, 0, 0), -EIO);
	assert_int_equal(fs_fsync(&volume_req, f.ip, false), -EIO);
	assert_int_equal(file_writeback(f.ip), -EIO);
	file_fini(&f);
	assert_int_equal(unmount_fault(), -EIO);
	volume_mount(&vol);
	end();
}

/* What nobody can read any more is not written. */
static void test_temporary_file(void **state)
{
	struct volume_geometry g = { 0 };
	struct fs_statfs before, after;
	uint64_t writes;
	struct file f;

	volume_make(&vol, &g);
	mount_on_fault();
	fs_statfs(vol.fs, &before);
	file_init(&f, ROOT, "tmp", 1 << 20);
	memset(scratch, 't', 1 << 20);
	write_file(&f, scratch, 1 << 20, 0, 0);
	assert_int_equal(unlink_name(&vol, ROOT, "tmp"), 0);
	/* Open: it can be read. */
	fs_work_run(vol.fs, FS_WORK_WRITEBACK, true);
	check_file(&f, 0);
	write_file(&f, scratch, 1 << 20, 0, 0);
	assert_true(space_promised(vol.fs) == 0);
	set_size(&f, 0);
	write_file(&f, scratch, 1 << 20, 0, 0);
	file_fini(&f);
	writes = fault_seen(fault, LAYER_WRITE);
	fs_work_run(vol.fs, FS_WORK_WRITEBACK, true);
	fs_work_run(vol.fs, FS_WORK_EVICT, true);
	assert_int_equal(fault_seen(fault, LAYER_WRITE), writes);
	assert_nothing_promised();
	fs_work_run(vol.fs, FS_WORK_COMMIT, true);
	fs_statfs(vol.fs, &after);
	assert_int_equal(after.bfree, before.bfree);
	assert_int_equal(unmount_fault(), 0);
	volume_fsck(&vol);
	volume_remove(&vol);
}

/*
 * Scattered blocks on a volume whose groups are nearly full: a round gets
 * fewer places than it wants.
 */
static void test_scattered_when_full(void **state)
{
	struct volume_geometry g = { .bsize = 1024, .size_mib = 96 };
	uint64_t fill_id, id, at, total = 0;
	struct inode *fill, *ip;
	unsigned n = 0;

	begin(&g);
	fill_id = make_file(&vol, ROOT, "fill");
	fill = node(&vol, fill_id);
	memset(scratch, 'f', BIG_PIECE);
	while (do_write(fill, scratch, BIG_PIECE, total, 0) == BIG_PIECE)
		total += BIG_PIECE;
	assert_int_equal(file_writeback(fill), 0);
	set_size_of(fill, total - (3 << 20));
	id = make_file(&vol, ROOT, "sparse");
	ip = node(&vol, id);
	for (at = 0; n < 600; n++, at += 1 << 20) {
		((uint64_t *)scratch)[0] = at;
		if (do_write(ip, scratch, 1024, at, 0) != 1024)
			break;
	}
	assert_true(n > 200);
	assert_int_equal(fs_fsync(&volume_req, ip, false), 0);
	assert_nothing_promised();
	file_drop_pages(ip);
	for (unsigned i = 0; i < n; i++) {
		at = (uint64_t)i << 20;
		assert_int_equal(do_read(ip, scratch, 1024, at, FS_IO_NOCACHE),
				 1024);
		assert_int_equal(((uint64_t *)scratch)[0], at);
	}
	inode_put(ip);
	inode_put(fill);
	end();
}

/* The other order of data and transaction. */
static void test_data_writeback(void **state)
{
	struct volume_geometry g = { 0 };
	struct file f;

	volume_make(&vol, &g);
	vol.opt.data_writeback = true;
	mount_on_fault();
	file_init(&f, ROOT, "f", 3 << 20);
	memset(scratch, 'd', 2 << 20);
	write_file(&f, scratch, 2 << 20, 12345, 0);
	fail_data(LAYER_WRITE);
	assert_int_equal(file_writeback(f.ip), -EIO);
	assert_nothing_promised();
	check_file(&f, FS_IO_NOCACHE);
	fault_set(fault, NULL);
	assert_int_equal(file_writeback(f.ip), 0);
	file_drop_pages(f.ip);
	check_file(&f, FS_IO_NOCACHE);
	file_fini(&f);
	assert_int_equal(unmount_fault(), 0);
	volume_fsck(&vol);
	volume_remove(&vol);
}

static int set_up(void **state)
{
	scratch = blkdev_alloc(SCRATCH_BYTES);
	return scratch ? 0 : -1;
}

static int tear_down(void **state)
{
	free(scratch);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stuffed),
		cmocka_unit_test(test_random_4096),
		cmocka_unit_test(test_random_1024),
		cmocka_unit_test(test_random_512),
		cmocka_unit_test(test_far),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_jdata),
		cmocka_unit_test(test_jdata_crash),
		cmocka_unit_test(test_crash),
		cmocka_unit_test(test_many_small_files),
		cmocka_unit_test(test_open_flags),
		cmocka_unit_test(test_privileges),
		cmocka_unit_test(test_mapped_write),
		cmocka_unit_test(test_tail_of_last_block),
		cmocka_unit_test(test_small_pool),
		cmocka_unit_test(test_failing_writes),
		cmocka_unit_test(test_withdrawn),
		cmocka_unit_test(test_data_writeback),
		cmocka_unit_test(test_temporary_file),
		cmocka_unit_test(test_scattered_when_full),
	};

	/* One test alone. */
	cmocka_set_test_filter(getenv("UGFS_TEST_FILTER"));
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
