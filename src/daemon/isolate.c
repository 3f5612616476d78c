/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * isolate.c - make a process fit to be part of the kernel's I/O path.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/log.h"
#include "daemon/isolate.h"

static void close_inherited(int keep_fd)
{
	if (keep_fd > STDERR_FILENO + 1)
		close_range(STDERR_FILENO + 1, (unsigned)keep_fd - 1, 0);
	close_range((unsigned)UG_MAX(keep_fd, STDERR_FILENO) + 1, ~0u, 0);
}

static int redirect(const char *path, int flags, int target)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (dup2(fd, target) < 0)
		err = -errno;
	close(fd);
	return err;
}

static int set_log(bool foreground, const char *log_path)
{
	if (log_path) {
		ug_log_set_target(UG_LOG_STDERR);
		return redirect(log_path, O_WRONLY | O_CREAT | O_APPEND,
				STDERR_FILENO);
	}
	if (foreground) {
		ug_log_set_target(UG_LOG_STDERR);
		return 0;
	}
	openlog("ugfs", LOG_PID | LOG_NDELAY, LOG_DAEMON);
	ug_log_set_target(UG_LOG_SYSLOG);
	return redirect("/dev/null", O_RDWR, STDERR_FILENO);
}

int isolate_process(bool foreground, const char *log_path, int keep_fd)
{
	int err = 0;

	/* Before the log is opened, whose descriptor would be closed too. */
	close_inherited(keep_fd);
	if (!foreground) {
		setsid();
		err = redirect("/dev/null", O_RDWR, STDIN_FILENO);
		if (!err)
			err = redirect("/dev/null", O_RDWR, STDOUT_FILENO);
	}
	if (!err)
		err = set_log(foreground, log_path);
	if (!err && chdir("/"))
		err = -errno;
	umask(0);
	prctl(PR_SET_NAME, "ugfs");
	return err;
}

static bool set_oom_score(void)
{
	FILE *file = fopen("/proc/self/oom_score_adj", "we");
	bool done;

	if (!file)
		return false;
	done = fputs("-1000\n", file) >= 0;
	return !fclose(file) && done;
}

void isolate_memory(const char *who)
{
	static const struct rlimit no_core = { 0, 0 };
	static const struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };

	/* Users' data must not end up in a file that somebody else reads. */
	setrlimit(RLIMIT_CORE, &no_core);
	if (!set_oom_score())
		ug_warn(who, "the OOM killer may choose this process: "
			     "it has no CAP_SYS_RESOURCE");
	if (prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0))
		ug_warn(who,
			"PR_SET_IO_FLUSHER: %s; in a memory control group "
			"together with users of the mount, it may wait for "
			"itself when memory is short",
			strerror(errno));
	/*
	 * As far as it is touched: stacks and buffers are mostly not. Under a
	 * limit, memory would run out when it is reached.
	 */
	if (!setrlimit(RLIMIT_MEMLOCK, &all))
		mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
}
