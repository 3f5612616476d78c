/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fuzz_wire.c - any bytes as packets of the lock engine.
 *
 * The input is a stream of packets, as a link delivers it; then, with a header
 * that fits, one packet, since hardly one would get further. Whatever is
 * decoded is encoded again and must be the same bytes, but for the minor
 * version.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/dlmwire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static uint32_t lockspace_of(const uint8_t *packet)
{
	return packet[4] | (uint32_t)packet[5] << 8 |
	       (uint32_t)packet[6] << 16 | (uint32_t)packet[7] << 24;
}

static void encode_again(const struct dlm_msg *msg, const uint8_t *packet,
			 size_t len)
{
	uint8_t again[DLM_WIRE_MAX];

	memset(again, 0x5a, sizeof(again));
	must(dlm_wire_encode(msg, lockspace_of(packet), again, len) ==
	     (long)len);
	again[0] = packet[0];
	must(memcmp(again, packet, len) == 0);
}

/* In memory of exactly this size, so that a sanitizer sees its end. */
static void decode(const uint8_t *bytes, size_t len)
{
	uint8_t *packet = malloc(len ? len : 1);
	struct dlm_msg msg, other;
	uint32_t id;
	int error;

	if (!packet)
		abort();
	memcpy(packet, bytes, len);
	id = len >= 8 ? lockspace_of(packet) : 0;
	error = dlm_wire_decode(packet, len, id, &msg);
	if (error) {
		must(error == -EBADMSG || error == -EPROTONOSUPPORT);
	} else {
		encode_again(&msg, packet, len);
		must(dlm_wire_decode(packet, len, ~id, &other) == -EBADMSG);
		dlm_msg_release(&msg);
	}
	free(packet);
}

static void decode_stream(const uint8_t *data, size_t size)
{
	while (size) {
		long len = dlm_wire_length(data, size);

		must(len >= 0 || len == -EBADMSG || len == -EPROTONOSUPPORT);
		must(len <= (long)DLM_WIRE_MAX);
		if (len <= 0 || (size_t)len > size)
			break;
		decode(data, (size_t)len);
		data += len;
		size -= (size_t)len;
	}
	decode(data, size);
}

static void decode_mended(const uint8_t *data, size_t size)
{
	static const uint8_t version[] = { 1, 0, 3, 0 };
	uint8_t packet[DLM_WIRE_MAX];

	if (size < DLM_WIRE_PEEK || size > sizeof(packet))
		return;
	memcpy(packet, data, size);
	memcpy(packet, version, sizeof(version));
	packet[11] &= 0x7f;
	packet[12] = (uint8_t)size;
	packet[13] = (uint8_t)(size >> 8);
	packet[14] = 1 + (packet[14] & 1);
	packet[15] = 0;
	decode(packet, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	decode_stream(data, size);
	decode_mended(data, size);
	return 0;
}
