/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * applocks.c - application locks of a clustered mount.
 *
 * Requests may come until the mount is unmounted, but the service ends with the
 * membership: calls are made with "gate" held for reading, and who ends the
 * service takes it for writing. An answer that comes later is given by a
 * thread that may hold it for reading, and takes it no second time.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "cluster/plocks.h"
#include "daemon/applocks.h"

struct applocks {
	struct fuse_lock_service service;
	struct fuse_front *front;
	pthread_rwlock_t gate;
	struct plocks *plocks; /* [gate] NULL: left */
	bool fcntl;	       /* enable_plock */
};

static void done(void *arg, const struct plock_result *res)
{
	struct applocks *al = arg;

	fuse_front_lock_done(al->front, res);
}

static int answer_left(const struct plock_op *op, struct plock_result *res)
{
	bool back = op->kind == PLOCK_CLOSE ||
		    (op->kind == PLOCK_SET && op->mode == RANGE_NONE);

	*res = (struct plock_result){ .status = back ? 0 : -EIO };
	return 0;
}

static int service_call(void *arg, uint64_t number, const struct plock_op *op,
			uint64_t ctx, uint64_t *id, struct plock_result *res)
{
	struct applocks *al = arg;
	int err;

	if (!al->fcntl && op->table == PLOCK_FCNTL && op->kind != PLOCK_CLOSE) {
		*res = (struct plock_result){ .status = -ENOSYS };
		return 0;
	}
	pthread_rwlock_rdlock(&al->gate);
	err = al->plocks ? plocks_call(al->plocks, number, op, ctx, id, res)
			 : answer_left(op, res);
	pthread_rwlock_unlock(&al->gate);
	return err;
}

static bool service_knows(void *arg, enum plock_table table, uint64_t owner)
{
	struct applocks *al = arg;
	bool knows;

	pthread_rwlock_rdlock(&al->gate);
	knows = al->plocks && plocks_knows(al->plocks, table, owner);
	pthread_rwlock_unlock(&al->gate);
	return knows;
}

static void service_cancel(void *arg, uint64_t id)
{
	struct applocks *al = arg;

	pthread_rwlock_rdlock(&al->gate);
	if (al->plocks)
		plocks_cancel(al->plocks, id);
	pthread_rwlock_unlock(&al->gate);
}

static void service_fail(void *arg)
{
	struct applocks *al = arg;

	pthread_rwlock_rdlock(&al->gate);
	if (al->plocks)
		plocks_fail(al->plocks);
	pthread_rwlock_unlock(&al->gate);
}

int applocks_create(struct ugdlm *ls, const struct plock_settings *set,
		    struct applocks **out)
{
	struct applocks *al = calloc(1, sizeof(*al));
	struct plocks_params params = { .ls = ls,
					.done = done,
					.arg = al,
					.tuning = plock_settings_tuning(set) };
	int err;

	if (!al)
		return -ENOMEM;
	al->fcntl = set->value[PLOCKSET_ENABLE];
	pthread_rwlock_init(&al->gate, NULL);
	err = plocks_create(&params, &al->plocks);
	if (err) {
		applocks_destroy(al);
		return err;
	}
	al->service = (struct fuse_lock_service){
		.call = service_call,
		.knows = service_knows,
		.cancel = service_cancel,
		.fail = service_fail,
		.arg = al,
		.node = plocks_node(al->plocks),
	};
	*out = al;
	return 0;
}

void applocks_destroy(struct applocks *al)
{
	if (!al)
		return;
	applocks_leave(al);
	pthread_rwlock_destroy(&al->gate);
	free(al);
}

const struct fuse_lock_service *applocks_service(const struct applocks *al)
{
	return &al->service;
}

void applocks_serve(struct applocks *al, struct fuse_front *front)
{
	al->front = front;
}

void applocks_tune(struct applocks *al, const struct plock_tuning *tuning)
{
	pthread_rwlock_rdlock(&al->gate);
	if (al->plocks)
		plocks_tune(al->plocks, tuning);
	pthread_rwlock_unlock(&al->gate);
}

int applocks_json(struct applocks *al, char **text)
{
	int err;

	pthread_rwlock_rdlock(&al->gate);
	err = al->plocks ? plocks_json(al->plocks, text) : -ESHUTDOWN;
	pthread_rwlock_unlock(&al->gate);
	return err;
}

/* Who waits is answered first: plocks_destroy() answers nobody. */
void applocks_leave(struct applocks *al)
{
	struct plocks *plocks;

	if (!al)
		return;
	service_fail(al);
	pthread_rwlock_wrlock(&al->gate);
	plocks = al->plocks;
	al->plocks = NULL;
	pthread_rwlock_unlock(&al->gate);
	plocks_destroy(plocks);
}
