/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * park.c - waiting for an inode's lock without a thread.
 *
 *	attempt                 place                      next attempt
 *	park_lock() ----------> queued on the glock
 *	 -EINPROGRESS            ..granted: resume() ----> park_lock(): takes
 *	 up to the caller                                  the holder over
 *
 * An attempt that needs another lock first (the directory's has been lost
 * meanwhile, say) gives up what the place has got and queues there. Two nodes
 * that want the same two locks could go on like this for ever, so who makes
 * the attempts counts them, and lets a thread wait in the end.
 */
#include <errno.h>

#include "fs/park.h"

static struct fs_park *park_of(struct glock_holder *gh)
{
	return caa_container_of(gh, struct fs_park, gh);
}

static void notify(struct glock_holder *gh)
{
	struct fs_park *park = park_of(gh);

	park->resume(park);
}

static bool has_got(const struct fs_park *park, const struct inode *ip,
		    enum lm_state state, unsigned flags)
{
	return park->ip == ip && park->gh.gh_state == state &&
	       !((park->gh.gh_flags ^ flags) & GL_NODE_SCOPE);
}

static void leave(struct fs_park *park)
{
	struct inode *ip = park->ip;

	park->ip = NULL;
	inode_put(ip);
}

void fs_unpark(struct fs_park *park)
{
	if (!park->ip)
		return;
	glock_dq(&park->gh);
	leave(park);
}

/* Queue. 0: granted at once, and taken over; reads the object. */
static int queue(struct fs_park *park, struct inode *ip, enum lm_state state,
		 unsigned flags, struct glock_holder *gh)
{
	int err;

	/* Before: resume() may come before glock_nq_notify() returns. */
	inode_ref(ip, 1);
	park->ip = ip;
	err = glock_nq_notify(ip->i_gl, state, flags, &park->gh, notify);
	if (err == -EINPROGRESS)
		return err;
	if (!err)
		err = glock_adopt(&park->gh, 0, gh);
	leave(park);
	return err;
}

int park_lock(struct fs_park *park, struct inode *ip, enum lm_state state,
	      unsigned flags, struct glock_holder *gh)
{
	int err;

	if (!has_got(park, ip, state, flags)) {
		fs_unpark(park);
		return queue(park, ip, state, flags, gh);
	}
	err = glock_adopt(&park->gh, 0, gh);
	leave(park);
	return err;
}
