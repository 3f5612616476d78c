/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * serve.c - the empty file system's answers: everything at once, on the thread
 * that has read the request.
 *
 * It is the yardstick of the benchmark: what remains of the time a real
 * file system takes, when all its work takes none. So it does what POSIX
 * programs like tar, rm and dd notice, and nothing else. Locks are granted
 * to everybody.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "serve.h"

#define NAME_LEN_MAX 255u

struct call {
	struct emptyfs *efs;
	struct tree *tree;
	const struct fuse_request *req;
	struct fuse_reply *reply;
	struct node *node; /* of the request */
};

static int put_entry(struct call *call, struct node *node)
{
	struct fs_entry entry = {
		.nodeid = node->nodeid,
		.generation = node->generation,
		.attr = node->attr,
	};

	node->nlookup++;
	fuse_encode_entry(&call->reply->entry, &entry,
			  call->efs->policy.entry_valid,
			  call->efs->policy.attr_valid);
	call->reply->body_len = sizeof(call->reply->entry);
	return 0;
}

static int put_attr(struct call *call)
{
	fuse_encode_attr_out(&call->reply->attr, &call->node->attr,
			     call->efs->policy.attr_valid);
	call->reply->body_len = sizeof(call->reply->attr);
	return 0;
}

static struct dentry *find_name(struct call *call)
{
	return tree_find(call->tree, call->node, call->req->name.text,
			 call->req->name.len);
}

static int do_lookup(struct call *call)
{
	const struct fuse_name *name = &call->req->name;
	struct fuse_timeout valid = call->efs->policy.entry_valid;
	struct dentry *dentry;

	if (name->len == 1 && name->text[0] == '.')
		return put_entry(call, call->node);
	if (name->len == 2 && !memcmp(name->text, "..", 2))
		return put_entry(call, call->node->parent);
	if (name->len > NAME_LEN_MAX)
		return -ENAMETOOLONG;
	dentry = find_name(call);
	if (dentry)
		return put_entry(call, dentry->node);
	if (!valid.sec && !valid.nsec)
		return -ENOENT;
	fuse_encode_no_entry(&call->reply->entry, valid);
	call->reply->body_len = sizeof(call->reply->entry);
	return 0;
}

static int do_forget(struct call *call)
{
	tree_forget(call->tree, call->req->nodeid, call->req->forget.nlookup);
	return 0;
}

static int do_batch_forget(struct call *call)
{
	for (uint32_t i = 0; i < call->req->forgets.count; i++) {
		struct fuse_forget_one one = fuse_request_forget(call->req, i);

		tree_forget(call->tree, one.nodeid, one.nlookup);
	}
	return 0;
}

static int do_setattr(struct call *call)
{
	const struct fuse_setattr_in *in = &call->req->setattr;
	struct fs_attr *attr = &call->node->attr;
	struct fs_time now = tree_now();

	if (in->valid & FATTR_SIZE)
		node_set_size(call->node, in->size);
	if (in->valid & FATTR_MODE)
		attr->mode = in->mode;
	if (in->valid & FATTR_UID)
		attr->uid = in->uid;
	if (in->valid & FATTR_GID)
		attr->gid = in->gid;
	if (in->valid & FATTR_KILL_SUIDGID)
		attr->mode &= ~(uint32_t)(S_ISUID | S_ISGID);
	if (in->valid & FATTR_ATIME_NOW)
		attr->atime = now;
	else if (in->valid & FATTR_ATIME)
		attr->atime =
			(struct fs_time){ (int64_t)in->atime, in->atimensec };
	if (in->valid & FATTR_MTIME_NOW)
		attr->mtime = now;
	else if (in->valid & FATTR_MTIME)
		attr->mtime =
			(struct fs_time){ (int64_t)in->mtime, in->mtimensec };
	attr->ctime = now;
	return put_attr(call);
}

/* The new node of a request, or why there is none. */
static int make_node(struct call *call, uint32_t mode, struct node **nodep)
{
	const struct fuse_name *name = &call->req->name;

	if (name->len > NAME_LEN_MAX)
		return -ENAMETOOLONG;
	if (find_name(call))
		return -EEXIST;
	*nodep = tree_make(call->tree, call->node, name->text, name->len, mode,
			   call->req->uid, call->req->gid);
	return *nodep ? 0 : -ENOMEM;
}

static int do_mknod(struct call *call)
{
	struct node *node;
	int err = make_node(call, call->req->mknod.mode, &node);

	if (err)
		return err;
	fuse_decode_dev(call->req->mknod.rdev, &node->attr.rdev_major,
			&node->attr.rdev_minor);
	return put_entry(call, node);
}

static int do_mkdir(struct call *call)
{
	struct node *node;
	int err = make_node(call, S_IFDIR | (call->req->mkdir.mode & 07777),
			    &node);

	return err ? err : put_entry(call, node);
}

static int do_symlink(struct call *call)
{
	const struct fuse_name *target = &call->req->name2;
	struct node *node;
	int err = make_node(call, S_IFLNK | 0777, &node);

	if (!err)
		err = node_reserve(node, target->len);
	if (err)
		return err;
	memcpy(node->bytes, target->text, target->len);
	node->attr.size = target->len;
	return put_entry(call, node);
}

static int do_readlink(struct call *call)
{
	if (!S_ISLNK(call->node->attr.mode))
		return -EINVAL;
	memcpy(call->reply->data, call->node->bytes, call->node->attr.size);
	call->reply->data_len = call->node->attr.size;
	return 0;
}

static int do_link(struct call *call)
{
	struct node *node = tree_node(call->tree, call->req->link.oldnodeid);
	int err;

	if (!node)
		return -ESTALE;
	if (find_name(call))
		return -EEXIST;
	err = tree_link(call->tree, node, call->node, call->req->name.text,
			call->req->name.len);
	return err ? err : put_entry(call, node);
}

static int do_unlink(struct call *call)
{
	struct dentry *dentry = find_name(call);

	if (!dentry)
		return -ENOENT;
	tree_unlink(call->tree, dentry);
	return 0;
}

static int do_rmdir(struct call *call)
{
	struct dentry *dentry = find_name(call);

	if (!dentry)
		return -ENOENT;
	if (dentry->node->list_live)
		return -ENOTEMPTY;
	tree_unlink(call->tree, dentry);
	return 0;
}

static int do_rename(struct call *call)
{
	const struct fuse_request *req = call->req;
	struct node *newdir = tree_node(call->tree, req->rename.newdir);
	struct dentry *dentry = find_name(call);
	struct dentry *victim;

	if (!dentry || !newdir)
		return -ENOENT;
	if (req->name2.len > NAME_LEN_MAX)
		return -ENAMETOOLONG;
	if (req->rename.flags & ~(uint32_t)RENAME_NOREPLACE)
		return -EINVAL;
	victim = tree_find(call->tree, newdir, req->name2.text, req->name2.len);
	if (victim && req->rename.flags)
		return -EEXIST;
	if (victim && victim->node->list_live)
		return -ENOTEMPTY;
	return tree_rename(call->tree, dentry, newdir, req->name2.text,
			   req->name2.len);
}

/* ---- files ---- */

static void put_open(struct call *call, struct node *node, uint32_t flags,
		     struct fuse_open_out *out)
{
	if (flags & O_TRUNC)
		node_set_size(node, 0);
	fuse_policy_open(&call->efs->policy, node->nodeid, (int)flags, out);
}

static int do_open(struct call *call)
{
	put_open(call, call->node, call->req->open.flags, &call->reply->open);
	call->reply->body_len = sizeof(call->reply->open);
	return 0;
}

static int do_create(struct call *call)
{
	const struct fuse_create_in *in = &call->req->create;
	struct dentry *dentry = find_name(call);
	struct node *node = dentry ? dentry->node : NULL;
	int err = 0;

	if (!node)
		err = make_node(call, S_IFREG | (in->mode & 07777), &node);
	else if (in->flags & O_EXCL)
		err = -EEXIST;
	if (err)
		return err;
	put_entry(call, node);
	put_open(call, node, in->flags, &call->reply->create.open);
	call->reply->body_len = sizeof(call->reply->create);
	return 0;
}

static int do_release(struct call *call)
{
	fuse_policy_release(&call->efs->policy, call->req->nodeid,
			    call->req->release.fh);
	return 0;
}

/* Of in->size bytes at in->offset, how many are there. */
static uint64_t readable(const struct node *node, const struct fuse_read_in *in)
{
	if (in->offset >= node->attr.size)
		return 0;
	return UG_MIN((uint64_t)in->size, node->attr.size - in->offset);
}

static void memory_read(const struct node *node, char *to, uint64_t len,
			uint64_t offset)
{
	uint64_t have = offset < node->bytes_size
				? UG_MIN(len, node->bytes_size - offset)
				: 0;

	if (have)
		memcpy(to, node->bytes + offset, have);
	memset(to + have, 0, len - have);
}

static int do_read(struct call *call)
{
	const struct fuse_read_in *in = &call->req->read;
	uint64_t len = readable(call->node, in);

	if (in->size > call->reply->data_max)
		return -EINVAL;
	if (call->efs->data == DATA_MEMORY)
		memory_read(call->node, call->reply->data, len, in->offset);
	call->reply->data_len = len;
	return 0;
}

static int do_write(struct call *call)
{
	const struct fuse_write_in *in = &call->req->write;
	struct node *node = call->node;
	uint64_t end = in->offset + in->size;

	if (call->efs->data == DATA_MEMORY) {
		if (node_reserve(node, end))
			return -ENOSPC;
		memcpy(node->bytes + in->offset, call->req->data, in->size);
	}
	if (end > node->attr.size)
		node_set_size(node, end);
	else
		node->attr.mtime = node->attr.ctime = tree_now();
	call->reply->write = (struct fuse_write_out){ .size = in->size };
	call->reply->body_len = sizeof(call->reply->write);
	return 0;
}

/* ---- directories, the rest ---- */

/* Place p of the list has the cookie p + 3; 1 and 2 continue behind dots. */
#define COOKIE_FIRST 3u

static bool list_put(struct call *call, struct fuse_dirbuf *buf,
		     struct node *node, const char *name, uint32_t len,
		     uint64_t cookie)
{
	bool plus = call->req->opcode == FUSE_READDIRPLUS;
	struct fs_dirent de = {
		.ino = node->nodeid,
		.next = cookie,
		.name = name,
		.len = len,
		.type = IFTODT(node->attr.mode),
	};
	struct fs_entry entry = {
		.nodeid = cookie < COOKIE_FIRST ? 0 : node->nodeid,
		.generation = node->generation,
		.attr = node->attr,
	};

	if (!plus)
		return fuse_dirbuf_put(buf, &de);
	if (!fuse_dirbuf_put_plus(buf, &de, &entry,
				  call->efs->policy.entry_valid,
				  call->efs->policy.attr_valid))
		return false;
	if (entry.nodeid)
		node->nlookup++;
	return true;
}

static bool list_dots(struct call *call, struct fuse_dirbuf *buf,
		      uint64_t cookie)
{
	if (cookie < 1 && !list_put(call, buf, call->node, ".", 1, 1))
		return false;
	return cookie >= 2 ||
	       list_put(call, buf, call->node->parent, "..", 2, 2);
}

static int do_readdir(struct call *call)
{
	const struct fuse_read_in *in = &call->req->read;
	struct node *dir = call->node;
	struct fuse_dirbuf buf = {
		.bytes = call->reply->data,
		.size = UG_MIN(in->size, call->reply->data_max),
	};
	uint64_t place =
		in->offset < COOKIE_FIRST ? 0 : in->offset - COOKIE_FIRST + 1;

	if (list_dots(call, &buf, in->offset)) {
		for (; place < dir->list_used; place++) {
			const struct dentry *de = dir->list[place];

			if (de && !list_put(call, &buf, de->node, de->name,
					    de->len, place + COOKIE_FIRST))
				break;
		}
	}
	call->reply->data_len = buf.used;
	return 0;
}

static int do_opendir(struct call *call)
{
	if (call->efs->policy.kernel_keeps_dirs)
		return -ENOSYS;
	call->reply->open = (struct fuse_open_out){ .fh = FUSE_FH_OPEN };
	call->reply->body_len = sizeof(call->reply->open);
	return 0;
}

static int do_statfs(struct call *call)
{
	struct fs_statfs st = {
		.blocks = 1u << 30,
		.bfree = 1u << 29,
		.bavail = 1u << 29,
		.files = tree_nodes(call->tree) + (1u << 30),
		.ffree = 1u << 30,
		.bsize = 4096,
		.namelen = NAME_LEN_MAX,
	};

	fuse_encode_statfs(&call->reply->statfs, &st);
	call->reply->body_len = sizeof(call->reply->statfs);
	return 0;
}

static int do_getlk(struct call *call)
{
	call->reply->lk = (struct fuse_lk_out){ .lk = call->req->lk.lk };
	call->reply->lk.lk.type = F_UNLCK;
	call->reply->body_len = sizeof(call->reply->lk);
	return 0;
}

static int do_nothing(struct call *call)
{
	return 0;
}

typedef int (*call_fn)(struct call *call);

static const call_fn calls[FUSE_OPCODES] = {
	[FUSE_LOOKUP] = do_lookup,	 [FUSE_FORGET] = do_forget,
	[FUSE_GETATTR] = put_attr,	 [FUSE_SETATTR] = do_setattr,
	[FUSE_READLINK] = do_readlink,	 [FUSE_SYMLINK] = do_symlink,
	[FUSE_MKNOD] = do_mknod,	 [FUSE_MKDIR] = do_mkdir,
	[FUSE_UNLINK] = do_unlink,	 [FUSE_RMDIR] = do_rmdir,
	[FUSE_RENAME] = do_rename,	 [FUSE_LINK] = do_link,
	[FUSE_OPEN] = do_open,		 [FUSE_READ] = do_read,
	[FUSE_WRITE] = do_write,	 [FUSE_STATFS] = do_statfs,
	[FUSE_RELEASE] = do_release,	 [FUSE_FSYNC] = do_nothing,
	[FUSE_FLUSH] = do_nothing,	 [FUSE_OPENDIR] = do_opendir,
	[FUSE_READDIR] = do_readdir,	 [FUSE_RELEASEDIR] = do_nothing,
	[FUSE_FSYNCDIR] = do_nothing,	 [FUSE_GETLK] = do_getlk,
	[FUSE_SETLK] = do_nothing,	 [FUSE_SETLKW] = do_nothing,
	[FUSE_CREATE] = do_create,	 [FUSE_BATCH_FORGET] = do_batch_forget,
	[FUSE_READDIRPLUS] = do_readdir, [FUSE_RENAME2] = do_rename,
	[FUSE_SYNCFS] = do_nothing,
};

/*
 * Bytes to and from the store, outside the lock: this is the only thing here
 * that waits, and with one writer waiting on the reader's own thread is the
 * fastest there is.
 */
static int store_transfer(const struct emptyfs *efs,
			  const struct fuse_request *req,
			  struct fuse_reply *reply)
{
	uint64_t offset = req->opcode == FUSE_WRITE ? req->write.offset
						    : req->read.offset;
	ssize_t n = 0;

	offset %= efs->store_bytes - FUSE_MAX_WRITE;
	offset &= ~(uint64_t)4095;
	if (req->opcode == FUSE_WRITE)
		n = pwrite(efs->store, req->data,
			   UG_ALIGN_UP(req->data_len, 4096u), (off_t)offset);
	else if (req->read.size <= reply->data_max)
		n = pread(efs->store, reply->data,
			  UG_ALIGN_UP((size_t)req->read.size, 4096u),
			  (off_t)offset);
	return n < 0 ? -errno : 0;
}

static int emptyfs_handle(void *ctx, const struct fuse_request *req,
			  struct fuse_reply *reply, enum fuse_place place)
{
	struct emptyfs *efs = ctx;
	struct call call = {
		.efs = efs,
		.tree = efs->tree,
		.req = req,
		.reply = reply,
	};
	call_fn fn = calls[req->opcode];
	int err = 0;

	if (!fn)
		return -ENOSYS;
	if (efs->data == DATA_STORE &&
	    (req->opcode == FUSE_WRITE || req->opcode == FUSE_READ))
		err = store_transfer(efs, req, reply);
	if (err)
		return err;
	pthread_mutex_lock(&efs->lock);
	call.node = tree_node(efs->tree, req->nodeid);
	/* BATCH_FORGET and STATFS name no node. */
	if (!call.node && req->opcode != FUSE_BATCH_FORGET)
		err = -ESTALE;
	else
		err = fn(&call);
	pthread_mutex_unlock(&efs->lock);
	return err;
}

static int emptyfs_start(void *ctx, const struct fuse_agreed *agreed)
{
	struct emptyfs *efs = ctx;

	fuse_policy_agreed(&efs->policy, "emptyfs", agreed);
	return 0;
}

const struct fuse_handler emptyfs_handler = {
	.start = emptyfs_start,
	.handle = emptyfs_handle,
};
