/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * be.h - big-endian integers as they stand on disk.
 *
 * Each is a structure of its own, so that using one as a number does not
 * compile. Pure. Alignment is 1: a structure made of them may be laid over
 * any byte address.
 */
#ifndef UG_BASE_BE_H
#define UG_BASE_BE_H

#include <endian.h>
#include <stdint.h>

typedef struct {
	uint16_t raw;
} __attribute__((packed)) be16;
typedef struct {
	uint32_t raw;
} __attribute__((packed)) be32;
typedef struct {
	uint64_t raw;
} __attribute__((packed)) be64;

static inline uint16_t be16_get(be16 v)
{
	return be16toh(v.raw);
}
static inline uint32_t be32_get(be32 v)
{
	return be32toh(v.raw);
}
static inline uint64_t be64_get(be64 v)
{
	return be64toh(v.raw);
}
static inline be16 be16_of(uint16_t v)
{
	return (be16){ htobe16(v) };
}
static inline be32 be32_of(uint32_t v)
{
	return (be32){ htobe32(v) };
}
static inline be64 be64_of(uint64_t v)
{
	return (be64){ htobe64(v) };
}

#endif
