/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfargs.c - the command line of fplockperf.
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "perfargs.h"

struct parser {
	struct perf_args *args;
	char *why;
	size_t why_len;
};

ug_printf(2, 3) static int refuse(struct parser *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->why, p->why_len, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static int parse_number(struct parser *p, const char *what, const char *text,
			unsigned min, unsigned max, unsigned *num)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end)
		return refuse(p, "%s: \"%s\" is not a number", what, text);
	if (errno || value < min || value > max)
		return refuse(p, "%s: %s is not from %u to %u", what, text, min,
			      max);
	*num = (unsigned)value;
	return 0;
}

static int parse_counts(struct parser *p, char *text)
{
	char *word;

	p->args->counts_used = 0;
	while ((word = strsep(&text, ","))) {
		unsigned n = p->args->counts_used;
		int err;

		if (n == PERF_COUNTS_MAX)
			return refuse(p, "-n: more than %u counts",
				      PERF_COUNTS_MAX);
		err = parse_number(p, "-n", word, 1, PERF_FILES_MAX,
				   &p->args->counts[n]);
		if (err)
			return err;
		p->args->counts_used++;
	}
	return 0;
}

static int parse_kind(struct parser *p, const char *text)
{
	struct perf_args *args = p->args;

	if (!strcmp(text, "both")) {
		args->kinds[0] = FILE_LOCK_FLOCK;
		args->kinds[1] = FILE_LOCK_PLOCK;
		args->kinds_used = 2;
		return 0;
	}
	for (unsigned i = 0; i < FILE_LOCK_KINDS; i++) {
		if (strcmp(text, file_lock_name((enum file_lock_kind)i)))
			continue;
		args->kinds[0] = (enum file_lock_kind)i;
		args->kinds_used = 1;
		return 0;
	}
	return refuse(p, "-t: \"%s\" is not flock, plock, ofd or both", text);
}

static int parse_option(struct parser *p, int letter, char *value)
{
	struct perf_args *args = p->args;

	switch (letter) {
	case 'n':
		return parse_counts(p, value);
	case 'i':
		return parse_number(p, "-i", value, 1, PERF_ITERATIONS_MAX,
				    &args->iterations);
	case 't':
		return parse_kind(p, value);
	case 'd':
		args->dir = value;
		return 0;
	case 's':
		args->shared = true;
		return 0;
	case 'r':
		args->reopen = true;
		return 0;
	case 'j':
		args->json = true;
		return 0;
	case 'h':
		args->action = PERF_HELP;
		return 0;
	case 'V':
		args->action = PERF_VERSION;
		return 0;
	case ':':
		return refuse(p, "-%c: needs a value", optopt);
	default:
		return refuse(p, "-%c: unknown option", optopt);
	}
}

int perf_args_parse(int argc, char **argv, struct perf_args *args, char *why,
		    size_t why_len)
{
	static const unsigned counts[] = { 100, 500, 1000, 2000, 5000 };
	struct parser p = { args, why, why_len };
	int letter, err;

	memset(args, 0, sizeof(*args));
	args->dir = ".";
	args->iterations = 5;
	memcpy(args->counts, counts, sizeof(counts));
	args->counts_used = UG_ARRAY_SIZE(counts);
	parse_kind(&p, "both");
	optind = 0; /* scan from the beginning, whoever has called before */
	while ((letter = getopt(argc, argv, ":n:i:d:t:srjhV")) != -1) {
		err = parse_option(&p, letter, optarg);
		if (err)
			return err;
	}
	if (argc - optind > 1)
		return refuse(&p, "\"%s\" is one argument too many",
			      argv[optind + 1]);
	if (optind == argc)
		return 0;
	return parse_number(&p, "the delay", argv[optind], 0, PERF_DELAY_MAX,
			    &args->delay_sec);
}

void perf_args_help(FILE *out)
{
	fputs("usage: fplockperf [OPTION...] [DELAY]\n"
	      "Lock and unlock many files, one after the other, and print how "
	      "long it takes.\n"
	      "DELAY: seconds between two sets (0)\n"
	      "  -n N,...  files of each set (100,500,1000,2000,5000)\n"
	      "  -i N      iterations of each set (5)\n"
	      "  -d DIR    where the files are made (.)\n"
	      "  -t KIND   flock, plock (fcntl), ofd, or both flock and plock "
	      "(both)\n"
	      "  -s        shared locks\n"
	      "  -r        open and close each file for its lock\n"
	      "  -j        JSON\n"
	      "  -h        this text\n"
	      "  -V        the version\n",
	      out);
}
