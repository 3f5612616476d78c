/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * runfile.h - the file by which others find and await a mount process.
 *
 * /run/ugfs/MAJOR:MINOR is named after the st_dev of the mount, holds the
 * state, the process and what it has mounted, and is locked (flock, exclusive)
 * from before the device is opened until the process has exited: the kernel
 * drops the lock with the same exit that waits for the last I/O (DESIGN D8).
 * Whoever has the file open and gets the lock knows that the device is free.
 *
 * A mount can be unmounted, its number given to the next mount, and the first
 * process still be writing. So the names change hands by rename, and a waiter
 * opens the file before it unmounts.
 */
#ifndef UG_DAEMON_RUNFILE_H
#define UG_DAEMON_RUNFILE_H

#include <stdbool.h>
#include <sys/types.h>

/* ---- the mount process ---- */

struct runfile {
	int fd;
	bool published;
	unsigned major, minor;
};

/*
 * Make and lock a file that has no name yet that others look for. 0, or the
 * errno of what failed: the mount works without, but nobody can await its end.
 */
int runfile_create(struct runfile *rf);

/* Give it the name of the mount. As runfile_create(). */
int runfile_publish(struct runfile *rf, unsigned major, unsigned minor,
		    const char *source, const char *dir);

enum runfile_state {
	RUNFILE_MOUNTED,
	RUNFILE_ENDING, /* the kernel has ended the mount: writing back */
	RUNFILE_CLEAN,	/* all is on disk */
	RUNFILE_DIRTY,	/* the next mount must recover the journal */
};

/* Never fails: without the new state a waiter only knows less. */
void runfile_set_state(struct runfile *rf, enum runfile_state state);

/* Take the name away; the lock stays until exit. All calls accept fd -1. */
void runfile_remove(struct runfile *rf);

/* ---- the others ---- */

/* The file of a mount, for the calls below; -errno. Closed by close(). */
int runfile_open(unsigned major, unsigned minor);

/* What the process has written last. */
enum runfile_state runfile_state(int fd);

/* The process has exited: killed, if the state is not CLEAN or DIRTY. */
bool runfile_is_gone(int fd);

/* Return when the process has exited: 0, or -EINTR. */
int runfile_wait(int fd);

/* What a run file says; runfile_info_free(). */
struct runfile_info {
	pid_t pid;
	char *source;
	char *dir;
};

/*
 * What the file says, and 0; -ENOENT: the process is gone; -EINVAL. The caller
 * frees info.
 */
int runfile_read(int fd, struct runfile_info *info);

/*
 * The mount process, still alive, whose source is the same file or device as
 * path. 0 and info filled in (runfile_info_free()), or -ENOENT.
 */
int runfile_find_source(const char *path, struct runfile_info *info);
void runfile_info_free(struct runfile_info *info);

#endif
