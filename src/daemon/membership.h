/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * membership.h - a mount as a member of its cluster: lockspace, lease,
 * recovery of dead members' journals, and the way out.
 *
 *		ugdlm_supervise()	before any thread and descriptor: forks
 *	membership_join()	a slot, and with it the number of a journal
 *	(device)		membership_guard(): writes need the lease
 *	fs_mount()		with membership_lockmod()
 *	membership_mounted()
 *	...
 *	fs_unmount(), device closed
 *	membership_leave()
 *
 * A mount that fails while it runs, or that the cluster goes on without, lets
 * go of the device first and then leaves as one that has left its journal
 * dirty; its requests are answered with EIO until it is unmounted (DESIGN 4.9).
 *
 * Threads: those of its own, and any for membership_may_serve() and the calls
 * that are for fs_host_ops; the rest from one.
 */
#ifndef UG_DAEMON_MEMBERSHIP_H
#define UG_DAEMON_MEMBERSHIP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "block/gate.h"
#include "daemon/plockset.h"
#include "fs/fs.h"
#include "glock/lockmod.h"

struct applocks;
struct membership;

struct membership_params {
	const char *table;	    /* "cluster:fs" */
	const uint8_t *uuid;	    /* of the volume, 16 bytes */
	const char *who;	    /* for the log; borrowed */
	const char *key_file;	    /* NULL: none */
	unsigned startup_delay_sec; /* ugdlm.h: startup_delay_ms; 0: its own */
	struct plock_settings plocks;
	/* What the mount waits for, in words; each sentence once. */
	void (*note)(void *arg, const char *text);
	/* Has somebody asked us to give up? While joining, and later. */
	bool (*interrupted)(void);
	void *arg;
};

/*
 * Join, and wait until all members agree, also on what they have set (-EINVAL);
 * -EINTR. Errors have their sentence in
 * why. -EINVAL: the table's form; else as ugdlm_join(). If *mp has been set in
 * spite of an error, the caller tells the user and then leaves: as soon as the
 * others miss us, our supervisor ends us.
 */
int membership_join(const struct membership_params *params,
		    struct membership **mp, char *why, size_t why_len);

/* 1 and up. */
unsigned membership_slot(const struct membership *m);
const struct lockmod *membership_lockmod(const struct membership *m);
/* Whose requests may come until membership_leave(). */
struct applocks *membership_applocks(struct membership *m);

/* Any thread. What is changed must be tunable, and in range. */
struct plock_settings membership_settings(struct membership *m);
void membership_tune(struct membership *m, enum plock_setting which,
		     uint32_t value);

/*
 * A device whose writes wait for the lease, in place of *devp. It must stay
 * until membership_leave().
 */
int membership_guard(struct membership *m, struct blkdev **devp);

/* fs_host_ops. */
void membership_opened(struct membership *m, struct fs *fs);
void membership_closing(struct membership *m);
void membership_glock_wake(struct membership *m);
int membership_may_repair(struct membership *m, char *why, size_t why_len);
int membership_waits(struct membership *m, const char *why);
void membership_withdrawn(struct membership *m);

/* fs_mount() has succeeded: from now on a lost lockspace withdraws. */
void membership_mounted(struct membership *m, struct fs *fs);

/*
 * May requests be answered now, from locks that are held? Also if they are to
 * fail: with a volume that is lost. The other one returns when so.
 */
bool membership_may_serve(struct membership *m);
void membership_await_service(struct membership *m);

/*
 * For people: {"cluster":{..}} as ugdlm_status_json(), unless it has been left,
 * "slot", "expelled" with the reason, "without_quorum_for_ms", and
 * "waiting_for" as there, with the journals that are to be recovered. Any
 * thread. NULL: no memory.
 */
json_t *membership_status(struct membership *m);

/* An unmount begins. */
void membership_leaving(struct membership *m);

/*
 * The device has been closed. dirty: not everything is on disk. Frees m. 0, or
 * an error: the supervisor must see another exit status than 0.
 */
int membership_leave(struct membership *m, bool dirty);

#endif
