/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * applock.c - locks of programs: what fcntl(2), open file descriptions and
 * flock(2) promise, on a file A and the same file seen by another node, B.
 *
 *	applock try FILE KIND MODE START LEN	taken, and given back: 0, else 1
 *	applock hold FILE KIND MODE START LEN	waits for it, says "held", keeps
 *						it until its input says more, or
 *						ends
 *	applock get FILE MODE START LEN		says who is in the way
 *	applock hammer FILE KIND ROUNDS		counts in a mapped file FILE.n;
 *						says how often two were inside
 *	applock waiters FILE N			N processes wait, then all have
 *						had it once
 *	applock exclusion|ghosts|signals|closing|ofd|deadlock A B [ROUNDS]
 *
 * KIND is posix, ofd or flock; MODE r or w; LEN 0 to the end. Whatever is not
 * as it should be is told, and ends with status 1.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum kind {
	POSIX,
	OFD,
	FLOCK,
};
static const char *const kinds[] = { "posix", "ofd", "flock" };
#define KINDS 3

#define WAIT 0x100

static _Noreturn void wrong(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static void check(bool right, const char *what)
{
	if (!right)
		wrong(what);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void sleep_us(unsigned us)
{
	struct timespec ts = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&ts, NULL);
}

static int open_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0644);

	check(fd >= 0, path);
	return fd;
}

static int do_flock(int fd, int how)
{
	int type = how & ~WAIT;

	return flock(fd, (type == F_UNLCK   ? LOCK_UN
			  : type == F_RDLCK ? LOCK_SH
					    : LOCK_EX) |
				 (how & WAIT ? 0 : LOCK_NB));
}

/* how: l_type, or with WAIT. 0 or -1 with errno. */
static int lk(int fd, enum kind kind, int how, off_t start, off_t len)
{
	struct flock fl = {
		.l_type = (short)(how & ~WAIT),
		.l_whence = SEEK_SET,
		.l_start = start,
		.l_len = len,
	};

	switch (kind) {
	case POSIX:
		return fcntl(fd, how & WAIT ? F_SETLKW : F_SETLK, &fl);
	case OFD:
		return fcntl(fd, how & WAIT ? F_OFD_SETLKW : F_OFD_SETLK, &fl);
	case FLOCK:
		return do_flock(fd, how);
	}
	return -1;
}

/* Byte 0, as most tests use it. */
static int lock0(int fd, enum kind kind, int how)
{
	return lk(fd, kind, how, 0, 1);
}

static bool is_refused(int fd, enum kind kind, int how)
{
	return lock0(fd, kind, how) && errno == EAGAIN;
}

/* RELEASE is not waited for: it may take a moment. */
static void check_free(int fd, enum kind kind, const char *what)
{
	double end = now() + 10;

	while (lock0(fd, kind, F_WRLCK)) {
		check(errno == EAGAIN && now() < end, what);
		sleep_us(1000);
	}
	check(!lock0(fd, kind, F_UNLCK), what);
}

static pid_t child(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	check(pid >= 0, "fork");
	return pid;
}

/* The exit status of a child, or 100 + its signal. */
static int status_of(pid_t pid)
{
	int status;

	check(waitpid(pid, &status, 0) == pid, "waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

/* ---- for scripts ---- */

static enum kind kind_of(const char *name)
{
	for (int i = 0; i < KINDS; i++)
		if (!strcmp(name, kinds[i]))
			return (enum kind)i;
	errno = EINVAL;
	wrong(name);
}

static int mode_of(const char *name)
{
	return *name == 'r' ? F_RDLCK : F_WRLCK;
}

static int try_lock(char **argv)
{
	int fd = open_file(argv[0]);
	int err = lk(fd, kind_of(argv[1]), mode_of(argv[2]), atol(argv[3]),
		     atol(argv[4]));

	if (err)
		printf("%s\n", strerror(errno));
	return err ? 1 : 0;
}

static int hold(char **argv)
{
	int fd = open_file(argv[0]);
	char line[16];

	if (lk(fd, kind_of(argv[1]), mode_of(argv[2]) | WAIT, atol(argv[3]),
	       atol(argv[4])))
		wrong("hold");
	printf("held\n");
	fflush(stdout);
	return read(0, line, sizeof(line)) < 0;
}

static int get(char **argv)
{
	int fd = open_file(argv[0]);
	struct flock fl = {
		.l_type = (short)mode_of(argv[1]),
		.l_start = atol(argv[2]),
		.l_len = atol(argv[3]),
	};

	check(!fcntl(fd, F_GETLK, &fl), "F_GETLK");
	if (fl.l_type == F_UNLCK)
		printf("free\n");
	else
		printf("%s %ld %ld pid %d\n", fl.l_type == F_RDLCK ? "r" : "w",
		       (long)fl.l_start, (long)fl.l_len, (int)fl.l_pid);
	return 0;
}

/* A counter that is read and written under the lock loses no step. */
static int hammer(char **argv)
{
	int fd = open_file(argv[0]);
	enum kind kind = kind_of(argv[1]);
	long rounds = atol(argv[2]), n;

	for (long i = 0; i < rounds; i++) {
		char text[32] = "0";

		check(!lock0(fd, kind, F_WRLCK | WAIT), "lock");
		check(pread(fd, text, sizeof(text) - 1, 0) >= 0, "read");
		n = strtol(text, NULL, 10) + 1;
		snprintf(text, sizeof(text), "%ld\n", n);
		check(pwrite(fd, text, strlen(text), 0) > 0, "write");
		check(!lock0(fd, kind, F_UNLCK), "unlock");
	}
	return 0;
}

static int waiters(char **argv)
{
	int count = atoi(argv[1]), bad = 0, status;

	for (int i = 0; i < count; i++) {
		pid_t pid = child();
		int fd;

		if (pid)
			continue;
		fd = open_file(argv[0]);
		if (lock0(fd, POSIX, F_WRLCK | WAIT))
			_exit(1);
		_exit(lock0(fd, POSIX, F_UNLCK) ? 1 : 0);
	}
	printf("started\n");
	fflush(stdout);
	while (wait(&status) > 0)
		bad += status != 0;
	printf("ended, %d failed\n", bad);
	return bad ? 1 : 0;
}

/* ---- what must hold ---- */

static void exclusion_of(const char *a, const char *b, enum kind kind)
{
	int fa = open_file(a), fb = open_file(b);

	check(!lock0(fa, kind, F_WRLCK), "write lock");
	check(is_refused(fb, kind, F_WRLCK), "write against write");
	check(is_refused(fb, kind, F_RDLCK), "read against write");
	check(!lock0(fa, kind, F_RDLCK), "lowered");
	check(!lock0(fb, kind, F_RDLCK), "read against read");
	check(is_refused(fa, kind, F_WRLCK), "raised against read");
	if (kind == FLOCK) /* a conversion that fails has given the old back */
		check(!lock0(fa, kind, F_RDLCK), "again");
	check(!lock0(fb, kind, F_UNLCK), "unlock");
	check(!lock0(fa, kind, F_WRLCK), "raised");
	check(!lock0(fa, kind, F_UNLCK), "unlock");
	check(!lock0(fb, kind, F_WRLCK), "after unlock");
	close(fb);
	close(fa);
}

static void ranges(const char *a, const char *b)
{
	int fa = open_file(a), fb = open_file(b);

	check(!lk(fa, POSIX, F_WRLCK, 0, 0), "the whole file");
	check(lk(fb, POSIX, F_WRLCK, 1L << 60, 1), "far away");
	check(!lk(fa, POSIX, F_UNLCK, 100, 50), "a hole in it");
	check(!lk(fb, POSIX, F_WRLCK, 100, 50), "the hole");
	check(lk(fb, POSIX, F_RDLCK, 99, 1), "before the hole");
	check(lk(fb, POSIX, F_RDLCK, 150, 1), "behind the hole");
	close(fb);
	close(fa);
}

static int exclusion(char **argv)
{
	/* POSIX locks of one process are one owner, but not of two mounts. */
	for (int kind = 0; kind < KINDS; kind++) {
		exclusion_of(argv[0], argv[1], (enum kind)kind);
		exclusion_of(argv[1], argv[0], (enum kind)kind);
	}
	ranges(argv[0], argv[1]);
	ranges(argv[1], argv[0]);
	return 0;
}

/* Killed while it waits, about when the lock comes free: no ghost has it. */
static int ghosts(char **argv)
{
	int rounds = atoi(argv[2]);
	int fa = open_file(argv[0]);

	srand48(4711);
	for (int i = 0; i < rounds; i++) {
		enum kind kind = (enum kind)(i % KINDS);
		pid_t pid;

		check_free(fa, kind, "a ghost");
		check(!lock0(fa, kind, F_WRLCK), "lock");
		pid = child();
		if (!pid) {
			close(fa);
			fa = open_file(argv[1]);
			lock0(fa, kind, F_WRLCK | WAIT);
			_exit(0);
		}
		sleep_us((unsigned)(drand48() * 4000));
		if (i % 2) {
			check(!lock0(fa, kind, F_UNLCK), "unlock");
			sleep_us((unsigned)(drand48() * 500));
		}
		kill(pid, SIGKILL);
		status_of(pid);
		check(!lock0(fa, kind, F_UNLCK), "unlock");
	}
	for (int kind = 0; kind < KINDS; kind++)
		check_free(fa, (enum kind)kind, "a ghost at the end");
	return 0;
}

static volatile sig_atomic_t signalled;

static void on_signal(int signo)
{
	signalled = 1;
}

/* 0: granted; 1: EINTR, at once, and what it had it has; else wrong. */
static int wait_for_signal(const char *path, enum kind kind, int flags)
{
	struct sigaction action = { .sa_handler = on_signal,
				    .sa_flags = flags };
	int fd = open_file(path);

	sigaction(SIGUSR1, &action, NULL);
	if (kind != FLOCK)
		check(!lk(fd, kind, F_WRLCK, 10, 1), "another byte");
	if (!lock0(fd, kind, F_WRLCK | WAIT)) {
		_exit(signalled ? 0 : 3);
	} else if (errno != EINTR || !signalled) {
		wrong("interrupted");
	}
	/* Until it is killed. */
	printf("interrupted\n");
	fflush(stdout);
	for (;;)
		pause();
}

static void signal_of(const char *a, const char *b, enum kind kind, int flags)
{
	int fa = open_file(a), out[2];
	double begun;
	char line[32];
	pid_t pid;

	check(!pipe(out), "pipe");
	check(!lock0(fa, kind, F_WRLCK), "lock");
	pid = child();
	if (!pid) {
		close(fa);
		dup2(out[1], 1);
		_exit(wait_for_signal(b, kind, flags));
	}
	close(out[1]);
	sleep_us(200000);
	begun = now();
	kill(pid, SIGUSR1);
	if (flags & SA_RESTART) {
		sleep_us(200000);
		check(!waitpid(pid, NULL, WNOHANG), "SA_RESTART waits on");
		check(!lock0(fa, kind, F_UNLCK), "unlock");
		check(status_of(pid) == 0, "granted after SA_RESTART");
	} else {
		check(read(out[0], line, sizeof(line)) > 0, "EINTR");
		check(now() - begun < 1, "EINTR in time");
		printf("%s: EINTR after %.1f ms\n", kinds[kind],
		       (now() - begun) * 1000);
		check(!lock0(fa, kind, F_UNLCK), "unlock");
		check(!lock0(fa, kind, F_WRLCK), "nothing is left of the wait");
		if (kind != FLOCK)
			check(lk(fa, kind, F_WRLCK, 10, 1) && errno == EAGAIN,
			      "its other lock");
		kill(pid, SIGKILL);
		status_of(pid);
	}
	close(out[0]);
	close(fa);
}

static int signals(char **argv)
{
	for (int kind = 0; kind < KINDS; kind++) {
		signal_of(argv[0], argv[1], (enum kind)kind, 0);
		signal_of(argv[0], argv[1], (enum kind)kind, SA_RESTART);
	}
	return 0;
}

/* Any descriptor of the file that a process closes ends its POSIX locks. */
static int closing(char **argv)
{
	int fb = open_file(argv[1]), fa, other, out[2];
	pid_t pid;
	char c;

	fa = open_file(argv[0]);
	other = open_file(argv[0]);
	check(!lock0(fa, POSIX, F_WRLCK), "lock");
	check(!lk(fa, POSIX, F_RDLCK, 50, 1), "lock");
	check(is_refused(fb, POSIX, F_WRLCK), "held");
	close(other);
	check(!lk(fb, POSIX, F_WRLCK, 0, 0), "close of another descriptor");
	check(!lk(fb, POSIX, F_UNLCK, 0, 0), "unlock");

	check(!lock0(fa, POSIX, F_WRLCK), "lock");
	other = dup(fa);
	close(other);
	check(!lock0(fb, POSIX, F_WRLCK), "close of a copy");
	check(!lock0(fb, POSIX, F_UNLCK), "unlock");

	/* A child has none of them, and its end takes none. */
	check(!lock0(fa, POSIX, F_WRLCK), "lock");
	pid = child();
	if (!pid)
		_exit(is_refused(fa, POSIX, F_WRLCK) ? 0 : 1);
	check(status_of(pid) == 0, "a child has its parent's lock");
	check(is_refused(fb, POSIX, F_WRLCK), "kept when a child ends");
	check(!lock0(fa, POSIX, F_UNLCK), "unlock");

	/* exec keeps them; the end of the process does not. */
	check(!pipe(out), "pipe");
	pid = child();
	if (!pid) {
		lock0(fa, POSIX, F_WRLCK);
		dup2(out[1], 1);
		close(out[1]);
		close(out[0]);
		execlp("sh", "sh", "-c", "echo; exec sleep 60", NULL);
		_exit(1);
	}
	close(out[1]);
	check(read(out[0], &c, 1) == 1, "exec");
	check(is_refused(fb, POSIX, F_WRLCK), "kept over exec");
	kill(pid, SIGKILL);
	status_of(pid);
	check(!lock0(fb, POSIX, F_WRLCK), "the end of a process");
	return 0;
}

/* The last descriptor of an open file ends its OFD lock and its flock. */
static void ofd_of(const char *a, const char *b, enum kind kind)
{
	int fb = open_file(b), fa = open_file(a), other = open_file(a);
	int out[2];
	pid_t pid;
	char c;

	check(!lock0(fa, kind, F_WRLCK), "lock");
	close(other);
	check(is_refused(fb, kind, F_WRLCK), "kept: another open file");
	other = dup(fa);
	close(fa);
	check(is_refused(fb, kind, F_WRLCK), "kept: a copy is open");
	check(!pipe(out), "pipe");
	pid = child();
	if (!pid) {
		close(out[1]);
		check(read(out[0], &c, 1) == 0, "pipe");
		_exit(0);
	}
	close(out[0]);
	close(other);
	check(is_refused(fb, kind, F_WRLCK), "kept: a child has it open");
	close(out[1]);
	check(status_of(pid) == 0, "child");
	check_free(fb, kind, "the last close");
	close(fb);
}

static int ofd(char **argv)
{
	ofd_of(argv[0], argv[1], OFD);
	ofd_of(argv[1], argv[0], OFD);
	ofd_of(argv[0], argv[1], FLOCK);
	return 0;
}

/* Holds byte mine, then wants the other one. */
static int cross(const char *path, int mine, int ready, int go)
{
	int fd = open_file(path);
	char c = 0;

	check(!lk(fd, POSIX, F_WRLCK, mine, 1), "first byte");
	check(write(ready, &c, 1) == 1, "pipe");
	check(read(go, &c, 1) == 1, "pipe");
	if (!lk(fd, POSIX, F_WRLCK | WAIT, !mine, 1))
		return 10;
	return errno == EDEADLK ? 11 : 1;
}

/* Each has what the other wants: one of them is told, perhaps both. */
static int deadlock(char **argv)
{
	int ready[2], go[2], found = 0, granted = 0;
	double begun;
	pid_t pids[2];
	char c[2] = { 0 };

	check(!pipe(ready) && !pipe(go), "pipe");
	for (int i = 0; i < 2; i++) {
		pids[i] = child();
		if (!pids[i])
			_exit(cross(argv[i], i, ready[1], go[0]));
	}
	for (int i = 0; i < 2; i++)
		check(read(ready[0], c, 1) == 1, "pipe");
	begun = now();
	check(write(go[1], c, 2) == 2, "pipe");
	for (int i = 0; i < 2; i++) {
		int status = status_of(pids[i]);

		found += status == 11;
		granted += status == 10;
	}
	printf("EDEADLK after %.1f s\n", now() - begun);
	check(found >= 1 && found + granted == 2, "one is told");
	check(now() - begun < 5, "in time");
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int args;
		int (*run)(char **argv);
	} verbs[] = {
		{ "try", 5, try_lock },	     { "hold", 5, hold },
		{ "get", 4, get },	     { "hammer", 3, hammer },
		{ "waiters", 2, waiters },   { "exclusion", 2, exclusion },
		{ "ghosts", 3, ghosts },     { "signals", 2, signals },
		{ "closing", 2, closing },   { "ofd", 2, ofd },
		{ "deadlock", 2, deadlock },
	};

	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		if (argc == verbs[i].args + 2 &&
		    !strcmp(argv[1], verbs[i].name))
			return verbs[i].run(argv + 2);
	return 2;
}
