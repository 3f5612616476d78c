/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * beside.c - see beside.h.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cluster/beside.h"
#include "cluster/clock.h"
#include "cluster/coroconf.h"
#include "cluster/suplink.h"

#define JOIN_NS (30 * (uint64_t)NS_PER_SEC)

static void on_message(cpg_handle_t handle, const struct cpg_name *group,
		       uint32_t node, uint32_t pid, void *data, size_t len)
{
	/* What the kernel's hosts say to each other. */
}

static void on_config(cpg_handle_t handle, const struct cpg_name *group,
		      const struct cpg_address *members, size_t members_count,
		      const struct cpg_address *left, size_t left_count,
		      const struct cpg_address *joined, size_t joined_count)
{
	struct beside *b;
	void *context;

	cpg_context_get(handle, &context);
	b = context;
	b->members_count = UG_MIN(members_count, (size_t)CPG_MEMBERS_MAX);
	memcpy(b->members, members, b->members_count * sizeof(*members));
	b->changed = true;
}

static bool is_among(const struct cpg_address *list, size_t count,
		     uint32_t node, uint32_t pid)
{
	for (size_t i = 0; i < count; i++)
		if (list[i].nodeid == node && list[i].pid == pid)
			return true;
	return false;
}

/* 1 and its node: a host of the kernel is in the group; 0; or an error. */
static int find_kernel(struct beside *b, unsigned *node)
{
	struct cpg_name sup = { sizeof(SUPLINK_GROUP) - 1, SUPLINK_GROUP };
	struct cpg_address ours[CPG_MEMBERS_MAX];
	int count = CPG_MEMBERS_MAX;
	cs_error_t status = cpg_membership_get(b->cpg, &sup, ours, &count);

	if (status != CS_OK)
		return coro_error("members of " SUPLINK_GROUP, status);
	for (size_t i = 0; i < b->members_count; i++) {
		if (is_among(ours, (size_t)count, b->members[i].nodeid,
			     b->members[i].pid))
			continue;
		*node = b->members[i].nodeid;
		return 1;
	}
	return 0;
}

static int make_name(struct cpg_name *name, const char *fs)
{
	int n = snprintf(name->value, sizeof(name->value), "dlm:ls:%s", fs);

	if (n < 0 || (size_t)n >= sizeof(name->value))
		return -ENAMETOOLONG;
	name->length = (uint32_t)n + 1; /* the zero byte is part of it */
	return 0;
}

/* Until this process sees itself in the group. */
static int wait_joined(struct beside *b)
{
	uint64_t end = clock_now_ns() + JOIN_NS;
	uint32_t self;
	int err = coro_error("node", cpg_local_get(b->cpg, &self));

	while (!err && !is_among(b->members, b->members_count, self,
				 (uint32_t)getpid())) {
		struct pollfd pfd = { b->fd, POLLIN, 0 };
		cs_error_t status;

		if (poll(&pfd, 1, clock_poll_ms(end)) == 0)
			return -ETIMEDOUT;
		status = cpg_dispatch(b->cpg, CS_DISPATCH_ALL);
		if (status != CS_ERR_TRY_AGAIN)
			err = coro_error("dispatch", status);
	}
	return err;
}

int beside_open(struct beside *b, const char *fs, const char *who,
		unsigned *node)
{
	cpg_model_v1_data_t model = {
		.cpg_deliver_fn = on_message,
		.cpg_confchg_fn = on_config,
	};
	int err;

	memset(b, 0, sizeof(*b));
	b->who = who;
	err = make_name(&b->group, fs);
	if (err)
		return err;
	err = coro_error("cpg",
			 cpg_model_initialize(&b->cpg, CPG_MODEL_V1,
					      (cpg_model_data_t *)&model, b));
	if (err)
		return err;
	err = coro_error("cpg", cpg_fd_get(b->cpg, &b->fd));
	if (!err)
		err = coro_join(b->cpg, &b->group);
	if (!err)
		err = wait_joined(b);
	if (!err)
		err = find_kernel(b, node);
	b->changed = false;
	if (!err)
		return 0;
	beside_close(b);
	return err > 0 ? -EBUSY : err;
}

void beside_close(struct beside *b)
{
	cpg_finalize(b->cpg);
}

int beside_dispatch(struct beside *b)
{
	cs_error_t status = cpg_dispatch(b->cpg, CS_DISPATCH_ALL);
	unsigned node;

	if (status != CS_OK && status != CS_ERR_TRY_AGAIN)
		return coro_error("dispatch", status);
	if (b->changed && find_kernel(b, &node) > 0)
		ug_warn(b->who,
			"a kernel mount of this file system on node %u waits "
			"until all ugfs mounts of it are gone",
			node);
	b->changed = false;
	return 0;
}
