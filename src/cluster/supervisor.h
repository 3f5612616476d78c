/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * supervisor.h - the parent of a mount process: ends it when the cluster asks,
 * proves to the cluster that it has ended, and fences hosts that give no proof
 * (DESIGN 4.2, 4.4).
 *
 * It holds neither the device nor any descriptor of the mount, and has one
 * thread. For members of its host whose own supervisor is gone it tries their
 * life lock, and after a reboot its boot id is the proof.
 */
#ifndef UG_CLUSTER_SUPERVISOR_H
#define UG_CLUSTER_SUPERVISOR_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct supervisor_config {
	pid_t child; /* of the calling process; nobody else may wait for it */
	const char *life_dir; /* NULL = LIFE_LOCK_DIR */
	/*
	 * NULL or "none": this host fences nobody. "manual": likewise, and an
	 * administrator is expected to. Else a command for sh(1) that does as
	 * fence agents do: see fenceagent.h.
	 */
	const char *fence;
	const char *fence_action;  /* "off" (also if NULL) or "reboot" */
	uint32_t kill_timeout_ms;  /* for a host's own proof, 0 = 5000 */
	uint32_t fence_delay_ms;   /* of the higher of two nodes, 0 = 2000 */
	uint32_t fence_timeout_ms; /* of one run of the command, 0 = 60000 */
	/*
	 * May be NULL. A signal handler sets it after the child was reaped:
	 * tell its end for two seconds at most, then return.
	 */
	const volatile sig_atomic_t *hurry;
	/*
	 * May be NULL. The child has been reaped; left: by its own words, with
	 * status 0. Must not wait.
	 */
	void (*ended)(void *arg, bool left);
	void *arg;
};

/*
 * Watch the child until it has ended and that has been told; an exit with
 * status 0 means that it has left by its own words, which is known already. One
 * that has never asked to be let in (asked.h) is unknown to all: nothing is
 * told. Returns 0 and the child's wait(2) status, or a negative errno when the
 * child could not be watched at all; -EINVAL: fence_action.
 *
 * Without corosync it goes on watching, and connects when corosync is there.
 */
int supervisor_run(const struct supervisor_config *config, int *wait_status);

#endif
