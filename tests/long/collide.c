/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * collide.c - names with one and the same hash: collide DIR COUNT
 *
 * A directory finds an entry by the CRC-32 of its name, so no split of a leaf
 * parts these: they need a chain of leaves, and cookies that tell them apart
 * (docs/spec/gfs2-ondisk.md 4). The last four bytes of a name are computed: a
 * CRC can be run backwards from the value it shall have.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POLYNOMIAL 0xedb88320u
#define TARGET 0x12345678u /* any value */

static uint32_t forward(uint32_t crc, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		crc ^= (unsigned char)bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
	}
	return crc;
}

/* The register 32 zero bits earlier; its top bit tells what each step did. */
static uint32_t backward(uint32_t crc)
{
	for (int bit = 0; bit < 32; bit++)
		crc = crc >> 31 ? (crc ^ POLYNOMIAL) << 1 | 1 : crc << 1;
	return crc;
}

/* False if the name cannot be one. */
static int make_name(unsigned n, char *name, size_t size)
{
	size_t len = (size_t)snprintf(name, size, "same-hash-%06u-", n);
	uint32_t end = backward(~TARGET) ^ forward(~0u, name, len);

	for (int i = 0; i < 4; i++)
		name[len + (size_t)i] = (char)(end >> (8 * i));
	name[len + 4] = '\0';
	return !memchr(name + len, '\0', 4) && !memchr(name + len, '/', 4);
}

int main(int argc, char **argv)
{
	unsigned long count = argc > 2 ? strtoul(argv[2], NULL, 0) : 0;
	char name[64];
	int fd;

	if (argc != 3 || chdir(argv[1]))
		return 2;
	for (unsigned n = 0; count; n++) {
		if (!make_name(n, name, sizeof(name)))
			continue;
		if (~forward(~0u, name, strlen(name)) != TARGET)
			return 2;
		fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0644);
		if (fd < 0) {
			fprintf(stderr, "collide: name %u: %s\n", n,
				strerror(errno));
			return 1;
		}
		close(fd);
		count--;
	}
	return 0;
}
