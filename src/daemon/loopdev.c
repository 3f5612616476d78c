/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * loopdev.c - loop devices and the images that they show.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/compiler.h"
#include "daemon/loopdev.h"

static bool loop_info(int fd, struct loop_info64 *info)
{
	return fd >= 0 && !ioctl(fd, LOOP_GET_STATUS64, info);
}

static bool shows(const struct loop_info64 *info, const struct stat *image)
{
	return info->lo_inode == image->st_ino &&
	       info->lo_device == image->st_dev;
}

static bool is_claimed(const char *name, const struct stat *image)
{
	char path[300];
	struct loop_info64 info;
	ug_autoclose int fd = -1;
	ug_autoclose int excl = -1;

	snprintf(path, sizeof(path), "/dev/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (!loop_info(fd, &info) || !shows(&info, image))
		return false;
	excl = open(path, O_RDONLY | O_EXCL | O_CLOEXEC);
	return excl < 0 && errno == EBUSY;
}

bool loop_claimed_for(const char *image, char *name, size_t len)
{
	bool claimed = false;
	struct stat st;
	struct dirent *de;
	DIR *dir;

	if (stat(image, &st) || !S_ISREG(st.st_mode))
		return false;
	dir = opendir("/sys/block");
	if (!dir)
		return false;
	while (!claimed && (de = readdir(dir))) {
		claimed = !strncmp(de->d_name, "loop", 4) &&
			  is_claimed(de->d_name, &st);
		if (claimed)
			snprintf(name, len, "%s", de->d_name);
	}
	closedir(dir);
	return claimed;
}

/* The kernel's idea of the path; its own file's name ends with the line. */
static bool backing_file(dev_t rdev, char *path, size_t len)
{
	char attribute[100];
	ug_autoclose int fd = -1;
	ssize_t n;

	snprintf(attribute, sizeof(attribute),
		 "/sys/dev/block/%u:%u/loop/backing_file", major(rdev),
		 minor(rdev));
	fd = open(attribute, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, path, len - 1);
	if (n <= 0)
		return false;
	path[path[n - 1] == '\n' ? n - 1 : n] = '\0';
	return true;
}

bool loop_image_of(const char *device, char *image, size_t len)
{
	struct loop_info64 info;
	ug_autoclose int fd = -1;
	struct stat st;

	if (stat(device, &st) || !S_ISBLK(st.st_mode))
		return false;
	fd = open(device, O_RDONLY | O_CLOEXEC);
	return loop_info(fd, &info) && !info.lo_offset &&
	       backing_file(st.st_rdev, image, len) && !stat(image, &st) &&
	       shows(&info, &st);
}
