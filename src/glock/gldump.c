/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gldump.c - glocks as text, in the format of GFS2's debugfs file, and the
 * check of their invariants.
 *
 *   G:  s:SH n:2/2015c f:Dqon t:SH d:UN/1200 r:3 m:10
 *    H: s:SH f:nH e:0
 *    H: s:EX f:W e:0 w:350
 *    D: m:PR k:10003
 *
 * Fields that GFS2 has and we have not are left out; its readers go by the
 * key letter (docs/spec/glocks.md 8.2). Ours are w:, us since a waiter came,
 * and the D: line, what the lock manager says (13.7). A step's text is made
 * under the lock of a shard, for some hundred glocks, and handed out without.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "glock/glock_impl.h"

/* Glocks in a step: some 100 us with a shard's lock, 50 KB of text. */
#define STEP_GLOCKS 512u

static const char *const state_name[] = {
	[LM_ST_UNLOCKED] = "UN",
	[LM_ST_EXCLUSIVE] = "EX",
	[LM_ST_DEFERRED] = "DF",
	[LM_ST_SHARED] = "SH",
};

struct letter {
	unsigned flag;
	char letter;
};

static const struct letter glock_letters[] = {
	{ GLF_LOCK, 'l' },
	{ GLF_DEMOTE, 'D' },
	{ GLF_PENDING_DEMOTE, 'd' },
	{ GLF_RECALLING, 'k' },
	{ GLF_DEMOTE_IN_PROGRESS, 'p' },
	{ GLF_INVALIDATE_IN_PROGRESS, 'i' },
	{ GLF_REPLY_PENDING, 'r' },
	{ GLF_FROZEN, 'F' },
	{ GLF_INSTANTIATE_NEEDED, 'n' },
	{ GLF_INSTANTIATE_IN_PROG, 'N' },
	{ GLF_CANCELLED, 'C' },
};

static const struct letter holder_letters[] = {
	{ GL_TRY, 't' },	{ GL_TRY_1CB, 'T' }, { GL_NOEXP, 'e' },
	{ GL_ANY, 'A' },	{ GL_ASYNC, 'a' },   { GL_EXACT, 'E' },
	{ GL_NODE_SCOPE, 'n' }, { GL_NOCACHE, 'c' }, { GL_SKIP, 's' },
};

static void put_letters(FILE *out, unsigned flags, const struct letter *letters,
			size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (flags & letters[i].flag)
			fputc(letters[i].letter, out);
	}
}

static void put_holder(FILE *out, const struct glock_holder *gh, uint64_t now)
{
	fprintf(out, " H: s:%s f:", state_name[gh->gh_state]);
	put_letters(out, gh->gh_flags, holder_letters,
		    UG_ARRAY_SIZE(holder_letters));
	fprintf(out, "%c e:%d", gh->gh_granted ? 'H' : 'W', gh->gh_error);
	if (!gh->gh_granted && gh->gh_queued_ns)
		fprintf(out, " w:%llu",
			(unsigned long long)(now - gh->gh_queued_ns) / 1000);
	fputc('\n', out);
}

static void put_lock(FILE *out, const struct glock *gl)
{
	const struct lockmod *mod = &gl->gl_table->mod;
	char line[128];

	if (mod->ops->describe &&
	    mod->ops->describe(mod->mod, gl, line, sizeof(line)))
		fprintf(out, " D: %s\n", line);
}

/* gl_lock is held. */
static void put_glock(FILE *out, const struct glock *gl)
{
	const struct glock_holder *gh;
	uint64_t now = glock_now_ns();
	uint64_t demote_us = 0;

	if (gl->gl_flags & (GLF_DEMOTE | GLF_PENDING_DEMOTE))
		demote_us = (now - gl->gl_demote_ns) / 1000;
	fprintf(out, "G:  s:%s n:%u/%llx f:", state_name[gl->gl_state],
		gl->gl_ops->type, (unsigned long long)gl->gl_number);
	put_letters(out, gl->gl_flags, glock_letters,
		    UG_ARRAY_SIZE(glock_letters));
	fprintf(out, "%s%s%s t:%s d:%s/%llu r:%u m:%u\n",
		gl->gl_dirty ? "y" : "",
		gl->gl_granted || gl->gl_waiting ? "q" : "",
		glock_object(gl) ? "o" : "", state_name[gl->gl_target],
		state_name[gl->gl_demote_state], (unsigned long long)demote_us,
		gl->gl_refs, gl->gl_hold_ms);
	cds_list_for_each_entry (gh, &gl->gl_holders, gh_list)
		put_holder(out, gh, now);
	put_lock(out, gl);
}

/*
 * A shard's buckets as of when its dump began. Growing splits a bucket in two,
 * whose numbers differ by the old count or a multiple of it: both are dumped
 * with the first of them. Returns false at the end of the shard.
 */
static bool put_buckets(FILE *out, struct glock_shard *shard,
			struct glock_dump *at, unsigned *visited)
{
	pthread_mutex_lock(&shard->lock);
	if (!at->buckets)
		at->buckets = shard->buckets_count;
	while (at->bucket < at->buckets && *visited < STEP_GLOCKS) {
		for (size_t i = at->bucket; i < shard->buckets_count;
		     i += at->buckets) {
			struct glock *gl = shard->buckets[i];

			for (; gl; gl = gl->gl_hash_next) {
				pthread_mutex_lock(&gl->gl_lock);
				put_glock(out, gl);
				pthread_mutex_unlock(&gl->gl_lock);
				(*visited)++;
			}
		}
		at->bucket++;
	}
	pthread_mutex_unlock(&shard->lock);
	return at->bucket < at->buckets;
}

static bool put_step(FILE *out, struct glock_table *table,
		     struct glock_dump *at)
{
	unsigned visited = 0;

	while (at->shard < GLOCK_SHARDS && visited < STEP_GLOCKS) {
		if (put_buckets(out, &table->shards[at->shard], at, &visited))
			return true;
		at->shard++;
		at->bucket = at->buckets = 0;
	}
	return at->shard < GLOCK_SHARDS;
}

static void hand_out(const struct glock_dump *out, char *text)
{
	char *save = NULL;
	char *line = strtok_r(text, "\n", &save);

	for (; line; line = strtok_r(NULL, "\n", &save))
		out->line(out->arg, line);
}

bool glock_table_dump(struct glock_table *table, struct glock_dump *out)
{
	char *text = NULL;
	size_t len;
	FILE *mem = open_memstream(&text, &len);
	bool more = mem && put_step(mem, table, out);

	/* Short of memory the text is cut: better than none. */
	if (mem)
		fclose(mem);
	if (text)
		hand_out(out, text);
	free(text);
	if (!more) {
		out->shard = 0;
		out->bucket = out->buckets = 0;
	}
	return more;
}

/* gl_lock is held. */
static void check_holder(const struct glock *gl, const struct glock_holder *gh)
{
	ug_assert(gh->gh_gl == gl);
	ug_assert(gh->gh_error == 0);
	ug_assert(gh->gh_state != LM_ST_UNLOCKED);
	if (!gh->gh_granted)
		return;
	ug_assert(gh->gh_state == gl->gl_granted_state);
	ug_assert(gl->gl_state == gh->gh_state ||
		  gl->gl_state == LM_ST_EXCLUSIVE ||
		  ((gh->gh_flags & GL_ANY) && gl->gl_state != LM_ST_UNLOCKED));
	if (gh->gh_state == LM_ST_EXCLUSIVE && gl->gl_granted > 1)
		ug_assert(gh->gh_flags & GL_NODE_SCOPE);
}

static void check_glock(const struct glock *gl)
{
	const struct glock_holder *gh;
	unsigned granted = 0, waiting = 0;

	cds_list_for_each_entry (gh, &gl->gl_holders, gh_list) {
		check_holder(gl, gh);
		/* The granted ones stand in front. */
		ug_assert(!gh->gh_granted || !waiting);
		granted += gh->gh_granted;
		waiting += !gh->gh_granted;
	}
	ug_assert(granted == gl->gl_granted);
	ug_assert(waiting == gl->gl_waiting);
	/* Nobody holds while the state changes. */
	ug_assert(!(gl->gl_flags & GLF_LOCK) || !granted);
	ug_assert(!(gl->gl_flags & GLF_DEMOTE_IN_PROGRESS) ||
		  (gl->gl_flags & GLF_LOCK));
	ug_assert(!(gl->gl_flags & GLF_REPLY_PENDING) ||
		  (gl->gl_flags & GLF_LOCK));
	ug_assert(!(gl->gl_flags & GLF_INSTANTIATE_IN_PROG) || granted);
	/* Nobody waits without a reason that somebody will end. */
	ug_assert(!waiting || granted ||
		  (gl->gl_flags & (GLF_BUSY | GLF_QUEUED | GLF_RECALLING)));
	/*
	 * The same for another node, when nobody has the glock. A pin: its wish
	 * is being told to the object, in glock_callback().
	 */
	ug_assert(!(gl->gl_flags & (GLF_DEMOTE | GLF_PENDING_DEMOTE)) ||
		  granted || gl->gl_pins ||
		  (gl->gl_flags &
		   (GLF_BUSY | GLF_QUEUED | GLF_RECALLING | GLF_WITHDRAWN)));
	ug_assert(!(gl->gl_flags & GLF_PENDING_DEMOTE) ||
		  !(gl->gl_flags & GLF_DEMOTE));
	ug_assert(!(gl->gl_flags & GLF_FROZEN) ||
		  (gl->gl_flags & GLF_REPLY_PENDING));
}

void glock_table_check(struct glock_table *table)
{
	for (unsigned s = 0; s < GLOCK_SHARDS; s++) {
		struct glock_shard *shard = &table->shards[s];
		struct glock *gl = NULL;
		size_t count = 0;

		pthread_mutex_lock(&shard->lock);
		while ((gl = glock_shard_next(shard, gl))) {
			pthread_mutex_lock(&gl->gl_lock);
			check_glock(gl);
			pthread_mutex_unlock(&gl->gl_lock);
			count++;
		}
		ug_assert(count == shard->count);
		pthread_mutex_unlock(&shard->lock);
	}
}
