/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_xattr_acl.c - access control lists of inodes on real volumes: stored,
 * followed by the mode and by chmod, inherited.
 */
#include "fs/icache.h"
#include "fs/statfs.h"
#include "tests/unit/fs/aclmake.h"
#include "tests/unit/fs/xattrcalls.h"

#define ACCESS "system.posix_acl_access"
#define DEFAULT "system.posix_acl_default"

static struct volume vol;

static void start(unsigned bsize)
{
	struct volume_geometry g = { .bsize = bsize };

	volume_make(&vol, &g);
	vol.opt.acl = true;
	volume_mount(&vol);
}

static void remount(void)
{
	volume_unmount(&vol);
	volume_fsck(&vol);
	volume_mount(&vol);
}

static void finish(void)
{
	volume_unmount(&vol);
	volume_fsck(&vol);
	volume_remove(&vol);
}

static int set_list(uint64_t id, const char *name, const char *text)
{
	uint8_t value[8192];

	return set_attr(&vol, id, name, value, acl_of_text(text, value), 0);
}

/* text NULL: there is none. */
static void assert_list(uint64_t id, const char *name, const char *text)
{
	uint8_t want[8192], got[8192];
	ssize_t n = get_attr(&vol, id, name, got, sizeof(got));

	if (!text) {
		assert_int_equal(n, -ENODATA);
		return;
	}
	assert_int_equal(n, acl_of_text(text, want));
	assert_memory_equal(got, want, n);
}

static uint32_t mode_of(uint64_t id)
{
	return attr_of(&vol, id).mode & 07777;
}

static void chmod_to(uint64_t id, uint32_t mode)
{
	struct fs_setattr set = { .valid = FS_SET_MODE, .mode = mode };
	struct inode *ip = node(&vol, id);
	struct fs_attr attr;

	assert_int_equal(fs_setattr(&volume_req, ip, &set, &attr), 0);
	inode_put(ip);
}

static uint64_t make_masked(uint64_t dir, const char *name, uint32_t mode,
			    uint32_t umask)
{
	const struct fs_make mk = {
		.name = name,
		.len = strlen(name),
		.mode = mode,
		.umask = umask,
		.target = "t",
		.target_len = 1,
	};
	struct fs_entry e;

	assert_int_equal(try_make(&vol, &volume_req, dir, &mk, &e), 0);
	assert_int_equal(e.attr.mode, attr_of(&vol, e.nodeid).mode);
	return e.nodeid;
}

static void test_access(void **state)
{
	uint64_t f;

	start(0);
	f = make_file(&vol, ROOT, "f");
	assert_int_equal(set_list(f, ACCESS, "u::rw u:5:rwx g::r m::rwx o::"),
			 0);
	assert_int_equal(mode_of(f), 0670);
	chmod_to(f, 04751);
	assert_int_equal(mode_of(f), 04751);
	assert_list(f, ACCESS, "u::rwx u:5:rwx g::r m::rx o::x");
	remount();
	assert_list(f, ACCESS, "u::rwx u:5:rwx g::r m::rx o::x");
	/* One that a mode can say becomes a mode. */
	assert_int_equal(set_list(f, ACCESS, "u::rw g::r o::r"), 0);
	assert_int_equal(mode_of(f), 04644);
	assert_list(f, ACCESS, NULL);
	chmod_to(f, 0600);
	assert_list(f, ACCESS, NULL);

	assert_int_equal(set_list(f, ACCESS, "u::rw u:5:r g::r m::r o::"), 0);
	assert_int_equal(remove_attr(&vol, f, ACCESS), 0);
	assert_int_equal(mode_of(f), 0640);
	assert_list(f, ACCESS, NULL);
	assert_int_equal(remove_attr(&vol, f, ACCESS), 0);
	assert_int_equal(set_list(f, ACCESS, ""), 0);
	finish();
}

static void test_refusals(void **state)
{
	static char text[8192];
	uint64_t f, l = 0, d;
	size_t len;

	start(0);
	f = make_file(&vol, ROOT, "f");
	d = make_dir(&vol, ROOT, "d");
	assert_int_equal(make_as(&vol, ROOT, "l", S_IFLNK | 0777, &l), 0);
	assert_int_equal(set_list(f, ACCESS, "u::rw u:5:r g::r o::"), -EINVAL);
	assert_int_equal(set_attr(&vol, f, ACCESS, "rubbish", 7, 0), -EINVAL);
	assert_int_equal(set_list(l, ACCESS, "u::rw g::r o::"), -EOPNOTSUPP);
	assert_int_equal(set_list(f, DEFAULT, "u::rw g::r o::"), -EACCES);
	assert_int_equal(remove_attr(&vol, f, DEFAULT), 0);
	assert_int_equal(set_attr(&vol, f, "system.posix_acl_other", "", 0, 0),
			 -EOPNOTSUPP);
	len = (size_t)sprintf(text, "u::rw ");
	for (unsigned i = 0; i < 296; i++)
		len += (size_t)sprintf(text + len, "u:%u:r ", i);
	strcpy(text + len, "g::r m::r o::");
	assert_int_equal(set_list(d, DEFAULT, text), 0);
	strcpy(text + len, "u:999:r g::r m::r o::");
	assert_int_equal(set_list(d, DEFAULT, text), -E2BIG);
	finish();
}

static void test_set_group_id(void **state)
{
	uint8_t value[128];
	size_t size = acl_of_text("u::rwx u:5:r g::rx m::rx o::", value);
	uint64_t f;

	start(0);
	f = make_file(&vol, ROOT, "f");
	chmod_to(f, 02755);
	assert_int_equal(set_attr(&vol, f, ACCESS, value, size, 0), 0);
	assert_int_equal(mode_of(f), 02750);
	assert_int_equal(
		set_attr(&vol, f, ACCESS, value, size, FS_XATTR_KILL_SGID), 0);
	assert_int_equal(mode_of(f), 0750);
	finish();
}

static void test_inheritance(void **state)
{
	const char *list = "u::rwx u:5:rwx g::rx m::rwx o::rx";
	uint64_t d, f, sub, l;

	start(0);
	f = make_masked(ROOT, "f", S_IFREG | 0666, 027);
	assert_int_equal(mode_of(f), 0640);
	d = make_dir(&vol, ROOT, "d");
	assert_int_equal(set_list(d, DEFAULT, list), 0);
	assert_int_equal(mode_of(d), 0755);
	f = make_masked(d, "f", S_IFREG | 0666, 027);
	assert_int_equal(mode_of(f), 0664);
	assert_list(f, ACCESS, "u::rw u:5:rwx g::rx m::rw o::r");
	assert_list(f, DEFAULT, NULL);
	sub = make_masked(d, "sub", S_IFDIR | 0770, 077);
	assert_int_equal(mode_of(sub), 0770);
	assert_list(sub, ACCESS, "u::rwx u:5:rwx g::rx m::rwx o::");
	assert_list(sub, DEFAULT, list);
	l = make_masked(d, "l", S_IFLNK | 0777, 0);
	assert_int_equal(get_attr(&vol, l, ACCESS, NULL, 0), -ENODATA);
	/* Nothing that a mode could not say. */
	assert_int_equal(set_list(d, DEFAULT, "u::rwx g::rx o::"), 0);
	f = make_masked(d, "g", S_IFREG | 0666, 0);
	assert_int_equal(mode_of(f), 0640);
	assert_list(f, ACCESS, NULL);
	assert_int_equal(attr_of(&vol, f).blocks_512, 8);
	sub = make_masked(d, "sub2", S_IFDIR | 0777, 0);
	assert_list(sub, ACCESS, NULL);
	assert_list(sub, DEFAULT, "u::rwx g::rx o::");
	assert_int_equal(remove_attr(&vol, d, DEFAULT), 0);
	f = make_masked(d, "h", S_IFREG | 0666, 027);
	assert_int_equal(mode_of(f), 0640);
	remount();
	/* Without the option they are not there, but not lost. */
	volume_unmount(&vol);
	vol.opt.acl = false;
	volume_mount(&vol);
	assert_int_equal(get_attr(&vol, sub, DEFAULT, NULL, 0), -EOPNOTSUPP);
	assert_int_equal(list_attrs(&vol, sub, NULL, 0), 0);
	f = make_masked(sub, "f", S_IFREG | 0666, 0);
	assert_int_equal(mode_of(f), 0666);
	volume_unmount(&vol);
	vol.opt.acl = true;
	volume_mount(&vol);
	assert_list(sub, DEFAULT, "u::rwx g::rx o::");
	finish();
}

/* Two lists that do not fit into one block, in the one transaction of mkdir. */
static void test_two_blocks(void **state)
{
	static char text[1024];
	uint64_t d, sub;
	int64_t before;
	size_t len;

	start(512);
	d = make_dir(&vol, ROOT, "d");
	len = (size_t)sprintf(text, "u::rwx ");
	for (unsigned i = 0; i < 33; i++)
		len += (size_t)sprintf(text + len, "u:%u:rwx ", i);
	strcpy(text + len, "g::rwx m::rwx o::rwx");
	assert_int_equal(set_list(d, DEFAULT, text), 0);
	before = statfs_free(vol.fs);
	sub = make_masked(d, "sub", S_IFDIR | 0777, 0);
	assert_int_equal(attr_of(&vol, sub).blocks_512, 1 + 3);
	assert_list(sub, ACCESS, text);
	assert_list(sub, DEFAULT, text);
	remount();
	assert_list(sub, ACCESS, text);
	assert_list(sub, DEFAULT, text);
	chmod_to(sub, 0700);
	assert_int_equal(mode_of(sub), 0700);
	assert_int_equal(rmdir_name(&vol, d, "sub"), 0);
	icache_drain_evict(vol.fs);
	assert_int_equal(statfs_free(vol.fs), before);
	finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_access),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_set_group_id),
		cmocka_unit_test(test_inheritance),
		cmocka_unit_test(test_two_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
