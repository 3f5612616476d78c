/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fuzz_pgroupwire.c - any bytes as a message of plock_mode=group: as they are,
 * and with a version and a volume that fit. What is decoded is encoded to the
 * same bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "wire/pgroupwire.h"

#define VOLUME 0x537888afu

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void decode(const uint8_t *bytes, size_t len)
{
	static struct pgroup_parts parts;
	uint8_t again[PGROUP_WIRE_MAX];
	struct pgroup_msg msg;

	if (pgroup_wire_decode(bytes, len, VOLUME, &msg, &parts))
		return;
	must(pgroup_wire_encode(&msg, VOLUME, again, sizeof(again)) ==
	     (long)len);
	must(!memcmp(again, bytes, len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t version[] = { 3, 0, 1, 0, 1, 0 };
	static const uint8_t volume[] = { 0xaf, 0x88, 0x78, 0x53 };
	uint8_t copy[PGROUP_WIRE_MAX];

	decode(data, size);
	if (size < 20 || size > sizeof(copy))
		return 0;
	memcpy(copy, data, size);
	memcpy(copy, version, sizeof(version));
	memcpy(copy + 16, volume, sizeof(volume));
	if (size == 104)
		memcpy(copy + 68, volume, sizeof(volume));
	decode(copy, size);
	return 0;
}
