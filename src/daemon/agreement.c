/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * agreement.c - settings that all members share, told by locks.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "daemon/agreement.h"

#define GATE "settings"
#define LOOK_MS 100

/* The longest lock name: a setting, = and a value. */
#define NAME_LEN 64u

struct agreement {
	struct agreement_params params;
	char *why;
	size_t why_len;
	pthread_mutex_t lock; /* guards ended */
	pthread_cond_t changed;
	bool ended; /* the operation under way */
	struct ugdlm_lksb gate, probe;
	struct ugdlm_lksb own[PLOCKSET_COUNT];
};

static void ended(void *ctx, struct ugdlm_lksb *lksb)
{
	struct agreement *a = ctx;

	pthread_mutex_lock(&a->lock);
	a->ended = true;
	pthread_cond_broadcast(&a->changed);
	pthread_mutex_unlock(&a->lock);
}

static void wait_some(struct agreement *a)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_nsec += LOOK_MS * 1000000l;
	ts.tv_sec += ts.tv_nsec / 1000000000l;
	ts.tv_nsec %= 1000000000l;
	pthread_cond_timedwait(&a->changed, &a->lock, &ts);
}

/* err: what the call has said. What is given up ends with the lockspace. */
static int await(struct agreement *a, const struct ugdlm_lksb *lksb, int err)
{
	bool stop = false;

	if (err < 0) {
		snprintf(a->why, a->why_len,
			 "settings cannot be compared with other members': %s",
			 strerror(-err));
		return err == -ENOMEM ? -ENOMEM : -EIO;
	}
	pthread_mutex_lock(&a->lock);
	while (!err && !a->ended && !stop) {
		wait_some(a);
		pthread_mutex_unlock(&a->lock);
		stop = a->params.interrupted(a->params.arg);
		pthread_mutex_lock(&a->lock);
	}
	stop &= !a->ended;
	a->ended = false;
	pthread_mutex_unlock(&a->lock);
	if (stop) {
		snprintf(a->why, a->why_len,
			 "interrupted while settings were compared with other "
			 "members'");
		return -EINTR;
	}
	if (lksb->status != UGDLM_LOST)
		return 0;
	snprintf(a->why, a->why_len, "the lockspace has been lost");
	return -EIO;
}

static int take(struct agreement *a, const char *name, enum ugdlm_mode mode,
		uint32_t flags, struct ugdlm_lksb *lksb)
{
	struct ugdlm_request req = {
		.mode = mode,
		.flags = flags,
		.name = name,
		.name_len = strlen(name),
		.lksb = lksb,
		.ast = ended,
		.ctx = a,
		.inline_ok = true,
	};

	return await(a, lksb, ugdlm_lock(a->params.ls, &req));
}

static int give(struct agreement *a, struct ugdlm_lksb *lksb)
{
	return await(a, lksb, ugdlm_unlock(a->params.ls, lksb, 0, true));
}

static void lock_name(enum plock_setting which, uint32_t value,
		      char name[NAME_LEN])
{
	char text[16];

	snprintf(name, NAME_LEN, "%s=%s", plock_setting_infos[which].name,
		 plock_setting_text(which, value, text));
}

static int differs(struct agreement *a, enum plock_setting which,
		   uint32_t theirs)
{
	const struct plock_setting_info *info = &plock_setting_infos[which];
	char others[256], text[2][16];

	a->params.others(a->params.arg, others, sizeof(others));
	snprintf(
		a->why, a->why_len,
		"%s is %s here, but %s on the members that have the volume "
		"mounted (%s): all must have set the same",
		info->name,
		plock_setting_text(which, a->params.set->value[which], text[0]),
		plock_setting_text(which, theirs, text[1]), others);
	return -EINVAL;
}

/* Has nobody set this value? */
static int check_other(struct agreement *a, enum plock_setting which,
		       uint32_t value)
{
	char name[NAME_LEN];
	int err;

	lock_name(which, value, name);
	err = take(a, name, UGDLM_EX, UGDLM_NOQUEUE, &a->probe);
	if (err)
		return err;
	if (a->probe.status == UGDLM_NOTQUEUED)
		return differs(a, which, value);
	return give(a, &a->probe);
}

static int agree_on(struct agreement *a, enum plock_setting which)
{
	const struct plock_setting_info *info = &plock_setting_infos[which];
	uint32_t own = a->params.set->value[which];
	char name[NAME_LEN];
	int err = 0;

	for (uint32_t v = info->min; v <= info->max && !err; v++)
		if (v != own)
			err = check_other(a, which, v);
	if (err)
		return err;
	lock_name(which, own, name);
	return take(a, name, UGDLM_PR, 0, &a->own[which]);
}

static int agree(struct agreement *a)
{
	int err = take(a, GATE, UGDLM_EX, 0, &a->gate);

	for (unsigned i = 0; i < PLOCKSET_COUNT && !err; i++)
		if (plock_setting_infos[i].agreed)
			err = agree_on(a, (enum plock_setting)i);
	return err ? err : give(a, &a->gate);
}

int agreement_reach(const struct agreement_params *params,
		    struct agreement **out, char *why, size_t why_len)
{
	struct agreement *a = calloc(1, sizeof(*a));

	if (!a) {
		snprintf(why, why_len, "out of memory");
		return -ENOMEM;
	}
	a->params = *params;
	a->why = why;
	a->why_len = why_len;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->changed, NULL);
	*out = a;
	return agree(a);
}

void agreement_free(struct agreement *a)
{
	if (!a)
		return;
	pthread_cond_destroy(&a->changed);
	pthread_mutex_destroy(&a->lock);
	free(a);
}
