/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * aclmake.h - access control lists from text, for tests.
 */
#ifndef TESTS_UNIT_FS_ACLMAKE_H
#define TESTS_UNIT_FS_ACLMAKE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline uint8_t *acl_put(uint8_t *at, unsigned len, uint32_t v)
{
	while (len--) {
		*at++ = (uint8_t)v;
		v >>= 8;
	}
	return at;
}

/* "u::rw u:5:r g::r g:7:x m::rwx o::"; returns the size of the value. */
static inline size_t acl_of_text(const char *text, uint8_t *value)
{
	uint8_t *at = acl_put(value, 4, 2);

	while (*text) {
		char kind = *text;
		unsigned tag, perm = 0;
		uint32_t id = UINT32_MAX;

		text += 2;
		tag = kind == 'u' ? 1 : kind == 'g' ? 4 : kind == 'm' ? 16 : 32;
		if (*text != ':') {
			char *end;

			id = (uint32_t)strtoul(text, &end, 10);
			text = end;
			tag *= 2;
		}
		for (text++; *text && *text != ' '; text++)
			perm |= *text == 'r' ? 4 : *text == 'w' ? 2 : 1;
		while (*text == ' ')
			text++;
		at = acl_put(at, 2, tag);
		at = acl_put(at, 2, perm);
		at = acl_put(at, 4, id);
	}
	return (size_t)(at - value);
}

#endif
