/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * membership_status.c - what a membership is like, for people.
 *
 * The lockspace is asked without our lock, and can go away meanwhile: whoever
 * leaves it while the mount stays waits for those who ask.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/membership_impl.h"

void membership_await_askers(struct membership *m)
{
	pthread_mutex_lock(&m->lock);
	m->ls_going = true;
	while (m->asking)
		pthread_cond_wait(&m->changed, &m->lock);
	pthread_mutex_unlock(&m->lock);
}

static json_t *ask_lockspace(struct membership *m)
{
	json_t *root = NULL;
	char *text;
	bool going;

	pthread_mutex_lock(&m->lock);
	going = m->ls_going;
	m->asking += !going;
	pthread_mutex_unlock(&m->lock);
	if (going)
		return NULL;
	if (!ugdlm_status_json(m->ls, &text)) {
		root = json_loads(text, 0, NULL);
		free(text);
	}
	pthread_mutex_lock(&m->lock);
	m->asking--;
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
	return root;
}

void membership_others(struct membership *m, char *buf, size_t len)
{
	json_t *ls = ask_lockspace(m);
	const json_t *member;
	size_t i, used = 0;

	snprintf(buf, len, "?");
	json_array_foreach(json_object_get(ls, "members"), i, member)
	{
		const char *state =
			json_string_value(json_object_get(member, "state"));
		const char *name =
			json_string_value(json_object_get(member, "name"));

		if (!state || strcmp(state, "member") || !name || used >= len)
			continue;
		used += (size_t)snprintf(buf + used, len - used, "%s%s",
					 used ? ", " : "", name);
	}
	json_decref(ls);
}

/* The lock is held. */
static void add_journals(struct membership *m, json_t *waits, uint64_t now)
{
	char text[2 * WHY_LEN];

	for (unsigned i = 0; i < m->dirty_count; i++) {
		unsigned jid = m->dirty[i] - 1u;
		uint64_t since = m->gone_ns[jid % SLOTS_MAX];

		snprintf(text, sizeof(text), "journal %u to be recovered%s%s",
			 jid, m->complaint[0] && i == 0 ? ": " : "",
			 i == 0 ? m->complaint : "");
		json_array_append_new(
			waits,
			json_pack("{s:s%,s:i,s:I}", "text", text, strlen(text),
				  "journal", (int)jid, "for_ms",
				  (json_int_t)((now - since) / NS_PER_MS)));
	}
}

json_t *membership_status(struct membership *m)
{
	json_t *ls = ask_lockspace(m), *waits;
	json_t *root = json_pack("{s:i}", "slot", (int)m->slot);
	uint64_t now = now_ns();

	waits = ls ? json_incref(json_object_get(ls, "waiting_for")) : NULL;
	if (!waits)
		waits = json_array();
	if (ls) {
		json_object_del(ls, "waiting_for");
		json_object_set_new(root, "cluster", ls);
	}
	pthread_mutex_lock(&m->lock);
	add_journals(m, waits, now);
	if (m->lost)
		json_object_set_new(root, "expelled", json_string(m->lost_why));
	if (!m->quorate && m->has_run && !m->lost && !m->left)
		json_object_set_new(
			root, "without_quorum_for_ms",
			json_integer((json_int_t)((now - m->quorate_ns) /
						  NS_PER_MS)));
	pthread_mutex_unlock(&m->lock);
	json_object_set_new(root, "waiting_for", waits);
	return root;
}
