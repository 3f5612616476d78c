/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fake_fs.c - a file system that answers what a test says.
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "fake_fs.h"

struct fake_fs fake;

void fake_reset(void)
{
	memset(&fake, 0, sizeof(fake));
	for (unsigned i = 0; i < FAKE_NODES; i++)
		fake.inodes[i].nodeid = i + 1;
	fake.entry.nodeid = 5;
	fake.entry.generation = 77;
	fake.entry.attr.mode = S_IFREG | 0644;
	fake.attr.mode = S_IFREG | 0644;
	fake.attr.size = 4711;
}

static void note(const char *call, const struct fs_req *req,
		 const struct inode *ip)
{
	fake.call = call;
	fake.calls++;
	if (req)
		fake.req = *req;
	if (ip)
		fake.nodeid = ip->nodeid;
}

static void note_name(char *to, const char *name, size_t len)
{
	memcpy(to, name, len);
	to[len] = '\0';
}

struct inode *fs_inode_get(struct fs *fs, uint64_t nodeid)
{
	struct inode *ip;

	if (!nodeid || nodeid > FAKE_NODES)
		return NULL;
	ip = &fake.inodes[nodeid - 1];
	ip->refs++;
	return ip;
}

void inode_put(struct inode *ip)
{
	if (ip)
		ip->refs--;
}

bool fs_is_withdrawn(const struct fs *fs)
{
	return fake.withdrawn;
}

int fs_lookup(const struct fs_req *req, struct inode *dir, const char *name,
	      size_t len, struct fs_entry *out)
{
	note("lookup", req, dir);
	note_name(fake.name, name, len);
	*out = fake.entry;
	return fake.result;
}

int fs_lookup_nodeid(struct fs *fs, const struct fs_req *req, uint64_t nodeid,
		     struct fs_entry *out)
{
	note("lookup_nodeid", req, NULL);
	fake.nodeid = nodeid;
	*out = fake.entry;
	return fake.result;
}

bool fs_is_known(struct fs *fs, uint64_t nodeid)
{
	return fake.known;
}

void fs_unpark(struct fs_park *park)
{
	if (!park->ip)
		return;
	park->ip = NULL;
	fake.unparked++;
}

/* What fs_req.park does: the call waits, until a test resumes it. */
static int parked(const struct fs_req *req)
{
	if (fake.parks && req->park) {
		fake.parks--;
		fake.parked = req->park;
		req->park->ip = &fake.inodes[0];
		return -EINPROGRESS;
	}
	return 0;
}

void fs_forget(struct fs *fs, uint64_t nodeid, uint64_t count)
{
	note("forget", NULL, NULL);
	fake.nodeid = nodeid;
	fake.forgotten += count;
}

int fs_getattr(const struct fs_req *req, struct inode *ip, struct fs_attr *out)
{
	note("getattr", req, ip);
	if (parked(req))
		return -EINPROGRESS;
	*out = fake.attr;
	return fake.result;
}

int fs_setattr(const struct fs_req *req, struct inode *ip,
	       const struct fs_setattr *set, struct fs_attr *out)
{
	note("setattr", req, ip);
	fake.set = *set;
	*out = fake.attr;
	return fake.result;
}

ssize_t fs_readlink(const struct fs_req *req, struct inode *ip, char *buf,
		    size_t size)
{
	note("readlink", req, ip);
	if (fake.result)
		return fake.result;
	memcpy(buf, "target", 6);
	return 6;
}

ssize_t fs_getxattr(const struct fs_req *req, struct inode *ip,
		    const char *name, void *buf, size_t size)
{
	note("getxattr", req, ip);
	note_name(fake.name, name, strlen(name));
	fake.len = size;
	if (fake.result)
		return fake.result;
	if (size)
		memcpy(buf, "value", 5);
	return 5;
}

ssize_t fs_listxattr(const struct fs_req *req, struct inode *ip, char *buf,
		     size_t size)
{
	note("listxattr", req, ip);
	fake.len = size;
	if (fake.result)
		return fake.result;
	if (size)
		memcpy(buf, "user.a", 7);
	return 7;
}

int fs_setxattr(const struct fs_req *req, struct inode *ip, const char *name,
		const void *value, size_t size, int flags)
{
	note("setxattr", req, ip);
	note_name(fake.name, name, strlen(name));
	note_name(fake.name2, value, size);
	fake.flags = flags;
	return fake.result;
}

int fs_removexattr(const struct fs_req *req, struct inode *ip, const char *name)
{
	note("removexattr", req, ip);
	note_name(fake.name, name, strlen(name));
	return fake.result;
}

int fs_make(const struct fs_req *req, struct inode *dir,
	    const struct fs_make *make, struct fs_entry *out)
{
	note("make", req, dir);
	note_name(fake.name, make->name, make->len);
	if (make->target)
		note_name(fake.name2, make->target, make->target_len);
	fake.make = *make;
	*out = fake.entry;
	return fake.result;
}

int fs_create(const struct fs_req *req, struct inode *dir,
	      const struct fs_make *make, int flags, struct fs_entry *out,
	      bool *created)
{
	note("create", req, dir);
	note_name(fake.name, make->name, make->len);
	fake.make = *make;
	fake.flags = flags;
	*out = fake.entry;
	*created = fake.created;
	if (!fake.result)
		fake.opens++;
	return fake.result;
}

int fs_link(const struct fs_req *req, struct inode *ip, struct inode *dir,
	    const char *name, size_t len, struct fs_entry *out)
{
	note("link", req, dir);
	fake.nodeid2 = ip->nodeid;
	note_name(fake.name, name, len);
	*out = fake.entry;
	return fake.result;
}

int fs_unlink(const struct fs_req *req, struct inode *dir, const char *name,
	      size_t len)
{
	note("unlink", req, dir);
	note_name(fake.name, name, len);
	return fake.result;
}

int fs_rmdir(const struct fs_req *req, struct inode *dir, const char *name,
	     size_t len)
{
	note("rmdir", req, dir);
	note_name(fake.name, name, len);
	return fake.result;
}

int fs_rename(const struct fs_req *req, struct inode *olddir,
	      const char *oldname, size_t oldlen, struct inode *newdir,
	      const char *newname, size_t newlen, unsigned flags)
{
	note("rename", req, olddir);
	fake.nodeid2 = newdir->nodeid;
	fake.flags = (int)flags;
	note_name(fake.name, oldname, oldlen);
	note_name(fake.name2, newname, newlen);
	return fake.result;
}

static bool emit_entry(fs_emit_fn emit, fs_emit_plus_fn plus, void *arg,
		       uint64_t cookie)
{
	struct fs_dirent de = {
		.ino = 100,
		.next = cookie + 1,
		.name = "entry",
		.len = 5,
		.type = DT_REG,
	};

	return plus ? plus(arg, &de, &fake.entry) : emit(arg, &de);
}

int fs_readdir(const struct fs_req *req, struct inode *dir, uint64_t cookie,
	       fs_emit_fn emit, void *arg)
{
	note("readdir", req, dir);
	fake.offset = cookie;
	for (unsigned i = 0; i < fake.emit; i++)
		if (!emit_entry(emit, NULL, arg, cookie + i))
			return 0;
	return fake.result;
}

int fs_readdirplus(const struct fs_req *req, struct inode *dir, uint64_t cookie,
		   fs_emit_plus_fn emit, void *arg)
{
	note("readdirplus", req, dir);
	fake.offset = cookie;
	for (unsigned i = 0; i < fake.emit; i++)
		if (!emit_entry(NULL, emit, arg, cookie + i))
			return 0;
	return fake.result;
}

int fs_open(const struct fs_req *req, struct inode *ip, int flags)
{
	note("open", req, ip);
	fake.flags = flags;
	if (!fake.result)
		fake.opens++;
	return fake.result;
}

void fs_release(struct inode *ip, int flags)
{
	note("release", NULL, ip);
	fake.flags = flags;
	fake.opens--;
}

ssize_t fs_read(const struct fs_req *req, struct inode *ip, void *buf,
		size_t len, uint64_t offset, unsigned io_flags)
{
	note("read", req, ip);
	fake.offset = offset;
	fake.len = len;
	fake.io_flags = io_flags;
	if (fake.result)
		return fake.result;
	memset(buf, 'r', len);
	return (ssize_t)len;
}

ssize_t fs_read_fill(const struct fs_req *req, struct inode *ip, void *buf,
		     size_t len, uint64_t offset, struct fs_fill *fill)
{
	int err;

	note("read_fill", req, ip);
	fake.exclusive = fill->exclusive;
	if (parked(req))
		return -EINPROGRESS;
	err = fill->admit(fill, fake.leaving);
	if (err)
		return err;
	return fs_read(req, ip, buf, len, offset, FS_IO_NOCACHE);
}

ssize_t fs_write(const struct fs_req *req, struct inode *ip, const void *buf,
		 size_t len, uint64_t offset, unsigned io_flags)
{
	note("write", req, ip);
	fake.offset = offset;
	fake.len = len;
	fake.io_flags = io_flags;
	return fake.result ? fake.result : (ssize_t)len;
}

int fs_fsync(const struct fs_req *req, struct inode *ip, bool datasync)
{
	note("fsync", req, ip);
	fake.flags = datasync;
	return fake.result;
}

int fs_sync(struct fs *fs)
{
	note("sync", NULL, NULL);
	return fake.result;
}

void fs_statfs(struct fs *fs, struct fs_statfs *out)
{
	note("statfs", NULL, NULL);
	*out = (struct fs_statfs){ .blocks = 9, .bsize = 4096 };
}

bool fs_change_begin(struct fs *fs)
{
	return true;
}

void fs_change_end(struct fs *fs)
{
}

void fs_stats(struct fs *fs, struct fs_stats *out)
{
	*out = (struct fs_stats){ 0 };
}
