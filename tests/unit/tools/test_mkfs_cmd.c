/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_mkfs_cmd.c - the verb as a user meets it: exit status, words, and that
 * a refused device has not changed by a bit.
 *
 * Each run is a child process with its streams in files. Skipped (77) where
 * the folder for temporary files has no direct I/O.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "block/block.h"
#include "ondisk/codec.h"
#include "tools/mkfs.h"

#define ARGS_MAX 16
#define IMAGE_BYTES (20u << 20)

static char folder[64];
static char image[96];

struct outcome {
	int status;
	char out[4096];
	char err[4096];
};

static void read_all(int fd, char *text, size_t size)
{
	ssize_t n = pread(fd, text, size - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	close(fd);
}

static int temporary(void)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/stream-XXXXXX", folder);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	unlink(path);
	return fd;
}

/* "mkfs" and the words of line; IMAGE stands for the image's path. */
static void run(const char *line, struct outcome *o)
{
	static char copy[1024], name[] = "mkfs";
	char *argv[ARGS_MAX] = { name };
	int out = temporary(), err = temporary(), argc = 1, status;
	char *save, *word;
	pid_t pid;

	snprintf(copy, sizeof(copy), "%s", line);
	for (word = strtok_r(copy, " ", &save); word;
	     word = strtok_r(NULL, " ", &save))
		argv[argc++] = strcmp(word, "IMAGE") ? word : image;
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int null = open("/dev/null", O_RDONLY);

		dup2(null, STDIN_FILENO);
		dup2(out, STDOUT_FILENO);
		dup2(err, STDERR_FILENO);
		status = mkfs_main(argc, argv);
		fflush(NULL);
		_exit(status);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	o->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	read_all(out, o->out, sizeof(o->out));
	read_all(err, o->err, sizeof(o->err));
}

static void check_words(const char *text, const char *words)
{
	if (!strstr(text, words))
		fail_msg("expected \"%s\" in \"%s\"", words, text);
}

static int new_image(void **state)
{
	int fd = open(image, O_RDWR | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, IMAGE_BYTES), 0);
	close(fd);
	return 0;
}

static bool read_sb(struct gfs2_sb_info *sb)
{
	uint8_t block[512];
	int fd = open(image, O_RDONLY);

	assert_int_equal(pread(fd, block, 512, 65536), 512);
	close(fd);
	return gfs2_sb_decode(block, 512, sb, NULL, 0) == 0;
}

static void test_makes_a_volume(void **state)
{
	struct gfs2_sb_info sb;
	struct outcome o;

	run("-O -p lock_nolock -t clu:fs -U 11111111-2222-3333-4444-"
	    "555555555555 IMAGE",
	    &o);
	assert_string_equal(o.err, "");
	assert_int_equal(o.status, 0);
	check_words(o.out, "Journals:                  1\n");
	check_words(o.out, "Lock table:                \"clu:fs\"\n");
	check_words(o.out, "11111111-2222-3333-4444-555555555555");
	assert_true(read_sb(&sb));
	assert_string_equal(sb.lockproto, "lock_nolock");
	assert_string_equal(sb.locktable, "clu:fs");
	assert_int_equal(sb.uuid[0], 0x11);
	assert_int_equal(sb.fs_format, 1802);
}

static void test_quiet_is_quiet(void **state)
{
	struct gfs2_sb_info sb;
	struct outcome o;

	run("-q -O -t clu:fs -b 1024 -o format=1801 IMAGE 18000", &o);
	assert_int_equal(o.status, 0);
	assert_string_equal(o.out, "");
	assert_string_equal(o.err, "");
	assert_true(read_sb(&sb));
	assert_int_equal(sb.bsize, 1024);
	assert_int_equal(sb.fs_format, 1801);
}

static void test_uuids_differ(void **state)
{
	struct gfs2_sb_info first, second;
	struct outcome o;

	run("-q -O -p lock_nolock IMAGE", &o);
	assert_true(read_sb(&first));
	run("-q -O -p lock_nolock IMAGE", &o);
	assert_true(read_sb(&second));
	assert_memory_not_equal(first.uuid, second.uuid, 16);
}

/* Without -O somebody must say yes, and here is nobody. */
static void test_names_what_it_would_destroy(void **state)
{
	struct gfs2_sb_info first, second;
	struct outcome o;

	run("-q -O -t clu:fs IMAGE", &o);
	assert_true(read_sb(&first));
	run("-p lock_nolock IMAGE", &o);
	assert_int_equal(o.status, 1);
	check_words(o.out, "contains gfs2 with the label \"clu:fs\".");
	check_words(o.out, "This will destroy any data on ");
	check_words(o.err, "ugfs mkfs: nobody can be asked");
	check_words(o.err, "-O overwrites");
	assert_true(read_sb(&second));
	assert_memory_equal(&first.uuid, &second.uuid, 16);
}

static void test_names_a_partition_table(void **state)
{
	struct outcome o;
	int fd = open(image, O_WRONLY);

	/* A DOS table with one Linux partition. */
	assert_int_equal(
		pwrite(fd, "\0\0\0\0\x83\0\0\0\0\x08\0\0\0\x10\0\0", 16, 446),
		16);
	assert_int_equal(pwrite(fd, "\x55\xaa", 2, 510), 2);
	close(fd);
	run("-p lock_nolock IMAGE", &o);
	assert_int_equal(o.status, 1);
	check_words(o.out, "contains a partition table (dos).");
}

static void test_refuses_an_image_in_use(void **state)
{
	struct gfs2_sb_info sb;
	struct blkdev *dev;
	struct outcome o;

	assert_int_equal(blkdev_open_file(image, BLK_OPEN_EXCL, &dev), 0);
	run("-O -p lock_nolock IMAGE", &o);
	assert_int_equal(o.status, 1);
	check_words(o.err, "is in use: it is mounted, or another program");
	blkdev_close(dev);
	assert_false(read_sb(&sb));
}

static void check_refused(const char *line, const char *words)
{
	struct gfs2_sb_info sb;
	struct outcome o;

	run(line, &o);
	assert_int_equal(o.status, 1);
	check_words(o.err, words);
	assert_false(read_sb(&sb));
}

static void test_refusals(void **state)
{
	check_refused("-O IMAGE", "lock_dlm needs a lock table");
	check_refused("-O IMAGE", "Try \"ugfs mkfs --help\"");
	check_refused("-O -p lock_nolock", "no device was given");
	check_refused("-O -p lock_nolock /nonexistent/x",
		      "/nonexistent/x: No such file or directory");
	check_refused("-O -p lock_nolock /dev/null",
		      "/dev/null is neither a block device nor a regular");
	check_refused("-O -p lock_nolock /tmp", "/tmp");
	check_refused("-O -p lock_nolock -j 2 IMAGE",
		      "has 5120 blocks of 4096 bytes, expected at least 8192");
	check_refused("-O -p lock_nolock IMAGE 5121",
		      "size is 5121 blocks, but the device has only 5120");
	check_refused("-O -p lock_nolock -c 20 IMAGE",
		      "not enough for its own files");
}

static void test_help(void **state)
{
	struct outcome o;

	run("--help", &o);
	assert_int_equal(o.status, 0);
	check_words(o.out, "usage: ugfs mkfs [OPTIONS] DEVICE [BLOCKS]");
	for (const char *c = "bcDhJjKOopqrtUV"; *c; c++)
		check_words(o.out, (char[]){ '\n', ' ', ' ', '-', *c, 0 });
	run("-o help", &o);
	assert_int_equal(o.status, 0);
	check_words(o.out, "swidth=BYTES");
	run("-V", &o);
	assert_int_equal(o.status, 0);
	assert_string_equal(o.out, "ugfs " UGFS_VERSION "\n");
}

static void test_debug_shows_the_plan(void **state)
{
	struct outcome o;

	run("-D -O -p lock_nolock IMAGE", &o);
	assert_int_equal(o.status, 0);
	check_words(o.out, "group 0: addr 17, length 1, data0 18, data 2056\n");
	check_words(o.out, "journals: 1 of 2048 blocks, 2054 with their");
}

/* 1: this folder will do. */
static int have_direct_io(void)
{
	struct blkdev *dev;
	int err;

	new_image(NULL);
	err = blkdev_open_file(image, 0, &dev);
	if (err)
		return 0;
	blkdev_close(dev);
	return 1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_makes_a_volume, new_image),
		cmocka_unit_test_setup(test_quiet_is_quiet, new_image),
		cmocka_unit_test_setup(test_uuids_differ, new_image),
		cmocka_unit_test_setup(test_names_what_it_would_destroy,
				       new_image),
		cmocka_unit_test_setup(test_names_a_partition_table, new_image),
		cmocka_unit_test_setup(test_refuses_an_image_in_use, new_image),
		cmocka_unit_test_setup(test_refusals, new_image),
		cmocka_unit_test_setup(test_help, new_image),
		cmocka_unit_test_setup(test_debug_shows_the_plan, new_image),
	};
	const char *tmp = getenv("TMPDIR");
	int failed = 77;

	snprintf(folder, sizeof(folder), "%s/mkfs-cmd-XXXXXX",
		 tmp && strlen(tmp) < 40 ? tmp : "/tmp");
	if (!mkdtemp(folder))
		return 77;
	snprintf(image, sizeof(image), "%s/image", folder);
	if (have_direct_io())
		failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(image);
	rmdir(folder);
	return failed;
}
