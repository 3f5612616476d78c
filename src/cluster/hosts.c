/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hosts.c - see hosts.h.
 *
 * A fence of a host is a proof for those who were missed there before it began.
 * It is one for others only while the host has not been in the ring since it
 * succeeded: then nothing that was on it can live, and nothing new can be. The
 * same goes for an administrator's word.
 *
 * The start-up rule needs a fact about each configured host, once: that no
 * process of before this group can write to the volume. That is known when the
 * host has been fenced, or an administrator has spoken for it, since this
 * process began to listen; or when a process of ours there has found no life
 * lock of the volume held but by members. Later processes of the host can only
 * be members of this group, since it is in one ring with them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "cluster/hosts.h"

#define SEC_NS 1000000000u
/* Before this the supervisor of the host itself is expected to answer. */
#define OWN_PROOF_NS (5 * (uint64_t)SEC_NS)
/* A holder can be a member that is not known here yet, or is just leaving. */
#define STRANGER_NS (3 * (uint64_t)SEC_NS)
/* Supervisors that have begun with a host; only one of them really has. */
#define BEGUN_MAX 8
/* Those configured, and those that were. */
#define HOSTS_MAX (2 * GROUP_PROCS_MAX)

struct stranger {
	struct group_holder holder;
	uint64_t since_ns;
	bool seen; /* in the last survey of its host */
};

/* A fence that began: it covers those who were missed by then. */
struct begun {
	struct group_proc actor;
	uint64_t order;
};

struct host {
	uint32_t node;
	bool configured;
	bool in_ring;
	bool down; /* fenced or acknowledged, and not in the ring since */
	bool clear;
	enum fence_state fence; /* the last that was heard */
	uint32_t by;
	unsigned tries;
	int status;
	unsigned begun_count;
	struct begun begun[BEGUN_MAX];
	bool more; /* than the last survey could name */
	unsigned strangers_count;
	struct stranger strangers[GROUP_HOLDERS_MAX];
};

/* One who is gone without a proof. */
struct search {
	struct incarnation inc;
	uint32_t node;
	uint64_t since_ns;
	uint64_t order; /* of its being missed, among fences that begin */
	bool proved;
	bool told;
};

struct sup {
	struct group_proc proc;
	uint32_t child;
	enum fence_kind kind;
};

struct hosts {
	struct hosts_config config;
	uint64_t order; /* counts what is ordered */
	bool too_many;	/* configured nodes: some are not known of here */
	unsigned count;
	struct host list[HOSTS_MAX];
	unsigned searches_count;
	struct search searches[GROUP_MEMBERS_MAX];
	unsigned sups_count;
	struct sup sups[GROUP_PROCS_MAX];
	uint32_t live_count; /* members */
	struct {
		struct group_proc proc;
		struct incarnation inc;
	} live[GROUP_MEMBERS_MAX];
	uint64_t startup_ns; /* 0: not looked after */
};

struct hosts *hosts_new(const struct hosts_config *config)
{
	struct hosts *h = calloc(1, sizeof(*h));

	if (h)
		h->config = *config;
	return h;
}

void hosts_free(struct hosts *h)
{
	free(h);
}

static struct host *find_host(struct hosts *h, uint32_t node)
{
	for (unsigned i = 0; i < h->count; i++)
		if (h->list[i].node == node)
			return &h->list[i];
	return NULL;
}

/* NULL: no room for more. */
static struct host *get_host(struct hosts *h, uint32_t node)
{
	struct host *host = find_host(h, node);

	if (host || h->count == UG_ARRAY_SIZE(h->list))
		return host;
	host = &h->list[h->count++];
	memset(host, 0, sizeof(*host));
	host->node = node;
	return host;
}

void hosts_nodes(struct hosts *h, const struct cluster_node *nodes,
		 unsigned count)
{
	for (unsigned i = 0; i < h->count; i++)
		h->list[i].configured = false;
	for (unsigned i = 0; i < count; i++) {
		struct host *host = get_host(h, nodes[i].id);

		if (host)
			host->configured = true;
		else
			h->too_many = true;
	}
}

void hosts_ring(struct hosts *h, const uint32_t *nodes, unsigned count)
{
	for (unsigned i = 0; i < h->count; i++)
		h->list[i].in_ring = false;
	for (unsigned i = 0; i < count; i++) {
		struct host *host = get_host(h, nodes[i]);

		if (!host)
			continue;
		host->in_ring = true;
		host->down = false;
	}
}

/* The table */

static bool is_live(const struct hosts *h, const struct incarnation *inc)
{
	for (uint32_t i = 0; i < h->live_count; i++)
		if (incarnation_equal(&h->live[i].inc, inc))
			return true;
	return false;
}

static struct search *find_search(struct hosts *h,
				  const struct incarnation *inc)
{
	for (unsigned i = 0; i < h->searches_count; i++)
		if (incarnation_equal(&h->searches[i].inc, inc))
			return &h->searches[i];
	return NULL;
}

static void keep_search(struct hosts *h, struct search *kept, unsigned *count,
			const struct member *member, uint64_t now_ns)
{
	const struct search *was = find_search(h, &member->info.inc);
	const struct host *host = find_host(h, member->proc.node);
	struct search search = {
		.inc = member->info.inc,
		.node = member->proc.node,
		.since_ns = now_ns,
		.order = ++h->order,
		.proved = host && host->down,
	};

	kept[(*count)++] = was ? *was : search;
}

/* Nobody is searched for there any more: what has failed is no news. */
static void forget_failures(struct hosts *h)
{
	for (unsigned i = 0; i < h->count; i++) {
		struct host *host = &h->list[i];
		bool wanted = hosts_want_survey(h) && !host->clear;

		for (unsigned j = 0; j < h->searches_count; j++)
			wanted |= h->searches[j].node == host->node;
		if (host->fence == FENCE_FAILED && !wanted)
			host->fence = FENCE_IDLE;
	}
}

void hosts_table(struct hosts *h, const struct group_state *table,
		 uint64_t now_ns)
{
	struct search kept[GROUP_MEMBERS_MAX];
	unsigned count = 0;

	h->live_count = 0;
	for (uint32_t i = 0; table && i < table->count; i++) {
		const struct member *member = &table->members[i];

		if (member->cause == GONE_NOT) {
			h->live[h->live_count].proc = member->proc;
			h->live[h->live_count++].inc = member->info.inc;
		} else if (!member->proof) {
			keep_search(h, kept, &count, member, now_ns);
		}
	}
	memcpy(h->searches, kept, count * sizeof(*kept));
	h->searches_count = count;
	forget_failures(h);
}

bool hosts_take_proof(struct hosts *h, struct incarnation *inc)
{
	for (unsigned i = 0; i < h->searches_count; i++) {
		struct search *search = &h->searches[i];

		if (!search->proved || search->told)
			continue;
		search->told = true;
		*inc = search->inc;
		return true;
	}
	return false;
}

/* What is said */

static bool is_among(const struct group_proc *list, unsigned count,
		     struct group_proc proc)
{
	for (unsigned i = 0; i < count; i++)
		if (list[i].node == proc.node && list[i].pid == proc.pid)
			return true;
	return false;
}

/* Whoever is gone ends nothing any more. */
static void drop_begun(struct host *host, const struct group_proc *list,
		       unsigned count)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < host->begun_count; i++)
		if (is_among(list, count, host->begun[i].actor))
			host->begun[kept++] = host->begun[i];
	host->begun_count = kept;
	if (host->fence == FENCE_BEGUN && !kept)
		host->fence = FENCE_IDLE;
}

void hosts_procs(struct hosts *h, const struct group_proc *list, unsigned count)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < h->sups_count; i++)
		if (is_among(list, count, h->sups[i].proc))
			h->sups[kept++] = h->sups[i];
	h->sups_count = kept;
	for (unsigned i = 0; i < h->count; i++)
		drop_begun(&h->list[i], list, count);
}

static void on_supervisor(struct hosts *h, struct group_proc from,
			  const struct group_supervisor *said)
{
	struct sup sup = { from, said->child, said->fence };

	for (unsigned i = 0; i < h->sups_count; i++) {
		if (h->sups[i].proc.node != from.node ||
		    h->sups[i].proc.pid != from.pid)
			continue;
		h->sups[i] = sup;
		return;
	}
	if (h->sups_count < GROUP_PROCS_MAX)
		h->sups[h->sups_count++] = sup;
}

/* Those missed there before this point of the order have ended. */
static void host_is_down(struct hosts *h, struct host *host, uint64_t order)
{
	host->down = !host->in_ring;
	host->clear = true;
	host->strangers_count = 0;
	host->fence = FENCE_IDLE;
	host->tries = 0;
	host->begun_count = 0;
	for (unsigned i = 0; i < h->searches_count; i++) {
		struct search *search = &h->searches[i];

		if (search->node == host->node &&
		    (search->order < order || host->down))
			search->proved = true;
	}
}

static struct begun *find_begun(struct host *host, struct group_proc actor)
{
	for (unsigned i = 0; i < host->begun_count; i++)
		if (is_among(&actor, 1, host->begun[i].actor))
			return &host->begun[i];
	return NULL;
}

/* Two can say so at once; which of them begins really is not known here. */
static void note_begun(struct hosts *h, struct host *host,
		       struct group_proc actor)
{
	struct begun *begun = find_begun(host, actor);

	if (!begun && host->begun_count < BEGUN_MAX)
		begun = &host->begun[host->begun_count++];
	if (begun)
		*begun = (struct begun){ actor, ++h->order };
}

static void forget_begun(struct host *host, struct group_proc actor)
{
	struct begun *begun = find_begun(host, actor);

	if (begun)
		*begun = host->begun[--host->begun_count];
}

static void on_fence(struct hosts *h, struct group_proc from,
		     const struct group_fence *fence)
{
	struct host *host = get_host(h, fence->node);
	struct begun *begun;

	if (!host)
		return;
	if (fence->state == FENCE_DONE) {
		/* One that began before this process listened counts not. */
		begun = find_begun(host, from);
		if (begun)
			host_is_down(h, host, begun->order);
		return;
	}
	if (fence->state == FENCE_BEGUN)
		note_begun(h, host, from);
	else
		forget_begun(host, from);
	host->fence = fence->state;
	host->by = from.node;
	host->tries = fence->tries;
	host->status = fence->status;
}

static void note_stranger(struct host *host, const struct group_holder *holder,
			  uint64_t now_ns)
{
	for (unsigned i = 0; i < host->strangers_count; i++) {
		struct stranger *s = &host->strangers[i];

		if (!incarnation_equal(&s->holder.inc, &holder->inc))
			continue;
		s->seen = true;
		return;
	}
	if (host->strangers_count < GROUP_HOLDERS_MAX)
		host->strangers[host->strangers_count++] =
			(struct stranger){ *holder, now_ns, true };
}

static void drop_unseen(struct host *host)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < host->strangers_count; i++)
		if (host->strangers[i].seen)
			host->strangers[kept++] = host->strangers[i];
	host->strangers_count = kept;
}

/* Those of the table who are gone are looked after as such. */
static void on_holders(struct hosts *h, uint32_t node,
		       const struct group_holders *said, uint64_t now_ns)
{
	struct host *host = get_host(h, node);

	if (!host || host->clear || !h->startup_ns ||
	    memcmp(said->uuid, h->config.uuid, sizeof(said->uuid)))
		return;
	for (unsigned i = 0; i < host->strangers_count; i++)
		host->strangers[i].seen = false;
	for (unsigned i = 0; i < said->count; i++)
		if (!is_live(h, &said->list[i].inc) &&
		    !find_search(h, &said->list[i].inc))
			note_stranger(host, &said->list[i], now_ns);
	drop_unseen(host);
	host->more = said->more;
	host->clear = !host->strangers_count && !host->more;
}

/* Its supervisor may have been the last that could answer a survey there. */
static void on_dead(struct hosts *h, const struct incarnation *inc)
{
	for (unsigned i = 0; i < h->count; i++) {
		struct host *host = &h->list[i];
		unsigned j = 0;

		while (j < host->strangers_count &&
		       !incarnation_equal(&host->strangers[j].holder.inc, inc))
			j++;
		if (j == host->strangers_count)
			continue;
		host->strangers[j] = host->strangers[--host->strangers_count];
		host->clear = !host->strangers_count && !host->more;
	}
}

void hosts_message(struct hosts *h, struct group_proc from,
		   const struct group_msg *msg, uint64_t now_ns)
{
	struct host *host;

	switch (msg->type) {
	case GM_SUPERVISOR:
		on_supervisor(h, from, &msg->supervisor);
		break;
	case GM_FENCE:
		on_fence(h, from, &msg->fence);
		break;
	case GM_FENCE_ACK:
		host = get_host(h, msg->node);
		if (host)
			host_is_down(h, host, UINT64_MAX);
		break;
	case GM_DEAD:
		on_dead(h, &msg->dead.inc);
		break;
	case GM_HOLDERS:
		on_holders(h, from.node, &msg->holders, now_ns);
		break;
	default:
		break;
	}
}

/* The start-up rule */

void hosts_begin_startup(struct hosts *h, uint64_t now_ns)
{
	if (!h->startup_ns)
		h->startup_ns = now_ns;
}

bool hosts_are_clear(const struct hosts *h)
{
	bool any = false;

	for (unsigned i = 0; i < h->count; i++) {
		if (h->too_many || (h->list[i].configured && !h->list[i].clear))
			return false;
		any |= h->list[i].configured;
	}
	return h->startup_ns && any;
}

bool hosts_want_survey(const struct hosts *h)
{
	return h->startup_ns && !hosts_are_clear(h);
}

/* Its time to come up as a member is over. */
static bool is_overdue(const struct hosts *h, uint64_t now_ns)
{
	return now_ns >= h->startup_ns + h->config.startup_delay_ns;
}

unsigned hosts_asks(const struct hosts *h, uint64_t now_ns,
		    struct group_ask *asks, unsigned max)
{
	unsigned n = 0;

	for (unsigned i = 0; hosts_want_survey(h) && i < h->count; i++) {
		const struct host *host = &h->list[i];
		struct group_ask ask = { .proc = { host->node, 0 } };

		if (host->clear || !host->configured)
			continue;
		memcpy(ask.uuid, h->config.uuid, sizeof(ask.uuid));
		for (unsigned j = 0; j < host->strangers_count; j++) {
			const struct stranger *s = &host->strangers[j];

			if (now_ns < s->since_ns + STRANGER_NS || n == max)
				continue;
			ask.proc.pid = s->holder.inc.pid;
			ask.inc = s->holder.inc;
			ask.instance = s->holder.instance;
			asks[n++] = ask;
		}
		if (!host->strangers_count && n < max &&
		    is_overdue(h, now_ns) && host->node != h->config.self.node)
			asks[n++] = ask;
	}
	return n;
}

/* What is waited for */

/* The best that supervisors of members on other hosts can do about it. */
static enum fence_kind best_kind(const struct hosts *h, uint32_t node)
{
	enum fence_kind best = FENCE_NONE;

	for (unsigned i = 0; i < h->sups_count; i++) {
		const struct sup *sup = &h->sups[i];

		for (uint32_t j = 0; j < h->live_count; j++)
			if (sup->proc.node != node && sup->kind > best &&
			    h->live[j].proc.node == sup->proc.node &&
			    h->live[j].proc.pid == sup->child)
				best = sup->kind;
	}
	return best;
}

/* No host fences itself, nor can an administrator say there that it is down. */
static bool is_alone(const struct hosts *h, uint32_t node)
{
	if (node != h->config.self.node)
		return false;
	for (uint32_t i = 0; i < h->live_count; i++)
		if (h->live[i].proc.node != node)
			return false;
	return true;
}

static void set_reason(const struct hosts *h, const struct host *host,
		       uint64_t asked_ns, uint64_t now_ns,
		       struct cluster_wait *wait)
{
	wait->reason = CLUSTER_WAIT_DEATH;
	if (host && host->fence) {
		wait->reason = host->fence == FENCE_BEGUN ? CLUSTER_WAIT_FENCE
							  : CLUSTER_WAIT_RETRY;
		wait->by = host->by;
		wait->tries = host->tries;
		wait->status = host->status;
		return;
	}
	if (now_ns < asked_ns + OWN_PROOF_NS)
		return;
	switch (best_kind(h, wait->node)) {
	case FENCE_NONE:
		wait->reason = is_alone(h, wait->node) ? CLUSTER_WAIT_ALONE
						       : CLUSTER_WAIT_NOFENCE;
		break;
	case FENCE_MANUAL:
		wait->reason = CLUSTER_WAIT_MANUAL;
		break;
	case FENCE_COMMAND:
		break;
	}
}

static unsigned startup_waits(const struct hosts *h, const struct host *host,
			      uint64_t now_ns, struct cluster_wait *out,
			      unsigned max)
{
	uint64_t overdue_ns = h->startup_ns + h->config.startup_delay_ns;
	struct cluster_wait wait = { .node = host->node,
				     .since_ns = h->startup_ns };
	unsigned n = 0;

	for (unsigned i = 0; i < host->strangers_count && n < max; i++) {
		const struct stranger *s = &host->strangers[i];

		wait.inc = s->holder.inc;
		wait.since_ns = s->since_ns;
		set_reason(h, host, s->since_ns + STRANGER_NS, now_ns, &wait);
		out[n++] = wait;
	}
	if (host->strangers_count || !max)
		return n;
	if (!is_overdue(h, now_ns) && !host->fence)
		wait.reason = CLUSTER_WAIT_STARTUP;
	else
		set_reason(h, host, overdue_ns, now_ns, &wait);
	out[0] = wait;
	return 1;
}

unsigned hosts_waits(const struct hosts *h, uint64_t now_ns,
		     struct cluster_wait *out, unsigned max)
{
	unsigned n = 0;

	for (unsigned i = 0; i < h->searches_count && n < max; i++) {
		const struct search *search = &h->searches[i];
		struct cluster_wait wait = { .node = search->node,
					     .inc = search->inc,
					     .since_ns = search->since_ns };

		if (search->proved)
			continue;
		set_reason(h, find_host((struct hosts *)h, search->node),
			   search->since_ns, now_ns, &wait);
		out[n++] = wait;
	}
	for (unsigned i = 0; hosts_want_survey(h) && i < h->count; i++)
		if (h->list[i].configured && !h->list[i].clear)
			n += startup_waits(h, &h->list[i], now_ns, out + n,
					   max - n);
	return n;
}
