/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * main.c - emptyfs DIR [-f] [-o OPTION,...]: mount an empty file system.
 *
 * Returns when the mount can be used; the server then runs in the background
 * until it is unmounted (-f: in the foreground). Options:
 *
 *	direct		pages are not kept by the kernel (default: cached)
 *	discard		bytes of files are dropped, reads are zeros
 *	store=FILE	bytes go to FILE, which exists and has its full size
 *	timeout=MS	life of names and attributes in the kernel, or "inf"
 *	locks		file locks come here, and are granted
 *	readers=N	threads that read requests
 *	stats		print counts when it is unmounted
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "serve.h"

struct options {
	struct fuse_policy_options policy;
	enum data_kind data;
	const char *store;
	const char *timeout;
	unsigned readers;
	bool stats;
	bool foreground;
	const char *dir;
};

static int usage(void)
{
	fputs("usage: emptyfs DIR [-f] [-o direct,discard,store=FILE,"
	      "timeout=MS|inf,locks,readers=N,stats]\n",
	      stderr);
	return 2;
}

static int option_parse(struct options *opt, char *word)
{
	char *value = strchr(word, '=');

	if (value)
		*value++ = '\0';
	if (!strcmp(word, "direct") && !value)
		opt->policy.data = FUSE_DATA_DIRECT;
	else if (!strcmp(word, "discard") && !value)
		opt->data = DATA_DISCARD;
	else if (!strcmp(word, "locks") && !value)
		opt->policy.locks = true;
	else if (!strcmp(word, "stats") && !value)
		opt->stats = true;
	else if (!strcmp(word, "timeout") && value)
		opt->timeout = value;
	else if (!strcmp(word, "readers") && value)
		opt->readers = (unsigned)strtoul(value, NULL, 10);
	else if (!strcmp(word, "store") && value) {
		opt->data = DATA_STORE;
		opt->store = value;
	} else {
		return -EINVAL;
	}
	return 0;
}

static int options_parse(struct options *opt, int argc, char **argv)
{
	enum fuse_data_mode data;
	bool locks;
	int c;

	while ((c = getopt(argc, argv, "fo:")) != -1) {
		if (c == 'f')
			opt->foreground = true;
		else if (c != 'o')
			return -EINVAL;
		for (char *w = c == 'o' ? strtok(optarg, ",") : NULL; w;
		     w = strtok(NULL, ","))
			if (option_parse(opt, w))
				return -EINVAL;
	}
	if (optind + 1 != argc)
		return -EINVAL;
	opt->dir = argv[optind];
	data = opt->policy.data;
	locks = opt->policy.locks;
	fuse_policy_defaults(&opt->policy, data);
	opt->policy.locks = locks;
	if (!opt->timeout)
		return 0;
	opt->policy.entry_ms = opt->policy.attr_ms =
		!strcmp(opt->timeout, "inf")
			? FUSE_FOREVER
			: (uint32_t)strtoul(opt->timeout, NULL, 10);
	return 0;
}

static int store_open(struct emptyfs *efs, const char *path)
{
	struct stat st;

	efs->store = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
	if (efs->store < 0 || fstat(efs->store, &st))
		return -errno;
	efs->store_bytes =
		(uint64_t)(S_ISBLK(st.st_mode) ? lseek(efs->store, 0, SEEK_END)
					       : st.st_size);
	return efs->store_bytes > 2 * FUSE_MAX_WRITE ? 0 : -ENOSPC;
}

static void print_stats(struct fuse_session *session)
{
	struct fuse_session_stats st;

	fuse_session_get_stats(session, &st);
	printf("requests %llu inline %llu handed-over %llu\n",
	       (unsigned long long)st.requests,
	       (unsigned long long)st.inline_done,
	       (unsigned long long)st.handed_over);
	for (unsigned i = 0; i < FUSE_OPCODES; i++)
		if (st.by_opcode[i])
			printf("%s %llu\n", fuse_opcode_name(i),
			       (unsigned long long)st.by_opcode[i]);
	for (unsigned i = 0; i < FUSE_HISTOGRAM; i++)
		if (st.inline_ns[i])
			printf("inline below %llu ns: %llu\n", 2ull << i,
			       (unsigned long long)st.inline_ns[i]);
	fflush(stdout);
}

/* The mount can be used: let whoever started us go on. */
static void ready(void *arg)
{
	int *pipe_end = arg;

	if (*pipe_end >= 0) {
		if (write(*pipe_end, "", 1) != 1)
			perror("emptyfs: parent");
		close(*pipe_end);
	}
}

static int serve(struct emptyfs *efs, const struct options *opt,
		 struct fuse_conn *conn, int pipe_end)
{
	struct fuse_session_params params = {
		.conn = conn,
		.handler = &emptyfs_handler,
		.ctx = efs,
		.who = "emptyfs",
		.ready = ready,
		.ready_arg = &pipe_end,
		.readers = opt->readers,
	};
	struct fuse_session *session;
	int err;

	fuse_policy_wants(&efs->policy, &params.wants);
	err = fuse_session_create(&params, &session);
	if (err)
		return err;
	err = fuse_session_run(session);
	if (opt->stats)
		print_stats(session);
	fuse_session_destroy(session);
	return err;
}

static int mount_and_serve(struct emptyfs *efs, const struct options *opt,
			   int pipe_end)
{
	struct fuse_mount_params mount_params = {
		.source = "emptyfs",
		.mountpoint = opt->dir,
		.subtype = "emptyfs",
		.ms_flags = MS_NOSUID | MS_NODEV,
	};
	struct fuse_conn *conn;
	char why[256] = "";
	int err = fuse_conn_open(&conn);

	if (err) {
		fprintf(stderr, "emptyfs: /dev/fuse: %s\n", strerror(-err));
		return err;
	}
	err = fuse_conn_mount(conn, &mount_params, why, sizeof(why));
	if (!err)
		err = serve(efs, opt, conn, pipe_end);
	if (err)
		fprintf(stderr, "emptyfs: %s\n", *why ? why : strerror(-err));
	fuse_conn_close(conn);
	return err;
}

/* The parent leaves when the child has said that it is ready, or has died. */
static int parent_wait(int pipe_end)
{
	char byte;

	return read(pipe_end, &byte, 1) == 1 ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct options opt = { .data = DATA_MEMORY };
	struct emptyfs efs = { .store = -1 };
	int ends[2] = { -1, -1 };
	int err;

	if (options_parse(&opt, argc, argv))
		return usage();
	if (opt.store && store_open(&efs, opt.store)) {
		fprintf(stderr, "emptyfs: cannot use %s\n", opt.store);
		return 1;
	}
	if (!opt.foreground) {
		if (pipe2(ends, O_CLOEXEC))
			return 1;
		switch (fork()) {
		case -1:
			return 1;
		case 0:
			setsid();
			close(ends[0]);
			break;
		default:
			close(ends[1]);
			return parent_wait(ends[0]);
		}
	}
	efs.data = opt.data;
	efs.tree = tree_create();
	pthread_mutex_init(&efs.lock, NULL);
	if (!efs.tree || fuse_policy_init(&efs.policy, &opt.policy))
		return 1;
	err = mount_and_serve(&efs, &opt, ends[1]);
	tree_destroy(efs.tree);
	fuse_policy_fini(&efs.policy);
	return err ? 1 : 0;
}
