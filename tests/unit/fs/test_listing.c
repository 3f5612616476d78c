/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_listing.c - listings with attributes that must not wait.
 *
 * After a short answer the kernel goes on without attributes and looks up
 * every name, so a listing is not cut short where another thread could have
 * gone on; and what it has counted it has also handed out.
 */
#include "fs/inode.h"
#include "tests/unit/fs/names.h"

#define FILES 5u

struct listed {
	unsigned entries, dots, counted;
	unsigned room;
	uint64_t ids[FILES];
};

static bool take(void *arg, const struct fs_dirent *de,
		 const struct fs_entry *e)
{
	struct listed *l = arg;

	if (l->entries == l->room)
		return false;
	l->entries++;
	if (de->name[0] == '.') {
		assert_int_equal(e->nodeid, 0);
		l->dots++;
		return true;
	}
	assert_true(l->counted < FILES);
	assert_int_equal(e->nodeid, de->ino);
	assert_int_equal(e->attr.ino, de->ino);
	l->ids[l->counted++] = e->nodeid;
	return true;
}

static int list(struct inode *dir, bool nowait, unsigned room, struct listed *l)
{
	struct fs_req req = volume_req;

	req.nowait = nowait;
	*l = (struct listed){ .room = room };
	return fs_readdirplus(&req, dir, 0, take, l);
}

static void forget(struct volume *v, const struct listed *l)
{
	for (unsigned i = 0; i < l->counted; i++)
		fs_forget(v->fs, l->ids[i], 1);
}

/* More inodes than are read together. */
#define BETWEEN 600u

/*
 * A linear directory in memory, of whose inodes none is: they were made far
 * from it and from each other.
 */
static struct inode *begin(struct volume *v)
{
	struct volume_geometry g = { 0 };
	struct inode *dir;
	char name[20];
	uint64_t d, id;

	volume_make(v, &g);
	volume_mount(v);
	d = make_dir(v, ROOT, "d");
	for (unsigned i = 0; i < BETWEEN * FILES; i++) {
		sprintf(name, "file%u", i);
		id = make_file(v, ROOT, name);
		if ((i + 1) % BETWEEN == 0)
			assert_int_equal(link_name(v, id, d, name), 0);
	}
	volume_unmount(v);
	volume_mount(v);
	dir = node(v, d);
	return dir;
}

static void end(struct volume *v, struct inode *dir)
{
	inode_put(dir);
	volume_unmount(v);
	volume_fsck(v);
	volume_remove(v);
}

/* "." and ".." are there without any reading: they are no answer. */
static void test_dots_alone(void **state)
{
	struct listed l;
	struct volume v;
	struct inode *dir = begin(&v);

	assert_int_equal(list(dir, true, 100, &l), -EAGAIN);
	assert_int_equal(l.counted, 0);
	assert_int_equal(list(dir, false, 100, &l), 0);
	assert_int_equal(l.entries, FILES + 2);
	assert_int_equal(l.counted, FILES);
	forget(&v, &l);
	/* All is in memory. */
	assert_int_equal(list(dir, true, 100, &l), 0);
	assert_int_equal(l.counted, FILES);
	forget(&v, &l);
	end(&v, dir);
}

/* What has been counted is handed out: the answer ends where a wait begins. */
static void test_counted_is_kept(void **state)
{
	struct listed all, some;
	struct volume v;
	struct inode *dir = begin(&v);
	struct fs_entry e;
	uint64_t addr;

	assert_int_equal(list(dir, false, 100, &all), 0);
	forget(&v, &all);
	addr = dir->i_addr;
	inode_put(dir);
	volume_unmount(&v);
	volume_mount(&v);
	dir = node(&v, addr);
	assert_int_equal(fs_lookup_nodeid(v.fs, &volume_req, all.ids[0], &e),
			 0);
	assert_int_equal(list(dir, true, 100, &some), 0);
	assert_int_equal(some.counted, 1);
	assert_int_equal(some.ids[0], all.ids[0]);
	assert_true(some.entries < FILES + 2);
	forget(&v, &some);
	fs_forget(v.fs, all.ids[0], 1);
	end(&v, dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dots_alone),
		cmocka_unit_test(test_counted_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
