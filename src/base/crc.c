/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * crc.c - CRC A by zlib; CRC B by the processor's own instruction where it
 * has one, else by a table.
 *
 * CRC B stands in every log header and covers nearly the whole block, so a
 * commit waits for it: the instruction takes 0.5 us for 4 KiB, the table
 * more than twenty times that.
 */
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <zlib.h>

#include "base/compiler.h"
#include "base/crc.h"

#define CRC32C_POLY 0x82f63b78u

uint32_t ug_crc32(const void *data, size_t len)
{
	return ug_crc32_add(0, data, len);
}

uint32_t ug_crc32_add(uint32_t crc, const void *data, size_t len)
{
	return (uint32_t)crc32_z(crc, data, len);
}

static uint32_t crc32c_table[256];
static pthread_once_t crc32c_table_once = PTHREAD_ONCE_INIT;

static void crc32c_table_fill(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = (crc >> 1) ^ (crc & 1 ? CRC32C_POLY : 0);
		crc32c_table[i] = crc;
	}
}

uint32_t ug_crc32c_raw_portable(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint32_t crc = UINT32_MAX;

	pthread_once(&crc32c_table_once, crc32c_table_fill);
	while (len--)
		crc = (crc >> 8) ^ crc32c_table[(crc ^ *p++) & 0xff];
	return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t
crc32c_raw_sse42(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t crc = UINT32_MAX;
	uint64_t word;

	for (; len >= sizeof(word); len -= sizeof(word), p += sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		crc = __builtin_ia32_crc32di(crc, word);
	}
	while (len--)
		crc = __builtin_ia32_crc32qi((uint32_t)crc, *p++);
	return (uint32_t)crc;
}

uint32_t ug_crc32c_raw(const void *data, size_t len)
{
	if (ug_likely(__builtin_cpu_supports("sse4.2")))
		return crc32c_raw_sse42(data, len);
	return ug_crc32c_raw_portable(data, len);
}
#else
uint32_t ug_crc32c_raw(const void *data, size_t len)
{
	return ug_crc32c_raw_portable(data, len);
}
#endif
