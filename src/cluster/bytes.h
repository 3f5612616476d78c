/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bytes.h - little-endian fields to and from a buffer, one after the other.
 *
 * Running out of bytes does not stop the caller, it is remembered: a writer is
 * then full, a reader bad and gives zeros. Pure.
 */
#ifndef UG_CLUSTER_BYTES_H
#define UG_CLUSTER_BYTES_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct reader {
	const uint8_t *at;
	size_t left;
	bool bad;
};

struct writer {
	uint8_t *at;
	size_t left;
	bool full;
};

static inline void put_bytes(struct writer *w, const void *bytes, size_t len)
{
	if (len > w->left) {
		w->full = true;
		return;
	}
	memcpy(w->at, bytes, len);
	w->at += len;
	w->left -= len;
}

static inline void put8(struct writer *w, uint8_t v)
{
	put_bytes(w, &v, sizeof(v));
}

static inline void put16(struct writer *w, uint16_t v)
{
	v = htole16(v);
	put_bytes(w, &v, sizeof(v));
}

static inline void put32(struct writer *w, uint32_t v)
{
	v = htole32(v);
	put_bytes(w, &v, sizeof(v));
}

static inline void put64(struct writer *w, uint64_t v)
{
	v = htole64(v);
	put_bytes(w, &v, sizeof(v));
}

static inline void get_bytes(struct reader *r, void *bytes, size_t len)
{
	if (len > r->left) {
		r->bad = true;
		memset(bytes, 0, len);
		return;
	}
	memcpy(bytes, r->at, len);
	r->at += len;
	r->left -= len;
}

static inline uint8_t get8(struct reader *r)
{
	uint8_t v;

	get_bytes(r, &v, sizeof(v));
	return v;
}

static inline uint16_t get16(struct reader *r)
{
	uint16_t v;

	get_bytes(r, &v, sizeof(v));
	return le16toh(v);
}

static inline uint32_t get32(struct reader *r)
{
	uint32_t v;

	get_bytes(r, &v, sizeof(v));
	return le32toh(v);
}

static inline uint64_t get64(struct reader *r)
{
	uint64_t v;

	get_bytes(r, &v, sizeof(v));
	return le64toh(v);
}

#endif
