/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * suplink.c - see suplink.h. No table of members is spoken here, so a small
 * message is the longest.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "cluster/coroconf.h"
#include "cluster/suplink.h"

#define SMALL_MSG_MAX 1024

static bool is_spoken_here(enum group_msg_type type)
{
	return type == GM_ASK || type == GM_DEAD || type >= GM_SUPERVISOR;
}

static void on_message(cpg_handle_t handle, const struct cpg_name *group,
		       uint32_t node, uint32_t pid, void *data, size_t len)
{
	struct group_proc from = { node, pid };
	struct suplink *link;
	struct group_msg msg;
	void *context;

	cpg_context_get(handle, &context);
	link = context;
	if (len > SMALL_MSG_MAX || group_msg_decode(data, len, &msg, NULL) ||
	    !is_spoken_here(msg.type))
		return; /* of a version to come, or nobody's */
	link->ops->message(link->arg, from, &msg);
}

static void on_config(cpg_handle_t handle, const struct cpg_name *group,
		      const struct cpg_address *members, size_t members_count,
		      const struct cpg_address *left, size_t left_count,
		      const struct cpg_address *joined, size_t joined_count)
{
	struct group_proc list[CPG_MEMBERS_MAX];
	struct suplink *link;
	unsigned count = 0;
	void *context;

	cpg_context_get(handle, &context);
	link = context;
	for (size_t i = 0; i < UG_MIN(members_count, UG_ARRAY_SIZE(list)); i++)
		list[count++] = (struct group_proc){ members[i].nodeid,
						     members[i].pid };
	link->ops->procs(link->arg, list, count);
}

void suplink_init(struct suplink *link, const struct suplink_ops *ops,
		  void *arg)
{
	link->fd = -1;
	link->ops = ops;
	link->arg = arg;
	outqueue_init(&link->queue);
}

void suplink_close(struct suplink *link)
{
	if (link->fd < 0)
		return;
	cpg_finalize(link->cpg);
	link->fd = -1;
	outqueue_free(&link->queue);
	outqueue_init(&link->queue);
	link->ops->procs(link->arg, NULL, 0);
}

int suplink_retry(struct suplink *link)
{
	cpg_model_v1_data_t model = {
		.cpg_deliver_fn = on_message,
		.cpg_confchg_fn = on_config,
	};
	struct cpg_name name = { sizeof(SUPLINK_GROUP) - 1, SUPLINK_GROUP };
	cs_error_t status;

	if (link->fd >= 0)
		return 0;
	status = cpg_model_initialize(&link->cpg, CPG_MODEL_V1,
				      (cpg_model_data_t *)&model, link);
	if (status != CS_OK)
		return coro_error("supervisors", status);
	status = cpg_join(link->cpg, &name);
	if (status == CS_OK)
		status = cpg_local_get(link->cpg, &link->self.node);
	if (status == CS_OK)
		status = cpg_fd_get(link->cpg, &link->fd);
	if (status == CS_OK) {
		link->self.pid = (uint32_t)getpid();
		link->queue.cpg = link->cpg;
		return 0;
	}
	cpg_finalize(link->cpg);
	link->fd = -1;
	return coro_error("supervisors", status);
}

void suplink_dispatch(struct suplink *link)
{
	cs_error_t status = cpg_dispatch(link->cpg, CS_DISPATCH_ALL);

	if (status != CS_OK && status != CS_ERR_TRY_AGAIN)
		suplink_close(link);
}

bool suplink_send(struct suplink *link, const struct group_msg *msg)
{
	if (link->fd < 0 || outqueue_add(&link->queue, msg))
		return false;
	suplink_flush(link);
	return true;
}

uint64_t suplink_due_ns(const struct suplink *link)
{
	return link->fd < 0 ? UINT64_MAX : link->queue.retry_ns;
}

/* Not closed here: this may be a callback. The next dispatch will see it. */
void suplink_flush(struct suplink *link)
{
	if (link->fd >= 0 && outqueue_flush(&link->queue))
		link->queue.retry_ns = UINT64_MAX;
}
