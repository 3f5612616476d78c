/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mkfs_args.c - the command line of mkfs.
 *
 * Numbers are decimal and complete: what follows them is not ignored. A wish
 * of 0 means "choose for me" to the plan, so an explicit 0 is refused here.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <uuid/uuid.h>

#include "base/checked.h"
#include "tools/mkfs_args.h"

#define CLUSTER_NAME_MAX 32u
#define FS_NAME_MAX 30u

struct parser {
	struct mkfs_args *args;
	char *why;
	size_t why_len;
};

static int ug_printf(2, 3) refuse(struct parser *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->why, p->why_len, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* ---- numbers ----------------------------------------------------------- */

/* Digits only, from 1 to max. */
static int parse_number(struct parser *p, const char *what, const char *text,
			uint64_t max, uint64_t *out)
{
	size_t digits = strspn(text, "0123456789");
	unsigned long long value;

	errno = 0;
	value = strtoull(text, NULL, 10);
	if (digits == 0 || text[digits] || errno || value == 0 || value > max)
		return refuse(p,
			      "%s is \"%s\", expected a number from 1 to %llu",
			      what, text, (unsigned long long)max);
	*out = value;
	return 0;
}

static int parse_unsigned(struct parser *p, const char *what, const char *text,
			  unsigned min, unsigned max, unsigned *out)
{
	uint64_t value;
	int err = parse_number(p, what, text, UINT_MAX, &value);

	if (!err && (value < min || value > max))
		err = refuse(p, "%s is %s, expected %u to %u", what, text, min,
			     max);
	if (!err)
		*out = (unsigned)value;
	return err;
}

/* Bytes, with an optional k, m, g or t. */
static int parse_bytes(struct parser *p, const char *what, const char *text,
		       uint64_t *out)
{
	static const char suffixes[] = "kmgt";
	size_t digits = strspn(text, "0123456789");
	const char *suffix = NULL;
	unsigned long long value;
	uint64_t factor = 1;

	errno = 0;
	value = strtoull(text, NULL, 10);
	if (text[digits])
		suffix = strchr(suffixes, text[digits] | 0x20);
	if (suffix)
		factor = 1ull << 10 * (suffix - suffixes + 1);
	if (digits == 0 || errno || value == 0 ||
	    (text[digits] && (!suffix || text[digits + 1])) ||
	    !ug_mul_u64(value, factor, out))
		return refuse(p,
			      "%s is \"%s\", expected a number of bytes, "
			      "which may end in k, m, g or t",
			      what, text);
	return 0;
}

/* ---- lock table, protocol, uuid ---------------------------------------- */

static int check_name(struct parser *p, const char *what, const char *name,
		      size_t len, size_t max)
{
	if (len == 0)
		return refuse(
			p,
			"the %s name in the lock table is empty, expected "
			"CLUSTER:FSNAME",
			what);
	if (len > max)
		return refuse(p,
			      "the %s name in the lock table has %zu "
			      "characters, expected at most %zu",
			      what, len, max);
	for (size_t i = 0; i < len; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyz"
			    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-",
			    name[i]))
			return refuse(
				p,
				"the %s name in the lock table contains "
				"\"%c\", expected letters, digits, - and _",
				what, name[i]);
	return 0;
}

static int parse_locktable(struct parser *p, const char *text)
{
	char *table = p->args->identity.locktable;
	const char *colon = strchr(text, ':');
	int err;

	if (!colon || strchr(colon + 1, ':'))
		return refuse(p,
			      "the lock table is \"%s\", expected "
			      "CLUSTER:FSNAME with one colon",
			      text);
	err = check_name(p, "cluster", text, (size_t)(colon - text),
			 CLUSTER_NAME_MAX);
	if (!err)
		err = check_name(p, "file system", colon + 1, strlen(colon + 1),
				 FS_NAME_MAX);
	if (!err)
		snprintf(table, sizeof(p->args->identity.locktable), "%s",
			 text);
	return err;
}

static int parse_protocol(struct parser *p, const char *text)
{
	static const char *const protocols[] = { "lock_dlm", "lock_gulm",
						 "lock_nolock" };
	char *proto = p->args->identity.lockproto;

	for (size_t i = 0; i < UG_ARRAY_SIZE(protocols); i++)
		if (strcmp(text, protocols[i]) == 0) {
			strcpy(proto, protocols[i]);
			return 0;
		}
	return refuse(p,
		      "the lock protocol is \"%s\", expected lock_dlm, "
		      "lock_gulm or lock_nolock",
		      text);
}

static int parse_uuid(struct parser *p, const char *text)
{
	if (uuid_parse(text, p->args->identity.uuid))
		return refuse(p,
			      "the UUID is \"%s\", expected the form "
			      "1b4e28ba-2fa1-11d2-883f-b9a761bde3fb",
			      text);
	p->args->have_uuid = true;
	return 0;
}

/* ---- extended options -------------------------------------------------- */

static int parse_align(struct parser *p, const char *value)
{
	if (strcmp(value, "0") && strcmp(value, "1"))
		return refuse(p, "align is \"%s\", expected 0 or 1", value);
	p->args->wishes.no_align = value[0] == '0';
	return 0;
}

/* One KEY or KEY=VALUE. */
static int parse_extended_one(struct parser *p, char *key)
{
	struct mkfs_wishes *w = &p->args->wishes;
	char *value = strchr(key, '=');

	if (value)
		*value++ = '\0';
	if (strcmp(key, "help") == 0) {
		p->args->action = MKFS_HELP_EXTENDED;
		return 0;
	}
	if (strcmp(key, "sunit") && strcmp(key, "swidth") &&
	    strcmp(key, "align") && strcmp(key, "format"))
		return refuse(p,
			      "extended option \"%s\" is unknown, expected "
			      "sunit, swidth, align, format or help",
			      key);
	if (!value || !*value)
		return refuse(p, "extended option \"%s\" has no value", key);
	if (strcmp(key, "sunit") == 0)
		return parse_bytes(p, "stripe unit", value, &w->sunit_bytes);
	if (strcmp(key, "swidth") == 0)
		return parse_bytes(p, "stripe width", value, &w->swidth_bytes);
	if (strcmp(key, "align") == 0)
		return parse_align(p, value);
	return parse_unsigned(p, "format", value, GFS2_FORMAT_FS_MIN,
			      GFS2_FORMAT_FS_MAX, &w->format);
}

static int parse_extended(struct parser *p, const char *text)
{
	char *copy = strdup(text), *rest = copy, *key;
	int err = copy ? 0 : refuse(p, "no memory");

	while (!err && (key = strsep(&rest, ",")))
		err = parse_extended_one(p, key);
	free(copy);
	return err;
}

/* ---- options ----------------------------------------------------------- */

static int parse_bsize(struct parser *p, const char *text)
{
	struct gfs2_geom geom;
	uint64_t bytes;
	int err = parse_bytes(p, "block size", text, &bytes);

	if (err)
		return err;
	if (bytes > UINT32_MAX || gfs2_geom_init(&geom, (uint32_t)bytes))
		return refuse(p,
			      "block size is \"%s\", expected a power of two "
			      "from %u to %u",
			      text, GFS2_BSIZE_MIN, GFS2_BSIZE_MAX);
	p->args->wishes.bsize = (uint32_t)bytes;
	return 0;
}

static int parse_option(struct parser *p, int option, const char *value)
{
	struct mkfs_args *args = p->args;

	switch (option) {
	case 'b':
		return parse_bsize(p, value);
	case 'c':
		return parse_unsigned(p, "quota change file size (-c, in MB)",
				      value, MKFS_QCSIZE_MIN_MB,
				      MKFS_QCSIZE_MAX_MB,
				      &args->wishes.qcsize_mb);
	case 'J':
		return parse_unsigned(p, "journal size (-J, in MB)", value,
				      MKFS_JSIZE_MIN_MB, MKFS_JSIZE_MAX_MB,
				      &args->wishes.jsize_mb);
	case 'j':
		return parse_unsigned(p, "number of journals (-j)", value, 1,
				      MKFS_JOURNALS_MAX,
				      &args->wishes.journals);
	case 'r':
		return parse_unsigned(p, "resource group size (-r, in MB)",
				      value, MKFS_RGSIZE_MIN_MB,
				      MKFS_RGSIZE_MAX_MB,
				      &args->wishes.rgsize_mb);
	case 'o':
		return parse_extended(p, value);
	case 'p':
		return parse_protocol(p, value);
	case 't':
		return parse_locktable(p, value);
	case 'U':
		return parse_uuid(p, value);
	case 'D':
		args->debug = true;
		return 0;
	case 'K':
		args->keep = true;
		return 0;
	case 'O':
		args->override = true;
		return 0;
	case 'q':
		args->quiet = true;
		return 0;
	case 'h':
		args->action = MKFS_HELP;
		return 0;
	case 'V':
		args->action = MKFS_VERSION;
		return 0;
	}
	return refuse(p, "internal: option %c is not handled", option);
}

static int bad_option(struct parser *p, int answer, const char *text)
{
	if (answer == ':')
		return refuse(p, "option %s needs a value", text);
	if (optopt)
		return refuse(p, "option -%c is unknown", optopt);
	return refuse(p, "option %s is unknown", text);
}

static int parse_options(struct parser *p, int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	int option, err = 0;

	optind = 0; /* glibc: begin anew, also after an earlier call */
	opterr = 0;
	while (!err && p->args->action == MKFS_RUN &&
	       (option = getopt_long(argc, argv, ":b:c:DhJ:j:KOo:p:qr:t:U:V",
				     long_options, NULL)) != -1)
		err = option == ':' || option == '?'
			      ? bad_option(p, option, argv[optind - 1])
			      : parse_option(p, option, optarg);
	return err;
}

/* The device and, if given, the size. */
static int parse_operands(struct parser *p, int argc, char **argv)
{
	if (argc < 1)
		return refuse(p, "no device was given");
	if (argc > 2)
		return refuse(p,
			      "\"%s\" is one argument too many, expected a "
			      "device and a number of blocks",
			      argv[2]);
	p->args->device = argv[0];
	if (argc == 1)
		return 0;
	return parse_number(p, "size in blocks", argv[1],
			    INT64_MAX / GFS2_BSIZE_MIN,
			    &p->args->wishes.size_blocks);
}

static int check_locking(struct parser *p)
{
	const struct mkfs_identity *id = &p->args->identity;

	if (strcmp(id->lockproto, "lock_nolock") == 0 || id->locktable[0])
		return 0;
	return refuse(p,
		      "%s needs a lock table: give -t CLUSTER:FSNAME, or -p "
		      "lock_nolock for one machine at a time",
		      id->lockproto);
}

int mkfs_args_parse(int argc, char **argv, struct mkfs_args *args, char *why,
		    size_t why_len)
{
	struct parser p = { args, why, why_len };
	int err;

	*args = (struct mkfs_args){
		.identity.lockproto = "lock_dlm",
	};
	err = parse_options(&p, argc, argv);
	if (err || args->action != MKFS_RUN)
		return err;
	err = parse_operands(&p, argc - optind, argv + optind);
	return err ? err : check_locking(&p);
}

void mkfs_args_help(FILE *out, const char *program)
{
	fprintf(out,
		"usage: %s [OPTIONS] DEVICE [BLOCKS]\n"
		"\n"
		"Make a GFS2 volume on a block device or in an existing file.\n"
		"BLOCKS: use only so many blocks of it.\n"
		"\n"
		"  -p PROTOCOL   lock_dlm (default), lock_gulm or lock_nolock\n"
		"  -t TABLE      lock table, CLUSTER:FSNAME; also the label\n"
		"  -j NUMBER     journals, one for each machine that mounts at "
		"the same\n"
		"                time; 1 to %u, default 1\n"
		"  -J MEGABYTES  size of each journal, %u to %u; default by "
		"volume size\n"
		"  -b BYTES      block size, %u to %u; default 4096\n"
		"  -r MEGABYTES  size of resource groups, %u to %u; default "
		"256\n"
		"  -c MEGABYTES  size of each quota change file, %u to %u; "
		"default 1\n"
		"  -U UUID       default: a random one\n"
		"  -o KEY=VALUE,...  extended options, see -o help\n"
		"  -K            do not discard the device's contents first\n"
		"  -O            do not ask before overwriting\n"
		"  -D            print where everything goes\n"
		"  -q            print nothing but errors\n"
		"  -V, --version print the version\n"
		"  -h, --help    print this\n"
		"\n"
		"Exit status: 0 done, 1 refused (nothing was written), 2 "
		"failed while\n"
		"writing. Manual: ugfs-mkfs(8).\n",
		program, MKFS_JOURNALS_MAX, MKFS_JSIZE_MIN_MB,
		MKFS_JSIZE_MAX_MB, GFS2_BSIZE_MIN, GFS2_BSIZE_MAX,
		MKFS_RGSIZE_MIN_MB, MKFS_RGSIZE_MAX_MB, MKFS_QCSIZE_MIN_MB,
		MKFS_QCSIZE_MAX_MB);
}

void mkfs_args_help_extended(FILE *out)
{
	fputs("Extended options, -o KEY=VALUE[,KEY=VALUE...]:\n"
	      "\n"
	      "  sunit=BYTES   stripe unit, instead of what the device says\n"
	      "  swidth=BYTES  stripe width, together with sunit\n"
	      "  align=0|1     align resource groups to stripes; default 1\n"
	      "  format=NUMBER 1801 or 1802 (default)\n"
	      "  help          print this\n",
	      out);
}
