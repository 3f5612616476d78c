/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * quorumlink.c - see quorumlink.h.
 */
#include "cluster/coroconf.h"
#include "cluster/quorumlink.h"

static void on_quorum(quorum_handle_t handle, uint32_t quorate,
		      struct quorum_ring_id ring, uint32_t count,
		      const uint32_t *nodes)
{
	struct quorum_link *link;
	const void *context;

	quorum_context_get(handle, &context);
	link = (struct quorum_link *)context;
	link->told(link->arg, (struct ring_id){ ring.nodeid, ring.seq },
		   quorate, nodes, count);
}

int quorum_link_open(struct quorum_link *link,
		     void (*told)(void *arg, struct ring_id ring, bool quorate,
				  const uint32_t *nodes, unsigned count),
		     void *arg)
{
	quorum_model_v1_data_t model = {
		.model = QUORUM_MODEL_V1,
		.quorum_notify_fn = on_quorum,
	};
	cs_error_t status;
	uint32_t type;

	*link = (struct quorum_link){ .fd = -1, .told = told, .arg = arg };
	status = quorum_model_initialize(&link->handle, QUORUM_MODEL_V1,
					 (quorum_model_data_t *)&model, &type,
					 link);
	if (status != CS_OK)
		return coro_error("quorum", status);
	status = quorum_trackstart(link->handle,
				   CS_TRACK_CURRENT | CS_TRACK_CHANGES);
	if (status == CS_OK)
		status = quorum_fd_get(link->handle, &link->fd);
	if (status != CS_OK)
		quorum_finalize(link->handle);
	return coro_error("quorum", status);
}

void quorum_link_close(struct quorum_link *link)
{
	if (link->fd < 0)
		return;
	quorum_finalize(link->handle);
	link->fd = -1;
}

int quorum_link_dispatch(struct quorum_link *link)
{
	cs_error_t status = quorum_dispatch(link->handle, CS_DISPATCH_ALL);

	return status == CS_ERR_TRY_AGAIN ? 0 : coro_error("dispatch", status);
}

bool quorum_link_is_quorate(struct quorum_link *link)
{
	int quorate = 0;

	return link->fd >= 0 &&
	       quorum_getquorate(link->handle, &quorate) == CS_OK && quorate;
}
