/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_xattr.c - extended attributes on real volumes: against a model, at every
 * limit, and on damaged blocks.
 */
#include <fcntl.h>
#include <unistd.h>

#include "fs/icache.h"
#include "fs/statfs.h"
#include "fs/xattr.h"
#include "tests/unit/fs/xattrcalls.h"

static struct volume vol;
static uint8_t big[65537];

static void start(const struct volume_geometry *g)
{
	volume_make(&vol, g);
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

static int64_t free_blocks(void)
{
	icache_drain_evict(vol.fs);
	return statfs_free(vol.fs);
}

static uint64_t blocks_of(uint64_t id)
{
	return attr_of(&vol, id).blocks_512 / (vol.fs->fs_geom.bsize / 512);
}

static void assert_value(uint64_t id, const char *name, const void *value,
			 size_t size)
{
	static uint8_t buf[65536];

	assert_int_equal(get_attr(&vol, id, name, buf, sizeof(buf)), size);
	assert_memory_equal(buf, value, size);
}

/* ---- one call at a time ---- */

static void test_errors(void **state)
{
	struct volume_geometry g = { 0 };
	char name[300], buf[10];
	uint64_t f;

	start(&g);
	f = make_file(&vol, ROOT, "f");
	assert_int_equal(get_attr(&vol, f, "user.a", NULL, 0), -ENODATA);
	assert_int_equal(list_attrs(&vol, f, NULL, 0), 0);
	assert_int_equal(remove_attr(&vol, f, "user.a"), -ENODATA);
	assert_int_equal(set_attr(&vol, f, "user.a", "v", 1, XATTR_REPLACE),
			 -ENODATA);
	assert_int_equal(blocks_of(f), 1);
	assert_int_equal(set_attr(&vol, f, "user.a", "value", 5, XATTR_CREATE),
			 0);
	assert_int_equal(set_attr(&vol, f, "user.a", "v", 1, XATTR_CREATE),
			 -EEXIST);
	assert_int_equal(set_attr(&vol, f, "user.a", "VALUE", 5, XATTR_REPLACE),
			 0);
	assert_int_equal(get_attr(&vol, f, "user.a", NULL, 0), 5);
	assert_int_equal(get_attr(&vol, f, "user.a", buf, 4), -ERANGE);
	assert_int_equal(get_attr(&vol, f, "user.a", buf, 5), 5);
	assert_memory_equal(buf, "VALUE", 5);
	assert_int_equal(list_attrs(&vol, f, NULL, 0), 7);
	assert_int_equal(list_attrs(&vol, f, buf, 6), -ERANGE);
	assert_int_equal(list_attrs(&vol, f, buf, 7), 7);
	assert_memory_equal(buf, "user.a", 7);

	/* Names */
	assert_int_equal(set_attr(&vol, f, "user.", "v", 1, 0), -EINVAL);
	assert_int_equal(set_attr(&vol, f, "users.a", "v", 1, 0), -EOPNOTSUPP);
	assert_int_equal(set_attr(&vol, f, "system.a", "v", 1, 0), -EOPNOTSUPP);
	assert_int_equal(get_attr(&vol, f, XATTR_ACL_ACCESS, NULL, 0),
			 -EOPNOTSUPP);
	strcpy(name, "user.");
	memset(name + 5, 'n', 256);
	name[5 + 256] = '\0';
	assert_int_equal(set_attr(&vol, f, name, "v", 1, 0), -ERANGE);
	name[5 + 255] = '\0';
	assert_int_equal(set_attr(&vol, f, name, "v", 1, 0), 0);
	assert_value(f, name, "v", 1);

	/* Values: none, the longest, too long */
	assert_int_equal(set_attr(&vol, f, "user.none", NULL, 0, 0), 0);
	assert_value(f, "user.none", "", 0);
	assert_int_equal(set_attr(&vol, f, "trusted.t", big, 65536, 0), 0);
	assert_value(f, "trusted.t", big, 65536);
	assert_int_equal(blocks_of(f), 1 + 1 + 17);
	assert_int_equal(set_attr(&vol, f, "trusted.t", big, 65537, 0), -E2BIG);
	assert_int_equal(remove_attr(&vol, f, "trusted.t"), 0);
	assert_int_equal(blocks_of(f), 1 + 1);
	assert_int_equal(get_attr(&vol, f, "trusted.t", NULL, 0), -ENODATA);
	finish();
}

/* Who is not root sees no trusted names. */
static void test_trusted(void **state)
{
	const struct fs_req user = { .uid = 1000, .gid = 1000, .pid = 1 };
	struct volume_geometry g = { 0 };
	struct inode *ip;
	uint64_t f;

	start(&g);
	f = make_file(&vol, ROOT, "f");
	assert_int_equal(set_attr(&vol, f, "trusted.t", "v", 1, 0), 0);
	assert_int_equal(set_attr(&vol, f, "security.s", "v", 1, 0), 0);
	assert_int_equal(list_attrs(&vol, f, NULL, 0), 10 + 11);
	ip = node(&vol, f);
	assert_int_equal(fs_listxattr(&user, ip, NULL, 0), 11);
	inode_put(ip);
	finish();
}

static void test_old_format(void **state)
{
	struct volume_geometry g = { .format = 1801 };
	uint64_t f;

	start(&g);
	f = make_file(&vol, ROOT, "f");
	assert_int_equal(set_attr(&vol, f, "trusted.t", "v", 1, 0),
			 -EOPNOTSUPP);
	assert_int_equal(get_attr(&vol, f, "trusted.t", NULL, 0), -EOPNOTSUPP);
	assert_int_equal(set_attr(&vol, f, "security.s", "v", 1, 0), 0);
	finish();
}

static void test_flags_and_readonly(void **state)
{
	struct volume_geometry g = { 0 };
	struct inode *ip;
	uint64_t f;

	start(&g);
	f = make_file(&vol, ROOT, "f");
	assert_int_equal(set_attr(&vol, f, "user.a", "v", 1, 0), 0);
	ip = node(&vol, f);
	ip->i_flags |= GFS2_DIF_IMMUTABLE;
	assert_int_equal(set_attr(&vol, f, "user.a", "w", 1, 0), -EPERM);
	assert_int_equal(remove_attr(&vol, f, "user.a"), -EPERM);
	ip->i_flags ^= GFS2_DIF_IMMUTABLE | GFS2_DIF_APPENDONLY;
	assert_int_equal(remove_attr(&vol, f, "user.a"), -EPERM);
	ip->i_flags ^= GFS2_DIF_APPENDONLY;
	inode_put(ip);
	volume_unmount(&vol);
	vol.opt.readonly = true;
	volume_mount(&vol);
	assert_value(f, "user.a", "v", 1);
	assert_int_equal(set_attr(&vol, f, "user.a", "w", 1, 0), -EROFS);
	assert_int_equal(remove_attr(&vol, f, "user.a"), -EROFS);
	finish();
}

/* Blocks of 512 bytes have room for 58 pointers. */
static void test_small_blocks(void **state)
{
	struct volume_geometry g = { .bsize = 512 };
	uint64_t f;

	start(&g);
	f = make_file(&vol, ROOT, "f");
	assert_int_equal(set_attr(&vol, f, "user.a", big, 58 * 488, 0), 0);
	assert_int_equal(set_attr(&vol, f, "user.a", big, 58 * 488 + 1, 0),
			 -ERANGE);
	assert_value(f, "user.a", big, 58 * 488);
	finish();
}

/* Not in memory: nothing is waited for, nothing is done. */
static void test_nowait(void **state)
{
	struct fs_req nowait = volume_req;
	struct volume_geometry g = { 0 };
	struct inode *ip;
	char buf[8];
	uint64_t f;

	nowait.nowait = true;
	start(&g);
	f = make_file(&vol, ROOT, "f");
	assert_int_equal(set_attr(&vol, f, "user.a", "v", 1, 0), 0);
	remount();
	ip = node(&vol, f);
	attr_of(&vol, f); /* reads the dinode */
	assert_int_equal(fs_getxattr(&nowait, ip, "user.a", buf, 8), -EAGAIN);
	assert_int_equal(fs_setxattr(&nowait, ip, "user.a", "w", 1, 0),
			 -EAGAIN);
	assert_value(f, "user.a", "v", 1);
	assert_int_equal(fs_getxattr(&nowait, ip, "user.a", buf, 8), 1);
	assert_int_equal(fs_setxattr(&nowait, ip, "user.a", "w", 1, 0), 0);
	assert_int_equal(fs_removexattr(&nowait, ip, "user.a"), 0);
	inode_put(ip);
	finish();
}

/* ---- growth ---- */

/* From no block to an indirect one that is full; and all of it comes back. */
static void test_growth(void **state)
{
	struct volume_geometry g = { .bsize = 512, .size_mib = 64 };
	int64_t before;
	unsigned n = 0;
	char name[20];
	uint64_t f;
	int err;

	start(&g);
	before = free_blocks();
	f = make_file(&vol, ROOT, "f");
	do {
		snprintf(name, sizeof(name), "user.%03u", n);
		/* One of them to a block. */
		err = set_attr(&vol, f, name, big + n, 300, 0);
		n += !err;
	} while (!err);
	assert_int_equal(err, -ENOSPC);
	assert_int_equal(n, vol.fs->fs_geom.inptrs);
	assert_int_equal(blocks_of(f), 1 + 1 + n);
	/* What has room in the blocks that are there has room. */
	assert_int_equal(set_attr(&vol, f, "user.small", "v", 1, 0), 0);
	remount();
	for (unsigned i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "user.%03u", i);
		assert_value(f, name, big + i, 300);
	}
	assert_int_equal(list_attrs(&vol, f, NULL, 0), n * 9 + 11);
	assert_int_equal(remove_attr(&vol, f, "user.000"), 0);
	assert_int_equal(set_attr(&vol, f, "user.new", big, 300, 0), 0);
	assert_int_equal(unlink_name(&vol, ROOT, "f"), 0);
	assert_int_equal(free_blocks(), before);
	finish();
}

/* ---- no space ---- */

static void fill_up(void)
{
	static char chunk[1 << 20] __attribute__((aligned(BLKDEV_ALIGN)));
	uint64_t f = make_file(&vol, ROOT, "filler"), at = 0;
	struct inode *ip = node(&vol, f);
	ssize_t n;

	assert_int_equal(fs_open(&volume_req, ip, O_RDWR), 0);
	while ((n = fs_write(&volume_req, ip, chunk, sizeof(chunk), at, 0)) > 0)
		at += (uint64_t)n;
	assert_int_equal(n, -ENOSPC);
	assert_int_equal(fs_fsync(&volume_req, ip, false), 0);
	fs_release(ip, O_RDWR);
	inode_put(ip);
}

static void test_full_volume(void **state)
{
	struct volume_geometry g = { .size_mib = 40 };
	uint64_t f, d;
	char name[16];
	int err = 0;

	start(&g);
	f = make_file(&vol, ROOT, "f");
	d = make_file(&vol, ROOT, "d");
	assert_int_equal(set_attr(&vol, f, "user.a", "old", 3, 0), 0);
	assert_int_equal(set_attr(&vol, d, "user.first", big, 65536, 0), 0);
	fill_up();
	/* The last blocks are kept for others than data. */
	for (unsigned i = 0; !err && i < 1000; i++) {
		snprintf(name, sizeof(name), "user.%u", i);
		err = set_attr(&vol, d, name, big, 65536, 0);
	}
	assert_int_equal(err, -ENOSPC);
	assert_int_equal(set_attr(&vol, f, "user.a", big, 65536, 0), -ENOSPC);
	assert_value(f, "user.a", "old", 3);
	/* No block is needed for these. */
	assert_int_equal(set_attr(&vol, f, "user.a", "new", 3, 0), 0);
	assert_int_equal(set_attr(&vol, f, "user.b", "new", 3, 0), 0);
	assert_int_equal(remove_attr(&vol, d, "user.first"), 0);
	assert_int_equal(set_attr(&vol, f, "user.a", big, 65536, 0), 0);
	finish();
}

/* ---- after a crash ---- */

/*
 * A big value had been replaced, and nobody has freed its blocks yet: they
 * count, they are cleaned by the next change, and go with the inode.
 */
static void test_retired(void **state)
{
	const struct xattr_key key = { GFS2_EATYPE_USR, 1, "a" };
	struct volume_geometry g = { 0 };
	struct xattr_place place;
	struct glock_holder gh;
	struct buf *dibuf;
	struct inode *ip;
	struct trans tr;
	int64_t before;
	uint64_t f;

	start(&g);
	before = free_blocks();
	for (unsigned round = 0; round < 2; round++) {
		f = make_file(&vol, ROOT, "f");
		assert_int_equal(set_attr(&vol, f, "user.a", big, 20000, 0), 0);
		ip = node(&vol, f);
		assert_int_equal(
			inode_lock(&volume_req, ip, LM_ST_EXCLUSIVE, &gh), 0);
		assert_int_equal(inode_dibuf(ip, false, &dibuf), 0);
		assert_int_equal(xattr_find(ip, &key, false, &place), 0);
		assert_int_equal(trans_begin(vol.fs->fs_journal, &tr, 2, 0, 0),
				 0);
		pthread_rwlock_wrlock(&ip->i_lock);
		trans_add_meta(&tr, place.b);
		gfs2_ea_retire(place.b->b_data, place.off);
		inode_log(&tr, ip, dibuf);
		inode_rwunlock(ip);
		trans_end(&tr);
		buf_put(place.b);
		buf_put(dibuf);
		inode_unlock(&gh);
		inode_put(ip);
		remount();
		assert_int_equal(get_attr(&vol, f, "user.a", NULL, 0),
				 -ENODATA);
		assert_int_equal(blocks_of(f), 1 + 1 + 5);
		if (!round) {
			assert_int_equal(set_attr(&vol, f, "user.b", "v", 1, 0),
					 0);
			assert_int_equal(blocks_of(f), 1 + 1);
		}
		assert_int_equal(unlink_name(&vol, ROOT, "f"), 0);
		assert_int_equal(free_blocks(), before);
	}
	finish();
}

/* ---- what a program may do ---- */

static bool has_capability(uint64_t f)
{
	ssize_t n = get_attr(&vol, f, XATTR_CAPABILITY, NULL, 0);

	assert_true(n == 3 || n == -ENODATA);
	return n == 3;
}

static void give_capability(uint64_t f)
{
	assert_int_equal(set_attr(&vol, f, XATTR_CAPABILITY, "cap", 3, 0), 0);
	assert_true(has_capability(f));
}

static void test_capability(void **state)
{
	static char page[8192] __attribute__((aligned(BLKDEV_ALIGN)));
	struct fs_setattr set = { .valid = FS_SET_SIZE, .size = 100 };
	struct volume_geometry g = { 0 };
	struct fs_attr attr;
	struct inode *ip;
	uint64_t f;

	start(&g);
	f = make_file(&vol, ROOT, "f");
	ip = node(&vol, f);
	assert_int_equal(set_attr(&vol, f, "user.a", "v", 1, 0), 0);
	assert_int_equal(fs_open(&volume_req, ip, O_RDWR), 0);
	for (unsigned i = 0; i < 2; i++) {
		give_capability(f);
		assert_int_equal(fs_write(&volume_req, ip, "x", 0, 0, 0), 0);
		assert_int_equal(
			fs_write(&volume_req, ip, page, 1, 0, FS_IO_MAPPED), 1);
		assert_int_equal(fs_read(&volume_req, ip, page, 8192, 0, 0),
				 8192 * i);
		assert_true(has_capability(f));
		assert_int_equal(fs_write(&volume_req, ip, page, 8192, 0, 0),
				 8192);
		assert_false(has_capability(f));
	}
	assert_int_equal(fs_fsync(&volume_req, ip, false), 0);
	give_capability(f);
	assert_int_equal(fs_write(&volume_req, ip, page, 4096, 0, FS_IO_DIRECT),
			 4096);
	assert_false(has_capability(f));
	give_capability(f);
	assert_int_equal(fs_setattr(&volume_req, ip, &set, &attr), 0);
	assert_false(has_capability(f));
	give_capability(f);
	set = (struct fs_setattr){ .valid = FS_SET_UID, .uid = 5 };
	assert_int_equal(fs_setattr(&volume_req, ip, &set, &attr), 0);
	assert_false(has_capability(f));
	give_capability(f);
	set = (struct fs_setattr){ .valid = FS_SET_MODE, .mode = 0755 };
	assert_int_equal(fs_setattr(&volume_req, ip, &set, &attr), 0);
	assert_true(has_capability(f));
	fs_release(ip, O_RDWR);
	assert_int_equal(fs_open(&volume_req, ip, O_RDWR | O_TRUNC), 0);
	fs_release(ip, O_RDWR);
	assert_false(has_capability(f));
	assert_value(f, "user.a", "v", 1);
	inode_put(ip);
	finish();
}

/* ---- damage ---- */

static void put_bytes(uint64_t block, unsigned at, const void *bytes,
		      size_t len)
{
	int fd = open(vol.path, O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, len, (off_t)(block * 4096 + at)),
			 len);
	close(fd);
}

/* The attribute cannot be had, nor changed; the volume stops, with a reason. */
static void assert_damaged(uint64_t f, bool by_set)
{
	ssize_t n;

	volume_mount(&vol);
	n = by_set ? set_attr(&vol, f, "user.b", "v", 1, 0)
		   : get_attr(&vol, f, "user.big", big, sizeof(big));
	assert_int_equal(n, -EIO);
	assert_true(fs_is_withdrawn(vol.fs));
	volume_crash(&vol);
}

static void test_damage(void **state)
{
	static const uint8_t ff[8] = { 0xff, 0xff, 0xff, 0xff,
				       0xff, 0xff, 0xff, 0xff };
	struct volume_geometry g = { 0 };
	struct inode *ip;
	uint64_t f, ea, di;
	be64 saved, wrong;

	start(&g);
	f = make_file(&vol, ROOT, "f");
	assert_int_equal(set_attr(&vol, f, "user.big", big, 5000, 0), 0);
	ip = node(&vol, f);
	ea = ip->i_eattr;
	di = ip->i_addr;
	inode_put(ip);
	volume_unmount(&vol);
	for (unsigned by_set = 0; by_set < 2; by_set++) {
		/* The length of the record */
		put_bytes(ea, 24, ff, 4);
		assert_damaged(f, by_set);
		saved = be64_of(4096 - 24);
		put_bytes(ea, 24, (char *)&saved + 4, 4);
		/* The kind of block */
		put_bytes(ea, 0, ff, 4);
		assert_damaged(f, by_set);
		wrong = be64_of((uint64_t)GFS2_MAGIC << 32);
		put_bytes(ea, 0, &wrong, 4);
		/* Where the dinode says it is: di_eattr */
		put_bytes(di, offsetof(struct gfs2_dinode, di_eattr), ff, 8);
		assert_damaged(f, by_set);
		saved = be64_of(di); /* a block of another kind */
		put_bytes(di, offsetof(struct gfs2_dinode, di_eattr), &saved,
			  8);
		assert_damaged(f, by_set);
		saved = be64_of(ea);
		put_bytes(di, offsetof(struct gfs2_dinode, di_eattr), &saved,
			  8);
	}
	/* A pointer of the value: 24 + 16 + "big" to 8 */
	put_bytes(ea, 48, ff, 8);
	assert_damaged(f, false);
	wrong = be64_of(ea);
	put_bytes(ea, 48, &wrong, 8);
	assert_damaged(f, false);
	volume_remove(&vol);
}

/* ---- at random, against a model ---- */

#define NAMES 24u

struct model {
	bool there[NAMES];
	uint32_t len[NAMES];
	uint32_t from[NAMES]; /* offset of the value in big */
};

static void name_of(unsigned i, char *name, size_t len)
{
	static const char *const prefixes[] = { "user.", "trusted.",
						"security.user-" };

	snprintf(name, len, "%s%.*s%u", prefixes[i % 3], (int)(i % 5) * 20,
		 "a-name-that-is-as-long-as-names-of-attributes-seldom-are-and-"
		 "then-longer-still-to-make-a-difference",
		 i);
}

static uint32_t some_length(struct ug_prng *prng, uint32_t bsize)
{
	switch (ug_prng_below(prng, 6)) {
	case 0:
		return (uint32_t)ug_prng_below(prng, 3);
	case 1:
		return bsize - 60 + (uint32_t)ug_prng_below(prng, 60);
	case 2:
		return (uint32_t)ug_prng_below(prng, bsize * 20);
	default:
		return (uint32_t)ug_prng_below(prng, bsize / 3);
	}
}

static void compare(const struct model *m, uint64_t f)
{
	char name[160];
	size_t listed = 0;

	for (unsigned i = 0; i < NAMES; i++) {
		name_of(i, name, sizeof(name));
		if (!m->there[i]) {
			assert_int_equal(get_attr(&vol, f, name, NULL, 0),
					 -ENODATA);
			continue;
		}
		assert_value(f, name, big + m->from[i], m->len[i]);
		listed += strlen(name) + 1;
	}
	assert_int_equal(list_attrs(&vol, f, NULL, 0), listed);
}

static void step(struct model *m, uint64_t f, struct ug_prng *prng)
{
	unsigned i = (unsigned)ug_prng_below(prng, NAMES);
	uint32_t len = some_length(prng, vol.fs->fs_geom.bsize), from;
	char name[160];
	int err;

	name_of(i, name, sizeof(name));
	if (ug_prng_below(prng, 3) == 0) {
		err = remove_attr(&vol, f, name);
		assert_int_equal(err, m->there[i] ? 0 : -ENODATA);
		m->there[i] = false;
		return;
	}
	len = UG_MIN(len, 30000u);
	from = (uint32_t)ug_prng_below(prng, 30000);
	err = set_attr(&vol, f, name, big + from, len, 0);
	assert_int_equal(err, 0);
	m->there[i] = true;
	m->len[i] = len;
	m->from[i] = from;
}

static void run_model(unsigned bsize)
{
	struct volume_geometry g = { .bsize = bsize, .size_mib = 64 };
	struct model m = { 0 };
	struct ug_prng prng;
	int64_t before;
	uint64_t f;

	ug_prng_seed(&prng, bsize);
	start(&g);
	before = free_blocks();
	f = make_file(&vol, ROOT, "f");
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 120; i++)
			step(&m, f, &prng);
		compare(&m, f);
		remount();
		compare(&m, f);
	}
	assert_int_equal(unlink_name(&vol, ROOT, "f"), 0);
	assert_int_equal(free_blocks(), before);
	finish();
}

static void test_model(void **state)
{
	run_model(4096);
	run_model(1024);
	run_model(512);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_trusted),
		cmocka_unit_test(test_old_format),
		cmocka_unit_test(test_flags_and_readonly),
		cmocka_unit_test(test_small_blocks),
		cmocka_unit_test(test_nowait),
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_full_volume),
		cmocka_unit_test(test_retired),
		cmocka_unit_test(test_capability),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_model),
	};
	struct ug_prng prng;

	ug_prng_seed(&prng, 1);
	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (uint8_t)ug_prng_u64(&prng);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
