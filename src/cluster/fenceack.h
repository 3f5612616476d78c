/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fenceack.h - an administrator's word that a host is down: which one is meant.
 * Saying it is in cluster.h.
 */
#ifndef UG_CLUSTER_FENCEACK_H
#define UG_CLUSTER_FENCEACK_H

#include <stdint.h>

/*
 * The node with this name, address or number; a number need not be configured.
 * 0; -ENOENT: no such node; -EIO: corosync does not answer.
 */
int fence_ack_find(const char *node, uint32_t *id);

#endif
