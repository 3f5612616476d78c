/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * testing.h - what the tests of the codec share.
 */
#ifndef UG_TEST_ONDISK_TESTING_H
#define UG_TEST_ONDISK_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "ondisk/codec.h"

#define BSIZE_MAX GFS2_BSIZE_MAX

/*
 * A block in memory of its own, exactly as long, so that a sanitizer sees
 * every access outside it. Freed by free().
 */
static inline void *new_block(size_t len)
{
	void *block = calloc(1, len);

	assert_non_null(block);
	return block;
}

static inline void fill_random(struct ug_prng *prng, void *buf, size_t len)
{
	uint8_t *p = buf;

	while (len--)
		*p++ = (uint8_t)ug_prng_u64(prng);
}

static inline void assert_same_rindex(const struct gfs2_rindex_info *a,
				      const struct gfs2_rindex_info *b)
{
	assert_int_equal(a->addr, b->addr);
	assert_int_equal(a->length, b->length);
	assert_int_equal(a->data0, b->data0);
	assert_int_equal(a->data, b->data);
	assert_int_equal(a->bitbytes, b->bitbytes);
}

static inline struct gfs2_geom geom_of(uint32_t bsize)
{
	struct gfs2_geom geom;

	assert_int_equal(gfs2_geom_init(&geom, bsize), 0);
	return geom;
}

#endif
