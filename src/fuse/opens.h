/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * opens.h - direct mode: which files this node has open for writing, and of
 * which the kernel may hold pages.
 *
 * The kernel fills pages through handles that only read, and for mappings of
 * any handle; what is written through direct handles passes them by. So
 * whoever writes must know whether there are any.
 *
 * Bounded: of files that nobody has open for writing, the most recent ones
 * are known; what is known of older ones is lost, and from then on every
 * unknown file may have pages.
 *
 * Threads: any; one lock. Source: DESIGN 5.2, 5.3; docs/spec/fuse.md 6.4.
 */
#ifndef UG_FUSE_OPENS_H
#define UG_FUSE_OPENS_H

#include <stdbool.h>
#include <stdint.h>

struct opens;

/* idle_max: how many files without writers are remembered. 0 or -ENOMEM. */
int opens_create(unsigned idle_max, struct opens **opensp);
void opens_destroy(struct opens *opens); /* NULL is accepted */

/* A handle that can write begins, or ends. No memory: it goes uncounted. */
void opens_begin_write(struct opens *opens, uint64_t nodeid);
void opens_end_write(struct opens *opens, uint64_t nodeid);

/* Has this node the file open for writing? */
bool opens_has_writer(struct opens *opens, uint64_t nodeid);

/*
 * The kernel is about to get pages of the file, or may: before a cached
 * handle is answered, and before the READ that fills one.
 */
void opens_note_pages(struct opens *opens, uint64_t nodeid);

/* May the kernel hold pages of it? */
bool opens_has_pages(struct opens *opens, uint64_t nodeid);

/*
 * The same, and forget it: called before the notification that drops them,
 * so that pages filled meanwhile are noted again.
 */
bool opens_take_pages(struct opens *opens, uint64_t nodeid);

/* A file that has just been made: it has none. */
void opens_no_pages(struct opens *opens, uint64_t nodeid);

#endif
