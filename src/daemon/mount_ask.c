/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mount_ask.c - see mount_ask.h.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "daemon/mount_ask.h"
#include "daemon/mount_server.h"
#include "daemon/mount_target.h"
#include "daemon/runfile.h"
#include "daemon/say.h"

int mount_say(const char *command, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say_line("ugfs", command, fmt, ap);
	va_end(ap);
	return code;
}

int mount_peers(const char *command, struct control_peers *peers)
{
	int err;

	if (geteuid() != 0)
		return mount_say(command, EXIT_USAGE, "only root may ask");
	err = control_find(CONTROL_DIR, MOUNT_KIND, NULL, peers);
	return err ? mount_say(command, EXIT_SYSTEM, "%s: %s", CONTROL_DIR,
			       strerror(-err))
		   : EXIT_OK;
}

/* The process that has published this mount. */
static int pid_of_mount(const char *command, const struct mount_target *target,
			int *pid)
{
	ug_autoclose int fd = runfile_open(target->major, target->minor);
	struct runfile_info info;
	int err = fd < 0 ? -ENOENT : runfile_read(fd, &info);

	if (err)
		return mount_say(command, EXIT_MOUNT,
				 "the process of %s has died: its last words "
				 "are in the log; unmount it",
				 target->dir);
	*pid = info.pid;
	runfile_info_free(&info);
	return EXIT_OK;
}

/* 0 in *pid: no mount of this name, perhaps one that is coming or going. */
static int find_pid(const char *command, const char *name, int *pid)
{
	struct mount_target target;
	struct runfile_info info;
	int err = mount_target_find(name, &target);

	*pid = 0;
	if (err < 0)
		return mount_say(command, EXIT_SYSTEM,
				 "cannot read the list of mounts: %s",
				 strerror(-err));
	if (target.found && !target.ours)
		return mount_say(command, EXIT_MOUNT,
				 "%s is not a mount of ugfs", name);
	if (target.found && target.count > 1)
		return mount_say(command, EXIT_MOUNT,
				 "%s is mounted %u times: name the directory",
				 name, target.count);
	if (target.found)
		return pid_of_mount(command, &target, pid);
	if (!runfile_find_source(name, &info)) {
		*pid = info.pid;
		runfile_info_free(&info);
	}
	return EXIT_OK;
}

static const struct control_peer *match(const struct control_peers *peers,
					const char *name, int pid,
					unsigned *count)
{
	const struct control_peer *found = NULL;

	*count = 0;
	for (size_t i = 0; i < peers->count; i++) {
		const struct control_peer *peer = &peers->peer[i];

		if (pid ? peer->pid != pid : strcmp(peer->name, name) != 0)
			continue;
		found = peer;
		++*count;
	}
	return found;
}

int mount_ask_peer(const struct mount_question *q,
		   const struct control_peer *peer, json_t **result)
{
	const struct control_question question = {
		.dir = CONTROL_DIR,
		.peer = peer,
		.verb = q->verb,
		.args = q->args,
		.timeout_ms = q->timeout_ms,
		.text = q->text,
	};
	char why[CONTROL_WHY_LEN];
	int err = control_ask(&question, result, why, sizeof(why));

	return err ? mount_say(q->command, control_exit_code(err), "%s", why)
		   : EXIT_OK;
}

int mount_ask(const struct mount_question *q, const char *name, json_t **result)
{
	struct control_peers peers = { 0 };
	const struct control_peer *peer;
	unsigned count;
	int pid, code = mount_peers(q->command, &peers);

	if (!code)
		code = find_pid(q->command, name, &pid);
	if (code)
		goto out;
	peer = match(&peers, name, pid, &count);
	if (count == 1) {
		code = mount_ask_peer(q, peer, result);
		control_peers_free(&peers);
		return code;
	}
	if (count)
		code = mount_say(q->command, EXIT_MOUNT,
				 "%s is mounted %u times: name the directory",
				 name, count);
	else
		code = mount_say(q->command, EXIT_MOUNT,
				 "%s is not mounted, or its process has no "
				 "control socket in " CONTROL_DIR,
				 name);
out:
	json_decref(q->args);
	control_peers_free(&peers);
	return code;
}
