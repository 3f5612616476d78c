/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mount_verbs.c - what a mount process does when it is asked.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/applocks.h"
#include "daemon/mount_server.h"
#include "glock/glock.h"
#include "glock/glstat.h"

#define NAMES_LEN 512

/* ---- status ---- */

static int run_status(void *arg, struct control_call *call, const json_t *args)
{
	struct mount_server *server = arg;
	json_t *status;
	int err = control_args(call, args, "{}");

	if (err)
		return err;
	pthread_rwlock_rdlock(&server->parts_lock);
	status = mount_status(server);
	pthread_rwlock_unlock(&server->parts_lock);
	return control_result(call, status);
}

/*
 * The file system, which stays until release(). NULL: it has been said that
 * there is none.
 */
static struct fs *acquire(struct mount_server *server,
			  struct control_call *call)
{
	pthread_rwlock_rdlock(&server->parts_lock);
	if (server->parts.fs)
		return server->parts.fs;
	pthread_rwlock_unlock(&server->parts_lock);
	control_fail(call, -EAGAIN, "%s is being mounted or unmounted",
		     server->source);
	return NULL;
}

/* The same, of a volume that is in use and not being mounted or unmounted. */
static struct fs *acquire_mounted(struct mount_server *server,
				  struct control_call *call)
{
	struct fs *fs = acquire(server, call);

	if (!fs || server->state == MOUNT_SERVING)
		return fs;
	pthread_rwlock_unlock(&server->parts_lock);
	control_fail(call, -EAGAIN, "%s is being mounted or unmounted",
		     server->source);
	return NULL;
}

static void release(struct mount_server *server)
{
	pthread_rwlock_unlock(&server->parts_lock);
}

/* ---- glocks ---- */

static void add_line(void *arg, const char *text)
{
	fprintf(arg, "%s\n", text);
}

/* One step; the file system may have gone since the last one. */
static int dump_step(struct mount_server *server, struct control_call *call,
		     struct glock_dump *dump, char **text, bool *more)
{
	struct fs *fs = acquire(server, call);
	size_t len;

	if (!fs)
		return -EAGAIN;
	dump->arg = open_memstream(text, &len);
	*more = dump->arg && glock_table_dump(fs_glock_table(fs), dump);
	release(server);
	if (!dump->arg || fclose(dump->arg))
		return control_fail(call, -ENOMEM, "out of memory");
	return 0;
}

/* Nothing is held while the client takes its time. */
static int run_lockdump(void *arg, struct control_call *call,
			const json_t *args)
{
	struct glock_dump dump = { .line = add_line };
	bool more = true;
	int err = control_args(call, args, "{}");

	while (!err && more) {
		char *text = NULL;

		err = dump_step(arg, call, &dump, &text, &more);
		if (!err && text && *text &&
		    control_text(call, text, strlen(text)))
			err = control_fail(call, -ECONNRESET,
					   "the dump could not be sent");
		free(text);
	}
	return err ? err : control_result(call, json_true());
}

static const struct {
	const char *name;
	enum lm_type type;
} types[] = {
	{ "nondisk", LM_TYPE_NONDISK }, { "inode", LM_TYPE_INODE },
	{ "rgrp", LM_TYPE_RGRP },	{ "meta", LM_TYPE_META },
	{ "iopen", LM_TYPE_IOPEN },	{ "flock", LM_TYPE_FLOCK },
	{ "quota", LM_TYPE_QUOTA },	{ "journal", LM_TYPE_JOURNAL },
};

static json_t *histogram(const uint64_t *slots)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < GLOCK_HIST_SLOTS; i++)
		json_array_append_new(array,
				      json_integer((json_int_t)slots[i]));
	return array;
}

static json_t *type_stats(struct glock_table *table, enum lm_type type)
{
	struct glock_type_stats st;
	json_t *root;

	glock_table_stats(table, type, &st);
	root = json_pack(
		"{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "unlocked",
		(json_int_t)st.in_state[LM_ST_UNLOCKED], "shared",
		(json_int_t)st.in_state[LM_ST_SHARED], "deferred",
		(json_int_t)st.in_state[LM_ST_DEFERRED], "exclusive",
		(json_int_t)st.in_state[LM_ST_EXCLUSIVE], "requests",
		(json_int_t)st.requests, "busy", (json_int_t)st.busy,
		"deadlocks", (json_int_t)st.deadlocks, "cancelled",
		(json_int_t)st.cancelled, "callbacks", (json_int_t)st.callbacks,
		"delayed", (json_int_t)st.delayed, "given_away",
		(json_int_t)st.given_away, "put_away", (json_int_t)st.put_away);
	json_object_set_new(root, "wait_ns", histogram(st.wait_ns));
	json_object_set_new(root, "answer_ns", histogram(st.answer_ns));
	return root;
}

static int run_lockstats(void *arg, struct control_call *call,
			 const json_t *args)
{
	json_t *root = json_object();
	int err = control_args(call, args, "{}");
	struct fs *fs = err ? NULL : acquire(arg, call);

	if (!fs) {
		json_decref(root);
		return err ? err : -EAGAIN;
	}
	for (size_t i = 0; i < UG_ARRAY_SIZE(types); i++)
		json_object_set_new(
			root, types[i].name,
			type_stats(fs_glock_table(fs), types[i].type));
	release(arg);
	return control_result(call, root);
}

/* ---- application locks ---- */

static int plocks_text(struct mount_server *server, struct control_call *call,
		       char **text)
{
	int err;

	if (!acquire_mounted(server, call))
		return -EAGAIN;
	if (!server->parts.membership)
		err = control_fail(call, -EOPNOTSUPP,
				   "%s is not clustered: its locks are the "
				   "kernel's, in /proc/locks",
				   server->source);
	else
		err = applocks_json(
			membership_applocks(server->parts.membership), text);
	release(server);
	if (err == -ESHUTDOWN)
		control_fail(call, err, "%s is out of the cluster",
			     server->source);
	else if (err == -ENOMEM)
		control_fail(call, err, "out of memory");
	return err;
}

static int run_plocks(void *arg, struct control_call *call, const json_t *args)
{
	char *text = NULL;
	int err = control_args(call, args, "{}");

	if (!err)
		err = plocks_text(arg, call, &text);
	if (!err)
		err = control_result(call, json_loads(text, 0, NULL));
	free(text);
	return err;
}

/* ---- tunables ---- */

/* The i-th one of the file system, then of application locks. */
static bool tunable_at(struct mount_server *server, struct fs *fs, unsigned i,
		       struct fs_tunable *out)
{
	struct plock_settings set;
	unsigned count = 0;

	while (fs_tunable(fs, count, out))
		if (count++ == i)
			return true;
	if (!server->parts.membership)
		return false;
	set = membership_settings(server->parts.membership);
	for (unsigned s = 0; s < PLOCKSET_COUNT; s++) {
		const struct plock_setting_info *info = &plock_setting_infos[s];

		if (!info->tunable || count++ != i)
			continue;
		*out = (struct fs_tunable){ .name = info->name,
					    .unit = info->unit,
					    .value = set.value[s],
					    .min = info->min,
					    .max = info->max };
		return true;
	}
	return false;
}

static int run_gettune(void *arg, struct control_call *call, const json_t *args)
{
	json_t *list = json_array();
	struct fs_tunable tunable;
	int err = control_args(call, args, "{}");
	struct fs *fs = err ? NULL : acquire(arg, call);

	if (!fs) {
		json_decref(list);
		return err ? err : -EAGAIN;
	}
	for (unsigned i = 0; tunable_at(arg, fs, i, &tunable); i++)
		json_array_append_new(
			list,
			json_pack("{s:s,s:I,s:s,s:I,s:I}", "name", tunable.name,
				  "value", (json_int_t)tunable.value, "unit",
				  tunable.unit, "min", (json_int_t)tunable.min,
				  "max", (json_int_t)tunable.max));
	release(arg);
	return control_result(call, list);
}

static bool find_tunable(struct mount_server *server, struct fs *fs,
			 const char *name, struct fs_tunable *out,
			 char names[NAMES_LEN])
{
	size_t used = 0;

	names[0] = '\0';
	for (unsigned i = 0; tunable_at(server, fs, i, out); i++) {
		if (!strcmp(out->name, name))
			return true;
		if (used < NAMES_LEN)
			used += (size_t)snprintf(names + used, NAMES_LEN - used,
						 "%s%s", i ? ", " : "",
						 out->name);
	}
	return false;
}

/* A number and nothing else. */
static bool parse_value(const char *text, unsigned *value)
{
	char *end;
	unsigned long long number;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	number = strtoull(text, &end, 10);
	*value = (unsigned)number;
	return !errno && !*end && number <= UINT32_MAX;
}

/* In range? Then it is so from now on. */
static bool tune(struct mount_server *server, struct fs *fs,
		 const struct fs_tunable *tunable, unsigned value)
{
	enum plock_setting which;

	if (!plock_setting_find(tunable->name, strlen(tunable->name), &which))
		return !fs_tune(fs, tunable->name, value);
	if (value < tunable->min || value > tunable->max)
		return false;
	membership_tune(server->parts.membership, which, value);
	return true;
}

static int settune(struct mount_server *server, struct control_call *call,
		   struct fs *fs, const char *name, const char *text)
{
	char names[NAMES_LEN];
	struct fs_tunable was;
	enum plock_setting which;
	unsigned value;

	if (plock_setting_find(name, strlen(name), &which) &&
	    !plock_setting_infos[which].tunable)
		return control_fail(call, -EINVAL,
				    "%s cannot be changed while mounted", name);
	if (!find_tunable(server, fs, name, &was, names))
		return control_fail(call, -EINVAL,
				    "no tunable \"%s\"; there are: %s", name,
				    names);
	if (!parse_value(text, &value) || !tune(server, fs, &was, value))
		return control_fail(call, -EINVAL,
				    "%s cannot be \"%s\": a number from %u to "
				    "%u (%s)",
				    name, text, was.min, was.max, was.unit);
	ug_info(server->who, "%s set to %u, it was %u", name, value, was.value);
	return control_result(call, json_pack("{s:s,s:I}", "name", name,
					      "value", (json_int_t)value));
}

static int run_settune(void *arg, struct control_call *call, const json_t *args)
{
	const char *name, *text;
	struct fs *fs;
	int err = control_args(call, args, "{s:s,s:s}", "name", &name, "value",
			       &text);

	if (err)
		return err;
	fs = acquire(arg, call);
	if (!fs)
		return -EAGAIN;
	err = settune(arg, call, fs, name, text);
	release(arg);
	return err;
}

/* ---- freezing ---- */

/* Waits for other nodes: nothing of the process is held meanwhile. */
static int run_freeze(void *arg, struct control_call *call, const json_t *args)
{
	struct mount_server *server = arg;
	int err = control_args(call, args, "{}");

	if (!err && !acquire_mounted(server, call))
		return -EAGAIN;
	if (err)
		return err;
	release(server);
	err = freezer_freeze(&server->freezer, call);
	return err ? err : control_result(call, json_true());
}

/* Also of a mount that has been unmounted, and waits for it. */
static int run_unfreeze(void *arg, struct control_call *call,
			const json_t *args)
{
	struct mount_server *server = arg;
	int err = control_args(call, args, "{}");

	if (!err)
		err = freezer_thaw(&server->freezer, call);
	return err ? err : control_result(call, json_true());
}

/* ---- withdraw ---- */

static int run_withdraw(void *arg, struct control_call *call,
			const json_t *args)
{
	struct fs *fs;
	int err = control_args(call, args, "{}");

	if (err)
		return err;
	fs = acquire_mounted(arg, call);
	if (!fs)
		return -EAGAIN;
	if (fs_is_withdrawn(fs))
		err = control_fail(call, -EALREADY, "it has withdrawn before");
	else
		fs_withdraw(fs, "an administrator has said so");
	release(arg);
	return err ? err : control_result(call, json_true());
}

const struct control_verb mount_verbs[] = {
	{ "status", run_status },	{ "lockdump", run_lockdump },
	{ "lockstats", run_lockstats }, { "plocks", run_plocks },
	{ "gettune", run_gettune },	{ "settune", run_settune },
	{ "freeze", run_freeze },	{ "unfreeze", run_unfreeze },
	{ "withdraw", run_withdraw },	{ NULL, NULL },
};
