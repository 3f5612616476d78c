/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the kernel may keep: kinds of handles, flags of reads and writes, and
 * the table of files with writers and pages against a plain model.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "fuse/policy.h"

static struct fuse_policy policy_begin(enum fuse_data_mode mode,
				       uint64_t kernel_flags)
{
	struct fuse_agreed agreed = { .flags = kernel_flags };
	struct fuse_policy_options opt;
	struct fuse_policy policy;

	fuse_policy_defaults(&opt, mode);
	assert_int_equal(fuse_policy_init(&policy, &opt), 0);
	fuse_policy_agreed(&policy, "test", &agreed);
	return policy;
}

static bool opens_direct(struct fuse_policy *policy, uint64_t nodeid, int flags,
			 uint64_t *fh)
{
	struct fuse_open_out out;

	fuse_policy_open(policy, nodeid, flags, &out);
	assert_true(out.open_flags & FOPEN_KEEP_CACHE);
	assert_false(out.open_flags & (FOPEN_NOFLUSH | FOPEN_CACHE_DIR));
	assert_int_not_equal(out.fh, 0);
	if (fh)
		*fh = out.fh;
	return out.open_flags & FOPEN_DIRECT_IO;
}

static void test_cached_handles(void **state)
{
	struct fuse_policy policy = policy_begin(FUSE_DATA_CACHED, 0);

	assert_false(opens_direct(&policy, 5, O_RDONLY, NULL));
	assert_false(opens_direct(&policy, 5, O_RDWR, NULL));
	assert_false(opens_direct(&policy, 5, O_RDWR | O_DIRECT, NULL));
	fuse_policy_fini(&policy);
}

static void test_direct_handles(void **state)
{
	struct fuse_policy policy =
		policy_begin(FUSE_DATA_DIRECT, FUSE_DIRECT_IO_ALLOW_MMAP);
	uint64_t reader, writer, writer2;

	/* Readers are cached until somebody writes. */
	assert_false(opens_direct(&policy, 5, O_RDONLY, &reader));
	assert_true(opens_has_pages(policy.opens, 5));
	assert_true(opens_direct(&policy, 5, O_WRONLY, &writer));
	assert_true(opens_direct(&policy, 5, O_RDWR, &writer2));
	assert_true(opens_direct(&policy, 5, O_RDONLY, NULL));
	assert_false(opens_direct(&policy, 6, O_RDONLY, NULL));

	fuse_policy_release(&policy, 5, reader);
	fuse_policy_release(&policy, 5, writer);
	assert_true(opens_direct(&policy, 5, O_RDONLY, NULL));
	fuse_policy_release(&policy, 5, writer2);
	assert_false(opens_direct(&policy, 5, O_RDONLY, NULL));
	fuse_policy_fini(&policy);
}

/* Before 6.6 nothing keeps a node coherent with itself: no page at all. */
static void test_direct_on_old_kernels(void **state)
{
	struct fuse_policy policy = policy_begin(FUSE_DATA_DIRECT, 0);

	assert_true(opens_direct(&policy, 5, O_RDONLY, NULL));
	fuse_policy_fini(&policy);
}

static void test_fh_keeps_access(void **state)
{
	struct fuse_policy policy = policy_begin(FUSE_DATA_CACHED, 0);
	const int modes[] = { O_RDONLY, O_WRONLY, O_RDWR };
	uint64_t fh;

	for (unsigned i = 0; i < UG_ARRAY_SIZE(modes); i++) {
		opens_direct(&policy, 5, modes[i] | O_APPEND | O_TRUNC, &fh);
		assert_int_equal(fuse_fh_flags(fh), modes[i]);
	}
	fuse_policy_fini(&policy);
}

static void test_read_flags(void **state)
{
	struct fuse_policy cached = policy_begin(FUSE_DATA_CACHED, 0);
	struct fuse_policy direct =
		policy_begin(FUSE_DATA_DIRECT, FUSE_DIRECT_IO_ALLOW_MMAP);
	struct fuse_read_in in = { .read_flags = FUSE_READ_LOCKOWNER };

	/* Who keeps the page: in cached mode the kernel. */
	assert_int_equal(fuse_policy_read_flags(&cached, &in), FS_IO_NOCACHE);
	assert_int_equal(fuse_policy_read_flags(&direct, &in), 0);
	in.flags = O_DIRECT;
	assert_int_equal(fuse_policy_read_flags(&direct, &in), FS_IO_DIRECT);
	in.read_flags = 0;
	in.flags = 0;
	assert_int_equal(fuse_policy_read_flags(&direct, &in), FS_IO_NOCACHE);
	fuse_policy_fini(&cached);
	fuse_policy_fini(&direct);
}

static void test_write_flags(void **state)
{
	struct fuse_policy cached = policy_begin(FUSE_DATA_CACHED, 0);
	struct fuse_policy direct =
		policy_begin(FUSE_DATA_DIRECT, FUSE_DIRECT_IO_ALLOW_MMAP);
	struct fuse_write_in in = { .flags = O_WRONLY | O_APPEND | O_SYNC };

	/* The kernel does these itself for what it caches. */
	assert_int_equal(fuse_policy_write_flags(&cached, &in), FS_IO_NOCACHE);
	in.fh = FUSE_FH_OPEN | FUSE_FH_WRITE | FUSE_FH_DIRECT;
	assert_int_equal(fuse_policy_write_flags(&direct, &in),
			 FS_IO_APPEND | FS_IO_SYNC);
	in.flags = O_WRONLY | O_DSYNC;
	assert_int_equal(fuse_policy_write_flags(&direct, &in), FS_IO_DSYNC);

	/* Of a mapping: through whatever handle the kernel found. */
	in.flags = O_WRONLY | O_APPEND | O_SYNC;
	in.write_flags = FUSE_WRITE_CACHE;
	assert_int_equal(fuse_policy_write_flags(&direct, &in),
			 FS_IO_MAPPED | FS_IO_NOCACHE);
	in.write_flags = FUSE_WRITE_KILL_SUIDGID;
	in.flags = O_WRONLY;
	assert_int_equal(fuse_policy_write_flags(&direct, &in), FS_IO_KILLPRIV);
	fuse_policy_fini(&cached);
	fuse_policy_fini(&direct);
}

/* ---- opens against a model ---- */

#define NODES 40u

struct model {
	unsigned writers;
	bool pages;
};

static void model_step(struct opens *opens, struct model *model,
		       struct ug_prng *prng)
{
	unsigned node = (unsigned)ug_prng_below(prng, NODES);
	struct model *m = &model[node];

	switch (ug_prng_below(prng, 5)) {
	case 0:
		opens_begin_write(opens, node);
		m->writers++;
		break;
	case 1:
		if (m->writers) {
			opens_end_write(opens, node);
			m->writers--;
		}
		break;
	case 2:
		opens_note_pages(opens, node);
		m->pages = true;
		break;
	case 3:
		assert_int_equal(opens_take_pages(opens, node), m->pages);
		m->pages = false;
		break;
	default:
		assert_int_equal(opens_has_writer(opens, node), m->writers > 0);
		assert_int_equal(opens_has_pages(opens, node), m->pages);
	}
}

static void test_opens_model(void **state)
{
	struct model model[NODES] = { 0 };
	struct opens *opens;
	struct ug_prng prng;

	ug_prng_seed(&prng, 7);
	assert_int_equal(opens_create(NODES, &opens), 0);
	for (unsigned i = 0; i < 100000; i++)
		model_step(opens, model, &prng);
	opens_destroy(opens);
}

/* Bounded memory: what is forgotten may have pages, never may not. */
static void test_opens_forget_safely(void **state)
{
	struct opens *opens;

	assert_int_equal(opens_create(10, &opens), 0);
	assert_false(opens_has_pages(opens, 1));
	opens_begin_write(opens, 1000);
	for (uint64_t node = 0; node < 100; node++)
		opens_note_pages(opens, node);
	for (uint64_t node = 0; node < 100; node++)
		assert_true(opens_has_pages(opens, node));
	/* A file with writers is not forgotten, however long ago. */
	assert_true(opens_has_writer(opens, 1000));
	opens_end_write(opens, 1000);
	assert_false(opens_has_writer(opens, 1000));
	opens_destroy(opens);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cached_handles),
		cmocka_unit_test(test_direct_handles),
		cmocka_unit_test(test_direct_on_old_kernels),
		cmocka_unit_test(test_fh_keeps_access),
		cmocka_unit_test(test_read_flags),
		cmocka_unit_test(test_write_flags),
		cmocka_unit_test(test_opens_model),
		cmocka_unit_test(test_opens_forget_safely),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
