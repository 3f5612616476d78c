/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * proto.c - one request of the kernel: bytes to a structure.
 *
 *   | header | fixed arguments | name \0 | name \0 |     most requests
 *   | header | fuse_write_in   | size bytes |            WRITE
 *   | header | fuse_setxattr_in | name \0 | size bytes |  SETXATTR
 *   | header | count           | count entries |         BATCH_FORGET
 *
 * What an opcode carries stands in one table. Bytes behind what we know are
 * left alone: newer kernels append extensions there.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "fuse/proto.h"

/* What follows the fixed arguments. */
enum shape {
	SHAPE_UNKNOWN, /* no such opcode */
	SHAPE_NONE,
	SHAPE_NAME,
	SHAPE_NAMES,	 /* two */
	SHAPE_NAME_TEXT, /* a name and a text that may have '/' */
	SHAPE_TEXT,	 /* one that may have '/' */
	SHAPE_TEXT_DATA, /* and setxattr.size bytes */
	SHAPE_DATA,	 /* write.size bytes */
	SHAPE_FORGETS,
	SHAPE_OPAQUE, /* arguments that nobody here looks at */
};

struct opcode_info {
	const char *name;
	uint8_t shape;
	uint8_t args;	  /* size of the fixed arguments */
	uint8_t args_min; /* what older kernels send of them; 0: all */
};

#define ARGS(type) .args = sizeof(struct type)

static const struct opcode_info opcodes[FUSE_OPCODES] = {
	[FUSE_LOOKUP] = { "LOOKUP", SHAPE_NAME },
	[FUSE_FORGET] = { "FORGET", SHAPE_NONE, ARGS(fuse_forget_in) },
	[FUSE_GETATTR] = { "GETATTR", SHAPE_NONE, ARGS(fuse_getattr_in) },
	[FUSE_SETATTR] = { "SETATTR", SHAPE_NONE, ARGS(fuse_setattr_in) },
	[FUSE_READLINK] = { "READLINK", SHAPE_NONE },
	[FUSE_SYMLINK] = { "SYMLINK", SHAPE_NAME_TEXT },
	[FUSE_MKNOD] = { "MKNOD", SHAPE_NAME, ARGS(fuse_mknod_in) },
	[FUSE_MKDIR] = { "MKDIR", SHAPE_NAME, ARGS(fuse_mkdir_in) },
	[FUSE_UNLINK] = { "UNLINK", SHAPE_NAME },
	[FUSE_RMDIR] = { "RMDIR", SHAPE_NAME },
	[FUSE_RENAME] = { "RENAME", SHAPE_NAMES, ARGS(fuse_rename_in) },
	[FUSE_LINK] = { "LINK", SHAPE_NAME, ARGS(fuse_link_in) },
	[FUSE_OPEN] = { "OPEN", SHAPE_NONE, ARGS(fuse_open_in) },
	[FUSE_READ] = { "READ", SHAPE_NONE, ARGS(fuse_read_in) },
	[FUSE_WRITE] = { "WRITE", SHAPE_DATA, ARGS(fuse_write_in) },
	[FUSE_STATFS] = { "STATFS", SHAPE_NONE },
	[FUSE_RELEASE] = { "RELEASE", SHAPE_NONE, ARGS(fuse_release_in) },
	[FUSE_FSYNC] = { "FSYNC", SHAPE_NONE, ARGS(fuse_fsync_in) },
	[FUSE_SETXATTR] = { "SETXATTR", SHAPE_TEXT_DATA,
			    ARGS(fuse_setxattr_in) },
	[FUSE_GETXATTR] = { "GETXATTR", SHAPE_TEXT, ARGS(fuse_getxattr_in) },
	[FUSE_LISTXATTR] = { "LISTXATTR", SHAPE_NONE, ARGS(fuse_getxattr_in) },
	[FUSE_REMOVEXATTR] = { "REMOVEXATTR", SHAPE_TEXT },
	[FUSE_FLUSH] = { "FLUSH", SHAPE_NONE, ARGS(fuse_flush_in) },
	/* Before 7.36 it ended at flags; later fields are then 0. */
	[FUSE_INIT] = { "INIT", SHAPE_NONE, ARGS(fuse_init_in), 16 },
	[FUSE_OPENDIR] = { "OPENDIR", SHAPE_NONE, ARGS(fuse_open_in) },
	[FUSE_READDIR] = { "READDIR", SHAPE_NONE, ARGS(fuse_read_in) },
	[FUSE_RELEASEDIR] = { "RELEASEDIR", SHAPE_NONE, ARGS(fuse_release_in) },
	[FUSE_FSYNCDIR] = { "FSYNCDIR", SHAPE_NONE, ARGS(fuse_fsync_in) },
	[FUSE_GETLK] = { "GETLK", SHAPE_NONE, ARGS(fuse_lk_in) },
	[FUSE_SETLK] = { "SETLK", SHAPE_NONE, ARGS(fuse_lk_in) },
	[FUSE_SETLKW] = { "SETLKW", SHAPE_NONE, ARGS(fuse_lk_in) },
	[FUSE_ACCESS] = { "ACCESS", SHAPE_NONE, ARGS(fuse_access_in) },
	[FUSE_CREATE] = { "CREATE", SHAPE_NAME, ARGS(fuse_create_in) },
	[FUSE_INTERRUPT] = { "INTERRUPT", SHAPE_NONE, ARGS(fuse_interrupt_in) },
	[FUSE_BMAP] = { "BMAP", SHAPE_OPAQUE },
	[FUSE_DESTROY] = { "DESTROY", SHAPE_NONE },
	[FUSE_IOCTL] = { "IOCTL", SHAPE_OPAQUE },
	[FUSE_POLL] = { "POLL", SHAPE_OPAQUE },
	[FUSE_NOTIFY_REPLY] = { "NOTIFY_REPLY", SHAPE_OPAQUE },
	[FUSE_BATCH_FORGET] = { "BATCH_FORGET", SHAPE_FORGETS,
				ARGS(fuse_batch_forget_in) },
	[FUSE_FALLOCATE] = { "FALLOCATE", SHAPE_OPAQUE },
	[FUSE_READDIRPLUS] = { "READDIRPLUS", SHAPE_NONE, ARGS(fuse_read_in) },
	[FUSE_RENAME2] = { "RENAME2", SHAPE_NAMES, ARGS(fuse_rename2_in) },
	[FUSE_LSEEK] = { "LSEEK", SHAPE_OPAQUE },
	[FUSE_COPY_FILE_RANGE] = { "COPY_FILE_RANGE", SHAPE_OPAQUE },
	[FUSE_SETUPMAPPING] = { "SETUPMAPPING", SHAPE_OPAQUE },
	[FUSE_REMOVEMAPPING] = { "REMOVEMAPPING", SHAPE_OPAQUE },
	[FUSE_SYNCFS] = { "SYNCFS", SHAPE_OPAQUE },
	[FUSE_TMPFILE] = { "TMPFILE", SHAPE_OPAQUE },
};

static_assert(sizeof(((struct fuse_request *)0)->bytes) ==
		      offsetof(struct fuse_request, name) -
			      offsetof(struct fuse_request, bytes),
	      "no arguments are larger than bytes[]");

/* The bytes that have not been used yet. */
struct rest {
	const char *at;
	size_t len;
};

/* Take the next terminated text. */
static int rest_take_text(struct rest *rest, struct fuse_name *name)
{
	const char *end = memchr(rest->at, '\0', rest->len);

	if (!end || end == rest->at)
		return -EBADMSG;
	name->text = rest->at;
	name->len = (uint32_t)(end - rest->at);
	rest->at = end + 1;
	rest->len -= name->len + 1u;
	return 0;
}

static int rest_take_name(struct rest *rest, struct fuse_name *name)
{
	int err = rest_take_text(rest, name);

	if (err)
		return err;
	return memchr(name->text, '/', name->len) ? -EBADMSG : 0;
}

static int rest_take_args(struct rest *rest, const struct opcode_info *info,
			  struct fuse_request *req)
{
	size_t min = info->args_min ? info->args_min : info->args;
	size_t len = UG_MIN(rest->len, (size_t)info->args);

	if (rest->len < min)
		return -EBADMSG;
	memcpy(req->bytes, rest->at, len);
	memset(req->bytes + len, 0, info->args - len);
	rest->at += len;
	rest->len -= len;
	return 0;
}

static int rest_take_data(struct rest *rest, size_t len,
			  struct fuse_request *req)
{
	if (rest->len < len)
		return -EBADMSG;
	req->data = rest->at;
	req->data_len = len;
	return 0;
}

static int rest_take_forgets(struct rest *rest, struct fuse_request *req)
{
	uint64_t len =
		(uint64_t)req->forgets.count * sizeof(struct fuse_forget_one);

	if (rest->len < len)
		return -EBADMSG;
	return rest_take_data(rest, (size_t)len, req);
}

static int rest_take_shape(struct rest *rest, enum shape shape,
			   struct fuse_request *req)
{
	int err;

	switch (shape) {
	case SHAPE_UNKNOWN:
		return -ENOSYS;
	case SHAPE_NONE:
	case SHAPE_OPAQUE:
		return 0;
	case SHAPE_NAME:
		return rest_take_name(rest, &req->name);
	case SHAPE_NAMES:
		err = rest_take_name(rest, &req->name);
		return err ? err : rest_take_name(rest, &req->name2);
	case SHAPE_NAME_TEXT:
		err = rest_take_name(rest, &req->name);
		return err ? err : rest_take_text(rest, &req->name2);
	case SHAPE_TEXT:
		return rest_take_text(rest, &req->name);
	case SHAPE_TEXT_DATA:
		err = rest_take_text(rest, &req->name);
		return err ? err
			   : rest_take_data(rest, req->setxattr.size, req);
	case SHAPE_DATA:
		return rest_take_data(rest, req->write.size, req);
	case SHAPE_FORGETS:
		return rest_take_forgets(rest, req);
	}
	return -ENOSYS;
}

static const struct opcode_info *opcode_info(uint32_t opcode)
{
	/* Slot 0 is no opcode: everything unknown looks like it. */
	return &opcodes[opcode < FUSE_OPCODES ? opcode : 0];
}

static void request_set_header(struct fuse_request *req,
			       const struct fuse_in_header *head)
{
	req->unique = head->unique;
	req->nodeid = head->nodeid;
	req->opcode = head->opcode;
	req->uid = head->uid;
	req->gid = head->gid;
	req->pid = head->pid;
	req->name = req->name2 = (struct fuse_name){ NULL, 0 };
	req->data = NULL;
	req->data_len = 0;
}

int fuse_request_decode(const void *bytes, size_t len, struct fuse_request *req)
{
	struct fuse_in_header head;
	const struct opcode_info *info;
	struct rest rest;
	int err;

	if (len < sizeof(head)) {
		req->unique = 0;
		req->opcode = 0;
		return -EBADMSG;
	}
	memcpy(&head, bytes, sizeof(head));
	request_set_header(req, &head);
	if (head.len != len)
		return -EBADMSG;

	info = opcode_info(head.opcode);
	rest.at = (const char *)bytes + sizeof(head);
	rest.len = len - sizeof(head);
	err = rest_take_args(&rest, info, req);
	if (err)
		return err;
	if (head.opcode == FUSE_RENAME)
		req->rename.flags = 0; /* not sent: those bytes were not set */
	return rest_take_shape(&rest, info->shape, req);
}

struct fuse_forget_one fuse_request_forget(const struct fuse_request *req,
					   uint32_t i)
{
	struct fuse_forget_one one;

	memcpy(&one, (const char *)req->data + (size_t)i * sizeof(one),
	       sizeof(one));
	return one;
}

bool fuse_request_answered(const struct fuse_request *req)
{
	switch (req->opcode) {
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
	case FUSE_NOTIFY_REPLY:
		return false;
	default:
		return req->unique != 0;
	}
}

const char *fuse_opcode_name(uint32_t opcode)
{
	const char *name = opcode_info(opcode)->name;

	return name ? name : "?";
}
