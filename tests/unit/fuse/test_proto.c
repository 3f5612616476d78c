/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The decoder of requests: what it makes of right ones, and that wrong ones,
 * however they are cut, are refused without a look beyond their end.
 *
 * Every input is copied to the end of a page that is followed by one that
 * cannot be read.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/prng.h"
#include "fuse/proto.h"
#include "request_bytes.h"

#define GUARD_BYTES 131072u

static char *guard; /* readable up to guard + GUARD_BYTES */

static int setup(void **state)
{
	guard = mmap(NULL, GUARD_BYTES + 4096, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(guard, MAP_FAILED);
	return mprotect(guard + GUARD_BYTES, 4096, PROT_NONE);
}

static int teardown(void **state)
{
	return munmap(guard, GUARD_BYTES + 4096);
}

/* Decode the first len bytes, at the edge of what may be read. */
static int decode_cut(const struct request_bytes *rb, size_t len,
		      struct fuse_request *req)
{
	char *at = guard + GUARD_BYTES - len;

	memcpy(at, rb->bytes, len);
	return fuse_request_decode(at, len, req);
}

/* The same with a header that says what is there. */
static int decode_honest(struct request_bytes *rb, size_t len,
			 struct fuse_request *req)
{
	uint32_t total = (uint32_t)len;

	memcpy(rb->bytes, &total, sizeof(total));
	return decode_cut(rb, len, req);
}

static void test_header(void **state)
{
	struct request_bytes rb;
	struct fuse_request req;

	request_begin(&rb, FUSE_STATFS, 9);
	assert_int_equal(decode_cut(&rb, rb.len, &req), 0);
	assert_int_equal(req.unique, 4242);
	assert_int_equal(req.nodeid, 9);
	assert_int_equal(req.opcode, FUSE_STATFS);
	assert_int_equal(req.uid, 1000);
	assert_int_equal(req.gid, 1001);
	assert_int_equal(req.pid, 77);
}

static void test_length_must_agree(void **state)
{
	struct request_bytes rb;
	struct fuse_request req;

	request_begin(&rb, FUSE_LOOKUP, 1);
	request_add_text(&rb, "name");
	assert_int_equal(decode_cut(&rb, rb.len - 1, &req), -EBADMSG);
	rb.bytes[0]++;
	assert_int_equal(decode_cut(&rb, rb.len, &req), -EBADMSG);
	assert_int_equal(req.unique, 4242);
}

static void test_lookup(void **state)
{
	struct request_bytes rb;
	struct fuse_request req;

	request_begin(&rb, FUSE_LOOKUP, 1);
	request_add_text(&rb, "name");
	assert_int_equal(decode_cut(&rb, rb.len, &req), 0);
	assert_int_equal(req.name.len, 4);
	assert_string_equal(req.name.text, "name");
	assert_null(req.name2.text);
}

static void test_bad_names(void **state)
{
	struct request_bytes rb;
	struct fuse_request req;

	request_begin(&rb, FUSE_LOOKUP, 1);
	request_add_text(&rb, "");
	assert_int_equal(decode_cut(&rb, rb.len, &req), -EBADMSG);

	request_begin(&rb, FUSE_LOOKUP, 1);
	request_add_text(&rb, "a/b");
	assert_int_equal(decode_cut(&rb, rb.len, &req), -EBADMSG);

	request_begin(&rb, FUSE_UNLINK, 1);
	request_add(&rb, "endless", 7);
	assert_int_equal(decode_cut(&rb, rb.len, &req), -EBADMSG);
}

static void test_rename(void **state)
{
	struct fuse_rename_in old = { .newdir = 5 };
	struct fuse_rename2_in new = { .newdir = 6, .flags = 1 };
	struct request_bytes rb;
	struct fuse_request req;

	memset(&req, 0xff, sizeof(req)); /* flags of an older request */
	request_begin(&rb, FUSE_RENAME, 1);
	request_add(&rb, &old, sizeof(old));
	request_add_text(&rb, "from");
	request_add_text(&rb, "to");
	assert_int_equal(decode_cut(&rb, rb.len, &req), 0);
	assert_int_equal(req.rename.newdir, 5);
	assert_int_equal(req.rename.flags, 0);
	assert_string_equal(req.name.text, "from");
	assert_string_equal(req.name2.text, "to");

	request_begin(&rb, FUSE_RENAME2, 1);
	request_add(&rb, &new, sizeof(new));
	request_add_text(&rb, "from");
	request_add_text(&rb, "t/o");
	assert_int_equal(decode_cut(&rb, rb.len, &req), -EBADMSG);
}

static void test_symlink_target_has_slashes(void **state)
{
	struct request_bytes rb;
	struct fuse_request req;

	request_begin(&rb, FUSE_SYMLINK, 1);
	request_add_text(&rb, "link");
	request_add_text(&rb, "/usr/../lib");
	assert_int_equal(decode_cut(&rb, rb.len, &req), 0);
	assert_string_equal(req.name2.text, "/usr/../lib");
	assert_int_equal(req.name2.len, 11);
}

static void test_xattr(void **state)
{
	struct fuse_setxattr_in in = { .size = 5, .flags = 1 };
	struct request_bytes rb;
	struct fuse_request req;

	request_begin(&rb, FUSE_SETXATTR, 7);
	request_add(&rb, &in, sizeof(in));
	request_add_text(&rb, "user.a/b");
	request_add(&rb, "va\0ue", 5);
	assert_int_equal(decode_cut(&rb, rb.len, &req), 0);
	assert_string_equal(req.name.text, "user.a/b");
	assert_int_equal(req.setxattr.flags, 1);
	assert_int_equal(req.data_len, 5);
	assert_memory_equal(req.data, "va\0ue", 5);
	/* It promises more than has come. */
	in.size = 6;
	memcpy(rb.bytes + sizeof(struct fuse_in_header), &in, sizeof(in));
	assert_int_equal(decode_cut(&rb, rb.len, &req), -EBADMSG);

	request_begin(&rb, FUSE_REMOVEXATTR, 7);
	request_add_text(&rb, "user.a/b");
	assert_int_equal(decode_cut(&rb, rb.len, &req), 0);
	assert_string_equal(req.name.text, "user.a/b");
}

static void test_write(void **state)
{
	struct fuse_write_in in = { .fh = 3, .offset = 4096, .size = 5 };
	struct request_bytes rb;
	struct fuse_request req;

	request_begin(&rb, FUSE_WRITE, 7);
	request_add(&rb, &in, sizeof(in));
	request_add(&rb, "bytes", 5);
	assert_int_equal(rb.len, FUSE_WRITE_HEAD + 5);
	assert_int_equal(decode_cut(&rb, rb.len, &req), 0);
	assert_int_equal(req.data_len, 5);
	assert_memory_equal(req.data, "bytes", 5);

	/* It promises more than has come. */
	in.size = 6;
	memcpy(rb.bytes + sizeof(struct fuse_in_header), &in, sizeof(in));
	assert_int_equal(decode_cut(&rb, rb.len, &req), -EBADMSG);
}

static void test_batch_forget(void **state)
{
	struct fuse_batch_forget_in in = { .count = 2 };
	struct fuse_forget_one ones[2] = { { 10, 1 }, { 20, 300 } };
	struct request_bytes rb;
	struct fuse_request req;

	request_begin(&rb, FUSE_BATCH_FORGET, 0);
	request_add(&rb, &in, sizeof(in));
	request_add(&rb, ones, sizeof(ones));
	assert_int_equal(decode_cut(&rb, rb.len, &req), 0);
	assert_int_equal(fuse_request_forget(&req, 1).nodeid, 20);
	assert_int_equal(fuse_request_forget(&req, 1).nlookup, 300);

	/* Counts whose size in bytes is too large, or overflows 32 bits. */
	in.count = 3;
	memcpy(rb.bytes + sizeof(struct fuse_in_header), &in, sizeof(in));
	assert_int_equal(decode_cut(&rb, rb.len, &req), -EBADMSG);
	in.count = 1u << 28;
	memcpy(rb.bytes + sizeof(struct fuse_in_header), &in, sizeof(in));
	assert_int_equal(decode_cut(&rb, rb.len, &req), -EBADMSG);
}

static void test_short_init(void **state)
{
	struct fuse_init_in in = { .major = 7, .minor = 31, .flags2 = 99 };
	struct request_bytes rb;
	struct fuse_request req;

	memset(&req, 0xff, sizeof(req));
	request_begin(&rb, FUSE_INIT, 0);
	request_add(&rb, &in, 16);
	assert_int_equal(decode_cut(&rb, rb.len, &req), 0);
	assert_int_equal(req.init.minor, 31);
	assert_int_equal(req.init.flags2, 0);
}

static void test_unknown_opcodes(void **state)
{
	const uint32_t opcodes[] = { 0,		7,    19,
				     52,	53,   63,
				     64,	4096, FUSE_INIT_BSWAP_RESERVED,
				     UINT32_MAX };
	struct request_bytes rb;
	struct fuse_request req;

	for (unsigned i = 0; i < UG_ARRAY_SIZE(opcodes); i++) {
		request_begin(&rb, opcodes[i], 1);
		request_add(&rb, "whatever", 8);
		assert_int_equal(decode_cut(&rb, rb.len, &req), -ENOSYS);
		assert_int_equal(req.unique, 4242);
		assert_string_equal(fuse_opcode_name(opcodes[i]), "?");
	}
	assert_string_equal(fuse_opcode_name(FUSE_LOOKUP), "LOOKUP");
}

/* Newer kernels append extensions: they are not ours to refuse. */
static void test_extensions_are_left_alone(void **state)
{
	struct fuse_mkdir_in in = { .mode = 0755 };
	struct request_bytes rb;
	struct fuse_request req;

	request_begin(&rb, FUSE_MKDIR, 1);
	request_add(&rb, &in, sizeof(in));
	request_add_text(&rb, "d");
	request_add(&rb, "extension.......", 16);
	assert_int_equal(decode_cut(&rb, rb.len, &req), 0);
	assert_string_equal(req.name.text, "d");
}

static void test_every_truncation(void **state)
{
	char args[sizeof(struct fuse_setattr_in)] = { 1 };
	struct request_bytes rb;
	struct fuse_request req;

	for (uint32_t opcode = 0; opcode < FUSE_OPCODES; opcode++) {
		request_begin(&rb, opcode, 1);
		request_add(&rb, args, sizeof(args));
		request_add_text(&rb, "one");
		request_add_text(&rb, "two");
		for (size_t len = 0; len <= rb.len; len++) {
			int err = decode_honest(&rb, len, &req);

			assert_true(err == 0 || err == -EBADMSG ||
				    err == -ENOSYS);
			if (len < sizeof(struct fuse_in_header))
				assert_int_equal(err, -EBADMSG);
		}
	}
}

/* What was accepted lies within the bytes. */
static void check_inside(const struct fuse_request *req, const char *from)
{
	const char *end = guard + GUARD_BYTES;

	if (req->name.text) {
		assert_true(req->name.text >= from &&
			    req->name.text + req->name.len < end);
		assert_int_equal(strlen(req->name.text), req->name.len);
	}
	if (req->data)
		assert_true((const char *)req->data >= from &&
			    (const char *)req->data + req->data_len <= end);
}

static void test_noise(void **state)
{
	struct ug_prng prng;
	struct request_bytes rb;
	struct fuse_request req;

	ug_prng_seed(&prng, 1);
	for (unsigned round = 0; round < 200000; round++) {
		size_t extra = ug_prng_below(&prng, 160);

		request_begin(&rb, (uint32_t)ug_prng_below(&prng, 70), 1);
		for (size_t i = 0; i < extra; i++)
			rb.bytes[rb.len + i] =
				(char)(ug_prng_below(&prng, 4)
					       ? ug_prng_below(&prng, 3)
					       : ug_prng_u64(&prng));
		rb.len += extra;
		if (decode_honest(&rb, rb.len, &req) == 0)
			check_inside(&req, guard + GUARD_BYTES - rb.len);
	}
}

static void test_answered(void **state)
{
	struct fuse_request req = { .unique = 1 };

	req.opcode = FUSE_FORGET;
	assert_false(fuse_request_answered(&req));
	req.opcode = FUSE_BATCH_FORGET;
	assert_false(fuse_request_answered(&req));
	req.opcode = FUSE_INTERRUPT;
	assert_false(fuse_request_answered(&req));
	req.opcode = FUSE_FLUSH;
	assert_true(fuse_request_answered(&req));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_header),
		cmocka_unit_test(test_length_must_agree),
		cmocka_unit_test(test_lookup),
		cmocka_unit_test(test_bad_names),
		cmocka_unit_test(test_rename),
		cmocka_unit_test(test_symlink_target_has_slashes),
		cmocka_unit_test(test_xattr),
		cmocka_unit_test(test_write),
		cmocka_unit_test(test_batch_forget),
		cmocka_unit_test(test_short_init),
		cmocka_unit_test(test_unknown_opcodes),
		cmocka_unit_test(test_extensions_are_left_alone),
		cmocka_unit_test(test_every_truncation),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_answered),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
