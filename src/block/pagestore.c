/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pagestore.c - a flat array of page pointers. Writing to a borrowed page
 * makes an own copy first.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "block/pagestore.h"

int pagestore_init(struct pagestore *store, uint64_t size_bytes)
{
	store->pages_count = UG_DIV_UP(size_bytes, PAGESTORE_PAGE);
	store->pages = calloc(store->pages_count, sizeof(*store->pages));
	return store->pages ? 0 : -ENOMEM;
}

int pagestore_init_copy(struct pagestore *store, const struct pagestore *from)
{
	int err = pagestore_init(store,
				 (uint64_t)from->pages_count * PAGESTORE_PAGE);

	if (err)
		return err;
	for (size_t i = 0; i < from->pages_count; i++)
		store->pages[i].data = from->pages[i].data;
	return 0;
}

static void page_drop(struct pagestore_page *page)
{
	if (page->owned)
		free(page->data);
	page->owned = false;
	page->data = NULL;
}

void pagestore_fini(struct pagestore *store)
{
	for (size_t i = 0; i < store->pages_count; i++)
		page_drop(&store->pages[i]);
	free(store->pages);
}

/* Make the page one that may be written. */
static int page_own(struct pagestore_page *page)
{
	uint8_t *data;

	if (page->owned)
		return 0;
	data = malloc(PAGESTORE_PAGE);
	if (!data)
		return -ENOMEM;
	if (page->data)
		memcpy(data, page->data, PAGESTORE_PAGE);
	else
		memset(data, 0, PAGESTORE_PAGE);
	page->data = data;
	page->owned = true;
	return 0;
}

/* How much of the range lies in the page of its first byte. */
static uint64_t piece_bytes(uint64_t offset_bytes, uint64_t len_bytes)
{
	uint64_t room = PAGESTORE_PAGE - offset_bytes % PAGESTORE_PAGE;

	return UG_MIN(room, len_bytes);
}

void pagestore_read(const struct pagestore *store, uint64_t offset_bytes,
		    void *buf, uint64_t len_bytes)
{
	uint8_t *to = buf;

	while (len_bytes) {
		uint64_t n = piece_bytes(offset_bytes, len_bytes);
		const struct pagestore_page *page =
			&store->pages[offset_bytes / PAGESTORE_PAGE];

		if (page->data)
			memcpy(to, page->data + offset_bytes % PAGESTORE_PAGE,
			       n);
		else
			memset(to, 0, n);
		to += n;
		offset_bytes += n;
		len_bytes -= n;
	}
}

static int store_put(struct pagestore *store, uint64_t offset_bytes,
		     const uint8_t *from, uint64_t len_bytes, bool lend)
{
	while (len_bytes) {
		uint64_t n = piece_bytes(offset_bytes, len_bytes);
		struct pagestore_page *page =
			&store->pages[offset_bytes / PAGESTORE_PAGE];

		if (lend && n == PAGESTORE_PAGE) {
			page_drop(page);
			/* Never written through: page_own() copies first. */
			page->data = (uint8_t *)from;
		} else {
			int err = page_own(page);

			if (err)
				return err;
			memcpy(page->data + offset_bytes % PAGESTORE_PAGE, from,
			       n);
		}
		from += n;
		offset_bytes += n;
		len_bytes -= n;
	}
	return 0;
}

int pagestore_write(struct pagestore *store, uint64_t offset_bytes,
		    const void *data, uint64_t len_bytes)
{
	return store_put(store, offset_bytes, data, len_bytes, false);
}

int pagestore_lend(struct pagestore *store, uint64_t offset_bytes,
		   const void *data, uint64_t len_bytes)
{
	return store_put(store, offset_bytes, data, len_bytes, true);
}

bool pagestore_is_absent(const struct pagestore *store, uint64_t offset_bytes,
			 uint64_t len_bytes)
{
	size_t i = offset_bytes / PAGESTORE_PAGE;
	size_t end = UG_DIV_UP(offset_bytes + len_bytes, PAGESTORE_PAGE);

	for (; i < end; i++) {
		if (store->pages[i].data)
			return false;
	}
	return true;
}
