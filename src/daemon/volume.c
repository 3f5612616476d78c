/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * volume.c - the device or image of a mount: is it there, free, and GFS2?
 *
 * Block devices are claimed with O_EXCL, which every mounted file system does.
 * An image has two kinds of users that do not see each other: processes like
 * ours, by the lock that blkdev_open_file() takes, and file systems of others
 * on a loop device of that image, which are looked for here.
 */
#include <blkid/blkid.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/compiler.h"
#include "daemon/loopdev.h"
#include "daemon/mountinfo.h"
#include "daemon/runfile.h"
#include "daemon/volume.h"

struct why {
	char *text;
	size_t len;
};

static ug_printf(3, 4) int refuse(const struct why *why, int err,
				  const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why->text, why->len, fmt, ap);
	va_end(ap);
	return err;
}

/* ---- who has it ---- */

struct device_search {
	dev_t rdev;
	char dir[256];
};

static bool visit_device(const struct mount_entry *entry, void *arg)
{
	struct device_search *search = arg;
	struct stat st;

	if (stat(entry->source, &st) || !S_ISBLK(st.st_mode) ||
	    st.st_rdev != search->rdev)
		return false;
	snprintf(search->dir, sizeof(search->dir), "%s", entry->dir);
	return true;
}

/* Where a block device is mounted, by whatever file system. */
static bool device_mounted_on(const char *source, struct device_search *search)
{
	struct stat st;

	if (stat(source, &st) || !S_ISBLK(st.st_mode))
		return false;
	search->rdev = st.st_rdev;
	return mountinfo_walk(visit_device, search) == 1;
}

static int refuse_busy(const char *source, const struct why *why)
{
	struct runfile_info info;
	struct device_search search;

	if (!runfile_find_source(source, &info)) {
		refuse(why, -EBUSY,
		       "%s is already mounted on %s (by process %ld)", source,
		       info.dir, (long)info.pid);
		runfile_info_free(&info);
		return -EBUSY;
	}
	if (device_mounted_on(source, &search))
		return refuse(why, -EBUSY, "%s is already mounted on %s",
			      source, search.dir);
	return refuse(why, -EBUSY, "%s is in use by another program", source);
}

static int check_loops(const char *source, const struct why *why)
{
	char name[64];

	if (!loop_claimed_for(source, name, sizeof(name)))
		return 0;
	return refuse(why, -EBUSY, "%s is in use as /dev/%s", source, name);
}

/* ---- opening ---- */

static int open_failed(const char *source, int err, const struct why *why)
{
	switch (err) {
	case -EBUSY:
		return refuse_busy(source, why);
	case -ENOTBLK:
		return refuse(why, err,
			      "%s is neither a block device nor an image file",
			      source);
	case -EREMOTE:
		return refuse(why, err,
			      "%s lies on a network, cluster or FUSE file "
			      "system; an image must be on a local disk",
			      source);
	case -EINVAL:
		return refuse(why, err,
			      "%s cannot be opened: the file system it lies on "
			      "has no direct I/O",
			      source);
	case -EOPNOTSUPP:
		return refuse(why, err, "%s has sectors of more than %u bytes",
			      source, BLKDEV_ALIGN);
	default:
		return refuse(why, err, "%s: %s", source, strerror(-err));
	}
}

static bool is_write_protected(int err)
{
	return err == -EROFS || err == -EACCES || err == -EPERM;
}

static bool is_block_device(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISBLK(st.st_mode);
}

/*
 * A loop device is the same volume as its image and as every other loop device
 * of it: its user has the image's lock as well.
 */
static int lock_below(struct volume *vol, const struct why *why)
{
	unsigned flags = vol->shared ? BLK_OPEN_SHARED : BLK_OPEN_EXCL;
	char image[4096];
	int fd;

	if (!loop_image_of(vol->source, image, sizeof(image)))
		return 0;
	if (vol->dev->readonly)
		flags |= BLK_OPEN_READONLY;
	fd = blkdev_lock_image(image, flags);
	if (fd == -EBUSY)
		return refuse_busy(image, why);
	/* Cannot be opened: out of reach for others of this name space too. */
	vol->image = fd;
	return 0;
}

/*
 * The device itself is opened without O_EXCL, since that could not be taken
 * back when the kernel's mount claims it; a descriptor of its own does that.
 */
int volume_claim(struct volume *vol, char *why_text, size_t why_len)
{
	const struct why why = { why_text, why_len };

	if (vol->claim >= 0 || !is_block_device(vol->source))
		return 0;
	vol->claim = open(vol->source, O_RDONLY | O_EXCL | O_CLOEXEC);
	return vol->claim < 0 ? open_failed(vol->source, -errno, &why) : 0;
}

void volume_unclaim(struct volume *vol)
{
	if (vol->claim >= 0)
		close(vol->claim);
	vol->claim = -1;
}

static int open_device(struct volume *vol)
{
	unsigned flags = is_block_device(vol->source) ? 0
			 : vol->shared		      ? BLK_OPEN_SHARED
						      : BLK_OPEN_EXCL;
	int err;

	if (vol->readonly)
		return blkdev_open_file(vol->source, flags | BLK_OPEN_READONLY,
					&vol->dev);
	err = blkdev_open_file(vol->source, flags, &vol->dev);
	if (is_write_protected(err))
		err = blkdev_open_file(vol->source, flags | BLK_OPEN_READONLY,
				       &vol->dev);
	return err;
}

bool volume_peek(const char *source, struct gfs2_sb_info *sb)
{
	ug_autoclose int fd = -1;
	char block[GFS2_BSIZE_MAX], why[256];
	struct stat st;

	if (stat(source, &st) || (!S_ISBLK(st.st_mode) && !S_ISREG(st.st_mode)))
		return false;
	fd = open(source, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	return pread(fd, block, sizeof(block), GFS2_SB_OFFSET_BYTES) ==
		       sizeof(block) &&
	       !gfs2_sb_decode(block, sizeof(block), sb, why, sizeof(why));
}

int volume_open(struct volume *vol, const char *source, bool readonly,
		bool shared, char *why_text, size_t why_len)
{
	const struct why why = { why_text, why_len };
	int err;

	*vol = (struct volume){ .source = source,
				.readonly = readonly,
				.shared = shared,
				.claim = -1,
				.image = -1 };
	err = check_loops(source, &why);
	if (!err)
		err = volume_claim(vol, why_text, why_len);
	if (err)
		return err;
	err = open_device(vol);
	if (err) {
		open_failed(source, err, &why);
		volume_close(vol);
		return err;
	}
	if (!vol->dev->size_bytes) {
		volume_close(vol);
		return refuse(&why, -EINVAL, "%s is empty", source);
	}
	err = lock_below(vol, &why);
	if (err)
		volume_close(vol);
	return err;
}

void volume_close(struct volume *vol)
{
	blkdev_close(vol->dev);
	vol->dev = NULL;
	volume_unclaim(vol);
	if (vol->image >= 0)
		close(vol->image);
	vol->image = -1;
}

/* ---- what it is instead ---- */

static bool lookup(blkid_probe pr, const char *name, char *what,
		   size_t what_len)
{
	const char *value;

	if (blkid_probe_lookup_value(pr, name, &value, NULL) ||
	    !strcmp(value, "gfs2"))
		return false;
	if (!strcmp(name, "TYPE"))
		snprintf(what, what_len, "holds \"%s\"", value);
	else
		snprintf(what, what_len, "holds a partition table (%s)", value);
	return true;
}

bool volume_foreign(const char *source, char *what, size_t what_len)
{
	blkid_probe pr = blkid_new_probe_from_filename(source);
	bool found = false;

	if (!pr)
		return false;
	blkid_probe_enable_superblocks(pr, 1);
	blkid_probe_set_superblocks_flags(pr, BLKID_SUBLKS_TYPE);
	blkid_probe_enable_partitions(pr, 1);
	if (!blkid_do_safeprobe(pr))
		found = lookup(pr, "TYPE", what, what_len) ||
			lookup(pr, "PTTYPE", what, what_len);
	blkid_free_probe(pr);
	return found;
}
