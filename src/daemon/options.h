/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * options.h - the text behind -o, as what the mount process acts on.
 *
 * Pure: no I/O, no globals. The parser knows every option of GFS2 and of
 * mount(8): each is taken, accepted without effect, or refused with a sentence
 * that names it; nothing else is skipped unless sloppy.
 * Ownership: mount_options owns its strings; fs.lockproto and fs.locktable
 * point to them.
 * Source: mount(8), docs/man/ugfs-mount.8.
 */
#ifndef UG_DAEMON_OPTIONS_H
#define UG_DAEMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/plockset.h"
#include "fs/fs.h"

/* Bounds of what a user may ask for. */
#define OPTIONS_LEN_MAX 4096u /* of the text, as the kernel's page */
#define CACHE_BYTES_MIN (16ull << 20)
#define CACHE_BYTES_MAX (1ull << 40)
#define INODES_MIN 1000u
#define INODES_MAX 1000000000u
#define THREADS_MAX 256u
#define SECONDS_MAX 86400u

/* Who keeps the pages of files (docs/spec/fuse.md 6). */
enum page_cache {
	PAGE_CACHE_KERNEL, /* the kernel, written through to us */
	PAGE_CACHE_OWN,	   /* this process; the kernel's opens are direct */
};

struct mount_options {
	struct fs_options fs;
	unsigned long mount_flags; /* MS_* of mount(2) */
	enum page_cache page_cache;
	unsigned threads; /* bound of request workers; 0: default */
	char *lockproto;
	char *locktable;
	char *fence; /* command that fences hosts; NULL: none */
	char *fence_action;
	char *key_file;		    /* the cluster's secret; NULL: none */
	unsigned startup_delay_sec; /* before silent hosts are fenced; 0: 30 */
	struct plock_settings plocks; /* what has been said here */
	char *cluster_conf; /* file with more of them; NULL: the usual one */
	bool localflocks;   /* flock and fcntl locks of this node alone */
	bool sloppy;	    /* unknown names are passed over */
	bool debug;	    /* GFS2's old word for errors=panic */
	bool errors_given;  /* which debug excludes */
};

void mount_options_init(struct mount_options *opt);
void mount_options_free(struct mount_options *opt);

/*
 * Add the options of a comma separated list; a value may stand in double
 * quotes, which may hold commas. Later options win. 0; -EINVAL with a sentence
 * in why; -ENOMEM (also with a sentence).
 */
int mount_options_parse(struct mount_options *opt, const char *text, char *why,
			size_t why_len);

/*
 * Once, after the last list: what follows from several options together. 0 or
 * -EINVAL (options that exclude each other) with a sentence in why.
 */
int mount_options_finish(struct mount_options *opt, char *why, size_t why_len);

#endif
