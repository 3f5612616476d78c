/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_ahead.c - looking up the names of a tree that is not in memory reads
 * its dinodes in large pieces, and listing a directory its leaves; looking up
 * one name does not; and what was read ahead never outlives the dinode it was.
 */
#include <unistd.h>

#include "fs/super.h"
#include "tests/unit/fs/names.h"

#define FILES 400u

static void begin(struct volume *v, uint64_t *dir, uint64_t *ids)
{
	struct volume_geometry g = { .size_mib = 64 };
	char name[20];

	volume_make(v, &g);
	volume_mount(v);
	*dir = make_dir(v, ROOT, "dir");
	for (unsigned i = 0; i < FILES; i++) {
		sprintf(name, "file%u", i);
		ids[i] = make_file(v, *dir, name);
	}
	volume_unmount(v);
	volume_mount(v);
}

static void end(struct volume *v)
{
	volume_unmount(v);
	volume_fsck(v);
	volume_remove(v);
}

static struct bufcache_stats stats_of(const struct volume *v)
{
	struct bufcache_stats stats;

	bufcache_stats(v->fs->fs_cache, &stats);
	return stats;
}

static unsigned count_cached(const struct volume *v, const uint64_t *ids)
{
	unsigned n = 0;

	for (unsigned i = 0; i < FILES; i++) {
		struct buf *b = buf_peek(v->fs->fs_cache, ids[i]);

		n += b != NULL;
		buf_put(b);
	}
	return n;
}

static void look_at(struct volume *v, uint64_t dir, const uint64_t *ids,
		    unsigned i)
{
	struct fs_entry e;
	char name[20];

	sprintf(name, "file%u", i);
	assert_int_equal(look(v, dir, name, &e), 0);
	assert_int_equal(e.nodeid, ids[i]);
	assert_int_equal(e.attr.mode, S_IFREG | 0644);
}

/* In an order that is none on disk. Returns how many blocks were waited for. */
static uint64_t look_at_all(struct volume *v, uint64_t dir, const uint64_t *ids)
{
	uint64_t misses = stats_of(v).misses;

	for (unsigned i = 0; i < FILES; i++)
		look_at(v, dir, ids, i * 171 % FILES);
	return stats_of(v).misses - misses;
}

static void test_neighbours(void **state)
{
	uint64_t dir, ids[FILES];
	struct volume v;

	begin(&v, &dir, ids);
	assert_in_range(look_at_all(&v, dir, ids), 1, FILES / 10);
	end(&v);
}

/* Where other nodes can change a dinode, it is read under its glock only. */
static void test_not_alone(void **state)
{
	uint64_t dir, ids[FILES];
	struct volume v;

	begin(&v, &dir, ids);
	v.fs->fs_alone = false;
	assert_in_range(look_at_all(&v, dir, ids), FILES, 2 * FILES);
	end(&v);
}

static void test_one_file(void **state)
{
	uint64_t dir, ids[FILES];
	struct volume v;

	begin(&v, &dir, ids);
	/*
	 * All of a volume so small is one neighbourhood: forget what has been
	 * missed on the way.
	 */
	memset(&v.fs->fs_ahead, 0, sizeof(v.fs->fs_ahead));
	inode_put(node(&v, dir));
	memset(&v.fs->fs_ahead, 0, sizeof(v.fs->fs_ahead));
	assert_int_equal(count_cached(&v, ids), 0);
	look_at(&v, dir, ids, FILES / 2);
	assert_int_equal(count_cached(&v, ids), 1);
	end(&v);
}

static void test_freed(void **state)
{
	uint64_t dir, ids[FILES];
	struct volume v;
	char name[20];
	unsigned i;

	begin(&v, &dir, ids);
	for (i = 0; i < 8; i++)
		look_at(&v, dir, ids, i);
	while (count_cached(&v, ids) < 64)
		usleep(1000);
	for (i = 0; i < FILES; i++) {
		sprintf(name, "file%u", i);
		assert_int_equal(unlink_name(&v, dir, name), 0);
	}
	assert_int_equal(fs_reclaim_space(v.fs), 0);
	assert_int_equal(count_cached(&v, ids), 0);
	end(&v);
}

static bool count_entry(void *arg, const struct fs_dirent *de)
{
	unsigned *entries = arg;

	*entries += de->name[0] == 'n';
	return true;
}

/* A block of 512 bytes holds less than ten of these names. */
#define NAMES 1200u

static void test_leaves(void **state)
{
	struct volume_geometry g = { .size_mib = 64, .bsize = 512 };
	unsigned entries = 0;
	struct inode *dir;
	uint64_t id, misses;
	struct volume v;
	char name[20];

	volume_make(&v, &g);
	volume_mount(&v);
	id = make_dir(&v, ROOT, "dir");
	for (unsigned i = 0; i < NAMES; i++) {
		sprintf(name, "name%06u", i);
		make_file(&v, id, name);
	}
	volume_unmount(&v);
	volume_mount(&v);
	dir = node(&v, id);
	misses = stats_of(&v).misses;
	assert_int_equal(fs_readdir(&volume_req, dir, 0, count_entry, &entries),
			 0);
	misses = stats_of(&v).misses - misses;
	inode_put(dir);
	assert_int_equal(entries, NAMES);
	print_message("%u names: waited for %u blocks\n", NAMES,
		      (unsigned)misses);
	assert_in_range(misses, 1, NAMES / 40);
	end(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_neighbours),
		cmocka_unit_test(test_not_alone),
		cmocka_unit_test(test_one_file),
		cmocka_unit_test(test_freed),
		cmocka_unit_test(test_leaves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
