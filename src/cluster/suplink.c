/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * suplink.c - see suplink.h. Only GM_ASK and GM_DEAD are spoken here, so a
 * small buffer holds any of them and a table of members is never decoded.
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "cluster/coroconf.h"
#include "cluster/suplink.h"

#define SMALL_MSG_MAX 256

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
	    (msg.type != GM_ASK && msg.type != GM_DEAD))
		return; /* of a version to come, or nobody's */
	link->message(link->arg, from, &msg);
}

static void on_config(cpg_handle_t handle, const struct cpg_name *group,
		      const struct cpg_address *members, size_t members_count,
		      const struct cpg_address *left, size_t left_count,
		      const struct cpg_address *joined, size_t joined_count)
{
}

void suplink_init(struct suplink *link,
		  void (*message)(void *arg, struct group_proc from,
				  const struct group_msg *msg),
		  void *arg)
{
	link->fd = -1;
	link->message = message;
	link->arg = arg;
}

void suplink_close(struct suplink *link)
{
	if (link->fd < 0)
		return;
	cpg_finalize(link->cpg);
	link->fd = -1;
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
		status = cpg_local_get(link->cpg, &link->node);
	if (status == CS_OK)
		status = cpg_fd_get(link->cpg, &link->fd);
	if (status == CS_OK)
		return 0;
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
	uint8_t buf[SMALL_MSG_MAX];
	struct iovec iov = { buf, 0 };
	long len;

	if (link->fd < 0)
		return false;
	len = group_msg_encode(msg, buf, sizeof(buf));
	if (len < 0)
		return false;
	iov.iov_len = (size_t)len;
	return cpg_mcast_joined(link->cpg, CPG_TYPE_AGREED, &iov, 1) == CS_OK;
}
