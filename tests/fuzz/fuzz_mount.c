/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fuzz_mount.c - mounting a damaged volume, and using what can be mounted.
 *
 * A small volume is made once, in memory, with files of all kinds in it. Each
 * input damages a copy: a list of changes of 5 bytes,
 *
 *     which metadata block (2) | offset in it (2) | new byte (1)
 *
 * (the numbers are taken modulo what there is). Then it is mounted, walked,
 * read, changed and unmounted. Every call may fail; nothing may crash, hang or
 * fail an assertion, and a volume that was refused must not have been written.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "block/record.h"
#include "fs/fs.h"
#include "ondisk/codec.h"
#include "tools/mkfs_plan.h"
#include "tools/mkfs_write.h"

#define BSIZE 1024u
#define VOLUME_BYTES (24ull << 20)
#define CHANGE_BYTES 5u
#define CHANGES_MAX 64u
#define WALK_DEPTH_MAX 6u
#define WALK_ENTRIES_MAX 400u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The sound volume: a record with no losses is as good as a snapshot. */
static struct record *sound;
static uint64_t targets[4096]; /* addresses of metadata blocks */
static unsigned targets_count;

static const struct fs_req req = { .pid = 1 };

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void wake(void *arg, enum fs_work work)
{
}

static const struct fs_host_ops host = { .wake = wake };

static int mount_dev(struct blkdev *dev, struct fs **fs)
{
	struct fs_params params = { .dev = dev, .who = "fuzz", .host = &host };
	char why[300];

	fs_options_init(&params.opt);
	params.opt.acl = true;
	return fs_mount(&params, fs, why, sizeof(why));
}

/* ---- the sound volume ---- */

static void make(struct blkdev *dev)
{
	const struct mkfs_wishes wishes = { .bsize = BSIZE, .jsize_mb = 8 };
	const struct mkfs_device device = { .size_bytes = VOLUME_BYTES,
					    .sector_bytes = 512 };
	const struct mkfs_identity id = { .lockproto = "lock_nolock",
					  .time_sec = 1000000000,
					  .seed = 4711 };
	struct mkfs_result result;
	struct mkfs_plan plan;
	bool begun;

	must(!mkfs_plan_make(&wishes, &device, &plan, NULL, 0));
	must(!mkfs_make_volume(&plan, &id, NULL, &result));
	must(!mkfs_write_volume(dev, &plan, &id, &result, NULL, &begun));
	mkfs_plan_free(&plan);
}

static struct inode *make_entry(struct fs *fs, struct inode *dir,
				const char *name, uint32_t mode,
				const char *target)
{
	struct fs_make mk = { .name = name,
			      .len = strlen(name),
			      .mode = mode,
			      .target = target,
			      .target_len = target ? strlen(target) : 0 };
	struct fs_entry ent;
	struct inode *ip;

	if (fs_make(&req, dir, &mk, &ent))
		return NULL;
	ip = fs_inode_get(fs, ent.nodeid);
	fs_forget(fs, ent.nodeid, 1);
	return ip;
}

static void write_at(struct inode *ip, uint64_t offset, size_t len)
{
	char *buf = blkdev_alloc(65536);

	must(buf);
	memset(buf, 'x', 65536);
	if (ip && !fs_open(&req, ip, O_RDWR)) {
		fs_write(&req, ip, buf, len, offset, 0);
		fs_release(ip, O_RDWR);
	}
	free(buf);
}

/* A list: owner, user 5, group, mask, others. */
static const uint8_t acl[] = {
	2,    0,    0,	  0,	1,    0,    7,	0,    0xff, 0xff, 0xff,
	0xff, 2,    0,	  6,	0,    5,    0,	0,    0,    4,	  0,
	5,    0,    0xff, 0xff, 0xff, 0xff, 16, 0,    7,    0,	  0xff,
	0xff, 0xff, 0xff, 32,	0,    5,    0,	0xff, 0xff, 0xff, 0xff,
};

static const char *const attr_names[] = {
	"user.small",
	"user.value-in-blocks",
	"user.one-more",
	"security.that-needs-another-block",
	"system.posix_acl_access",
	"system.posix_acl_default",
};

static void set_attrs(struct inode *ip)
{
	static const uint16_t lens[] = { 10, 5000, 500, 800 };
	static const char value[5000] = "value";

	for (unsigned i = 0; i < UG_ARRAY_SIZE(lens); i++)
		fs_setxattr(&req, ip, attr_names[i], value, lens[i], 0);
	fs_setxattr(&req, ip, attr_names[4], acl, sizeof(acl), 0);
	fs_setxattr(&req, ip, attr_names[5], acl, sizeof(acl), 0);
}

/* Whatever there is, read, replaced, removed. */
static void use_attrs(struct inode *ip)
{
	static char buf[65536];
	struct fs_setattr set = { .valid = FS_SET_MODE, .mode = 0751 };
	struct fs_attr attr;

	fs_listxattr(&req, ip, buf, sizeof(buf));
	for (unsigned i = 0; i < UG_ARRAY_SIZE(attr_names); i++)
		fs_getxattr(&req, ip, attr_names[i], buf, sizeof(buf));
	fs_setattr(&req, ip, &set, &attr);
	fs_setxattr(&req, ip, attr_names[1], buf, 3000, 0);
	fs_setxattr(&req, ip, attr_names[0], buf, 600, 0);
	fs_removexattr(&req, ip, attr_names[2]);
	fs_removexattr(&req, ip, attr_names[1]);
}

static void populate(struct fs *fs)
{
	struct inode *root = fs_inode_get(fs, FS_ROOT_NODEID), *dir, *ip;
	char name[64];

	dir = make_entry(fs, root, "many", S_IFDIR | 0755, NULL);
	for (unsigned i = 0; i < 120; i++) {
		snprintf(name, sizeof(name), "entry-with-a-long-name-%u", i);
		inode_put(make_entry(fs, dir, name, S_IFREG | 0644, NULL));
	}
	inode_put(dir);
	ip = make_entry(fs, root, "with-attributes", S_IFDIR | 0755, NULL);
	set_attrs(ip);
	inode_put(make_entry(fs, ip, "inherits", S_IFDIR | 0755, NULL));
	inode_put(ip);
	ip = make_entry(fs, root, "stuffed", S_IFREG | 0644, NULL);
	write_at(ip, 0, 100);
	set_attrs(ip);
	inode_put(ip);
	ip = make_entry(fs, root, "tall", S_IFREG | 0644, NULL);
	write_at(ip, 0, 65536);
	write_at(ip, 5u << 20, 3000);
	write_at(ip, 3ull << 30, 3000);
	inode_put(ip);
	inode_put(make_entry(fs, root, "link", S_IFLNK | 0777, "stuffed"));
	inode_put(make_entry(fs, root, "fifo", S_IFIFO | 0644, NULL));
	inode_put(root);
	must(!fs_sync(fs));
}

/* Blocks of metadata, of which journals are the least interesting. */
static void find_targets(struct blkdev *dev)
{
	char *block = blkdev_alloc(BSIZE);

	must(block);
	for (uint64_t b = 0; b < VOLUME_BYTES / BSIZE; b++) {
		uint32_t type;

		must(!blkdev_read(dev, block, BSIZE, b * BSIZE));
		type = gfs2_meta_type(block);
		if (type == GFS2_METATYPE_NONE || type == GFS2_METATYPE_LH ||
		    type == GFS2_METATYPE_QC ||
		    targets_count == UG_ARRAY_SIZE(targets))
			continue;
		targets[targets_count++] = b;
	}
	free(block);
}

static void prepare(void)
{
	struct record_crash none = { 0 };
	struct blkdev *mem, *dev;
	struct fs *fs;

	ug_log_set_level(UG_ERROR);
	must(!blkdev_open_memory(VOLUME_BYTES, 512, &mem));
	make(mem);
	must(!mount_dev(mem, &fs));
	populate(fs);
	must(!fs_unmount(fs));
	must(!record_create(mem, &sound, &dev));
	blkdev_close(dev);
	must(!record_image(sound, &none, &dev));
	find_targets(dev);
	blkdev_close(dev);
}

/* ---- a damaged one ---- */

static void damage(struct blkdev *dev, const uint8_t *data, size_t size)
{
	char *block = blkdev_alloc(BSIZE);

	must(block);
	for (unsigned i = 0; i < CHANGES_MAX && size >= CHANGE_BYTES; i++) {
		unsigned which = (data[0] | data[1] << 8) % targets_count;
		unsigned at = (data[2] | data[3] << 8) % BSIZE;
		uint64_t offset = targets[which] * BSIZE;

		must(!blkdev_read(dev, block, BSIZE, offset));
		block[at] = (char)data[4];
		must(!blkdev_write(dev, block, BSIZE, offset, 0));
		data += CHANGE_BYTES;
		size -= CHANGE_BYTES;
	}
	free(block);
}

struct walk {
	struct fs *fs;
	unsigned entries; /* seen in all */
	unsigned count;	  /* collected of this directory */
	char names[WALK_ENTRIES_MAX][GFS2_NAME_MAX];
	uint32_t lens[WALK_ENTRIES_MAX];
};

static bool collect(void *arg, const struct fs_dirent *de)
{
	struct walk *w = arg;

	if (w->count == WALK_ENTRIES_MAX)
		return false;
	memcpy(w->names[w->count], de->name, de->len);
	w->lens[w->count++] = de->len;
	return true;
}

static void use_file(struct inode *ip, uint64_t size)
{
	static const uint64_t far[] = { 0, 5u << 20, 3ull << 30 };
	char *buf = blkdev_alloc(65536);

	must(buf);
	for (unsigned i = 0; i < UG_ARRAY_SIZE(far); i++)
		if (far[i] <= size)
			fs_read(&req, ip, buf, 65536, far[i],
				i ? FS_IO_NOCACHE : 0);
	free(buf);
	write_at(ip, size < 8192 ? size : 4000, 3000);
}

static void walk_dir(struct walk *parent, struct inode *dir, unsigned depth);

static void walk_entry(struct walk *w, struct inode *dir, unsigned i,
		       unsigned depth)
{
	struct fs_entry ent;
	struct inode *ip;
	char target[BSIZE];

	if (w->lens[i] <= 2 && w->names[i][0] == '.')
		return;
	if (fs_lookup(&req, dir, w->names[i], w->lens[i], &ent))
		return;
	ip = fs_inode_get(w->fs, ent.nodeid);
	if (ip) {
		use_attrs(ip);
		if (S_ISDIR(ent.attr.mode) && depth < WALK_DEPTH_MAX)
			walk_dir(w, ip, depth + 1);
		else if (S_ISREG(ent.attr.mode))
			use_file(ip, ent.attr.size);
		else if (S_ISLNK(ent.attr.mode))
			fs_readlink(&req, ip, target, sizeof(target));
		inode_put(ip);
	}
	fs_forget(w->fs, ent.nodeid, 1);
	if (i % 3 == 0)
		fs_unlink(&req, dir, w->names[i], w->lens[i]);
}

static void walk_dir(struct walk *parent, struct inode *dir, unsigned depth)
{
	struct walk *w;

	parent->entries++;
	if (parent->entries > WALK_ENTRIES_MAX)
		return;
	w = calloc(1, sizeof(*w));
	must(w);
	w->fs = parent->fs;
	w->entries = parent->entries;
	fs_readdir(&req, dir, 0, collect, w);
	for (unsigned i = 0; i < w->count; i++)
		walk_entry(w, dir, i, depth);
	parent->entries += w->count;
	free(w);
}

static void use(struct fs *fs)
{
	struct inode *root = fs_inode_get(fs, FS_ROOT_NODEID), *ip;
	struct walk top = { .fs = fs };

	walk_dir(&top, root, 0);
	ip = make_entry(fs, root, "a-new-directory", S_IFDIR | 0755, NULL);
	if (ip)
		inode_put(make_entry(fs, ip, "f", S_IFREG | 0644, NULL));
	inode_put(ip);
	fs_rename(&req, root, "stuffed", 7, root, "renamed", 7, 0);
	fs_work_run(fs, FS_WORK_EVICT, true);
	fs_sync(fs);
	inode_put(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct record_crash none = { 0 };
	struct blkdev *dev;
	struct fs *fs;

	if (!sound)
		prepare();
	must(!record_image(sound, &none, &dev));
	damage(dev, data, size);
	if (!mount_dev(dev, &fs)) {
		use(fs);
		fs_unmount(fs);
	}
	blkdev_close(dev);
	return 0;
}
