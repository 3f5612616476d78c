/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_namei.c - the operations on names: what each gives and refuses, trees
 * of directories against a naive oracle, and many threads at once that must
 * neither wait for ever nor leave anything for fsck.gfs2 to say.
 */
#include <fcntl.h>
#include <unistd.h>

#include "fs/inode.h"
#include "tests/unit/fs/names.h"

static void begin(struct volume *v, unsigned bsize)
{
	struct volume_geometry g = { .bsize = bsize, .size_mib = 64 };

	volume_make(v, &g);
	volume_mount(v);
}

static void remount(struct volume *v)
{
	volume_unmount(v);
	volume_fsck(v);
	volume_mount(v);
}

static void end(struct volume *v)
{
	volume_unmount(v);
	volume_fsck(v);
	volume_remove(v);
}

/* ---- single operations ---- */

static void test_make(void **state)
{
	static const uint32_t modes[] = {
		S_IFREG | 0640, S_IFDIR | 0750, S_IFLNK | 0777,	 S_IFCHR | 0600,
		S_IFBLK | 0660, S_IFIFO | 0644, S_IFSOCK | 0755,
	};
	uint64_t ids[UG_ARRAY_SIZE(modes)];
	struct fs_attr a;
	struct volume v;
	char name[20];
	unsigned i, k;

	begin(&v, 4096);
	for (i = 0; i < UG_ARRAY_SIZE(modes); i++) {
		struct fs_req req = { .uid = 12, .gid = 34 };
		struct fs_make mk = { .name = name,
				      .mode = modes[i],
				      .rdev_major = 8,
				      .rdev_minor = 300000,
				      .target = "some/where",
				      .target_len = 10 };
		struct fs_entry e;

		mk.len = (size_t)sprintf(name, "name%u", i);
		assert_int_equal(try_make(&v, &req, ROOT, &mk, &e), 0);
		assert_int_equal(try_make(&v, &req, ROOT, &mk, &e), -EEXIST);
		ids[i] = e.nodeid;
	}
	for (k = 0; k < 2; k++) {
		for (i = 0; i < UG_ARRAY_SIZE(modes); i++) {
			bool dev = S_ISCHR(modes[i]) || S_ISBLK(modes[i]);

			a = attr_of(&v, ids[i]);
			assert_int_equal(a.mode, modes[i]);
			assert_int_equal(a.uid, 12);
			assert_int_equal(a.gid, 34);
			assert_int_equal(a.nlink, S_ISDIR(modes[i]) ? 2 : 1);
			assert_int_equal(a.blocks_512, 8);
			assert_int_equal(a.rdev_major, dev ? 8 : 0);
			assert_int_equal(a.rdev_minor, dev ? 300000 : 0);
			if (S_ISLNK(modes[i]))
				assert_int_equal(a.size, 10);
		}
		assert_int_equal(attr_of(&v, ROOT).nlink, 3);
		remount(&v);
	}
	end(&v);
}

static void test_names(void **state)
{
	char longest[257], nul[4] = { 'a', 0, 'b', 0 };
	struct fs_make mk = { .name = nul, .len = 3, .mode = S_IFREG | 0600 };
	struct fs_entry e;
	struct volume v;

	memset(longest, 'x', 256);
	longest[256] = '\0';
	begin(&v, 512);
	assert_int_equal(make_as(&v, ROOT, longest, S_IFREG, NULL),
			 -ENAMETOOLONG);
	assert_int_equal(look(&v, ROOT, longest, &e), -ENAMETOOLONG);
	longest[255] = '\0';
	make_file(&v, ROOT, longest);
	assert_int_equal(look(&v, ROOT, longest, &e), 0);
	assert_int_equal(make_as(&v, ROOT, "", S_IFREG, NULL), -ENOENT);
	assert_int_equal(make_as(&v, ROOT, "a/b", S_IFREG, NULL), -EINVAL);
	assert_int_equal(try_make(&v, &volume_req, ROOT, &mk, &e), -EINVAL);
	assert_int_equal(make_as(&v, ROOT, ".", S_IFDIR, NULL), -EEXIST);
	assert_int_equal(make_as(&v, ROOT, "..", S_IFREG, NULL), -EEXIST);
	assert_int_equal(unlink_name(&v, ROOT, "."), -EISDIR);
	assert_int_equal(rmdir_name(&v, ROOT, "."), -EINVAL);
	assert_int_equal(rmdir_name(&v, ROOT, ".."), -ENOTEMPTY);
	assert_int_equal(rename_name(&v, ROOT, ".", ROOT, "x"), -EBUSY);
	assert_int_equal(rename_name(&v, ROOT, longest, ROOT, ".."), -EBUSY);
	assert_int_equal(look(&v, ROOT, "\xff\x80 \n", &e), -ENOENT);
	make_file(&v, ROOT, "\xff\x80 \n");
	assert_int_equal(look(&v, ROOT, "\xff\x80 \n", &e), 0);
	end(&v);
}

static void test_dots(void **state)
{
	uint64_t a, b, f;
	struct fs_entry e;
	struct volume v;

	begin(&v, 4096);
	a = make_dir(&v, ROOT, "a");
	b = make_dir(&v, a, "b");
	f = make_file(&v, b, "f");
	assert_int_equal(look(&v, b, ".", &e), 0);
	assert_int_equal(e.nodeid, b);
	assert_int_equal(look(&v, b, "..", &e), 0);
	assert_int_equal(e.nodeid, a);
	assert_int_equal(look(&v, a, "..", &e), 0);
	assert_int_equal(e.nodeid, ROOT);
	assert_int_equal(look(&v, ROOT, "..", &e), 0);
	assert_int_equal(e.nodeid, ROOT);
	assert_int_equal(look(&v, f, ".", &e), 0);
	assert_int_equal(e.nodeid, f);
	assert_int_equal(look(&v, f, "..", &e), -ENOTDIR);
	assert_int_equal(look(&v, f, "x", &e), -ENOTDIR);
	end(&v);
}

static void test_unlink(void **state)
{
	struct fs_entry e;
	struct volume v;
	uint64_t d, f;

	begin(&v, 4096);
	d = make_dir(&v, ROOT, "d");
	f = make_file(&v, d, "f");
	assert_int_equal(unlink_name(&v, d, "g"), -ENOENT);
	assert_int_equal(rmdir_name(&v, d, "f"), -ENOTDIR);
	assert_int_equal(unlink_name(&v, ROOT, "d"), -EISDIR);
	assert_int_equal(rmdir_name(&v, ROOT, "d"), -ENOTEMPTY);
	assert_int_equal(link_name(&v, f, ROOT, "f2"), 0);
	assert_int_equal(link_name(&v, f, ROOT, "d"), -EEXIST);
	assert_int_equal(link_name(&v, d, ROOT, "d2"), -EPERM);
	assert_int_equal(attr_of(&v, f).nlink, 2);
	assert_int_equal(unlink_name(&v, d, "f"), 0);
	assert_int_equal(attr_of(&v, f).nlink, 1);
	assert_int_equal(attr_of(&v, ROOT).nlink, 3);
	assert_int_equal(rmdir_name(&v, ROOT, "d"), 0);
	assert_int_equal(attr_of(&v, ROOT).nlink, 2);
	assert_int_equal(look(&v, ROOT, "d", &e), -ENOENT);
	remount(&v);
	assert_int_equal(look(&v, ROOT, "f2", &e), 0);
	assert_int_equal(e.nodeid, f);
	assert_int_equal(unlink_name(&v, ROOT, "f2"), 0);
	end(&v);
}

static bool count_entry(void *arg, const struct fs_dirent *de)
{
	++*(unsigned *)arg;
	return true;
}

/* A directory that somebody is in, and a file that somebody has open. */
static void test_removed_in_use(void **state)
{
	struct fs_entry e;
	struct volume v;
	uint64_t d, f;
	struct inode *dir, *file;
	unsigned count = 0;

	begin(&v, 4096);
	d = make_dir(&v, ROOT, "d");
	f = make_file(&v, ROOT, "f");
	dir = node(&v, d);
	file = node(&v, f);
	assert_int_equal(rmdir_name(&v, ROOT, "d"), 0);
	assert_int_equal(unlink_name(&v, ROOT, "f"), 0);
	assert_int_equal(attr_of(&v, d).nlink, 0);
	assert_int_equal(attr_of(&v, f).nlink, 0);
	assert_int_equal(make_as(&v, d, "x", S_IFREG, NULL), -ENOENT);
	assert_int_equal(look(&v, d, "x", &e), -ENOENT);
	assert_int_equal(link_name(&v, f, ROOT, "f"), -ENOENT);
	make_file(&v, ROOT, "g");
	assert_int_equal(link_name(&v, f, d, "g"), -ENOENT);
	assert_int_equal(rename_name(&v, ROOT, "g", d, "g"), -ENOENT);
	assert_int_equal(fs_readdir(&volume_req, dir, 0, count_entry, &count),
			 0);
	assert_int_equal(count, 0);
	/* A handle to it is worth nothing any more. */
	assert_int_equal(fs_lookup_nodeid(v.fs, &volume_req, f, &e), -ESTALE);
	assert_int_equal(fs_lookup(&volume_req, file, ".", 1, &e), -ESTALE);
	inode_put(dir);
	inode_put(file);
	end(&v);
}

static void test_by_number(void **state)
{
	struct fs_entry e, by_name;
	struct volume v;
	uint64_t f, k;
	struct inode *ip;
	unsigned live = 0;

	begin(&v, 1024);
	f = make_file(&v, ROOT, "f");
	remount(&v);
	ip = fs_inode_get(v.fs, f);
	assert_null(ip);
	assert_int_equal(fs_lookup_nodeid(v.fs, &volume_req, f, &e), 0);
	assert_int_equal(look(&v, ROOT, "f", &by_name), 0);
	assert_int_equal(e.generation, by_name.generation);
	assert_int_equal(e.attr.ino, f);
	fs_forget(v.fs, f, 1);
	assert_int_equal(fs_lookup_nodeid(v.fs, &volume_req, ROOT, &e), 0);
	assert_int_equal(e.nodeid, ROOT);
	/* Whatever the number: an inode or none, never a fault. */
	for (k = 0; k < 66000; k++) {
		int err = fs_lookup_nodeid(v.fs, &volume_req, k, &e);

		if (err) {
			assert_int_equal(err, -ESTALE);
			continue;
		}
		live++;
		fs_forget(v.fs, e.nodeid, 1);
	}
	/* Root twice, and the file; nothing of the metadata tree. */
	assert_int_equal(live, 3);
	assert_false(fs_is_withdrawn(v.fs));
	end(&v);
}

static void test_symlink(void **state)
{
	struct fs_make mk = { .name = "l", .len = 1, .mode = S_IFLNK | 0777 };
	char target[4096], back[4096];
	struct fs_entry e;
	struct volume v;
	struct inode *ip;

	memset(target, 't', sizeof(target));
	mk.target = target;
	begin(&v, 1024);
	mk.target_len = 1024 - 232;
	assert_int_equal(try_make(&v, &volume_req, ROOT, &mk, &e),
			 -ENAMETOOLONG);
	mk.target_len = 0;
	assert_int_equal(try_make(&v, &volume_req, ROOT, &mk, &e), -ENOENT);
	mk.target_len = 1024 - 232 - 1;
	assert_int_equal(try_make(&v, &volume_req, ROOT, &mk, &e), 0);
	remount(&v);
	ip = node(&v, e.nodeid);
	assert_int_equal(fs_readlink(&volume_req, ip, back, sizeof(back)),
			 mk.target_len);
	assert_memory_equal(back, target, mk.target_len);
	assert_int_equal(fs_readlink(&volume_req, ip, back, 10), 10);
	inode_put(ip);
	ip = node(&v, ROOT);
	assert_int_equal(fs_readlink(&volume_req, ip, back, 10), -EINVAL);
	inode_put(ip);
	end(&v);
}

static void set_mode(struct volume *v, uint64_t id, uint32_t mode, uint32_t uid,
		     uint32_t gid)
{
	struct fs_setattr set = { .valid =
					  FS_SET_MODE | FS_SET_UID | FS_SET_GID,
				  .mode = mode,
				  .uid = uid,
				  .gid = gid };
	struct inode *ip = node(v, id);
	struct fs_attr a;

	assert_int_equal(fs_setattr(&volume_req, ip, &set, &a), 0);
	inode_put(ip);
}

static struct fs_attr make_by(struct volume *v, uint32_t uid, uint64_t dir,
			      const char *name, uint32_t mode)
{
	struct fs_req req = { .uid = uid, .gid = uid };
	struct fs_make mk = { .name = name, .len = strlen(name), .mode = mode };
	struct fs_entry e;

	assert_int_equal(try_make(v, &req, dir, &mk, &e), 0);
	return e.attr;
}

static void test_owners(void **state)
{
	struct fs_attr a;
	struct volume v;
	uint64_t d;

	begin(&v, 4096);
	d = make_dir(&v, ROOT, "sgid");
	set_mode(&v, d, 02775, 5, 77);
	a = make_by(&v, 9, d, "f", S_IFREG | 0755);
	assert_int_equal(a.gid, 77);
	assert_int_equal(a.uid, 9);
	assert_int_equal(a.mode, S_IFREG | 0755);
	a = make_by(&v, 9, d, "d", S_IFDIR | 0755);
	assert_int_equal(a.gid, 77);
	assert_int_equal(a.mode, S_IFDIR | 02755);
	d = make_dir(&v, ROOT, "suid");
	set_mode(&v, d, 04777, 5, 5);
	a = make_by(&v, 9, d, "f", S_IFREG | 06755);
	assert_int_equal(a.uid, 9);
	volume_unmount(&v);
	v.opt.suiddir = true;
	volume_mount(&v);
	a = make_by(&v, 9, d, "g", S_IFREG | 06755);
	assert_int_equal(a.uid, 5);
	assert_int_equal(a.mode, S_IFREG | 0644);
	a = make_by(&v, 9, d, "d", S_IFDIR | 0700);
	assert_int_equal(a.uid, 5);
	assert_int_equal(a.mode, S_IFDIR | 04700);
	end(&v);
}

static int unlink_by(struct volume *v, uint32_t uid, uint64_t dir,
		     const char *name)
{
	struct fs_req req = { .uid = uid, .gid = uid };
	struct inode *d = node(v, dir);
	int err = fs_unlink(&req, d, name, strlen(name));

	inode_put(d);
	return err;
}

static void test_sticky(void **state)
{
	struct fs_req nine = { .uid = 9, .gid = 9 };
	struct volume v;
	struct inode *d;
	uint64_t t;

	begin(&v, 4096);
	t = make_dir(&v, ROOT, "tmp");
	set_mode(&v, t, 01777, 5, 5);
	make_by(&v, 7, t, "a", S_IFREG | 0666);
	make_by(&v, 7, t, "b", S_IFREG | 0666);
	make_by(&v, 7, t, "c", S_IFREG | 0666);
	make_by(&v, 9, t, "mine", S_IFREG | 0666);
	assert_int_equal(unlink_by(&v, 9, t, "a"), -EPERM);
	d = node(&v, t);
	assert_int_equal(fs_rename(&nine, d, "a", 1, d, "z", 1, 0), -EPERM);
	assert_int_equal(fs_rename(&nine, d, "mine", 4, d, "a", 1, 0), -EPERM);
	inode_put(d);
	assert_int_equal(unlink_by(&v, 7, t, "a"), 0); /* its owner */
	assert_int_equal(unlink_by(&v, 5, t, "b"), 0); /* the directory's */
	assert_int_equal(unlink_by(&v, 0, t, "c"), 0);
	end(&v);
}

static bool same_time(struct fs_time a, struct fs_time b)
{
	return a.sec == b.sec && a.nsec == b.nsec;
}

static void test_times(void **state)
{
	struct fs_attr before, after;
	struct volume v;
	uint64_t d, f;

	begin(&v, 4096);
	d = make_dir(&v, ROOT, "d");
	before = attr_of(&v, d);
	usleep(2000);
	f = make_file(&v, d, "f");
	after = attr_of(&v, d);
	assert_false(same_time(after.mtime, before.mtime));
	assert_true(same_time(after.mtime, after.ctime));
	before = attr_of(&v, f);
	usleep(2000);
	assert_int_equal(link_name(&v, f, d, "g"), 0);
	after = attr_of(&v, f);
	assert_true(same_time(after.mtime, before.mtime));
	assert_false(same_time(after.ctime, before.ctime));
	before = attr_of(&v, d);
	usleep(2000);
	assert_int_equal(rename_name(&v, d, "f", ROOT, "f"), 0);
	after = attr_of(&v, d);
	assert_false(same_time(after.mtime, before.mtime));
	end(&v);
}

static void test_readonly(void **state)
{
	struct fs_entry e;
	struct volume v;
	uint64_t f;

	begin(&v, 4096);
	f = make_file(&v, ROOT, "f");
	volume_unmount(&v);
	v.opt.readonly = true;
	volume_mount(&v);
	assert_int_equal(look(&v, ROOT, "f", &e), 0);
	assert_int_equal(make_as(&v, ROOT, "g", S_IFREG, NULL), -EROFS);
	assert_int_equal(link_name(&v, f, ROOT, "g"), -EROFS);
	assert_int_equal(unlink_name(&v, ROOT, "f"), -EROFS);
	assert_int_equal(rmdir_name(&v, ROOT, "f"), -EROFS);
	assert_int_equal(rename_name(&v, ROOT, "f", ROOT, "g"), -EROFS);
	end(&v);
}

static void test_create(void **state)
{
	struct fs_make mk = { .name = "f", .len = 1, .mode = S_IFREG | 0600 };
	struct fs_req hasty = volume_req;
	bool created = false;
	struct fs_entry e;
	struct volume v;
	struct inode *d, *ip;

	hasty.nowait = true;
	begin(&v, 4096);
	make_dir(&v, ROOT, "d");
	assert_int_equal(make_as(&v, ROOT, "l", S_IFLNK | 0777, NULL), 0);
	d = node(&v, ROOT);
	assert_int_equal(
		fs_create(&volume_req, d, &mk, O_RDWR | O_CREAT, &e, &created),
		0);
	assert_true(created);
	ip = node(&v, e.nodeid);
	fs_release(ip, O_RDWR);
	inode_put(ip);
	fs_forget(v.fs, e.nodeid, 1);
	assert_int_equal(fs_create(&volume_req, d, &mk,
				   O_RDWR | O_CREAT | O_EXCL, &e, &created),
			 -EEXIST);
	assert_int_equal(
		fs_create(&hasty, d, &mk, O_RDWR | O_CREAT, &e, &created),
		-EAGAIN);
	assert_int_equal(
		fs_create(&volume_req, d, &mk, O_RDWR | O_CREAT, &e, &created),
		0);
	assert_false(created);
	ip = node(&v, e.nodeid);
	fs_release(ip, O_RDWR);
	inode_put(ip);
	fs_forget(v.fs, e.nodeid, 1);
	mk.name = "d";
	assert_int_equal(
		fs_create(&volume_req, d, &mk, O_RDWR | O_CREAT, &e, &created),
		-EISDIR);
	mk.name = "l";
	assert_int_equal(
		fs_create(&volume_req, d, &mk, O_RDWR | O_CREAT, &e, &created),
		-ESTALE);
	inode_put(d);
	end(&v);
}

static void test_rename(void **state)
{
	uint64_t a, b, c, f, g;
	struct fs_entry e;
	struct volume v;

	begin(&v, 4096);
	a = make_dir(&v, ROOT, "a");
	b = make_dir(&v, a, "b");
	c = make_dir(&v, b, "c");
	f = make_file(&v, ROOT, "f");
	g = make_file(&v, b, "g");
	/* Into itself, and over what is above. */
	assert_int_equal(rename_name(&v, ROOT, "a", a, "x"), -EINVAL);
	assert_int_equal(rename_name(&v, ROOT, "a", c, "x"), -EINVAL);
	assert_int_equal(rename_name(&v, b, "c", a, "b"), -ENOTEMPTY);
	assert_int_equal(rename_name(&v, b, "c", ROOT, "a"), -ENOTEMPTY);
	assert_int_equal(rename_name(&v, b, "g", ROOT, "a"), -ENOTEMPTY);
	assert_int_equal(rename_name(&v, b, "g", b, "c"), -EISDIR);
	assert_int_equal(rename_name(&v, b, "c", ROOT, "f"), -ENOTDIR);
	assert_int_equal(rename_name(&v, b, "x", ROOT, "f"), -ENOENT);
	assert_int_equal(rename_flags(&v, b, "g", ROOT, "f", 1), -EEXIST);
	assert_int_equal(rename_flags(&v, b, "g", ROOT, "f", 2), -EINVAL);
	/* A file over another one. */
	assert_int_equal(rename_name(&v, b, "g", ROOT, "f"), 0);
	assert_int_equal(look(&v, ROOT, "f", &e), 0);
	assert_int_equal(e.nodeid, g);
	assert_int_equal(look(&v, b, "g", &e), -ENOENT);
	assert_int_equal(fs_lookup_nodeid(v.fs, &volume_req, f, &e), -ESTALE);
	/* Two names of one file. */
	assert_int_equal(link_name(&v, g, b, "g"), 0);
	assert_int_equal(rename_name(&v, b, "g", ROOT, "f"), 0);
	assert_int_equal(attr_of(&v, g).nlink, 2);
	assert_int_equal(look(&v, b, "g", &e), 0);
	/* A directory to another parent. */
	assert_int_equal(rename_flags(&v, b, "c", ROOT, "c", 1), 0);
	assert_int_equal(look(&v, c, "..", &e), 0);
	assert_int_equal(e.nodeid, ROOT);
	assert_int_equal(attr_of(&v, b).nlink, 2);
	assert_int_equal(attr_of(&v, ROOT).nlink, 4);
	/* A directory over an empty one, in one directory and across. */
	make_dir(&v, ROOT, "c2");
	assert_int_equal(rename_name(&v, ROOT, "c", ROOT, "c2"), 0);
	assert_int_equal(attr_of(&v, ROOT).nlink, 4);
	make_dir(&v, b, "c3");
	assert_int_equal(rename_name(&v, ROOT, "c2", b, "c3"), 0);
	assert_int_equal(look(&v, b, "c3", &e), 0);
	assert_int_equal(e.nodeid, c);
	assert_int_equal(look(&v, c, "..", &e), 0);
	assert_int_equal(e.nodeid, b);
	assert_int_equal(attr_of(&v, b).nlink, 3);
	assert_int_equal(attr_of(&v, ROOT).nlink, 3);
	assert_int_equal(rename_name(&v, ROOT, "a", b, "c3"), -EINVAL);
	end(&v);
}

/* The name's new record may split the leaf of the old one, or convert. */
static void test_rename_in_full_directory(void **state)
{
	char old[300], new[300];
	struct volume v;
	struct fs_entry e;
	unsigned n;
	uint64_t d;

	begin(&v, 512);
	d = make_dir(&v, ROOT, "d");
	for (n = 0; n < 400; n++) {
		sprintf(old, "%03u", n);
		make_file(&v, d, old);
		memset(new, 'n', 255);
		new[255 - n % 200] = '\0';
		memcpy(new, old, 3);
		if (n % 2)
			assert_int_equal(rename_name(&v, d, old, d, new), 0);
	}
	remount(&v);
	for (n = 0; n < 400; n++) {
		memset(old, 'n', 255);
		old[n % 2 ? 255 - n % 200 : 3] = '\0';
		sprintf(new, "%03u", n);
		memcpy(old, new, 3);
		assert_int_equal(look(&v, d, old, &e), 0);
	}
	end(&v);
}

/* Synchronous volumes: what was answered survives. */
static void test_dirsync(void **state)
{
	struct fs_req hasty = volume_req;
	struct fs_make mk = { .name = "n", .len = 1, .mode = S_IFREG | 0600 };
	struct fs_entry e;
	struct volume v;

	hasty.nowait = true;
	begin(&v, 4096);
	volume_unmount(&v);
	v.opt.dirsync = true;
	volume_mount(&v);
	assert_int_equal(try_make(&v, &hasty, ROOT, &mk, &e), -EAGAIN);
	make_file(&v, ROOT, "a");
	make_file(&v, ROOT, "b");
	make_dir(&v, ROOT, "d");
	assert_int_equal(rename_name(&v, ROOT, "a", ROOT, "a2"), 0);
	assert_int_equal(unlink_name(&v, ROOT, "b"), 0);
	volume_crash(&v);
	volume_mount(&v);
	assert_int_equal(look(&v, ROOT, "a2", &e), 0);
	assert_int_equal(look(&v, ROOT, "d", &e), 0);
	assert_int_equal(look(&v, ROOT, "a", &e), -ENOENT);
	assert_int_equal(look(&v, ROOT, "b", &e), -ENOENT);
	end(&v);
}

static void test_inherited_flags(void **state)
{
	/* No operation sets it yet: through the offline editor. */
	char cmd[300];
	struct fs_entry e;
	struct volume v;
	uint64_t d, sub, f;

	begin(&v, 4096);
	d = make_dir(&v, ROOT, "d");
	volume_unmount(&v);
	snprintf(cmd, sizeof(cmd),
		 "gfs2_edit -p %llu field di_flags 0x80000001 %s >/dev/null",
		 (unsigned long long)d, v.path);
	if (system(cmd))
		skip();
	volume_mount(&v);
	sub = make_dir(&v, d, "sub");
	f = make_file(&v, d, "f");
	volume_unmount(&v);
	snprintf(cmd, sizeof(cmd),
		 "gfs2_edit -p %llu field di_flags %s | grep -qx "
		 "GFS2_DIF_JDATA/GFS2_DIF_INHERIT_JDATA && "
		 "gfs2_edit -p %llu field di_flags %s | grep -qx "
		 "GFS2_DIF_JDATA",
		 (unsigned long long)sub, v.path, (unsigned long long)f,
		 v.path);
	assert_int_equal(system(cmd), 0);
	volume_mount(&v);
	assert_int_equal(look(&v, d, "f", &e), 0);
	end(&v);
}

/* ---- a tree against an oracle ---- */

#define NAMES 8
#define OBJECTS 400

struct object {
	uint64_t id; /* 0: free or gone */
	bool is_dir;
	unsigned nlink; /* of a file */
	int parent;
	int entries[NAMES]; /* of a directory; -1: none */
};

struct tree {
	struct volume *v;
	struct ug_prng prng;
	struct object obj[OBJECTS]; /* 0: the root */
};

static const char *name_of(unsigned n)
{
	/* The last are long, so that few entries fill a small block. */
	static const char *const names[NAMES] = {
		"a",
		"bb",
		"ccc",
		"dddd",
		"e",
		"ffffffffffffffffffffff",
		"gggggggggggggggggggggggggggggggggggggggggggggggggggggg",
		"hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh",
	};

	return names[n];
}

static unsigned below(struct tree *t, unsigned limit)
{
	return (unsigned)ug_prng_below(&t->prng, limit);
}

static int random_dir(struct tree *t)
{
	int i;

	do
		i = (int)below(t, OBJECTS);
	while (!t->obj[i].id || !t->obj[i].is_dir);
	return i;
}

static int free_object(struct tree *t)
{
	int i;

	for (i = 1; i < OBJECTS; i++)
		if (!t->obj[i].id)
			return i;
	return -1;
}

static unsigned dir_entries(const struct object *o)
{
	unsigned i, n = 0;

	for (i = 0; i < NAMES; i++)
		n += o->entries[i] >= 0;
	return n;
}

static bool is_above(const struct tree *t, int upper, int lower)
{
	for (;; lower = t->obj[lower].parent) {
		if (lower == upper)
			return true;
		if (lower == 0)
			return false;
	}
}

static void try_new(struct tree *t, bool is_dir)
{
	int d = random_dir(t), i = free_object(t);
	unsigned n = below(t, NAMES), k;
	uint64_t id = 0;
	int err;

	if (i < 0)
		return;
	err = make_as(t->v, t->obj[d].id, name_of(n),
		      is_dir ? S_IFDIR | 0755 : S_IFREG | 0644, &id);
	if (t->obj[d].entries[n] >= 0) {
		assert_int_equal(err, -EEXIST);
		return;
	}
	assert_int_equal(err, 0);
	t->obj[i] = (struct object){
		.id = id, .is_dir = is_dir, .nlink = 1, .parent = d
	};
	for (k = 0; k < NAMES; k++)
		t->obj[i].entries[k] = -1;
	t->obj[d].entries[n] = i;
}

static void drop(struct tree *t, int i)
{
	struct object *o = &t->obj[i];

	if (o->is_dir || --o->nlink == 0)
		o->id = 0;
}

static void try_unlink(struct tree *t)
{
	int d = random_dir(t), expect = 0;
	unsigned n = below(t, NAMES);
	int i = t->obj[d].entries[n];

	if (i < 0)
		expect = -ENOENT;
	else if (t->obj[i].is_dir)
		expect = -EISDIR;
	assert_int_equal(unlink_name(t->v, t->obj[d].id, name_of(n)), expect);
	if (!expect) {
		t->obj[d].entries[n] = -1;
		drop(t, i);
	}
}

static void try_rmdir(struct tree *t)
{
	int d = random_dir(t), expect = 0;
	unsigned n = below(t, NAMES);
	int i = t->obj[d].entries[n];

	if (i < 0)
		expect = -ENOENT;
	else if (!t->obj[i].is_dir)
		expect = -ENOTDIR;
	else if (dir_entries(&t->obj[i]))
		expect = -ENOTEMPTY;
	assert_int_equal(rmdir_name(t->v, t->obj[d].id, name_of(n)), expect);
	if (!expect) {
		t->obj[d].entries[n] = -1;
		drop(t, i);
	}
}

static void try_link(struct tree *t)
{
	int d = random_dir(t), i = (int)below(t, OBJECTS), expect = 0;
	unsigned n = below(t, NAMES);

	if (!t->obj[i].id)
		return;
	if (t->obj[i].is_dir)
		expect = -EPERM;
	else if (t->obj[d].entries[n] >= 0)
		expect = -EEXIST;
	assert_int_equal(
		link_name(t->v, t->obj[i].id, t->obj[d].id, name_of(n)),
		expect);
	if (!expect) {
		t->obj[d].entries[n] = i;
		t->obj[i].nlink++;
	}
}

static int expect_rename(const struct tree *t, int from, int to, int m, int r,
			 bool noreplace)
{
	const struct object *obj = t->obj;

	if (m < 0)
		return -ENOENT;
	if (r >= 0 && noreplace)
		return -EEXIST;
	if (r == m)
		return 0;
	if (obj[m].is_dir && is_above(t, m, to))
		return -EINVAL;
	if (r >= 0 && obj[r].is_dir && is_above(t, r, from))
		return -ENOTEMPTY;
	if (r >= 0 && obj[m].is_dir != obj[r].is_dir)
		return obj[m].is_dir ? -ENOTDIR : -EISDIR;
	if (r >= 0 && obj[r].is_dir && dir_entries(&obj[r]))
		return -ENOTEMPTY;
	return 0;
}

static void try_rename(struct tree *t)
{
	int from = random_dir(t), to = random_dir(t);
	unsigned n = below(t, NAMES), k = below(t, NAMES);
	bool noreplace = below(t, 5) == 0;
	int m = t->obj[from].entries[n], r = t->obj[to].entries[k];
	int expect = expect_rename(t, from, to, m, r, noreplace);

	assert_int_equal(rename_flags(t->v, t->obj[from].id, name_of(n),
				      t->obj[to].id, name_of(k), noreplace),
			 expect);
	if (expect || r == m)
		return;
	if (r >= 0)
		drop(t, r);
	t->obj[from].entries[n] = -1;
	t->obj[to].entries[k] = m;
	if (t->obj[m].is_dir)
		t->obj[m].parent = to;
}

static void check_object(struct tree *t, int i)
{
	struct object *o = &t->obj[i];
	unsigned n, subdirs = 0, count = 0;
	struct fs_entry e;
	struct inode *d;

	if (!o->id)
		return;
	if (!o->is_dir) {
		assert_int_equal(attr_of(t->v, o->id).nlink, o->nlink);
		return;
	}
	for (n = 0; n < NAMES; n++) {
		int err = look(t->v, o->id, name_of(n), &e);
		int k = o->entries[n];

		assert_int_equal(err, k < 0 ? -ENOENT : 0);
		if (k >= 0) {
			assert_int_equal(e.nodeid, t->obj[k].id);
			subdirs += t->obj[k].is_dir;
		}
	}
	assert_int_equal(look(t->v, o->id, "..", &e), 0);
	assert_int_equal(e.nodeid, t->obj[o->parent].id);
	assert_int_equal(attr_of(t->v, o->id).nlink, 2 + subdirs);
	d = node(t->v, o->id);
	assert_int_equal(fs_readdir(&volume_req, d, 0, count_entry, &count), 0);
	inode_put(d);
	assert_int_equal(count, 2 + dir_entries(o));
}

static void run_tree(unsigned bsize, uint64_t seed, unsigned steps)
{
	struct tree *t = calloc(1, sizeof(*t));
	struct volume v;
	unsigned i, k;

	begin(&v, bsize);
	t->v = &v;
	ug_prng_seed(&t->prng, seed);
	t->obj[0] = (struct object){ .id = ROOT, .is_dir = true };
	for (k = 0; k < NAMES; k++)
		t->obj[0].entries[k] = -1;
	for (i = 0; i < steps; i++) {
		switch (below(t, 10)) {
		case 0:
		case 1:
			try_new(t, true);
			break;
		case 2:
		case 3:
			try_new(t, false);
			break;
		case 4:
			try_unlink(t);
			break;
		case 5:
			try_rmdir(t);
			break;
		case 6:
			try_link(t);
			break;
		default:
			try_rename(t);
		}
		check_object(t, (int)below(t, OBJECTS));
		if (i % (steps / 4) == steps / 8)
			remount(&v);
	}
	for (k = 0; k < OBJECTS; k++)
		check_object(t, (int)k);
	end(&v);
	free(t);
}

static void test_tree(void **state)
{
	run_tree(4096, 1, 6000);
	run_tree(512, 2, 6000);
	run_tree(1024, 3, 3000);
}

/* ---- many threads ---- */

#define THREADS 6

struct worker {
	struct volume *v;
	pthread_t thread;
	struct ug_prng prng;
	unsigned rounds;
	unsigned done[9]; /* successes of each operation */
};

static const char letters[] = "abcde";

/* As a front end does: first without waiting, then with. */
static int patient(int (*op)(const struct fs_req *req, void *arg), void *arg)
{
	struct fs_req req = volume_req;
	int err;

	req.nowait = true;
	err = op(&req, arg);
	if (err != -EAGAIN)
		return err;
	req.nowait = false;
	err = op(&req, arg);
	assert_int_not_equal(err, -EAGAIN);
	return err;
}

struct args {
	struct fs *fs;
	struct inode *a, *b;
	const char *x, *y;
	uint32_t mode;
	struct fs_entry e;
};

static int op_lookup(const struct fs_req *req, void *arg)
{
	struct args *g = arg;

	return fs_lookup(req, g->a, g->x, strlen(g->x), &g->e);
}

static int op_make(const struct fs_req *req, void *arg)
{
	struct args *g = arg;
	struct fs_make mk = { .name = g->x, .len = 1, .mode = g->mode };

	return fs_make(req, g->a, &mk, &g->e);
}

static int op_unlink(const struct fs_req *req, void *arg)
{
	struct args *g = arg;

	return fs_unlink(req, g->a, g->x, 1);
}

static int op_rmdir(const struct fs_req *req, void *arg)
{
	struct args *g = arg;

	return fs_rmdir(req, g->a, g->x, 1);
}

static int op_rename(const struct fs_req *req, void *arg)
{
	struct args *g = arg;

	return fs_rename(req, g->a, g->x, 1, g->b, g->y, 1, 0);
}

/* A file that is found under one name gets another. */
static int op_link(const struct fs_req *req, void *arg)
{
	struct args *g = arg;
	struct inode *ip;
	int err;

	err = fs_lookup(req, g->a, g->x, 1, &g->e);
	if (err)
		return err;
	ip = fs_inode_get(g->fs, g->e.nodeid);
	fs_forget(g->fs, g->e.nodeid, 1);
	err = ip ? fs_link(req, ip, g->b, g->y, 1, &g->e) : -ENOENT;
	if (!err)
		fs_forget(g->fs, g->e.nodeid, 1);
	inode_put(ip);
	return err;
}

static bool count_plus(void *arg, const struct fs_dirent *de,
		       const struct fs_entry *e)
{
	struct args *g = arg;

	if (e->nodeid)
		fs_forget(g->fs, e->nodeid, 1);
	return true;
}

static int op_list(const struct fs_req *req, void *arg)
{
	struct args *g = arg;

	return fs_readdirplus(req, g->a, 0, count_plus, g);
}

/* Some directory: a random way down from the root. Referenced. */
static struct inode *wander(struct worker *w)
{
	struct inode *dir = node(w->v, ROOT), *next;
	unsigned depth = (unsigned)ug_prng_below(&w->prng, 5);
	char name[2] = { 0 };

	while (depth--) {
		struct args g = { .a = dir, .x = name };

		name[0] = letters[ug_prng_below(&w->prng, 5)];
		if (ug_prng_below(&w->prng, 9) == 0)
			g.x = "..";
		if (patient(op_lookup, &g))
			break;
		next = fs_inode_get(w->v->fs, g.e.nodeid);
		fs_forget(w->v->fs, g.e.nodeid, 1);
		if (!next)
			break;
		if (!S_ISDIR(g.e.attr.mode)) {
			inode_put(next);
			break;
		}
		inode_put(dir);
		dir = next;
	}
	return dir;
}

static int run_op(unsigned op, struct args *g)
{
	int err;

	switch (op) {
	case 0:
	case 1:
	case 2:
		g->mode = op == 2 ? S_IFREG | 0644 : S_IFDIR | 0755;
		err = patient(op_make, g);
		if (!err)
			fs_forget(g->fs, g->e.nodeid, 1);
		return err;
	case 3:
		return patient(op_unlink, g);
	case 4:
		return patient(op_rmdir, g);
	case 5:
		return patient(op_list, g);
	case 6:
		return patient(op_link, g);
	default:
		return patient(op_rename, g);
	}
}

static void one_round(struct worker *w)
{
	char x[2] = { letters[ug_prng_below(&w->prng, 5)] };
	char y[2] = { letters[ug_prng_below(&w->prng, 5)] };
	struct args g = {
		.fs = w->v->fs, .a = wander(w), .b = wander(w), .x = x, .y = y
	};
	unsigned op = (unsigned)ug_prng_below(&w->prng, 9);
	int err;

	/* Renames within one directory are frequent, too. */
	if (op == 8) {
		inode_put(g.b);
		g.b = g.a;
		inode_ref(g.b, 1);
	}
	err = run_op(op, &g);
	assert_true(err != -EIO && err != -EUCLEAN && err != -EDEADLK);
	w->done[op] += !err;
	inode_put(g.a);
	inode_put(g.b);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	unsigned i;

	for (i = 0; i < w->rounds; i++)
		one_round(w);
	return NULL;
}

static void test_threads(void **state)
{
	struct worker w[THREADS];
	unsigned done[9] = { 0 }, i, op;
	struct volume v;

	begin(&v, 1024);
	for (i = 0; i < THREADS; i++) {
		w[i] = (struct worker){ .v = &v, .rounds = 30000 };
		ug_prng_seed(&w[i].prng, 100 + i);
	}
	/* Whoever waits for ever is killed here. */
	alarm(200);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
	for (i = 0; i < THREADS; i++) {
		pthread_join(w[i].thread, NULL);
		for (op = 0; op < UG_ARRAY_SIZE(done); op++)
			done[op] += w[i].done[op];
	}
	alarm(0);
	for (op = 0; op < UG_ARRAY_SIZE(done); op++)
		assert_true(done[op] > 100);
	assert_false(fs_is_withdrawn(v.fs));
	end(&v);
}

/* An argument picks tests by name, with * and ?. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_make),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_dots),
		cmocka_unit_test(test_unlink),
		cmocka_unit_test(test_removed_in_use),
		cmocka_unit_test(test_by_number),
		cmocka_unit_test(test_symlink),
		cmocka_unit_test(test_owners),
		cmocka_unit_test(test_sticky),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_readonly),
		cmocka_unit_test(test_create),
		cmocka_unit_test(test_rename),
		cmocka_unit_test(test_rename_in_full_directory),
		cmocka_unit_test(test_dirsync),
		cmocka_unit_test(test_inherited_flags),
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_threads),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
