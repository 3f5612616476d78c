/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mount.c - from a device to a mounted volume and back.
 *
 *   read the superblock               nothing is written up to here,
 *   find the journals                 whatever is wrong
 *   locks of the cluster (clusterlocks.c); a frozen volume is waited for
 *   alone: look at every journal      else: at our own
 *   dirty ones: recovery (recover.c)
 *   open the metadata tree
 *   own journal, statfs, groups
 *   release unlinked inodes, if there was a recovery
 *   others may mount
 *
 * Where the journals are is read without any lock of the cluster, through a
 * tree of our own: nothing of it changes while a volume is mounted, and a node
 * that joins while a journal is dirty may be the only one left to recover it.
 *
 * A read-only mount recovers too (if the device can be written) and releases
 * unlinked inodes with the journal open for that long only.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "fs/clusterlocks.h"
#include "fs/evict.h"
#include "fs/icache.h"
#include "fs/inode.h"
#include "fs/journals.h"
#include "fs/metatree.h"
#include "fs/recover.h"
#include "fs/rgrp.h"
#include "fs/statfs.h"
#include "fs/work.h"

/* The default cache: an eighth of the machine's memory, within these. */
#define CACHE_BYTES_LEAST (256ull << 20)
#define CACHE_BYTES_MOST (512ull << 20)
#define INODES_MAX_DEFAULT 65536u
#define IO_THREADS_MAX 16u
/* How long the end of a mount waits for other nodes to merge theirs. */
#define MERGE_PATIENCE_SEC 30u
#define NS_PER_MS 1000000u

/* ---- superblock ---- */

static int check_lockproto(struct fs *fs, const struct why *why)
{
	const struct fs_options *opt = &fs->fs_opt;
	const char *disk = fs->fs_sb.lockproto;
	const char *proto = opt->lockproto ? opt->lockproto : disk;

	if (fs->fs_lockmod.ops)
		return 0;
	if (strcmp(proto, "lock_nolock"))
		return why_set(
			why, -ENOTSUP,
			"lock protocol is \"%s\"%s; this version mounts "
			"\"lock_nolock\" and \"lock_dlm\" "
			"(lockproto=lock_nolock with force mounts the volume "
			"on this host alone)",
			proto,
			opt->lockproto ? " by option" : " by the superblock");
	if (strcmp(disk, "lock_nolock") && !opt->force)
		return why_set(why, -ENOTSUP,
			       "the superblock's lock protocol is \"%s\": the "
			       "volume may be in use by other hosts; give the "
			       "option force if you are sure that it is not",
			       disk);
	return 0;
}

static int read_super(struct fs *fs, const struct why *why)
{
	uint64_t need = GFS2_SB_OFFSET_BYTES + GFS2_BSIZE_MAX;
	char text[200];
	void *block;
	int err;

	if (fs->fs_dev->size_bytes < need)
		return why_set(
			why, -EINVAL,
			"the device has %" PRIu64
			" bytes; a GFS2 superblock ends at byte %" PRIu64,
			fs->fs_dev->size_bytes, need);
	block = blkdev_alloc(GFS2_BSIZE_MAX);
	if (!block)
		return why_set(why, -ENOMEM, "out of memory");
	err = blkdev_read(fs->fs_dev, block, GFS2_BSIZE_MAX,
			  GFS2_SB_OFFSET_BYTES);
	if (err) {
		why_set(why, err, "cannot read the superblock: %s",
			strerror(-err));
	} else {
		err = gfs2_sb_decode(block, GFS2_BSIZE_MAX, &fs->fs_sb, text,
				     sizeof(text));
		if (err)
			why_set(why, err, "%s", text);
	}
	free(block);
	if (err)
		return err;
	err = gfs2_geom_init(&fs->fs_geom, fs->fs_sb.bsize);
	if (err)
		return why_set(why, err, "block size %u cannot be used",
			       fs->fs_sb.bsize);
	if (fs->fs_sb.bsize < fs->fs_dev->sector_bytes)
		return why_set(why, -EINVAL,
			       "block size %u is smaller than the device's "
			       "sectors of %u bytes",
			       fs->fs_sb.bsize, fs->fs_dev->sector_bytes);
	fs->fs_blocks = fs->fs_dev->size_bytes >> fs->fs_geom.bshift;
	return check_lockproto(fs, why);
}

/* ---- own journal ---- */

static void journal_failed(void *arg, int err, const char *what)
{
	fs_withdraw(arg, "%s: %s", what, strerror(-err));
}

static void journal_want_flush(void *arg)
{
	fs_wake(arg, FS_WORK_COMMIT);
}

static void journal_want_writeback(void *arg)
{
	fs_wake(arg, FS_WORK_CHECKPOINT);
}

static void journal_statfs_local(void *arg, int64_t *total, int64_t *free_,
				 int64_t *dinodes)
{
	statfs_local(arg, total, free_, dinodes);
}

static const struct journal_ops journal_ops = {
	.failed = journal_failed,
	.want_flush = journal_want_flush,
	.want_writeback = journal_want_writeback,
	.statfs_local = journal_statfs_local,
};

static int open_own_journal(struct fs *fs, struct journals *js,
			    const struct why *why)
{
	struct journal_info *ji = &js->infos[fs->fs_opt.jid];
	struct journal_params params = {
		.dev = fs->fs_dev,
		.cache = fs->fs_cache,
		.pool = fs->fs_pool,
		.map = &fs->fs_logmap,
		.block_bytes = fs->fs_geom.bsize,
		.jid = fs->fs_opt.jid,
		.jinode_addr = ji->addr,
		.statfs_addr = fs->fs_sc_ip->i_addr,
		.quota_addr = fs->fs_qc_ip->i_addr,
		.head_sequence = ji->head.sequence,
		.head_blkno = ji->head.blkno,
		.barriers = fs->fs_opt.barriers,
		.shared = !fs->fs_alone,
		.who = fs->fs_who,
		.ops = &journal_ops,
		.arg = fs,
	};
	int err;

	fs->fs_logmap = ji->map;
	logmap_init(&ji->map);
	pthread_rwlock_wrlock(&fs->fs_journal_lock);
	err = journal_create(&params, &fs->fs_journal);
	pthread_rwlock_unlock(&fs->fs_journal_lock);
	return err ? why_set(why, err, "journal %u: %s", params.jid,
			     strerror(-err))
		   : 0;
}

static int open_node_files(struct fs *fs, const struct why *why)
{
	unsigned jid = fs->fs_opt.jid;
	int err = 0;

	/* Those of a spectator's number are another node's. */
	if (!fs->fs_opt.spectator)
		err = metatree_open_numbered(fs->fs_per_node, "statfs_change",
					     jid, &fs->fs_sc_ip, why);
	if (!err && !fs->fs_opt.spectator)
		err = metatree_open_numbered(fs->fs_per_node, "quota_change",
					     jid, &fs->fs_qc_ip, why);
	if (err)
		return err;
	err = statfs_load(fs);
	return err ? why_set(why, err, "the statfs files cannot be read") : 0;
}

/*
 * Other nodes ask for locks until the last one is given back: whoever syncs for
 * them now is waited for, who comes later finds no journal, and everything in
 * place.
 */
static void close_journal(struct fs *fs)
{
	pthread_rwlock_wrlock(&fs->fs_journal_lock);
	if (fs->fs_journal) {
		journal_destroy(fs->fs_journal);
		fs->fs_journal = NULL;
	}
	pthread_rwlock_unlock(&fs->fs_journal_lock);
	logmap_fini(&fs->fs_logmap);
}

/* No request is running: everything on disk, the log clean. */
static int shut_down(struct fs *fs)
{
	int err, err2;

	err = fs_writeback_all(fs);
	icache_drain_evict(fs);
	orphans_look(fs, true);
	recover_end(fs);
	err2 = statfs_merge(fs, MERGE_PATIENCE_SEC);
	/* They stay in our file, for its next owner. */
	if (err2 == -EAGAIN)
		ug_warn(fs->fs_who, "statfs is not merged: another node keeps "
				    "it locked");
	else if (!err)
		err = err2;
	err2 = journal_shutdown(fs->fs_journal);
	return err ? err : err2;
}

/*
 * Inodes without links that a crash has left. With a recovery behind us, also
 * for a read-only mount.
 */
static int release_unlinked(struct fs *fs, const struct why *why)
{
	int err;

	err = rgrps_each_unlinked(fs, evict_unlinked, NULL);
	if (!err)
		icache_drain_evict(fs);
	return err ? why_set(why, err, "releasing unlinked inodes: %s",
			     err == -EUCLEAN ? "metadata is damaged"
					     : strerror(-err))
		   : 0;
}

static int start(struct fs *fs, struct journals *js, bool recovered,
		 const struct why *why)
{
	bool rdonly = fs->fs_opt.readonly || fs->fs_opt.spectator ||
		      fs->fs_dev->readonly;
	int err;

	err = glock_get(fs->fs_glocks, &fs_rename_glock_ops, FS_RENAME_NUMBER,
			NULL, &fs->fs_rename_gl);
	if (err)
		return why_set(why, err, "out of memory");
	err = open_node_files(fs, why);
	if (!err && (!rdonly || recovered))
		err = open_own_journal(fs, js, why);
	if (!err && recovered)
		err = release_unlinked(fs, why);
	if (!err && rdonly && fs->fs_journal) {
		err = shut_down(fs);
		if (err)
			why_set(why, err, "recovery: %s", strerror(-err));
		else
			close_journal(fs);
		/* Of other nodes' journals, without one of our own. */
		fs->fs_recover_over = false;
	}
	fs->fs_rdonly = rdonly;
	return err;
}

/* ---- recovery ---- */

/* Until every owner of an older journal is known to be dead. */
static int wait_may_repair(struct fs *fs, const struct why *why)
{
	static const struct timespec pause = { .tv_nsec = 100 * NS_PER_MS };
	const struct fs_host_ops *host = fs->fs_host;
	char text[256];
	int err;

	while ((err = host->may_repair(fs->fs_host_arg, text, sizeof(text))) ==
	       -EAGAIN) {
		if (host->waits(fs->fs_host_arg, text))
			return why_set(why, -EINTR, "interrupted: %s", text);
		nanosleep(&pause, NULL);
	}
	return err ? why_set(why, err, "the journals cannot be replayed: %s",
			     strerror(-err))
		   : 0;
}

/* No other node has the volume mounted. *recovered: something was dirty. */
static int recover_all(struct fs *fs, bool *recovered, const struct why *why)
{
	int err = journals_find_heads(fs, fs->fs_js, why);

	if (err)
		return err;
	*recovered = journals_any_dirty(fs->fs_js);
	if (!*recovered)
		return 0;
	/* A spectator never writes; it sees the state as of the last commit
	 * that is in place. */
	if (fs->fs_opt.spectator)
		return why_set(why, -EROFS,
			       "a journal is dirty; a spectator does not "
			       "replay it, mount the volume without spectator "
			       "first");
	if (fs->fs_lockmod.ops)
		err = wait_may_repair(fs, why);
	return err ? err : recover_journals(fs, fs->fs_js, why);
}

/* Whoever had our number before: its journal is clean, or we make it so. */
static int recover_own(struct fs *fs, const struct why *why)
{
	unsigned jid = fs->fs_opt.jid;
	int err;

	if (fs->fs_opt.spectator)
		return 0;
	err = recover_journal(fs, &fs->fs_js->infos[jid]);
	return err ? why_set(why, err, "journal %u cannot be replayed: %s", jid,
			     strerror(-err))
		   : 0;
}

/* ---- mount, unmount ---- */

/* Maps of all journals, from a tree that is gone again afterwards. */
static int find_journals(struct fs *fs, const struct why *why)
{
	unsigned jid = fs->fs_opt.jid;
	int err;

	fs->fs_js = calloc(1, sizeof(*fs->fs_js));
	if (!fs->fs_js)
		return why_set(why, -ENOMEM, "out of memory");
	err = metatree_create_caches(fs, METATREE_PRIVATE, why);
	if (!err)
		err = metatree_load_index(fs, why);
	if (!err)
		err = journals_open(fs, fs->fs_js, why);
	if (!err)
		err = journals_find_statfs(fs, fs->fs_js, why);
	metatree_unload(fs);
	if (err)
		return err;
	fs->fs_journals = fs->fs_js->count;
	if (jid < fs->fs_journals || fs->fs_opt.spectator)
		return 0;
	if (fs->fs_lockmod.ops)
		return why_set(
			why, -EINVAL,
			"the volume has %u journals, and this node would "
			"be number %u: add journals with gfs2_jadd",
			fs->fs_journals, jid + 1);
	return why_set(why, -EINVAL,
		       "journal %u was asked for, the volume has %u", jid,
		       fs->fs_journals);
}

static void glock_host_wake(void *arg)
{
	struct fs *fs = arg;

	fs->fs_host->glock_wake(fs->fs_host_arg);
}

static int open_shared(struct fs *fs, bool *first, const struct why *why)
{
	const struct glock_host host = { glock_host_wake, fs };
	int err = glock_table_create(&fs->fs_lockmod, fs->fs_who,
				     &fs->fs_shared_glocks);

	if (err)
		return why_set(why, err, "out of memory");
	glock_table_set_host(fs->fs_shared_glocks, &host);
	tune_glocks(fs);
	glock_table_freeze(fs->fs_shared_glocks);
	fs->fs_host->opened(fs->fs_host_arg, fs);
	err = cluster_locks_take(fs, first, why);
	return err ? err : freeze_join(fs, why);
}

static int mount_volume(struct fs *fs, const struct why *why)
{
	bool recovered = false, first = true;
	int err;

	err = read_super(fs, why);
	if (!err)
		err = find_journals(fs, why);
	if (!err && fs->fs_lockmod.ops)
		err = open_shared(fs, &first, why);
	if (!err)
		err = first ? recover_all(fs, &recovered, why)
			    : recover_own(fs, why);
	metatree_unload(fs);
	if (!err)
		err = metatree_create_caches(fs, METATREE_SHARED, why);
	if (!err)
		err = metatree_load(fs, why);
	if (!err)
		err = start(fs, fs->fs_js, recovered, why);
	if (!err && fs->fs_locks)
		err = cluster_locks_mounted(fs, why);
	if (!err && fs->fs_locks)
		recover_mounted(fs);
	return err == -ENOENT ? -EUCLEAN : err;
}

static uint64_t default_cache_bytes(void)
{
	uint64_t eighth = (uint64_t)sysconf(_SC_PHYS_PAGES) *
			  (uint64_t)sysconf(_SC_PAGESIZE) / 8;

	return UG_MIN(UG_MAX(eighth, CACHE_BYTES_LEAST), CACHE_BYTES_MOST);
}

static void set_defaults(struct fs_options *opt)
{
	if (!opt->cache_bytes)
		opt->cache_bytes = default_cache_bytes();
	if (!opt->inodes_max)
		opt->inodes_max = INODES_MAX_DEFAULT;
	if (!opt->commit_sec)
		opt->commit_sec = 1;
}

/* Locks are given back last: nobody else may write before we have closed. */
static void close_shared(struct fs *fs)
{
	if (!fs->fs_shared_glocks)
		return;
	freeze_leave(fs);
	cluster_locks_drop(fs);
	fs->fs_host->closing(fs->fs_host_arg);
	glock_table_destroy(fs->fs_shared_glocks);
}

static void free_fs(struct fs *fs)
{
	recover_end(fs);
	close_journal(fs);
	metatree_unload(fs);
	close_shared(fs);
	if (fs->fs_js)
		journals_fini(fs->fs_js);
	free(fs->fs_js);
	if (fs->fs_pool)
		iopool_destroy(fs->fs_pool);
	pthread_rwlock_destroy(&fs->fs_journal_lock);
	pthread_mutex_destroy(&fs->fs_recover_lock);
	freeze_fini(fs);
	orphans_fini(&fs->fs_orphans);
	free(fs->fs_who);
	free(fs);
}

int fs_mount(const struct fs_params *params, struct fs **fsp, char *why_text,
	     size_t why_len)
{
	struct why why = { why_text, why_len };
	struct fs *fs = calloc(1, sizeof(*fs));
	int err;

	if (!fs)
		return why_set(&why, -ENOMEM, "out of memory");
	fs->fs_opt = params->opt;
	set_defaults(&fs->fs_opt);
	tune_init(fs);
	fs->fs_host = params->host;
	fs->fs_host_arg = params->arg;
	fs->fs_dev = params->dev;
	if (params->lockmod)
		fs->fs_lockmod = *params->lockmod;
	logmap_init(&fs->fs_logmap);
	pthread_mutex_init(&fs->fs_recover_lock, NULL);
	freeze_init(fs);
	orphans_init(&fs->fs_orphans);
	pthread_rwlock_init(&fs->fs_journal_lock, NULL);
	fs->fs_who = strdup(params->who);
	err = fs->fs_who
		      ? iopool_create(fs->fs_dev, IO_THREADS_MAX, &fs->fs_pool)
		      : -ENOMEM;
	if (err)
		why_set(&why, err, "out of memory");
	else
		err = mount_volume(fs, &why);
	if (err) {
		if (fs->fs_journal)
			journal_abort(fs->fs_journal, err);
		free_fs(fs);
		return err;
	}
	if (fs->fs_opt.meta) {
		struct inode *root = fs->fs_root;

		inode_ref(fs->fs_master, 1);
		fs->fs_root = fs->fs_master;
		inode_put(root);
	}
	*fsp = fs;
	return 0;
}

/* Inodes that the mount itself refers to. */
static bool is_ours(struct fs *fs, const struct inode *ip)
{
	return ip == fs->fs_root || ip == fs->fs_master ||
	       ip == fs->fs_jindex || ip == fs->fs_per_node ||
	       ip == fs->fs_rindex || ip == fs->fs_statfs_ip ||
	       ip == fs->fs_sc_ip || ip == fs->fs_qc_ip;
}

int fs_unmount(struct fs *fs)
{
	int err = 0;

	if (fs->fs_journal && !fs_is_withdrawn(fs)) {
		err = fs_writeback_all(fs);
		icache_drop_users(fs, is_ours);
		if (!err)
			err = shut_down(fs);
		else
			journal_abort(fs->fs_journal, err);
	}
	if (fs_is_withdrawn(fs))
		err = -EIO;
	free_fs(fs);
	return err;
}
