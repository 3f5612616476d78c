/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fuzz_groupmsg.c - any bytes as a message of the process group.
 *
 * First as they are, then with magic, length and checksum put right, without
 * which nothing gets further. What is decoded is encoded again and must be the
 * same bytes. A message of a process that takes no state is refused without a
 * touch of the table.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"
#include "cluster/groupmsg.h"

#define HEADER_BYTES 24u
#define LENGTH_AT 16u
#define CRC_AT 20u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void set32(uint8_t *at, uint32_t value)
{
	for (unsigned i = 0; i < 4; i++)
		at[i] = (uint8_t)(value >> 8 * i);
}

static void encode_again(const struct group_msg *msg, const uint8_t *bytes,
			 size_t size)
{
	static uint8_t again[GROUP_MSG_MAX];

	memset(again, 0x5a, sizeof(again));
	must(group_msg_encode(msg, again, sizeof(again)) == (long)size);
	must(memcmp(again, bytes, size) == 0);
	must(group_msg_encode(msg, again, size - 1) == -EMSGSIZE);
}

static void decode(const uint8_t *bytes, size_t size)
{
	static struct group_state state;
	struct group_msg msg;
	int error = group_msg_decode(bytes, size, &msg, &state);

	if (error) {
		must(error == -EBADMSG || error == -EPROTONOSUPPORT);
		must(error == -EBADMSG || msg.major != GROUP_VERSION_MAJOR);
		return;
	}
	must(msg.major == GROUP_VERSION_MAJOR);
	must((msg.type == GM_STATE) ==
	     (group_msg_decode(bytes, size, &msg, NULL) == -EBADMSG));
	if (msg.type == GM_STATE)
		must(msg.state == &state);
	encode_again(&msg, bytes, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	decode(copy, size);
	if (size >= HEADER_BYTES) {
		memcpy(copy, "UGCM", 4);
		set32(copy + LENGTH_AT, (uint32_t)size);
		set32(copy + CRC_AT,
		      ug_crc32(copy + HEADER_BYTES, size - HEADER_BYTES));
		decode(copy, size);
	}
	free(copy);
	return 0;
}
