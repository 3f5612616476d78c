/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlm_hand.c - see dlm_hand.h.
 *
 *   new or busy   the thread of a command has it; nobody else touches it
 *   idle          held in some mode, in the list
 *   gone          freed by the command that ended it
 *
 * busy changes under hand->lock. The lksb is the library's while an operation
 * is under way; then only the ast says that it is over, and when the lockspace
 * ends first, the lock stays in the list for hand_free().
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <urcu/list.h>

#include "base/compiler.h"
#include "daemon/dlm_hand.h"
#include "daemon/dlm_options.h"

/* A lock that is not there after this time gets the user a word about it. */
#define PATIENCE_MS 300
/* A cancel takes a round trip, unless members change just then. */
#define CANCEL_MS 10000

struct hand {
	pthread_rwlock_t ls_lock; /* ls; held while the library is called */
	struct ugdlm *ls;
	pthread_mutex_t lock; /* all that follows */
	struct cds_list_head locks;
	unsigned count;
	unsigned last_id;
};

struct held {
	struct cds_list_head list;
	struct hand *hand;
	unsigned id;
	bool busy;
	bool blocking; /* a bast has come for the mode that is held */
	enum ugdlm_mode blocked;
	int fd; /* readable: an ast has come, or the lockspace ends */
	char name[UGDLM_NAME_MAX + 1];
	struct ugdlm_lksb lksb;
};

struct hand *hand_new(void)
{
	struct hand *hand = calloc(1, sizeof(*hand));

	if (!hand)
		return NULL;
	pthread_rwlock_init(&hand->ls_lock, NULL);
	pthread_mutex_init(&hand->lock, NULL);
	CDS_INIT_LIST_HEAD(&hand->locks);
	return hand;
}

static void held_free(struct held *held)
{
	close(held->fd);
	free(held);
}

void hand_free(struct hand *hand)
{
	struct held *held, *next;

	if (!hand)
		return;
	cds_list_for_each_entry_safe (held, next, &hand->locks, list)
		held_free(held);
	pthread_mutex_destroy(&hand->lock);
	pthread_rwlock_destroy(&hand->ls_lock);
	free(hand);
}

static void ring(struct held *held)
{
	/* It can only fail when it is readable already. */
	if (eventfd_write(held->fd, 1))
		return;
}

void hand_set_lockspace(struct hand *hand, struct ugdlm *ls)
{
	struct held *held;

	pthread_rwlock_wrlock(&hand->ls_lock);
	hand->ls = ls;
	pthread_rwlock_unlock(&hand->ls_lock);
	if (ls)
		return;
	pthread_mutex_lock(&hand->lock);
	cds_list_for_each_entry (held, &hand->locks, list)
		ring(held);
	pthread_mutex_unlock(&hand->lock);
}

unsigned hand_count(struct hand *hand)
{
	unsigned count;

	pthread_mutex_lock(&hand->lock);
	count = hand->count;
	pthread_mutex_unlock(&hand->lock);
	return count;
}

/* Finding */

static struct held *find(struct hand *hand, unsigned id)
{
	struct held *held;

	cds_list_for_each_entry (held, &hand->locks, list)
		if (held->id == id)
			return held;
	return NULL;
}

/* The caller has it until held_done(). */
static struct held *take(struct hand *hand, struct control_call *call,
			 unsigned id, int *err)
{
	struct held *held;

	pthread_mutex_lock(&hand->lock);
	held = find(hand, id);
	if (!held)
		*err = control_fail(call, -ENOENT, "there is no lock %u", id);
	else if (held->busy)
		*err = control_fail(call, -EBUSY,
				    "another command works on lock %u", id);
	else
		held->busy = true;
	pthread_mutex_unlock(&hand->lock);
	return *err ? NULL : held;
}

static struct held *make(struct hand *hand, struct control_call *call,
			 const char *name, int *err)
{
	struct held *held = calloc(1, sizeof(*held));

	if (held)
		held->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!held || held->fd < 0) {
		free(held);
		*err = control_fail(call, -ENOMEM,
				    "out of memory or descriptors");
		return NULL;
	}
	held->hand = hand;
	held->busy = true;
	held->lksb.mode = UGDLM_IV;
	snprintf(held->name, sizeof(held->name), "%s", name);
	pthread_mutex_lock(&hand->lock);
	if (hand->count < HAND_LOCKS_MAX) {
		held->id = ++hand->last_id;
		hand->count++;
		cds_list_add_tail(&held->list, &hand->locks);
	} else {
		*err = control_fail(call, -ENOSPC,
				    "%u locks are held by hand, more are "
				    "refused",
				    HAND_LOCKS_MAX);
	}
	pthread_mutex_unlock(&hand->lock);
	if (*err)
		held_free(held);
	return *err ? NULL : held;
}

/* The operation is over; without a mode the lock is, too. */
static void held_done(struct held *held)
{
	struct hand *hand = held->hand;
	bool gone = held->lksb.mode == UGDLM_IV;

	pthread_mutex_lock(&hand->lock);
	held->busy = false;
	if (gone) {
		cds_list_del(&held->list);
		hand->count--;
	}
	pthread_mutex_unlock(&hand->lock);
	if (gone)
		held_free(held);
}

/* Callbacks, on the thread that dispatches */

static void on_ast(void *ctx, struct ugdlm_lksb *lksb)
{
	ring(ctx);
}

static void on_bast(void *ctx, struct ugdlm_lksb *lksb, enum ugdlm_mode blocked)
{
	struct held *held = ctx;

	pthread_mutex_lock(&held->hand->lock);
	held->blocking = true;
	held->blocked = blocked;
	pthread_mutex_unlock(&held->hand->lock);
}

/* Calls into the library */

static int call_lock(struct held *held, const struct ugdlm_request *req)
{
	struct hand *hand = held->hand;
	int err = -ESHUTDOWN;

	pthread_rwlock_rdlock(&hand->ls_lock);
	if (hand->ls)
		err = ugdlm_lock(hand->ls, req);
	pthread_rwlock_unlock(&hand->ls_lock);
	return err;
}

static int call_unlock(struct held *held, uint32_t flags)
{
	struct hand *hand = held->hand;
	int err = -ESHUTDOWN;

	pthread_rwlock_rdlock(&hand->ls_lock);
	if (hand->ls)
		err = ugdlm_unlock(hand->ls, &held->lksb, flags, true);
	pthread_rwlock_unlock(&hand->ls_lock);
	return err;
}

static bool lockspace_ends(struct hand *hand)
{
	bool ends;

	pthread_rwlock_rdlock(&hand->ls_lock);
	ends = !hand->ls;
	pthread_rwlock_unlock(&hand->ls_lock);
	return ends;
}

static int say_refused(struct control_call *call, int err)
{
	switch (err) {
	case -EINVAL:
		return control_fail(call, err,
				    "mode and flags do not go together");
	case -ESHUTDOWN:
		return control_fail(call, err,
				    "the lockspace is lost or being left");
	case -ENOENT:
		return control_fail(call, err, "there is no such lock");
	default:
		return control_fail(call, err, "%s", strerror(-err));
	}
}

/* As control_wait(), for the ast. */
static int wait_ast(struct held *held, struct control_call *call, int ms)
{
	int err = control_wait(call, held->fd, ms);
	eventfd_t count;

	if (err)
		return err;
	if (eventfd_read(held->fd, &count))
		return control_fail(call, -EIO, "eventfd: %s", strerror(errno));
	return lockspace_ends(held->hand) ? -ESHUTDOWN : 0;
}

/* Ask for the end of what waits. The ast has come: 0. */
static int cancel(struct held *held, struct control_call *call)
{
	int err = call_unlock(held, UGDLM_CANCEL);

	/* 1: over at once. -ENOENT: it has ended and left nothing. */
	if (err == 1)
		return 0;
	if (err && err != -ENOENT)
		return say_refused(call, err);
	err = wait_ast(held, call, CANCEL_MS);
	/* The client's end is no reason to leave the lock behind. */
	while (err == -ECONNRESET)
		err = poll(&(struct pollfd){ held->fd, POLLIN, 0 }, 1,
			   CANCEL_MS) > 0
			      ? 0
			      : -ETIMEDOUT;
	return err;
}

/* The operation goes on in the library; the words are for who waits. */
static int await(struct held *held, struct control_call *call, int timeout_ms,
		 bool *timed_out)
{
	int first =
		timeout_ms < 0 ? PATIENCE_MS : UG_MIN(timeout_ms, PATIENCE_MS);
	int err = wait_ast(held, call, first), cancel_err;

	if (err == -ETIMEDOUT && (timeout_ms < 0 || timeout_ms > first)) {
		control_note(call, "lock %u on \"%s\" waits", held->id,
			     held->name);
		err = wait_ast(held, call,
			       timeout_ms < 0 ? -1 : timeout_ms - first);
	}
	if (err != -ETIMEDOUT && err != -ECONNRESET)
		return err;
	*timed_out = true;
	cancel_err = cancel(held, call);
	return cancel_err == -ETIMEDOUT
		       ? control_fail(call, -ETIMEDOUT,
				      "lock %u waits, and its cancel too: "
				      "members change, or quorum is missing",
				      held->id)
		       : cancel_err;
}

/* JSON */

static const char *status_word(enum ugdlm_status status, bool timed_out)
{
	static const char *const words[] = {
		[UGDLM_OK] = "granted",
		[UGDLM_NOTQUEUED] = "not queued",
		[UGDLM_DEADLOCK] = "deadlock",
		[UGDLM_CANCELLED] = "cancelled",
		[UGDLM_TIMEDOUT] = "timed out",
		[UGDLM_UNLOCKED] = "unlocked",
		[UGDLM_LOST] = "lost",
		[UGDLM_INPROGRESS] = "waiting",
	};

	if (timed_out && status == UGDLM_CANCELLED)
		return "timed out";
	return (unsigned)status < UG_ARRAY_SIZE(words) ? words[status] : "?";
}

static json_t *held_json(const struct held *held, const char *status)
{
	char lvb[2 * UGDLM_LVB_LEN + 1];
	json_t *object;

	for (unsigned i = 0; i < UGDLM_LVB_LEN; i++)
		sprintf(lvb + 2 * i, "%02x", held->lksb.lvb[i]);
	object = json_pack(
		"{s:i,s:s%,s:s,s:s,s:I,s:b,s:b,s:b}", "id", (int)held->id,
		"resource", held->name, strlen(held->name), "mode",
		dlm_mode_name(held->lksb.mode), "status", status, "lkid",
		(json_int_t)held->lksb.lkid, "lvb_lost",
		!!(held->lksb.sbflags & UGDLM_SB_VALNOTVALID), "alternative",
		!!(held->lksb.sbflags & UGDLM_SB_ALTMODE), "demoted",
		!!(held->lksb.sbflags & UGDLM_SB_DEMOTED));
	if (object && held->lksb.lvb_valid)
		json_object_set_new(object, "lvb", json_string(lvb));
	if (object && held->blocking)
		json_object_set_new(object, "blocks",
				    json_string(dlm_mode_name(held->blocked)));
	return object;
}

json_t *hand_json(struct hand *hand)
{
	json_t *array = json_array();
	struct held *held;

	pthread_mutex_lock(&hand->lock);
	cds_list_for_each_entry (held, &hand->locks, list) {
		/* The library writes the lksb of one that is busy. */
		json_t *object =
			held->busy ? json_pack("{s:i,s:s,s:s}", "id",
					       (int)held->id, "resource",
					       held->name, "status", "waiting")
				   : held_json(held, "granted");

		json_array_append_new(array, object);
	}
	pthread_mutex_unlock(&hand->lock);
	return array;
}

/* Arguments */

static const struct {
	const char *name;
	uint32_t flag;
} flags_known[] = {
	{ "noqueue", UGDLM_NOQUEUE },
	{ "quecvt", UGDLM_QUECVT },
	{ "ivvalblk", UGDLM_IVVALBLK },
	{ "convdeadlk", UGDLM_CONVDEADLK },
	{ "persistent", UGDLM_PERSISTENT },
	{ "nodlckwt", UGDLM_NODLCKWT },
	{ "expedite", UGDLM_EXPEDITE },
	{ "noqueuebast", UGDLM_NOQUEUEBAST },
	{ "headque", UGDLM_HEADQUE },
	{ "noorder", UGDLM_NOORDER },
	{ "orphan", UGDLM_ORPHAN },
	{ "altpr", UGDLM_ALTPR },
	{ "altcw", UGDLM_ALTCW },
};

static int parse_flag(struct control_call *call, const char *name,
		      uint32_t *flags)
{
	for (unsigned i = 0; name && i < UG_ARRAY_SIZE(flags_known); i++)
		if (!strcasecmp(flags_known[i].name, name)) {
			*flags |= flags_known[i].flag;
			return 0;
		}
	return control_fail(call, -EINVAL, "\"%s\" is not a flag of locks",
			    name ? name : "");
}

static int parse_flags(struct control_call *call, const json_t *list,
		       uint32_t *flags)
{
	size_t count = json_array_size(list);
	int err = 0;

	if (list && !json_is_array(list))
		return control_fail(call, -EINVAL, "flags: expected a list");
	for (size_t i = 0; i < count && !err; i++)
		err = parse_flag(call,
				 json_string_value(json_array_get(list, i)),
				 flags);
	return err;
}

/* Hexadecimal digits; bytes that are not given are zero. */
static int parse_lvb(struct control_call *call, const char *hex, uint8_t *lvb)
{
	uint8_t bytes[UGDLM_LVB_LEN] = { 0 };
	size_t len = strlen(hex);

	if (len % 2 || len > sizeof(bytes) * 2 ||
	    hex[strspn(hex, "0123456789abcdefABCDEF")])
		return control_fail(call, -EINVAL,
				    "lvb: expected up to %d bytes as pairs of "
				    "hexadecimal digits, not \"%s\"",
				    UGDLM_LVB_LEN, hex);
	for (size_t i = 0; i < len / 2; i++)
		sscanf(hex + 2 * i, "%2hhx", &bytes[i]);
	memcpy(lvb, bytes, sizeof(bytes));
	return 0;
}

struct lock_args {
	const char *resource, *lvb;
	enum ugdlm_mode mode;
	uint32_t flags;
	int convert; /* the number of a lock, 0: a new one */
	int timeout_ms;
};

static int parse_lock(struct control_call *call, const json_t *args,
		      struct lock_args *out)
{
	const char *mode = NULL;
	json_t *flags = NULL;
	int err;

	*out = (struct lock_args){ .timeout_ms = -1 };
	err = control_args(call, args, "{s:s,s?s,s?i,s?o,s?s,s?i}", "mode",
			   &mode, "resource", &out->resource, "convert",
			   &out->convert, "flags", &flags, "lvb", &out->lvb,
			   "timeout_ms", &out->timeout_ms);
	if (err)
		return err;
	out->mode = dlm_parse_mode(mode);
	if (out->mode == UGDLM_IV)
		return control_fail(call, -EINVAL,
				    "\"%s\" is not a mode: expected NL, CR, "
				    "CW, PR, PW or EX",
				    mode);
	if (!out->resource == !out->convert)
		return control_fail(call, -EINVAL,
				    "expected a resource or the number of a "
				    "lock to convert");
	if (out->resource &&
	    (!out->resource[0] || strlen(out->resource) > UGDLM_NAME_MAX))
		return control_fail(call, -EINVAL,
				    "the name of a resource has from 1 to %d "
				    "bytes, not %zu",
				    UGDLM_NAME_MAX, strlen(out->resource));
	return parse_flags(call, flags, &out->flags);
}

/* The verbs */

/*
 * A request reads the value block; a conversion as far as it goes upwards, or
 * it writes the one that is given.
 */
static uint32_t value_flag(const struct held *held,
			   const struct lock_args *args)
{
	return args->lvb || held->lksb.mode <= args->mode ? UGDLM_VALBLK : 0;
}

static int operate(struct held *held, struct control_call *call,
		   const struct lock_args *args, bool *timed_out)
{
	struct ugdlm_request req = {
		.mode = args->mode,
		.flags = args->flags | value_flag(held, args),
		.lksb = &held->lksb,
		.ast = on_ast,
		.bast = on_bast,
		.ctx = held,
		.inline_ok = true,
	};
	eventfd_t old;
	int err;

	if (args->convert) {
		req.flags |= UGDLM_CONVERT;
	} else {
		req.name = held->name;
		req.name_len = strlen(held->name);
	}
	pthread_mutex_lock(&held->hand->lock);
	held->blocking = false;
	pthread_mutex_unlock(&held->hand->lock);
	if (eventfd_read(held->fd, &old) && errno != EAGAIN)
		return control_fail(call, -EIO, "eventfd: %s", strerror(errno));
	err = call_lock(held, &req);
	if (err < 0)
		return say_refused(call, err);
	return err ? 0 : await(held, call, args->timeout_ms, timed_out);
}

/* An operation whose end is not known keeps the lock busy. */
static int conclude(struct held *held, struct control_call *call, int err,
		    bool timed_out)
{
	bool open = held->lksb.status == UGDLM_INPROGRESS;

	if (err == -ESHUTDOWN)
		err = say_refused(call, err);
	if (!err && !open)
		err = control_result(
			call, held_json(held, status_word(held->lksb.status,
							  timed_out)));
	if (!open)
		held_done(held);
	return err;
}

int hand_lock(struct hand *hand, struct control_call *call, const json_t *args)
{
	bool timed_out = false;
	struct lock_args la;
	struct held *held;
	int err = parse_lock(call, args, &la);

	if (err)
		return err;
	if (la.convert)
		held = take(hand, call, (unsigned)la.convert, &err);
	else
		held = make(hand, call, la.resource, &err);
	if (!held)
		return err;
	if (la.lvb)
		err = parse_lvb(call, la.lvb, held->lksb.lvb);
	if (!err)
		err = operate(held, call, &la, &timed_out);
	return conclude(held, call, err, timed_out);
}

int hand_unlock(struct hand *hand, struct control_call *call,
		const json_t *args)
{
	const char *lvb = NULL;
	struct held *held;
	eventfd_t old;
	int id, err;

	err = control_args(call, args, "{s:i,s?s}", "id", &id, "lvb", &lvb);
	if (err)
		return err;
	held = take(hand, call, (unsigned)id, &err);
	if (!held)
		return err;
	if (lvb)
		err = parse_lvb(call, lvb, held->lksb.lvb);
	if (!err) {
		if (eventfd_read(held->fd, &old) && errno != EAGAIN)
			err = -EIO;
		else
			err = call_unlock(held, lvb ? UGDLM_VALBLK : 0);
		if (err < 0)
			err = say_refused(call, err);
		else if (!err)
			err = wait_ast(held, call, CANCEL_MS);
		else
			err = 0;
	}
	if (err == -ETIMEDOUT)
		control_fail(call, err,
			     "lock %u is being unlocked, but members change, "
			     "or quorum is missing",
			     held->id);
	return conclude(held, call, err, false);
}
