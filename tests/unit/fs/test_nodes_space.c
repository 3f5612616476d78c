/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_nodes_space.c - the blocks of one volume among several mounts: what a
 * write was answered is there, whoever fills the volume meanwhile; no space is
 * only said when there is none; what one node frees, another can use.
 *
 * Usage: test_nodes_space [seed [pattern]]
 */
#include <fcntl.h>
#include <unistd.h>

#include "fs/rgrp_int.h"
#include "glock/glstat.h"
#include "tests/unit/fs/nodecalls.h"

/* Three journals of 8 MiB are in it. */
#define SIZE_MIB 64u
#define CHUNK 65536u
#define BLOCK 4096u

static uint64_t seed = 1;

static void begin_on(struct nodes *n, unsigned count, unsigned size_mib)
{
	nodes_make(n, seed, size_mib);
	for (unsigned i = 0; i < count; i++)
		nodes_mount(n, i);
}

static void begin(struct nodes *n, unsigned count)
{
	begin_on(n, count, SIZE_MIB);
}

/* ---- a file whose contents say where they belong ---- */

struct big {
	uint64_t id;
	uint64_t size; /* accepted */
	char name[16];
	unsigned char key;
};

static void pattern(const struct big *f, uint64_t offset, unsigned char *buf,
		    size_t len)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = (unsigned char)(((offset + i) / 512 * 31) + f->key);
}

static void make_big(struct fs *fs, struct big *f, const char *name,
		     unsigned char key)
{
	struct fs_entry e;

	assert_int_equal(make_at(fs, ROOT, name, S_IFREG | 0644, &e), 0);
	*f = (struct big){ .id = e.nodeid, .key = key };
	strcpy(f->name, name);
}

/* Append up to len bytes; how much was accepted. */
static ssize_t append(struct fs *fs, struct big *f, size_t len)
{
	unsigned char *buf = malloc(len);
	struct inode *ip = get(fs, f->id);
	ssize_t n;

	pattern(f, f->size, buf, len);
	assert_int_equal(fs_open(&volume_req, ip, O_WRONLY), 0);
	n = fs_write(&volume_req, ip, buf, len, f->size, 0);
	fs_release(ip, O_WRONLY);
	inode_put(ip);
	if (n > 0)
		f->size += (uint64_t)n;
	free(buf);
	return n;
}

/* Until nothing more is accepted, not even a block. */
static void fill(struct fs *fs, struct big *f)
{
	ssize_t n;

	while ((n = append(fs, f, CHUNK)) > 0)
		;
	assert_int_equal(n, -ENOSPC);
	while ((n = append(fs, f, BLOCK)) > 0)
		;
	assert_int_equal(n, -ENOSPC);
}

static void sync_big(struct fs *fs, struct big *f)
{
	struct inode *ip = get(fs, f->id);

	assert_int_equal(fs_fsync(&volume_req, ip, false), 0);
	inode_put(ip);
}

static void check_big(struct fs *fs, struct big *f)
{
	unsigned char *buf = aligned_alloc(BLKDEV_ALIGN, CHUNK);
	unsigned char *expected = malloc(CHUNK);
	uint64_t id = walk(fs, ROOT, f->name);
	struct inode *ip = get(fs, id);

	assert_int_equal(attr_at(fs, id).size, f->size);
	for (uint64_t at = 0; at < f->size; at += CHUNK) {
		size_t len = UG_MIN((size_t)(f->size - at), (size_t)CHUNK);

		assert_int_equal(fs_read(&volume_req, ip, buf, len, at, 0),
				 len);
		pattern(f, at, expected, len);
		assert_memory_equal(buf, expected, len);
	}
	inode_put(ip);
	fs_forget(fs, id, 1);
	free(buf);
	free(expected);
}

static uint64_t free_blocks(struct nodes *n, unsigned i)
{
	uint64_t total, free_, dinodes;

	nodes_settle(n);
	assert_int_equal(fs_sync(n->node[i].fs), 0);
	assert_int_equal(rgrps_sum(n->node[i].fs, &total, &free_, &dinodes), 0);
	return free_;
}

/* What the allocator may leave: a few blocks of each group. */
static uint64_t crumbs(struct nodes *n)
{
	return (uint64_t)n->node[0].fs->fs_rgrps->rgs_count * RGRP_MIN_PROMISED;
}

/* ---- the stories ---- */

/* Accepted by A, and not yet in any place, while B fills the volume. */
static void test_delayed(void **state)
{
	struct nodes n;
	struct big a, b;

	begin(&n, 3);
	make_big(n.node[0].fs, &a, "a", 'a');
	make_big(n.node[1].fs, &b, "b", 'b');
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(append(n.node[0].fs, &a, CHUNK), CHUNK);
	fill(n.node[1].fs, &b);
	sync_big(n.node[0].fs, &a);
	sync_big(n.node[1].fs, &b);
	check_big(n.node[2].fs, &a);
	check_big(n.node[2].fs, &b);
	assert_true(free_blocks(&n, 2) <= crumbs(&n));
	nodes_end(&n);
}

struct filler {
	struct fs *fs;
	struct big f;
	pthread_t thread;
};

static void *fill_thread(void *arg)
{
	struct filler *w = arg;

	fill(w->fs, &w->f);
	sync_big(w->fs, &w->f);
	return NULL;
}

/* All at once, to the last block. */
static void test_fill_together(void **state)
{
	struct filler w[NODES_MAX];
	struct nodes n;

	begin(&n, NODES_MAX);
	for (unsigned i = 0; i < NODES_MAX; i++) {
		char name[8];

		sprintf(name, "f%u", i);
		w[i].fs = n.node[i].fs;
		make_big(w[i].fs, &w[i].f, name, (unsigned char)i);
	}
	for (unsigned i = 0; i < NODES_MAX; i++)
		pthread_create(&w[i].thread, NULL, fill_thread, &w[i]);
	for (unsigned i = 0; i < NODES_MAX; i++)
		pthread_join(w[i].thread, NULL);
	for (unsigned i = 0; i < NODES_MAX; i++)
		check_big(n.node[(i + 1) % NODES_MAX].fs, &w[i].f);
	assert_true(free_blocks(&n, 0) <= crumbs(&n));
	nodes_end(&n);
}

/* B's blocks, freed a moment ago and not yet durably, are what A gets. */
static void test_freed_elsewhere(void **state)
{
	struct nodes n;
	struct big a, b;
	uint64_t before;

	begin(&n, 2);
	make_big(n.node[0].fs, &a, "a", 'a');
	make_big(n.node[1].fs, &b, "b", 'b');
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(append(n.node[1].fs, &b, CHUNK), CHUNK);
	fill(n.node[0].fs, &a);
	before = a.size;
	assert_int_equal(unlink_at(n.node[1].fs, ROOT, "b"), 0);
	fs_forget(n.node[1].fs, b.id, 1);
	nodes_settle(&n);
	fill(n.node[0].fs, &a);
	assert_true(a.size >= before + 199 * CHUNK);
	sync_big(n.node[0].fs, &a);
	check_big(n.node[1].fs, &a);
	nodes_end(&n);
}

/* Metadata counts, too: names on one node, data on the other. */
static void test_names_full(void **state)
{
	struct fs_entry e;
	struct nodes n;
	struct big a, b;
	unsigned made = 0;
	char name[16];
	int err;

	begin(&n, 2);
	make_big(n.node[1].fs, &b, "b", 'b');
	make_big(n.node[0].fs, &a, "a", 'a');
	fill(n.node[1].fs, &b);
	b.size -= 48 * CHUNK;
	truncate_at(n.node[1].fs, b.id, b.size);
	for (unsigned i = 0; i < 32; i++)
		assert_int_equal(append(n.node[0].fs, &a, CHUNK), CHUNK);
	do {
		sprintf(name, "n%u", made);
		err = make_at(n.node[1].fs, ROOT, name, S_IFREG | 0644, &e);
		if (!err)
			fs_forget(n.node[1].fs, e.nodeid, 1);
	} while (!err && ++made);
	assert_int_equal(err, -ENOSPC);
	assert_true(made > 16 * CHUNK / BLOCK - 64);
	sync_big(n.node[0].fs, &a);
	check_big(n.node[1].fs, &a);
	check_big(n.node[0].fs, &b);
	assert_true(free_blocks(&n, 1) <= crumbs(&n) + 16);
	nodes_end(&n);
}

/* ---- who gets in whose way ---- */

#define FILES 1000u

struct unpacker {
	struct fs *fs;
	unsigned k;
	pthread_t thread;
};

static void *unpack_thread(void *arg)
{
	static const char data[6000];
	struct unpacker *u = arg;
	struct fs_entry d, e;
	char name[16];

	sprintf(name, "dir%u", u->k);
	assert_int_equal(make_at(u->fs, ROOT, name, S_IFDIR | 0755, &d), 0);
	for (unsigned i = 0; i < FILES; i++) {
		sprintf(name, "file%u", i);
		assert_int_equal(
			make_at(u->fs, d.nodeid, name, S_IFREG | 0644, &e), 0);
		write_at(u->fs, e.nodeid, data, i % 3 ? 200 : sizeof(data), 0,
			 0);
		fs_forget(u->fs, e.nodeid, 1);
	}
	assert_int_equal(fs_sync(u->fs), 0);
	return NULL;
}

/* Two nodes that unpack into directories of their own hardly ever meet. */
static void test_apart(void **state)
{
	struct unpacker u[2];
	struct glock_type_stats st;
	struct nodes n;
	uint64_t moved = 0;

	/* Several groups that are not full of journals. */
	begin_on(&n, 2, 256);
	for (unsigned k = 0; k < 2; k++) {
		u[k] = (struct unpacker){ .fs = n.node[k].fs, .k = k };
		pthread_create(&u[k].thread, NULL, unpack_thread, &u[k]);
	}
	for (unsigned k = 0; k < 2; k++)
		pthread_join(u[k].thread, NULL);
	for (unsigned k = 0; k < 2; k++) {
		glock_table_stats(u[k].fs->fs_glocks, LM_TYPE_RGRP, &st);
		printf("node %u, %u files: rgrp locks: %llu requests, %llu "
		       "refused, %llu wanted by others, %llu given away\n",
		       k, FILES, (unsigned long long)st.requests,
		       (unsigned long long)st.busy,
		       (unsigned long long)st.callbacks,
		       (unsigned long long)st.given_away);
		moved += st.given_away;
	}
	assert_true(moved <= 4);
	nodes_end(&n);
}

/* ---- the totals of a dead node ---- */

static uint64_t free_in_groups(struct nodes *n, unsigned i)
{
	uint64_t total, free_, dinodes;

	nodes_settle(n);
	assert_int_equal(fs_sync(n->node[i].fs), 0);
	assert_int_equal(rgrps_sum(n->node[i].fs, &total, &free_, &dinodes), 0);
	return free_;
}

static uint64_t free_told(struct fs *fs)
{
	struct fs_statfs st;

	fs_statfs(fs, &st);
	return st.bfree;
}

/* Its changes since the last merge are in its own file alone. */
static void use_space_and_die(struct nodes *n, unsigned i)
{
	struct big f;

	make_big(n->node[i].fs, &f, "of the dead", 'd');
	for (unsigned k = 0; k < 8; k++)
		assert_int_equal(append(n->node[i].fs, &f, CHUNK), CHUNK);
	assert_int_equal(fs_sync(n->node[i].fs), 0);
	nodes_kill(n, i);
}

/* A, which writes nothing, is the first to recover; B has the totals. */
static void test_totals_beside_reader(void **state)
{
	struct nodes n;

	begin(&n, 0);
	nodes_mount(&n, 1);
	nodes_mount_readonly(&n, 0);
	nodes_mount(&n, 2);
	use_space_and_die(&n, 2);
	assert_int_equal(free_told(n.node[1].fs), free_in_groups(&n, 1));
	nodes_end(&n);
}

/* A is alone with it: who has the journal next finds the totals. */
static void test_totals_after_reader(void **state)
{
	struct nodes n;

	begin(&n, 0);
	nodes_mount(&n, 2);
	nodes_mount_readonly(&n, 0);
	use_space_and_die(&n, 2);
	nodes_mount(&n, 2);
	assert_int_equal(free_told(n.node[2].fs), free_in_groups(&n, 2));
	nodes_end(&n);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_delayed),
		cmocka_unit_test(test_fill_together),
		cmocka_unit_test(test_freed_elsewhere),
		cmocka_unit_test(test_names_full),
		cmocka_unit_test(test_apart),
		cmocka_unit_test(test_totals_beside_reader),
		cmocka_unit_test(test_totals_after_reader),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
