/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mount_server.c - what the verbs of a mount process look into. See
 * mount_server.h.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "daemon/mount_server.h"

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void mount_server_init(struct mount_server *server, const char *who,
		       const char *source, const char *dir)
{
	*server = (struct mount_server){
		.who = who,
		.source = source,
		.dir = dir,
		.state_ns = now_ns(),
	};
	freezer_init(&server->freezer, who);
	pthread_rwlock_init(&server->parts_lock, NULL);
	pthread_mutex_init(&server->lock, NULL);
}

void mount_server_fini(struct mount_server *server)
{
	pthread_mutex_destroy(&server->lock);
	pthread_rwlock_destroy(&server->parts_lock);
	freezer_fini(&server->freezer);
}

void mount_server_set(struct mount_server *server,
		      const struct mount_parts *parts)
{
	pthread_rwlock_wrlock(&server->parts_lock);
	server->parts = *parts;
	pthread_rwlock_unlock(&server->parts_lock);
}

void mount_server_state(struct mount_server *server, enum mount_state state)
{
	pthread_rwlock_wrlock(&server->parts_lock);
	pthread_mutex_lock(&server->lock);
	server->state = state;
	server->state_ns = now_ns();
	server->waits[0] = '\0';
	pthread_mutex_unlock(&server->lock);
	pthread_rwlock_unlock(&server->parts_lock);
}

void mount_server_withdrawn(struct mount_server *server, const char *why)
{
	pthread_mutex_lock(&server->lock);
	server->withdrawn = true;
	server->withdrawn_ns = now_ns();
	snprintf(server->withdrawn_why, sizeof(server->withdrawn_why), "%s",
		 why);
	pthread_mutex_unlock(&server->lock);
}

void mount_server_waits(struct mount_server *server, const char *why)
{
	pthread_mutex_lock(&server->lock);
	snprintf(server->waits, sizeof(server->waits), "%s", why);
	pthread_mutex_unlock(&server->lock);
}
