/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_direct.c - direct writes over what has its place already go to the
 * device at the same time, and keep everybody else out.
 */
#include <fcntl.h>
#include <time.h>

#include "fs/inode.h"
#include "tests/unit/fs/names.h"

#define BLOCK 4096u
#define BLOCKS 4u
#define WAIT_SEC 60

static const struct blkdev_ops *file_ops;
static struct blkdev_ops hook_ops;
static void (*within_write)(void);
static struct inode *file;
static char memory[2][BLOCK] __attribute__((aligned(4096)));

static int hook_writev(struct blkdev *dev, const struct iovec *iov, int iovcnt,
		       uint64_t offset_bytes, unsigned flags)
{
	void (*fn)(void) = within_write;

	within_write = NULL;
	if (fn)
		fn();
	return file_ops->writev(dev, iov, iovcnt, offset_bytes, flags);
}

static ssize_t write_block(unsigned block, int byte, unsigned io_flags)
{
	static char other[BLOCK] __attribute__((aligned(4096)));
	char *from = block ? other : memory[0];

	memset(from, byte, BLOCK);
	return fs_write(&volume_req, file, from, BLOCK, block * BLOCK,
			io_flags);
}

static void assert_block(unsigned block, int byte)
{
	assert_int_equal(fs_read(&volume_req, file, memory[1], BLOCK,
				 block * BLOCK, FS_IO_DIRECT),
			 BLOCK);
	for (unsigned i = 0; i < BLOCK; i++)
		assert_int_equal(memory[1][i], byte);
}

static void begin(struct volume *v)
{
	volume_make(v, &(struct volume_geometry){ 0 });
	volume_mount(v);
	file_ops = v->dev->ops;
	hook_ops = *file_ops;
	hook_ops.writev = hook_writev;
	v->dev->ops = &hook_ops;
	file = node(v, make_file(v, ROOT, "file"));
	assert_int_equal(fs_open(&volume_req, file, O_RDWR), 0);
	for (unsigned i = 0; i < BLOCKS; i++)
		assert_int_equal(write_block(i, '0', 0), BLOCK);
	assert_int_equal(fs_sync(v->fs), 0);
}

static void end(struct volume *v)
{
	assert_null(within_write);
	fs_release(file, O_RDWR);
	inode_put(file);
	volume_unmount(v);
	volume_fsck(v);
	volume_remove(v);
}

/* ---- another writer ---- */

static void *second_main(void *arg)
{
	return (void *)write_block(1, 'b', FS_IO_DIRECT);
}

static void second_writer(void)
{
	struct timespec until;
	pthread_t thread;
	void *n;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WAIT_SEC;
	assert_int_equal(pthread_create(&thread, NULL, second_main, NULL), 0);
	assert_int_equal(pthread_timedjoin_np(thread, &n, &until), 0);
	assert_int_equal((ssize_t)n, BLOCK);
}

static void test_together(void **state)
{
	struct volume v;

	begin(&v);
	within_write = second_writer;
	assert_int_equal(write_block(0, 'a', FS_IO_DIRECT), BLOCK);
	assert_block(0, 'a');
	assert_block(1, 'b');
	assert_block(2, '0');
	end(&v);
}

/* ---- others ---- */

static void others_are_kept_out(void)
{
	static const struct fs_setattr empty = { .valid = FS_SET_SIZE };
	const struct fs_req nowait = { .nowait = true };
	struct fs_attr attr;

	assert_int_equal(fs_read(&nowait, file, memory[1], BLOCK, 0, 0),
			 -EAGAIN);
	assert_int_equal(fs_write(&nowait, file, memory[1], BLOCK, 0, 0),
			 -EAGAIN);
	assert_int_equal(fs_setattr(&nowait, file, &empty, &attr), -EAGAIN);
}

static void test_exclusive(void **state)
{
	struct volume v;

	begin(&v);
	within_write = others_are_kept_out;
	assert_int_equal(write_block(0, 'a', FS_IO_DIRECT), BLOCK);
	assert_block(0, 'a');
	end(&v);
}

/* What is dirty in memory goes first, and is not read from there after. */
static void test_over_pages(void **state)
{
	struct volume v;

	begin(&v);
	assert_int_equal(write_block(2, 'p', 0), BLOCK);
	assert_int_equal(write_block(2, 'd', FS_IO_DIRECT), BLOCK);
	assert_block(2, 'd');
	assert_int_equal(
		fs_read(&volume_req, file, memory[1], BLOCK, 2 * BLOCK, 0),
		BLOCK);
	assert_int_equal(memory[1][0], 'd');
	/* Not in place: behind the end, and in a hole. */
	assert_int_equal(write_block(BLOCKS + 2, 'e', FS_IO_DIRECT), BLOCK);
	assert_int_equal(write_block(BLOCKS + 1, 'h', FS_IO_DIRECT), BLOCK);
	assert_block(BLOCKS, 0);
	assert_block(BLOCKS + 1, 'h');
	assert_block(BLOCKS + 2, 'e');
	end(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_together),
		cmocka_unit_test(test_exclusive),
		cmocka_unit_test(test_over_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
