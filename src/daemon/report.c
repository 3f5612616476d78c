/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * report.c - what the mount process tells the command that waits for it.
 *
 * Each report is one line, written at once: a letter for its kind, for a
 * failure the code and a blank, then the sentence.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/report.h"

enum report_kind {
	REPORT_NOTE = 'n',
	REPORT_READY = 'r',
	REPORT_FAILED = 'f',
};

static void report_send(int fd, const char *head, const char *fmt, va_list ap)
{
	char line[REPORT_LEN_MAX];
	size_t len = (size_t)snprintf(line, sizeof(line), "%s", head);

	vsnprintf(line + len, sizeof(line) - len - 1, fmt, ap);
	for (char *c = line; *c; c++)
		if (*c == '\n')
			*c = ' ';
	len = strlen(line);
	line[len++] = '\n';
	/* The command may be gone; then there is nobody to tell. */
	while (write(fd, line, len) < 0 && errno == EINTR)
		;
}

void report_note(int fd, const char *fmt, ...)
{
	char head[] = { REPORT_NOTE, '\0' };
	va_list ap;

	va_start(ap, fmt);
	report_send(fd, head, fmt, ap);
	va_end(ap);
}

void report_failed(int fd, enum exit_code code, const char *fmt, ...)
{
	char head[16];
	va_list ap;

	snprintf(head, sizeof(head), "%c%d ", REPORT_FAILED, code);
	va_start(ap, fmt);
	report_send(fd, head, fmt, ap);
	va_end(ap);
}

static ug_printf(2, 3) void report_plain(int fd, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	report_send(fd, "", fmt, ap);
	va_end(ap);
}

void report_ready(int fd)
{
	report_plain(fd, "%c", REPORT_READY);
}

/* ---- the command ---- */

static volatile sig_atomic_t interrupted;
static volatile sig_atomic_t target_pid;

static void on_interrupt(int sig)
{
	interrupted = sig;
	kill((pid_t)target_pid, SIGTERM);
}

static void catch_interrupts(const struct report_wait *rw)
{
	struct sigaction sa = { .sa_handler = on_interrupt };

	/* In the foreground the terminal interrupts the mount process itself.
	 */
	if (!rw->is_child)
		sa.sa_handler = SIG_IGN;
	target_pid = rw->pid;
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
}

/* The pipe ended without a last word. */
static int process_died(const struct report_wait *rw)
{
	const char *what = rw->what ? rw->what : "mount process";
	int status;

	if (!rw->is_child)
		return EXIT_INTERNAL;
	if (waitpid(rw->pid, &status, 0) == rw->pid && WIFSIGNALED(status))
		fprintf(stderr, "ugfs: the %s was ended by signal %d (%s)\n",
			what, WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		fprintf(stderr, "ugfs: the %s has ended early\n", what);
	return EXIT_INTERNAL;
}

/* Serving means that the first request of a user is answered. */
static int check_usable(const struct report_wait *rw)
{
	struct statfs st;

	if (!rw->dir)
		return EXIT_OK;
	if (!statfs(rw->dir, &st)) {
		if (rw->verbose)
			fprintf(stderr, "ugfs: mounted on %s\n", rw->dir);
		return EXIT_OK;
	}
	fprintf(stderr, "ugfs: %s has been mounted but does not answer: %s\n",
		rw->dir, strerror(errno));
	kill(rw->pid, SIGTERM);
	return EXIT_MOUNT;
}

static int print_failure(const char *text)
{
	char *sentence;
	long code = strtol(text, &sentence, 10);

	while (*sentence == ' ')
		sentence++;
	fprintf(stderr, "ugfs: %s\n", sentence);
	return (int)code;
}

static int read_reports(const struct report_wait *rw, FILE *in)
{
	char line[REPORT_LEN_MAX + 1];

	for (;;) {
		if (!fgets(line, sizeof(line), in)) {
			/* The answer to an interrupt comes by this pipe. */
			if (ferror(in) && errno == EINTR) {
				clearerr(in);
				continue;
			}
			return process_died(rw);
		}
		line[strcspn(line, "\n")] = '\0';
		switch ((enum report_kind)line[0]) {
		case REPORT_NOTE:
			fprintf(stderr, "ugfs: %s\n", line + 1);
			break;
		case REPORT_READY:
			return check_usable(rw);
		case REPORT_FAILED:
			return print_failure(line + 1);
		}
	}
}

int report_wait(const struct report_wait *rw)
{
	FILE *in = fdopen(rw->fd, "r");
	int code;

	if (!in) {
		fprintf(stderr, "ugfs: out of memory\n");
		kill(rw->pid, SIGTERM);
		return EXIT_SYSTEM;
	}
	catch_interrupts(rw);
	code = read_reports(rw, in);
	fclose(in);
	if (interrupted)
		code = EXIT_INTERRUPTED;
	/* What it undoes is undone when the command returns. */
	if (code != EXIT_OK && rw->is_child)
		waitpid(rw->pid, NULL, 0);
	return code;
}
