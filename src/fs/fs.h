/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fs.h - the face of the file system: what a front end may call.
 *
 * The front end (FUSE) decodes requests, finds inodes by node id and calls one
 * function per operation. Permission to do the operation by mode bits
 * has been checked by the kernel (default_permissions) from attributes that
 * were current; what the kernel cannot know (immutable and append-only flags,
 * sticky directories of a victim that changed meanwhile) is checked here.
 *
 * No-wait mode: with req->nowait a call that would have to wait for a lock that
 * can be held across I/O, or for the device, returns -EAGAIN before any
 * visible effect; the caller repeats it with nowait false from a thread that
 * may wait. -EAGAIN is never returned otherwise.
 *
 * Parking: with req->park a call that would have to wait for the lock of an
 * inode, which may be with another node, returns -EINPROGRESS instead, as
 * if nothing had happened; see struct fs_park.
 *
 * Errors of every call: -EIO (device, or the file system has withdrawn),
 * -EUCLEAN becomes -EIO at this face after the withdraw, -ENOMEM, -EROFS for
 * changes of a read-only mount, -ESTALE for an inode that is gone. Further
 * ones stand with the call.
 *
 * Threads: any thread may call anything. The file system has no threads: it
 * asks its host to run fs_work_run() (host->wake).
 */
#ifndef UG_FS_FS_H
#define UG_FS_FS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/compiler.h"
#include "block/block.h"
#include "glock/glock.h"

struct fs;
struct fs_park;
struct inode;
struct lockmod;

/* ---- mounting ---- */

enum fs_atime {
	FS_ATIME_RELATIME,
	FS_ATIME_STRICT,
	FS_ATIME_NOATIME,
};

struct fs_options {
	bool readonly;
	bool spectator;	     /* no journal of our own; implies readonly */
	bool data_writeback; /* data=writeback */
	bool barriers;	     /* default true */
	bool nodiratime;
	bool suiddir;
	bool acl;  /* POSIX access control lists */
	bool sync; /* every change durable before it is answered */
	bool dirsync;
	bool meta;	   /* the root is the metadata directory */
	bool errors_panic; /* errors=panic: abort instead of withdrawing */
	enum fs_atime atime;
	unsigned commit_sec;	     /* age at which changes are made durable */
	unsigned statfs_quantum_sec; /* merge of local statfs; 0: each commit */
	unsigned statfs_percent;     /* merge sooner beyond this share */
	unsigned jid;		     /* journal to use (hostdata=jid=) */
	const char *lockproto;	     /* NULL: what the superblock says */
	const char *locktable;	     /* NULL: what the superblock says */
	bool force;		     /* lock_nolock on a lock_dlm volume */
	uint64_t
		cache_bytes; /* bound of data pages plus metadata; 0: default */
	uint64_t inodes_max; /* bound of cached unreferenced inodes; 0: default
			      */
};

/* Defaults of every field. */
void fs_options_init(struct fs_options *opt);

enum fs_work {
	FS_WORK_WRITEBACK,  /* dirty pages and inodes */
	FS_WORK_COMMIT,	    /* flush the log */
	FS_WORK_CHECKPOINT, /* committed blocks in place, tail forward */
	FS_WORK_EVICT,	    /* free inodes without links */
	FS_WORK_COUNT,
};

struct fs_host_ops {
	/* Run fs_work_run(fs, work) soon. Called from anywhere, must not wait.
	 */
	void (*wake)(void *arg, enum fs_work work);
	/* The file system has withdrawn; once. May be NULL. */
	void (*withdrawn)(void *arg, const char *why);
	/*
	 * Attributes or pages that the kernel may keep of this node have
	 * changed behind its back. Called without locks. May be NULL.
	 */
	void (*invalidate)(void *arg, uint64_t nodeid, bool data);
	/*
	 * The lock of this node is about to go to another one: have the kernel
	 * forget attributes with fs_attr.keep, and pages of fs_read_fill(). The
	 * node can be used meanwhile, by requests that this may wait for. From
	 * a glock worker, without locks. NULL: the kernel keeps nothing.
	 */
	void (*recall)(void *arg, uint64_t nodeid);
	/*
	 * With the lock of the node held, a handle that can write is about to
	 * be there; and it is gone, without. From then on pages may be changed
	 * by stores to a mapping. 0; 1: the kernel may have pages that only SH
	 * protects, so it must be called again with the lock EX; -ENOMEM. May
	 * be NULL, both.
	 */
	int (*writer)(void *arg, uint64_t nodeid, bool exclusive);
	void (*writer_gone)(void *arg, uint64_t nodeid);
	/*
	 * The rest is for a lock module with other nodes behind it.
	 *
	 * From within fs_mount(): fs_glock_work(), fs_freeze(), fs_thaw() and
	 * fs_recover_journal() can be called from now on. The threads that give
	 * locks back must run; grants are frozen until fs_thaw().
	 */
	void (*opened)(void *arg, struct fs *fs);
	/*
	 * From within fs_unmount(), or fs_mount() when it fails after opened():
	 * none of these calls may be running when this returns, nor follow.
	 */
	void (*closing)(void *arg);
	/* glock_host.wake: see glock.h. */
	void (*glock_wake)(void *arg);
	/*
	 * Another node wants to freeze the volume: call fs_freeze_follow()
	 * soon, once it is mounted. Called from anywhere, must not wait.
	 */
	void (*freeze_wanted)(void *arg);
	/*
	 * May journals be replayed whose owners may have been members of an
	 * earlier group? 0; -EAGAIN, with a sentence on what it waits for.
	 */
	int (*may_repair)(void *arg, char *why, size_t why_len);
	/*
	 * The mount waits, for what the sentence says; called about once a
	 * second. Not 0: give up, -EINTR.
	 */
	int (*waits)(void *arg, const char *why);
};

struct fs_params {
	struct blkdev *dev; /* borrowed until fs_unmount has returned */
	const char *who;    /* name in log lines: the fs part of the lock table,
			     * or the device's last component; copied */
	struct fs_options opt;
	const struct fs_host_ops *host;
	void *arg;
	/* NULL: lock_nolock. Else opt.jid is the journal of this member. */
	const struct lockmod *lockmod;
};

/*
 * Mount: read the superblock and system files, replay dirty journals, recover
 * statfs and unlinked inodes. On failure nothing stays allocated, and unless a
 * replay had begun nothing has been written; why is a sentence for
 * the user. -EINVAL not a GFS2 volume or an option that does not fit;
 * -EUCLEAN damaged; -EBUSY; -EROFS dirty journal on a read-only device;
 * -ENOTSUP lock protocol; -EIO; -ENOMEM; -EINTR host->waits() said so.
 */
int fs_mount(const struct fs_params *params, struct fs **fsp, char *why,
	     size_t why_len);

/*
 * Everything on disk and the journal clean (or, withdrawn, nothing). No
 * request may be running or come. 0, or the error that left it dirty.
 * Frees fs in every case.
 */
int fs_unmount(struct fs *fs);

/*
 * Do the work if there is any. now: because somebody asked (wake), as
 * against the host's periodic call each second. May wait long.
 */
void fs_work_run(struct fs *fs, enum fs_work work, bool now);

/* ---- with other nodes ---- */

/* glock_table_work() and glock_table_wake_ns(). */
bool fs_glock_work(struct fs *fs);
uint64_t fs_glock_wake_ns(struct fs *fs);

/*
 * Grants are kept back from freeze to thaw: while members change, and until
 * every journal of a dead member is clean (docs/spec/glocks.md 2.13).
 */
void fs_freeze(struct fs *fs);
void fs_thaw(struct fs *fs);

/*
 * Make the journal of a dead member clean. Several nodes may try: one does it,
 * the others find it done. 0: it is clean (or there is no such journal);
 * -EAGAIN: somebody has it, try again; -EROFS: this mount cannot; -EIO;
 * -EUCLEAN: the log is damaged; -ENOMEM. Waits for a second at most, and for
 * the device.
 */
int fs_recover_journal(struct fs *fs, unsigned jid);

/* Stop all writing, answer -EIO from now on. Any thread; once. */
void fs_withdraw(struct fs *fs, const char *fmt, ...) ug_printf(2, 3);
bool fs_is_withdrawn(const struct fs *fs);
bool fs_is_readonly(const struct fs *fs);

/* ---- freezing (freeze.c) ---- */

/*
 * A frozen volume is whole on disk on every node's account, needs no replay,
 * and nothing is written to it: its device can be copied. Reading goes on;
 * changes wait for the thaw. Not to be confused with fs_freeze(), which is
 * about grants.
 *
 * Who calls something that may change the volume is between these two, of one
 * thread: fs_setattr(), fs_make() and so on, fs_fsync(), fs_sync(). false: it
 * is frozen, or being frozen; try again after the thaw. Not for what others
 * wait for: fs_write() with FS_IO_MAPPED, fs_release().
 */
bool fs_change_begin(struct fs *fs);
void fs_change_end(struct fs *fs);

struct fs_freezer {
	/* Asked several times a second: shall it be given up? */
	bool (*give_up)(void *arg);
	/* For fs_freeze_follow(): nothing is written any more; slot: of the
	 * member that wants it, 0 if not known. */
	void (*frozen)(void *arg, unsigned slot);
	void *arg;
};

/*
 * All from one thread, of a mounted volume, until it is unmounted, which must
 * not be frozen then unless it has withdrawn.
 *
 * Freeze the whole cluster: 0, and it is frozen until fs_thaw_writes(). Else it
 * is not, with a sentence: -EBUSY: another node freezes or has frozen it, or
 * does not come to rest; -EINTR given up; what kept it from being written, -EIO
 * or -ENOMEM.
 */
int fs_freeze_writes(struct fs *fs, const struct fs_freezer *who, char *why,
		     size_t why_len);
void fs_thaw_writes(struct fs *fs);
/*
 * As another node wants it, until it thaws, dies, or we withdraw. 0; else it is
 * not frozen, to be tried again unless the volume has withdrawn: -EBUSY,
 * -EINTR, -EIO, -ENOMEM.
 */
int fs_freeze_follow(struct fs *fs, const struct fs_freezer *who);

/* ---- for administrators ---- */

/*
 * What does not change. Like the next one from within fs_host_ops.opened() on;
 * without other nodes, once it is mounted. Strings are the file system's.
 */
struct fs_info {
	const char *lockproto; /* in use, as the next */
	const char *locktable;
	unsigned jid;
	unsigned journals;
	bool readonly, spectator;
	uint32_t format;
	uint32_t bsize;
	const uint8_t *uuid; /* 16 bytes */
};
void fs_info(const struct fs *fs, struct fs_info *out);

/* For dumps and counters (glock.h, glstat.h). */
struct glock_table *fs_glock_table(struct fs *fs);

/* A value that can be changed while the volume is mounted. */
struct fs_tunable {
	const char *name;
	const char *unit;
	unsigned value, min, max;
};
/* The i-th one of this mount; false: there are no more. */
bool fs_tunable(struct fs *fs, unsigned i, struct fs_tunable *out);
/* At once, until it is unmounted. -ENOENT: the mount has none of this name;
 * -ERANGE. */
int fs_tune(struct fs *fs, const char *name, unsigned value);

/* ---- requests ---- */

struct fs_req {
	uint32_t uid;
	uint32_t gid;
	uint32_t pid;
	bool nowait;
	struct fs_park *park; /* NULL: waits for locks in the calling thread */
};

/*
 * The place of a request in the queue of the one lock that it waits for, held
 * by no thread (DESIGN 6.3). Zeroed but for resume at first; it stays with the
 * request from one attempt to the next.
 *
 * After -EINPROGRESS resume() comes once, from any thread and perhaps before
 * the call has returned: then the call is made again, and finds the lock
 * granted. It runs with locks of the glocks held: put the request into
 * a queue, wake a thread, return. fs_unpark() gives the place up, and also
 * what was granted and then not used; resume() is not running when it returns
 * and does not come any more. Without a place it does nothing.
 */
struct fs_park {
	void (*resume)(struct fs_park *park);
	struct inode *ip; /* NULL: no place */
	struct glock_holder gh;
};
void fs_unpark(struct fs_park *park);

struct fs_time {
	int64_t sec;
	uint32_t nsec;
};

struct fs_attr {
	uint64_t ino; /* st_ino: the dinode's address */
	uint64_t size;
	uint64_t blocks_512;
	struct fs_time atime, mtime, ctime;
	uint32_t mode, nlink, uid, gid;
	uint32_t rdev_major, rdev_minor;
	uint32_t blksize;
	/* True until fs_host_ops.recall() or invalidate(), or a request. */
	bool keep;
};

struct fs_entry {
	uint64_t nodeid; /* FS_ROOT_NODEID or the dinode's address */
	uint64_t generation;
	struct fs_attr attr;
};

#define FS_ROOT_NODEID 1u

/*
 * The inode of a node id that the kernel knows, with a reference
 * (inode_put()); NULL if there is none.
 */
struct inode *fs_inode_get(struct fs *fs, uint64_t nodeid);
void inode_put(struct inode *ip); /* NULL is accepted */

/*
 * Find a name. On success the kernel's count of the inode has gone up by one.
 * "." and ".." work for every directory. -ENOENT, -ENOTDIR, -ENAMETOOLONG.
 */
int fs_lookup(const struct fs_req *req, struct inode *dir, const char *name,
	      size_t len, struct fs_entry *out);

/*
 * Find an inode by number, for file handles: LOOKUP of "." in a node that is
 * not in memory. Counts like fs_lookup. -ESTALE if the block is no live
 * dinode, or is part of the metadata tree.
 */
int fs_lookup_nodeid(struct fs *fs, const struct fs_req *req, uint64_t nodeid,
		     struct fs_entry *out);

/* Has the kernel lookups of the node that it has not yet forgotten? */
bool fs_is_known(struct fs *fs, uint64_t nodeid);

/* The kernel has forgotten count lookups of the node. Never waits. */
void fs_forget(struct fs *fs, uint64_t nodeid, uint64_t count);

int fs_getattr(const struct fs_req *req, struct inode *ip, struct fs_attr *out);

/* Which fields of fs_setattr are wanted. */
#define FS_SET_MODE 0x001u
#define FS_SET_UID 0x002u
#define FS_SET_GID 0x004u
#define FS_SET_SIZE 0x008u
#define FS_SET_ATIME 0x010u
#define FS_SET_MTIME 0x020u
#define FS_SET_CTIME 0x040u
#define FS_SET_ATIME_NOW 0x080u
#define FS_SET_MTIME_NOW 0x100u
#define FS_SET_KILL_SUIDGID 0x200u

struct fs_setattr {
	unsigned valid; /* FS_SET_* */
	uint32_t mode, uid, gid;
	uint64_t size;
	struct fs_time atime, mtime, ctime;
};

/* -EPERM immutable or append-only; -EFBIG; -ENOSPC; -EISDIR size of a dir. */
int fs_setattr(const struct fs_req *req, struct inode *ip,
	       const struct fs_setattr *set, struct fs_attr *out);

/* Length of the target (not terminated), at most size; -EINVAL no symlink. */
ssize_t fs_readlink(const struct fs_req *req, struct inode *ip, char *buf,
		    size_t size);

/* ---- extended attributes ---- */

/*
 * name is terminated and has its prefix. Of each: -EOPNOTSUPP a name space that
 * the volume does not have ("trusted." before format 1802, "system."), -EINVAL
 * a prefix without a name.
 *
 * The value's length, and the value if size is not 0; buf is written only on
 * success. -ENODATA; -ERANGE size is too small.
 */
ssize_t fs_getxattr(const struct fs_req *req, struct inode *ip,
		    const char *name, void *buf, size_t size);
/* The same for all names, each terminated; "trusted." for root only. */
ssize_t fs_listxattr(const struct fs_req *req, struct inode *ip, char *buf,
		     size_t size);
/*
 * With the acl option also "system.posix_acl_access" and "..default", as of
 * acl(5): the mode follows the first, new inodes of a directory inherit the
 * second. FS_XATTR_KILL_SGID: set-group-id goes with it. -EACCES a default list
 * of what is no directory; -E2BIG more entries than GFS2 allows; -EINVAL.
 *
 * flags: 0, XATTR_CREATE (-EEXIST) or XATTR_REPLACE (-ENODATA). -E2BIG more
 * than 65,536 bytes; -ERANGE no block of the volume can hold it (blocks of
 * 512 bytes); -ENOSPC; -EPERM immutable or append-only.
 */
#define FS_XATTR_KILL_SGID 0x100
int fs_setxattr(const struct fs_req *req, struct inode *ip, const char *name,
		const void *value, size_t size, int flags);
/* -ENODATA, -EPERM. */
int fs_removexattr(const struct fs_req *req, struct inode *ip,
		   const char *name);

/* ---- names ---- */

/* What to make; mode has the type bits. */
struct fs_make {
	const char *name;
	size_t len;
	uint32_t mode;
	uint32_t umask; /* to be applied unless there is a default ACL */
	uint32_t rdev_major, rdev_minor;
	const char *target; /* symlink */
	size_t target_len;
};

/*
 * Make a file, directory, symlink or special file. Counts like fs_lookup.
 * -EEXIST, -ENOENT the directory has been removed, -ENOSPC, -EMLINK, -EPERM
 * immutable directory, -ENAMETOOLONG.
 */
int fs_make(const struct fs_req *req, struct inode *dir,
	    const struct fs_make *make, struct fs_entry *out);

/*
 * Open a regular file by name, made if it is missing (the O_CREAT of CREATE).
 * flags: open(2)'s. On success the file is open as by fs_open. *created tells.
 * -EEXIST with O_EXCL, else as fs_make and fs_open.
 */
int fs_create(const struct fs_req *req, struct inode *dir,
	      const struct fs_make *make, int flags, struct fs_entry *out,
	      bool *created);

int fs_link(const struct fs_req *req, struct inode *ip, struct inode *dir,
	    const char *name, size_t len, struct fs_entry *out);
/* -ENOENT, -EISDIR, -EPERM (sticky, immutable, append-only). */
int fs_unlink(const struct fs_req *req, struct inode *dir, const char *name,
	      size_t len);
/* -ENOTDIR, -ENOTEMPTY, -EBUSY for the root, -EINVAL for ".". */
int fs_rmdir(const struct fs_req *req, struct inode *dir, const char *name,
	     size_t len);

/* flags: 0 or RENAME_NOREPLACE; others -EINVAL. */
int fs_rename(const struct fs_req *req, struct inode *olddir,
	      const char *oldname, size_t oldlen, struct inode *newdir,
	      const char *newname, size_t newlen, unsigned flags);

/* ---- reading directories ---- */

struct fs_dirent {
	uint64_t ino;	  /* address */
	uint64_t next;	  /* cookie that continues behind this entry; never 0 */
	const char *name; /* not terminated; valid during the call */
	uint32_t len;
	uint32_t type; /* DT_* */
};

/* Returns false when there is no room for the entry: the listing ends. */
typedef bool (*fs_emit_fn)(void *arg, const struct fs_dirent *de);

/*
 * Call emit for the entries from the cookie on (0: the beginning), in cookie
 * order, until it returns false or the end. 0 also when nothing was left.
 */
int fs_readdir(const struct fs_req *req, struct inode *dir, uint64_t cookie,
	       fs_emit_fn emit, void *arg);

/*
 * The same with attributes: full entries whose inode's lookup count has gone
 * up when emit returned true. entry->nodeid 0 for "." and "..", and for an
 * entry whose inode could not be read.
 *
 * -EAGAIN (nowait): no count has gone up, what was emitted is to be forgotten.
 */
typedef bool (*fs_emit_plus_fn)(void *arg, const struct fs_dirent *de,
				const struct fs_entry *entry);
int fs_readdirplus(const struct fs_req *req, struct inode *dir, uint64_t cookie,
		   fs_emit_plus_fn emit, void *arg);

/* ---- files ---- */

/*
 * flags: open(2)'s. O_TRUNC truncates. Counts the handle until fs_release
 * with the same flags. -EPERM immutable or append-only for writing.
 */
int fs_open(const struct fs_req *req, struct inode *ip, int flags);
/* Never fails, never waits. */
void fs_release(struct inode *ip, int flags);

#define FS_IO_DIRECT 0x1u    /* O_DIRECT: bypass the pages where possible */
#define FS_IO_NOCACHE 0x2u   /* the kernel keeps the pages: keep no copy */
#define FS_IO_APPEND 0x4u    /* at the end of file, whatever the offset */
#define FS_IO_SYNC 0x8u	     /* durable before the answer (O_SYNC) */
#define FS_IO_DSYNC 0x10u    /* data durable before the answer (O_DSYNC) */
#define FS_IO_KILLPRIV 0x20u /* clear set-user-id and set-group-id */
/* Dirty pages of a mapping: never beyond the size, times unchanged. */
#define FS_IO_MAPPED 0x40u

/* Bytes read, 0 at and beyond the end of file. buf is BLKDEV_ALIGN-aligned. */
ssize_t fs_read(const struct fs_req *req, struct inode *ip, void *buf,
		size_t len, uint64_t offset, unsigned io_flags);

/*
 * The same for pages that the kernel keeps until fs_host_ops.recall(), and of
 * which we keep no copy. exclusive: stores to a mapping may change them, so no
 * other node may read the file meanwhile. admit() is called with the lock held,
 * before anything is read: 0, or the error that the read ends with. leaving: a
 * recall is under way, or has returned and the lock is about to go.
 */
struct fs_fill {
	bool exclusive;
	int (*admit)(struct fs_fill *fill, bool leaving);
};
ssize_t fs_read_fill(const struct fs_req *req, struct inode *ip, void *buf,
		     size_t len, uint64_t offset, struct fs_fill *fill);

/*
 * All of len or an error (-ENOSPC and -EFBIG: a shorter count if some
 * went well). buf is BLKDEV_ALIGN-aligned for large writes.
 */
ssize_t fs_write(const struct fs_req *req, struct inode *ip, const void *buf,
		 size_t len, uint64_t offset, unsigned io_flags);

/* Make it durable. datasync: times need not be. Reports lost writes once. */
int fs_fsync(const struct fs_req *req, struct inode *ip, bool datasync);

/* Everything of the volume durable. */
int fs_sync(struct fs *fs);

struct fs_statfs {
	uint64_t blocks, bfree, bavail, files, ffree;
	uint32_t bsize, namelen;
};
void fs_statfs(struct fs *fs, struct fs_statfs *out);

/* Counters for the benchmark and the status verb. */
struct fs_stats {
	uint64_t inodes, inodes_dirty;
	uint64_t pages_bytes, pages_dirty_bytes;
	uint64_t buffers_bytes;
};
void fs_stats(struct fs *fs, struct fs_stats *out);

#endif
