/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is written to the kernel: attributes, entries, listings, notifications.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cmocka.h>

#include "fuse/encode.h"

static const struct fs_attr sample_attr = {
	.ino = 0x123456789a,
	.size = 1ull << 40,
	.blocks_512 = 77,
	.atime = { -1, 1 },
	.mtime = { 2, 999999999 },
	.ctime = { 3, 4 },
	.mode = S_IFREG | 0640,
	.nlink = 3,
	.uid = 10,
	.gid = 11,
	.rdev_major = 8,
	.rdev_minor = 300,
	.blksize = 4096,
};

static void test_attr(void **state)
{
	struct fuse_attr attr;

	memset(&attr, 0xff, sizeof(attr));
	fuse_encode_attr(&attr, &sample_attr);
	assert_int_equal(attr.ino, 0x123456789a);
	assert_int_equal(attr.size, 1ull << 40);
	assert_int_equal(attr.blocks, 77);
	assert_int_equal((int64_t)attr.atime, -1);
	assert_int_equal(attr.mtimensec, 999999999);
	assert_int_equal(attr.mode, S_IFREG | 0640);
	assert_int_equal(attr.flags, 0);
}

/* The kernel's packing is glibc's, as far as 32 bits go. */
static void test_dev(void **state)
{
	const uint32_t majors[] = { 0, 1, 8, 255, 256, 4095 };
	const uint32_t minors[] = { 0, 1, 255, 256, 0xfffff };

	for (unsigned i = 0; i < UG_ARRAY_SIZE(majors); i++) {
		for (unsigned j = 0; j < UG_ARRAY_SIZE(minors); j++) {
			uint32_t dev = fuse_encode_dev(majors[i], minors[j]);
			uint32_t major, minor;

			assert_int_equal(dev, makedev(majors[i], minors[j]));
			fuse_decode_dev(dev, &major, &minor);
			assert_int_equal(major, majors[i]);
			assert_int_equal(minor, minors[j]);
		}
	}
}

static void test_entry(void **state)
{
	struct fs_entry entry = {
		.nodeid = 5,
		.generation = 6,
		.attr = sample_attr,
	};
	struct fuse_entry_out out;

	memset(&out, 0xff, sizeof(out));
	fuse_encode_entry(&out, &entry, fuse_timeout_ms(1500),
			  FUSE_TIMEOUT_NONE);
	assert_int_equal(out.nodeid, 5);
	assert_int_equal(out.generation, 6);
	assert_int_equal(out.entry_valid, 1);
	assert_int_equal(out.entry_valid_nsec, 500000000);
	assert_int_equal(out.attr_valid, 0);
	assert_int_equal(out.attr_valid_nsec, 0);

	entry.nodeid = FUSE_ROOT_ID;
	fuse_encode_entry(&out, &entry, FUSE_TIMEOUT_NONE, FUSE_TIMEOUT_NONE);
	assert_int_equal(out.generation, 0);

	memset(&out, 0xff, sizeof(out));
	fuse_encode_no_entry(&out, FUSE_TIMEOUT_INFINITE);
	assert_int_equal(out.nodeid, 0);
	assert_int_equal(out.entry_valid, INT32_MAX);
	assert_int_equal(out.attr.mode, 0);
}

/* Walk a listing as the kernel does. */
static unsigned walk(const char *bytes, size_t len, const char *const *names)
{
	unsigned n = 0;

	while (len) {
		const struct fuse_dirent *de = (const void *)bytes;
		size_t step = FUSE_DIRENT_SIZE(de);

		assert_true(step <= len);
		assert_int_equal(de->namelen, strlen(names[n]));
		assert_memory_equal(de->name, names[n], de->namelen);
		for (size_t i = FUSE_NAME_OFFSET + de->namelen; i < step; i++)
			assert_int_equal(bytes[i], 0);
		bytes += step;
		len -= step;
		n++;
	}
	return n;
}

static struct fs_dirent dirent(const char *name)
{
	return (struct fs_dirent){
		.ino = 9,
		.next = 10,
		.name = name,
		.len = (uint32_t)strlen(name),
		.type = DT_REG,
	};
}

static void test_listing(void **state)
{
	const char *const names[] = { ".", "seven77", "eight888", "nine99999" };
	_Alignas(8) char bytes[4096];
	struct fuse_dirbuf buf = { bytes, sizeof(bytes), 0 };

	memset(bytes, 0xff, sizeof(bytes));
	for (unsigned i = 0; i < UG_ARRAY_SIZE(names); i++) {
		struct fs_dirent de = dirent(names[i]);

		assert_true(fuse_dirbuf_put(&buf, &de));
		assert_int_equal(buf.used % 8, 0);
	}
	assert_int_equal(walk(bytes, buf.used, names), UG_ARRAY_SIZE(names));
}

static void test_listing_is_bounded(void **state)
{
	struct fs_dirent de = dirent("12345678");
	_Alignas(8) char bytes[256];
	struct fuse_dirbuf buf = { bytes, 0, 0 };

	for (size_t size = 0; size < 40; size++) {
		memset(bytes, 0x55, sizeof(bytes));
		buf.size = size;
		buf.used = 0;
		assert_int_equal(fuse_dirbuf_put(&buf, &de), size >= 32);
		for (size_t i = buf.used; i < sizeof(bytes); i++)
			assert_int_equal(bytes[i], 0x55);
	}
}

static void test_listing_plus(void **state)
{
	struct fs_entry entry = { .nodeid = 5, .attr = sample_attr };
	struct fs_entry none = { .nodeid = 0, .attr = sample_attr };
	struct fs_dirent de = dirent("name");
	_Alignas(8) char bytes[1024];
	struct fuse_dirbuf buf = { bytes, sizeof(bytes), 0 };
	struct fuse_direntplus *plus = (void *)bytes;
	size_t first;

	memset(bytes, 0xff, sizeof(bytes));
	assert_true(fuse_dirbuf_put_plus(&buf, &de, &entry,
					 FUSE_TIMEOUT_INFINITE,
					 FUSE_TIMEOUT_INFINITE));
	assert_int_equal(plus->entry_out.nodeid, 5);
	assert_int_equal(plus->entry_out.attr.ino, sample_attr.ino);
	assert_memory_equal(plus->dirent.name, "name", 4);
	first = buf.used;
	assert_int_equal(first, FUSE_DIRENTPLUS_SIZE(plus));

	/* Without a node nothing of it may be believed. */
	assert_true(fuse_dirbuf_put_plus(&buf, &de, &none,
					 FUSE_TIMEOUT_INFINITE,
					 FUSE_TIMEOUT_INFINITE));
	plus = (void *)(bytes + first);
	assert_int_equal(plus->entry_out.nodeid, 0);
	assert_int_equal(plus->entry_out.entry_valid, 0);
	assert_int_equal(plus->entry_out.attr.mode, 0);
}

static void test_notifications(void **state)
{
	struct fuse_notify_inval note;

	fuse_encode_inval_attr(&note, 7);
	assert_int_equal(note.head.len, sizeof(note));
	assert_int_equal(note.head.unique, 0);
	assert_int_equal(note.head.error, FUSE_NOTIFY_INVAL_INODE);
	assert_int_equal(note.body.ino, 7);
	assert_true(note.body.off < 0);

	fuse_encode_inval_data(&note, 7, 8192, 4096);
	assert_int_equal(note.body.off, 8192);
	assert_int_equal(note.body.len, 4096);
	fuse_encode_inval_data(&note, 7, 8192, UINT64_MAX);
	assert_int_equal(note.body.len, 0); /* to the end */
	fuse_encode_inval_data(&note, 7, UINT64_MAX, 1);
	assert_true(note.body.off >= 0);
}

static void test_statfs(void **state)
{
	struct fs_statfs st = {
		.blocks = 100,
		.bfree = 50,
		.bavail = 49,
		.files = 10,
		.ffree = 5,
		.bsize = 4096,
		.namelen = 255,
	};
	struct fuse_statfs_out out;

	memset(&out, 0xff, sizeof(out));
	fuse_encode_statfs(&out, &st);
	assert_int_equal(out.st.blocks, 100);
	assert_int_equal(out.st.bavail, 49);
	assert_int_equal(out.st.frsize, 4096);
	assert_int_equal(out.st.padding, 0);
	assert_int_equal(out.st.spare[5], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_attr),
		cmocka_unit_test(test_dev),
		cmocka_unit_test(test_entry),
		cmocka_unit_test(test_listing),
		cmocka_unit_test(test_listing_is_bounded),
		cmocka_unit_test(test_listing_plus),
		cmocka_unit_test(test_notifications),
		cmocka_unit_test(test_statfs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
