/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * reach.c - members whose links to each other are broken: which of them goes.
 *
 *	A		B		C
 *	|---LINK(B silent)------------->|	all keep it for this view
 *	|		|---LINK(HERE)->|	B has heard it: so B is alive
 *	|		|---LINK(A silent)->|
 *	| ... REPORTS_GATHER_NS ...	|
 *	|---JUDGE---------------------->|	all compute the same from what
 *						came before it, and expel B
 *
 * A link is broken if either end says so. Expelled is, of those with a broken
 * link, one that has not answered a report about itself (it hangs); then the
 * one with the most broken links; then the one with the highest id; and so on
 * until no link is broken. The judgement is a message and not the passing of
 * time, because only messages are in one order for all. Reports are of a view:
 * whoever makes one makes it again in the next.
 * Source: docs/spec/cluster.md 2.12.
 */
#include <string.h>

#include "base/compiler.h"
#include "cluster/member_impl.h"

void reach_view_begins(struct membership *m)
{
	m->reports.count = 0;
	m->reports.judged_ns = 0;
}

static bool is_live(const struct membership *m, const struct incarnation *inc)
{
	const struct member *member = membership_find(m, inc);

	return member && member->cause == GONE_NOT;
}

static void say(struct membership *m, const struct incarnation *about,
		enum link_state state)
{
	struct group_msg *msg = send_add(m, GM_LINK);

	msg->link.about = *about;
	msg->link.state = state;
}

/* Those who are gone meanwhile are nobody's concern any more. */
void reach_say_again(struct membership *m)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < m->silent_count; i++) {
		if (!is_live(m, &m->silent[i]))
			continue;
		m->silent[kept++] = m->silent[i];
		say(m, &m->silent[i], LINK_SILENT);
	}
	m->silent_count = kept;
}

static unsigned find_own(const struct membership *m,
			 const struct incarnation *inc)
{
	unsigned i = 0;

	while (i < m->silent_count && !incarnation_equal(&m->silent[i], inc))
		i++;
	return i;
}

void reach_own(struct membership *m, const struct incarnation *inc, bool silent)
{
	unsigned i = find_own(m, inc);

	if (!m->has_state || silent == (i < m->silent_count))
		return;
	if (!silent) {
		m->silent[i] = m->silent[--m->silent_count];
		say(m, inc, LINK_WELL);
	} else if (m->silent_count < GROUP_PROCS_MAX && is_live(m, inc) &&
		   !incarnation_equal(inc, &m->config.info.inc)) {
		m->silent[m->silent_count++] = *inc;
		say(m, inc, LINK_SILENT);
	}
}

/* Reports that say nothing about the group as it is now. */
static void drop_void(struct membership *m)
{
	struct reports *reports = &m->reports;
	unsigned kept = 0;

	for (unsigned i = 0; m->has_state && i < reports->count; i++) {
		struct report *report = &reports->list[i];

		if (is_live(m, &report->about) &&
		    roster_find_live(m, report->from))
			reports->list[kept++] = *report;
	}
	if (m->has_state)
		reports->count = kept;
}

static struct report *find_report(struct reports *reports,
				  struct group_proc from,
				  const struct incarnation *about)
{
	for (unsigned i = 0; i < reports->count; i++)
		if (proc_equal(reports->list[i].from, from) &&
		    incarnation_equal(&reports->list[i].about, about))
			return &reports->list[i];
	return NULL;
}

static void add_report(struct membership *m, struct group_proc from,
		       const struct incarnation *about, uint64_t now_ns)
{
	struct reports *reports = &m->reports;

	if (find_report(reports, from, about) || reports->count == REPORTS_MAX)
		return;
	if (!reports->count) {
		reports->since_ns = now_ns;
		reports->judged_ns = 0;
	}
	reports->list[reports->count++] =
		(struct report){ .from = from, .about = *about };
	if (incarnation_equal(about, &m->config.info.inc))
		say(m, about, LINK_HERE);
}

void reach_report(struct membership *m, struct group_proc from,
		  const struct group_link *link, uint64_t now_ns)
{
	struct reports *reports = &m->reports;
	struct report *report;

	drop_void(m);
	switch (link->state) {
	case LINK_SILENT:
		add_report(m, from, &link->about, now_ns);
		break;
	case LINK_WELL:
		report = find_report(reports, from, &link->about);
		if (report)
			*report = reports->list[--reports->count];
		break;
	case LINK_HERE:
		for (unsigned i = 0; i < reports->count; i++)
			if (incarnation_equal(&reports->list[i].about,
					      &link->about))
				reports->list[i].answered = true;
		break;
	}
}

static bool are_apart(struct membership *m, const struct member *a,
		      const struct member *b)
{
	return find_report(&m->reports, a->proc, &b->info.inc) ||
	       find_report(&m->reports, b->proc, &a->info.inc);
}

static unsigned broken_links(struct membership *m, const struct member *a)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < m->table.count; i++) {
		const struct member *b = &m->table.members[i];

		n += b != a && b->cause == GONE_NOT && are_apart(m, a, b);
	}
	return n;
}

static bool keeps_silent(const struct membership *m, const struct member *a)
{
	for (unsigned i = 0; i < m->reports.count; i++) {
		const struct report *report = &m->reports.list[i];

		if (!report->answered &&
		    incarnation_equal(&report->about, &a->info.inc))
			return true;
	}
	return false;
}

struct standing {
	struct member *member;
	bool silent;
	unsigned broken;
};

static bool is_worse(const struct standing *a, const struct standing *b)
{
	if (!b->member || a->silent != b->silent)
		return !b->member || a->silent;
	if (a->broken != b->broken)
		return a->broken > b->broken;
	return member_id(a->member) > member_id(b->member);
}

static struct member *find_worst(struct membership *m)
{
	struct standing worst = { 0 };

	for (uint32_t i = 0; i < m->table.count; i++) {
		struct member *member = &m->table.members[i];
		struct standing s = { member, false, 0 };

		if (member->cause != GONE_NOT)
			continue;
		s.broken = broken_links(m, member);
		s.silent = keeps_silent(m, member);
		if (s.broken && is_worse(&s, &worst))
			worst = s;
	}
	return worst.member;
}

void reach_judge(struct membership *m)
{
	struct member *worst;
	bool any = false;

	if (!m->deciding || !m->has_state)
		return;
	drop_void(m);
	while ((worst = find_worst(m))) {
		struct view_proc *vp = view_find(m, worst->proc);

		if (incarnation_equal(&worst->info.inc, &m->config.info.inc)) {
			go_out(m, OUT_EXPELLED);
			return;
		}
		if (vp)
			vp->excluded = true;
		roster_gone(m, worst, GONE_EXPELLED);
		any = true;
		drop_void(m);
	}
	if (any)
		roster_decided(m);
}

uint64_t reach_wake_ns(const struct membership *m)
{
	const struct reports *reports = &m->reports;
	int rank = view_rank(m);

	if (!membership_settled(m) || !reports->count || rank < 0)
		return UINT64_MAX;
	if (reports->judged_ns)
		return reports->judged_ns + REPORTS_GATHER_NS;
	return reports->since_ns + REPORTS_GATHER_NS + (uint64_t)rank * RANK_NS;
}

void reach_tick(struct membership *m, uint64_t now_ns)
{
	if (now_ns < reach_wake_ns(m))
		return;
	m->reports.judged_ns = now_ns;
	drop_void(m);
	if (m->reports.count)
		send_add(m, GM_JUDGE);
}
