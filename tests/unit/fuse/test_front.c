/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The operations: what each request makes of itself in a call of the file
 * system, and what of the result becomes the answer.
 *
 * Requests are bytes that go through the decoder; notifications to the kernel
 * are read from the other end of a socket.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_fs.h"
#include "fuse/conn_impl.h"
#include "fuse/front.h"
#include "fuse/opens.h"
#include "fuse/ops.h"
#include "request_bytes.h"

struct rig {
	struct fuse_conn conn;
	int kernel;
	struct fuse_front *front;
	struct request_bytes rb;
	struct fuse_request req;
	struct fuse_reply reply;
	_Alignas(4096) char data[65536];
};

static void rig_begin(struct rig *rig, enum fuse_data_mode mode, uint64_t flags,
		      bool shared)
{
	struct fuse_front_params params = { .conn = &rig->conn, .who = "test" };
	struct fuse_agreed agreed = { .flags = flags, .minor = 45 };
	int fds[2];

	fake_reset();
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fds), 0);
	rig->conn.fds[0] = fds[0];
	rig->kernel = fds[1];
	fuse_policy_defaults(&params.policy, mode);
	params.policy.shared = shared;
	assert_int_equal(fuse_front_create(&params, &rig->front), 0);
	assert_int_equal(fuse_front_handler.start(rig->front, &agreed), 0);
	rig->reply.data = rig->data;
	rig->reply.data_max = sizeof(rig->data);
}

static int setup_cached(void **state)
{
	*state = aligned_alloc(4096, sizeof(struct rig));
	memset(*state, 0, sizeof(struct rig));
	rig_begin(*state, FUSE_DATA_CACHED,
		  FUSE_NO_OPENDIR_SUPPORT | FUSE_SETXATTR_EXT, false);
	return 0;
}

static int setup_direct(void **state)
{
	*state = aligned_alloc(4096, sizeof(struct rig));
	memset(*state, 0, sizeof(struct rig));
	rig_begin(*state, FUSE_DATA_DIRECT, FUSE_DIRECT_IO_ALLOW_MMAP, false);
	return 0;
}

static int setup_shared(void **state)
{
	*state = aligned_alloc(4096, sizeof(struct rig));
	memset(*state, 0, sizeof(struct rig));
	rig_begin(*state, FUSE_DATA_DIRECT, FUSE_DIRECT_IO_ALLOW_MMAP, true);
	return 0;
}

static int teardown(void **state)
{
	struct rig *rig = *state;

	for (unsigned i = 0; i < FAKE_NODES; i++)
		assert_int_equal(fake.inodes[i].refs, 0);
	fuse_front_destroy(rig->front);
	close(rig->conn.fds[0]);
	close(rig->kernel);
	free(rig);
	return 0;
}

static int call_place(struct rig *rig, enum fuse_place place)
{
	if (place == FUSE_INLINE)
		rig->reply.carry = 0;
	rig->reply.body_len = 0;
	rig->reply.data_len = 0;
	return fuse_front_handler.handle(rig->front, &rig->req, &rig->reply,
					 place);
}

static int call(struct rig *rig)
{
	assert_int_equal(
		fuse_request_decode(rig->rb.bytes, rig->rb.len, &rig->req), 0);
	return call_place(rig, FUSE_INLINE);
}

static void begin(struct rig *rig, uint32_t opcode, uint64_t nodeid,
		  const void *args, size_t len)
{
	request_begin(&rig->rb, opcode, nodeid);
	request_add(&rig->rb, args, len);
}

/* The next notification; false: none. */
static bool notified(struct rig *rig, struct fuse_notify_inval *note)
{
	return read(rig->kernel, note, sizeof(*note)) == sizeof(*note);
}

static void assert_called(const char *name, uint64_t nodeid)
{
	assert_non_null(fake.call);
	assert_string_equal(fake.call, name);
	assert_int_equal(fake.nodeid, nodeid);
}

/* ---- names ---- */

static void test_lookup(void **state)
{
	struct rig *rig = *state;

	begin(rig, FUSE_LOOKUP, 2, "name", 5);
	assert_int_equal(call(rig), 0);
	assert_called("lookup", 2);
	assert_string_equal(fake.name, "name");
	assert_int_equal(fake.req.uid, 1000);
	assert_int_equal(fake.req.gid, 1001);
	assert_int_equal(fake.req.pid, 77);
	assert_true(fake.req.nowait);
	assert_int_equal(rig->reply.body_len, sizeof(struct fuse_entry_out));
	assert_int_equal(rig->reply.entry.nodeid, 5);
	assert_int_equal(rig->reply.entry.generation, 77);
	assert_int_equal(rig->reply.entry.entry_valid, INT32_MAX);

	assert_int_equal(call_place(rig, FUSE_WORKER), 0);
	assert_false(fake.req.nowait);
}

static void test_lookup_missing(void **state)
{
	struct rig *rig = *state;

	fake.result = -ENOENT;
	begin(rig, FUSE_LOOKUP, 2, "name", 5);
	assert_int_equal(call(rig), 0); /* remembered by the kernel */
	assert_int_equal(rig->reply.entry.nodeid, 0);
	assert_int_equal(rig->reply.entry.entry_valid, INT32_MAX);
	fake.result = -EACCES;
	assert_int_equal(call(rig), -EACCES);
}

static void test_lookup_missing_direct(void **state)
{
	struct rig *rig = *state;

	fake.result = -ENOENT;
	begin(rig, FUSE_LOOKUP, 2, "name", 5);
	assert_int_equal(call(rig), -ENOENT);
}

/* File handles of inodes that we have forgotten. */
static void test_lookup_self(void **state)
{
	struct rig *rig = *state;

	begin(rig, FUSE_LOOKUP, 12345, ".", 2);
	assert_int_equal(call(rig), 0);
	assert_called("lookup_nodeid", 12345);
	begin(rig, FUSE_LOOKUP, 2, "..", 3);
	assert_int_equal(call(rig), 0);
	assert_called("lookup", 2);
}

static void test_unknown_node(void **state)
{
	struct rig *rig = *state;

	begin(rig, FUSE_LOOKUP, 12345, "name", 5);
	assert_int_equal(call(rig), -ESTALE);
	begin(rig, FUSE_GETATTR, 12345, rig->data,
	      sizeof(struct fuse_getattr_in));
	assert_int_equal(call(rig), -ESTALE);
	assert_int_equal(fake.calls, 0);
}

static void test_make(void **state)
{
	struct fuse_mknod_in mknod_in = {
		.mode = S_IFCHR | 0600,
		.rdev = 0x12345678,
	};
	struct fuse_mkdir_in mkdir_in = { .mode = 01750 };
	struct rig *rig = *state;

	begin(rig, FUSE_MKNOD, 2, &mknod_in, sizeof(mknod_in));
	request_add_text(&rig->rb, "dev");
	assert_int_equal(call(rig), 0);
	assert_called("make", 2);
	assert_int_equal(fake.make.mode, S_IFCHR | 0600);
	assert_int_equal(fake.make.rdev_major, 0x456);
	assert_int_equal(fake.make.rdev_minor, 0x12378);

	begin(rig, FUSE_MKDIR, 2, &mkdir_in, sizeof(mkdir_in));
	request_add_text(&rig->rb, "dir");
	assert_int_equal(call(rig), 0);
	assert_int_equal(fake.make.mode, S_IFDIR | 01750);

	begin(rig, FUSE_SYMLINK, 2, "link", 5);
	request_add_text(&rig->rb, "to/there");
	assert_int_equal(call(rig), 0);
	assert_int_equal(fake.make.mode & S_IFMT, S_IFLNK);
	assert_string_equal(fake.name, "link");
	assert_string_equal(fake.name2, "to/there");
	assert_int_equal(rig->reply.body_len, sizeof(struct fuse_entry_out));
}

static void test_rename(void **state)
{
	struct fuse_rename_in in = { .newdir = 3 };
	struct fuse_rename2_in in2 = { .newdir = 3, .flags = 1 };
	struct rig *rig = *state;

	begin(rig, FUSE_RENAME, 2, &in, sizeof(in));
	request_add_text(&rig->rb, "old");
	request_add_text(&rig->rb, "new");
	assert_int_equal(call(rig), 0);
	assert_called("rename", 2);
	assert_int_equal(fake.nodeid2, 3);
	assert_string_equal(fake.name, "old");
	assert_string_equal(fake.name2, "new");
	assert_int_equal(fake.flags, 0);

	begin(rig, FUSE_RENAME2, 2, &in2, sizeof(in2));
	request_add_text(&rig->rb, "old");
	request_add_text(&rig->rb, "new");
	assert_int_equal(call(rig), 0);
	assert_int_equal(fake.flags, 1);

	in.newdir = 12345;
	begin(rig, FUSE_RENAME, 2, &in, sizeof(in));
	request_add_text(&rig->rb, "old");
	request_add_text(&rig->rb, "new");
	assert_int_equal(call(rig), -ESTALE);
}

static void test_link_and_removal(void **state)
{
	struct fuse_link_in in = { .oldnodeid = 4 };
	struct rig *rig = *state;

	begin(rig, FUSE_LINK, 2, &in, sizeof(in));
	request_add_text(&rig->rb, "hard");
	assert_int_equal(call(rig), 0);
	assert_called("link", 2);
	assert_int_equal(fake.nodeid2, 4);

	begin(rig, FUSE_UNLINK, 2, "gone", 5);
	fake.result = -EPERM;
	assert_int_equal(call(rig), -EPERM);
	assert_called("unlink", 2);
	begin(rig, FUSE_RMDIR, 2, "gone", 5);
	fake.result = -ENOTEMPTY;
	assert_int_equal(call(rig), -ENOTEMPTY);
	assert_called("rmdir", 2);
}

static void test_forget(void **state)
{
	struct fuse_forget_in in = { .nlookup = 3 };
	struct fuse_batch_forget_in batch = { .count = 2 };
	struct fuse_forget_one ones[2] = { { 4, 5 }, { 6, 7 } };
	struct rig *rig = *state;

	begin(rig, FUSE_FORGET, 2, &in, sizeof(in));
	assert_int_equal(call(rig), 0);
	assert_called("forget", 2);
	begin(rig, FUSE_BATCH_FORGET, 0, &batch, sizeof(batch));
	request_add(&rig->rb, ones, sizeof(ones));
	assert_int_equal(call(rig), 0);
	assert_called("forget", 6);
	assert_int_equal(fake.forgotten, 15);
}

/* ---- attributes ---- */

static void test_setattr(void **state)
{
	struct fuse_setattr_in in = {
		.valid = FATTR_MODE | FATTR_SIZE | FATTR_ATIME | FATTR_FH |
			 FATTR_MTIME | FATTR_MTIME_NOW | FATTR_LOCKOWNER |
			 FATTR_KILL_SUIDGID,
		.mode = S_IFREG | 0600,
		.size = 99,
		.atime = (uint64_t)-5,
		.atimensec = 6,
		.uid = 1,
		.gid = 2,
	};
	struct rig *rig = *state;

	begin(rig, FUSE_SETATTR, 3, &in, sizeof(in));
	assert_int_equal(call(rig), 0);
	assert_called("setattr", 3);
	assert_int_equal(fake.set.valid, FS_SET_MODE | FS_SET_SIZE |
						 FS_SET_ATIME | FS_SET_MTIME |
						 FS_SET_MTIME_NOW |
						 FS_SET_KILL_SUIDGID);
	assert_int_equal(fake.set.size, 99);
	assert_int_equal(fake.set.atime.sec, -5);
	assert_int_equal(fake.set.atime.nsec, 6);
	assert_int_equal(rig->reply.body_len, sizeof(struct fuse_attr_out));
	assert_int_equal(rig->reply.attr.attr.size, 4711);
}

static void test_getattr_readlink_statfs(void **state)
{
	struct fuse_getattr_in in = { 0 };
	struct rig *rig = *state;

	begin(rig, FUSE_GETATTR, 3, &in, sizeof(in));
	assert_int_equal(call(rig), 0);
	assert_int_equal(rig->reply.attr.attr_valid, INT32_MAX);
	begin(rig, FUSE_READLINK, 3, "", 0);
	assert_int_equal(call(rig), 0);
	assert_int_equal(rig->reply.data_len, 6);
	fake.result = -EINVAL;
	assert_int_equal(call(rig), -EINVAL);
	begin(rig, FUSE_STATFS, 1, "", 0);
	assert_int_equal(call(rig), 0);
	assert_int_equal(rig->reply.statfs.st.blocks, 9);
}

/* ---- files ---- */

static int call_open(struct rig *rig, uint64_t nodeid, uint32_t flags,
		     uint32_t open_flags)
{
	struct fuse_open_in in = { .flags = flags, .open_flags = open_flags };

	begin(rig, FUSE_OPEN, nodeid, &in, sizeof(in));
	return call(rig);
}

static void call_release(struct rig *rig, uint64_t nodeid, uint64_t fh)
{
	struct fuse_release_in in = { .fh = fh };

	begin(rig, FUSE_RELEASE, nodeid, &in, sizeof(in));
	assert_int_equal(call(rig), 0);
}

static void test_open_release(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(call_open(rig, 3, O_WRONLY | O_TRUNC, 0), 0);
	assert_called("open", 3);
	assert_int_equal(fake.flags, O_WRONLY | O_TRUNC);
	assert_int_equal(rig->reply.body_len, sizeof(struct fuse_open_out));
	assert_int_equal(rig->reply.open.open_flags, FOPEN_KEEP_CACHE);
	call_release(rig, 3, rig->reply.open.fh);
	assert_called("release", 3);
	assert_int_equal(fake.flags, O_WRONLY);
	assert_int_equal(fake.opens, 0);
}

/* O_TRUNC by somebody who may not keep set-user-id. */
static void test_open_kills_bits(void **state)
{
	struct fuse_notify_inval note;
	struct rig *rig = *state;

	assert_int_equal(
		call_open(rig, 3, O_WRONLY | O_TRUNC, FUSE_OPEN_KILL_SUIDGID),
		0);
	assert_called("setattr", 3);
	assert_int_equal(fake.flags, O_WRONLY);
	assert_int_equal(fake.set.valid, FS_SET_SIZE | FS_SET_KILL_SUIDGID);
	assert_int_equal(fake.set.size, 0);
	assert_int_equal(fake.opens, 1);
	assert_true(notified(rig, &note));
	assert_int_equal(note.body.ino, 3);
	assert_true(note.body.off < 0);
}

static void test_create(void **state)
{
	struct fuse_create_in in = {
		.flags = O_RDWR | O_CREAT | O_EXCL,
		.mode = S_IFREG | 0640,
	};
	struct rig *rig = *state;

	fake.created = true;
	begin(rig, FUSE_CREATE, 2, &in, sizeof(in));
	request_add_text(&rig->rb, "new");
	assert_int_equal(call(rig), 0);
	assert_called("create", 2);
	assert_int_equal(fake.make.mode, S_IFREG | 0640);
	assert_int_equal(fake.flags, O_RDWR | O_CREAT | O_EXCL);
	assert_int_equal(rig->reply.body_len,
			 sizeof(struct fuse_entry_out) +
				 sizeof(struct fuse_open_out));
	assert_int_equal(rig->reply.create.entry.nodeid, 5);
	assert_true(rig->reply.create.open.fh & FUSE_FH_WRITE);
	fake.result = -EEXIST;
	assert_int_equal(call(rig), -EEXIST);
}

static void test_read_write(void **state)
{
	struct fuse_read_in read_in = {
		.fh = 3,
		.offset = 8192,
		.size = 4096,
		.read_flags = FUSE_READ_LOCKOWNER,
	};
	struct fuse_write_in write_in = { .fh = 3, .offset = 100, .size = 4 };
	struct rig *rig = *state;

	begin(rig, FUSE_READ, 3, &read_in, sizeof(read_in));
	assert_int_equal(call(rig), 0);
	assert_called("read", 3);
	assert_int_equal(fake.offset, 8192);
	assert_int_equal(fake.len, 4096);
	assert_int_equal(fake.io_flags, FS_IO_NOCACHE);
	assert_int_equal(rig->reply.data_len, 4096);
	fake.result = -EAGAIN;
	assert_int_equal(call(rig), -EAGAIN);
	fake.result = 0;

	read_in.size = sizeof(rig->data) + 1; /* more than there is room for */
	begin(rig, FUSE_READ, 3, &read_in, sizeof(read_in));
	assert_int_equal(call(rig), -EINVAL);

	begin(rig, FUSE_WRITE, 3, &write_in, sizeof(write_in));
	request_add(&rig->rb, "data", 4);
	assert_int_equal(call(rig), 0);
	assert_called("write", 3);
	assert_int_equal(fake.offset, 100);
	assert_int_equal(fake.len, 4);
	assert_int_equal(rig->reply.write.size, 4);
	fake.result = -ENOSPC;
	assert_int_equal(call(rig), -ENOSPC);
}

/* A write that clears bits: the kernel must not go on believing the mode. */
static void test_write_kills_bits(void **state)
{
	struct fuse_write_in in = {
		.fh = 3,
		.size = 4,
		.write_flags = FUSE_WRITE_KILL_SUIDGID,
	};
	struct fuse_notify_inval note;
	struct rig *rig = *state;

	begin(rig, FUSE_WRITE, 3, &in, sizeof(in));
	request_add(&rig->rb, "data", 4);
	assert_int_equal(call(rig), 0);
	assert_true(fake.io_flags & FS_IO_KILLPRIV);
	assert_false(notified(rig, &note));
	fake.attr.mode |= S_ISUID;
	assert_int_equal(call(rig), 0);
	assert_true(notified(rig, &note));
	assert_int_equal(note.body.ino, 3);
	assert_true(note.body.off < 0);
}

static void test_fsync_flush(void **state)
{
	struct fuse_fsync_in in = { .fsync_flags = FUSE_FSYNC_FDATASYNC };
	struct fuse_flush_in flush = { 0 };
	struct rig *rig = *state;

	begin(rig, FUSE_FSYNC, 3, &in, sizeof(in));
	assert_int_equal(call(rig), 0);
	assert_called("fsync", 3);
	assert_int_equal(fake.flags, 1);
	in.fsync_flags = 0;
	begin(rig, FUSE_FSYNCDIR, 2, &in, sizeof(in));
	assert_int_equal(call(rig), 0);
	assert_called("fsync", 2);
	assert_int_equal(fake.flags, 0);
	begin(rig, FUSE_FLUSH, 3, &flush, sizeof(flush));
	fake.result = -EIO;
	assert_int_equal(call(rig), 0);
}

static void test_syncfs_waits(void **state)
{
	struct rig *rig = *state;

	begin(rig, FUSE_SYNCFS, 1, "padding.", 8);
	assert_int_equal(call(rig), -EAGAIN);
	assert_int_equal(fake.calls, 0);
	assert_int_equal(call_place(rig, FUSE_WORKER), 0);
	assert_string_equal(fake.call, "sync");
}

/* ---- direct mode: pages in the kernel ---- */

static void test_first_writer_drops_pages(void **state)
{
	struct fuse_notify_inval note;
	struct rig *rig = *state;

	/* Nobody has read it: no detour. */
	assert_int_equal(call_open(rig, 4, O_WRONLY, 0), 0);
	assert_true(rig->reply.open.open_flags & FOPEN_DIRECT_IO);

	assert_int_equal(call_open(rig, 3, O_RDONLY, 0), 0);
	assert_false(rig->reply.open.open_flags & FOPEN_DIRECT_IO);
	assert_int_equal(call_open(rig, 3, O_RDWR, 0), FUSE_TO_NOTIFIER);
	assert_false(notified(rig, &note));
	assert_int_equal(fake.opens, 3);
	/* The file is not opened twice. */
	assert_int_equal(call_place(rig, FUSE_NOTIFIER), 0);
	assert_int_equal(fake.opens, 3);
	assert_int_equal(rig->reply.body_len, sizeof(struct fuse_open_out));
	assert_true(notified(rig, &note));
	assert_int_equal(note.body.ino, 3);
	assert_int_equal(note.body.off, 0);
	assert_int_equal(note.body.len, 0);
	assert_int_equal(call_open(rig, 3, O_RDWR, 0), 0);
}

static void test_write_drops_pages(void **state)
{
	struct fuse_read_in fill = { .size = 4096 };
	struct fuse_write_in in = {
		.fh = FUSE_FH_OPEN | FUSE_FH_WRITE | FUSE_FH_DIRECT,
		.offset = 100,
		.size = 4,
	};
	struct fuse_notify_inval note;
	struct rig *rig = *state;

	begin(rig, FUSE_WRITE, 3, &in, sizeof(in));
	request_add(&rig->rb, "data", 4);
	assert_int_equal(call(rig), 0);

	/* A page is filled for a mapping: from now on writes drop it. */
	begin(rig, FUSE_READ, 3, &fill, sizeof(fill));
	assert_int_equal(call(rig), 0);
	begin(rig, FUSE_WRITE, 3, &in, sizeof(in));
	request_add(&rig->rb, "data", 4);
	fake.calls = 0;
	assert_int_equal(call(rig), FUSE_TO_NOTIFIER);
	assert_int_equal(call_place(rig, FUSE_NOTIFIER), 0);
	assert_int_equal(fake.calls, 1); /* written once */
	assert_int_equal(rig->reply.write.size, 4);
	assert_int_equal(rig->reply.body_len, sizeof(struct fuse_write_out));
	assert_true(notified(rig, &note));
	assert_int_equal(note.body.off, 100);
	assert_int_equal(note.body.len, 4);

	/* What comes from the mapping itself is what the page holds. */
	in.write_flags = FUSE_WRITE_CACHE;
	begin(rig, FUSE_WRITE, 3, &in, sizeof(in));
	request_add(&rig->rb, "data", 4);
	assert_int_equal(call(rig), 0);
	assert_true(fake.io_flags & FS_IO_MAPPED);
}

/* ---- directories, the rest ---- */

static void test_opendir(void **state)
{
	struct fuse_open_in in = { 0 };
	struct rig *rig = *state;

	begin(rig, FUSE_OPENDIR, 2, &in, sizeof(in));
	assert_int_equal(call(rig), -ENOSYS); /* the kernel needs us not */
}

static void test_opendir_direct(void **state)
{
	struct fuse_open_in in = { 0 };
	struct rig *rig = *state;

	begin(rig, FUSE_OPENDIR, 2, &in, sizeof(in));
	assert_int_equal(call(rig), 0);
	assert_int_equal(rig->reply.open.open_flags, 0); /* keeps no listing */
}

static void test_readdir(void **state)
{
	struct fuse_read_in in = { .offset = 33, .size = 100 };
	struct rig *rig = *state;

	fake.emit = 10;
	begin(rig, FUSE_READDIR, 2, &in, sizeof(in));
	assert_int_equal(call(rig), 0);
	assert_called("readdir", 2);
	assert_int_equal(fake.offset, 33);
	assert_int_equal(rig->reply.data_len, 96); /* 3 entries of 32 */

	fake.emit = 0;
	assert_int_equal(call(rig), 0);
	assert_int_equal(rig->reply.data_len, 0);
	fake.result = -EAGAIN;
	assert_int_equal(call(rig), -EAGAIN);
	/* Nothing that was emitted counts: the whole is done again. */
	fake.emit = 1;
	assert_int_equal(call(rig), -EAGAIN);
	/* Else what is there is an answer: the kernel comes again. */
	fake.result = -EIO;
	assert_int_equal(call(rig), 0);
	assert_int_equal(rig->reply.data_len, 32);

	begin(rig, FUSE_READDIRPLUS, 2, &in, sizeof(in));
	assert_int_equal(call(rig), 0);
	assert_called("readdirplus", 2);
	assert_int_equal(rig->reply.data_len, 0); /* too small for one */
}

static void begin_setxattr(struct rig *rig, uint32_t flags, uint32_t ext)
{
	struct fuse_setxattr_in set = {
		.size = 5,
		.flags = flags,
		.setxattr_flags = ext,
	};

	begin(rig, FUSE_SETXATTR, 3, &set, sizeof(set));
	request_add_text(&rig->rb, "user.a");
	request_add(&rig->rb, "value", 5);
}

static void begin_getxattr(struct rig *rig, uint32_t opcode, uint32_t size)
{
	struct fuse_getxattr_in get = { .size = size };

	begin(rig, opcode, 3, &get, sizeof(get));
	if (opcode == FUSE_GETXATTR)
		request_add_text(&rig->rb, "user.a");
}

static void test_xattrs(void **state)
{
	struct fuse_notify_inval note;
	struct rig *rig = *state;

	begin_getxattr(rig, FUSE_GETXATTR, 0);
	assert_int_equal(call(rig), 0);
	assert_called("getxattr", 3);
	assert_string_equal(fake.name, "user.a");
	assert_int_equal(rig->reply.body_len, sizeof(rig->reply.getxattr));
	assert_int_equal(rig->reply.getxattr.size, 5);
	begin_getxattr(rig, FUSE_GETXATTR, 100);
	assert_int_equal(call(rig), 0);
	assert_int_equal(fake.len, 100);
	assert_int_equal(rig->reply.data_len, 5);
	assert_memory_equal(rig->reply.data, "value", 5);
	begin_getxattr(rig, FUSE_GETXATTR, UINT32_MAX);
	assert_int_equal(call(rig), 0);
	assert_int_equal(fake.len, sizeof(rig->data));
	begin_getxattr(rig, FUSE_LISTXATTR, 100);
	assert_int_equal(call(rig), 0);
	assert_called("listxattr", 3);
	assert_int_equal(rig->reply.data_len, 7);

	begin_setxattr(rig, XATTR_CREATE, 0);
	assert_int_equal(call(rig), 0);
	assert_called("setxattr", 3);
	assert_string_equal(fake.name2, "value");
	assert_int_equal(fake.flags, XATTR_CREATE);
	/* It may have more blocks than the kernel knows. */
	assert_true(notified(rig, &note));
	assert_int_equal(note.body.ino, 3);
	begin_setxattr(rig, 0, FUSE_SETXATTR_ACL_KILL_SGID);
	assert_int_equal(call(rig), 0);
	assert_int_equal(fake.flags, FS_XATTR_KILL_SGID);
	begin(rig, FUSE_REMOVEXATTR, 3, "user.b", 7);
	assert_int_equal(call(rig), 0);
	assert_called("removexattr", 3);
	assert_string_equal(fake.name, "user.b");

	fake.result = -ENODATA;
	begin_getxattr(rig, FUSE_GETXATTR, 0);
	assert_int_equal(call(rig), -ENODATA);
	assert_int_equal(rig->reply.body_len, 0);
	begin_setxattr(rig, XATTR_REPLACE, 0);
	assert_int_equal(call(rig), -ENODATA);
}

/* Its SETXATTR is another one. */
static void test_no_xattrs_with_old_kernels(void **state)
{
	struct rig *rig = *state;

	begin_getxattr(rig, FUSE_GETXATTR, 0);
	assert_int_equal(call(rig), -ENOSYS);
	begin_getxattr(rig, FUSE_LISTXATTR, 0);
	assert_int_equal(call(rig), -ENOSYS);
	begin_setxattr(rig, 0, 0);
	assert_int_equal(call(rig), -ENOSYS);
	begin(rig, FUSE_REMOVEXATTR, 3, "user.b", 7);
	assert_int_equal(call(rig), -ENOSYS);
	assert_int_equal(fake.calls, 0);
}

/* The umask is the kernel's business, unless we have agreed on lists. */
static void test_umask(void **state)
{
	struct fuse_mkdir_in mkdir = { .mode = 0777, .umask = 022 };
	struct fuse_mknod_in mknod = { .mode = S_IFIFO | 0666, .umask = 077 };
	struct fuse_create_in create = { .mode = S_IFREG | 0666,
					 .flags = O_RDWR,
					 .umask = 027 };
	struct rig *rig = *state;

	for (unsigned acl = 0; acl < 2; acl++) {
		rig->front->policy.acl = acl;
		begin(rig, FUSE_MKDIR, 2, &mkdir, sizeof(mkdir));
		request_add_text(&rig->rb, "d");
		assert_int_equal(call(rig), 0);
		assert_int_equal(fake.make.umask, acl ? 022 : 0);
		begin(rig, FUSE_MKNOD, 2, &mknod, sizeof(mknod));
		request_add_text(&rig->rb, "p");
		assert_int_equal(call(rig), 0);
		assert_int_equal(fake.make.umask, acl ? 077 : 0);
		begin(rig, FUSE_CREATE, 2, &create, sizeof(create));
		request_add_text(&rig->rb, "f");
		assert_int_equal(call(rig), 0);
		assert_int_equal(fake.make.umask, acl ? 027 : 0);
		call_release(rig, 5, rig->reply.create.open.fh);
	}
}

static void test_refusals(void **state)
{
	const uint32_t remembered[] = {
		FUSE_FALLOCATE, FUSE_LSEEK,   FUSE_COPY_FILE_RANGE, FUSE_POLL,
		FUSE_BMAP,	FUSE_TMPFILE, FUSE_ACCESS,
	};
	struct rig *rig = *state;

	for (unsigned i = 0; i < UG_ARRAY_SIZE(remembered); i++) {
		begin(rig, remembered[i], 3, rig->data, 200);
		assert_int_equal(call(rig), -ENOSYS);
	}
	begin(rig, FUSE_IOCTL, 3, rig->data, 32);
	assert_int_equal(call(rig), -ENOTTY);
	assert_int_equal(fake.calls, 0);
}

static void test_withdrawn(void **state)
{
	struct fuse_forget_in forget = { .nlookup = 1 };
	struct fuse_flush_in flush = { 0 };
	struct rig *rig = *state;

	assert_int_equal(call_open(rig, 3, O_RDWR, 0), 0);
	fake.withdrawn = true;
	begin(rig, FUSE_LOOKUP, 2, "name", 5);
	assert_int_equal(call(rig), -EIO);
	begin(rig, FUSE_STATFS, 1, "", 0);
	assert_int_equal(call(rig), -EIO);
	begin(rig, FUSE_FLUSH, 3, &flush, sizeof(flush));
	assert_int_equal(call(rig), 0);
	call_release(rig, 3, rig->reply.open.fh);
	assert_int_equal(fake.opens, 0);
	begin(rig, FUSE_FORGET, 3, &forget, sizeof(forget));
	assert_int_equal(call(rig), 0);
	assert_int_equal(fake.forgotten, 1);
}

/* ---- other nodes ---- */

static void test_attributes_are_kept_until_recalled(void **state)
{
	struct fuse_getattr_in getattr = { 0 };
	struct fuse_setattr_in setattr = { .valid = FATTR_MODE };
	struct rig *rig = *state;

	begin(rig, FUSE_GETATTR, 3, &getattr, sizeof(getattr));
	assert_int_equal(call(rig), 0);
	assert_int_equal(rig->reply.attr.attr_valid, 0);
	fake.attr.keep = fake.entry.attr.keep = true;
	assert_int_equal(call(rig), 0);
	assert_int_equal(rig->reply.attr.attr_valid, INT32_MAX);
	begin(rig, FUSE_LOOKUP, 2, "name", 5);
	assert_int_equal(call(rig), 0);
	assert_int_equal(rig->reply.entry.attr_valid, INT32_MAX);
	assert_int_equal(rig->reply.entry.entry_valid, 0);
	/* These the kernel believes however old they are. */
	begin(rig, FUSE_SETATTR, 3, &setattr, sizeof(setattr));
	assert_int_equal(call(rig), 0);
	assert_int_equal(rig->reply.attr.attr_valid, 0);
	begin(rig, FUSE_MKDIR, 2, &(struct fuse_mkdir_in){ 0 },
	      sizeof(struct fuse_mkdir_in));
	request_add_text(&rig->rb, "new");
	assert_int_equal(call(rig), 0);
	assert_int_equal(rig->reply.entry.attr_valid, 0);
}

/* A kernel that may believe an answer to an inode that has been evicted. */
static void test_older_kernel_keeps_less(void **state)
{
	struct fuse_agreed agreed = { .flags = FUSE_DIRECT_IO_ALLOW_MMAP,
				      .minor = 39 };
	struct rig *rig = *state;

	fuse_front_handler.start(rig->front, &agreed);
	fake.entry.attr.keep = true;
	begin(rig, FUSE_LOOKUP, 2, "name", 5);
	assert_int_equal(call(rig), 0);
	assert_int_equal(rig->reply.entry.attr_valid, 0);
}

static void test_waits_for_locks_parked(void **state)
{
	struct fuse_getattr_in in = { 0 };
	struct rig *rig = *state;

	fake.parks = 5;
	begin(rig, FUSE_GETATTR, 3, &in, sizeof(in));
	fuse_request_decode(rig->rb.bytes, rig->rb.len, &rig->req);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(call_place(rig, FUSE_WORKER), FUSE_LOCKWAIT);
	assert_ptr_equal(fake.parked, &rig->reply.park);
	/* It wants several, and loses them: a thread will wait. */
	assert_int_equal(call_place(rig, FUSE_WORKER), FUSE_TO_PATIENT);
	assert_int_equal(fake.unparked, 1);
	assert_int_equal(call_place(rig, FUSE_PATIENT), 0);
	assert_null(fake.req.park);
	/* What was granted and not used is given back. */
	rig->reply.parks = 0;
	fake.parks = 1;
	assert_int_equal(call_place(rig, FUSE_WORKER), FUSE_LOCKWAIT);
	assert_int_equal(call_place(rig, FUSE_WORKER), 0);
	assert_int_equal(fake.unparked, 2);
}

static const struct fuse_read_in fill_in = { .offset = 8192, .size = 4096 };

static void begin_fill(struct rig *rig)
{
	begin(rig, FUSE_READ, 3, &fill_in, sizeof(fill_in));
}

static void test_fills_with_writers_are_exclusive(void **state)
{
	struct rig *rig = *state;

	begin_fill(rig);
	assert_int_equal(call(rig), 0);
	assert_called("read", 3);
	assert_int_equal(fake.io_flags, FS_IO_NOCACHE);
	assert_false(fake.exclusive);
	assert_int_equal(fuse_front_writer(rig->front, 3, false), 1);
	assert_int_equal(fuse_front_writer(rig->front, 3, true), 0);
	assert_int_equal(call(rig), 0);
	assert_true(fake.exclusive);
	fuse_front_writer_gone(rig->front, 3);
	assert_int_equal(call(rig), 0);
	assert_false(fake.exclusive);
	/* Of a file without pages SH is enough. Who reads now is not cached. */
	assert_int_equal(fuse_front_writer(rig->front, 4, false), 0);
	assert_int_equal(call_open(rig, 4, O_RDONLY, 0), 0);
	assert_true(rig->reply.open.open_flags & FOPEN_DIRECT_IO);
	fuse_front_writer_gone(rig->front, 4);
	assert_int_equal(call_open(rig, 4, O_RDONLY, 0), 0);
	assert_false(rig->reply.open.open_flags & FOPEN_DIRECT_IO);
}

static void test_recall(void **state)
{
	struct fuse_notify_inval note;
	struct rig *rig = *state;

	begin_fill(rig);
	assert_int_equal(call(rig), 0);
	fuse_front_recall(rig->front, 3);
	assert_true(notified(rig, &note));
	assert_int_equal(note.body.ino, 3);
	assert_int_equal(note.body.off, 8192);
	assert_int_equal(note.body.len, 4096);
	assert_true(notified(rig, &note));
	assert_true(note.body.off < 0);
	assert_false(notified(rig, &note));
	/* Who has the lock from before is sent back for it. */
	fake.leaving = true;
	assert_int_equal(call(rig), -EAGAIN);
	fake.leaving = false;
	assert_int_equal(call(rig), 0);
	/* Without pages there is nothing but attributes. */
	fuse_front_recall(rig->front, 4);
	assert_true(notified(rig, &note));
	assert_int_equal(note.body.ino, 4);
	assert_true(note.body.off < 0);
	assert_false(notified(rig, &note));
}

static void test_write_drops_what_was_filled(void **state)
{
	struct fuse_write_in in = { .offset = 8000, .size = 400, .fh = 0xf };
	struct fuse_notify_inval note;
	static const char data[400];
	struct rig *rig = *state;

	begin(rig, FUSE_WRITE, 3, &in, sizeof(in));
	request_add(&rig->rb, data, sizeof(data));
	assert_int_equal(call(rig), 0);
	begin_fill(rig);
	assert_int_equal(call(rig), 0);
	begin(rig, FUSE_WRITE, 3, &in, sizeof(in));
	request_add(&rig->rb, data, sizeof(data));
	assert_int_equal(call(rig), FUSE_TO_NOTIFIER);
	assert_int_equal(call_place(rig, FUSE_NOTIFIER), 0);
	assert_true(notified(rig, &note));
	assert_int_equal(note.body.off, 4096);
	assert_int_equal(note.body.len, 8192);
	/* Once. */
	assert_int_equal(call(rig), 0);
}

/* A file that others want is read through us for a while. */
static void test_open_after_recall_is_direct(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(call_open(rig, 3, O_RDONLY, 0), 0);
	assert_false(rig->reply.open.open_flags & FOPEN_DIRECT_IO);
	call_release(rig, 3, rig->reply.open.fh);
	fuse_front_recall(rig->front, 3);
	assert_int_equal(call_open(rig, 3, O_RDONLY, 0), 0);
	assert_true(rig->reply.open.open_flags & FOPEN_DIRECT_IO);
	call_release(rig, 3, rig->reply.open.fh);
}

int main(void)
{
#define SHARED(test) \
	cmocka_unit_test_setup_teardown(test, setup_shared, teardown)
#define CACHED(test) \
	cmocka_unit_test_setup_teardown(test, setup_cached, teardown)
#define DIRECT(test) \
	cmocka_unit_test_setup_teardown(test, setup_direct, teardown)
	const struct CMUnitTest tests[] = {
		CACHED(test_lookup),
		CACHED(test_lookup_missing),
		DIRECT(test_lookup_missing_direct),
		CACHED(test_lookup_self),
		CACHED(test_unknown_node),
		CACHED(test_make),
		CACHED(test_rename),
		CACHED(test_link_and_removal),
		CACHED(test_forget),
		CACHED(test_setattr),
		CACHED(test_getattr_readlink_statfs),
		CACHED(test_open_release),
		CACHED(test_open_kills_bits),
		CACHED(test_create),
		CACHED(test_read_write),
		CACHED(test_write_kills_bits),
		CACHED(test_fsync_flush),
		CACHED(test_syncfs_waits),
		DIRECT(test_first_writer_drops_pages),
		DIRECT(test_write_drops_pages),
		CACHED(test_opendir),
		DIRECT(test_opendir_direct),
		CACHED(test_readdir),
		CACHED(test_xattrs),
		DIRECT(test_no_xattrs_with_old_kernels),
		CACHED(test_umask),
		CACHED(test_refusals),
		CACHED(test_withdrawn),
		SHARED(test_attributes_are_kept_until_recalled),
		SHARED(test_older_kernel_keeps_less),
		SHARED(test_waits_for_locks_parked),
		SHARED(test_fills_with_writers_are_exclusive),
		SHARED(test_recall),
		SHARED(test_write_drops_what_was_filled),
		SHARED(test_open_after_recall_is_direct),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
