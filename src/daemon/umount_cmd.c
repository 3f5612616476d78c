/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * umount_cmd.c - unmount, and return when the device is free.
 *
 * For the kernel a fuse mount is gone when umount(2) returns, but the mount
 * process writes back from then on. Whoever copies the image or mounts it on
 * another machine must wait for the end of the process:
 *
 *   open the run file            before, since its name is free afterwards
 *   umount(2)
 *   the kernel told the process? it says ENDING; not if the file system is
 *                                still mounted elsewhere, or busy (lazy)
 *   wait for the file's lock     the process has exited
 *
 * The mount itself is never touched: its process may be dead.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "daemon/exitcode.h"
#include "daemon/mount_target.h"
#include "daemon/mountinfo.h"
#include "daemon/runfile.h"
#include "daemon/verbs.h"

/*
 * How long the process may take to notice that its mount has gone, which takes
 * microseconds unless the machine is swamped. Past it the file system must be
 * in use elsewhere.
 */
#define NOTICE_MS 5000
#define NOTICE_POLL_MS 5
/* After this long the user is told what the command waits for. */
#define PATIENCE_SEC 10

struct umount_request {
	const char *target;
	bool lazy;
	bool force;
};

static void usage(FILE *out)
{
	fputs("usage: ugfs umount [-f] [-l] DIR|DEVICE\n"
	      "\n"
	      "Unmount a volume, and return when all of it is on disk and\n"
	      "the mount process has exited.\n"
	      "\n"
	      "  -f, --force  end requests that are waiting, with errors\n"
	      "  -l, --lazy   take the mount away now, write back when the\n"
	      "               last user has gone; waits if there is none\n"
	      "  -h, --help   this text\n"
	      "\n"
	      "Exit status: 0 unmounted, 1 wrong usage, 32 not unmounted.\n"
	      "umount(8) does the same for mounts of ugfs.\n",
	      out);
}

/* ---- waiting ---- */

static bool mounted_elsewhere(const struct mount_target *target)
{
	struct mount_query query = { .major = target->major,
				     .minor = target->minor };
	unsigned count;

	if (mountinfo_find(&query))
		return false;
	count = query.count;
	mount_query_free(&query);
	return count > 0;
}

static void on_alarm(int sig)
{
	static const char text[] =
		"ugfs: waiting for the mount process to write back\n";

	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		return;
}

/* false: the kernel has not ended the file system, somebody still uses it. */
static bool process_noticed(int fd, int limit_ms)
{
	const struct timespec pause = { .tv_nsec = NOTICE_POLL_MS * 1000000L };

	for (int ms = 0; ms <= limit_ms; ms += NOTICE_POLL_MS) {
		if (runfile_is_gone(fd) || runfile_state(fd) != RUNFILE_MOUNTED)
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

static int wait_for_exit(int fd)
{
	struct sigaction sa = { .sa_handler = on_alarm,
				.sa_flags = SA_RESTART };

	sigaction(SIGALRM, &sa, NULL);
	alarm(PATIENCE_SEC);
	while (runfile_wait(fd) == -EINTR)
		;
	alarm(0);
	return EXIT_OK;
}

static void tell_outcome(int fd, const char *dir)
{
	switch (runfile_state(fd)) {
	case RUNFILE_CLEAN:
		break;
	case RUNFILE_DIRTY:
		fprintf(stderr,
			"ugfs: %s: not everything could be written (see the "
			"system log); the next mount recovers the journal\n",
			dir);
		break;
	case RUNFILE_MOUNTED:
	case RUNFILE_ENDING:
		fprintf(stderr,
			"ugfs: %s: the mount process had died; the next mount "
			"recovers the journal\n",
			dir);
		break;
	}
}

static int wait_for_process(const struct umount_request *req, int fd,
			    const struct mount_target *target)
{
	if (mounted_elsewhere(target))
		return EXIT_OK;
	if (!process_noticed(fd, req->lazy ? NOTICE_MS / 10 : NOTICE_MS)) {
		fprintf(stderr,
			"ugfs: %s is still in use and is written back when "
			"its last user has gone\n",
			target->dir);
		return EXIT_OK;
	}
	wait_for_exit(fd);
	tell_outcome(fd, target->dir);
	return EXIT_OK;
}

/* ---- the command ---- */

static int refuse_target(const struct mount_target *target)
{
	if (!target->found)
		fprintf(stderr, "ugfs: %s is not mounted\n", target->name);
	else
		fprintf(stderr, "ugfs: %s is not a mount of ugfs\n",
			target->name);
	return EXIT_MOUNT;
}

static int unmount(const struct umount_request *req)
{
	int flags = UMOUNT_NOFOLLOW | (req->lazy ? MNT_DETACH : 0) |
		    (req->force ? MNT_FORCE : 0);
	struct mount_target target;
	ug_autoclose int fd = -1;
	int err = mount_target_find(req->target, &target);

	if (err < 0) {
		fprintf(stderr, "ugfs: cannot read the list of mounts: %s\n",
			strerror(-err));
		return EXIT_SYSTEM;
	}
	if (!target.found || !target.ours)
		return refuse_target(&target);
	fd = runfile_open(target.major, target.minor);
	if (umount2(target.dir, flags)) {
		fprintf(stderr, "ugfs: %s cannot be unmounted: %s\n",
			target.dir,
			errno == EBUSY ? "it is in use" : strerror(errno));
		return errno == EPERM ? EXIT_USAGE : EXIT_MOUNT;
	}
	if (fd >= 0)
		return wait_for_process(req, fd, &target);
	fprintf(stderr,
		"ugfs: %s is unmounted, but its process may still be "
		"writing: it has no file in /run/ugfs\n",
		target.dir);
	return EXIT_OK;
}

int umount_main(int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "force", no_argument, NULL, 'f' },
		{ "lazy", no_argument, NULL, 'l' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct umount_request req = { 0 };
	int c;

	while ((c = getopt_long(argc, argv, "flh", long_options, NULL)) != -1) {
		switch (c) {
		case 'f':
			req.force = true;
			break;
		case 'l':
			req.lazy = true;
			break;
		case 'h':
			usage(stdout);
			return EXIT_OK;
		default:
			usage(stderr);
			return EXIT_USAGE;
		}
	}
	if (argc - optind != 1) {
		usage(stderr);
		return EXIT_USAGE;
	}
	req.target = argv[optind];
	return unmount(&req);
}

/* umount.ugfs TARGET [-flnrv] [-N namespace] [-t type.subtype] */
int umount_helper_main(int argc, char **argv)
{
	struct umount_request req = { 0 };
	const char *ns = NULL;
	int c, err;

	while ((c = getopt(argc, argv, "flnrvN:t:h")) != -1) {
		switch (c) {
		case 'f':
			req.force = true;
			break;
		case 'l':
			req.lazy = true;
			break;
		case 'n': /* no mtab: there is none */
		case 'r': /* read-only instead, when busy: cannot be done */
		case 'v':
		case 't':
			break;
		case 'N':
			ns = optarg;
			break;
		case 'h':
			usage(stdout);
			return EXIT_OK;
		default:
			usage(stderr);
			return EXIT_USAGE;
		}
	}
	if (argc - optind != 1) {
		usage(stderr);
		return EXIT_USAGE;
	}
	err = ns ? enter_mount_namespace(ns) : 0;
	if (err) {
		fprintf(stderr, "ugfs: namespace %s: %s\n", ns, strerror(-err));
		return EXIT_SYSTEM;
	}
	req.target = argv[optind];
	return unmount(&req);
}
