/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * member_impl.h - the inside of a membership, for member.c, view.c, roster.c.
 */
#ifndef UG_CLUSTER_MEMBER_IMPL_H
#define UG_CLUSTER_MEMBER_IMPL_H

#include "cluster/member.h"

/* What the lowest process does not do, the next one does so much later. */
#define RANK_NS 1000000000u

/* A process of the view, and what it has said in it. */
struct view_proc {
	struct group_proc proc;
	bool heard;	/* hello is valid */
	bool alien;	/* speaks another major version: not waited for */
	bool excluded;	/* expelled: not waited for, not listened to */
	unsigned order; /* of its first HELLO in this view, from 1 */
	struct group_hello hello;
};

/*
 * A view is a list of processes within one ring. It ends with every change of
 * either. All processes of a view have had the same messages in it.
 */
struct view {
	struct view_id id;
	unsigned nodes_count;
	uint32_t nodes[GROUP_PROCS_MAX];
	unsigned count;
	struct view_proc procs[GROUP_PROCS_MAX]; /* ascending */
	unsigned heard;				 /* HELLOs so far, first ones */
	bool quorate;				 /* what was said last */
	bool settled; /* it was quorate when nobody was waited for any more */
	uint64_t since_ns;
	uint64_t expelled_ns; /* silent ones were expelled last, 0 = never */
};

/* A link that its end calls silent, as said in this view. */
struct report {
	struct group_proc from;
	struct incarnation about;
	bool answered; /* the one it is about has said that it is here */
};

struct reports {
	unsigned count;
	struct report list[REPORTS_MAX];
	uint64_t since_ns;  /* of the first of them */
	uint64_t judged_ns; /* asked for a judgement last, 0 = not yet */
};

struct saved_msg {
	struct group_proc from;
	struct group_msg msg;
};

struct membership {
	struct membership_config config;
	bool out;			/* MUP_OUT was given */
	bool failed;			/* an update is lost */
	struct member_updates *updates; /* of the current step */

	struct view view;
	struct {
		struct ring_id ring;
		bool quorate;
	} quorum; /* as told locally, last */

	struct reports reports;
	unsigned silent_count; /* own links that are silent */
	struct incarnation silent[GROUP_PROCS_MAX];

	bool deciding; /* the settled view is quorate, as far as applied */
	bool has_state;
	struct group_state table;
	bool missing[GROUP_MEMBERS_MAX]; /* of the table: reported gone */
	bool changed; /* members changed since the generation did */
	uint16_t minor;
	uint64_t own_stopped;
	uint64_t started; /* generation of the last MUP_START */

	bool waiting; /* for a GM_STATE of this base: */
	struct group_base expected;
	unsigned saved_count;
	struct saved_msg saved[GROUP_SAVED_MAX];
};

/* member.c */
struct member_update *member_update_add(struct membership *m,
					enum member_update_kind kind);
struct group_msg *send_add(struct membership *m, enum group_msg_type type);
void member_update(struct membership *m, enum member_update_kind kind,
		   const struct member *member);
void go_out(struct membership *m, enum out_cause cause);
bool proc_equal(struct group_proc a, struct group_proc b);

/* view.c: what the processes of the view have said */
void view_config(struct membership *m, const struct member_event *ev);
void view_ring(struct membership *m, const struct member_event *ev);
void view_quorum(struct membership *m, const struct member_event *ev);
void view_hello(struct membership *m, struct group_proc from,
		const struct group_hello *hello, uint64_t now_ns);
void view_alien(struct membership *m, struct group_proc from, uint16_t major,
		bool has_state);
void view_exclude(struct membership *m, const struct group_expel *expel);
void view_settle_if_complete(struct membership *m);
void view_expel_silent(struct membership *m, uint64_t now_ns);
struct view_proc *view_find(struct membership *m, struct group_proc proc);
bool proc_is_silent(const struct view_proc *vp);

/* How many that are heard come before this process; -1: it is not heard. */
int view_rank(const struct membership *m);

/* reach.c: links that are broken, and who has to go for it */
void reach_view_begins(struct membership *m);
void reach_say_again(struct membership *m);
void reach_own(struct membership *m, const struct incarnation *inc,
	       bool silent);
void reach_report(struct membership *m, struct group_proc from,
		  const struct group_link *link, uint64_t now_ns);
void reach_judge(struct membership *m);
void reach_tick(struct membership *m, uint64_t now_ns);
uint64_t reach_wake_ns(const struct membership *m);

/* roster.c: the table */
struct member *roster_find(struct membership *m, const struct incarnation *inc);
struct member *roster_find_live(struct membership *m, struct group_proc proc);
void roster_settle(struct membership *m);
void roster_adopt(struct membership *m, const struct group_state *state);
void roster_decided(struct membership *m);
void roster_missing(struct membership *m, const struct group_left *left);
void roster_gone(struct membership *m, struct member *member,
		 enum gone_cause cause);
void roster_prove(struct membership *m, struct member *member,
		  enum death_proof proof);
void roster_start_if_ready(struct membership *m);

/* base_compare() > 0: a is later. */
int base_compare(const struct group_base *a, const struct group_base *b);

#endif
