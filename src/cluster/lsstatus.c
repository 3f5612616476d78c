/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lsstatus.c - a lockspace as JSON, for tools.
 *
 * What is needed is copied under the lock; the text is made without it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/lockspace.h"

static const char *mode_name(int mode)
{
	static const char *const names[] = { "IV", "NL", "CR", "CW",
					     "PR", "PW", "EX" };

	return mode >= LKM_IV && mode <= LKM_EX ? names[mode + 1] : "?";
}

static const char *state_name(const struct ugdlm *ls)
{
	if (ls->lost)
		return "lost";
	if (ls->leaving)
		return "leaving";
	if (!ls->running)
		return "recovering";
	if (ls->missing || ls->changing)
		return "member missing";
	return ls->has_lease ? "running" : "no quorum";
}

/* Boot, process and start: what no other process ever has. */
static void add_incarnation(json_t *object, const struct incarnation *inc)
{
	char text[96], *c = text;

	for (unsigned i = 0; i < sizeof(inc->boot_id); i++)
		c += sprintf(c, "%02x", inc->boot_id[i]);
	snprintf(c, sizeof(text) - (size_t)(c - text), ".%u.%llu", inc->pid,
		 (unsigned long long)inc->start_ticks);
	json_object_set_new(object, "incarnation", json_string(text));
}

static void add_addr(json_t *object, const struct link_addr *addr)
{
	char text[INET6_ADDRSTRLEN] = "";

	if (!addr->family)
		return;
	inet_ntop(addr->family == 4 ? AF_INET : AF_INET6, addr->bytes, text,
		  sizeof(text));
	json_object_set_new(object, "address", json_string(text));
	json_object_set_new(object, "port", json_integer(addr->port));
}

static void add_link(json_t *object, const struct link_info *infos,
		     unsigned count, const struct incarnation *inc)
{
	for (unsigned i = 0; i < count; i++) {
		const struct link_info *info = &infos[i];
		json_t *link;

		if (!incarnation_equal(&info->peer.inc, inc))
			continue;
		link = json_pack("{s:b,s:I,s:I,s:I,s:I,s:I,s:I,s:I}",
				 "connected", info->connected, "silent_ms",
				 (json_int_t)(info->silent_ns / 1000000u),
				 "sent", (json_int_t)info->sent, "received",
				 (json_int_t)info->received, "sent_bytes",
				 (json_int_t)info->sent_bytes, "received_bytes",
				 (json_int_t)info->received_bytes,
				 "connections", (json_int_t)info->connections,
				 "queued_bytes",
				 (json_int_t)info->queued_bytes);
		json_object_set_new(object, "link", link);
		return;
	}
}

static json_t *member_json(const struct ls_member *member,
			   const struct link_info *infos, unsigned count)
{
	const struct member *m = &member->m;
	const char *state = m->cause != GONE_NOT ? "gone"
			    : member->missing	 ? "missing"
						 : "member";
	json_t *object = json_pack(
		"{s:i,s:i,s:s%,s:i,s:i,s:s}", "node", (int)m->proc.node,
		"instance", (int)m->instance, "name", member->name,
		strlen(member->name), "pid", (int)m->proc.pid, "slot",
		(int)member->slot, "state", state);

	if (!object)
		return NULL;
	add_incarnation(object, &m->info.inc);
	add_addr(object, &m->info.addr);
	add_link(object, infos, count, &m->info.inc);
	return object;
}

static json_t *self_json(const struct ugdlm *ls)
{
	json_t *object = json_pack("{s:i,s:i,s:s,s:i,s:i,s:s}", "node",
				   (int)ls->self.nodeid, "instance",
				   (int)ls->self.instance, "name",
				   ls->self.name, "pid", (int)ls->self.pid,
				   "slot", (int)ls->self.slot, "state", "self");

	if (!object)
		return NULL;
	add_incarnation(object, &ls->inc);
	add_addr(object, &ls->addr);
	return object;
}

static json_t *members_json(struct ugdlm *ls, const struct link_info *infos,
			    unsigned count)
{
	json_t *array = json_array();
	struct ls_member *member;

	json_array_append_new(array, self_json(ls));
	cds_list_for_each_entry (member, &ls->members, list)
		json_array_append_new(array, member_json(member, infos, count));
	return array;
}

static json_t *slots_json(const struct ugdlm *ls)
{
	json_t *array = json_array();
	struct dlm_slots slots;

	if (!ls->engine)
		return array;
	dlm_slots_view(ls->engine, &slots);
	for (unsigned i = 0; i < slots.count; i++)
		if (!slots.slot[i].nodeid && !slots.slot[i].free)
			json_array_append_new(array,
					      json_integer(slots.slot[i].slot));
	return array;
}

/* Strings of the cluster that are not UTF-8 make json_pack() fail. */
static json_t *waits_json(const struct ugdlm *ls,
			  const struct cluster_wait *waits, unsigned count)
{
	uint64_t now = ls->env.now_ns();
	json_t *array = json_array();
	char text[512];

	for (unsigned i = 0; i < count; i++) {
		uint64_t since = UG_MIN(waits[i].since_ns, now);

		ls->env.cluster->wait_text(&waits[i], text, sizeof(text));
		json_array_append_new(
			array,
			json_pack("{s:s,s:i,s:I}", "text", text, "node",
				  (int)waits[i].node, "for_ms",
				  (json_int_t)((now - since) / 1000000u)));
	}
	return array;
}

static json_t *status_json(struct ugdlm *ls, const struct link_info *infos,
			   unsigned count)
{
	uint64_t lease_ns = ugdlm_lease_ns(ls);
	struct dlm_counts counts = { 0 };
	json_t *root;

	if (ls->engine)
		dlm_count(ls->engine, &counts);
	root = json_pack(
		"{s:s,s:s,s:I,s:b,s:I,s:i,s:i,s:i,s:i,s:i}", "lockspace",
		ls->name, "state", state_name(ls), "generation",
		(json_int_t)ls->generation, "quorate", ls->has_lease,
		"lease_ms",
		(json_int_t)(lease_ns > ls->now_ns
				     ? (lease_ns - ls->now_ns) / 1000000u
				     : 0),
		"locks", (int)ls->locks, "waiting_calls",
		(int)ls->waiting_count, "resources", (int)counts.resources,
		"engine_locks", (int)counts.locks, "in_flight",
		(int)counts.in_flight);
	if (!root)
		return NULL;
	if (ls->lost)
		json_object_set_new(root, "lost", json_string(ls->lost_why));
	json_object_set_new(root, "members", members_json(ls, infos, count));
	json_object_set_new(root, "held_slots", slots_json(ls));
	return root;
}

static int to_text(json_t *root, char **text)
{
	if (!root)
		return -ENOMEM;
	*text = json_dumps(root, JSON_INDENT(1));
	json_decref(root);
	return *text ? 0 : -ENOMEM;
}

int ugdlm_status_json(struct ugdlm *ls, char **text)
{
	struct link_info *infos = calloc(GROUP_MEMBERS_MAX, sizeof(*infos));
	struct cluster_wait *waits = calloc(GROUP_MEMBERS_MAX, sizeof(*waits));
	unsigned count = 0, waits_count = 0;
	json_t *root;
	int err = -ENOMEM;

	if (!infos || !waits)
		goto out;
	if (ls->links)
		count = ls->env.links->info(ls->links, infos,
					    GROUP_MEMBERS_MAX);
	if (ls->cluster)
		waits_count = ls->env.cluster->waits(ls->cluster, waits,
						     GROUP_MEMBERS_MAX);
	ls_lock(ls);
	root = status_json(ls, infos, count);
	ls_unlock(ls);
	if (root)
		json_object_set_new(root, "waiting_for",
				    waits_json(ls, waits, waits_count));
	err = to_text(root, text);
out:
	free(waits);
	free(infos);
	return err;
}

/*
 * Locks. There may be millions: what holds the lock holds up grants and, by the
 * links' thread, pings. So room is made before, and touched, since the kernel's
 * zeroing of it costs more than the copying.
 */

struct resource_copy {
	struct dlm_resource_info info; /* lvb: only whether there is one */
	size_t locks; /* the next ones among the copies of locks */
	uint8_t lvb[UGDLM_LVB_LEN];
};

struct copies {
	struct resource_copy *resources;
	struct dlm_lock_info *locks;
	size_t resources_count, resources_max;
	size_t locks_count, locks_max;
	bool full; /* more have come meanwhile */
};

static void *touched(size_t bytes)
{
	void *memory = malloc(bytes);

	if (memory)
		memset(memory, 0xff, bytes);
	return memory;
}

static int make_room(struct copies *copies, const struct dlm_counts *counts)
{
	memset(copies, 0, sizeof(*copies));
	copies->resources_max = counts->resources + counts->resources / 16 + 64;
	copies->locks_max = counts->locks + counts->locks / 16 + 64;
	copies->resources =
		touched(copies->resources_max * sizeof(*copies->resources));
	copies->locks = touched(copies->locks_max * sizeof(*copies->locks));
	return copies->resources && copies->locks ? 0 : -ENOMEM;
}

static void free_copies(struct copies *copies)
{
	free(copies->resources);
	free(copies->locks);
}

static void copy_resource(void *arg, const struct dlm_resource_info *info)
{
	struct copies *copies = arg;
	struct resource_copy *copy;

	copies->full |= copies->resources_count == copies->resources_max;
	if (copies->full)
		return;
	copy = &copies->resources[copies->resources_count++];
	copy->info = *info;
	copy->locks = 0;
	if (info->lvb)
		memcpy(copy->lvb, info->lvb, sizeof(copy->lvb));
}

static void copy_lock(void *arg, const struct dlm_resource_info *resource,
		      const struct dlm_lock_info *info)
{
	struct copies *copies = arg;

	copies->full |= copies->locks_count == copies->locks_max;
	if (copies->full)
		return;
	copies->resources[copies->resources_count - 1].locks++;
	copies->locks[copies->locks_count++] = *info;
}

static int copy_all(struct ugdlm *ls, struct copies *copies)
{
	struct dlm_counts counts = { 0 };
	int err;

	ls_lock(ls);
	for (;;) {
		if (ls->engine)
			dlm_count(ls->engine, &counts);
		ls_unlock(ls);
		err = make_room(copies, &counts);
		if (err)
			return err;
		ls_lock(ls);
		if (ls->engine)
			dlm_visit(ls->engine, copy_resource, copy_lock, copies);
		if (!copies->full)
			break;
		free_copies(copies);
	}
	ls_unlock(ls);
	return 0;
}

/* Names may hold any bytes: what is not printable is %XX. */
static void name_text(const struct dlm_name *name, char *text)
{
	for (unsigned i = 0; i < name->len; i++) {
		uint8_t c = name->bytes[i];

		if (c >= ' ' && c < 0x7f && c != '%')
			*text++ = (char)c;
		else
			text += sprintf(text, "%%%02X", c);
	}
	*text = '\0';
}

static void add_lvb(json_t *object, const struct resource_copy *resource)
{
	char text[2 * UGDLM_LVB_LEN + 1] = "";

	if (!resource->info.lvb)
		return;
	for (unsigned i = 0; i < UGDLM_LVB_LEN; i++)
		sprintf(text + 2 * i, "%02x", resource->lvb[i]);
	json_object_set_new(object, "lvb", json_string(text));
	json_object_set_new(object, "lvb_seq",
			    json_integer(resource->info.lvb_seq));
}

static json_t *lock_json(const struct dlm_lock_info *info)
{
	static const char *const queues[] = { "in flight", "waiting", "granted",
					      "converting" };

	return json_pack(
		"{s:I,s:I,s:i,s:i,s:s,s:s,s:s,s:b,s:b,s:I}", "lkid",
		(json_int_t)info->lkid, "remid", (json_int_t)info->remid,
		"node", (int)info->nodeid, "pid", (int)info->pid, "queue",
		queues[info->status & 3], "granted", mode_name(info->grmode),
		"requested", mode_name(info->rqmode), "master_copy",
		info->master_copy, "in_flight", info->in_flight, "flags",
		(json_int_t)info->exflags);
}

static json_t *resource_json(const struct resource_copy *resource,
			     const struct dlm_lock_info *locks)
{
	const struct dlm_resource_info *info = &resource->info;
	char name[3 * DLM_NAME_MAX + 1];
	json_t *object, *array = json_array();

	for (size_t i = 0; i < resource->locks; i++)
		json_array_append_new(array, lock_json(&locks[i]));
	name_text(&info->name, name);
	object = json_pack("{s:s,s:i,s:i,s:b,s:b,s:o}", "name", name, "master",
			   (int)info->master, "directory", (int)info->dir,
			   "in_use", info->in_use, "lvb_invalid",
			   info->lvb_invalid, "locks", array);
	if (object)
		add_lvb(object, resource);
	return object;
}

int ugdlm_locks_json(struct ugdlm *ls, char **text)
{
	json_t *resources;
	struct copies copies;
	size_t lock = 0;
	int err = copy_all(ls, &copies);

	if (err)
		goto out;
	resources = json_array();
	for (size_t i = 0; i < copies.resources_count; i++) {
		const struct resource_copy *resource = &copies.resources[i];

		json_array_append_new(
			resources,
			resource_json(resource, &copies.locks[lock]));
		lock += resource->locks;
	}
	err = to_text(json_pack("{s:s,s:o}", "lockspace", ls->name, "resources",
				resources),
		      text);
out:
	free_copies(&copies);
	return err;
}
