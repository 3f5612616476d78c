/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlm_hold.c - "ugfs dlm bench --hold": resources that are mastered here, for
 * others to measure, and an echo beside them.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/compiler.h"
#include "daemon/dlm_bench.h"
#include "daemon/dlm_cmd.h"
#include "daemon/dlm_echo.h"
#include "daemon/dlm_load.h"
#include "daemon/exitcode.h"

static const json_t *find_self(const json_t *status)
{
	const json_t *m;
	size_t i;

	json_array_foreach(
		json_object_get(status, "members"), i,
		m) if (!strcmp(json_string_value(json_object_get(m, "state")),
			       "self")) return m;
	return NULL;
}

static int wait_for_end(struct bench *b)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (fd < 0)
		return dlm_say(BENCH_VERB, EXIT_SYSTEM, "signalfd: %s",
			       strerror(errno));
	while (!b->lost) {
		struct pollfd fds[] = { { ugdlm_fd(b->ls), POLLIN, 0 },
					{ fd, POLLIN, 0 } };

		if (poll(fds, 2, -1) <= 0)
			continue;
		if (fds[1].revents)
			break;
		ugdlm_dispatch(b->ls, 256);
	}
	close(fd);
	return b->lost ? EXIT_INTERNAL : EXIT_OK;
}

static int hold_all(struct bench *b, const char *prefix,
		    struct ugdlm_lksb *held)
{
	struct load_config config = {
		.ls = b->ls,
		.kind = LOAD_HOLD,
		.prefix = prefix,
		.names = b->names,
		.held = held,
		.threads = 1,
		.depth = b->depth,
		.sample = 1,
	};
	struct load_result result;
	int err = load_run(&config, &result);

	return err ? dlm_say(BENCH_VERB, EXIT_MOUNT, "holding: %s",
			     strerror(-err))
		   : EXIT_OK;
}

/* The value: port, number of names. */
static bool publish(struct bench *b, const char *name, uint16_t port,
		    struct ugdlm_lksb *lksb)
{
	if (!bench_lock(b, name, UGDLM_EX, false, lksb))
		return false;
	memset(lksb->lvb, 0, sizeof(lksb->lvb));
	memcpy(lksb->lvb, &port, sizeof(port));
	memcpy(lksb->lvb + 4, &b->names, sizeof(b->names));
	return bench_lock(b, name, UGDLM_NL, true, lksb);
}

int bench_hold(struct bench *b)
{
	ug_autofree struct ugdlm_lksb *held = calloc(b->names, sizeof(*held));
	struct ugdlm_lksb lksb = { 0 };
	json_t *status = bench_status(b);
	const json_t *self = find_self(status);
	char prefix[UGDLM_NAME_MAX], name[UGDLM_NAME_MAX];
	const char *address;
	uint16_t port = 0;
	int err, code;

	address = json_string_value(json_object_get(self, "address"));
	if (!held || !address) {
		json_decref(status);
		return dlm_say(BENCH_VERB, EXIT_SYSTEM, "out of memory");
	}
	bench_names(prefix, name, sizeof(prefix),
		    json_integer_value(json_object_get(self, "node")),
		    json_integer_value(json_object_get(self, "instance")));
	err = echo_serve(address, &port);
	json_decref(status);
	if (err)
		return dlm_say(BENCH_VERB, EXIT_SYSTEM, "echo: %s",
			       strerror(-err));
	code = hold_all(b, prefix, held);
	if (code)
		return code;
	if (!publish(b, name, port, &lksb))
		return dlm_say(BENCH_VERB, EXIT_MOUNT, "%s is held by others",
			       name);
	printf("holding %u names\n", b->names);
	fflush(stdout);
	code = wait_for_end(b);
	/* Before its memory goes. */
	if (ugdlm_leave(b->ls, false))
		code = EXIT_INTERNAL;
	b->ls = NULL;
	return code;
}
