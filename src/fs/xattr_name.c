/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * xattr_name.c - names of attributes: "user.x" to programs, type 1 and "x" on
 * disk. Source: docs/spec/gfs2-ondisk.md 5.2, 5.6.
 */
#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "fs/xattr.h"

#define NAME_MAX_BYTES 255u

static const char *const prefixes[] = {
	[GFS2_EATYPE_USR] = "user.",
	[GFS2_EATYPE_SYS] = "system.",
	[GFS2_EATYPE_SECURITY] = "security.",
	[GFS2_EATYPE_TRUSTED] = "trusted.",
};

/* The type whose prefix it begins with; 0. */
static uint8_t type_of(const char *name, const char **rest)
{
	for (uint8_t type = 1; type < UG_ARRAY_SIZE(prefixes); type++) {
		size_t len = strlen(prefixes[type]);

		if (strncmp(name, prefixes[type], len) == 0) {
			*rest = name + len;
			return type;
		}
	}
	return 0;
}

bool xattr_key_is(const struct xattr_key *key, const char *name)
{
	const char *rest = NULL;

	return type_of(name, &rest) == key->type && strlen(rest) == key->len &&
	       memcmp(rest, key->text, key->len) == 0;
}

static bool is_acl(const struct xattr_key *key)
{
	return xattr_key_is(key, XATTR_ACL_ACCESS) ||
	       xattr_key_is(key, XATTR_ACL_DEFAULT);
}

static bool is_known(const struct fs *fs, const struct xattr_key *key)
{
	switch (key->type) {
	case GFS2_EATYPE_SYS:
		return fs->fs_opt.acl && is_acl(key);
	case GFS2_EATYPE_TRUSTED:
		return fs->fs_sb.fs_format > GFS2_FORMAT_FS_MIN;
	default:
		return true;
	}
}

struct xattr_key xattr_key_of(const char *name)
{
	struct xattr_key key = { 0 };

	key.type = type_of(name, &key.text);
	ug_assert(key.type);
	key.len = (uint8_t)strlen(key.text);
	return key;
}

int xattr_key_parse(const struct fs *fs, const char *name,
		    struct xattr_key *key)
{
	const char *rest;
	uint8_t type = type_of(name, &rest);
	size_t len;

	if (!type)
		return -EOPNOTSUPP;
	len = strlen(rest);
	if (len == 0)
		return -EINVAL;
	if (len > NAME_MAX_BYTES)
		return -ERANGE;
	*key = (struct xattr_key){ type, (uint8_t)len, rest };
	return is_known(fs, key) ? 0 : -EOPNOTSUPP;
}

const char *xattr_prefix(const struct fs_req *req, const struct fs *fs,
			 const struct xattr_key *key)
{
	if (!is_known(fs, key))
		return NULL;
	if (key->type == GFS2_EATYPE_TRUSTED && req->uid != 0)
		return NULL;
	return prefixes[key->type];
}
