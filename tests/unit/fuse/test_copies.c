/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the kernel has copies of: the table's bound, and READs that come while
 * the kernel is being told. Which READ is admitted when: test_kpages.c.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "fuse/copies.h"

#define FILES_MAX 4u
#define NODE 7u

struct rig {
	struct copies *copies;
	struct copies_read read;
	pthread_mutex_t lock; /* guards resumed */
	pthread_cond_t changed;
	unsigned resumed;
	unsigned passes;
	unsigned attrs;
	/* In the second pass the READ is parked, and then that is ended. */
	bool gives_up;
};

static const struct krange page = { 4096, 8192 };

static void rig_resume(struct copies_read *read)
{
	struct rig *rig = ug_container_of(read, struct rig, read);

	pthread_mutex_lock(&rig->lock);
	rig->resumed++;
	pthread_cond_signal(&rig->changed);
	pthread_mutex_unlock(&rig->lock);
}

/* One attempt, with the lock. */
static int rig_read(struct rig *rig, uint64_t nodeid)
{
	assert_int_equal(
		copies_read_begin(rig->copies, nodeid, page, &rig->read), 0);
	return copies_read_admit(rig->copies, &rig->read, true, true);
}

/* The page is locked in the kernel: it is not dropped before it is read. */
static void read_in_second_pass(struct rig *rig)
{
	assert_int_equal(rig_read(rig, NODE), -EINPROGRESS);
	if (rig->gives_up) {
		copies_read_end(rig->copies, &rig->read);
		return;
	}
	pthread_mutex_lock(&rig->lock);
	while (!rig->resumed)
		pthread_cond_wait(&rig->changed, &rig->lock);
	pthread_mutex_unlock(&rig->lock);
	assert_int_equal(rig_read(rig, NODE), 0);
}

static int rig_drop_pages(void *arg, uint64_t nodeid, struct krange range)
{
	struct rig *rig = arg;

	assert_int_equal(nodeid, NODE);
	assert_int_equal(range.start, page.start);
	assert_int_equal(range.end, page.end);
	rig->passes++;
	if (rig->passes == 1)
		assert_int_equal(rig_read(rig, NODE), 0);
	else if (rig->passes == 2)
		read_in_second_pass(rig);
	return 0;
}

static int rig_drop_attr(void *arg, uint64_t nodeid)
{
	struct rig *rig = arg;

	/* The first time the task that makes the inode has not run yet. */
	return rig->attrs++ ? 0 : -ENOENT;
}

static bool rig_is_known(void *arg, uint64_t nodeid)
{
	return true;
}

static const struct copies_ops ops = {
	.drop_pages = rig_drop_pages,
	.drop_attr = rig_drop_attr,
	.is_known = rig_is_known,
	.resume = rig_resume,
};

static void rig_begin(struct rig *rig)
{
	*rig = (struct rig){ 0 };
	pthread_mutex_init(&rig->lock, NULL);
	pthread_cond_init(&rig->changed, NULL);
	assert_int_equal(copies_create(&ops, rig, FILES_MAX, &rig->copies), 0);
}

static void rig_end(struct rig *rig)
{
	copies_destroy(rig->copies);
	pthread_cond_destroy(&rig->changed);
	pthread_mutex_destroy(&rig->lock);
}

/* More files are open for writing than the table keeps of the others. */
static void test_writers_are_not_forgotten(void **state)
{
	struct copies_read read = { 0 };
	struct rig rig;

	rig_begin(&rig);
	for (unsigned i = 0; i < 3 * FILES_MAX; i++)
		assert_int_equal(copies_writer(rig.copies, 100 + i, true), 0);
	for (unsigned i = 0; i < 3 * FILES_MAX; i++) {
		assert_int_equal(
			copies_read_begin(rig.copies, 100 + i, page, &read), 0);
		assert_true(read.exclusive);
		copies_read_end(rig.copies, &read);
		copies_writer_gone(rig.copies, 100 + i);
	}
	assert_int_equal(copies_read_begin(rig.copies, 100, page, &read), 0);
	assert_false(read.exclusive);
	copies_read_end(rig.copies, &read);
	rig_end(&rig);
}

/* What is forgotten may have pages, and so may any unknown file then. */
static void test_forgets(void **state)
{
	struct rig rig;

	rig_begin(&rig);
	for (unsigned i = 0; i < FILES_MAX; i++)
		assert_int_equal(rig_read(&rig, 100 + i), 0);
	assert_false(copies_overlap(rig.copies, 99, page));
	assert_int_equal(rig_read(&rig, 200), 0);
	assert_true(copies_overlap(rig.copies, 100, page));
	assert_true(copies_overlap(rig.copies, 99, page));
	copies_none(rig.copies, 99);
	assert_false(copies_overlap(rig.copies, 99, page));
	rig_end(&rig);
}

/*
 * A READ in each of the first two passes of a recall: the one of the second is
 * parked until the notification, which waits for it, is late.
 */
static void test_recall_resumes_the_late(void **state)
{
	struct rig rig;

	rig_begin(&rig);
	assert_int_equal(rig_read(&rig, NODE), 0);
	copies_recall(rig.copies, NODE);
	assert_int_equal(rig.passes, 3);
	assert_int_equal(rig.resumed, 1);
	assert_int_equal(rig.attrs, 2);
	assert_false(copies_overlap(rig.copies, NODE, page));
	assert_true(copies_recalled_lately(rig.copies, NODE));
	assert_false(copies_recalled_lately(rig.copies, NODE + 1));
	/* The lock is about to go: not now, and nothing is parked. */
	assert_int_equal(rig_read(&rig, NODE), -EAGAIN);
	assert_false(copies_overlap(rig.copies, NODE, page));
	rig_end(&rig);
}

/* One that is parked and given up is not resumed by the end of the recall. */
static void test_parked_is_given_up(void **state)
{
	struct rig rig;

	rig_begin(&rig);
	rig.gives_up = true;
	assert_int_equal(rig_read(&rig, NODE), 0);
	copies_recall(rig.copies, NODE);
	assert_int_equal(rig.passes, 2);
	assert_int_equal(rig.resumed, 0);
	rig_end(&rig);
}

/* At the end of a session nothing is asked of the kernel. */
static void test_stopped(void **state)
{
	struct rig rig;

	rig_begin(&rig);
	assert_int_equal(rig_read(&rig, NODE), 0);
	copies_stop(rig.copies);
	copies_recall(rig.copies, NODE);
	assert_int_equal(rig.passes, 0);
	assert_int_equal(rig.attrs, 0);
	rig_end(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_writers_are_not_forgotten),
		cmocka_unit_test(test_forgets),
		cmocka_unit_test(test_recall_resumes_the_late),
		cmocka_unit_test(test_parked_is_given_up),
		cmocka_unit_test(test_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
