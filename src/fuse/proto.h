/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * proto.h - one request of the kernel: bytes to a structure.
 *
 * Pure, and total: any bytes of any length give a request or an error, and
 * nothing outside of them is looked at. The kernel is trusted to be correct,
 * but a decoder that is not total cannot be fuzzed, and the first kernel
 * that changes a structure would be the fuzzer.
 * Ownership: names and data point into the caller's bytes.
 * Source: linux/fuse.h, docs/spec/fuse.md.
 */
#ifndef UG_FUSE_PROTO_H
#define UG_FUSE_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "fuse/kabi.h"

struct fuse_name {
	const char *text; /* terminated; no '/' in it; not empty */
	uint32_t len;
};

struct fuse_request {
	uint64_t unique; /* of the answer; 0 is never used by the kernel */
	uint64_t nodeid;
	uint32_t opcode; /* enum fuse_opcode, or a number we do not know */
	uint32_t uid;
	uint32_t gid;
	uint32_t pid;

	/* The fixed arguments, by opcode. */
	union {
		struct fuse_forget_in forget;
		struct fuse_getattr_in getattr;
		struct fuse_setattr_in setattr;
		struct fuse_mknod_in mknod;
		struct fuse_mkdir_in mkdir;
		struct fuse_rename2_in rename; /* RENAME: flags 0 */
		struct fuse_link_in link;
		struct fuse_open_in open;     /* OPENDIR too */
		struct fuse_create_in create; /* TMPFILE too */
		struct fuse_read_in read;     /* READDIR, READDIRPLUS too */
		struct fuse_write_in write;
		struct fuse_release_in release; /* RELEASEDIR too */
		struct fuse_fsync_in fsync;	/* FSYNCDIR too */
		struct fuse_flush_in flush;
		struct fuse_access_in access;
		struct fuse_interrupt_in interrupt;
		struct fuse_init_in init;
		struct fuse_lk_in lk;
		struct fuse_setxattr_in setxattr; /* Linux 5.13's */
		struct fuse_getxattr_in getxattr; /* LISTXATTR too */
		struct fuse_batch_forget_in forgets;
		uint8_t bytes[sizeof(struct fuse_setattr_in)]; /* the largest */
	};

	/* RENAME: the old name. SYMLINK: the name of the link. Of an xattr:
	 * may have '/'. */
	struct fuse_name name;
	/* RENAME: the new name. SYMLINK: the target, which may have '/'. */
	struct fuse_name name2;
	/* WRITE: its bytes. SETXATTR: the value. BATCH_FORGET: its array, of
	 * unknown alignment. */
	const void *data;
	size_t data_len;
};

/*
 * Decode the len bytes that one read of the device has returned.
 *
 * 0; -EBADMSG not a request: too short for its opcode, a length that
 * disagrees, a name without an end or with a '/'; -ENOSYS an opcode without
 * arguments that we know. After -EBADMSG and -ENOSYS the header's fields
 * are valid if the bytes had room for one, else unique is 0.
 */
int fuse_request_decode(const void *bytes, size_t len,
			struct fuse_request *req);

/* Entry i of a BATCH_FORGET; i is below req->forgets.count. */
struct fuse_forget_one fuse_request_forget(const struct fuse_request *req,
					   uint32_t i);

/* Does the kernel wait for an answer to it? */
bool fuse_request_answered(const struct fuse_request *req);

/* "LOOKUP", or "?" for a number without a name. */
const char *fuse_opcode_name(uint32_t opcode);

/* Opcodes below this have a name and a place in tables. */
#define FUSE_OPCODES 64u

#endif
