/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pagestore.h - the content of a device in memory, as pages that are owned,
 * borrowed, or absent (zeros).
 *
 * A copy borrows every page, so the image of a disk at one moment costs one
 * pointer per page, whatever its content: record.c makes thousands of them.
 * Not safe for concurrent calls; the owner of the structure locks.
 * Ownership: borrowed memory must stay, unchanged, as long as the store.
 */
#ifndef UG_BLOCK_PAGESTORE_H
#define UG_BLOCK_PAGESTORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGESTORE_PAGE 4096u

struct pagestore_page {
	uint8_t *data; /* NULL: zeros */
	bool owned;
};

struct pagestore {
	size_t pages_count;
	struct pagestore_page *pages;
};

/* All zeros. 0 or -ENOMEM. */
int pagestore_init(struct pagestore *store, uint64_t size_bytes);
/* The same content as from, which must outlive it and not change. */
int pagestore_init_copy(struct pagestore *store, const struct pagestore *from);
void pagestore_fini(struct pagestore *store);

/* The range must lie inside the store, here and below. */
void pagestore_read(const struct pagestore *store, uint64_t offset_bytes,
		    void *buf, uint64_t len_bytes);
/* 0, or -ENOMEM with part of the range written. */
int pagestore_write(struct pagestore *store, uint64_t offset_bytes,
		    const void *data, uint64_t len_bytes);
/* The same, but whole pages of data are borrowed. */
int pagestore_lend(struct pagestore *store, uint64_t offset_bytes,
		   const void *data, uint64_t len_bytes);
/* True if no byte of the range has ever been written. */
bool pagestore_is_absent(const struct pagestore *store, uint64_t offset_bytes,
			 uint64_t len_bytes);

#endif
