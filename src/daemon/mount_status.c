/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mount_status.c - the state of a mount, as the answer to "status".
 *
 * Nothing here asks the file system for anything that it may have to wait for:
 * no glock, no device, no lock that is held across either.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/mount_server.h"
#include "glock/glock.h"
#include "glock/glstat.h"

#define NS_PER_MS 1000000u
/* Younger ones are at work, not waiting. */
#define PATIENCE_NS (2000u * (uint64_t)NS_PER_MS)
#define WAITS_SHOWN 8u

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static json_t *ms_since(uint64_t since_ns)
{
	uint64_t now = now_ns();

	return json_integer((json_int_t)((now > since_ns ? now - since_ns : 0) /
					 NS_PER_MS));
}

/* Paths need not be UTF-8. */
static json_t *string_of(const char *text)
{
	json_t *string = json_string(text);
	char clean[4096];

	if (string)
		return string;
	snprintf(clean, sizeof(clean), "%s", text);
	for (char *c = clean; *c; c++)
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	return json_string(clean);
}

static void set_string(json_t *object, const char *key, const char *text)
{
	json_object_set_new(object, key, string_of(text));
}

static const char *state_name(enum mount_state state)
{
	switch (state) {
	case MOUNT_JOINING:
		return "joining";
	case MOUNT_MOUNTING:
		return "mounting";
	case MOUNT_SERVING:
		return "mounted";
	case MOUNT_ENDING:
		return "unmounting";
	}
	return "?";
}

static void add_wait(json_t *waits, const char *what, uint64_t since_ns,
		     const char *text)
{
	json_t *wait = json_object();

	json_object_set_new(wait, "what", json_string(what));
	set_string(wait, "text", text);
	json_object_set_new(wait, "for_ms", ms_since(since_ns));
	json_array_append_new(waits, wait);
}

/* ---- the volume ---- */

static void add_uuid(json_t *root, const uint8_t *uuid)
{
	char text[37], *c = text;

	for (unsigned i = 0; i < 16; i++)
		c += sprintf(c, "%s%02x",
			     i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
			     uuid[i]);
	set_string(root, "uuid", text);
}

static void add_volume(json_t *root, struct fs *fs)
{
	struct fs_info info;

	fs_info(fs, &info);
	set_string(root, "lockproto", info.lockproto);
	set_string(root, "locktable", info.locktable);
	if (!info.spectator)
		json_object_set_new(root, "journal",
				    json_integer((json_int_t)info.jid));
	json_object_set_new(root, "journals",
			    json_integer((json_int_t)info.journals));
	json_object_set_new(root, "format",
			    json_integer((json_int_t)info.format));
	json_object_set_new(root, "block_size",
			    json_integer((json_int_t)info.bsize));
	add_uuid(root, info.uuid);
	json_object_set_new(root, "read_only", json_boolean(info.readonly));
	json_object_set_new(root, "spectator", json_boolean(info.spectator));
}

/* ---- glocks ---- */

static const char *type_name(enum lm_type type)
{
	switch (type) {
	case LM_TYPE_NONDISK:
		return "nondisk";
	case LM_TYPE_INODE:
		return "inode";
	case LM_TYPE_RGRP:
		return "rgrp";
	case LM_TYPE_META:
		return "meta";
	case LM_TYPE_IOPEN:
		return "iopen";
	case LM_TYPE_FLOCK:
		return "flock";
	case LM_TYPE_QUOTA:
		return "quota";
	case LM_TYPE_JOURNAL:
		return "journal";
	}
	return "?";
}

static void add_glock_wait(json_t *waits, const struct glock_wait *wait)
{
	static const char *const states[] = { "UN", "EX", "DF", "SH" };
	char text[256];

	if (wait->demotion)
		snprintf(text, sizeof(text),
			 "demotion overdue: other nodes want glock %u/%" PRIx64
			 " (%s) in %s",
			 wait->type, wait->number, type_name(wait->type),
			 wait->state == LM_ST_UNLOCKED ? "EX"
						       : states[wait->state]);
	else
		snprintf(text, sizeof(text),
			 "glock %u/%" PRIx64
			 " (%s) wanted in %s here and not yet granted",
			 wait->type, wait->number, type_name(wait->type),
			 states[wait->state]);
	add_wait(waits, wait->demotion ? "demotion" : "glock", wait->since_ns,
		 text);
}

static void add_glocks(json_t *root, json_t *waits, struct fs *fs)
{
	struct glock_wait oldest[WAITS_SHOWN];
	struct glock_table *table = fs_glock_table(fs);
	uint64_t now = now_ns();
	unsigned found = glock_table_waits(
		table, now > PATIENCE_NS ? now - PATIENCE_NS : 0, oldest,
		WAITS_SHOWN);

	for (unsigned i = 0; i < found && i < WAITS_SHOWN; i++)
		add_glock_wait(waits, &oldest[i]);
	json_object_set_new(
		root, "glocks_cached",
		json_integer((json_int_t)glock_table_cached(table)));
	json_object_set_new(root, "glocks_overdue",
			    json_integer((json_int_t)found));
}

/* ---- requests ---- */

static void add_request(json_t *waits, const struct fuse_wait *wait)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "request %s of process %u on inode %" PRIu64 " %s",
		 fuse_opcode_name(wait->opcode), wait->pid, wait->nodeid,
		 wait->queued ? "not yet begun" : "not yet answered");
	add_wait(waits, "request", wait->since_ns, text);
}

static void add_requests(json_t *root, json_t *waits,
			 struct fuse_session *session)
{
	struct fuse_wait oldest[WAITS_SHOWN];
	uint64_t now = now_ns();
	struct fuse_waits found = {
		.before_ns = now > PATIENCE_NS ? now - PATIENCE_NS : 0,
		.oldest = oldest,
		.max = WAITS_SHOWN,
	};

	fuse_session_waits(session, &found);
	for (unsigned i = 0; i < found.count; i++)
		add_request(waits, &oldest[i]);
	json_object_set_new(root, "requests_overdue",
			    json_integer((json_int_t)found.found));
}

/* ---- the cluster ---- */

/* All keys of the membership, and what it waits for. */
static void add_membership(json_t *root, json_t *waits, struct membership *m)
{
	json_t *status = membership_status(m), *value, *list;
	const char *key;
	size_t i;

	if (!status)
		return;
	list = json_object_get(status, "waiting_for");
	json_array_foreach(list, i, value)
	{
		json_object_set_new(
			value, "what",
			json_string(json_object_get(value, "journal")
					    ? "recovery"
					    : "member"));
		json_array_append(waits, value);
	}
	json_object_del(status, "waiting_for");
	value = json_object_get(status, "without_quorum_for_ms");
	if (value) {
		json_t *wait = json_pack(
			"{s:s,s:s,s:O}", "what", "quorum", "text",
			"the lease: no quorum, or not heard by the cluster; "
			"all work waits",
			"for_ms", value);

		json_array_append_new(waits, wait);
		json_object_del(status, "without_quorum_for_ms");
	}
	json_object_foreach(status, key, value)
		json_object_set(root, key, value);
	json_decref(status);
}

/* ---- frozen ---- */

/* The name of the member with this slot; the membership is in root by now. */
static const char *member_of_slot(const json_t *root, unsigned slot)
{
	const json_t *list, *m;
	size_t i;

	list = json_object_get(json_object_get(root, "cluster"), "members");
	json_array_foreach(
		list, i,
		m) if (json_integer_value(json_object_get(m, "slot")) ==
		       slot) return json_string_value(json_object_get(m,
								      "name"));
	return NULL;
}

static void add_frozen(json_t *root, json_t *waits, struct freezer *freezer)
{
	struct freezer_status st;
	const char *by = "this node";

	freezer_status(freezer, &st);
	switch (st.state) {
	case FREEZER_THAWED:
		return;
	case FREEZER_FREEZING:
		add_wait(waits, "freeze", st.since_ns,
			 "all nodes to come to rest, for a freeze by this "
			 "node");
		return;
	case FREEZER_FROZEN:
		break;
	case FREEZER_FOLLOWING:
		if (!st.at_rest) {
			add_wait(waits, "freeze", st.since_ns,
				 "changes under way to end, for a freeze by "
				 "another node");
			return;
		}
		by = st.slot ? member_of_slot(root, st.slot) : NULL;
		break;
	}
	set_string(root, "frozen", by ? by : "another node");
	json_object_set_new(root, "frozen_for_ms", ms_since(st.since_ns));
}

/* ---- all ---- */

static void add_life(json_t *root, json_t *waits, struct mount_server *server)
{
	pthread_mutex_lock(&server->lock);
	set_string(root, "state", state_name(server->state));
	json_object_set_new(root, "state_for_ms", ms_since(server->state_ns));
	if (server->withdrawn) {
		set_string(root, "withdrawn", server->withdrawn_why);
		json_object_set_new(root, "withdrawn_for_ms",
				    ms_since(server->withdrawn_ns));
	}
	if (server->waits[0])
		add_wait(waits, "mount", server->state_ns, server->waits);
	pthread_mutex_unlock(&server->lock);
}

json_t *mount_status(struct mount_server *server)
{
	const struct mount_parts *parts = &server->parts;
	json_t *root = json_object(), *waits = json_array();

	set_string(root, "name", server->who);
	set_string(root, "directory", server->dir);
	set_string(root, "device", server->source);
	json_object_set_new(root, "pid", json_integer(getpid()));
	set_string(root, "version", UGFS_VERSION);
	add_life(root, waits, server);
	if (parts->membership)
		add_membership(root, waits, parts->membership);
	add_frozen(root, waits, &server->freezer);
	if (parts->fs) {
		add_volume(root, parts->fs);
		add_glocks(root, waits, parts->fs);
	}
	if (parts->session)
		add_requests(root, waits, parts->session);
	json_object_set_new(root, "waiting_for", waits);
	return root;
}
