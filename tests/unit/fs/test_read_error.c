/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_read_error.c - blocks of directories that cannot be read, or are wrong.
 *
 * Each operation on names is tried on a cold mount with its first read failing,
 * then with its second, and so on, until nothing of it is read any more. It
 * gives -EIO or works. Unless the mount withdraws it works the next time, and
 * the volume is clean in any case.
 */
#include <fcntl.h>
#include <unistd.h>

#include "block/fault.h"
#include "fs/dir_block.h"
#include "fs/inode.h"
#include "tests/unit/fs/names.h"

/* Of the linear directory "l", and the hashed one "h" with more than one leaf.
 */
#define FEW 5u
#define MANY 150u
/* Cold operations read fewer blocks than this. */
#define READS_MAX 200u

static struct volume vol;
static struct fault *fault;
static char pristine[80];
static uint64_t few_dir, many_dir, sub_dir;

static void no_wake(void *arg, enum fs_work work)
{
}

/* Without background work: what is read is what the test has asked for. */
static void mount_on_fault(void)
{
	static const struct fs_host_ops host = { .wake = no_wake };
	struct fs_params params = { .who = "test", .host = &host };
	struct blkdev *lower;
	char why[400];

	assert_int_equal(blkdev_open_file(vol.path, BLK_OPEN_EXCL, &lower), 0);
	assert_int_equal(fault_open(lower, &fault, &vol.dev), 0);
	params.dev = vol.dev;
	params.opt = vol.opt;
	assert_int_equal(fs_mount(&params, &vol.fs, why, sizeof(why)), 0);
}

static int unmount_fault(void)
{
	int err = fs_unmount(vol.fs);

	blkdev_close(vol.dev);
	return err;
}

static void copy_image(const char *from, const char *to)
{
	char cmd[200];

	snprintf(cmd, sizeof(cmd), "cp --sparse=always %s %s", from, to);
	assert_int_equal(system(cmd), 0);
}

static char *name_of(unsigned n, char *buf)
{
	sprintf(buf, "a name of some length %u", n);
	return buf;
}

static void fill_dir(uint64_t dir, unsigned count)
{
	char buf[40];
	unsigned n;

	for (n = 0; n < count; n++)
		make_file(&vol, dir, name_of(n, buf));
}

static void prepare(unsigned bsize)
{
	struct volume_geometry g = { .bsize = bsize, .size_mib = 32 };

	volume_make(&vol, &g);
	volume_mount(&vol);
	few_dir = make_dir(&vol, ROOT, "l");
	many_dir = make_dir(&vol, ROOT, "h");
	sub_dir = make_dir(&vol, few_dir, "sub");
	make_dir(&vol, many_dir, "empty");
	fill_dir(few_dir, FEW);
	fill_dir(many_dir, MANY);
	volume_unmount(&vol);
	snprintf(pristine, sizeof(pristine), "%s.0", vol.path);
	copy_image(vol.path, pristine);
}

static void forget_all(void)
{
	unlink(pristine);
	volume_remove(&vol);
}

/* ---- operations ---- */

/* A directory, which has to be read first. 0 and *dir, to be put. */
static int get_dir(uint64_t id, struct inode **dir)
{
	struct fs_entry e;
	int err = fs_lookup_nodeid(vol.fs, &volume_req, id, &e);

	if (err)
		return err;
	*dir = fs_inode_get(vol.fs, id);
	fs_forget(vol.fs, id, 1);
	return 0;
}

static int do_lookup(struct inode *dir, const char *name)
{
	struct fs_entry e;
	int err = fs_lookup(&volume_req, dir, name, strlen(name), &e);

	if (!err)
		fs_forget(vol.fs, e.nodeid, 1);
	return err;
}

static int op_lookup(struct inode *few, struct inode *many)
{
	char buf[40];
	int err = do_lookup(many, name_of(17, buf));

	return err ? err : do_lookup(few, name_of(3, buf));
}

static int op_missing(struct inode *few, struct inode *many)
{
	int err = do_lookup(many, "missing");

	return err == -ENOENT ? 0 : err ? err : -EEXIST;
}

struct names {
	unsigned count;
	unsigned left; /* room in the buffer */
	uint64_t cookie;
};

static bool take_name(void *arg, const struct fs_dirent *de)
{
	struct names *l = arg;

	if (!l->left)
		return false;
	l->left--;
	l->count++;
	l->cookie = de->next;
	return true;
}

static bool take_plus(void *arg, const struct fs_dirent *de,
		      const struct fs_entry *e)
{
	if (!take_name(arg, de))
		return false;
	if (e->nodeid)
		fs_forget(vol.fs, e->nodeid, 1);
	return true;
}

/* As a front end lists: a buffer at a time, until one stays empty. */
static int list_on(struct inode *dir, bool plus, struct names *l)
{
	unsigned before;
	int err;

	do {
		before = l->count;
		l->left = 60;
		err = plus ? fs_readdirplus(&volume_req, dir, l->cookie,
					    take_plus, l)
			   : fs_readdir(&volume_req, dir, l->cookie, take_name,
					l);
	} while (!err && l->count > before);
	return err;
}

static int list_all(struct inode *dir, bool plus)
{
	struct names l = { 0 };
	int err = list_on(dir, plus, &l);

	/* Nothing is missing without an error. */
	if (!err)
		assert_int_equal(l.count, MANY + 3);
	return err;
}

static int op_list(struct inode *few, struct inode *many)
{
	return list_all(many, false);
}

static int op_list_plus(struct inode *few, struct inode *many)
{
	return list_all(many, true);
}

static int make_in(struct inode *dir, const char *name, uint32_t mode)
{
	struct fs_make mk = { .name = name, .len = strlen(name), .mode = mode };
	struct fs_entry e;
	int err = fs_make(&volume_req, dir, &mk, &e);

	if (!err)
		fs_forget(vol.fs, e.nodeid, 1);
	return err;
}

static int op_make(struct inode *few, struct inode *many)
{
	return make_in(many, "new", S_IFREG | 0644);
}

static int op_mkdir(struct inode *few, struct inode *many)
{
	return make_in(few, "new", S_IFDIR | 0755);
}

static int op_unlink(struct inode *few, struct inode *many)
{
	char buf[40];

	name_of(9, buf);
	return fs_unlink(&volume_req, many, buf, strlen(buf));
}

static int op_rmdir(struct inode *few, struct inode *many)
{
	return fs_rmdir(&volume_req, many, "empty", 5);
}

/* Over an existing file, from one directory to the other. */
static int op_rename(struct inode *few, struct inode *many)
{
	char from[40], to[40];

	name_of(2, from);
	name_of(11, to);
	return fs_rename(&volume_req, few, from, strlen(from), many, to,
			 strlen(to), 0);
}

/* A directory moves: "..", and the way up from where it goes, are read. */
static int op_move(struct inode *few, struct inode *many)
{
	return fs_rename(&volume_req, few, "sub", 3, many, "sub", 3, 0);
}

static int op_link(struct inode *few, struct inode *many)
{
	struct fs_entry e;
	struct inode *ip;
	char buf[40];
	int err;

	name_of(1, buf);
	err = fs_lookup(&volume_req, few, buf, strlen(buf), &e);
	if (err)
		return err;
	ip = fs_inode_get(vol.fs, e.nodeid);
	err = fs_link(&volume_req, ip, many, "link", 4, &e);
	if (!err)
		fs_forget(vol.fs, e.nodeid, 1);
	fs_forget(vol.fs, e.nodeid, 1);
	inode_put(ip);
	return err;
}

/* ---- each read of each operation fails once ---- */

struct operation {
	const char *name;
	int (*run)(struct inode *few, struct inode *many);
};

static const struct operation operations[] = {
	{ "lookup", op_lookup }, { "missing", op_missing },
	{ "list", op_list },	 { "list-plus", op_list_plus },
	{ "make", op_make },	 { "mkdir", op_mkdir },
	{ "unlink", op_unlink }, { "rmdir", op_rmdir },
	{ "rename", op_rename }, { "move", op_move },
	{ "link", op_link },
};

static int run_cold(const struct operation *op)
{
	struct inode *few, *many;
	int err = get_dir(few_dir, &few);

	if (err)
		return err;
	err = get_dir(many_dir, &many);
	if (!err) {
		err = op->run(few, many);
		inode_put(many);
	}
	inode_put(few);
	return err;
}

/* Fail read n and those after it, up to count. false: there is no read n. */
static bool fail_read(const struct operation *op, unsigned n, unsigned count)
{
	struct fault_rule rule = { .ops = LAYER_READ,
				   .pass = n,
				   .fail = count };
	bool hit, withdrawn;
	int err;

	copy_image(pristine, vol.path);
	mount_on_fault();
	fault_set(fault, &rule);
	err = run_cold(op);
	hit = fault_failed(fault) != 0;
	fault_set(fault, NULL);
	withdrawn = fs_is_withdrawn(vol.fs);
	if (err && err != -EIO)
		fail_msg("%s: read %u fails: error %d", op->name, n, err);
	assert_true(hit || !err);
	if (withdrawn) {
		assert_int_equal(err, -EIO);
	} else if (err) {
		err = run_cold(op);
		if (err)
			fail_msg("%s: after read %u: error %d", op->name, n,
				 err);
	}
	assert_int_equal(unmount_fault(), withdrawn ? -EIO : 0);
	if (withdrawn) {
		volume_mount(&vol);
		volume_unmount(&vol);
	}
	/* It takes its time: not after each. */
	if (withdrawn || n % 8 == 0)
		volume_fsck(&vol);
	return hit;
}

static void each_read(unsigned bsize)
{
	unsigned i, n;

	prepare(bsize);
	for (i = 0; i < UG_ARRAY_SIZE(operations); i++) {
		for (n = 0; fail_read(&operations[i], n, 1); n++)
			assert_true(n < READS_MAX);
		print_message("%s: %u reads\n", operations[i].name, n);
		/* Two at least: the directories themselves. */
		assert_true(n >= 2);
		fail_read(&operations[i], n / 2, 0);
	}
	forget_all();
}

static void test_each_read(void **state)
{
	each_read(1024);
}

/* ---- damage in the middle of a listing ---- */

#define BLOCKS ((32u << 20) / 512)

/* What a mount reads, and what a listing comes to in its first quarter. */
static void note_first(bool *read)
{
	struct glock_holder gh;
	struct inode *dir;
	struct buf *b;
	uint64_t addr;

	mount_on_fault();
	for (uint64_t n = 0; n < BLOCKS; n++) {
		b = buf_peek(vol.fs->fs_cache, n);
		read[n] = b != NULL;
		buf_put(b);
	}
	dir = node(&vol, many_dir);
	glock_holder_init(&gh);
	assert_int_equal(inode_lock(&volume_req, dir, LM_ST_SHARED, &gh), 0);
	for (uint32_t i = 0; i < (1u << dir->i_depth) / 4; i++) {
		assert_int_equal(dir_table_leaf(dir, i, false, &addr), 0);
		assert_true(addr < BLOCKS);
		read[addr] = true;
	}
	glock_dq(&gh);
	inode_put(dir);
	assert_int_equal(unmount_fault(), 0);
}

/* The first records of all other leaves get a length that cannot be. */
static void damage_leaves(const bool *spare)
{
	static const unsigned char leaf[] = { 1, 0x16, 0x19, 0x70, 0, 0, 0, 6 };
	const size_t rec_len = sizeof(struct gfs2_leaf) +
			       offsetof(struct gfs2_dirent, de_rec_len);
	unsigned char block[512];
	FILE *f = fopen(vol.path, "r+");
	unsigned count = 0;

	assert_non_null(f);
	for (uint64_t n = 0; fread(block, sizeof(block), 1, f) == 1; n++) {
		if (memcmp(block, leaf, sizeof(leaf)) || spare[n])
			continue;
		block[rec_len] = 0xff;
		fseek(f, (long)(n * sizeof(block)), SEEK_SET);
		fwrite(block, sizeof(block), 1, f);
		fseek(f, (long)((n + 1) * sizeof(block)), SEEK_SET);
		count++;
	}
	fclose(f);
	assert_true(count > 4);
}

/* What could be listed is no cover for what could not. */
static void check_damaged_listing(bool plus, const bool *spare)
{
	struct names l = { 0 };
	struct inode *dir;

	copy_image(pristine, vol.path);
	damage_leaves(spare);
	mount_on_fault();
	dir = node(&vol, many_dir);
	assert_int_equal(list_on(dir, plus, &l), -EIO);
	assert_in_range(l.count, 1, MANY);
	assert_true(fs_is_withdrawn(vol.fs));
	inode_put(dir);
	assert_int_equal(unmount_fault(), -EIO);
}

static void test_damage_while_listing(void **state)
{
	static bool spare[BLOCKS];

	prepare(512);
	note_first(spare);
	check_damaged_listing(false, spare);
	check_damaged_listing(true, spare);
	forget_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_read),
		cmocka_unit_test(test_damage_while_listing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
