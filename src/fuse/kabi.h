/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kabi.h - the kernel's FUSE protocol, with what the header may be too old for.
 *
 * linux/fuse.h of Debian 12 describes protocol 7.38. What newer kernels add
 * and we use is defined here, by the numbers of the protocol, unless the header
 * knows it. Features are found by the flags that INIT offers, never by
 * version (docs/spec/fuse.md 12.1), so newer requests need no definition: an
 * unknown operation is refused, and the kernel goes the older way.
 */
#ifndef UG_FUSE_KABI_H
#define UG_FUSE_KABI_H

#include <stdint.h>

#include <linux/fuse.h>

#if FUSE_KERNEL_MINOR_VERSION < 39
/* A handle without page cache may still be mapped shared (Linux 6.6). */
#define FUSE_DIRECT_IO_ALLOW_MMAP (1ULL << 36)
#endif

/*
 * The oldest protocol we speak: every structure that we read has had its
 * present size since 7.23, and 7.31 is older than any kernel still cared
 * for (Linux 5.4). We answer with the version of the definitions we know.
 */
#define FUSE_MINOR_MIN 31u
#define FUSE_MINOR_OURS 38u

/* What precedes the bytes of a WRITE: its header and its arguments. */
#define FUSE_WRITE_HEAD \
	(sizeof(struct fuse_in_header) + sizeof(struct fuse_write_in))

/* The largest READ and WRITE: 256 pages, the kernel's own default bound. */
#define FUSE_MAX_WRITE (1u << 20)
#define FUSE_MAX_PAGES_OURS 256u

#endif
