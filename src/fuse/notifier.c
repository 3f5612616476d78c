/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * notifier.c - invalidating pages that the kernel keeps.
 *
 * The queue is a ring of node ids. A node that is queued already is not
 * queued again: what is dropped later includes what is old now. When the ring
 * is full the oldest pages stay, and a line in the log says so: it would take
 * a kernel that has not answered for QUEUE_MAX files.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/log.h"
#include "fuse/notifier.h"
#include "fuse/thread.h"

#define QUEUE_MAX 8192u /* a power of two */

struct notifier {
	struct fuse_conn *conn;
	const char *who;
	pthread_t thread;
	pthread_mutex_t lock; /* guards the rest */
	pthread_cond_t wake;
	uint64_t queue[QUEUE_MAX];
	unsigned head, tail; /* taken from head, put at tail; never wrapped */
	bool overflowed;
	bool stopping;
};

/* lock held. Waits for a node; false: stop. */
static bool queue_take(struct notifier *notifier, uint64_t *nodeid)
{
	while (notifier->head == notifier->tail && !notifier->stopping)
		pthread_cond_wait(&notifier->wake, &notifier->lock);
	if (notifier->stopping)
		return false;
	*nodeid = notifier->queue[notifier->head++ % QUEUE_MAX];
	return true;
}

static void *notifier_main(void *arg)
{
	struct notifier *notifier = arg;
	uint64_t nodeid;

	pthread_mutex_lock(&notifier->lock);
	while (queue_take(notifier, &nodeid)) {
		pthread_mutex_unlock(&notifier->lock);
		/* An error means that the mount is gone, and its pages too. */
		fuse_conn_inval_data(notifier->conn, nodeid, 0, 0);
		pthread_mutex_lock(&notifier->lock);
	}
	pthread_mutex_unlock(&notifier->lock);
	return NULL;
}

int notifier_create(struct fuse_conn *conn, const char *who,
		    struct notifier **notifierp)
{
	struct notifier *notifier = calloc(1, sizeof(*notifier));
	int err;

	if (!notifier)
		return -ENOMEM;
	notifier->conn = conn;
	notifier->who = who;
	pthread_mutex_init(&notifier->lock, NULL);
	pthread_cond_init(&notifier->wake, NULL);
	err = fuse_thread("ugfs-notify", notifier_main, notifier,
			  &notifier->thread);
	if (err) {
		pthread_cond_destroy(&notifier->wake);
		pthread_mutex_destroy(&notifier->lock);
		free(notifier);
		return err;
	}
	*notifierp = notifier;
	return 0;
}

void notifier_destroy(struct notifier *notifier)
{
	if (!notifier)
		return;
	pthread_mutex_lock(&notifier->lock);
	notifier->stopping = true;
	pthread_cond_signal(&notifier->wake);
	pthread_mutex_unlock(&notifier->lock);
	pthread_join(notifier->thread, NULL);
	pthread_cond_destroy(&notifier->wake);
	pthread_mutex_destroy(&notifier->lock);
	free(notifier);
}

static bool queue_has(const struct notifier *notifier, uint64_t nodeid)
{
	for (unsigned i = notifier->head; i != notifier->tail; i++)
		if (notifier->queue[i % QUEUE_MAX] == nodeid)
			return true;
	return false;
}

void notifier_push(struct notifier *notifier, uint64_t nodeid)
{
	bool full;

	pthread_mutex_lock(&notifier->lock);
	full = notifier->tail - notifier->head == QUEUE_MAX;
	if (!queue_has(notifier, nodeid) && !full) {
		notifier->queue[notifier->tail++ % QUEUE_MAX] = nodeid;
		pthread_cond_signal(&notifier->wake);
	}
	if (full && !notifier->overflowed) {
		notifier->overflowed = true;
		ug_error(notifier->who,
			 "the kernel does not drop its pages; readers of some "
			 "files may see old data");
	}
	pthread_mutex_unlock(&notifier->lock);
}
