/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rgrp_bits.c - sets and state maps of a resource group.
 *
 * A range is cut into a first part, whole words (or bytes), and a last part.
 * Freeing a large file changes long ranges, which are whole bytes of four
 * blocks but for their ends: these are compared and filled as such.
 */
#include <endian.h>
#include <string.h>

#include "fs/rgrp_bits.h"
#include "base/compiler.h"

/* ---- sets ---- */

/* Bits [lo, lo + n) of one word; n at least 1, lo + n at most 64. */
static uint64_t mask(uint32_t lo, uint32_t n)
{
	return ~0ull >> (RGRP_WORD_BITS - n) << lo;
}

static uint32_t bits_in_word(uint32_t start, uint32_t len)
{
	return UG_MIN(len, RGRP_WORD_BITS - start % RGRP_WORD_BITS);
}

void rgrp_bits_set(uint64_t *set, uint32_t start, uint32_t len)
{
	while (len) {
		uint32_t n = bits_in_word(start, len);

		set[start / RGRP_WORD_BITS] |= mask(start % RGRP_WORD_BITS, n);
		start += n;
		len -= n;
	}
}

void rgrp_bits_clear(uint64_t *set, uint32_t start, uint32_t len)
{
	while (len) {
		uint32_t n = bits_in_word(start, len);

		set[start / RGRP_WORD_BITS] &= ~mask(start % RGRP_WORD_BITS, n);
		start += n;
		len -= n;
	}
}

uint32_t rgrp_bits_count(const uint64_t *set, uint32_t bits)
{
	uint32_t count = 0;

	for (size_t i = 0; i < rgrp_words(bits); i++)
		count += (uint32_t)__builtin_popcountll(set[i]);
	return count;
}

/* ---- state maps ---- */

/* Four blocks in the same state. */
static uint8_t pattern(enum gfs2_blkst state)
{
	return (uint8_t)(0x55u * (unsigned)state);
}

/* The bits of blocks [lo, lo + n) of one byte; lo + n at most 4, n not 0. */
static uint8_t byte_mask(uint32_t lo, uint32_t n)
{
	return (uint8_t)(0xffu >> (8 - 2 * n) << 2 * lo);
}

static uint32_t blocks_in_byte(uint32_t start, uint32_t len)
{
	return UG_MIN(len, GFS2_NBBY - start % GFS2_NBBY);
}

/* The two ends of a range that are no whole bytes, and what lies between. */
struct cut {
	uint32_t head;
	uint32_t bytes;
	uint32_t tail;
};

static struct cut cut_range(uint32_t start, uint32_t len)
{
	struct cut cut = { 0 };

	if (start % GFS2_NBBY)
		cut.head = blocks_in_byte(start, len);
	len -= cut.head;
	cut.bytes = len / GFS2_NBBY;
	cut.tail = len % GFS2_NBBY;
	return cut;
}

static bool byte_is(uint8_t byte, uint32_t lo, uint32_t n,
		    enum gfs2_blkst state)
{
	return n == 0 || ((byte ^ pattern(state)) & byte_mask(lo, n)) == 0;
}

bool rgrp_states_are(const uint8_t *map, uint32_t start, uint32_t len,
		     enum gfs2_blkst state)
{
	struct cut cut = cut_range(start, len);
	const uint8_t *p = map + start / GFS2_NBBY;

	if (cut.head && !byte_is(*p++, start % GFS2_NBBY, cut.head, state))
		return false;
	for (uint32_t i = 0; i < cut.bytes; i++)
		if (p[i] != pattern(state))
			return false;
	return !cut.tail || byte_is(p[cut.bytes], 0, cut.tail, state);
}

static void byte_fill(uint8_t *byte, uint32_t lo, uint32_t n,
		      enum gfs2_blkst state)
{
	uint8_t m = byte_mask(lo, n);

	*byte = (uint8_t)((*byte & ~m) | (pattern(state) & m));
}

void rgrp_states_set(uint8_t *map, uint32_t start, uint32_t len,
		     enum gfs2_blkst state)
{
	struct cut cut = cut_range(start, len);
	uint8_t *p = map + start / GFS2_NBBY;

	if (cut.head)
		byte_fill(p++, start % GFS2_NBBY, cut.head, state);
	memset(p, pattern(state), cut.bytes);
	if (cut.tail)
		byte_fill(p + cut.bytes, 0, cut.tail, state);
}

#define EVEN_BITS 0x5555555555555555u
#define BLOCKS_PER_CHUNK 32u

/* The 32 even bits of a word, moved together. */
static uint64_t gather_even(uint64_t x)
{
	x &= EVEN_BITS;
	x = (x | x >> 1) & 0x3333333333333333u;
	x = (x | x >> 2) & 0x0f0f0f0f0f0f0f0fu;
	x = (x | x >> 4) & 0x00ff00ff00ff00ffu;
	x = (x | x >> 8) & 0x0000ffff0000ffffu;
	return (x | x >> 16) & 0xffffffffu;
}

void rgrp_states_to_set(const uint8_t *map, uint32_t count, uint64_t *set,
			uint32_t first)
{
	for (uint32_t done = 0; done < count; done += BLOCKS_PER_CHUNK) {
		uint32_t n = UG_MIN(count - done, BLOCKS_PER_CHUNK);
		uint32_t at = first + done;
		uint64_t word = 0, unfree;

		memcpy(&word, map + done / GFS2_NBBY, UG_DIV_UP(n, GFS2_NBBY));
		word = le64toh(word);
		unfree = word | word >> 1;
		if (n < BLOCKS_PER_CHUNK)
			unfree |= ~0ull << 2 * n;
		set[at / RGRP_WORD_BITS] |= gather_even(~unfree)
					    << at % RGRP_WORD_BITS;
	}
}
