/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * options.c - the text behind -o, as what the mount process acts on.
 *
 * One table says for every known name what becomes of it. Most rows set or
 * clear a flag of mount(2) or a boolean; those with a value have a function.
 * What the file system derives from several options is worked out at the end,
 * in mount_options_finish(), so that their order in the list does not matter
 * beyond "the later one wins".
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "base/compiler.h"
#include "daemon/options.h"

#define ATIME_FLAGS (MS_NOATIME | MS_RELATIME | MS_STRICTATIME)

struct parser {
	struct mount_options *opt;
	char *why;
	size_t why_len;
};

struct option;
typedef int (*option_fn)(struct parser *p, const struct option *o,
			 const char *value);

enum option_kind {
	OPT_FLAG,    /* flags of mount(2): clear, then set */
	OPT_BOOL,    /* the boolean at offset becomes truth */
	OPT_VALUE,   /* name=value for fn */
	OPT_IGNORED, /* nothing to do; a value is allowed */
	OPT_REFUSED, /* text says why */
};

struct option {
	const char *name;
	enum option_kind kind;
	unsigned long set, clear;
	size_t offset;
	bool truth;
	option_fn fn;
	const char *text;
};

static ug_printf(2, 3) int refuse(struct parser *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->why, p->why_len, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static int no_memory(struct parser *p)
{
	snprintf(p->why, p->why_len, "out of memory");
	return -ENOMEM;
}

/* A decimal number without sign; *end is what follows it. */
static bool parse_digits(const char *s, uint64_t *num, const char **end)
{
	char *stop;

	if (*s < '0' || *s > '9')
		return false;
	errno = 0;
	*num = strtoull(s, &stop, 10);
	*end = stop;
	return errno == 0;
}

static int parse_number(struct parser *p, const struct option *o,
			const char *value, uint64_t min, uint64_t max,
			uint64_t *num)
{
	const char *end;

	if (!parse_digits(value, num, &end) || *end)
		return refuse(p, "%s=%s: not a number", o->name, value);
	if (*num < min || *num > max)
		return refuse(p, "%s=%s: must be from %" PRIu64 " to %" PRIu64,
			      o->name, value, min, max);
	return 0;
}

/* A size in bytes, with an optional K, M, G or T. */
static int parse_size(struct parser *p, const struct option *o,
		      const char *value, uint64_t min, uint64_t max,
		      uint64_t *bytes)
{
	static const char units[] = "kmgt";
	const char *end, *unit;
	uint64_t num;
	unsigned shift = 0;

	if (!parse_digits(value, &num, &end))
		return refuse(p, "%s=%s: not a size", o->name, value);
	if (*end) {
		unit = strchr(units, *end | 0x20);
		if (!unit || end[1])
			return refuse(p, "%s=%s: not a size", o->name, value);
		shift = 10 * (unsigned)(unit - units + 1);
	}
	if (num > max >> shift || num << shift < min)
		return refuse(
			p, "%s=%s: must be from %" PRIu64 "M to %" PRIu64 "M",
			o->name, value, min >> 20, max >> 20);
	*bytes = num << shift;
	return 0;
}

static int set_string(struct parser *p, char **where, const char *value)
{
	char *copy = strdup(value);

	if (!copy)
		return no_memory(p);
	free(*where);
	*where = copy;
	return 0;
}

static int set_lockproto(struct parser *p, const struct option *o,
			 const char *value)
{
	static const char *const known[] = { "lock_nolock", "lock_dlm",
					     "lock_gulm" };

	for (size_t i = 0; i < UG_ARRAY_SIZE(known); i++)
		if (!strcmp(value, known[i]))
			return set_string(p, &p->opt->lockproto, value);
	return refuse(p, "lockproto=%s: unknown lock protocol", value);
}

/* gfs2 stores at most 63 bytes of it (docs/spec/gfs2-ondisk.md). */
static int set_locktable(struct parser *p, const struct option *o,
			 const char *value)
{
	if (!*value || strlen(value) > 63)
		return refuse(p, "locktable=%s: must have 1 to 63 characters",
			      value);
	return set_string(p, &p->opt->locktable, value);
}

static int set_fence(struct parser *p, const struct option *o,
		     const char *value)
{
	return set_string(p, &p->opt->fence, value);
}

static int set_fence_action(struct parser *p, const struct option *o,
			    const char *value)
{
	if (strcmp(value, "off") && strcmp(value, "reboot"))
		return refuse(p, "fence_action=%s: must be off or reboot",
			      value);
	return set_string(p, &p->opt->fence_action, value);
}

static int set_keyfile(struct parser *p, const struct option *o,
		       const char *value)
{
	if (value[0] != '/')
		return refuse(p, "keyfile=%s: must be a full path", value);
	return set_string(p, &p->opt->key_file, value);
}

static int set_clusterconf(struct parser *p, const struct option *o,
			   const char *value)
{
	if (value[0] != '/')
		return refuse(p, "clusterconf=%s: must be a full path", value);
	return set_string(p, &p->opt->cluster_conf, value);
}

/* Its names are the options' names. */
static int set_plock(struct parser *p, const struct option *o,
		     const char *value)
{
	enum plock_setting which;
	char expected[64];

	if (!plock_setting_find(o->name, strlen(o->name), &which) ||
	    !plock_setting_parse(&p->opt->plocks, which, value,
				 PLOCK_MOUNT_OPTION, expected,
				 sizeof(expected)))
		return 0;
	return refuse(p, "%s=%s: must be %s", o->name, value, expected);
}

static int set_startup_delay(struct parser *p, const struct option *o,
			     const char *value)
{
	uint64_t num;
	int ret = parse_number(p, o, value, 1, SECONDS_MAX, &num);

	if (!ret)
		p->opt->startup_delay_sec = (unsigned)num;
	return ret;
}

/*
 * One word of hostdata: only the journal number means something without a
 * cluster, the others are what the kernel's lock modules knew.
 */
static int set_hostdata_word(struct parser *p, const char *word)
{
	const char *end;
	uint64_t num;

	if (!strncmp(word, "jid=", 4)) {
		if (!parse_digits(word + 4, &num, &end) || *end ||
		    num > INT32_MAX)
			return refuse(p, "hostdata: %s: not a journal number",
				      word);
		p->opt->fs.jid = (unsigned)num;
		return 0;
	}
	if (!strncmp(word, "id=", 3) || !strncmp(word, "first=", 6) ||
	    !strcmp(word, "nodir") || !strncmp(word, "nodir=", 6))
		return 0;
	return refuse(p, "hostdata: %s: unknown word", word);
}

static int set_hostdata(struct parser *p, const struct option *o,
			const char *value)
{
	ug_autofree char *copy = strdup(value);
	char *rest = copy, *word;
	int ret;

	if (!copy)
		return no_memory(p);
	while ((word = strsep(&rest, ":"))) {
		if (!*word)
			continue;
		ret = set_hostdata_word(p, word);
		if (ret)
			return ret;
	}
	return 0;
}

static int set_data(struct parser *p, const struct option *o, const char *value)
{
	if (!strcmp(value, "ordered"))
		p->opt->fs.data_writeback = false;
	else if (!strcmp(value, "writeback"))
		p->opt->fs.data_writeback = true;
	else
		return refuse(p, "data=%s: must be ordered or writeback",
			      value);
	return 0;
}

static int set_errors(struct parser *p, const struct option *o,
		      const char *value)
{
	if (!strcmp(value, "withdraw"))
		p->opt->fs.errors_panic = false;
	else if (!strcmp(value, "panic"))
		p->opt->fs.errors_panic = true;
	else
		return refuse(p, "errors=%s: must be withdraw or panic", value);
	p->opt->errors_given = true;
	return 0;
}

static int set_quota(struct parser *p, const struct option *o,
		     const char *value)
{
	if (!strcmp(value, "off"))
		return 0;
	if (!strcmp(value, "on") || !strcmp(value, "account") ||
	    !strcmp(value, "quiet"))
		return refuse(
			p,
			"quota=%s: this version has no quotas, only quota=off",
			value);
	return refuse(p, "quota=%s: unknown value", value);
}

static int set_commit(struct parser *p, const struct option *o,
		      const char *value)
{
	uint64_t num;
	int ret = parse_number(p, o, value, 1, SECONDS_MAX, &num);

	if (!ret)
		p->opt->fs.commit_sec = (unsigned)num;
	return ret;
}

static int set_statfs_quantum(struct parser *p, const struct option *o,
			      const char *value)
{
	uint64_t num;
	int ret = parse_number(p, o, value, 0, SECONDS_MAX, &num);

	if (!ret)
		p->opt->fs.statfs_quantum_sec = (unsigned)num;
	return ret;
}

static int set_statfs_percent(struct parser *p, const struct option *o,
			      const char *value)
{
	uint64_t num;
	int ret = parse_number(p, o, value, 0, 100, &num);

	if (!ret)
		p->opt->fs.statfs_percent = (unsigned)num;
	return ret;
}

/* Of quotas, which are off: only the form is checked. */
static int check_quota_quantum(struct parser *p, const struct option *o,
			       const char *value)
{
	uint64_t num;

	return parse_number(p, o, value, 1, SECONDS_MAX, &num);
}

static int set_cache(struct parser *p, const struct option *o,
		     const char *value)
{
	return parse_size(p, o, value, CACHE_BYTES_MIN, CACHE_BYTES_MAX,
			  &p->opt->fs.cache_bytes);
}

static int set_inodes(struct parser *p, const struct option *o,
		      const char *value)
{
	return parse_number(p, o, value, INODES_MIN, INODES_MAX,
			    &p->opt->fs.inodes_max);
}

static int set_threads(struct parser *p, const struct option *o,
		       const char *value)
{
	uint64_t num;
	int ret = parse_number(p, o, value, 1, THREADS_MAX, &num);

	if (!ret)
		p->opt->threads = (unsigned)num;
	return ret;
}

static int set_pagecache(struct parser *p, const struct option *o,
			 const char *value)
{
	if (!strcmp(value, "kernel"))
		p->opt->page_cache = PAGE_CACHE_KERNEL;
	else if (!strcmp(value, "own"))
		p->opt->page_cache = PAGE_CACHE_OWN;
	else
		return refuse(p, "pagecache=%s: must be kernel or own", value);
	return 0;
}

#define FLAG(n, s, c)                                             \
	{                                                         \
		.name = n, .kind = OPT_FLAG, .set = s, .clear = c \
	}
#define BOOL(n, field, t)                                                   \
	{                                                                   \
		.name = n, .kind = OPT_BOOL,                                \
		.offset = offsetof(struct mount_options, field), .truth = t \
	}
#define VALUE(n, f)                                   \
	{                                             \
		.name = n, .kind = OPT_VALUE, .fn = f \
	}
#define IGNORED(n)                             \
	{                                      \
		.name = n, .kind = OPT_IGNORED \
	}
#define REFUSED(n, t)                                     \
	{                                                 \
		.name = n, .kind = OPT_REFUSED, .text = t \
	}

static const struct option options[] = {
	/* mount(8) */
	IGNORED("defaults"),
	FLAG("ro", MS_RDONLY, 0),
	FLAG("rw", 0, MS_RDONLY),
	FLAG("suid", 0, MS_NOSUID),
	FLAG("nosuid", MS_NOSUID, 0),
	FLAG("dev", 0, MS_NODEV),
	FLAG("nodev", MS_NODEV, 0),
	FLAG("exec", 0, MS_NOEXEC),
	FLAG("noexec", MS_NOEXEC, 0),
	FLAG("sync", MS_SYNCHRONOUS, 0),
	FLAG("async", 0, MS_SYNCHRONOUS),
	FLAG("dirsync", MS_DIRSYNC, 0),
	FLAG("atime", 0, MS_NOATIME),
	FLAG("noatime", MS_NOATIME, ATIME_FLAGS),
	FLAG("diratime", 0, MS_NODIRATIME),
	FLAG("nodiratime", MS_NODIRATIME, 0),
	FLAG("relatime", MS_RELATIME, ATIME_FLAGS),
	FLAG("norelatime", 0, MS_RELATIME),
	FLAG("strictatime", MS_STRICTATIME, ATIME_FLAGS),
	FLAG("nostrictatime", 0, MS_STRICTATIME),
	FLAG("symfollow", 0, MS_NOSYMFOLLOW),
	FLAG("nosymfollow", MS_NOSYMFOLLOW, 0),
	FLAG("silent", MS_SILENT, 0),
	FLAG("loud", 0, MS_SILENT),
	IGNORED("lazytime"),
	IGNORED("nolazytime"),
	IGNORED("iversion"),
	IGNORED("noiversion"),
	IGNORED("nomand"),
	REFUSED("mand", "mandatory locks no longer exist in Linux"),
	REFUSED("remount", "a mounted volume cannot be changed; unmount it "
			   "and mount it again"),
	/* fstab, systemd, and what mount(8) keeps for itself */
	IGNORED("auto"),
	IGNORED("noauto"),
	IGNORED("nofail"),
	IGNORED("_netdev"),
	IGNORED("_rnetdev"),
	IGNORED("user"),
	IGNORED("nouser"),
	IGNORED("users"),
	IGNORED("nousers"),
	IGNORED("owner"),
	IGNORED("noowner"),
	IGNORED("group"),
	IGNORED("nogroup"),
	IGNORED("comment"),
	IGNORED("uhelper"),
	IGNORED("helper"),
	IGNORED("loop"),
	/* gfs2 */
	VALUE("lockproto", set_lockproto),
	VALUE("locktable", set_locktable),
	VALUE("hostdata", set_hostdata),
	BOOL("spectator", fs.spectator, true),
	BOOL("norecovery", fs.spectator, true),
	IGNORED("ignore_local_fs"),
	IGNORED("localcaching"),
	BOOL("localflocks", localflocks, true),
	BOOL("nolocalflocks", localflocks, false),
	IGNORED("upgrade"),
	IGNORED("oopses_ok"),
	IGNORED("num_glockd"),
	BOOL("debug", debug, true),
	BOOL("nodebug", debug, false),
	BOOL("acl", fs.acl, true),
	BOOL("noacl", fs.acl, false),
	VALUE("quota", set_quota),
	IGNORED("noquota"),
	VALUE("quota_quantum", check_quota_quantum),
	BOOL("suiddir", fs.suiddir, true),
	BOOL("nosuiddir", fs.suiddir, false),
	VALUE("data", set_data),
	BOOL("meta", fs.meta, true),
	REFUSED("discard", "this version does not discard freed blocks"),
	IGNORED("nodiscard"),
	VALUE("commit", set_commit),
	VALUE("errors", set_errors),
	VALUE("statfs_quantum", set_statfs_quantum),
	VALUE("statfs_percent", set_statfs_percent),
	BOOL("barrier", fs.barriers, true),
	BOOL("nobarrier", fs.barriers, false),
	IGNORED("rgrplvb"),
	IGNORED("norgrplvb"),
	IGNORED("loccookie"),
	IGNORED("noloccookie"),
	/* our own */
	BOOL("force", fs.force, true),
	VALUE("cache", set_cache),
	VALUE("inodes", set_inodes),
	VALUE("threads", set_threads),
	VALUE("pagecache", set_pagecache),
	VALUE("fence", set_fence),
	VALUE("fence_action", set_fence_action),
	VALUE("keyfile", set_keyfile),
	VALUE("startup_delay", set_startup_delay),
	VALUE("clusterconf", set_clusterconf),
	VALUE("plock_ownership", set_plock),
	VALUE("plock_rate_limit", set_plock),
	VALUE("drop_resources_time", set_plock),
	VALUE("drop_resources_count", set_plock),
	VALUE("drop_resources_age", set_plock),
	VALUE("enable_plock", set_plock),
	VALUE("plock_mode", set_plock),
};

static const struct option *option_find(const char *name)
{
	for (size_t i = 0; i < UG_ARRAY_SIZE(options); i++)
		if (!strcmp(options[i].name, name))
			return &options[i];
	return NULL;
}

/* Words for programs other than us: x-systemd.automount, X-mount.mkdir. */
static bool option_is_foreign(const char *name)
{
	return !strncmp(name, "x-", 2) || !strncmp(name, "X-", 2);
}

static int option_apply(struct parser *p, const struct option *o,
			const char *value)
{
	struct mount_options *opt = p->opt;

	switch (o->kind) {
	case OPT_IGNORED:
		return 0;
	case OPT_REFUSED:
		return refuse(p, "%s: %s", o->name, o->text);
	case OPT_VALUE:
		if (!value)
			return refuse(p, "%s: needs a value", o->name);
		return o->fn(p, o, value);
	case OPT_FLAG:
	case OPT_BOOL:
		break;
	}
	if (value)
		return refuse(p, "%s: takes no value", o->name);
	if (o->kind == OPT_BOOL) {
		*(bool *)((char *)opt + o->offset) = o->truth;
		return 0;
	}
	opt->mount_flags = (opt->mount_flags & ~o->clear) | o->set;
	return 0;
}

/* One name or name=value; the text is cut in place. */
static int option_parse(struct parser *p, char *text)
{
	char *value = strchr(text, '=');
	const struct option *o;
	size_t len;

	if (value) {
		*value++ = '\0';
		len = strlen(value);
		if (len >= 2 && value[0] == '"' && value[len - 1] == '"') {
			value[len - 1] = '\0';
			value++;
		}
	}
	if (option_is_foreign(text))
		return 0;
	o = option_find(text);
	if (!o)
		return p->opt->sloppy
			       ? 0
			       : refuse(p, "%s: unknown mount option", text);
	return option_apply(p, o, value);
}

/* The comma that ends the first item, or NULL: not one within quotes. */
static char *item_end(char *s)
{
	bool quoted = false;

	for (; *s; s++) {
		if (*s == '"')
			quoted = !quoted;
		else if (*s == ',' && !quoted)
			return s;
	}
	return NULL;
}

int mount_options_parse(struct mount_options *opt, const char *text, char *why,
			size_t why_len)
{
	struct parser p = { opt, why, why_len };
	ug_autofree char *copy = NULL;
	char *item, *comma;
	int ret;

	if (strlen(text) > OPTIONS_LEN_MAX)
		return refuse(&p, "mount options of more than %u characters",
			      OPTIONS_LEN_MAX);
	copy = strdup(text);
	if (!copy)
		return no_memory(&p);
	for (item = copy; item; item = comma ? comma + 1 : NULL) {
		comma = item_end(item);
		if (comma)
			*comma = '\0';
		if (!*item)
			continue;
		ret = option_parse(&p, item);
		if (ret)
			return ret;
	}
	return 0;
}

void mount_options_init(struct mount_options *opt)
{
	memset(opt, 0, sizeof(*opt));
	fs_options_init(&opt->fs);
	plock_settings_init(&opt->plocks);
}

void mount_options_free(struct mount_options *opt)
{
	free(opt->lockproto);
	free(opt->locktable);
	free(opt->fence);
	free(opt->fence_action);
	free(opt->key_file);
	free(opt->cluster_conf);
	opt->lockproto = NULL;
	opt->locktable = NULL;
	opt->fence = NULL;
	opt->fence_action = NULL;
	opt->key_file = NULL;
	opt->cluster_conf = NULL;
}

static enum fs_atime atime_of(unsigned long flags)
{
	if (flags & MS_NOATIME)
		return FS_ATIME_NOATIME;
	if (flags & MS_STRICTATIME)
		return FS_ATIME_STRICT;
	return FS_ATIME_RELATIME;
}

int mount_options_finish(struct mount_options *opt, char *why, size_t why_len)
{
	struct parser p = { opt, why, why_len };

	if (opt->debug && opt->errors_given)
		return refuse(&p, "debug and errors= exclude each other");
	if (opt->debug)
		opt->fs.errors_panic = true;
	/* Without a journal nothing can be written (gfs2-ondisk.md 8). */
	if (opt->fs.spectator)
		opt->mount_flags |= MS_RDONLY;
	opt->fs.readonly = opt->mount_flags & MS_RDONLY;
	opt->fs.sync = opt->mount_flags & MS_SYNCHRONOUS;
	opt->fs.dirsync = opt->mount_flags & MS_DIRSYNC;
	opt->fs.nodiratime = opt->mount_flags & MS_NODIRATIME;
	opt->fs.atime = atime_of(opt->mount_flags);
	opt->fs.lockproto = opt->lockproto;
	opt->fs.locktable = opt->locktable;
	return 0;
}
