/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * crc.h - the two checksums of the format. Pure.
 * Source: docs/spec/gfs2-ondisk.md 1.5.
 */
#ifndef UG_BASE_CRC_H
#define UG_BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* CRC A, "disk hash": CRC-32 (0xEDB88320), inverted at both ends. */
uint32_t ug_crc32(const void *data, size_t len);

/* CRC A continued: crc is the value of what came before (0 to begin). */
uint32_t ug_crc32_add(uint32_t crc, const void *data, size_t len);

/* CRC B: CRC-32C (0x82F63B78), initial value all ones, not inverted at the end.
 */
uint32_t ug_crc32c_raw(const void *data, size_t len);

/* The same without special instructions: the yardstick of the tests. */
uint32_t ug_crc32c_raw_portable(const void *data, size_t len);

#endif
