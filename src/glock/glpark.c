/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * glpark.c - requests that wait for a glock without a thread.
 *
 * Who serves the kernel's requests tries each without waiting. What a glock
 * stands in the way of is parked, with a holder of its own on that glock, and
 * tried again when the holder has been granted. Then the second attempt takes
 * the holder over: between the grant and its own request the lock could go to
 * another node, again and again.
 *
 *   attempt            parked request                 second attempt
 *   glock_nq NOWAIT -> glock_nq_notify .. notify() -> glock_adopt .. glock_dq
 *    -EAGAIN
 */
#include <errno.h>

#include "glock/glock_impl.h"

int glock_nq_notify(struct glock *gl, enum lm_state state, unsigned flags,
		    struct glock_holder *gh,
		    void (*notify)(struct glock_holder *gh))
{
	int err;

	ug_assert(!(flags & GL_NOWAIT));
	glock_holder_set(gh, gl, state, flags | GL_ASYNC);
	pthread_mutex_lock(&gl->gl_lock);
	err = glock_enqueue(gl, gh);
	if (!err && gh->gh_error) {
		err = gh->gh_error;
		gh->gh_gl = NULL;
	} else if (!err && !gh->gh_granted) {
		/* Not before: an outcome within this call is not news. */
		gh->gh_notify = notify;
		err = -EINPROGRESS;
	}
	pthread_mutex_unlock(&gl->gl_lock);
	return err;
}

/* gl_lock is held: gh stands in the queue where parked stood. */
static void take_place(struct glock_holder *parked, struct glock_holder *gh)
{
	*gh = *parked;
	gh->gh_notify = NULL;
	cds_list_replace(&parked->gh_list, &gh->gh_list);
	parked->gh_gl = NULL;
}

int glock_adopt(struct glock_holder *parked, unsigned flags,
		struct glock_holder *gh)
{
	const unsigned how = GL_NOWAIT | GL_SKIP;
	struct glock *gl = parked->gh_gl;
	int err;

	pthread_mutex_lock(&gl->gl_lock);
	ug_assert(parked->gh_granted || parked->gh_error);
	err = parked->gh_error;
	if (!err) {
		parked->gh_flags = (parked->gh_flags & ~how) | (flags & how);
		err = glock_holder_instantiate(gl, parked);
		parked->gh_flags &= ~GL_NOWAIT;
		if (err == -EAGAIN) {
			pthread_mutex_unlock(&gl->gl_lock);
			return err;
		}
		if (err) {
			glock_ungrant(gl, parked);
			glock_run(gl);
		}
	}
	if (err)
		parked->gh_gl = NULL;
	else
		take_place(parked, gh);
	pthread_mutex_unlock(&gl->gl_lock);
	return err;
}
