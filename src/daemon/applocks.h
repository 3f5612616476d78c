/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * applocks.h - application locks of a clustered mount: between its front end,
 * which outlives its membership, and the members.
 *
 *	applocks_create()	with the lockspace, before others count on us
 *	applocks_serve()	the front end is there
 *	...
 *	applocks_leave()	before the lockspace is left: waits end with
 *				-EIO, and so do later calls; what gives locks
 *				back succeeds
 *	applocks_destroy()	when no request can come any more
 *
 * A mount with localflocks has them as well: it decides for files of others.
 *
 * Threads: calls through the service from any; the rest as the membership.
 */
#ifndef UG_DAEMON_APPLOCKS_H
#define UG_DAEMON_APPLOCKS_H

#include "daemon/plockset.h"
#include "fuse/front.h"

struct applocks;
struct ugdlm;

/* 0 or what plocks_create() says. */
int applocks_create(struct ugdlm *ls, const struct plock_settings *set,
		    struct applocks **out);
void applocks_destroy(struct applocks *al); /* NULL is accepted */

/* For fuse_front_params; valid until applocks_destroy(). */
const struct fuse_lock_service *applocks_service(const struct applocks *al);
/* Before the first request. */
void applocks_serve(struct applocks *al, struct fuse_front *front);
/* As plocks_json(). -ESHUTDOWN: left. */
int applocks_json(struct applocks *al, char **text);
void applocks_leave(struct applocks *al); /* once or more; NULL is accepted */
/* From now on, if it has not been left. */
void applocks_tune(struct applocks *al, const struct plock_tuning *tuning);

#endif
