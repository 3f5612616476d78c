/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_nodes.c - several mounts of one volume: what a call on one of them has
 * done, the next call on any of them sees; and fsck.gfs2 has nothing to say.
 *
 * Usage: test_nodes [seed [steps]]
 */
#include <fcntl.h>
#include <unistd.h>

#include "fs/rgrp.h"
#include "tests/unit/fs/aclmake.h"
#include "tests/unit/fs/nodecalls.h"

static uint64_t seed = 1;
static unsigned steps = 600;

static void begin(struct nodes *n, unsigned count)
{
	nodes_make(n, seed, 0);
	for (unsigned i = 0; i < count; i++)
		nodes_mount(n, i);
}

/* ---- one thing at a time ---- */

static void test_data(void **state)
{
	static char page[BLKDEV_ALIGN * 16]
		__attribute__((aligned(BLKDEV_ALIGN)));
	struct nodes n;
	struct fs_entry e;
	struct fs *a, *b;

	begin(&n, 2);
	a = n.node[0].fs;
	b = n.node[1].fs;
	assert_int_equal(make_at(a, ROOT, "f", S_IFREG | 0644, &e), 0);
	assert_int_equal(walk(b, ROOT, "f"), e.nodeid);
	write_at(a, e.nodeid, "one", 3, 0, 0);
	assert_int_equal(attr_at(b, e.nodeid).size, 3);
	assert_int_equal(read_at(b, e.nodeid, page, sizeof(page)), 3);
	assert_memory_equal(page, "one", 3);
	write_at(b, e.nodeid, "two", 3, 0, 0);
	assert_int_equal(read_at(a, e.nodeid, page, sizeof(page)), 3);
	assert_memory_equal(page, "two", 3);
	/* Out of the dinode, and back. */
	memset(page, 'x', sizeof(page));
	write_at(a, e.nodeid, page, sizeof(page), 0, 0);
	memset(page, 0, sizeof(page));
	assert_int_equal(read_at(b, e.nodeid, page, sizeof(page)),
			 sizeof(page));
	assert_int_equal(page[sizeof(page) - 1], 'x');
	truncate_at(b, e.nodeid, 5);
	assert_int_equal(read_at(a, e.nodeid, page, sizeof(page)), 5);
	write_at(b, e.nodeid, "yy", 2, 0, FS_IO_APPEND);
	write_at(a, e.nodeid, "zz", 2, 0, FS_IO_APPEND);
	assert_int_equal(read_at(b, e.nodeid, page, sizeof(page)), 9);
	assert_memory_equal(page, "xxxxxyyzz", 9);
	nodes_end(&n);
}

static void test_names(void **state)
{
	struct nodes n;
	struct fs_entry e, f;
	struct fs *a, *b;

	begin(&n, 2);
	a = n.node[0].fs;
	b = n.node[1].fs;
	assert_int_equal(look_at(b, ROOT, "f", &f), -ENOENT);
	assert_int_equal(make_at(a, ROOT, "f", S_IFREG | 0644, &e), 0);
	assert_int_equal(make_at(b, ROOT, "f", S_IFREG | 0644, &f), -EEXIST);
	assert_int_equal(make_at(b, ROOT, "d", S_IFDIR | 0755, &f), 0);
	assert_int_equal(attr_at(a, ROOT).nlink, 3);
	walk(a, ROOT, "d");
	assert_int_equal(rename_at(a, ROOT, "f", f.nodeid, "g"), 0);
	assert_int_equal(look_at(b, ROOT, "f", &e), -ENOENT);
	assert_int_equal(walk(b, f.nodeid, "g"), e.nodeid);
	assert_int_equal(unlink_at(b, f.nodeid, "g"), 0);
	assert_int_equal(look_at(a, f.nodeid, "g", &e), -ENOENT);
	nodes_end(&n);
}

static int set_attr_at(struct fs *fs, uint64_t id, const char *name,
		       const void *value, size_t size)
{
	struct inode *ip = get(fs, id);
	int err = fs_setxattr(&volume_req, ip, name, value, size, 0);

	inode_put(ip);
	return err;
}

static void assert_attr_at(struct fs *fs, uint64_t id, const char *name,
			   const void *value, size_t size)
{
	static uint8_t buf[65536];
	struct inode *ip = get(fs, id);

	assert_int_equal(fs_getxattr(&volume_req, ip, name, buf, sizeof(buf)),
			 size);
	assert_memory_equal(buf, value, size);
	inode_put(ip);
}

/* From one node to the next and back: the record, its block, more blocks. */
static void test_attributes(void **state)
{
	static uint8_t big[65536];
	struct nodes n;
	struct fs_entry e, f;
	struct inode *ip;
	struct fs *a, *b;
	char name[16];

	nodes_make(&n, seed, 0);
	n.volume.opt.acl = true;
	nodes_mount(&n, 0);
	nodes_mount(&n, 1);
	a = n.node[0].fs;
	b = n.node[1].fs;
	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (uint8_t)(i * 7 + i / 4096);
	assert_int_equal(make_at(a, ROOT, "f", S_IFREG | 0644, &e), 0);
	walk(b, ROOT, "f");
	for (unsigned i = 0; i < 40; i++) {
		struct fs *here = i % 2 ? a : b, *there = i % 2 ? b : a;

		snprintf(name, sizeof(name), "user.%u", i % 5);
		assert_int_equal(
			set_attr_at(here, e.nodeid, name, big + i, i * 1500),
			0);
		assert_attr_at(there, e.nodeid, name, big + i, i * 1500);
	}
	ip = get(b, e.nodeid);
	assert_int_equal(fs_removexattr(&volume_req, ip, "user.1"), 0);
	inode_put(ip);
	ip = get(a, e.nodeid);
	assert_int_equal(fs_getxattr(&volume_req, ip, "user.1", NULL, 0),
			 -ENODATA);
	inode_put(ip);
	/* Who had found that there is none looks again. */
	write_at(a, e.nodeid, "data", 4, 0, 0);
	assert_int_equal(
		set_attr_at(b, e.nodeid, "security.capability", "c", 1), 0);
	assert_attr_at(a, e.nodeid, "security.capability", "c", 1);
	write_at(a, e.nodeid, "data", 4, 0, 0);
	ip = get(b, e.nodeid);
	assert_int_equal(
		fs_getxattr(&volume_req, ip, "security.capability", NULL, 0),
		-ENODATA);
	inode_put(ip);

	/* A list and its mode; what is inherited here, set there. */
	assert_int_equal(
		set_attr_at(b, e.nodeid, "system.posix_acl_access", big,
			    acl_of_text("u::rw u:5:rw g::r m::rw o::", big)),
		0);
	assert_int_equal(attr_at(a, e.nodeid).mode & 07777, 0660);
	assert_int_equal(make_at(a, ROOT, "d", S_IFDIR | 0755, &e), 0);
	walk(b, ROOT, "d");
	assert_int_equal(
		set_attr_at(b, e.nodeid, "system.posix_acl_default", big,
			    acl_of_text("u::rwx u:5:rw g::rx m::rwx o::", big)),
		0);
	assert_int_equal(make_at(a, e.nodeid, "g", S_IFREG | 0666, &f), 0);
	assert_int_equal(f.attr.mode & 07777, 0660);
	walk(b, e.nodeid, "g");
	assert_attr_at(b, f.nodeid, "system.posix_acl_access", big,
		       acl_of_text("u::rw u:5:rw g::rx m::rw o::", big));
	nodes_end(&n);
}

/* ---- the life of an inode ---- */

static uint64_t free_blocks(struct nodes *n)
{
	uint64_t total, free_, dinodes;

	nodes_settle(n);
	assert_int_equal(fs_sync(n->node[0].fs), 0);
	assert_int_equal(rgrps_sum(n->node[0].fs, &total, &free_, &dinodes), 0);
	return free_;
}

/* Unlinked by one node, open on two others: there until both have closed it. */
static void test_unlinked_open(void **state)
{
	static char page[BLKDEV_ALIGN * 16]
		__attribute__((aligned(BLKDEV_ALIGN)));
	struct inode *b_ip, *c_ip;
	struct nodes n;
	struct fs_entry e;
	struct fs *a, *b, *c;
	uint64_t before, now;
	ssize_t len;

	begin(&n, 3);
	a = n.node[0].fs;
	b = n.node[1].fs;
	c = n.node[2].fs;
	assert_int_equal(make_at(a, ROOT, "other", S_IFREG | 0644, &e), 0);
	before = free_blocks(&n);
	assert_int_equal(make_at(a, ROOT, "f", S_IFREG | 0644, &e), 0);
	memset(page, 'x', sizeof(page));
	write_at(a, e.nodeid, page, sizeof(page), 0, 0);
	b_ip = get(b, walk(b, ROOT, "f"));
	c_ip = get(c, walk(c, ROOT, "f"));
	assert_int_equal(fs_open(&volume_req, b_ip, O_RDONLY), 0);
	assert_int_equal(fs_open(&volume_req, c_ip, O_RDWR), 0);
	assert_int_equal(unlink_at(a, ROOT, "f"), 0);
	fs_forget(a, e.nodeid, 1);
	assert_true(free_blocks(&n) < before - 16);
	len = fs_read(&volume_req, b_ip, page, sizeof(page), 0, 0);
	assert_int_equal(len, sizeof(page));
	assert_int_equal(page[0], 'x');
	assert_int_equal(attr_at(b, e.nodeid).nlink, 0);
	assert_int_equal(fs_write(&volume_req, c_ip, "new", 3, 0, 0), 3);
	fs_release(b_ip, O_RDONLY);
	inode_put(b_ip);
	assert_true(free_blocks(&n) < before - 16);
	len = fs_read(&volume_req, c_ip, page, sizeof(page), 0, 0);
	assert_int_equal(len, sizeof(page));
	assert_memory_equal(page, "newx", 4);
	/* The kernel still counts it here: it goes all the same. */
	fs_release(c_ip, O_RDWR);
	inode_put(c_ip);
	for (unsigned i = 0; i < 1000; i++) {
		now = free_blocks(&n);
		if (now == before)
			break;
		usleep(10000);
	}
	assert_int_equal(now, before);
	nodes_end(&n);
}

/* A node remembers an inode that another one frees: it is told so. */
static void test_freed(void **state)
{
	struct fs_entry old;
	struct fs_attr attr;
	struct nodes n;
	struct inode *ip;

	begin(&n, 2);
	assert_int_equal(make_at(n.node[0].fs, ROOT, "f", S_IFREG | 0644, &old),
			 0);
	write_at(n.node[0].fs, old.nodeid, "old", 3, 0, 0);
	walk(n.node[1].fs, ROOT, "f");
	assert_int_equal(unlink_at(n.node[0].fs, ROOT, "f"), 0);
	fs_forget(n.node[0].fs, old.nodeid, 1);
	free_blocks(&n);
	ip = get(n.node[1].fs, old.nodeid);
	assert_int_equal(fs_getattr(&volume_req, ip, &attr), -ESTALE);
	assert_int_equal(fs_open(&volume_req, ip, O_RDONLY), -ESTALE);
	inode_put(ip);
	nodes_end(&n);
}

static void link_to(struct fs *fs, uint64_t id, uint64_t dir, const char *name)
{
	struct inode *ip = get(fs, id), *d = get(fs, dir);
	struct fs_entry e;

	assert_int_equal(fs_link(&volume_req, ip, d, name, strlen(name), &e),
			 0);
	inode_put(ip);
	inode_put(d);
}

static const char *other_name(unsigned i)
{
	static char name[100];

	sprintf(name,
		"a name that is long enough to make the directory need "
		"a leaf soon, number %u",
		i);
	return name;
}

/*
 * B looks at an inode that A has freed, and so has read its block as that. A
 * makes the block a leaf of a directory: B must not take it for the old one.
 */
static void test_block_used_again(void **state)
{
	struct fs_entry old, dir, file;
	struct inode *ip, *d;
	struct fs_attr attr;
	struct nodes n;
	struct fs *a, *b;
	unsigned i;

	begin(&n, 2);
	a = n.node[0].fs;
	b = n.node[1].fs;
	assert_int_equal(make_at(a, ROOT, "d", S_IFDIR | 0755, &dir), 0);
	assert_int_equal(make_at(a, ROOT, "file", S_IFREG | 0644, &file), 0);
	assert_int_equal(make_at(a, ROOT, "f", S_IFREG | 0644, &old), 0);
	assert_int_equal(fs_sync(a), 0);
	walk(b, ROOT, "f");
	walk(b, ROOT, "d");
	assert_int_equal(unlink_at(a, ROOT, "f"), 0);
	fs_forget(a, old.nodeid, 1);
	free_blocks(&n);
	ip = get(b, old.nodeid);
	assert_int_equal(fs_getattr(&volume_req, ip, &attr), -ESTALE);
	inode_put(ip);
	d = get(a, dir.nodeid);
	for (i = 0; i < 100 && d->i_blocks == 1; i++) {
		d->i_goal = old.nodeid - 1;
		link_to(a, file.nodeid, dir.nodeid, other_name(i));
	}
	/* The leaf is there. */
	assert_int_equal(d->i_goal, old.nodeid);
	inode_put(d);
	for (unsigned k = 0; k < i; k++)
		assert_int_equal(walk(b, dir.nodeid, other_name(k)),
				 file.nodeid);
	nodes_end(&n);
}

/* ---- at random, against a model ---- */

#define NAMES 16u
#define DIRS 3u
#define SIZE_MAX_BYTES 40000u

struct file {
	uint64_t id;
	unsigned nlink;
	uint32_t size;
	uint8_t *data;
};

struct model {
	struct nodes n;
	struct ug_prng prng;
	uint64_t dirs[DIRS];
	struct file *names[DIRS][NAMES];
	uint8_t *buf;
};

static unsigned below(struct model *m, unsigned n)
{
	return (unsigned)ug_prng_below(&m->prng, n);
}

static struct fs *any_node(struct model *m)
{
	return m->n.node[below(m, NODES_MAX)].fs;
}

static const char *name_of(unsigned k)
{
	static char text[2][40];
	static unsigned turn;

	turn = !turn;
	sprintf(text[turn], "a name of some length, number %u", k);
	return text[turn];
}

static void forget_sometimes(struct model *m, struct fs *fs, uint64_t id)
{
	if (below(m, 3))
		fs_forget(fs, id, 1);
}

static void fill(struct model *m, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		m->buf[i] = (uint8_t)below(m, 256);
}

static void do_create(struct model *m, struct fs *fs, unsigned d, unsigned k)
{
	struct fs_entry e;
	int err = make_at(fs, m->dirs[d], name_of(k), S_IFREG | 0644, &e);
	struct file *f;

	if (m->names[d][k]) {
		assert_int_equal(err, -EEXIST);
		return;
	}
	assert_int_equal(err, 0);
	f = calloc(1, sizeof(*f));
	f->data = calloc(1, SIZE_MAX_BYTES);
	f->id = e.nodeid;
	f->nlink = 1;
	m->names[d][k] = f;
	forget_sometimes(m, fs, f->id);
}

static void drop(struct file *f)
{
	if (f && !--f->nlink) {
		free(f->data);
		free(f);
	}
}

static void do_unlink(struct model *m, struct fs *fs, unsigned d, unsigned k)
{
	int err = unlink_at(fs, m->dirs[d], name_of(k));

	assert_int_equal(err, m->names[d][k] ? 0 : -ENOENT);
	drop(m->names[d][k]);
	m->names[d][k] = NULL;
}

static void do_rename(struct model *m, struct fs *fs, unsigned d, unsigned k)
{
	unsigned d2 = below(m, DIRS), k2 = below(m, NAMES);
	struct file *f = m->names[d][k];
	int err =
		rename_at(fs, m->dirs[d], name_of(k), m->dirs[d2], name_of(k2));

	assert_int_equal(err, f ? 0 : -ENOENT);
	/* Two names of one file: nothing happens. */
	if (!f || f == m->names[d2][k2])
		return;
	drop(m->names[d2][k2]);
	m->names[d2][k2] = f;
	m->names[d][k] = NULL;
}

static void do_link(struct model *m, struct fs *fs, unsigned d, unsigned k)
{
	unsigned d2 = below(m, DIRS), k2 = below(m, NAMES);
	struct file *f = m->names[d][k];
	struct inode *ip, *dir;
	struct fs_entry e;
	uint64_t id;
	int err;

	if (!f)
		return;
	id = walk(fs, m->dirs[d], name_of(k));
	ip = get(fs, id);
	dir = get(fs, m->dirs[d2]);
	err = fs_link(&volume_req, ip, dir, name_of(k2), strlen(name_of(k2)),
		      &e);
	assert_int_equal(err, m->names[d2][k2] ? -EEXIST : 0);
	if (!err) {
		assert_int_equal(e.attr.nlink, f->nlink + 1);
		f->nlink++;
		m->names[d2][k2] = f;
		fs_forget(fs, id, 1);
	}
	inode_put(ip);
	inode_put(dir);
	forget_sometimes(m, fs, id);
}

static void do_write(struct model *m, struct fs *fs, unsigned d, unsigned k)
{
	struct file *f = m->names[d][k];
	uint32_t offset = below(m, 2) ? below(m, SIZE_MAX_BYTES) : 0;
	uint32_t len = 1 + below(m, below(m, 2) ? 100 : 12000);
	unsigned flags = 0;
	uint64_t id;

	if (!f)
		return;
	if (!below(m, 3)) {
		flags = FS_IO_APPEND;
		offset = f->size;
	}
	if (offset >= SIZE_MAX_BYTES)
		return;
	len = len < SIZE_MAX_BYTES - offset ? len : SIZE_MAX_BYTES - offset;
	id = walk(fs, m->dirs[d], name_of(k));
	assert_int_equal(id, f->id);
	fill(m, len);
	write_at(fs, id, m->buf, len, offset, flags);
	memcpy(f->data + offset, m->buf, len);
	f->size = f->size > offset + len ? f->size : offset + len;
	forget_sometimes(m, fs, id);
}

static void do_truncate(struct model *m, struct fs *fs, unsigned d, unsigned k)
{
	struct file *f = m->names[d][k];
	uint32_t size = below(m, below(m, 2) ? 100 : SIZE_MAX_BYTES);
	uint64_t id;

	if (!f)
		return;
	id = walk(fs, m->dirs[d], name_of(k));
	truncate_at(fs, id, size);
	if (size < f->size)
		memset(f->data + size, 0, f->size - size);
	f->size = size;
	forget_sometimes(m, fs, id);
}

static void check_file(struct model *m, struct fs *fs, unsigned d, unsigned k)
{
	struct file *f = m->names[d][k];
	struct fs_attr other;
	struct fs_entry e;
	struct fs *fs2 = any_node(m);
	uint64_t id;
	int err = look_at(fs, m->dirs[d], name_of(k), &e);

	assert_int_equal(err, f ? 0 : -ENOENT);
	if (!f)
		return;
	assert_int_equal(e.nodeid, f->id);
	assert_int_equal(e.attr.size, f->size);
	assert_int_equal(e.attr.nlink, f->nlink);
	id = walk(fs2, m->dirs[d], name_of(k));
	other = attr_at(fs2, id);
	assert_int_equal(other.mtime.sec, e.attr.mtime.sec);
	assert_int_equal(other.mtime.nsec, e.attr.mtime.nsec);
	assert_int_equal(other.ctime.sec, e.attr.ctime.sec);
	assert_int_equal(other.ctime.nsec, e.attr.ctime.nsec);
	assert_int_equal(read_at(fs, e.nodeid, m->buf, SIZE_MAX_BYTES),
			 f->size);
	assert_memory_equal(m->buf, f->data, f->size);
	forget_sometimes(m, fs, id);
	forget_sometimes(m, fs2, id);
}

struct listing {
	struct model *m;
	unsigned d;
	unsigned count;
};

static bool list_one(void *arg, const struct fs_dirent *de)
{
	struct listing *l = arg;

	for (unsigned k = 0; k < NAMES; k++) {
		const char *name = name_of(k);

		if (de->len != strlen(name) || memcmp(name, de->name, de->len))
			continue;
		assert_non_null(l->m->names[l->d][k]);
		assert_int_equal(l->m->names[l->d][k]->id, de->ino);
		l->count++;
	}
	return true;
}

static void do_list(struct model *m, struct fs *fs, unsigned d)
{
	struct listing l = { m, d, 0 };
	struct inode *dir = get(fs, m->dirs[d]);
	unsigned expected = 0;

	assert_int_equal(fs_readdir(&volume_req, dir, 0, list_one, &l), 0);
	inode_put(dir);
	for (unsigned k = 0; k < NAMES; k++)
		expected += m->names[d][k] != NULL;
	assert_int_equal(l.count, expected);
}

static void step(struct model *m)
{
	struct fs *fs = any_node(m);
	unsigned d = below(m, DIRS), k = below(m, NAMES);

	switch (below(m, 12)) {
	case 0:
	case 1:
		do_create(m, fs, d, k);
		break;
	case 2:
		do_unlink(m, fs, d, k);
		break;
	case 3:
		do_rename(m, fs, d, k);
		break;
	case 4:
		do_link(m, fs, d, k);
		break;
	case 5:
	case 6:
	case 7:
		do_write(m, fs, d, k);
		break;
	case 8:
		do_truncate(m, fs, d, k);
		break;
	case 9:
		do_list(m, fs, d);
		break;
	default:
		check_file(m, fs, d, k);
		break;
	}
}

static void make_dirs(struct model *m)
{
	struct fs_entry e;
	char name[8];

	m->dirs[0] = ROOT;
	for (unsigned d = 1; d < DIRS; d++) {
		sprintf(name, "dir%u", d);
		assert_int_equal(make_at(m->n.node[0].fs, ROOT, name,
					 S_IFDIR | 0755, &e),
				 0);
		m->dirs[d] = e.nodeid;
		for (unsigned i = 1; i < NODES_MAX; i++)
			walk(m->n.node[i].fs, ROOT, name);
	}
}

static void test_random(void **state)
{
	struct model *m = calloc(1, sizeof(*m));

	printf("seed %llu, %u steps\n", (unsigned long long)seed, steps);
	m->buf = aligned_alloc(BLKDEV_ALIGN, (SIZE_MAX_BYTES / BLKDEV_ALIGN +
					      1) * BLKDEV_ALIGN);
	begin(&m->n, NODES_MAX);
	ug_prng_seed(&m->prng, seed);
	make_dirs(m);
	for (unsigned i = 0; i < steps; i++)
		step(m);
	for (unsigned i = 0; i < DIRS * NAMES; i++)
		check_file(m, any_node(m), i / NAMES, i % NAMES);
	for (unsigned i = 0; i < DIRS * NAMES; i++)
		drop(m->names[i / NAMES][i % NAMES]);
	nodes_end(&m->n);
	free(m->buf);
	free(m);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_data),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_attributes),
		cmocka_unit_test(test_unlinked_open),
		cmocka_unit_test(test_freed),
		cmocka_unit_test(test_block_used_again),
		cmocka_unit_test(test_random),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		steps = (unsigned)atoi(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
