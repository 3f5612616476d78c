/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * signals.c - how a mount process is told to end.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <time.h>

#include "base/log.h"
#include "daemon/mountinfo.h"
#include "daemon/signals.h"

/* How long users have to let go of a mount that is to end. */
#define GRACE_SEC 10

/* Sent by ourselves: the session is over, the thread may go. */
#define SIG_OVER SIGUSR2

static void ending_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
}

void signals_block(void)
{
	sigset_t set;

	ending_signals(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIG_OVER);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

bool signals_pending(void)
{
	sigset_t set;

	sigpending(&set);
	return sigismember(&set, SIGTERM) || sigismember(&set, SIGINT);
}

/*
 * Take all mounts of our file system away, the latest first: it may have been
 * moved, bound to other places, or covered by another mount, which stays.
 */
static void detach_mounts(const struct signals *s)
{
	struct mount_query ours = { .major = s->major, .minor = s->minor };
	struct mount_query top;
	bool detached = true;

	while (detached && !mountinfo_find(&ours) && ours.count) {
		top = (struct mount_query){ .dir = ours.top.dir };
		detached = !mountinfo_find(&top) && top.top.major == s->major &&
			   top.top.minor == s->minor &&
			   !umount2(ours.top.dir, MNT_DETACH | UMOUNT_NOFOLLOW);
		mount_query_free(&top);
		mount_query_free(&ours);
	}
}

static void stop_session(struct signals *s)
{
	pthread_mutex_lock(&s->lock);
	if (!s->over) {
		ug_warn("mount", "ending although it is still in use");
		fuse_session_stop(s->session);
	}
	pthread_mutex_unlock(&s->lock);
}

static void *signals_main(void *arg)
{
	static const struct timespec grace = { .tv_sec = GRACE_SEC };
	struct signals *s = arg;
	sigset_t set;
	int sig;

	pthread_setname_np(pthread_self(), "ugfs-signals");
	ending_signals(&set);
	sigaddset(&set, SIG_OVER);
	if (sigwait(&set, &sig) || sig == SIG_OVER)
		return NULL;
	ug_info("mount", "ending on signal %d (%s)", sig, strsignal(sig));
	/* A fuseblk mount without users: returns when all is on disk. */
	detach_mounts(s);
	if (sigtimedwait(&set, NULL, &grace) == SIG_OVER)
		return NULL;
	stop_session(s);
	while (sigwait(&set, &sig) || sig != SIG_OVER)
		;
	return NULL;
}

int signals_start(struct signals *s, unsigned major, unsigned minor,
		  struct fuse_session *session)
{
	s->major = major;
	s->minor = minor;
	s->session = session;
	s->over = false;
	pthread_mutex_init(&s->lock, NULL);
	return pthread_create(&s->thread, NULL, signals_main, s) ? -EAGAIN : 0;
}

void signals_session_over(struct signals *s)
{
	pthread_mutex_lock(&s->lock);
	s->over = true;
	pthread_mutex_unlock(&s->lock);
	/* Stays pending while the thread is in umount(2). */
	pthread_kill(s->thread, SIG_OVER);
}

void signals_stop(struct signals *s)
{
	pthread_join(s->thread, NULL);
	pthread_mutex_destroy(&s->lock);
}
