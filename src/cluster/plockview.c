/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plockview.c - application locks as JSON, for tools.
 *
 * There may be a million: room for copies is made before, the text without any
 * lock. Names of members are copied first, under the lockspace's lock.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "cluster/lockspace.h"
#include "cluster/plocks_impl.h"

#define NS_PER_MS 1000000u

/* Names of members */

struct node_label {
	uint64_t node;
	char text[NODE_NAME_MAX + 1];
};

#define LABELS_MAX (2 * GROUP_MEMBERS_MAX)

struct labels {
	unsigned count;
	struct node_label list[LABELS_MAX];
};

static char *add_label(struct labels *labels, uint64_t node)
{
	static char nowhere[NODE_NAME_MAX + 1];

	if (labels->count == LABELS_MAX)
		return nowhere;
	labels->list[labels->count].node = node;
	return labels->list[labels->count++].text;
}

/* A slot that is held has a number, and no name any more. */
static void take_labels(struct plocks *p, struct labels *labels)
{
	const size_t len = sizeof(labels->list[0].text);
	const struct ls_held_slot *held;
	const struct ls_member *member;
	struct ugdlm *ls = p->ls;

	labels->count = 0;
	if (!ls) {
		snprintf(add_label(labels, p->node), len, "self");
		return;
	}
	ls_lock(ls);
	snprintf(add_label(labels, p->node), len, "%s", ls->self.name);
	cds_list_for_each_entry (member, &ls->members, list)
		snprintf(add_label(labels, member->inc_short), len, "%s",
			 member->name);
	cds_list_for_each_entry (held, &ls->held_slots, list)
		snprintf(add_label(labels, held->incarnation), len,
			 "gone, slot %u", held->slot);
	ls_unlock(ls);
}

static json_t *label_of(const struct labels *labels, uint64_t node)
{
	char text[32];

	if (!node)
		return json_null();
	for (unsigned i = 0; i < labels->count; i++)
		if (labels->list[i].node == node)
			return json_string(labels->list[i].text);
	snprintf(text, sizeof(text), "%016" PRIx64, node);
	return json_string(text);
}

/* Copies */

enum item_kind {
	ITEM_FILE,
	ITEM_LOCK, /* of the last file before it */
	ITEM_WAIT, /* the same */
	ITEM_CALL, /* of a process here */
};

struct item {
	enum item_kind kind;
	enum plock_table table;
	bool behind;
	union {
		struct plock_file_info file;
		struct range_lock lock; /* LOCK, WAIT */
		struct {
			uint64_t number;
			struct plock_op op;
			uint64_t for_ns;
		} call;
	};
};

struct copies {
	struct item *list;
	size_t count, max;
	bool full; /* more have come meanwhile */
	struct plock_counts counts;
	struct plocks_stats stats;
	bool quorate, settled, failed;
};

static struct item *add_item(struct copies *copies, enum item_kind kind)
{
	static struct item nowhere;

	copies->full |= copies->count == copies->max;
	if (copies->full)
		return &nowhere;
	copies->list[copies->count].kind = kind;
	return &copies->list[copies->count++];
}

static void copy_file(void *arg, const struct plock_file_info *info)
{
	add_item(arg, ITEM_FILE)->file = *info;
}

static void copy_lock(void *arg, const struct plock_file_info *info,
		      enum plock_table table, const struct range_lock *lock)
{
	struct item *item = add_item(arg, ITEM_LOCK);

	item->table = table;
	item->lock = *lock;
}

static void copy_wait(void *arg, const struct plock_file_info *info,
		      enum plock_table table, const struct range_wait *wait)
{
	struct item *item = add_item(arg, ITEM_WAIT);

	item->table = table;
	item->behind = wait->behind;
	item->lock = (struct range_lock){ .who = wait->req.who,
					  .mode = wait->req.mode,
					  .kind = wait->req.kind,
					  .start = wait->req.start,
					  .end = wait->req.end,
					  .pid = wait->req.pid };
}

static void copy_calls(struct plocks *p, struct copies *copies)
{
	const struct plocks_call *call;
	struct item *item;

	cds_list_for_each_entry (call, &p->calls, list) {
		if (call->state != CALL_GIVEN)
			continue;
		item = add_item(copies, ITEM_CALL);
		item->call.number = call->number;
		item->call.op = call->op;
		item->call.for_ns = p->now_ns - call->since_ns;
	}
}

static void copy(struct plocks *p, struct copies *copies)
{
	copies->count = 0;
	copies->full = false;
	plock_count(p->engine, &copies->counts);
	copies->stats = p->stats;
	copies->quorate = p->quorate;
	copies->settled = plock_is_settled(p->engine);
	copies->failed = p->failed;
	plock_visit(p->engine, copy_file, copy_lock, copy_wait, copies);
	copy_calls(p, copies);
}

static size_t room(const struct plock_counts *counts)
{
	size_t n = (size_t)counts->files + counts->pending +
		   counts->ranges.locks + counts->ranges.waits;

	return n + n / 16 + 64;
}

static int take_copies(struct plocks *p, struct copies *copies)
{
	memset(copies, 0, sizeof(*copies));
	plocks_count(p, &copies->counts);
	do {
		free(copies->list);
		copies->max = room(&copies->counts);
		copies->list = malloc(copies->max * sizeof(*copies->list));
		if (!copies->list)
			return -ENOMEM;
		plocks_lock(p);
		copy(p, copies);
		plocks_unlock(p);
	} while (copies->full);
	return 0;
}

/* Text */

static const char *const tables[] = { "fcntl", "flock" };
static const char *const kinds[] = { "posix", "ofd", "flock" };
static const char *const modes[] = { "none", "read", "write" };

static void add_range(json_t *object, uint64_t start, uint64_t end)
{
	json_object_set_new(object, "start", json_integer((json_int_t)start));
	json_object_set_new(object, "end",
			    end == RANGE_END ? json_null()
					     : json_integer((json_int_t)end));
}

static void add_owner(json_t *object, uint64_t owner, uint32_t pid)
{
	char text[24];

	snprintf(text, sizeof(text), "%016" PRIx64, owner);
	json_object_set_new(object, "owner", json_string(text));
	json_object_set_new(object, "pid", json_integer(pid));
}

static json_t *lock_json(const struct item *item, const struct labels *labels)
{
	const struct range_lock *lock = &item->lock;
	json_t *object =
		json_pack("{s:s,s:s,s:s}", "table", tables[item->table], "kind",
			  kinds[lock->kind], "mode", modes[lock->mode]);

	add_range(object, lock->start, lock->end);
	json_object_set_new(object, "node", label_of(labels, lock->who.node));
	add_owner(object, lock->who.owner, lock->pid);
	if (item->kind == ITEM_WAIT)
		json_object_set_new(object, "behind_others",
				    json_boolean(item->behind));
	return object;
}

static json_t *file_json(const struct plock_file_info *info,
			 const struct labels *labels)
{
	json_t *object = json_pack("{s:I,s:I,s:b,s:b,s:b,s:I,s:[],s:[]}",
				   "inode", (json_int_t)info->number, "gen",
				   (json_int_t)info->gen, "served_here",
				   info->serves, "closed", info->closed, "lent",
				   info->lent, "kept_messages",
				   (json_int_t)info->parked, "locks", "waits");

	json_object_set_new(object, "serialiser",
			    label_of(labels, info->serialiser));
	json_object_set_new(object, "home", label_of(labels, info->home));
	return object;
}

static json_t *call_json(const struct item *item)
{
	static const char *const ops[] = { "", "set", "get", "close" };
	const struct plock_op *op = &item->call.op;
	json_t *object = json_pack("{s:I,s:s,s:s,s:s,s:s,s:b,s:I}", "inode",
				   (json_int_t)item->call.number, "op",
				   ops[op->kind], "table", tables[op->table],
				   "kind", kinds[op->owner_kind], "mode",
				   modes[op->mode], "wait", op->wait, "for_ms",
				   (json_int_t)(item->call.for_ns / NS_PER_MS));

	add_range(object, op->start, op->end);
	add_owner(object, op->owner, op->pid);
	return object;
}

static json_t *slots_json(const uint64_t *slots)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < PLOCKS_HIST_SLOTS; i++)
		json_array_append_new(array,
				      json_integer((json_int_t)slots[i]));
	return array;
}

static json_t *counts_json(const struct copies *copies)
{
	const struct plock_counts *c = &copies->counts;
	const struct {
		const char *name;
		uint64_t value;
	} counts[] = {
		{ "calls", c->calls },
		{ "answered_at_once", copies->stats.at_once },
		{ "messages", c->messages },
		{ "moves", c->moves },
		{ "lends", c->lends },
		{ "recalls", c->recalls },
		{ "bounces", c->bounces },
		{ "deadlocks", c->deadlocks },
		{ "delayed", c->delayed },
		{ "files", c->files },
		{ "under_way", c->pending },
		{ "locks", c->ranges.locks },
		{ "waits", c->ranges.waits },
		{ "memory_bytes", c->ranges.bytes },
	};
	json_t *object = json_object();

	for (unsigned i = 0; i < UG_ARRAY_SIZE(counts); i++)
		json_object_set_new(object, counts[i].name,
				    json_integer((json_int_t)counts[i].value));
	return object;
}

static void add_items(json_t *root, const struct copies *copies,
		      const struct labels *labels)
{
	json_t *files = json_array(), *calls = json_array(), *file = NULL;

	for (size_t i = 0; i < copies->count; i++) {
		const struct item *item = &copies->list[i];

		switch (item->kind) {
		case ITEM_FILE:
			file = file_json(&item->file, labels);
			json_array_append_new(files, file);
			break;
		case ITEM_LOCK:
		case ITEM_WAIT:
			json_array_append_new(
				json_object_get(file, item->kind == ITEM_LOCK
							      ? "locks"
							      : "waits"),
				lock_json(item, labels));
			break;
		case ITEM_CALL:
			json_array_append_new(calls, call_json(item));
			break;
		}
	}
	json_object_set_new(root, "files", files);
	json_object_set_new(root, "calls", calls);
}

static json_t *all_json(struct plocks *p, const struct copies *copies,
			const struct labels *labels)
{
	json_t *root =
		json_pack("{s:b,s:b,s:b}", "quorate", copies->quorate,
			  "settled", copies->settled, "failed", copies->failed);

	json_object_set_new(root, "node", label_of(labels, p->node));
	json_object_set_new(root, "counters", counts_json(copies));
	json_object_set_new(root, "answer_ns",
			    slots_json(copies->stats.answer_ns));
	json_object_set_new(root, "wait_ns", slots_json(copies->stats.wait_ns));
	add_items(root, copies, labels);
	return root;
}

int plocks_json(struct plocks *p, char **text)
{
	struct labels *labels = malloc(sizeof(*labels));
	struct copies copies = { 0 };
	json_t *root;
	int err = labels ? take_copies(p, &copies) : -ENOMEM;

	if (!err) {
		take_labels(p, labels);
		root = all_json(p, &copies, labels);
		*text = root ? json_dumps(root, JSON_INDENT(1)) : NULL;
		json_decref(root);
		err = *text ? 0 : -ENOMEM;
	}
	free(copies.list);
	free(labels);
	return err;
}
