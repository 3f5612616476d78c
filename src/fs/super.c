/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * super.c - faults, withdraw, and the small questions about a mounted volume.
 *
 * Withdraw: the device is shut first, so that from this moment nothing is
 * written whatever other threads are doing; then the journal is failed and all
 * glock requests fail. The log stays dirty: the next mount replays what had
 * been committed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "fs/icache.h"
#include "fs/inode.h"
#include "fs/pages.h"
#include "fs/super.h"

const struct glock_ops fs_rename_glock_ops = {
	.type = LM_TYPE_NONDISK,
};

void fs_options_init(struct fs_options *opt)
{
	*opt = (struct fs_options){
		.barriers = true,
		.atime = FS_ATIME_RELATIME,
		.commit_sec = 5,
		.statfs_quantum_sec = 30,
	};
}

struct fs_time fs_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (struct fs_time){ ts.tv_sec, (uint32_t)ts.tv_nsec };
}

bool fs_is_withdrawn(const struct fs *fs)
{
	return atomic_load_explicit(&fs->fs_withdrawn, memory_order_relaxed);
}

bool fs_is_readonly(const struct fs *fs)
{
	return fs->fs_rdonly;
}

int fs_may_write(struct fs *fs)
{
	if (ug_unlikely(fs_is_withdrawn(fs)))
		return -EIO;
	return fs->fs_rdonly ? -EROFS : 0;
}

void fs_withdraw(struct fs *fs, const char *fmt, ...)
{
	char why[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	blkdev_shut(fs->fs_dev);
	/* Who sees the mark may drop what the journal still holds. */
	bufcache_set_failed(fs->fs_cache);
	if (atomic_exchange(&fs->fs_withdrawn, true))
		return;
	ug_error(fs->fs_who,
		 "withdrawn: %s; nothing more is written, every access fails "
		 "until it is unmounted, the next mount recovers the journal",
		 why);
	if (fs->fs_opt.errors_panic) {
		ug_log_dump(stderr);
		abort();
	}
	if (fs->fs_journal)
		journal_abort(fs->fs_journal, -EIO);
	glock_table_withdraw(fs->fs_glocks);
	freeze_withdrawn(fs);
	if (fs->fs_host && fs->fs_host->withdrawn)
		fs->fs_host->withdrawn(fs->fs_host_arg, why);
}

void fs_info(const struct fs *fs, struct fs_info *out)
{
	const struct fs_options *opt = &fs->fs_opt;
	const struct gfs2_sb_info *sb = &fs->fs_sb;

	*out = (struct fs_info){
		.lockproto = fs->fs_lockmod.ops ? fs->fs_lockmod.ops->name
						: "lock_nolock",
		.locktable = opt->locktable ? opt->locktable : sb->locktable,
		.jid = opt->jid,
		.journals = fs->fs_journals,
		.readonly =
			opt->readonly || opt->spectator || fs->fs_dev->readonly,
		.spectator = opt->spectator,
		.format = sb->fs_format,
		.bsize = sb->bsize,
		.uuid = sb->uuid,
	};
}

struct glock_table *fs_glock_table(struct fs *fs)
{
	return fs->fs_shared_glocks ? fs->fs_shared_glocks : fs->fs_glocks;
}

bool fs_glock_work(struct fs *fs)
{
	bool more;

	pthread_rwlock_rdlock(&fs->fs_journal_lock);
	more = glock_table_work(fs->fs_shared_glocks);
	pthread_rwlock_unlock(&fs->fs_journal_lock);
	return more;
}

uint64_t fs_glock_wake_ns(struct fs *fs)
{
	return glock_table_wake_ns(fs->fs_shared_glocks);
}

void fs_freeze(struct fs *fs)
{
	glock_table_freeze(fs->fs_shared_glocks);
}

void fs_thaw(struct fs *fs)
{
	glock_table_thaw(fs->fs_shared_glocks);
}

int fs_fault(struct fs *fs, int err)
{
	if (ug_likely(err != -EUCLEAN))
		return err;
	fs_withdraw(fs, "the volume's metadata is damaged");
	return -EIO;
}

int fs_bad_block(struct fs *fs, uint64_t blkno, const char *fmt, ...)
{
	char what[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	ug_error(fs->fs_who, "block %" PRIu64 ": %s", blkno, what);
	return -EUCLEAN;
}

void fs_stats(struct fs *fs, struct fs_stats *out)
{
	struct bufcache_stats bs;

	bufcache_stats(fs->fs_cache, &bs);
	*out = (struct fs_stats){
		.inodes = icache_count(fs),
		.inodes_dirty = icache_dirty_count(fs),
		.buffers_bytes = bs.bytes,
	};
	pagepool_stats(fs, &out->pages_bytes, &out->pages_dirty_bytes);
}
