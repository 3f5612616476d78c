/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * waiters.c - many processes ask for the attributes of one file at once:
 * waiters COUNT FILE
 *
 * Their ids go to standard output, a line each, when all have been started. A
 * last line tells how many have got an answer, and how many EINTR.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void interrupted(int signo)
{
}

/* Ends with 0, 1 for EINTR, 2 for another error. */
static int ask(const char *path)
{
	struct sigaction action = { .sa_handler = interrupted };
	struct stat st;

	sigaction(SIGUSR1, &action, NULL);
	if (!stat(path, &st))
		return 0;
	return errno == EINTR ? 1 : 2;
}

int main(int argc, char **argv)
{
	int counts[3] = { 0 }, status;
	long n = argc == 3 ? strtol(argv[1], NULL, 0) : 0;

	if (n <= 0)
		return 2;
	for (long i = 0; i < n; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(ask(argv[2]));
		if (pid < 0)
			return 1;
		printf("%d\n", pid);
	}
	fflush(stdout);
	while (wait(&status) > 0)
		counts[WIFEXITED(status) ? WEXITSTATUS(status) : 2]++;
	printf("answered %d interrupted %d failed %d\n", counts[0], counts[1],
	       counts[2]);
	return 0;
}
