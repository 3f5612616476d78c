/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * glwaits.c - who has been waiting for long.
 *
 * Nothing is kept for this: it is asked for by people, and reads what the state
 * machine has noted anyway. Of demotions only those count that nothing but a
 * holder's work can hold up for long: iopen, journal and the like are held for
 * as long as a file is open, or a volume mounted, and say no by being held.
 */
#include "glock/glock_impl.h"

struct search {
	uint64_t before_ns;
	struct glock_wait *waits;
	unsigned max;
	unsigned count; /* in waits */
	unsigned found;
};

/* Sorted in, the oldest first; the youngest goes if there is no room. */
static void add(struct search *search, const struct glock_wait *wait)
{
	unsigned i;

	search->found++;
	if (search->count == search->max) {
		if (!search->max ||
		    search->waits[search->max - 1].since_ns <= wait->since_ns)
			return;
		search->count--;
	}
	i = search->count++;
	while (i && search->waits[i - 1].since_ns > wait->since_ns) {
		search->waits[i] = search->waits[i - 1];
		i--;
	}
	search->waits[i] = *wait;
}

static bool is_given_away_soon(const struct glock *gl)
{
	switch (gl->gl_ops->type) {
	case LM_TYPE_INODE:
	case LM_TYPE_RGRP:
	case LM_TYPE_META:
	case LM_TYPE_QUOTA:
		return true;
	case LM_TYPE_NONDISK:
	case LM_TYPE_IOPEN:
	case LM_TYPE_FLOCK:
	case LM_TYPE_JOURNAL:
		return false;
	}
	return false;
}

/* gl_lock is held. */
static void look_at(struct search *search, const struct glock *gl)
{
	struct glock_wait wait = {
		.type = gl->gl_ops->type,
		.number = gl->gl_number,
	};
	const struct glock_holder *gh;

	if ((gl->gl_flags & (GLF_DEMOTE | GLF_PENDING_DEMOTE)) &&
	    (gl->gl_flags & GLF_REMOTE) && is_given_away_soon(gl) &&
	    gl->gl_demote_ns < search->before_ns) {
		wait.demotion = true;
		wait.state = gl->gl_demote_state;
		wait.since_ns = gl->gl_demote_ns;
		add(search, &wait);
	}
	wait.demotion = false;
	cds_list_for_each_entry (gh, &gl->gl_holders, gh_list) {
		if (gh->gh_granted || !gh->gh_queued_ns ||
		    gh->gh_queued_ns >= search->before_ns)
			continue;
		wait.state = gh->gh_state;
		wait.since_ns = gh->gh_queued_ns;
		add(search, &wait);
	}
}

unsigned glock_table_waits(struct glock_table *table, uint64_t before_ns,
			   struct glock_wait *waits, unsigned max)
{
	struct search search = {
		.before_ns = before_ns,
		.waits = waits,
		.max = max,
	};

	for (unsigned s = 0; s < GLOCK_SHARDS; s++) {
		struct glock_shard *shard = &table->shards[s];
		struct glock *gl = NULL;

		pthread_mutex_lock(&shard->lock);
		while ((gl = glock_shard_next(shard, gl))) {
			pthread_mutex_lock(&gl->gl_lock);
			look_at(&search, gl);
			pthread_mutex_unlock(&gl->gl_lock);
		}
		pthread_mutex_unlock(&shard->lock);
	}
	return search.found;
}
