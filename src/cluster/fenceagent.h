/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fenceagent.h - one run of a fence command.
 *
 * The command is given to sh(1). On its standard input are, as fence agents
 * expect them, lines
 *
 *	action=off		or action=reboot
 *	port=NAME		the node's name; plug= and nodename= the same
 *	nodeid=ID		its number
 *
 * Exit status 0 means: nothing that ran on the host when the command began can
 * write to a disk any more. What it prints goes to the log. It has a process
 * group of its own, so that all of it can be killed.
 *
 * Used by one thread. Source: docs/spec/cluster.md 4.5.
 */
#ifndef UG_CLUSTER_FENCEAGENT_H
#define UG_CLUSTER_FENCEAGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cluster/groupmsg.h"

struct fence_order {
	const char *command;
	const char *action;
	uint32_t node;
	const char *name; /* of the node */
};

struct fence_agent {
	uint32_t node;
	pid_t pid;
	int pidfd;  /* readable at its end; -1: not running */
	int output; /* readable when it has printed something; -1: closed */
	uint64_t end_ns; /* when it has run for too long, monotonic */
	bool killed;
	enum fence_end why; /* it was killed */
	unsigned used;
	char line[256];
};

/*
 * Begin it; end_ns is set to run_max_ns from now. order is borrowed for the
 * call. 0, or negative errno: it does not run, and a may be used again.
 */
int fence_agent_start(struct fence_agent *a, const struct fence_order *order,
		      uint64_t run_max_ns);

/* Log what it has printed. */
void fence_agent_read(struct fence_agent *a);

/* End it, for this reason; once is enough. */
void fence_agent_kill(struct fence_agent *a, enum fence_end why);

/*
 * True if it has ended; then *status is the exit status or an enum fence_end,
 * and a may be used again.
 */
bool fence_agent_ended(struct fence_agent *a, int *status);

/* What a status that is not 0 means, as "the command ...". */
void fence_end_text(int status, char *buf, size_t len);

#endif
