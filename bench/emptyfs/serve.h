/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * serve.h - the empty file system's answers.
 */
#ifndef EMPTYFS_SERVE_H
#define EMPTYFS_SERVE_H

#include <pthread.h>
#include <stdint.h>

#include "fuse/policy.h"
#include "fuse/session.h"
#include "tree.h"

/* What becomes of the bytes of files. */
enum data_kind {
	DATA_MEMORY,  /* kept */
	DATA_DISCARD, /* sizes only; reads are zeros */
	DATA_STORE,   /* written to a file, O_DIRECT, at the same offsets */
};

struct emptyfs {
	struct tree *tree;
	/* Guards the tree. Held for fractions of a microsecond. */
	pthread_mutex_t lock;
	struct fuse_policy policy;
	enum data_kind data;
	int store; /* descriptor */
	uint64_t store_bytes;
};

/* Its ctx is a struct emptyfs. */
extern const struct fuse_handler emptyfs_handler;

#endif
