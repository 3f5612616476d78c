/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linkloop.c - the thread of a set of links.
 *
 * A round: wait for events, take what has come from each connection, let the
 * owner reply to all of it in one go (pause()), acknowledge, then do what other
 * threads have asked for and what time demands. Removed links are closed at the
 * end of a round only, so nothing that a round has seen goes away in it.
 *
 * Time that this thread has lost (the process was stopped, the host busy, a
 * callback slow) counts for nobody's silence: a member that wakes up after ten
 * seconds must not take all others for dead.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "cluster/links_impl.h"

#define EVENTS_MAX 64
#define NS_PER_MS 1000000u
#define NOTE_NS 1000000000u

uint64_t link_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void links_ring(struct links *links)
{
	uint64_t one = 1;
	ssize_t n = write(links->bell, &one, sizeof(one));

	/* It can only fail when it has been rung 2^64 times. */
	(void)n;
}

void links_wake_at(struct links *links, uint64_t ns)
{
	links->due_ns = UG_MIN(links->due_ns, ns);
}

void link_note(struct link *link, enum ug_level level, const char *fmt, ...)
{
	uint64_t now = link->links->now_ns;
	char line[LINK_WHY + 128];
	va_list args;

	if (level <= UG_INFO) {
		uint64_t *noted = &link->noted_ns[level];

		if (*noted && now - *noted < NOTE_NS)
			level = UG_DEBUG;
		else
			*noted = now;
	}
	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	ug_log(level, link->who, "%s", line);
}

/* Callbacks */

bool link_begin_call(struct link *link)
{
	struct links *links = link->links;
	bool there;

	pthread_mutex_lock(&links->lock);
	there = !atomic_load(&link->removed);
	if (there)
		links->calling = link;
	pthread_mutex_unlock(&links->lock);
	return there;
}

void link_end_call(struct link *link)
{
	struct links *links = link->links;

	pthread_mutex_lock(&links->lock);
	links->calling = NULL;
	if (links->waiting)
		pthread_cond_broadcast(&links->called);
	pthread_mutex_unlock(&links->lock);
}

static void tell_silent(struct link *link, uint64_t silent_ns)
{
	struct links *links = link->links;

	link->told = true;
	if (!link_begin_call(link))
		return;
	ug_warn(link->who, "nothing heard for %llu ms: %s",
		(unsigned long long)silent_ns / NS_PER_MS, link->why);
	links->config.ops->silent(links->config.arg, &link->peer);
	link_end_call(link);
}

/* Timers */

static uint64_t elapsed(uint64_t since, uint64_t now)
{
	return now > since ? now - since : 0;
}

static void end_given_up(struct link *link)
{
	if (link->ended)
		return;
	link->ended = true;
	snprintf(link->why, sizeof(link->why),
		 "too much was waiting for it, it is given up");
	if (link->conn)
		link_down(link, true, link->why);
	pthread_mutex_lock(&link->lock);
	link_queue_free(&link->queue);
	pthread_mutex_unlock(&link->lock);
	tell_silent(link,
		    elapsed(atomic_load(&link->heard_ns), link->links->now_ns));
}

static void link_timer(struct link *link, uint64_t now, bool tick)
{
	struct links *links = link->links;
	uint64_t heard = atomic_load(&link->heard_ns), since;
	uint64_t timeout = links->config.timeout_ns;
	bool given_up;

	pthread_mutex_lock(&link->lock);
	given_up = link->given_up;
	pthread_mutex_unlock(&link->lock);
	if (given_up) {
		end_given_up(link);
		return;
	}
	if (link->conn) {
		since = UG_MAX(heard, link->conn->since_ns);
		if (elapsed(since, now) >= links->patience_ns)
			link_down(link, true, "nothing was heard on it");
		else
			links_wake_at(links, since + links->patience_ns);
	}
	if (!link->told && elapsed(heard, now) >= timeout)
		tell_silent(link, elapsed(heard, now));
	if (!link->told)
		links_wake_at(links, heard + timeout);
	if (!link->conn && link->connects && !link->shaking) {
		if (now >= link->retry_ns)
			link_connect(link);
		else
			links_wake_at(links, link->retry_ns);
	}
	if (tick && link->conn)
		link_speak(link);
}

static unsigned take_list(struct links *links)
{
	unsigned count;

	pthread_mutex_lock(&links->lock);
	count = links->count;
	for (unsigned i = 0; i < count; i++) {
		links->scan[i] = links->list[i];
		link_hold(links->scan[i]);
	}
	pthread_mutex_unlock(&links->lock);
	return count;
}

static void listen_again(struct links *links, uint64_t now)
{
	if (!links->accept_ns)
		return;
	if (now < links->accept_ns) {
		links_wake_at(links, links->accept_ns);
		return;
	}
	links->accept_ns = 0;
	if (links_watch(links, links->listener, EPOLLIN, &links->listener)) {
		links->accept_ns = now + LINK_RETRY_LAST_NS;
		links_wake_at(links, links->accept_ns);
	}
}

static void timers(struct links *links, uint64_t now)
{
	bool tick = now >= links->tick_ns;
	unsigned count = take_list(links);
	struct conn *conn, *next;

	links->due_ns = UINT64_MAX;
	if (tick)
		links->tick_ns = now + links->config.ping_ns;
	if (count)
		links_wake_at(links, links->tick_ns);
	for (conn = links->shaking; conn; conn = next) {
		next = conn->next;
		if (now >= conn->deadline_ns)
			conn_timeout(links, conn);
		else
			links_wake_at(links, conn->deadline_ns);
	}
	for (unsigned i = 0; i < count; i++) {
		if (!atomic_load(&links->scan[i]->removed))
			link_timer(links->scan[i], now, tick);
		link_let_go(links->scan[i]);
	}
	listen_again(links, now);
}

/* What other threads have asked for */

static void close_gone(struct links *links)
{
	struct link *link, *next;
	struct conn *conn, *after;

	pthread_mutex_lock(&links->lock);
	link = links->gone;
	links->gone = NULL;
	pthread_mutex_unlock(&links->lock);
	for (; link; link = next) {
		next = link->gone_next;
		if (link->conn)
			link_down(link, true, "it is no member any more");
		for (conn = links->shaking; conn; conn = after) {
			after = conn->next;
			if (conn->link == link)
				conn_close(links, conn);
		}
		link_let_go(link);
	}
}

static void break_all(struct links *links)
{
	unsigned count = take_list(links);

	for (unsigned i = 0; i < count; i++) {
		if (links->scan[i]->conn)
			link_down(links->scan[i], true, "broken on purpose");
		link_let_go(links->scan[i]);
	}
}

/* False: the set is being closed. */
static bool answer_bell(struct links *links)
{
	bool stopping, breaking;
	uint64_t count;
	ssize_t n = read(links->bell, &count, sizeof(count));

	(void)n; /* nothing to be read: somebody rings again */
	pthread_mutex_lock(&links->lock);
	stopping = links->stopping;
	breaking = links->breaking;
	links->breaking = false;
	pthread_mutex_unlock(&links->lock);
	close_gone(links);
	if (breaking)
		break_all(links);
	links->due_ns = 0; /* look at all links: one may be new */
	return !stopping;
}

/* The loop */

static void forgive_stall(struct links *links, uint64_t before)
{
	uint64_t gap = links->now_ns - before;
	unsigned count;

	if (gap <= 2 * links->config.ping_ns)
		return;
	count = take_list(links);
	for (unsigned i = 0; i < count; i++) {
		atomic_fetch_add(&links->scan[i]->heard_ns, gap);
		link_let_go(links->scan[i]);
	}
}

static int wait_ms(const struct links *links)
{
	uint64_t now;

	if (links->due_ns == UINT64_MAX)
		return -1;
	now = link_clock_ns();
	if (links->due_ns <= now)
		return 0;
	return (int)UG_MIN((links->due_ns - now) / NS_PER_MS + 1, 3600000u);
}

static bool one_round(struct links *links)
{
	struct epoll_event events[EVENTS_MAX];
	uint64_t before = links->now_ns;
	bool rung = false, on = true;
	int count =
		epoll_wait(links->epoll, events, EVENTS_MAX, wait_ms(links));

	links->now_ns = link_clock_ns();
	if (links->due_ns != UINT64_MAX)
		forgive_stall(links, before);
	for (int i = 0; i < count; i++) {
		void *what = events[i].data.ptr;

		if (what == &links->bell)
			rung = true;
		else if (what == &links->listener)
			links_accept(links);
		else
			conn_event(links, what, events[i].events);
	}
	if (links->handed_over) {
		links->handed_over = false;
		links->config.ops->pause(links->config.arg);
	}
	links_acknowledge(links);
	if (rung)
		on = answer_bell(links);
	if (on && links->now_ns >= links->due_ns)
		timers(links, links->now_ns);
	links_bury(links);
	return on;
}

void *links_run(void *arg)
{
	struct links *links = arg;
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	pthread_setname_np(pthread_self(), "ugfs-links");
	links->now_ns = link_clock_ns();
	links->due_ns = UINT64_MAX;
	while (one_round(links))
		;
	while (links->shaking)
		conn_close(links, links->shaking);
	links_bury(links);
	return NULL;
}
