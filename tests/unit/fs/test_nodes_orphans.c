/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_nodes_orphans.c - inodes without a name whose last user dies, or cannot
 * know that it is the last one: they are released, and no block is lost.
 *
 * Usage: test_nodes_orphans [seed [pattern]]
 */
#include <fcntl.h>
#include <unistd.h>

#include "fs/rgrp.h"
#include "tests/unit/fs/nodecalls.h"

#define BYTES 300000u

static uint64_t seed = 1;

static void begin(struct nodes *n, unsigned count)
{
	nodes_make(n, seed, 0);
	for (unsigned i = 0; i < count; i++)
		nodes_mount(n, i);
}

static uint64_t free_blocks(struct nodes *n, unsigned i)
{
	uint64_t total, free_, dinodes;

	nodes_settle(n);
	assert_int_equal(fs_sync(n->node[i].fs), 0);
	assert_int_equal(rgrps_sum(n->node[i].fs, &total, &free_, &dinodes), 0);
	return free_;
}

static void wait_for_free(struct nodes *n, unsigned i, uint64_t expected)
{
	uint64_t now = free_blocks(n, i);

	for (unsigned k = 0; now != expected && k < 3000; k++) {
		usleep(10000);
		now = free_blocks(n, i);
	}
	assert_int_equal(now, expected);
}

static uint64_t put_file(struct fs *fs, const char *name)
{
	static char data[BYTES];
	struct fs_entry e;

	memset(data, 'x', sizeof(data));
	assert_int_equal(make_at(fs, ROOT, name, S_IFREG | 0644, &e), 0);
	write_at(fs, e.nodeid, data, sizeof(data), 0, 0);
	return e.nodeid;
}

static struct inode *open_file(struct fs *fs, const char *name)
{
	struct inode *ip = get(fs, walk(fs, ROOT, name));

	assert_int_equal(fs_open(&volume_req, ip, O_RDWR), 0);
	return ip;
}

static void sync_node(struct nodes *n, unsigned i)
{
	assert_int_equal(fs_sync(n->node[i].fs), 0);
}

/* The directory's own block, so that what is counted are the files'. */
static uint64_t start(struct nodes *n, unsigned count)
{
	begin(n, count);
	put_file(n->node[0].fs, "stays");
	return free_blocks(n, 0);
}

/* Unlinked by A, open on B alone, which dies. */
static void test_user_dies(void **state)
{
	struct nodes n;
	uint64_t before = start(&n, 3), id;

	id = put_file(n.node[0].fs, "f");
	inode_put(open_file(n.node[1].fs, "f"));
	assert_int_equal(unlink_at(n.node[0].fs, ROOT, "f"), 0);
	fs_forget(n.node[0].fs, id, 1);
	sync_node(&n, 0);
	assert_true(free_blocks(&n, 2) < before);
	nodes_kill(&n, 1);
	wait_for_free(&n, 2, before);
	nodes_end(&n);
}

/* B has unlinked it and has it open. It dies, and comes back. */
static void test_unlinker_dies(void **state)
{
	struct nodes n;
	uint64_t before = start(&n, 3);

	put_file(n.node[1].fs, "f");
	inode_put(open_file(n.node[1].fs, "f"));
	assert_int_equal(unlink_at(n.node[1].fs, ROOT, "f"), 0);
	sync_node(&n, 1);
	nodes_kill(&n, 1);
	nodes_mount(&n, 1);
	wait_for_free(&n, 1, before);
	nodes_end(&n);
}

/* B and C have it open. B dies; C reads on, and its close releases it. */
static void test_other_user_stays(void **state)
{
	static char data[BYTES + BLKDEV_ALIGN]
		__attribute__((aligned(BLKDEV_ALIGN)));
	struct nodes n;
	uint64_t before = start(&n, 3), id;
	struct inode *c_ip;

	id = put_file(n.node[0].fs, "f");
	inode_put(open_file(n.node[1].fs, "f"));
	c_ip = open_file(n.node[2].fs, "f");
	assert_int_equal(unlink_at(n.node[0].fs, ROOT, "f"), 0);
	fs_forget(n.node[0].fs, id, 1);
	sync_node(&n, 0);
	nodes_kill(&n, 1);
	nodes_settle(&n);
	assert_int_equal(fs_read(&volume_req, c_ip, data, BYTES, 0, 0), BYTES);
	assert_int_equal(data[BYTES - 1], 'x');
	assert_true(free_blocks(&n, 0) < before);
	fs_release(c_ip, O_RDWR);
	inode_put(c_ip);
	wait_for_free(&n, 0, before);
	nodes_end(&n);
}

/*
 * Many, without names on disk, freed in part when B dies in the middle of
 * releasing them.
 */
static void test_releaser_dies(void **state)
{
	struct nodes n;
	uint64_t before = start(&n, 3), ids[24];
	char name[8];

	for (unsigned i = 0; i < 24; i++) {
		sprintf(name, "f%u", i);
		ids[i] = put_file(n.node[1].fs, name);
		assert_int_equal(unlink_at(n.node[1].fs, ROOT, name), 0);
	}
	sync_node(&n, 1);
	for (unsigned i = 0; i < 24; i++)
		fs_forget(n.node[1].fs, ids[i], 1);
	nodes_kill(&n, 1);
	wait_for_free(&n, 0, before);
	nodes_end(&n);
}

/* A node is gone when the next one dies that was to clean up after it. */
static void test_two_die(void **state)
{
	struct nodes n;
	uint64_t before = start(&n, 3), id;

	id = put_file(n.node[0].fs, "f");
	inode_put(open_file(n.node[1].fs, "f"));
	inode_put(open_file(n.node[2].fs, "f"));
	assert_int_equal(unlink_at(n.node[0].fs, ROOT, "f"), 0);
	fs_forget(n.node[0].fs, id, 1);
	sync_node(&n, 0);
	nodes_kill(&n, 1);
	nodes_kill(&n, 2);
	wait_for_free(&n, 0, before);
	nodes_end(&n);
}

/* ---- nobody dies, but not everybody hears ---- */

static void close_file(struct inode *ip, int flags)
{
	fs_release(ip, flags);
	inode_put(ip);
}

/* Who has it open last is mounted read-only, and cannot release it. */
static void test_reader_closes_last(void **state)
{
	struct nodes n;
	uint64_t before = start(&n, 1), id;
	struct inode *ip;

	nodes_mount_readonly(&n, 1);
	id = put_file(n.node[0].fs, "f");
	ip = get(n.node[1].fs, walk(n.node[1].fs, ROOT, "f"));
	assert_int_equal(fs_open(&volume_req, ip, O_RDONLY), 0);
	assert_int_equal(unlink_at(n.node[0].fs, ROOT, "f"), 0);
	fs_forget(n.node[0].fs, id, 1);
	assert_true(free_blocks(&n, 0) < before);
	close_file(ip, O_RDONLY);
	wait_for_free(&n, 0, before);
	nodes_end(&n);
}

/*
 * A has it open when it takes the last link, and dies with that. B has had it
 * open all the time, alone in the end, and nobody has told it anything.
 */
static void test_survivor_closes_last(void **state)
{
	struct nodes n;
	uint64_t before = start(&n, 2);
	struct inode *ip;

	put_file(n.node[0].fs, "f");
	ip = open_file(n.node[1].fs, "f");
	inode_put(open_file(n.node[0].fs, "f"));
	assert_int_equal(unlink_at(n.node[0].fs, ROOT, "f"), 0);
	sync_node(&n, 0);
	nodes_kill(&n, 0);
	assert_true(free_blocks(&n, 1) < before);
	close_file(ip, O_RDWR);
	wait_for_free(&n, 1, before);
	nodes_end(&n);
}

static void make_near(struct fs *fs, uint64_t goal, const char *name,
		      struct fs_entry *e)
{
	struct inode *root = get(fs, ROOT);

	root->i_goal = goal - 1;
	inode_put(root);
	assert_int_equal(make_at(fs, ROOT, name, S_IFREG | 0644, e), 0);
}

/*
 * A makes files until one is where another one was, which B remembers, and dies
 * with that one open and without a name.
 */
static void orphan_in_place_of(struct nodes *n, uint64_t id)
{
	struct fs_entry e = { 0 };
	uint64_t before;
	char name[8];

	for (unsigned i = 0; i < 1000 && e.nodeid != id; i++) {
		sprintf(name, "g%u", i);
		make_near(n->node[0].fs, id, name, &e);
	}
	assert_int_equal(e.nodeid, id);
	sync_node(n, 0);
	before = free_blocks(n, 0);
	inode_put(open_file(n->node[0].fs, name));
	assert_int_equal(unlink_at(n->node[0].fs, ROOT, name), 0);
	sync_node(n, 0);
	nodes_kill(n, 0);
	for (unsigned i = 0; i < 3000 && free_blocks(n, 1) <= before; i++)
		usleep(10000);
	assert_true(free_blocks(n, 1) > before);
	nodes_end(n);
}

/* B has not looked at the old one since. */
static void test_remembered_by_number(void **state)
{
	struct nodes n;
	uint64_t before = start(&n, 2), id;

	id = put_file(n.node[0].fs, "f");
	walk(n.node[1].fs, ROOT, "f");
	assert_int_equal(unlink_at(n.node[0].fs, ROOT, "f"), 0);
	fs_forget(n.node[0].fs, id, 1);
	wait_for_free(&n, 0, before);
	orphan_in_place_of(&n, id);
}

/* B has released the old one. */
static void test_remembered_as_gone(void **state)
{
	struct nodes n;
	uint64_t before = start(&n, 2), id;
	struct inode *ip;

	id = put_file(n.node[0].fs, "f");
	ip = open_file(n.node[1].fs, "f");
	assert_int_equal(unlink_at(n.node[0].fs, ROOT, "f"), 0);
	fs_forget(n.node[0].fs, id, 1);
	free_blocks(&n, 0);
	close_file(ip, O_RDWR);
	wait_for_free(&n, 1, before);
	orphan_in_place_of(&n, id);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_user_dies),
		cmocka_unit_test(test_unlinker_dies),
		cmocka_unit_test(test_other_user_stays),
		cmocka_unit_test(test_releaser_dies),
		cmocka_unit_test(test_two_die),
		cmocka_unit_test(test_reader_closes_last),
		cmocka_unit_test(test_survivor_closes_last),
		cmocka_unit_test(test_remembered_by_number),
		cmocka_unit_test(test_remembered_as_gone),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
