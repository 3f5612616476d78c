/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * le.h - little-endian integers as they stand in messages.
 *
 * As in be.h: each is a structure of its own, so that using one as a number
 * does not compile. Pure. Alignment is 1.
 */
#ifndef UG_BASE_LE_H
#define UG_BASE_LE_H

#include <endian.h>
#include <stdint.h>

typedef struct {
	uint16_t raw;
} __attribute__((packed)) le16;
typedef struct {
	uint32_t raw;
} __attribute__((packed)) le32;
typedef struct {
	uint64_t raw;
} __attribute__((packed)) le64;

static inline uint16_t le16_get(le16 v)
{
	return le16toh(v.raw);
}
static inline uint32_t le32_get(le32 v)
{
	return le32toh(v.raw);
}
static inline uint64_t le64_get(le64 v)
{
	return le64toh(v.raw);
}
static inline le16 le16_of(uint16_t v)
{
	return (le16){ htole16(v) };
}
static inline le32 le32_of(uint32_t v)
{
	return (le32){ htole32(v) };
}
static inline le64 le64_of(uint64_t v)
{
	return (le64){ htole64(v) };
}

#endif
