/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lsworld.c - see lsworld.h */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "lsworld.h"

#define LEASE_NS 1000000000000u

struct world_message {
	struct world_message *next;
	struct incarnation from, to;
	enum link_channel channel;
	size_t len;
	uint8_t bytes[];
};

/* Of the lockspace that is being made: it has no other way to know. */
static struct world_node *booting;
static struct world *the_world;

/* The cluster: a struct cluster is a struct world_node here. */

static struct world_node *node_of(const struct cluster *c)
{
	return (struct world_node *)(uintptr_t)c;
}

static int fake_join(const struct cluster_config *config, struct cluster **out,
		     char *why, size_t why_len)
{
	booting->event = config->event;
	*out = (struct cluster *)booting;
	return 0;
}

static void fake_close(struct cluster *c)
{
	struct member_update up = { .kind = MUP_ADMITTED };
	struct cluster_event ev = { .kind = CLUSTER_UPDATE };

	ev.update = &up;
	if (node_of(c)->admitted_at_close)
		node_of(c)->event(node_of(c)->ls, c, &ev);
	node_of(c)->event = NULL;
}

static void fake_say_stopped(struct cluster *c, uint64_t generation)
{
	node_of(c)->stopped = generation;
}

static void fake_say_left(struct cluster *c, bool dirty)
{
	node_of(c)->said_left = dirty ? 2 : 1;
}

static void fake_say_link(struct cluster *c, const struct incarnation *inc,
			  bool is_silent)
{
}

static void fake_expel(struct cluster *c, const struct incarnation *inc)
{
	if (incarnation_equal(inc, &node_of(c)->inc))
		node_of(c)->expelled_itself = true;
}

static uint64_t fake_lease_ns(const struct cluster *c)
{
	const struct world_node *n = node_of(c);

	if (!n->quorate)
		return 0;
	return n->world->real ? UINT64_MAX : n->world->now_ns + LEASE_NS;
}

static const struct group_state *fake_table(const struct cluster *c)
{
	struct world *w = node_of(c)->world;

	return w->late_generation && node_of(c)->id == w->late ? &w->late_table
							       : &w->table;
}

static int fake_may_repair(struct cluster *c, char *why, size_t why_len)
{
	return 0;
}

static void fake_say_repaired(struct cluster *c)
{
}

static int fake_fence_ack(struct cluster *c, const char *node)
{
	return -ENOENT;
}

static unsigned fake_waits(struct cluster *c, struct cluster_wait *out,
			   unsigned max)
{
	out[0] = (struct cluster_wait){ .reason = CLUSTER_WAIT_DEATH };
	return 1;
}

static void fake_wait_text(const struct cluster_wait *wait, char *buf,
			   size_t len)
{
	snprintf(buf, len, "node9: a proof of its death");
}

static int fake_nodes(struct cluster_node *nodes, unsigned max)
{
	for (unsigned i = 0; i < WORLD_NODES; i++) {
		nodes[i].id = i + 1;
		snprintf(nodes[i].name, sizeof(nodes[i].name), "node%u", i + 1);
	}
	return WORLD_NODES;
}

static int fake_incarnation(struct incarnation *out)
{
	*out = booting->inc;
	return 0;
}

static int fake_life_lock(const struct life_lock_name *name,
			  const struct incarnation *holder)
{
	if (the_world->life_lock_err)
		return the_world->life_lock_err;
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static const struct ls_cluster_ops fake_cluster = {
	.join = fake_join,
	.close = fake_close,
	.say_stopped = fake_say_stopped,
	.say_left = fake_say_left,
	.say_link = fake_say_link,
	.expel = fake_expel,
	.lease_ns = fake_lease_ns,
	.table = fake_table,
	.may_repair = fake_may_repair,
	.say_repaired = fake_say_repaired,
	.fence_ack = fake_fence_ack,
	.waits = fake_waits,
	.wait_text = fake_wait_text,
	.nodes = fake_nodes,
	.incarnation = fake_incarnation,
	.life_lock = fake_life_lock,
};

/* Links: a struct links is a struct world_node, too. */

static struct world_node *node_of_links(const struct links *links)
{
	return (struct world_node *)(uintptr_t)links;
}

static int fake_open(const struct links_config *config, struct links **out,
		     struct link_addr *addr)
{
	booting->links_ops = config->ops;
	memset(booting->peer_known, 0, sizeof(booting->peer_known));
	*out = (struct links *)booting;
	*addr = config->addr;
	addr->port = (uint16_t)booting->id;
	return 0;
}

static void fake_links_close(struct links *links)
{
	node_of_links(links)->links_ops = NULL;
}

static int fake_add(struct links *links, const struct link_peer *peer)
{
	struct world_node *n = node_of_links(links);
	void *memory = malloc(1); /* so that it can fail */

	if (!memory)
		return -ENOMEM;
	free(memory);
	n->peers[peer->id].info.inc = peer->inc;
	n->peer_known[peer->id] = true;
	return 0;
}

static void drop_queue(struct world *w, unsigned from, unsigned to)
{
	while (w->queue[from][to]) {
		struct world_message *m = w->queue[from][to];

		w->queue[from][to] = m->next;
		free(m);
	}
}

static void fake_remove(struct links *links, const struct incarnation *inc)
{
	struct world_node *n = node_of_links(links);

	for (unsigned id = 1; id <= WORLD_NODES; id++) {
		if (!n->peer_known[id] ||
		    !incarnation_equal(&n->peers[id].info.inc, inc))
			continue;
		n->peer_known[id] = false;
		drop_queue(n->world, n->id, id);
	}
}

static int fake_send(struct links *links, uint32_t id,
		     enum link_channel channel, const uint8_t *bytes,
		     size_t len)
{
	struct world_node *n = node_of_links(links);
	struct world_message *m, **at;

	if (!n->peer_known[id])
		return -ENOENT;
	m = malloc(sizeof(*m) + len);
	if (!m)
		return -ENOMEM;
	m->next = NULL;
	m->from = n->inc;
	m->to = n->peers[id].info.inc;
	m->channel = channel;
	m->len = len;
	memcpy(m->bytes, bytes, len);
	for (at = &n->world->queue[n->id][id]; *at; at = &(*at)->next)
		;
	*at = m;
	return 0;
}

static void fake_push(struct links *links)
{
	node_of_links(links)->pushes++;
}

static bool fake_full(const struct links *links, uint32_t id)
{
	return node_of_links(links)->full;
}

static unsigned fake_info(struct links *links, struct link_info *out,
			  unsigned max)
{
	return 0;
}

static const struct ls_links_ops fake_links = {
	.open = fake_open,
	.close = fake_links_close,
	.add = fake_add,
	.remove = fake_remove,
	.send = fake_send,
	.push = fake_push,
	.full = fake_full,
	.info = fake_info,
};

/* The environment */

static int fake_own_addr(struct link_addr *out)
{
	*out = (struct link_addr){ .family = 4 };
	return 0;
}

static uint64_t fake_now_ns(void)
{
	return the_world->now_ns;
}

static void fake_rest(void)
{
	assert_true(the_world->rests++ < 100000);
	if (the_world->rest)
		the_world->rest(the_world);
}

static void fake_wait(struct ugdlm *ls, uint64_t until_ns)
{
	uint64_t before = the_world->now_ns;

	ls_unlock(ls);
	world_move(the_world);
	if (the_world->now_ns == before)
		world_tick(the_world, 100000000);
	ls_lock(ls);
}

static const struct ls_env fake_env = {
	.cluster = &fake_cluster,
	.links = &fake_links,
	.own_addr = fake_own_addr,
	.now_ns = fake_now_ns,
	.rest = fake_rest,
	.wait = fake_wait,
};

/* The same among real links, clocks and threads */

static int real_own_addr(struct link_addr *out)
{
	*out = (struct link_addr){ .family = 4, .bytes = { 127, 0, 0, 1 } };
	return 0;
}

static uint64_t real_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void real_rest(void)
{
	usleep(1000);
}

/* Leaving: here is nobody else who would carry it out. */
static void real_wait(struct ugdlm *ls, uint64_t until_ns)
{
	ls_unlock(ls);
	for (unsigned id = 1; id <= WORLD_NODES; id++)
		if (the_world->node[id].ls == ls)
			world_leave_if_said(the_world, id);
	usleep(1000);
	ls_lock(ls);
}

static const struct ls_links_ops real_links = {
	.open = links_open,
	.close = links_close,
	.add = links_add,
	.remove = links_remove,
	.send = links_send,
	.push = links_push,
	.full = links_full,
	.info = links_info,
};

static const struct ls_env real_env = {
	.cluster = &fake_cluster,
	.links = &real_links,
	.own_addr = real_own_addr,
	.now_ns = real_now_ns,
	.rest = real_rest,
	.wait = real_wait,
	.threads = true,
};

/* What programs are told */

static void ug_printf(2, 3) note(struct world_node *n, const char *fmt, ...)
{
	size_t len = strlen(n->log);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(n->log + len, sizeof(n->log) - len, fmt, ap);
	va_end(ap);
}

static void on_prepare(void *arg)
{
	note(arg, "prepare;");
}

static void on_gone(void *arg, const struct ugdlm_member *m, enum ugdlm_end end)
{
	static const char *const ends[] = { "clean", "dirty", "died" };

	note(arg, "gone %u slot %u %s;", m->nodeid, m->slot, ends[end]);
}

static void on_running(void *arg, uint32_t generation,
		       const struct ugdlm_member *self)
{
	struct world_node *n = arg;

	assert_int_equal(self->nodeid, n->id);
	note(arg, "running slot %u;", self->slot);
}

static void on_quorate(void *arg, bool quorate)
{
	note(arg, "quorate %d;", quorate);
}

static void on_cleared(void *arg)
{
	note(arg, "cleared;");
}

static void on_lost(void *arg, const char *why)
{
	note(arg, "lost: %s;", why);
}

static const struct ugdlm_events events = {
	.prepare = on_prepare,
	.gone = on_gone,
	.running = on_running,
	.quorate = on_quorate,
	.cleared = on_cleared,
	.lost = on_lost,
};

const char *world_log(struct world *w, unsigned id)
{
	static char text[4096];

	memcpy(text, w->node[id].log, sizeof(text));
	w->node[id].log[0] = '\0';
	return text;
}

/* Membership */

static void tell(struct world *w, unsigned id, const struct member_update *up)
{
	struct world_node *n = &w->node[id];
	struct cluster_event ev = { .kind = CLUSTER_UPDATE };

	ev.update = up;
	if (n->ls && n->event)
		n->event(n->ls, (struct cluster *)n, &ev);
}

static void tell_all(struct world *w, unsigned but,
		     const struct member_update *up)
{
	for (unsigned id = 1; id <= WORLD_NODES; id++)
		if (id != but)
			tell(w, id, up);
}

static struct member *entry(struct world *w, unsigned id)
{
	for (unsigned i = 0; i < w->table.count; i++)
		if (w->table.members[i].proc.node == id)
			return &w->table.members[i];
	return NULL;
}

static void tell_of(struct world *w, unsigned id, enum member_update_kind kind)
{
	struct member_update up = { .kind = kind, .member = *entry(w, id) };

	tell_all(w, id, &up);
}

static void change(struct world *w)
{
	struct member_update up = { .kind = MUP_CHANGE };

	up.generation = ++w->table.generation;
	w->started = false;
	tell_all(w, 0, &up);
}

static void start_if_ready(struct world *w)
{
	struct member_update up = { .kind = MUP_START };
	unsigned kept = 0;

	for (unsigned i = 0; i < w->table.count; i++) {
		const struct member *m = &w->table.members[i];

		if (m->cause == GONE_NOT ? w->node[m->proc.node].stopped !=
						   w->table.generation
					 : !m->proof)
			return;
	}
	if (w->started)
		return;
	w->started = true;
	up.generation = w->table.generation;
	tell_all(w, w->late, &up);
	if (w->late) {
		w->late_generation = up.generation;
		w->late_table = w->table;
	}
	for (unsigned i = 0; i < w->table.count; i++)
		if (w->table.members[i].cause == GONE_NOT)
			w->table.members[kept++] = w->table.members[i];
	w->table.count = kept;
}

void world_start_later(struct world *w, unsigned id)
{
	w->late = id;
}

void world_start(struct world *w)
{
	struct member_update up = { .kind = MUP_START };

	up.generation = w->late_generation;
	if (w->late_generation)
		tell(w, w->late, &up);
	w->late = 0;
	w->late_generation = 0;
}

static struct ugdlm *make(struct world *w, struct world_node *n)
{
	struct ugdlm_config config = { .name = WORLD_NAME,
				       .events = &events,
				       .arg = n,
				       .direct = w->direct };
	struct ugdlm *ls;
	char why[256] = "";

	if (w->with_uuid)
		memcpy(config.uuid, "the uuid of test", 16);
	booting = n;
	if (ls_new(&config, w->real ? &real_env : &fake_env, &ls, why,
		   sizeof(why)))
		fail_msg("new: %s", why);
	ls->plocks_kept_max = w->plocks_kept_max;
	if (ls_connect(ls, &config, why, sizeof(why)))
		fail_msg("connect: %s", why);
	booting = NULL;
	return ls;
}

void world_join(struct world *w, unsigned id)
{
	struct world_node *n = &w->node[id];
	struct member_update up = { .kind = MUP_ADMITTED };
	struct member self = { .proc = { id, 1000 + ++n->boots } };

	n->inc = (struct incarnation){ .boot_id = { 1 },
				       .pid = self.proc.pid,
				       .start_ticks = id };
	n->quorate = true;
	n->said_left = 0;
	n->expelled_itself = false;
	self.info.inc = n->inc;
	n->ls = make(w, n);
	self.info.addr = n->ls->addr;
	up.member = self;
	up.founder = w->table.count == 0;
	tell(w, id, &up);
	up.kind = MUP_JOINED;
	for (unsigned i = 0; i < w->table.count; i++) {
		up.member = w->table.members[i];
		if (up.member.cause == GONE_NOT)
			tell(w, id, &up);
	}
	w->table.members[w->table.count++] = self;
	tell_of(w, id, MUP_JOINED);
	change(w);
	start_if_ready(w);
}

void world_ask(struct world *w, unsigned id)
{
	struct world_node *n = &w->node[id];

	n->inc = (struct incarnation){ .boot_id = { 1 },
				       .pid = 1000 + ++n->boots,
				       .start_ticks = id };
	n->said_left = 0;
	n->ls = make(w, n);
}

void world_cleared(struct world *w, unsigned id)
{
	struct world_node *n = &w->node[id];
	struct cluster_event ev = { .kind = CLUSTER_CLEARED };

	n->event(n->ls, (struct cluster *)n, &ev);
}

void world_kill(struct world *w, unsigned id)
{
	struct world_node *n = &w->node[id];

	ls_disconnect(n->ls);
	if (n->ls->life_fd >= 0)
		close(n->ls->life_fd); /* as the end of a process does */
	ls_free(n->ls);
	n->ls = NULL;
}

void world_missing(struct world *w, unsigned id)
{
	tell_of(w, id, MUP_MISSING);
}

void world_back(struct world *w, unsigned id)
{
	tell_of(w, id, MUP_BACK);
}

void world_gone(struct world *w, unsigned id, enum gone_cause cause)
{
	entry(w, id)->cause = cause;
	tell_of(w, id, MUP_GONE);
	change(w);
}

void world_prove(struct world *w, unsigned id, enum death_proof proof)
{
	entry(w, id)->proof = proof;
	tell_of(w, id, MUP_PROVED);
	start_if_ready(w);
}

void world_out(struct world *w, unsigned id, enum out_cause cause)
{
	struct member_update up = { .kind = MUP_OUT };

	up.out.cause = cause;
	tell(w, id, &up);
}

void world_quorum(struct world *w, unsigned id, bool quorate)
{
	struct world_node *n = &w->node[id];
	struct cluster_event ev = { .kind = CLUSTER_LEASE };

	n->quorate = quorate;
	ev.lease = quorate;
	n->event(n->ls, (struct cluster *)n, &ev);
}

bool world_leave_if_said(struct world *w, unsigned id)
{
	struct world_node *n = &w->node[id];
	bool dirty = n->said_left == 2;

	if (!n->ls || !n->said_left)
		return false;
	n->said_left = 0;
	world_out(w, id, OUT_LEFT);
	entry(w, id)->cause = GONE_LEFT;
	tell_of(w, id, MUP_GONE);
	entry(w, id)->proof = dirty ? PROOF_LEFT_DIRTY : PROOF_LEFT;
	tell_of(w, id, MUP_PROVED);
	n->ls = NULL; /* ugdlm_leave() frees it */
	change(w);
	start_if_ready(w);
	return true;
}

/* Movement */

bool world_deliver(struct world *w, unsigned from, unsigned to)
{
	struct world_message *m = w->queue[from][to];
	struct world_node *n = &w->node[to];
	struct link_peer peer = { .id = from };
	int err = 0;

	if (!m)
		return false;
	w->queue[from][to] = m->next;
	if (n->ls && n->links_ops && n->peer_known[from] &&
	    incarnation_equal(&m->to, &n->inc) &&
	    incarnation_equal(&m->from, &n->peers[from].info.inc)) {
		peer.inc = m->from;
		err = n->links_ops->receive(n->ls, &peer, m->channel, m->bytes,
					    m->len);
		if (w->refusing)
			n->links_ops->refused(n->ls, &peer, "another key");
		n->links_ops->pause(n->ls);
	}
	assert_int_equal(err, 0);
	free(m);
	return true;
}

static bool deliver_round(struct world *w)
{
	bool any = false;

	for (unsigned from = 1; from <= WORLD_NODES; from++)
		for (unsigned to = 1; to <= WORLD_NODES; to++)
			any |= world_deliver(w, from, to);
	for (unsigned id = 1; id <= WORLD_NODES; id++)
		any |= world_leave_if_said(w, id);
	return any;
}

void world_tick(struct world *w, uint64_t ns)
{
	w->now_ns += ns;
	for (unsigned id = 1; id <= WORLD_NODES; id++) {
		struct ugdlm *ls = w->node[id].ls;

		if (!ls)
			continue;
		ls_lock(ls);
		ls_tick(ls);
		ls_unlock(ls);
	}
}

unsigned world_dispatch(struct world *w, unsigned id)
{
	return w->node[id].ls ? (unsigned)ugdlm_dispatch(w->node[id].ls, 1000)
			      : 0;
}

void world_dispatch_some(struct world *w, unsigned id, unsigned max)
{
	if (w->node[id].ls)
		ugdlm_dispatch(w->node[id].ls, max);
}

/*
 * Recovery polls, and what had no memory is tried again: let time pass. A
 * member that is dead is asked for ever.
 */
static void move(struct world *w, bool dispatch)
{
	unsigned ticks = 0;

	for (unsigned quiet = 0; quiet < 20 && ticks < 500;) {
		bool any = deliver_round(w);

		for (unsigned id = 1; dispatch && id <= WORLD_NODES; id++)
			any |= world_dispatch(w, id) > 0;
		quiet = any ? 0 : quiet + 1;
		if (!any) {
			world_tick(w, 20000000);
			ticks++;
		}
	}
}

void world_move(struct world *w)
{
	move(w, false);
}

void world_settle(struct world *w)
{
	move(w, true);
}

void world_room(struct world *w, unsigned id)
{
	struct world_node *n = &w->node[id];

	n->full = false;
	for (unsigned peer = 1; peer <= WORLD_NODES; peer++)
		if (n->peer_known[peer])
			n->links_ops->room(n->ls, peer);
}

struct world *world_new(unsigned n, bool with_uuid)
{
	struct world *w = calloc(1, sizeof(*w));

	w->now_ns = 1000000000;
	w->with_uuid = with_uuid;
	the_world = w;
	for (unsigned id = 1; id <= WORLD_NODES; id++) {
		w->node[id].world = w;
		w->node[id].id = id;
	}
	for (unsigned id = 1; id <= n; id++) {
		world_join(w, id);
		world_settle(w);
	}
	for (unsigned id = 1; id <= n; id++)
		world_log(w, id);
	return w;
}

struct world *world_new_real(void)
{
	struct world *w = world_new(0, true);

	w->real = true;
	return w;
}

void world_free(struct world *w)
{
	for (unsigned id = 1; id <= WORLD_NODES; id++)
		if (w->node[id].ls)
			world_kill(w, id);
	for (unsigned from = 1; from <= WORLD_NODES; from++)
		for (unsigned to = 1; to <= WORLD_NODES; to++)
			drop_queue(w, from, to);
	free(w);
}

/* Locks */

void test_lock_ast(void *ctx, struct ugdlm_lksb *lksb)
{
	struct test_lock *lock = ctx;

	assert_ptr_equal(lksb, &lock->lksb);
	assert_int_not_equal(lksb->status, UGDLM_INPROGRESS);
	lock->asts++;
}

void test_lock_bast(void *ctx, struct ugdlm_lksb *lksb, enum ugdlm_mode blocked)
{
	struct test_lock *lock = ctx;

	lock->basts++;
	lock->blocked = blocked;
}

int lock_request(struct world *w, unsigned id, struct test_lock *lock,
		 const char *name, enum ugdlm_mode mode, uint32_t flags)
{
	struct ugdlm_request req = {
		.mode = mode,
		.flags = flags,
		.name = name,
		.name_len = strlen(name),
		.lksb = &lock->lksb,
		.ast = test_lock_ast,
		.bast = test_lock_bast,
		.ctx = lock,
		.timeout_ms = flags & UGDLM_TIMEOUT ? 1000 : 0,
	};

	lock->ls = w->node[id].ls;
	return ugdlm_lock(lock->ls, &req);
}

int lock_convert(struct test_lock *lock, enum ugdlm_mode mode, uint32_t flags)
{
	struct ugdlm_request req = {
		.mode = mode,
		.flags = flags | UGDLM_CONVERT,
		.lksb = &lock->lksb,
		.ast = test_lock_ast,
		.bast = test_lock_bast,
		.ctx = lock,
		.timeout_ms = flags & UGDLM_TIMEOUT ? 1000 : 0,
	};

	return ugdlm_lock(lock->ls, &req);
}

int lock_unlock(struct test_lock *lock, uint32_t flags)
{
	return ugdlm_unlock(lock->ls, &lock->lksb, flags, false);
}

void lock_expect(const struct test_lock *lock, enum ugdlm_status status,
		 enum ugdlm_mode mode)
{
	assert_int_equal(lock->lksb.status, status);
	assert_int_equal(lock->lksb.mode, mode);
}

const char *world_name(unsigned n, unsigned dir)
{
	static char names[WORLD_NODES + 1][8];

	for (unsigned i = 0; i < 100; i++) {
		snprintf(names[dir], sizeof(names[dir]), "r%u", i);
		if ((dlm_hash(names[dir], strlen(names[dir])) >> 16) % n + 1 ==
		    dir)
			return names[dir];
	}
	return NULL;
}
