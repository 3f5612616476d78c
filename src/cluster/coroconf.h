/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * coroconf.h - what corosync is configured with. Each call connects anew.
 * Source: corosync.conf(5), cmap_keys(8).
 */
#ifndef UG_CLUSTER_COROCONF_H
#define UG_CLUSTER_COROCONF_H

#include <corosync/corotypes.h>
#include <corosync/cpg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The token timeout as it is in force, in ms. -EIO. */
int coroconf_token_ms(uint32_t *out);

/* The id of this node. -ECONNREFUSED: no corosync; -EIO. */
int coroconf_own_node(uint32_t *id);

/*
 * Is each of two nodes quorate alone; does one that starts wait until it has
 * seen the other. -EIO.
 */
int coroconf_two_node(bool *two_node, bool *wait_for_all);

/* What corosync calls the cluster; empty if it has no name. -EIO. */
int coroconf_cluster_name(char *out, size_t size);

/* How often, and how long, "try again" is taken for an answer. */
#define JOIN_TRIES 100
#define JOIN_PAUSE_US 100000

/* Join a group; corosync says "try again" while its ring is being formed. */
int coro_join(cpg_handle_t handle, const struct cpg_name *name);

/* As negative errno; what has no meaning for users is logged and -EIO. */
int coro_error(const char *what, cs_error_t status);

#endif
