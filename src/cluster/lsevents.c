/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lsevents.c - what the cluster tells, as events of the engine.
 *
 *   cluster             lockspace                    engine   program
 *   MISSING   --------> calls wait                            prepare
 *   GONE      --------> the link is closed
 *   CHANGE    --------> ------------------------- STOP
 *                       cluster_say_stopped()
 *   PROVED    --------> remembered: how it ended
 *   JOINED    --------> a link is made
 *   START     --------> ------------------------- START  -->  gone (each)
 *                       (plockmembers.c)    (recovery over links)
 *                       calls go on <------------ RUNNING --> running
 *   BACK      --------> calls go on                           running
 *
 * A member that is missed costs nothing yet: the engine runs, but calls wait
 * and nothing is told, until it is back or a change of members is decided.
 *
 * Members are added and removed on the cluster's thread alone. links_add() and
 * links_remove() are called without the lock: the latter waits for a callback
 * of the links that may be waiting for the lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "cluster/lockspace.h"
#include "cluster/plocks_impl.h"

/* Members */

static bool is_live(const struct ls_member *member)
{
	return member->m.cause == GONE_NOT;
}

/* One that is live; its id may be that of one that is gone, too. */
struct ls_member *ls_member_find(struct ugdlm *ls, uint32_t id)
{
	struct ls_member *member = ls->last_member;

	if (member && member->id == id)
		return member;
	cds_list_for_each_entry (member, &ls->members, list) {
		if (member->id == id && is_live(member)) {
			ls->last_member = member;
			return member;
		}
	}
	return NULL;
}

struct ls_member *ls_member_of(struct ugdlm *ls, const struct incarnation *inc)
{
	struct ls_member *member;

	cds_list_for_each_entry (member, &ls->members, list)
		if (incarnation_equal(&member->m.info.inc, inc))
			return member;
	return NULL;
}

static struct ls_member *find_gone(struct ugdlm *ls, uint64_t inc_short)
{
	struct ls_member *member;

	cds_list_for_each_entry (member, &ls->members, list)
		if (!is_live(member) && member->inc_short == inc_short)
			return member;
	return NULL;
}

static const char *find_name(const struct ugdlm *ls, uint32_t node)
{
	for (unsigned i = 0; i < ls->nodes_count; i++)
		if (ls->nodes[i].id == node)
			return ls->nodes[i].name;
	return NULL;
}

/* A node that was added since we asked for all of them. */
static const char *node_name(struct ugdlm *ls, uint32_t node)
{
	const char *name = find_name(ls, node);
	int count;

	if (name)
		return name;
	count = ls->env.cluster->nodes(ls->nodes, LS_NODES_MAX);
	ls->nodes_count = count < 0 ? 0 : (unsigned)count;
	name = find_name(ls, node);
	return name ? name : "";
}

/* The cluster's thread has nothing else to do without memory. */
static struct ls_member *add_member(struct ugdlm *ls, const struct member *m)
{
	struct ls_member *member = calloc(1, sizeof(*member));

	while (!member) {
		ls_unlock(ls);
		ls->env.rest();
		ls_lock(ls);
		member = calloc(1, sizeof(*member));
	}
	member->m = *m;
	member->id = member_id(m);
	member->inc_short = incarnation_short(&m->info.inc);
	snprintf(member->name, sizeof(member->name), "%s",
		 node_name(ls, m->proc.node));
	cds_list_add_tail(&member->list, &ls->members);
	return member;
}

static void free_member(struct ugdlm *ls, struct ls_member *member)
{
	cds_list_del(&member->list);
	ls->last_member = NULL;
	free(member);
}

void ls_members_free(struct ugdlm *ls)
{
	struct ls_member *member, *next;
	struct ls_held_slot *held, *next_held;

	cds_list_for_each_entry_safe (member, next, &ls->members, list)
		free_member(ls, member);
	cds_list_for_each_entry_safe (held, next_held, &ls->held_slots, list)
		free(held);
}

static void describe(const struct ls_member *member, struct ugdlm_member *out)
{
	memset(out, 0, sizeof(*out));
	out->nodeid = member->m.proc.node;
	out->instance = member->m.instance;
	out->slot = member->slot;
	out->pid = member->m.proc.pid;
	memcpy(out->name, member->name, sizeof(out->name));
}

/* What the program is told */

void ls_on_prepare(struct ugdlm *ls)
{
	struct ls_event event = { .kind = LS_EVENT_PREPARE };

	if (ls->prepared)
		return;
	ls->prepared = true;
	ls->gate |= LS_GATE_RECOVERY;
	ls_event_push(ls, &event);
}

static void tell_running(struct ugdlm *ls)
{
	struct ls_event event = { .kind = LS_EVENT_RUNNING };

	if (!ls->running || ls->missing || ls->changing || !ls->prepared)
		return;
	ls->prepared = false;
	event.generation = ls->generation;
	event.member = ls->self;
	ls_event_push(ls, &event);
}

static void note_slots(struct ugdlm *ls)
{
	static const struct dlm_slot none;
	struct dlm_slots slots;

	dlm_slots_view(ls->engine, &slots);
	for (unsigned i = 0; i < slots.count; i++) {
		const struct dlm_slot *slot = &slots.slot[i];
		struct ls_member *member;

		if (slot->nodeid == none.nodeid)
			continue;
		member = ls_member_find(ls, (uint32_t)slot->nodeid);
		if (member)
			member->slot = slot->slot;
	}
}

void ls_on_running(struct ugdlm *ls, const struct dlm_running *up)
{
	ls->running = true;
	ls->generation = up->generation;
	ls->self.slot = up->slot;
	note_slots(ls);
	if (!ls->trace_all)
		dlm_set_trace(ls->engine, NULL);
	ls_trace_text(ls, "running, generation %u, slot %u", up->generation,
		      up->slot);
	tell_running(ls);
	ls_open_or_close(ls);
	plocks_on_running(ls);
}

static enum ugdlm_end end_of(const struct ls_member *member)
{
	switch (member ? member->m.proof : PROOF_OF_OTHERS) {
	case PROOF_LEFT:
		return UGDLM_END_CLEAN;
	case PROOF_LEFT_DIRTY:
		return UGDLM_END_DIRTY;
	default:
		return UGDLM_END_DIED;
	}
}

static int hold_slot(struct ugdlm *ls, const struct dlm_running *up)
{
	struct ls_held_slot *held = calloc(1, sizeof(*held));

	if (!held)
		return -ENOMEM;
	held->slot = up->slot;
	held->incarnation = up->incarnation;
	cds_list_add_tail(&held->list, &ls->held_slots);
	return 0;
}

/* Who left clean leaves nothing to repair: every member frees its slot. */
static void free_slot(struct ugdlm *ls, const struct dlm_running *up)
{
	struct dlm_event event = { .kind = DLM_EV_SLOT_FREE };

	event.slot_free.slot = up->slot;
	event.slot_free.incarnation = up->incarnation;
	ls_step(ls, &event);
}

int ls_on_slot_gone(struct ugdlm *ls, struct dlm_running up)
{
	struct ls_member *member = find_gone(ls, up.incarnation);
	struct ls_event event = { .kind = LS_EVENT_GONE };

	if (!up.slot)
		return 0;
	event.end = end_of(member);
	event.incarnation = up.incarnation;
	if (member)
		describe(member, &event.member);
	event.member.slot = up.slot;
	if (ls->hold_slots && event.end != UGDLM_END_CLEAN &&
	    hold_slot(ls, &up))
		return -ENOMEM;
	if (ls->hold_slots && event.end == UGDLM_END_CLEAN)
		free_slot(ls, &up);
	ls_trace_text(ls, "slot %u: its member is gone", up.slot);
	ls_event_push(ls, &event);
	return 0;
}

/* One whose gone() has not come is another: its journal is another. */
static bool take_held(struct ugdlm *ls, uint16_t slot, struct dlm_running *up)
{
	struct ls_held_slot *held;

	cds_list_for_each_entry (held, &ls->held_slots, list) {
		if (held->slot != slot || !held->told)
			continue;
		*up = (struct dlm_running){ .slot = slot,
					    .incarnation = held->incarnation };
		cds_list_del(&held->list);
		free(held);
		return true;
	}
	return false;
}

int ugdlm_slot_clean(struct ugdlm *ls, uint16_t slot)
{
	struct dlm_running up;
	int err = -ENOENT;

	ls_lock(ls);
	while (take_held(ls, slot, &up)) {
		if (!ls->lost) {
			free_slot(ls, &up);
			plocks_on_released(ls, up.incarnation);
		}
		err = 0;
	}
	ls_unlock(ls);
	return err;
}

bool ugdlm_slot_has_member(struct ugdlm *ls, uint16_t slot)
{
	struct ls_member *member;
	bool found;

	ls_lock(ls);
	found = slot && ls->self.slot == slot;
	cds_list_for_each_entry (member, &ls->members, list)
		found |= slot && member->slot == slot && is_live(member);
	ls_unlock(ls);
	return found;
}

/* The cluster's updates */

static int take_life_lock(struct ugdlm *ls, const struct member *m)
{
	struct life_lock_name name = {
		.dir = LIFE_LOCK_DIR,
		.uuid = ls->uuid,
		.node = m->proc.node,
		.instance = m->instance,
	};

	ls->life_fd = ls->env.cluster->life_lock(&name, &ls->inc);
	return ls->life_fd < 0 ? ls->life_fd : 0;
}

static int make_engine(struct ugdlm *ls, const struct member *m)
{
	struct dlm_config config = {
		.nodeid = (int32_t)member_id(m),
		.incarnation = incarnation_short(&m->info.inc),
		.lvblen = UGDLM_LVB_LEN,
		.toss_ns = ls->toss_ns,
		.hold_slots = ls->hold_slots,
		.trace = ls_trace_line,
		.trace_arg = ls,
	};

	/* Lock ids that differ from those of earlier members of this id. */
	config.seed = config.incarnation ^ ls->now_ns;
	return dlm_engine_new(&config, &ls->engine);
}

static void on_admitted(struct ugdlm *ls, const struct member_update *up)
{
	const struct member *m = &up->member;
	int err = take_life_lock(ls, m);

	if (!err)
		err = make_engine(ls, m);
	if (!err && ls->hold_slots)
		err = plocks_new(ls, incarnation_short(&m->info.inc),
				 &ls->plocks);
	ls->join_err = err;
	ls->self.nodeid = m->proc.node;
	ls->self.instance = m->instance;
	ls->self.pid = m->proc.pid;
	ls->self.self = true;
	snprintf(ls->self.name, sizeof(ls->self.name), "%s",
		 node_name(ls, m->proc.node));
	ls->admitted = true;
	ls_trace_text(ls, "admitted as node %u", member_id(m));
	pthread_cond_broadcast(&ls->cond);
}

static void on_joined(struct ugdlm *ls, const struct member *m)
{
	struct link_peer peer = {
		.inc = m->info.inc,
		.id = member_id(m),
		.addr = m->info.addr,
	};
	struct ls_member *member = add_member(ls, m);
	int err;

	ls_trace_text(ls, "node %u (%s) joins", peer.id, member->name);
	do {
		ls_unlock(ls);
		err = ls->env.links->add(ls->links, &peer);
		if (err == -ENOMEM)
			ls->env.rest();
		ls_lock(ls);
	} while (err == -ENOMEM && !ls->lost);
	if (err && !ls->lost)
		ug_error(ls->who, "no link to node %u (%s): %s", peer.id,
			 member->name, strerror(-err));
	member->linked = !err;
}

static void set_missing(struct ugdlm *ls, struct ls_member *member, bool value)
{
	if (member->missing == value)
		return;
	member->missing = value;
	ls->missing += value ? 1u : -1u;
}

static void on_missing(struct ugdlm *ls, const struct member *m)
{
	struct ls_member *member = ls_member_of(ls, &m->info.inc);

	if (!member)
		return;
	ls_trace_text(ls, "node %u is missing", member->id);
	set_missing(ls, member, true);
	if (ls->running)
		ls_on_prepare(ls);
	ls_open_or_close(ls);
}

static void on_back(struct ugdlm *ls, const struct member *m)
{
	struct ls_member *member = ls_member_of(ls, &m->info.inc);

	if (!member)
		return;
	ls_trace_text(ls, "node %u is back", member->id);
	set_missing(ls, member, false);
	tell_running(ls);
	ls_open_or_close(ls);
}

static void close_link(struct ugdlm *ls, struct ls_member *member)
{
	if (member->full)
		ls->full--;
	member->full = false;
	if (member->silent)
		ls->silent--;
	member->silent = false;
	if (member->asked) {
		member->asked = false;
		ls->flush_due--;
		pthread_cond_broadcast(&ls->cond);
	}
	if (!member->linked)
		return;
	member->linked = false;
	ls_unlock(ls);
	ls->env.links->remove(ls->links, &member->m.info.inc);
	ls_lock(ls);
}

/* Of one that is not known here: gone before this process came. */
static void on_gone(struct ugdlm *ls, const struct member *m)
{
	struct ls_member *member = ls_member_of(ls, &m->info.inc);

	if (!member)
		member = add_member(ls, m);
	ls_trace_text(ls, "node %u is gone", member->id);
	set_missing(ls, member, false);
	member->m.cause = m->cause;
	ls->last_member = NULL;
	ls->changing = true;
	if (ls->running)
		ls_on_prepare(ls);
	plocks_on_gone(ls, member->inc_short);
	close_link(ls, member);
	ls_open_or_close(ls);
}

static void on_proved(struct ugdlm *ls, const struct member *m)
{
	struct ls_member *member = ls_member_of(ls, &m->info.inc);

	if (!member)
		return;
	ls_trace_text(ls, "the end of node %u is proved (%d)", member->id,
		      m->proof);
	member->m.proof = m->proof;
}

static void on_change(struct ugdlm *ls, uint64_t generation)
{
	struct dlm_event stop = { .kind = DLM_EV_STOP };

	ls_trace_text(ls, "change %llu: stop", (unsigned long long)generation);
	if (!ls->engine) {
		/* Without one, and about to leave: nobody has to wait. */
		ls->env.cluster->say_stopped(ls->cluster, generation);
		return;
	}
	/* Until it has stopped it may say that it runs: no word of that. */
	ls->changing = true;
	ls_open_or_close(ls);
	dlm_set_trace(ls->engine, ls_trace_line);
	ls_step_surely(ls, &stop);
	ls_updates_stopped(ls);
	ls->running = false;
	ls->changing = false;
	ls->more = false;
	ls->env.cluster->say_stopped(ls->cluster, generation);
}

static int compare_members(const void *a, const void *b)
{
	const struct dlm_member *x = a, *y = b;

	return (x->nodeid > y->nodeid) - (x->nodeid < y->nodeid);
}

/* All that are gone are proved by now; their slots may have to be told yet. */
static void forget_gone(struct ugdlm *ls)
{
	struct ls_member *member;

	cds_list_for_each_entry (member, &ls->members, list)
		member->started_without = !is_live(member);
	ls->forget_due = true;
	if (ls->updates_done == ls->updates.count)
		ls_members_forget(ls);
}

void ls_members_forget(struct ugdlm *ls)
{
	struct ls_member *member, *next;

	ls->forget_due = false;
	cds_list_for_each_entry_safe (member, next, &ls->members, list)
		if (member->started_without)
			free_member(ls, member);
}

static void on_start(struct ugdlm *ls, uint64_t generation)
{
	const struct group_state *table = ls->env.cluster->table(ls->cluster);
	struct dlm_member members[GROUP_MEMBERS_MAX];
	struct dlm_event start = { .kind = DLM_EV_START };
	unsigned count = 0;
	int err;

	if (!ls->engine)
		return;
	for (uint32_t i = 0; i < table->count; i++) {
		const struct member *m = &table->members[i];

		if (m->cause != GONE_NOT)
			continue;
		members[count++] = (struct dlm_member){
			.nodeid = (int32_t)member_id(m),
			.weight = 1,
			.incarnation = incarnation_short(&m->info.inc),
		};
	}
	qsort(members, count, sizeof(*members), compare_members);
	ls_trace_text(ls, "start %llu with %u members",
		      (unsigned long long)generation, count);
	plocks_on_start(ls, generation, table);
	start.start.members = members;
	start.start.count = count;
	err = ls_step_surely(ls, &start);
	ug_assert(err == 0);
	forget_gone(ls);
}

static const char *out_reason(const struct member_update *up)
{
	switch (up->out.cause) {
	case OUT_VERSION:
		return "the group speaks another version of the protocol";
	case OUT_NODE_ID:
		return "no id is left for one more member of this node";
	case OUT_FULL:
		return "the group is full";
	case OUT_EXPELLED:
		return "the other members have expelled this one";
	case OUT_GONE:
		return "the other members have gone on without this one";
	case OUT_BEHIND:
		return "the table of members did not come in time";
	case OUT_LEFT:
		return "this member has left";
	}
	return "unknown";
}

static void on_out(struct ugdlm *ls, const struct member_update *up)
{
	if (up->out.cause == OUT_LEFT && ls->leaving) {
		ls->left = true;
		pthread_cond_broadcast(&ls->cond);
		return;
	}
	ls_lose(ls, up->out.cause == OUT_VERSION ? -EPROTO : -EIO, "%s",
		out_reason(up));
}

/*
 * Too late: nobody waits for it any more, and the connection is being closed.
 * In silence the others would have this process killed, to be sure of its end.
 */
static void decline(struct ugdlm *ls)
{
	ls->env.cluster->say_left(ls->cluster, false);
}

static void on_update(struct ugdlm *ls, const struct member_update *up)
{
	if (ls->lost && ls->leaving && up->kind == MUP_ADMITTED)
		decline(ls);
	if (ls->lost || ls->left)
		return;
	switch (up->kind) {
	case MUP_ADMITTED:
		on_admitted(ls, up);
		break;
	case MUP_JOINED:
		on_joined(ls, &up->member);
		break;
	case MUP_MISSING:
		on_missing(ls, &up->member);
		break;
	case MUP_BACK:
		on_back(ls, &up->member);
		break;
	case MUP_GONE:
		on_gone(ls, &up->member);
		break;
	case MUP_PROVED:
		on_proved(ls, &up->member);
		break;
	case MUP_CHANGE:
		on_change(ls, up->generation);
		break;
	case MUP_START:
		on_start(ls, up->generation);
		break;
	case MUP_OUT:
		on_out(ls, up);
		break;
	case MUP_SETTLED:
		ls_trace_text(ls, "the group can%s decide",
			      up->settled ? "" : "not");
		break;
	case MUP_SEND:
	case MUP_MINOR:
	case MUP_CLEARED:
		break;
	}
}

void ls_on_cluster(void *arg, struct cluster *c, const struct cluster_event *ev)
{
	static const struct ls_event cleared = { .kind = LS_EVENT_CLEARED };
	struct ugdlm *ls = arg;

	ls_lock(ls);
	ls->cluster = c; /* cluster_join() may not have returned yet */
	switch (ev->kind) {
	case CLUSTER_UPDATE:
		on_update(ls, ev->update);
		break;
	case CLUSTER_LOST:
		if (!ls->left)
			ls_lose(ls, ev->error, "corosync: %s",
				strerror(-ev->error));
		break;
	case CLUSTER_CLEARED:
		ls_event_push(ls, &cleared);
		break;
	case CLUSTER_QUORUM:
	case CLUSTER_LEASE:
		break;
	}
	ls_check_lease(ls);
	ls_unlock(ls);
}
