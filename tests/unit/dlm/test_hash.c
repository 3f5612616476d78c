/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_hash.c - the hash that all members must compute alike (spec 12.1) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "dlm/dlm.h"

static void test_vectors(void **state)
{
	static const struct {
		const char *name;
		uint32_t hash;
		unsigned dir;
	} vectors[] = {
		{ "", 0xdeadbeef, 2 },
		{ "a", 0x58d68708, 2 },
		{ "A", 0x01014ba1, 2 },
		{ "MyLock", 0x0fd63a45, 1 },
		{ "test0001", 0x6decba58, 0 },
		{ "abcdefghijkl", 0x4012f87b, 1 },
		{ "abcdefghijklm", 0x928128f9, 2 },
		{ "       2              16", 0x2ce23c44, 0 },
		{ "       5              16", 0x6490e243, 1 },
		{ "       9               0", 0x2c4f91fb, 0 },
		{ "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
		  "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
		  0x136c983a, 1 },
		{ "Four score and seven years ago", 0x17770551, 1 },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		uint32_t hash =
			dlm_hash(vectors[i].name, strlen(vectors[i].name));

		assert_int_equal(hash, vectors[i].hash);
		assert_int_equal((hash >> 16) % 3, vectors[i].dir);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_vectors) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
