/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fuzz_link.c - any bytes as what comes over a link: a message of the handshake
 * (as it is, and with a length that agrees) and a row of frames.
 *
 * Decoders are run on exact copies, so that a byte looked at beyond them is
 * seen by the address sanitizer. What is taken must be what would be sent:
 * encoding it gives the same bytes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/linkwire.h"

#define LENGTH_AT 10

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_shake(const struct link_shake *shake, const uint8_t *bytes,
			size_t len)
{
	uint8_t again[LINK_SHAKE_MAX];

	if (strnlen(shake->table, sizeof(shake->table)) > LINK_TABLE_MAX)
		abort();
	if (link_shake_encode(shake, again) != len ||
	    memcmp(again, bytes, len) != 0)
		abort();
	if (shake->type == LS_REFUSE &&
	    (!*link_refusal_text(shake->refusal, true) ||
	     !*link_refusal_text(shake->refusal, false)))
		abort();
}

static void decode_shake(const uint8_t *bytes, size_t len)
{
	struct link_shake shake;
	int err = link_shake_decode(bytes, len, &shake);

	if (!err)
		check_shake(&shake, bytes, len);
	else if (err == -EPROTONOSUPPORT && shake.major == LINK_VERSION_MAJOR)
		abort();
	else if (err != -EBADMSG && err != -EPROTONOSUPPORT)
		abort();
}

static void decode_frames(const uint8_t *bytes, size_t len)
{
	uint8_t again[LINK_FRAME_BYTES];
	struct link_frame frame;

	while (len >= LINK_FRAME_BYTES) {
		if (link_frame_decode(bytes, &frame))
			return;
		link_frame_encode(&frame, again);
		if (memcmp(again, bytes, sizeof(again)) != 0 ||
		    frame.len > LINK_MESSAGE_MAX)
			abort();
		bytes += LINK_FRAME_BYTES;
		len -= LINK_FRAME_BYTES;
		if (frame.len > len)
			return;
		bytes += frame.len;
		len -= frame.len;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	decode_shake(copy, size);
	decode_frames(copy, size);
	if (size >= LINK_SHAKE_HEAD && size <= LINK_SHAKE_MAX) {
		copy[LENGTH_AT] = (uint8_t)size;
		copy[LENGTH_AT + 1] = (uint8_t)(size >> 8);
		decode_shake(copy, size);
	}
	free(copy);
	return 0;
}
