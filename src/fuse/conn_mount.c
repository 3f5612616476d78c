/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * conn_mount.c - mount(2) and umount(2) of a connection.
 *
 * A block device is mounted as "fuseblk": the kernel then claims it, sends
 * SYNCFS and DESTROY, and umount waits for the answer to the latter. Where
 * that is refused - the device is claimed otherwise, a kernel that forbids
 * mounting what is open for writing - a plain "fuse" mount works as well, but
 * umount does not wait (docs/spec/fuse.md 11.1, 11.2).
 *
 * The kernel looks for a fuseblk mount of the same device first, and silently
 * shows that one again: we would never see a request. So one that exists
 * makes ours a plain mount.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mntent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/log.h"
#include "fuse/conn_impl.h"

#define MOUNTS "/proc/self/mounts"

/* Fill why, and return err. */
static int ug_printf(4, 5)
	refuse(char *why, size_t why_len, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, why_len, fmt, ap);
	va_end(ap);
	return err;
}

static int mountpoint_resolve(const char *path, char **full, char *why,
			      size_t why_len)
{
	struct stat st;
	int err;

	*full = NULL;
	if (stat(path, &st)) {
		err = -errno;
		if (err == -ENOTCONN)
			return refuse(why, why_len, err,
				      "%s is a mount whose process has died; "
				      "umount it first",
				      path);
		return refuse(why, why_len, err, "%s: %s", path,
			      strerror(-err));
	}
	if (!S_ISDIR(st.st_mode))
		return refuse(why, why_len, -ENOTDIR, "%s is not a directory",
			      path);
	*full = realpath(path, NULL);
	if (!*full) {
		err = -errno;
		return refuse(why, why_len, err, "%s: %s", path,
			      strerror(-err));
	}
	return 0;
}

/* "fuse.ugfs" and "fuseblk.ugfs" are of subtype "ugfs". */
static bool type_has_subtype(const char *type, const char *subtype)
{
	const char *dot = strchr(type, '.');

	return dot && !strncmp(type, "fuse", 4) && !strcmp(dot + 1, subtype);
}

/* Both paths are of block special files, which no FUSE mount can hold up. */
static bool same_device(const char *a, const char *b)
{
	struct stat sa, sb;

	return !strcmp(a, b) ||
	       (!stat(a, &sa) && !stat(b, &sb) && S_ISBLK(sa.st_mode) &&
		S_ISBLK(sb.st_mode) && sa.st_rdev == sb.st_rdev);
}

/* What the present mounts say about a new one. */
struct mounts_seen {
	bool here;     /* our source is already mounted at our place */
	bool as_block; /* our device has a fuseblk mount somewhere */
};

static void mount_look(const struct mntent *entry, const char *full,
		       const struct fuse_mount_params *params,
		       struct mounts_seen *seen)
{
	bool block = !strncmp(entry->mnt_type, "fuseblk", 7);
	bool same;

	/* Images are compared by name: a stat() could end in a dead mount. */
	if (block && params->blockdev)
		same = same_device(entry->mnt_fsname, params->source);
	else
		same = !strcmp(entry->mnt_fsname, params->source);
	if (!same)
		return;
	seen->as_block |= block;
	seen->here |= type_has_subtype(entry->mnt_type, params->subtype) &&
		      !strcmp(entry->mnt_dir, full);
}

static void mounts_look(const char *full,
			const struct fuse_mount_params *params,
			struct mounts_seen *seen)
{
	FILE *mounts = setmntent(MOUNTS, "re");
	struct mntent entry;
	char text[4 * PATH_MAX];

	*seen = (struct mounts_seen){ false, false };
	if (!mounts)
		return;
	while (getmntent_r(mounts, &entry, text, sizeof(text)))
		mount_look(&entry, full, params, seen);
	endmntent(mounts);
}

static int mount_as(struct fuse_conn *conn, const char *kind, const char *full,
		    const struct fuse_mount_params *params)
{
	char options[160];
	int n;

	snprintf(conn->type, sizeof(conn->type), "%s.%s", kind,
		 params->subtype);
	/* The kernel checks the permissions, for everybody (11.11). */
	n = snprintf(options, sizeof(options),
		     "fd=%d,rootmode=%o,user_id=%u,group_id=%u,"
		     "default_permissions,allow_other,max_read=%u",
		     conn->fds[0], S_IFDIR, getuid(), getgid(), FUSE_MAX_WRITE);
	if (!strcmp(kind, "fuseblk"))
		snprintf(options + n, sizeof(options) - (size_t)n,
			 ",blksize=%u", params->blksize);
	if (mount(params->source, full, conn->type, params->ms_flags, options))
		return -errno;
	return 0;
}

static int mount_either(struct fuse_conn *conn, const char *full,
			const struct fuse_mount_params *params, bool as_block)
{
	int err;

	if (as_block) {
		err = mount_as(conn, "fuseblk", full, params);
		if (!err)
			return 0;
		ug_info(full,
			"not mounted as fuseblk: %s; umount will not "
			"wait for the volume to be written",
			strerror(-err));
	}
	return mount_as(conn, "fuse", full, params);
}

static int mount_failed(const char *full, int err, char *why, size_t why_len)
{
	switch (err) {
	case -ENODEV:
		return refuse(why, why_len, err,
			      "this kernel has no FUSE file systems");
	case -EPERM:
		return refuse(why, why_len, err,
			      "only root may mount a volume");
	default:
		return refuse(why, why_len, err, "mounting on %s: %s", full,
			      strerror(-err));
	}
}

int fuse_conn_mount(struct fuse_conn *conn,
		    const struct fuse_mount_params *params, char *why,
		    size_t why_len)
{
	struct mounts_seen seen;
	char *full;
	int err = mountpoint_resolve(params->mountpoint, &full, why, why_len);

	if (err)
		return err;
	mounts_look(full, params, &seen);
	if (seen.here)
		err = refuse(why, why_len, -EBUSY,
			     "%s is already mounted on %s", params->source,
			     full);
	else
		err = mount_either(conn, full, params,
				   params->blockdev && !seen.as_block);
	if (err) {
		if (!seen.here)
			err = mount_failed(full, err, why, why_len);
		free(full);
		return err;
	}
	conn->mountpoint = full;
	return 0;
}

const char *fuse_conn_type(const struct fuse_conn *conn)
{
	return conn->type;
}

const char *fuse_conn_mountpoint(const struct fuse_conn *conn)
{
	return conn->mountpoint;
}

int fuse_conn_unmount(struct fuse_conn *conn, int flags)
{
	return umount2(conn->mountpoint, flags | UMOUNT_NOFOLLOW) ? -errno : 0;
}

int fuse_conn_set_readahead(struct fuse_conn *conn, unsigned kib)
{
	struct statx stx;
	char path[64];
	FILE *setting;
	int err = 0;

	/* Not synchronised: answered by the kernel, never by us. */
	if (statx(AT_FDCWD, conn->mountpoint, AT_STATX_DONT_SYNC, STATX_TYPE,
		  &stx))
		return -errno;
	/* The name without the suffix is then the block device itself. */
	snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u%s/read_ahead_kb",
		 stx.stx_dev_major, stx.stx_dev_minor,
		 strncmp(conn->type, "fuseblk", 7) ? "" : "-fuseblk");
	setting = fopen(path, "we");
	if (!setting)
		return -errno;
	if (fprintf(setting, "%u\n", kib) < 0)
		err = -EIO;
	if (fclose(setting))
		err = -errno;
	return err;
}
