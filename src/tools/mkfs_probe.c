/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mkfs_probe.c - what the device is, and what is on it now.
 *
 * Works on descriptors of its own, opened without taking the device, so that
 * looking disturbs nobody.
 */
#include <blkid/blkid.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "tools/mkfs_probe.h"

#define SECTOR_BYTES_MIN 512u

/* ---- contents ---------------------------------------------------------- */

/* Names come from the disk: only what can be printed goes to a terminal. */
static void copy_printable(char *to, size_t len, const char *from)
{
	size_t n = 0;

	for (; *from && n + 1 < len; from++)
		to[n++] = *from >= ' ' && *from < 0x7f ? *from : '?';
	to[n] = '\0';
}

static void describe_found(blkid_probe pr, char *out, size_t len)
{
	const char *type = NULL, *label = NULL, *table = NULL;
	char name[64], title[96];

	blkid_probe_lookup_value(pr, "TYPE", &type, NULL);
	blkid_probe_lookup_value(pr, "LABEL", &label, NULL);
	blkid_probe_lookup_value(pr, "PTTYPE", &table, NULL);
	if (type) {
		copy_printable(name, sizeof(name), type);
		copy_printable(title, sizeof(title), label ? label : "");
		snprintf(out, len, label ? "%s with the label \"%s\"" : "%s",
			 name, title);
	} else if (table) {
		copy_printable(name, sizeof(name), table);
		snprintf(out, len, "a partition table (%s)", name);
	}
}

/* libblkid does not know GFS2 volumes below 32 MiB. */
static void describe_gfs2(int fd, char *out, size_t len)
{
	uint8_t block[512];
	struct gfs2_sb_info sb;
	char label[96];

	if (pread(fd, block, sizeof(block), GFS2_SB_OFFSET_BYTES) !=
		    (ssize_t)sizeof(block) ||
	    gfs2_sb_decode(block, sizeof(block), &sb, NULL, 0))
		return;
	copy_printable(label, sizeof(label), sb.locktable);
	snprintf(out, len, label[0] ? "gfs2 with the label \"%s\"" : "gfs2",
		 label);
}

static void probe_contents(int fd, char *out, size_t len)
{
	blkid_probe pr = blkid_new_probe();
	int found;

	out[0] = '\0';
	if (!pr)
		return;
	if (blkid_probe_set_device(pr, fd, 0, 0) == 0) {
		blkid_probe_enable_superblocks(pr, 1);
		blkid_probe_set_superblocks_flags(
			pr, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_LABEL);
		blkid_probe_enable_partitions(pr, 1);
		found = blkid_do_safeprobe(pr);
		if (found == 0)
			describe_found(pr, out, len);
		else if (found == -2)
			snprintf(out, len, "the marks of several formats");
		else
			describe_gfs2(fd, out, len);
	}
	blkid_free_probe(pr);
}

/* ---- device ------------------------------------------------------------ */

static void probe_topology(int fd, struct mkfs_probe *probe)
{
	unsigned physical = 0, io_min = 0, io_opt = 0;
	int offset = 0;

	if (ioctl(fd, BLKPBSZGET, &physical) == 0)
		probe->device.physical_bytes = physical;
	if (ioctl(fd, BLKIOMIN, &io_min) == 0)
		probe->device.io_min_bytes = io_min;
	if (ioctl(fd, BLKIOOPT, &io_opt) == 0)
		probe->device.io_opt_bytes = io_opt;
	if (ioctl(fd, BLKALIGNOFF, &offset) == 0)
		probe->misaligned = offset != 0;
}

int mkfs_probe_path(const char *path, struct mkfs_probe *probe)
{
	ug_autoclose int fd = -1;
	struct stat st;

	*probe = (struct mkfs_probe){
		.device.physical_bytes = SECTOR_BYTES_MIN,
	};
	/* A pipe or a terminal must not make us wait for its other end. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (!S_ISBLK(st.st_mode) && !S_ISREG(st.st_mode))
		return 0;
	probe->is_blockdev = S_ISBLK(st.st_mode);
	probe->rdev = st.st_rdev;
	if (probe->is_blockdev)
		probe_topology(fd, probe);
	probe_contents(fd, probe->contents, sizeof(probe->contents));
	return 0;
}

/* ---- loop devices ------------------------------------------------------ */

static bool is_backing_file(const char *attribute, const struct stat *image)
{
	char path[PATH_MAX];
	struct stat st;
	FILE *file = fopen(attribute, "re");
	bool same = false;

	if (!file)
		return false;
	if (fgets(path, sizeof(path), file)) {
		path[strcspn(path, "\n")] = '\0';
		same = stat(path, &st) == 0 && st.st_dev == image->st_dev &&
		       st.st_ino == image->st_ino;
	}
	fclose(file);
	return same;
}

bool mkfs_probe_loop(const char *path, char *name, size_t len)
{
	glob_t loops;
	struct stat image;
	bool found = false;

	if (stat(path, &image) || !S_ISREG(image.st_mode) ||
	    glob("/sys/block/loop*/loop/backing_file", 0, NULL, &loops))
		return false;
	for (size_t i = 0; !found && i < loops.gl_pathc; i++) {
		const char *attribute = loops.gl_pathv[i];
		const char *device = attribute + strlen("/sys/block/");

		found = is_backing_file(attribute, &image);
		if (found)
			snprintf(name, len, "/dev/%.*s",
				 (int)strcspn(device, "/"), device);
	}
	globfree(&loops);
	return found;
}

/* ---- discard ----------------------------------------------------------- */

int mkfs_discard(const char *path, const struct mkfs_probe *probe,
		 uint64_t size_bytes)
{
	uint64_t range[2] = { 0, size_bytes };
	ug_autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	/* The name must still mean the device that was asked about. */
	if (!S_ISBLK(st.st_mode) || st.st_rdev != probe->rdev)
		return -ESTALE;
	return ioctl(fd, BLKDISCARD, &range) ? -errno : 0;
}
