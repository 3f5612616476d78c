/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mount_cmd.c - the commands that start a mount process.
 *
 * "ugfs mount DEVICE DIR" for people, "mount.ugfs" for mount(8), which has its
 * own letters: -f is a rehearsal there. Both read the options, fork before
 * anything is opened (a process that has a disk open never forks), and wait
 * for the outcome (report.h).
 */
#include <blkid/blkid.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/compiler.h"
#include "daemon/exitcode.h"
#include "daemon/process.h"
#include "daemon/report.h"
#include "daemon/verbs.h"

#define WHY_LEN 512

static void usage(FILE *out)
{
	fputs("usage: ugfs mount [-f] [-r] [-v] [-o OPTIONS] DEVICE DIR\n"
	      "\n"
	      "Mount the GFS2 volume on a block device or in an image file.\n"
	      "Returns when the mount can be used, or says why it cannot.\n"
	      "\n"
	      "  -o, --options LIST  mount options, separated by commas\n"
	      "  -r, --read-only     the same as -o ro\n"
	      "  -f, --foreground    stay, and log to standard error\n"
	      "  -L, --log FILE      add log lines to FILE, not to syslog\n"
	      "  -v, --verbose       say when it is mounted, and in the end\n"
	      "                      log what it has done\n"
	      "  -h, --help          this text\n"
	      "\n"
	      "Options of its own; ugfs-mount(8) has those of GFS2 too:\n"
	      "\n"
	      "  force           lock_nolock on a volume of a cluster\n"
	      "  cache=SIZE      memory for data and metadata (256M)\n"
	      "  inodes=N        cached inodes that nobody uses (65536)\n"
	      "  threads=N       most requests that wait at once (64)\n"
	      "  pagecache=WHO   pages of files: kernel (default) or own\n"
	      "\n"
	      "Exit status: 0 mounted, 1 wrong usage or no permission,\n"
	      "2 system error, 4 the mount process died, 8 interrupted,\n"
	      "32 not mounted.\n",
	      out);
}

/* ---- arguments ---- */

static int refuse_option(const char *why)
{
	fprintf(stderr, "ugfs: %s\n", why);
	return EXIT_USAGE;
}

static int add_options(struct mount_request *req, const char *text)
{
	char why[WHY_LEN];
	int err = mount_options_parse(&req->opt, text, why, sizeof(why));

	if (!err)
		return EXIT_OK;
	refuse_option(why);
	return err == -ENOMEM ? EXIT_SYSTEM : EXIT_USAGE;
}

static int take_positionals(struct mount_request *req, int argc, char **argv)
{
	if (argc != 2) {
		usage(stderr);
		return EXIT_USAGE;
	}
	req->source = argv[0];
	req->dir = argv[1];
	return EXIT_OK;
}

/* EXIT_OK with *done: nothing is left to do. */
static int parse_command(struct mount_request *req, int argc, char **argv,
			 bool *done)
{
	static const struct option long_options[] = {
		{ "options", required_argument, NULL, 'o' },
		{ "read-only", no_argument, NULL, 'r' },
		{ "foreground", no_argument, NULL, 'f' },
		{ "log", required_argument, NULL, 'L' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c, code = EXIT_OK;

	while (!code && (c = getopt_long(argc, argv, "o:rfL:vh", long_options,
					 NULL)) != -1) {
		switch (c) {
		case 'o':
			code = add_options(req, optarg);
			break;
		case 'r':
			code = add_options(req, "ro");
			break;
		case 'f':
			req->foreground = true;
			break;
		case 'L':
			req->log_path = optarg;
			break;
		case 'v':
			req->verbose = true;
			break;
		case 'h':
			usage(stdout);
			*done = true;
			return EXIT_OK;
		default:
			usage(stderr);
			return EXIT_USAGE;
		}
	}
	return code ? code
		    : take_positionals(req, argc - optind, argv + optind);
}

int enter_mount_namespace(const char *name)
{
	char path[PATH_MAX];
	ug_autoclose int fd = -1;

	if (name[strspn(name, "0123456789")] == '\0')
		snprintf(path, sizeof(path), "/proc/%s/ns/mnt", name);
	else
		snprintf(path, sizeof(path), "%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNS))
		return -errno;
	return 0;
}

/* SOURCE DIR [-sfnvrw] [-N namespace] [-o options] [-t type] */
static int parse_helper(struct mount_request *req, int argc, char **argv,
			bool *done)
{
	const char *ns = NULL;
	int c, err, code = EXIT_OK;

	while (!code && (c = getopt(argc, argv, "sfnvrwN:o:t:h")) != -1) {
		switch (c) {
		case 's':
			req->opt.sloppy = true;
			break;
		case 'f':
			*done = true;
			break;
		case 'n': /* no mtab: there is none */
		case 't':
			break;
		case 'v':
			req->verbose = true;
			break;
		case 'r':
			code = add_options(req, "ro");
			break;
		case 'w':
			code = add_options(req, "rw");
			break;
		case 'N':
			ns = optarg;
			break;
		case 'o':
			code = add_options(req, optarg);
			break;
		case 'h':
			usage(stdout);
			*done = true;
			return EXIT_OK;
		default:
			usage(stderr);
			return EXIT_USAGE;
		}
	}
	if (code)
		return code;
	err = ns ? enter_mount_namespace(ns) : 0;
	if (err) {
		fprintf(stderr, "ugfs: namespace %s: %s\n", ns, strerror(-err));
		return EXIT_SYSTEM;
	}
	return take_positionals(req, argc - optind, argv + optind);
}

/* ---- paths ---- */

/*
 * Full paths, since the mount process leaves this directory. A full path of a
 * device is kept as it is, for /dev/mapper names mean more than /dev/dm-3.
 */
static char *resolve_source(const char *source)
{
	if (strchr(source, '=') && source[0] != '/') {
		char *found = blkid_evaluate_spec(source, NULL);

		if (!found)
			errno = ENODEV;
		return found;
	}
	return source[0] == '/' ? strdup(source) : realpath(source, NULL);
}

/*
 * The mount point must be a directory that answers: asked for with statfs(),
 * since the kernel may know the attributes of a dead mount by heart.
 */
static int check_dir(const char *dir)
{
	struct statfs fs;
	struct stat st;

	if (!statfs(dir, &fs) && !stat(dir, &st)) {
		if (S_ISDIR(st.st_mode))
			return EXIT_OK;
		errno = ENOTDIR;
	}
	switch (errno) {
	case ENOTCONN:
	case ECONNABORTED:
		fprintf(stderr,
			"ugfs: %s is a mount whose process has died; unmount "
			"it first\n",
			dir);
		break;
	case EIO:
		fprintf(stderr,
			"ugfs: %s answers with errors: if a volume is mounted "
			"there that has withdrawn, or that the cluster has "
			"expelled, unmount it first\n",
			dir);
		break;
	case ENOTDIR:
		fprintf(stderr, "ugfs: mount point %s is not a directory\n",
			dir);
		break;
	default:
		fprintf(stderr, "ugfs: mount point %s: %s\n", dir,
			strerror(errno));
	}
	return EXIT_MOUNT;
}

static int resolve_paths(struct mount_request *req, char **source, char **dir)
{
	int code;

	*source = resolve_source(req->source);
	if (!*source) {
		fprintf(stderr, "ugfs: %s: %s\n", req->source, strerror(errno));
		return EXIT_MOUNT;
	}
	code = check_dir(req->dir);
	if (code)
		return code;
	*dir = realpath(req->dir, NULL);
	if (!*dir) {
		fprintf(stderr, "ugfs: mount point %s: %s\n", req->dir,
			strerror(errno));
		return EXIT_MOUNT;
	}
	req->source = *source;
	req->dir = *dir;
	return EXIT_OK;
}

/* ---- starting ---- */

static int system_error(const char *what)
{
	fprintf(stderr, "ugfs: %s: %s\n", what, strerror(errno));
	return EXIT_SYSTEM;
}

static int wait_as(const struct mount_request *req, int fd, pid_t pid,
		   bool is_child)
{
	const struct report_wait rw = {
		.fd = fd,
		.pid = pid,
		.is_child = is_child,
		.verbose = req->verbose || req->foreground,
		.dir = req->dir,
	};

	return report_wait(&rw);
}

/* The mount process becomes a child, this process waits and exits. */
static int start_background(const struct mount_request *req, int pipe_fds[2])
{
	pid_t pid = fork();

	if (pid < 0)
		return system_error("fork");
	if (!pid) {
		close(pipe_fds[0]);
		exit(mount_process(req, pipe_fds[1]));
	}
	close(pipe_fds[1]);
	return wait_as(req, pipe_fds[0], pid, true);
}

/* This process becomes the mount process, a child tells of its start. */
static int start_foreground(const struct mount_request *req, int pipe_fds[2])
{
	pid_t self = getpid();
	pid_t pid = fork();

	if (pid < 0)
		return system_error("fork");
	if (!pid) {
		close(pipe_fds[1]);
		_exit(wait_as(req, pipe_fds[0], self, false));
	}
	close(pipe_fds[0]);
	return mount_process(req, pipe_fds[1]);
}

static int start(const struct mount_request *req)
{
	int pipe_fds[2];

	if (pipe2(pipe_fds, O_CLOEXEC))
		return system_error("pipe");
	fflush(NULL);
	return req->foreground ? start_foreground(req, pipe_fds)
			       : start_background(req, pipe_fds);
}

static int mount_with(struct mount_request *req)
{
	ug_autofree char *source = NULL;
	ug_autofree char *dir = NULL;
	char why[WHY_LEN];
	int code;

	if (mount_options_finish(&req->opt, why, sizeof(why)))
		return refuse_option(why);
	if (geteuid() != 0) {
		fprintf(stderr, "ugfs: only root can mount a volume\n");
		return EXIT_USAGE;
	}
	code = resolve_paths(req, &source, &dir);
	return code ? code : start(req);
}

int mount_main(int argc, char **argv)
{
	struct mount_request req = { 0 };
	bool done = false;
	int code;

	mount_options_init(&req.opt);
	code = parse_command(&req, argc, argv, &done);
	if (!code && !done)
		code = mount_with(&req);
	mount_options_free(&req.opt);
	return code;
}

int mount_helper_main(int argc, char **argv)
{
	struct mount_request req = { 0 };
	bool done = false;
	int code;

	mount_options_init(&req.opt);
	code = parse_helper(&req, argc, argv, &done);
	if (!code && !done)
		code = mount_with(&req);
	mount_options_free(&req.opt);
	return code;
}
