/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * policy.c - what the kernel may keep above us, and for how long.
 */
#include <fcntl.h>

#include "base/log.h"
#include "fuse/copies.h"
#include "fuse/policy.h"

/* The minor version of Linux 6.16, the first that counts beyond 6.14's. */
#define MINOR_CHECKS_NEW 44u

/* Files without writers of which opens.c knows whether they have pages. */
#define IDLE_FILES_MAX 16384u

void fuse_policy_defaults(struct fuse_policy_options *opt,
			  enum fuse_data_mode data)
{
	uint32_t valid_ms = data == FUSE_DATA_CACHED ? FUSE_FOREVER : 0;

	*opt = (struct fuse_policy_options){
		.data = data,
		.entry_ms = valid_ms,
		.attr_ms = valid_ms,
		.attr_known_ms = FUSE_FOREVER,
	};
}

static struct fuse_timeout timeout_of(uint32_t ms)
{
	return ms == FUSE_FOREVER ? FUSE_TIMEOUT_INFINITE : fuse_timeout_ms(ms);
}

int fuse_policy_init(struct fuse_policy *policy,
		     const struct fuse_policy_options *opt)
{
	*policy = (struct fuse_policy){
		.data = opt->data,
		.locks = opt->locks,
		.shared = opt->shared,
		.acl = opt->acl,
		.entry_valid = timeout_of(opt->entry_ms),
		.attr_valid = timeout_of(opt->attr_ms),
		.attr_known = timeout_of(opt->attr_known_ms),
	};
	/* copies.h counts them in fs_open() then, with the lock held. */
	if (policy->data == FUSE_DATA_CACHED || policy->shared)
		return 0;
	return opens_create(IDLE_FILES_MAX, &policy->opens);
}

void fuse_policy_fini(struct fuse_policy *policy)
{
	opens_destroy(policy->opens);
	policy->opens = NULL;
}

static bool names_are_kept(const struct fuse_policy *policy)
{
	return policy->entry_valid.sec || policy->entry_valid.nsec;
}

void fuse_policy_wants(const struct fuse_policy *policy,
		       struct fuse_wants *wants)
{
	uint64_t flags = FUSE_ATOMIC_O_TRUNC | FUSE_PARALLEL_DIROPS |
			 FUSE_ASYNC_DIO | FUSE_EXPORT_SUPPORT |
			 FUSE_EXPLICIT_INVAL_DATA | FUSE_HANDLE_KILLPRIV_V2 |
			 FUSE_SETXATTR_EXT;

	/* Entries that expire at once only cost (docs/spec/fuse.md 7.8). */
	if (names_are_kept(policy))
		flags |= FUSE_DO_READDIRPLUS | FUSE_READDIRPLUS_AUTO;
	/* Reads under the connection's quota: never in a cluster (4.7c). */
	if (policy->data == FUSE_DATA_CACHED)
		flags |= FUSE_ASYNC_READ | FUSE_NO_OPENDIR_SUPPORT;
	else
		flags |= FUSE_DIRECT_IO_ALLOW_MMAP;
	/* The umask is ours then: a default list takes its place. */
	if (policy->acl)
		flags |= FUSE_POSIX_ACL | FUSE_DONT_MASK;
	if (policy->locks)
		flags |= FUSE_POSIX_LOCKS | FUSE_FLOCK_LOCKS;
	*wants = (struct fuse_wants){
		.flags = flags,
		.max_write = FUSE_MAX_WRITE,
		.max_readahead = FUSE_MAX_WRITE,
	};
}

void fuse_policy_agreed(struct fuse_policy *policy, const char *who,
			const struct fuse_agreed *agreed)
{
	policy->kernel_keeps_dirs = agreed->flags & FUSE_NO_OPENDIR_SUPPORT;
	policy->direct_mmap = agreed->flags & FUSE_DIRECT_IO_ALLOW_MMAP;
	if (policy->acl && !(agreed->flags & FUSE_POSIX_ACL))
		ug_warn(who, "this kernel knows no access control lists of "
			     "FUSE: they are not obeyed");
	policy->acl = policy->acl && (agreed->flags & FUSE_DONT_MASK);
	policy->xattrs = agreed->flags & FUSE_SETXATTR_EXT;
	if (!policy->xattrs)
		ug_warn(who, "no extended attributes with this kernel "
			     "(Linux 5.13 and later have what it takes)");
	policy->checks_new = agreed->minor >= MINOR_CHECKS_NEW;
	if (policy->data == FUSE_DATA_DIRECT && !policy->direct_mmap)
		ug_warn(who, "this kernel cannot map files MAP_SHARED in "
			     "direct mode (Linux 6.6 can)");
}

struct fuse_timeout fuse_policy_lookup_attr(const struct fuse_policy *policy,
					    const struct fs_attr *attr)
{
	if (!policy->shared)
		return policy->attr_valid;
	return policy->checks_new ? fuse_policy_getattr(policy, attr)
				  : FUSE_TIMEOUT_NONE;
}

struct fuse_timeout fuse_policy_getattr(const struct fuse_policy *policy,
					const struct fs_attr *attr)
{
	return attr->keep || !policy->shared ? policy->attr_known
					     : FUSE_TIMEOUT_NONE;
}

struct fuse_timeout fuse_policy_setattr(const struct fuse_policy *policy)
{
	return policy->shared ? FUSE_TIMEOUT_NONE : policy->attr_known;
}

static bool has_writer(struct fuse_policy *policy, uint64_t nodeid)
{
	return policy->copies ? copies_has_writer(policy->copies, nodeid)
			      : opens_has_writer(policy->opens, nodeid);
}

/*
 * Kernels before 6.6 do not drop pages of a range that is written through a
 * direct handle of the same node: no handle is cached there
 * (docs/spec/fuse.md 6.4).
 */
static bool handle_is_direct(struct fuse_policy *policy, uint64_t nodeid,
			     int flags)
{
	if (policy->data == FUSE_DATA_CACHED)
		return false;
	return fuse_flags_can_write(flags) || !policy->direct_mmap ||
	       has_writer(policy, nodeid) ||
	       (policy->copies &&
		copies_recalled_lately(policy->copies, nodeid));
}

static uint64_t fh_of(int flags, bool direct)
{
	uint64_t fh = FUSE_FH_OPEN;

	if ((flags & O_ACCMODE) != O_WRONLY)
		fh |= FUSE_FH_READ;
	if (fuse_flags_can_write(flags))
		fh |= FUSE_FH_WRITE;
	if (direct)
		fh |= FUSE_FH_DIRECT;
	return fh;
}

void fuse_policy_open(struct fuse_policy *policy, uint64_t nodeid, int flags,
		      struct fuse_open_out *out)
{
	uint64_t serial;
	bool direct;

	/*
	 * Pages are noted before the look at writers, writers are counted
	 * before the look at pages: of a reader and a writer that open at
	 * the same time, at least one sees the other.
	 */
	if (policy->opens && fuse_flags_can_write(flags))
		opens_begin_write(policy->opens, nodeid);
	else if (policy->opens)
		opens_note_pages(policy->opens, nodeid);
	direct = handle_is_direct(policy, nodeid, flags);
	serial = atomic_fetch_add_explicit(&policy->opened, 1,
					   memory_order_relaxed);

	*out = (struct fuse_open_out){
		.fh = fh_of(flags, direct) | serial << FUSE_FH_SERIAL_SHIFT,
		/* Without it an open would drop all pages of the file. */
		.open_flags = FOPEN_KEEP_CACHE,
	};
	if (direct)
		out->open_flags |=
			FOPEN_DIRECT_IO | FOPEN_PARALLEL_DIRECT_WRITES;
}

void fuse_policy_release(struct fuse_policy *policy, uint64_t nodeid,
			 uint64_t fh)
{
	if (policy->opens && (fh & FUSE_FH_WRITE))
		opens_end_write(policy->opens, nodeid);
}

int fuse_fh_flags(uint64_t fh)
{
	if (!(fh & FUSE_FH_WRITE))
		return O_RDONLY;
	return fh & FUSE_FH_READ ? O_RDWR : O_WRONLY;
}

unsigned fuse_policy_read_flags(const struct fuse_policy *policy,
				const struct fuse_read_in *in)
{
	unsigned io = 0;

	if (in->flags & O_DIRECT)
		io |= FS_IO_DIRECT;
	if (policy->data == FUSE_DATA_CACHED || fuse_read_fills_page(in))
		io |= FS_IO_NOCACHE;
	return io;
}

/*
 * What a program asked for, at its handle. Through cached handles the kernel
 * itself sends FSYNC after O_SYNC writes and knows the end of the file for
 * O_APPEND; its pages stand at the offsets that it names.
 */
static unsigned direct_write_flags(uint32_t open_flags)
{
	unsigned io = 0;

	if (open_flags & O_APPEND)
		io |= FS_IO_APPEND;
	if ((open_flags & O_SYNC) == O_SYNC)
		io |= FS_IO_SYNC;
	else if (open_flags & O_DSYNC)
		io |= FS_IO_DSYNC;
	return io;
}

unsigned fuse_policy_write_flags(const struct fuse_policy *policy,
				 const struct fuse_write_in *in)
{
	unsigned io = 0;

	if (in->write_flags & FUSE_WRITE_KILL_SUIDGID)
		io |= FS_IO_KILLPRIV;
	/* Of a mapping: the handle is guessed, its flags mean nothing. */
	if (in->write_flags & FUSE_WRITE_CACHE)
		return io | FS_IO_MAPPED | FS_IO_NOCACHE;
	if (in->flags & O_DIRECT)
		io |= FS_IO_DIRECT;
	if (policy->data == FUSE_DATA_CACHED)
		io |= FS_IO_NOCACHE;
	if (in->fh & FUSE_FH_DIRECT)
		io |= direct_write_flags(in->flags);
	return io;
}
