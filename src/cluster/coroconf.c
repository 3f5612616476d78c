/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * coroconf.c - corosync's configuration, through its cmap and votequorum.
 *
 * Nodes stand under nodelist.node.N., N from 0 without gaps in a file, but one
 * that was removed at run time leaves its number free; so numbers are tried up
 * to a bound, not up to the first that is missing.
 */
#include <corosync/cmap.h>
#include <corosync/corotypes.h>
#include <corosync/votequorum.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cluster/cluster.h"
#include "cluster/coroconf.h"

#define NODE_NUMBERS_MAX 256

int coro_error(const char *what, cs_error_t status)
{
	switch (status) {
	case CS_OK:
		return 0;
	case CS_ERR_NO_MEMORY:
		return -ENOMEM;
	case CS_ERR_ACCESS:
	case CS_ERR_SECURITY:
		return -EPERM;
	case CS_ERR_TRY_AGAIN:
		return -EAGAIN;
	case CS_ERR_LIBRARY:
	case CS_ERR_BAD_HANDLE:
		return -ECONNREFUSED;
	default:
		ug_error("cluster", "%s: corosync answers %d", what, status);
		return -EIO;
	}
}

static int cmap_open(cmap_handle_t *handle)
{
	return coro_error("cmap", cmap_initialize(handle));
}

int coroconf_token_ms(uint32_t *out)
{
	cmap_handle_t handle;
	uint32_t value;
	int err = cmap_open(&handle);

	if (err)
		return err;
	err = coro_error(
		"token",
		cmap_get_uint32(handle, "runtime.config.totem.token", &value));
	if (!err)
		*out = value;
	cmap_finalize(handle);
	return err;
}

static int own_votes(struct votequorum_info *info)
{
	votequorum_handle_t handle;
	int err;

	err = coro_error("votequorum", votequorum_initialize(&handle, NULL));
	if (err)
		return err;
	err = coro_error("votequorum info",
			 votequorum_getinfo(handle, 0, info));
	votequorum_finalize(handle);
	return err;
}

int coroconf_own_node(uint32_t *id)
{
	struct votequorum_info info;
	int err = own_votes(&info);

	if (!err)
		*id = info.node_id;
	return err;
}

int coroconf_two_node(bool *two_node, bool *wait_for_all)
{
	struct votequorum_info info;
	int err = own_votes(&info);

	if (err)
		return err;
	*two_node = info.flags & VOTEQUORUM_INFO_TWONODE;
	*wait_for_all = info.flags & VOTEQUORUM_INFO_WAIT_FOR_ALL;
	return 0;
}

int coroconf_cluster_name(char *out, size_t size)
{
	cmap_handle_t handle;
	char *value;
	int err = cmap_open(&handle);

	if (err)
		return err;
	out[0] = '\0';
	if (cmap_get_string(handle, "totem.cluster_name", &value) == CS_OK) {
		snprintf(out, size, "%s", value);
		free(value);
	}
	cmap_finalize(handle);
	return 0;
}

int coro_join(cpg_handle_t handle, const struct cpg_name *name)
{
	cs_error_t status = CS_ERR_TRY_AGAIN;

	for (unsigned i = 0; i < JOIN_TRIES; i++) {
		status = cpg_join(handle, name);
		if (status != CS_ERR_TRY_AGAIN)
			break;
		usleep(JOIN_PAUSE_US);
	}
	return coro_error("join", status);
}

static bool get_string(cmap_handle_t handle, const char *key, char *out)
{
	char *value;

	if (cmap_get_string(handle, key, &value) != CS_OK)
		return false;
	snprintf(out, NODE_NAME_MAX + 1, "%s", value);
	free(value);
	return true;
}

static bool get_node(cmap_handle_t handle, unsigned number,
		     struct cluster_node *node)
{
	char key[64];

	snprintf(key, sizeof(key), "nodelist.node.%u.nodeid", number);
	if (cmap_get_uint32(handle, key, &node->id) != CS_OK)
		return false;
	snprintf(key, sizeof(key), "nodelist.node.%u.ring0_addr", number);
	if (!get_string(handle, key, node->addr))
		return false;
	snprintf(key, sizeof(key), "nodelist.node.%u.name", number);
	if (!get_string(handle, key, node->name))
		memcpy(node->name, node->addr, sizeof(node->name));
	return true;
}

int cluster_nodes(struct cluster_node *nodes, unsigned max)
{
	struct cluster_node node;
	cmap_handle_t handle;
	unsigned count = 0;

	if (cmap_open(&handle))
		return -EIO;
	for (unsigned n = 0; n < NODE_NUMBERS_MAX && count < max; n++)
		if (get_node(handle, n, &node))
			nodes[count++] = node;
	cmap_finalize(handle);
	return (int)count;
}
