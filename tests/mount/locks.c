/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * locks.c - how locks of one file begin and end: locks FILE
 *
 * For fcntl, open file description and flock(2) locks: whoever ends, by
 * whatever, has no lock any more; a wait that a signal ends leaves none;
 * between many, one at a time has it and no call fails.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define RIVALS 6
#define ROUNDS 150

enum kind {
	POSIX,
	OFD,
	FLOCK,
	KINDS
};
static const char *const names[] = { "posix", "ofd", "flock" };

static const char *path;
static enum kind kind;

static void die(const char *what)
{
	fprintf(stderr, "locks: %s: %s (%s)\n", names[kind], what,
		strerror(errno));
	exit(1);
}

static int open_file(void)
{
	int fd = open(path, O_RDWR);

	if (fd < 0)
		die("open");
	return fd;
}

static int lock(int fd, short type, int wait)
{
	struct flock fl = { .l_type = type, .l_start = 10, .l_len = 20 };
	static const int cmds[][2] = { { F_SETLK, F_SETLKW },
				       { F_OFD_SETLK, F_OFD_SETLKW } };

	if (kind != FLOCK)
		return fcntl(fd, cmds[kind][wait], &fl);
	return flock(fd, (type == F_UNLCK   ? LOCK_UN
			  : type == F_WRLCK ? LOCK_EX
					    : LOCK_SH) |
				 (wait ? 0 : LOCK_NB));
}

/* Within a while: what ends in the kernel may end a moment later. */
static void expect_free(const char *what)
{
	int fd = open_file();

	for (int i = 0; lock(fd, F_WRLCK, 0); i++) {
		if (i == 2000)
			die(what);
		usleep(10000);
	}
	if (lock(fd, F_UNLCK, 0))
		die("unlock");
	close(fd);
}

static void expect_busy(const char *what)
{
	int fd = open_file();

	if (!lock(fd, F_WRLCK, 0) || (errno != EAGAIN && errno != EACCES))
		die(what);
	close(fd);
}

/* A child that runs work() and then waits to be killed. */
static pid_t child(void (*work)(int fd))
{
	int ready[2];
	pid_t pid;
	char c;

	if (pipe(ready))
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		close(ready[0]);
		work(ready[1]);
		exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		die("the child has ended");
	close(ready[0]);
	return pid;
}

static void tell(int fd)
{
	if (write(fd, "", 1) != 1)
		die("pipe");
}

static void hold(int out)
{
	if (lock(open_file(), F_WRLCK, 0))
		die("lock");
	tell(out);
	pause();
}

static void hold_and_exit(int out)
{
	if (lock(open_file(), F_WRLCK, 0))
		die("lock");
	tell(out);
}

static void on_alarm(int sig)
{
	(void)sig;
}

/* Waits until the signal comes. */
static void wait_in_vain(int out)
{
	struct sigaction sa = { .sa_handler = on_alarm };
	int fd = open_file();

	sigaction(SIGUSR1, &sa, NULL);
	tell(out);
	if (!lock(fd, F_WRLCK, 1))
		die("got what somebody else holds");
	if (errno != EINTR)
		die("a wait that is interrupted");
	close(fd);
}

static void finish(pid_t pid, int sig)
{
	int status;

	if (sig)
		kill(pid, sig);
	if (waitpid(pid, &status, 0) < 0 ||
	    (sig != SIGKILL && (!WIFEXITED(status) || WEXITSTATUS(status))))
		die("the child has failed");
}

static void test_ends(void)
{
	pid_t pid = child(hold);

	expect_busy("a lock that is held");
	finish(pid, SIGKILL);
	expect_free("after its holder was killed");
	finish(child(hold_and_exit), 0);
	expect_free("after its holder has ended");
}

static void test_waits(void)
{
	int fd = open_file();
	pid_t waiter;

	for (int round = 0; round < 20; round++) {
		if (lock(fd, F_WRLCK, 0))
			die("lock");
		waiter = child(wait_in_vain);
		usleep((unsigned)(round % 5) * 1000);
		if (round % 2) {
			finish(waiter, SIGKILL);
		} else {
			int status;

			/* It may not wait yet: again, until it has ended. */
			while (!waitpid(waiter, &status, WNOHANG)) {
				kill(waiter, SIGUSR1);
				usleep(1000);
			}
			if (!WIFEXITED(status) || WEXITSTATUS(status))
				die("the waiter has failed");
		}
		if (lock(fd, F_UNLCK, 0))
			die("unlock");
		expect_free("after a wait has ended without it");
	}
	close(fd);
}

static void test_rivals(void)
{
	volatile int *inside = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	for (int i = 0; i < RIVALS; i++) {
		if (fork())
			continue;
		for (int round = 0; round < ROUNDS; round++) {
			int fd = open_file();

			if (lock(fd, F_WRLCK, 1))
				die("lock among rivals");
			if (__atomic_add_fetch(inside, 1, __ATOMIC_SEQ_CST) !=
			    1)
				die("two at once");
			__atomic_sub_fetch(inside, 1, __ATOMIC_SEQ_CST);
			/* By closing, half of the time. */
			if (round % 2 && lock(fd, F_UNLCK, 0))
				die("unlock among rivals");
			close(fd);
		}
		exit(0);
	}
	for (int i = 0; i < RIVALS; i++)
		finish(-1, 0);
	expect_free("after all rivals");
}

/* Who is in the way. */
static void test_getlk(void)
{
	struct flock fl = { .l_type = F_WRLCK, .l_len = 100 };
	pid_t pid;
	int fd = open_file();

	kind = POSIX;
	pid = child(hold);
	if (fcntl(fd, F_GETLK, &fl))
		die("F_GETLK");
	if (fl.l_type != F_WRLCK || fl.l_pid != pid || fl.l_start != 10 ||
	    fl.l_len != 20)
		die("F_GETLK says something else");
	finish(pid, SIGKILL);
	close(fd);
}

/* Waits for the byte; 1: told that this closes a circle. */
static int waits_in_circle(int fd, off_t want)
{
	struct flock fl = { .l_type = F_WRLCK, .l_start = want, .l_len = 1 };

	if (!fcntl(fd, F_SETLKW, &fl))
		return 0;
	if (errno != EDEADLK)
		die("a circle of waits");
	return 1;
}

static int take_byte(off_t have)
{
	struct flock fl = { .l_type = F_WRLCK, .l_start = have, .l_len = 1 };
	int fd = open_file();

	if (fcntl(fd, F_SETLK, &fl))
		die("lock of a byte");
	return fd;
}

static void circle(int out)
{
	int fd = take_byte(1);

	tell(out);
	exit(waits_in_circle(fd, 0) ? 3 : 0);
}

/* One of the two is told, and the other goes on. */
static void test_circle(void)
{
	int status, told, fd = take_byte(0);
	pid_t pid;

	kind = POSIX;
	pid = child(circle);
	told = waits_in_circle(fd, 1);
	close(fd);
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
	    WEXITSTATUS(status) != (told ? 0 : 3))
		die("both or neither of a circle were told");
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	path = argv[1];
	close(open(path, O_RDWR | O_CREAT, 0644));
	for (kind = 0; kind < KINDS; kind++) {
		test_ends();
		test_waits();
		test_rivals();
	}
	test_getlk();
	test_circle();
	return 0;
}
