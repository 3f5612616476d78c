/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * policy.h - what the kernel may keep above us, and for how long.
 *
 * Two modes. Cached: nobody else changes the volume (lock_nolock). The
 * kernel keeps names, attributes and pages for ever, writes through, and
 * keeps file locks itself; we keep no copy of pages that it has.
 *
 * Direct: pages are ours, under glocks, and handles that can write pass every
 * read and write to us. Handles that only read a file which nobody on this
 * node writes are still cached. Names and attributes live as long as the
 * options say, 0 by default.
 *
 *	                cached               direct
 *	names           for ever, also       entry_ms
 *	                missing ones
 *	attributes      for ever             attr_ms with a name, which may
 *	                                     make the inode in the kernel;
 *	                                     attr_known_ms of one it knows
 *	directories     the kernel keeps     read each time
 *	                listings: OPENDIR
 *	                is refused
 *	handle, writes  KEEP_CACHE           DIRECT_IO, parallel writes
 *	handle, reads   KEEP_CACHE           KEEP_CACHE without writers, else
 *	                                     DIRECT_IO
 *	page fill       not kept by us       noted (opens.h; shared: copies.h),
 *	                                     not kept by us
 *
 * Never in either mode: writeback cache, NOFLUSH, no_open, automatic
 * invalidation, splice. Source: DESIGN 5; docs/spec/fuse.md 5, 6, 7, 13.
 */
#ifndef UG_FUSE_POLICY_H
#define UG_FUSE_POLICY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "fuse/conn.h"
#include "fuse/encode.h"
#include "fuse/opens.h"

enum fuse_data_mode {
	FUSE_DATA_CACHED,
	FUSE_DATA_DIRECT,
};

#define FUSE_FOREVER UINT32_MAX

struct fuse_policy_options {
	enum fuse_data_mode data;
	/* Life of names and attributes in the kernel, or FUSE_FOREVER. */
	uint32_t entry_ms;
	uint32_t attr_ms;
	/*
	 * Of attributes asked for by node id: for ever, as fs_host_ops says
	 * when they have changed behind the kernel's back, and the kernel,
	 * which knows the inode, then drops them (docs/spec/fuse.md 4.7b, 5.1).
	 */
	uint32_t attr_known_ms;
	/*
	 * Other nodes change the volume. Attributes with fs_attr.keep are kept
	 * until a recall, others not at all (docs/spec/fuse.md 15.2).
	 */
	bool shared;
	/* flock and fcntl locks come to us instead of staying in the kernel. */
	bool locks;
	/* The kernel asks for access control lists, and decides by them. */
	bool acl;
};

/* The defaults of a mode. */
void fuse_policy_defaults(struct fuse_policy_options *opt,
			  enum fuse_data_mode data);

struct fuse_policy {
	enum fuse_data_mode data;
	bool locks;
	bool shared;
	bool acl;
	struct fuse_timeout entry_valid;
	struct fuse_timeout attr_valid;
	struct fuse_timeout attr_known;
	struct opens *opens;	     /* direct mode, not shared; else NULL */
	struct copies *copies;	     /* shared: the front end's; else NULL */
	atomic_uint_fast64_t opened; /* handles so far */
	/* Of INIT. */
	bool direct_mmap;	/* direct handles can be mapped shared */
	bool kernel_keeps_dirs; /* OPENDIR is refused */
	bool xattrs;		/* SETXATTR is of the kind that we know */
	bool checks_new;	/* see fuse_policy_lookup_attr() */
};

/* 0 or -ENOMEM; the handle table is then policy's. */
int fuse_policy_init(struct fuse_policy *policy,
		     const struct fuse_policy_options *opt);
void fuse_policy_fini(struct fuse_policy *policy);

/* What to ask of the kernel. */
void fuse_policy_wants(const struct fuse_policy *policy,
		       struct fuse_wants *wants);

/*
 * How long the kernel may keep attributes: of LOOKUP, of GETATTR, and of what
 * is answered to other requests.
 *
 * Shared: an answer under way when a recall drops the attributes must not be
 * believed. The kernel sees to that for GETATTR, and for LOOKUP of an
 * inode that it has; for one that it has not, copies.h does, if the kernel also
 * discards the answer when the inode has been evicted and made again in
 * between (Linux 6.14). It does not for SETATTR, nor for what makes a name
 * (docs/spec/fuse.md 15.2).
 */
struct fuse_timeout fuse_policy_lookup_attr(const struct fuse_policy *policy,
					    const struct fs_attr *attr);
struct fuse_timeout fuse_policy_getattr(const struct fuse_policy *policy,
					const struct fs_attr *attr);
struct fuse_timeout fuse_policy_setattr(const struct fuse_policy *policy);

/* What has become of it; a line in the log if users will notice. */
void fuse_policy_agreed(struct fuse_policy *policy, const char *who,
			const struct fuse_agreed *agreed);

/*
 * Our file handles: no pointers, so that they mean something to a process
 * that takes over the mount (docs/spec/fuse.md 11.7).
 */
#define FUSE_FH_OPEN 0x1u /* always set: never 0 */
#define FUSE_FH_READ 0x2u
#define FUSE_FH_WRITE 0x4u
#define FUSE_FH_DIRECT 0x8u    /* pages pass by the kernel */
#define FUSE_FH_SERIAL_SHIFT 4 /* above: a number of its own (lockowners.h) */

static inline bool fuse_flags_can_write(int flags)
{
	/* 3 is open for ioctl only; the kernel counts it as both. */
	return (flags & 3) != 0;
}

/*
 * A handle of the file is about to be answered: count it, and say what kind
 * it is. flags: open(2)'s. Undone by fuse_policy_release() of its fh.
 */
void fuse_policy_open(struct fuse_policy *policy, uint64_t nodeid, int flags,
		      struct fuse_open_out *out);
void fuse_policy_release(struct fuse_policy *policy, uint64_t nodeid,
			 uint64_t fh);

/* The open(2) flags of access that a handle stands for. */
int fuse_fh_flags(uint64_t fh);

/* FS_IO_* for a READ or WRITE. */
unsigned fuse_policy_read_flags(const struct fuse_policy *policy,
				const struct fuse_read_in *in);
unsigned fuse_policy_write_flags(const struct fuse_policy *policy,
				 const struct fuse_write_in *in);

/* The READ fills a page of the kernel: it has no owner of locks. */
static inline bool fuse_read_fills_page(const struct fuse_read_in *in)
{
	return !(in->read_flags & FUSE_READ_LOCKOWNER);
}

#endif
