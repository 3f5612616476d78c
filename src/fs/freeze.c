/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * freeze.c - a volume that is whole on disk, and stays as it is for a while.
 *
 *	who freezes				every other node
 *	claims "freezer" in EX, leaves his
 *	  slot in it, and keeps it in SH
 *	changes wait, work rests
 *	all is written, log ended
 *	FREEZE: SH given up, EX asked for -->	callback
 *						changes wait, work rests
 *						all is written, log ended
 *						reads who it is
 *	EX is granted  <-----------------------	SH given up, and asked for again
 *	are all journals clean? frozen
 *	...
 *	FREEZE: EX given up, SH asked for  --->	SH is granted: changes go on
 *	changes go on
 *
 * FREEZE is GFS2's (docs/spec/glocks.md 4.15), so a kernel that has the volume
 * mounted as well freezes with us. "freezer" is ours: a second freeze is
 * refused by it at once, and it tells the others who it is.
 *
 * A log that ends with an UNMOUNT header needs no replay, and nothing is logged
 * before the thaw. So who dies while the volume is frozen leaves nothing to be
 * recovered, and if it is the one who froze, his locks go and the others thaw.
 * A node that dies before its log was ended is found by the look at the
 * journals: then all thaw, since the journal has to be replayed, and it is
 * tried again.
 *
 * Stores to mapped pages reach us as WRITEs that cannot be kept waiting, since
 * others wait for these: they are taken into memory. Until the thaw no other
 * node gets the inode then.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/be.h"
#include "base/log.h"
#include "fs/clusterlocks.h"
#include "fs/freeze.h"
#include "fs/icache.h"
#include "fs/journals.h"
#include "fs/pages.h"
#include "fs/statfs.h"
#include "fs/work.h"

#define FREEZE_NUMBER 2u
#define FREEZER_NUMBER 6u
#define NS_PER_MS 1000000u
/* Between two looks whether somebody has asked us to give up. */
#define LOOK_NS (200u * (uint64_t)NS_PER_MS)
/* For the other nodes to freeze, each time. */
#define PATIENCE_NS (60000u * (uint64_t)NS_PER_MS)
/* For them to merge theirs. */
#define MERGE_PATIENCE_SEC 10u
/* A journal is dirty: until it may have been recovered. */
#define RETRY_NS (1000u * (uint64_t)NS_PER_MS)
#define TRIES 5u

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- gates ---- */

static void gate_init(struct freeze_gate *gate)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&gate->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&gate->left, &attr);
	pthread_condattr_destroy(&attr);
}

static void gate_fini(struct freeze_gate *gate)
{
	pthread_cond_destroy(&gate->left);
	pthread_mutex_destroy(&gate->lock);
}

static unsigned my_stripe(void)
{
	static _Thread_local unsigned stripe;

	if (ug_unlikely(!stripe))
		stripe = 1 + (unsigned)gettid() % FREEZE_STRIPES;
	return stripe - 1;
}

static void gate_leave(struct freeze_gate *gate)
{
	atomic_fetch_sub(&gate->stripe[my_stripe()].inside, 1);
	if (ug_likely(!atomic_load(&gate->closed)))
		return;
	pthread_mutex_lock(&gate->lock);
	pthread_cond_signal(&gate->left);
	pthread_mutex_unlock(&gate->lock);
}

/*
 * Counted first, then looked: who closes and counts afterwards either sees us,
 * or we see him.
 */
static bool gate_enter(struct freeze_gate *gate)
{
	atomic_fetch_add(&gate->stripe[my_stripe()].inside, 1);
	if (ug_likely(!atomic_load(&gate->closed)))
		return true;
	gate_leave(gate);
	return false;
}

/* Each stripe once: nobody enters any more. */
static bool is_anybody_inside(struct freeze_gate *gate)
{
	for (unsigned i = 0; i < FREEZE_STRIPES; i++)
		if (atomic_load(&gate->stripe[i].inside))
			return true;
	return false;
}

static bool is_given_up(struct fs *fs, const struct fs_freezer *who)
{
	return fs_is_withdrawn(fs) || who->give_up(who->arg);
}

/* Close it, and wait until everybody has left. -EINTR. */
static int gate_close(struct fs *fs, struct freeze_gate *gate,
		      const struct fs_freezer *who)
{
	int err = 0;

	atomic_store(&gate->closed, true);
	pthread_mutex_lock(&gate->lock);
	while (!err && is_anybody_inside(gate)) {
		uint64_t ns = now_ns() + LOOK_NS;
		struct timespec until = { (time_t)(ns / 1000000000u),
					  (long)(ns % 1000000000u) };

		pthread_cond_timedwait(&gate->left, &gate->lock, &until);
		if (is_given_up(fs, who))
			err = -EINTR;
	}
	pthread_mutex_unlock(&gate->lock);
	return err;
}

static void gate_open(struct freeze_gate *gate)
{
	atomic_store(&gate->closed, false);
}

bool fs_change_begin(struct fs *fs)
{
	return gate_enter(&fs->fs_freeze.changes);
}

void fs_change_end(struct fs *fs)
{
	gate_leave(&fs->fs_freeze.changes);
}

bool freeze_work_begin(struct fs *fs)
{
	return gate_enter(&fs->fs_freeze.work);
}

void freeze_work_end(struct fs *fs)
{
	gate_leave(&fs->fs_freeze.work);
}

bool freeze_is_still(const struct fs *fs)
{
	return atomic_load(&fs->fs_freeze.still);
}

/* ---- this node ---- */

/* Everything in place, before the log is ended. -EIO, -EBUSY. */
static int write_all(struct fs *fs)
{
	int err = fs_writeback_all(fs);

	pagepool_wait_writeback(fs);
	if (err)
		return err;
	/* What is open and has no name stays, and fsck tells of it. */
	icache_drain_closing(fs);
	err = statfs_merge(fs, MERGE_PATIENCE_SEC);
	return err == -EAGAIN ? -EBUSY : fs_fault(fs, err);
}

/*
 * From now on nothing is written, by us or for others whose journal we would
 * recover: one that is at it is waited for.
 */
static int be_still(struct fs *fs)
{
	int err = 0;

	pthread_mutex_lock(&fs->fs_recover_lock);
	if (fs->fs_journal)
		err = journal_freeze(fs->fs_journal);
	if (!err)
		atomic_store(&fs->fs_freeze.still, true);
	pthread_mutex_unlock(&fs->fs_recover_lock);
	if (!err && fs->fs_journal)
		err = blkdev_flush(fs->fs_dev);
	return err;
}

static void go_on(struct fs *fs)
{
	pthread_mutex_lock(&fs->fs_recover_lock);
	atomic_store(&fs->fs_freeze.still, false);
	pthread_mutex_unlock(&fs->fs_recover_lock);
	if (fs->fs_journal)
		journal_thaw(fs->fs_journal);
	gate_open(&fs->fs_freeze.work);
	gate_open(&fs->fs_freeze.changes);
}

/* On error all goes on. -EINTR, -EBUSY, -EIO. */
static int come_to_rest(struct fs *fs, const struct fs_freezer *who)
{
	int err = gate_close(fs, &fs->fs_freeze.changes, who);

	if (!err)
		err = gate_close(fs, &fs->fs_freeze.work, who);
	if (!err && fs->fs_journal)
		err = write_all(fs);
	if (!err)
		err = be_still(fs);
	if (!err && fs_is_withdrawn(fs))
		err = -EIO;
	if (err)
		go_on(fs);
	return err;
}

/*
 * Changes go on, to fail. Whoever has come to rest sees it himself, and gives
 * his locks up.
 */
void freeze_withdrawn(struct fs *fs)
{
	gate_open(&fs->fs_freeze.work);
	gate_open(&fs->fs_freeze.changes);
}

/* ---- locks ---- */

static void freeze_callback(struct glock *gl, enum lm_state wanted)
{
	struct fs *fs = glock_object(gl);

	if (wanted == LM_ST_EXCLUSIVE)
		fs->fs_host->freeze_wanted(fs->fs_host_arg);
}

static const struct glock_ops freeze_glock_ops = {
	.type = LM_TYPE_NONDISK,
	.callback = freeze_callback,
};

static const struct glock_ops freezer_glock_ops = {
	.type = LM_TYPE_NONDISK,
	.value_block = true,
};

/* Until it is granted, the time is up, or we are told to give up. */
static int take(struct fs *fs, struct glock *gl, enum lm_state state,
		unsigned flags, uint64_t patience_ns,
		const struct fs_freezer *who, struct glock_holder *gh)
{
	uint64_t end = patience_ns ? now_ns() + patience_ns : UINT64_MAX;
	int err = glock_nq(gl, state, flags | GL_NOEXP | GL_ASYNC, gh);

	while (!err) {
		err = glock_wait_until(gh, UG_MIN(now_ns() + LOOK_NS, end));
		if (err != -ETIMEDOUT)
			break;
		if (now_ns() < end && !is_given_up(fs, who)) {
			err = 0;
			continue;
		}
		glock_dq(gh);
		err = now_ns() < end ? -EINTR : -ETIMEDOUT;
	}
	if (err)
		glock_holder_init(gh);
	return err;
}

static void drop(struct glock_holder *gh)
{
	glock_dq_if_held(gh);
	glock_holder_init(gh);
}

/* Nobody gives up waiting for what he has to have. */
static bool never(void *arg)
{
	return false;
}

static int take_back(struct fs *fs)
{
	const struct fs_freezer nobody = { .give_up = never };
	struct freeze *fz = &fs->fs_freeze;

	drop(&fz->gh);
	return take(fs, fz->gl, LM_ST_SHARED, GL_EXACT, 0, &nobody, &fz->gh);
}

/* A cached EX would refuse others. */
static void forget_claim(struct freeze *fz)
{
	struct glock_holder gh;

	if (!glock_nq(fz->who_gl, LM_ST_EXCLUSIVE,
		      GL_TRY | GL_NOEXP | GL_NOCACHE, &gh))
		glock_dq(&gh);
}

/* Be the one who freezes: -EBUSY, somebody else is. */
static int claim(struct fs *fs, const struct fs_freezer *who)
{
	struct freeze *fz = &fs->fs_freeze;
	be32 *slot;
	int err = glock_nq(fz->who_gl, LM_ST_EXCLUSIVE, GL_TRY | GL_NOEXP,
			   &fz->who_gh);

	if (err) {
		glock_holder_init(&fz->who_gh);
		return err == -EAGAIN ? -EBUSY : err;
	}
	slot = glock_lvb(fz->who_gl);
	if (slot) {
		memset(slot, 0, GLOCK_LVB_BYTES);
		*slot = be32_of(fs->fs_opt.jid + 1);
	}
	drop(&fz->who_gh);
	err = take(fs, fz->who_gl, LM_ST_SHARED, GL_EXACT | GL_NOCACHE, 0, who,
		   &fz->who_gh);
	if (err)
		forget_claim(fz);
	return err;
}

/* 0: not known. */
static unsigned slot_of_freezer(struct fs *fs)
{
	struct freeze *fz = &fs->fs_freeze;
	struct glock_holder gh;
	const be32 *slot;
	unsigned value = 0;

	if (glock_nq(fz->who_gl, LM_ST_SHARED, GL_TRY | GL_NOEXP | GL_NOCACHE,
		     &gh))
		return 0;
	slot = glock_lvb(fz->who_gl);
	if (slot)
		value = be32_get(*slot);
	glock_dq(&gh);
	return value;
}

void freeze_init(struct fs *fs)
{
	struct freeze *fz = &fs->fs_freeze;

	gate_init(&fz->changes);
	gate_init(&fz->work);
	glock_holder_init(&fz->gh);
	glock_holder_init(&fz->who_gh);
}

void freeze_fini(struct fs *fs)
{
	gate_fini(&fs->fs_freeze.changes);
	gate_fini(&fs->fs_freeze.work);
}

int freeze_join(struct fs *fs, const struct why *why)
{
	struct freeze *fz = &fs->fs_freeze;
	int err = glock_get(fs->fs_shared_glocks, &freeze_glock_ops,
			    FREEZE_NUMBER, fs, &fz->gl);

	if (!err)
		err = glock_get(fs->fs_shared_glocks, &freezer_glock_ops,
				FREEZER_NUMBER, NULL, &fz->who_gl);
	if (err)
		return why_set(why, err, "out of memory");
	err = glock_nq(fz->gl, LM_ST_SHARED, GL_EXACT | GL_NOEXP | GL_ASYNC,
		       &fz->gh);
	if (err) {
		glock_holder_init(&fz->gh);
		return why_set(why, err, "the lock FREEZE: %s", strerror(-err));
	}
	return cluster_lock_wait(fs, &fz->gh,
				 "waiting for the volume, which is frozen, to "
				 "be thawed",
				 why);
}

void freeze_leave(struct fs *fs)
{
	struct freeze *fz = &fs->fs_freeze;

	drop(&fz->gh);
	drop(&fz->who_gh);
	if (fz->gl)
		glock_put(fz->gl);
	if (fz->who_gl)
		glock_put(fz->who_gl);
	fz->gl = fz->who_gl = NULL;
}

/* ---- the whole cluster ---- */

/* -EBUSY: that journal is dirty. Our own has been ended. */
static int check_journals(struct fs *fs, char *why, size_t why_len)
{
	int err = 0;

	pthread_mutex_lock(&fs->fs_recover_lock);
	for (unsigned i = 0; !err && i < fs->fs_js->count; i++) {
		struct journal_info *ji = &fs->fs_js->infos[i];

		if (!ji->map.blocks)
			continue;
		err = replay_scan(fs->fs_dev, fs->fs_geom.bsize, &ji->map,
				  ji->who, &ji->head);
		if (!err && !ji->head.clean)
			err = -EBUSY;
		if (err)
			snprintf(why, why_len, "journal %u %s", i,
				 err == -EBUSY ? "has to be recovered first"
					       : "cannot be read");
	}
	pthread_mutex_unlock(&fs->fs_recover_lock);
	return err;
}

/* This node is at rest. -ETIMEDOUT, -EINTR, -EBUSY, -EIO. */
static int freeze_others(struct fs *fs, const struct fs_freezer *who, char *why,
			 size_t why_len)
{
	struct freeze *fz = &fs->fs_freeze;
	int err;

	drop(&fz->gh);
	err = take(fs, fz->gl, LM_ST_EXCLUSIVE, 0, PATIENCE_NS, who, &fz->gh);
	if (err == -ETIMEDOUT)
		snprintf(why, why_len,
			 "not all nodes have come to rest within a minute");
	if (!err)
		err = check_journals(fs, why, why_len);
	if (err && take_back(fs))
		fs_withdraw(fs, "the lock FREEZE has been lost");
	return err;
}

static int freeze_once(struct fs *fs, const struct fs_freezer *who, char *why,
		       size_t why_len)
{
	int err = come_to_rest(fs, who);

	if (err == -EBUSY)
		snprintf(why, why_len,
			 "another node keeps the statfs file locked");
	else if (err && err != -EINTR)
		snprintf(why, why_len, "it could not be written: %s",
			 strerror(-err));
	if (err || !fs->fs_shared_glocks)
		return err;
	err = freeze_others(fs, who, why, why_len);
	if (err)
		go_on(fs);
	return err;
}

static void pause_ns(uint64_t ns)
{
	const struct timespec pause = { (time_t)(ns / 1000000000u),
					(long)(ns % 1000000000u) };

	nanosleep(&pause, NULL);
}

int fs_freeze_writes(struct fs *fs, const struct fs_freezer *who, char *why,
		     size_t why_len)
{
	int err;

	snprintf(why, why_len, "it could not be frozen");
	if (fs->fs_shared_glocks) {
		err = claim(fs, who);
		if (err == -EBUSY)
			snprintf(why, why_len, "another node has frozen it");
		if (err)
			return err;
	}
	err = freeze_once(fs, who, why, why_len);
	for (unsigned i = 1; err == -EBUSY && i < TRIES; i++) {
		pause_ns(RETRY_NS);
		if (is_given_up(fs, who))
			break;
		err = freeze_once(fs, who, why, why_len);
	}
	if (err && fs->fs_shared_glocks)
		drop(&fs->fs_freeze.who_gh);
	return err == -ETIMEDOUT ? -EBUSY : err;
}

void fs_thaw_writes(struct fs *fs)
{
	if (fs->fs_shared_glocks) {
		if (take_back(fs) && !fs_is_withdrawn(fs))
			fs_withdraw(fs, "the lock FREEZE has been lost");
		drop(&fs->fs_freeze.who_gh);
	}
	go_on(fs);
}

int fs_freeze_follow(struct fs *fs, const struct fs_freezer *who)
{
	struct freeze *fz = &fs->fs_freeze;
	int err;

	if (!glock_is_wanted(fz->gl))
		return 0;
	err = come_to_rest(fs, who);
	/* Without our rest they wait a minute, and give up. */
	if (err) {
		ug_warn(fs->fs_who, "not frozen as another node wants it: %s",
			strerror(-err));
		return err;
	}
	who->frozen(who->arg, slot_of_freezer(fs));
	drop(&fz->gh);
	err = take(fs, fz->gl, LM_ST_SHARED, GL_EXACT, 0, who, &fz->gh);
	if (err && !fs_is_withdrawn(fs))
		fs_withdraw(fs, "the lock FREEZE has been lost");
	go_on(fs);
	return err;
}
