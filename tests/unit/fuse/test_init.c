/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * INIT: kernels of several ages, and what is agreed with them.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "fuse/policy.h"

#define OFFERED_61                                                        \
	(FUSE_ASYNC_READ | FUSE_ATOMIC_O_TRUNC | FUSE_EXPORT_SUPPORT |    \
	 FUSE_BIG_WRITES | FUSE_AUTO_INVAL_DATA | FUSE_DO_READDIRPLUS |   \
	 FUSE_READDIRPLUS_AUTO | FUSE_ASYNC_DIO | FUSE_WRITEBACK_CACHE |  \
	 FUSE_NO_OPEN_SUPPORT | FUSE_PARALLEL_DIROPS | FUSE_POSIX_LOCKS | \
	 FUSE_FLOCK_LOCKS | FUSE_ABORT_ERROR | FUSE_MAX_PAGES |           \
	 FUSE_CACHE_SYMLINKS | FUSE_NO_OPENDIR_SUPPORT |                  \
	 FUSE_EXPLICIT_INVAL_DATA | FUSE_HANDLE_KILLPRIV_V2 | FUSE_INIT_EXT)

static struct fuse_init_in kernel(uint32_t minor, uint64_t flags)
{
	return (struct fuse_init_in){
		.major = 7,
		.minor = minor,
		.max_readahead = 131072,
		.flags = (uint32_t)flags,
		.flags2 = (uint32_t)(flags >> 32),
	};
}

static struct fuse_wants wants_of(enum fuse_data_mode mode)
{
	struct fuse_policy_options opt;
	struct fuse_policy policy;
	struct fuse_wants wants;

	fuse_policy_defaults(&opt, mode);
	assert_int_equal(fuse_policy_init(&policy, &opt), 0);
	fuse_policy_wants(&policy, &wants);
	fuse_policy_fini(&policy);
	return wants;
}

static void test_never_flags(void **state)
{
	const uint64_t never = FUSE_WRITEBACK_CACHE | FUSE_AUTO_INVAL_DATA |
			       FUSE_CACHE_SYMLINKS | FUSE_NO_OPEN_SUPPORT |
			       FUSE_POSIX_LOCKS | FUSE_FLOCK_LOCKS |
			       FUSE_DONT_MASK;

	for (int mode = FUSE_DATA_CACHED; mode <= FUSE_DATA_DIRECT; mode++) {
		struct fuse_init_in in = kernel(45, UINT64_MAX);
		struct fuse_wants wants = wants_of(mode);
		struct fuse_init_out out;
		struct fuse_agreed agreed;

		assert_int_equal(fuse_init_answer(&in, &wants, &out, &agreed),
				 0);
		assert_int_equal(agreed.flags & never, 0);
		assert_int_equal(out.flags & never, 0);
		assert_true(agreed.flags & FUSE_EXPLICIT_INVAL_DATA);
		assert_true(agreed.flags & FUSE_ATOMIC_O_TRUNC);
		assert_true(agreed.flags & FUSE_HANDLE_KILLPRIV_V2);
	}
}

static void test_cached_mode(void **state)
{
	struct fuse_init_in in = kernel(38, OFFERED_61);
	struct fuse_wants wants = wants_of(FUSE_DATA_CACHED);
	struct fuse_init_out out;
	struct fuse_agreed agreed;

	memset(&out, 0xff, sizeof(out));
	assert_int_equal(fuse_init_answer(&in, &wants, &out, &agreed), 0);
	assert_int_equal(out.major, 7);
	assert_int_equal(out.minor, 38);
	assert_int_equal(out.max_write, 1 << 20);
	assert_int_equal(out.max_pages, 256);
	assert_int_equal(out.max_background, 65535);
	assert_int_equal(out.congestion_threshold, 65535);
	assert_int_equal(out.time_gran, 1);
	assert_int_equal(out.max_readahead, 131072);
	assert_int_equal(out.unused[6], 0);
	assert_true(out.flags & FUSE_ASYNC_READ);
	assert_true(out.flags & FUSE_DO_READDIRPLUS);
	assert_true(out.flags & FUSE_READDIRPLUS_AUTO);
	assert_true(out.flags & FUSE_MAX_PAGES);
}

static void test_direct_mode(void **state)
{
	struct fuse_init_in in =
		kernel(39, OFFERED_61 | FUSE_DIRECT_IO_ALLOW_MMAP);
	struct fuse_wants wants = wants_of(FUSE_DATA_DIRECT);
	struct fuse_init_out out;
	struct fuse_agreed agreed;

	assert_int_equal(fuse_init_answer(&in, &wants, &out, &agreed), 0);
	assert_false(out.flags & FUSE_ASYNC_READ);
	assert_false(out.flags & FUSE_DO_READDIRPLUS);
	assert_false(out.flags & FUSE_NO_OPENDIR_SUPPORT);
	assert_int_equal(out.flags2, FUSE_DIRECT_IO_ALLOW_MMAP >> 32);
	assert_true(agreed.flags & FUSE_DIRECT_IO_ALLOW_MMAP);
}

/* The kernel takes what it has not offered for something else. */
static void test_only_what_is_offered(void **state)
{
	struct fuse_init_in in = kernel(31, FUSE_ASYNC_READ);
	struct fuse_wants wants = wants_of(FUSE_DATA_CACHED);
	struct fuse_init_out out;
	struct fuse_agreed agreed;

	assert_int_equal(fuse_init_answer(&in, &wants, &out, &agreed), 0);
	assert_int_equal(out.flags, FUSE_ASYNC_READ);
	assert_int_equal(out.flags2, 0);

	/* Without the extension the second word is no flags. */
	in.flags2 = UINT32_MAX;
	wants = wants_of(FUSE_DATA_DIRECT);
	assert_int_equal(fuse_init_answer(&in, &wants, &out, &agreed), 0);
	assert_int_equal(agreed.flags, 0);
}

static void test_versions(void **state)
{
	struct fuse_wants wants = wants_of(FUSE_DATA_CACHED);
	struct fuse_init_in in = kernel(30, OFFERED_61);
	struct fuse_init_out out;
	struct fuse_agreed agreed;

	assert_int_equal(fuse_init_answer(&in, &wants, &out, &agreed), -EPROTO);
	in.major = 6;
	in.minor = 99;
	assert_int_equal(fuse_init_answer(&in, &wants, &out, &agreed), -EPROTO);
	in.major = 8;
	in.minor = 0;
	assert_int_equal(fuse_init_answer(&in, &wants, &out, &agreed), -EAGAIN);
	assert_int_equal(out.major, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_never_flags),
		cmocka_unit_test(test_cached_mode),
		cmocka_unit_test(test_direct_mode),
		cmocka_unit_test(test_only_what_is_offered),
		cmocka_unit_test(test_versions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
