/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_acl.c - what an access control list is, and how it and a mode limit
 * each other. No volume.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "fs/acl.h"
#include "tests/unit/fs/aclmake.h"

static size_t parse(const char *text, uint8_t *value)
{
	return acl_of_text(text, value);
}

static int check(const char *text)
{
	uint8_t value[512];

	return acl_check(value, parse(text, value), 10);
}

static void test_check(void **state)
{
	uint8_t value[512];
	size_t size;

	assert_int_equal(check("u::rw g::r o::"), 0);
	assert_int_equal(check("u::rw u:5:r g::r g:7:x m::rwx o::r"), 0);
	assert_int_equal(check("u::rw g::r m::r o::"), 0);
	/* Something is missing, or there twice, or out of order. */
	assert_int_equal(check("u::rw g::r"), -EINVAL);
	assert_int_equal(check("u::rw o::r"), -EINVAL);
	assert_int_equal(check("g::r o::r"), -EINVAL);
	assert_int_equal(check("u::rw u::rw g::r o::r"), -EINVAL);
	assert_int_equal(check("u::rw u:5:r g::r o::r"), -EINVAL);
	assert_int_equal(check("u::rw g::r g:5:r o::r"), -EINVAL);
	assert_int_equal(check("u::rw g::r u:5:r m::r o::r"), -EINVAL);
	assert_int_equal(check("u::rw g::r o::r m::r"), -EINVAL);
	assert_int_equal(check("u::rw g::r o::r o::r"), -EINVAL);
	assert_int_equal(check("u::rw u:4294967295:r g::r m::r o::r"), -EINVAL);

	size = parse("u::rw g::r o::r", value);
	assert_int_equal(size, 4 + 3 * 8);
	assert_int_equal(acl_check(value, size, 3), 0);
	assert_int_equal(acl_check(value, size, 2), -E2BIG);
	for (size_t n = 0; n < size; n++)
		assert_int_equal(acl_check(value, n, 3), -EINVAL);
	value[0] = 3; /* version */
	assert_int_equal(acl_check(value, size, 3), -EINVAL);
	value[0] = 2;
	value[6] = 8; /* no such permission */
	assert_int_equal(acl_check(value, size, 3), -EINVAL);
}

static void test_to_mode(void **state)
{
	uint8_t value[512];
	uint32_t mode = 0107111;

	assert_true(acl_to_mode(value, parse("u::rw g::r o::x", value), &mode));
	assert_int_equal(mode, 0107641);
	assert_false(acl_to_mode(
		value, parse("u::rwx u:5:r g::r m::rwx o::", value), &mode));
	assert_int_equal(mode, 0107770);
	assert_false(
		acl_to_mode(value, parse("u::r g::r m::w o::r", value), &mode));
	assert_int_equal(mode, 0107424);
}

static void assert_list(const uint8_t *value, size_t size, const char *text)
{
	uint8_t other[512];

	assert_int_equal(size, parse(text, other));
	assert_memory_equal(value, other, size);
}

static void test_from_mode(void **state)
{
	uint8_t value[512];
	size_t size = parse("u::rw u:5:r g::rw m::rwx o::r", value);

	/* The mask stands for the group bits. */
	acl_from_mode(value, size, 0100751);
	assert_list(value, size, "u::rwx u:5:r g::rw m::rx o::x");
	size = parse("u::rw g::rw o::r", value);
	acl_from_mode(value, size, 0100751);
	assert_list(value, size, "u::rwx g::rx o::x");
}

static void test_inherit(void **state)
{
	uint8_t value[512];
	size_t size = parse("u::rwx u:5:rwx g::rwx m::rwx o::rx", value);
	uint32_t mode = 0100640;

	assert_false(acl_inherit(value, size, &mode));
	assert_int_equal(mode, 0100640);
	assert_list(value, size, "u::rw u:5:rwx g::rwx m::r o::");

	size = parse("u::rx g::rx o::", value);
	mode = 0042777;
	assert_true(acl_inherit(value, size, &mode));
	assert_int_equal(mode, 0042550);
}

/* Whatever passes can be used. */
static void test_hostile_bytes(void **state)
{
	struct ug_prng prng;
	unsigned passed = 0;

	ug_prng_seed(&prng, 3);
	for (unsigned i = 0; i < 200000; i++) {
		uint8_t made[512];
		size_t size = parse("u::rwx u:5:rwx g::rwx m::rwx o::rx", made);
		size_t len = size - ug_prng_below(&prng, 10) / 9;
		uint8_t *value = malloc(len);
		uint32_t mode = 0644;

		made[ug_prng_below(&prng, size)] = (uint8_t)ug_prng_u64(&prng);
		memcpy(value, made, len);
		if (!acl_check(value, len, UINT32_MAX)) {
			passed++;
			acl_to_mode(value, len, &mode);
			acl_from_mode(value, len, mode);
			acl_inherit(value, len, &mode);
			assert_int_equal(acl_check(value, len, UINT32_MAX), 0);
		}
		free(value);
	}
	assert_true(passed > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_to_mode),
		cmocka_unit_test(test_from_mode),
		cmocka_unit_test(test_inherit),
		cmocka_unit_test(test_hostile_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
