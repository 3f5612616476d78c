/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mkfs_cmd.c - the verb "mkfs", from the command line to the last sentence.
 *
 * Everything that can be refused is refused before the device is touched: the
 * whole volume is made once without writing, to know that it fits.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>
#include <uuid/uuid.h>

#include "block/block.h"
#include "tools/mkfs.h"
#include "tools/mkfs_args.h"
#include "tools/mkfs_probe.h"
#include "tools/mkfs_write.h"

#define STATUS_DONE 0
#define STATUS_REFUSED 1 /* nothing was written */
#define STATUS_FAILED 2	 /* there is no volume now */

#define WHY_BYTES 512

/* One run. */
struct mkfs_run {
	const char *program;
	struct mkfs_args args;
	struct mkfs_probe probe;
	struct blkdev *dev;
	struct mkfs_plan plan;
	struct mkfs_result trial;
};

static void ug_printf(2, 3)
	complain(const struct mkfs_run *run, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", run->program);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

/* ---- the device -------------------------------------------------------- */

static void complain_open(const struct mkfs_run *run, int err)
{
	const char *path = run->args.device;

	switch (err) {
	case -EBUSY:
		complain(run,
			 "%s is in use: it is mounted, or another program "
			 "holds it",
			 path);
		break;
	case -ENOTBLK:
		complain(run, "%s is neither a block device nor a regular file",
			 path);
		break;
	case -EREMOTE:
		complain(run,
			 "%s is on a network or FUSE file system, expected an "
			 "image on a local one",
			 path);
		break;
	case -EROFS:
		complain(run, "%s is write-protected", path);
		break;
	case -EOPNOTSUPP:
		complain(run, "%s has sectors larger than %u bytes", path,
			 BLKDEV_ALIGN);
		break;
	case -EINVAL:
		complain(run, "%s is on a file system without direct I/O",
			 path);
		break;
	default:
		complain(run, "%s: %s", path, strerror(-err));
	}
}

static int open_device(struct mkfs_run *run)
{
	char loop[64];
	int err = mkfs_probe_path(run->args.device, &run->probe);

	if (err) {
		complain_open(run, err);
		return err;
	}
	if (mkfs_probe_loop(run->args.device, loop, sizeof(loop))) {
		complain(run, "%s is in use: it is attached to %s",
			 run->args.device, loop);
		return -EBUSY;
	}
	err = blkdev_open_file(run->args.device, BLK_OPEN_EXCL, &run->dev);
	if (err) {
		complain_open(run, err);
		return err;
	}
	run->probe.device.size_bytes = run->dev->size_bytes;
	run->probe.device.sector_bytes = run->dev->sector_bytes;
	return 0;
}

static void warn_about_device(const struct mkfs_run *run)
{
	const struct mkfs_device *device = &run->probe.device;

	if (run->args.quiet)
		return;
	if (run->probe.misaligned)
		complain(run,
			 "warning: %s does not begin at a physical sector, "
			 "which makes it slower",
			 run->args.device);
	if (run->plan.geom.bsize < device->physical_bytes)
		complain(run,
			 "warning: blocks of %u bytes are slow on %s, whose "
			 "physical sectors have %u",
			 run->plan.geom.bsize, run->args.device,
			 device->physical_bytes);
}

/* ---- the plan ---------------------------------------------------------- */

static int plan_volume(struct mkfs_run *run)
{
	char why[WHY_BYTES];
	int err;

	err = mkfs_plan_make(&run->args.wishes, &run->probe.device, &run->plan,
			     why, sizeof(why));
	if (err) {
		complain(run, "%s: %s", run->args.device, why);
		return err;
	}
	err = mkfs_make_volume(&run->plan, &run->args.identity, NULL,
			       &run->trial);
	if (err == -ENOSPC)
		complain(run,
			 "%s: the volume has %llu blocks of %u bytes, not "
			 "enough for its own files: give fewer or smaller "
			 "journals (-j, -J) or quota change files (-c)",
			 run->args.device,
			 (unsigned long long)run->plan.device_blocks,
			 run->plan.geom.bsize);
	else if (err)
		complain(run, "%s: %s", run->args.device, strerror(-err));
	return err;
}

/* What distinguishes this volume from all others. */
static int make_identity(struct mkfs_run *run)
{
	struct mkfs_identity *id = &run->args.identity;

	if (!run->args.have_uuid)
		uuid_generate(id->uuid);
	id->time_sec = time(NULL);
	if (getrandom(&id->seed, sizeof(id->seed), 0) !=
	    (ssize_t)sizeof(id->seed)) {
		complain(run, "no random numbers: %s", strerror(errno));
		return -EIO;
	}
	return 0;
}

static void print_plan(const struct mkfs_run *run)
{
	const struct mkfs_plan *plan = &run->plan;

	printf("block size %u, format %u, %llu blocks\n", plan->geom.bsize,
	       plan->format, (unsigned long long)plan->device_blocks);
	if (plan->sunit)
		printf("stripe unit %llu, stripe width %llu blocks\n",
		       (unsigned long long)plan->sunit,
		       (unsigned long long)plan->swidth);
	printf("journals: %u of %u blocks, %u with their pointers\n",
	       plan->journals, plan->jblocks, plan->jtotal);
	for (uint32_t g = 0; g < plan->group_count; g++) {
		const struct gfs2_rindex_info *ri = &plan->groups[g];

		printf("group %u: addr %llu, length %u, data0 %llu, data %u\n",
		       g, (unsigned long long)ri->addr, ri->length,
		       (unsigned long long)ri->data0, ri->data);
	}
	printf("master directory: inode %llu at block %llu\n"
	       "root directory: inode %llu at block %llu\n"
	       "blocks: %lld, free %lld, inodes %lld\n",
	       (unsigned long long)run->trial.master.formal,
	       (unsigned long long)run->trial.master.addr,
	       (unsigned long long)run->trial.root.formal,
	       (unsigned long long)run->trial.root.addr,
	       (long long)run->trial.totals.total,
	       (long long)run->trial.totals.free,
	       (long long)run->trial.totals.dinodes);
}

/* ---- the question ------------------------------------------------------ */

static bool user_agrees(void)
{
	char answer[16];

	fputs("Are you sure you want to proceed? [y/n] ", stdout);
	fflush(stdout);
	if (!fgets(answer, sizeof(answer), stdin)) {
		putchar('\n');
		return false;
	}
	return answer[0] == 'y' || answer[0] == 'Y';
}

/* True if the device may be overwritten. */
static bool confirm(const struct mkfs_run *run)
{
	const struct mkfs_args *args = &run->args;

	if (!args->quiet || !args->override) {
		if (run->probe.contents[0])
			printf("%s contains %s.\n", args->device,
			       run->probe.contents);
		printf("This will destroy any data on %s.\n", args->device);
	}
	if (args->override)
		return true;
	if (!isatty(STDIN_FILENO)) {
		fflush(stdout);
		complain(run, "nobody can be asked, as standard input is no "
			      "terminal: -O overwrites without asking");
		return false;
	}
	if (user_agrees())
		return true;
	complain(run, "nothing was written to %s", args->device);
	return false;
}

/* ---- writing ----------------------------------------------------------- */

static void show_progress(void *arg, uint64_t done, uint64_t total)
{
	unsigned *shown = arg;
	unsigned percent = (unsigned)(total ? done * 100 / total : 100);

	if (percent == *shown)
		return;
	*shown = percent;
	printf("\rWriting: %3u%%", percent);
	if (percent == 100)
		putchar('\n');
	fflush(stdout);
}

static void discard(const struct mkfs_run *run)
{
	int err;

	if (run->args.keep || !run->probe.is_blockdev)
		return;
	err = mkfs_discard(run->args.device, &run->probe, run->dev->size_bytes);
	/* Only a favour to the device: it may not know the command at all. */
	if (err && err != -EOPNOTSUPP && !run->args.quiet)
		complain(run, "warning: %s could not be discarded: %s",
			 run->args.device, strerror(-err));
}

static int write_volume(const struct mkfs_run *run)
{
	unsigned shown = UINT32_MAX;
	const struct mkfs_progress progress = { show_progress, &shown };
	bool visible = !run->args.quiet && isatty(STDOUT_FILENO);
	bool begun;
	int err;

	discard(run);
	err = mkfs_write_volume(run->dev, &run->plan, &run->args.identity,
				&run->trial, visible ? &progress : NULL,
				&begun);
	if (!err)
		return STATUS_DONE;
	complain(run, "%s: %s%s", run->args.device, strerror(-err),
		 begun ? "; it holds no volume now" : "");
	return STATUS_FAILED;
}

static void print_summary(const struct mkfs_run *run)
{
	const struct mkfs_plan *plan = &run->plan;
	const struct mkfs_identity *id = &run->args.identity;
	const double gb = 1 << 30;
	char uuid[37];

	uuid_unparse(id->uuid, uuid);
	printf("Device:                    %s\n"
	       "Block size:                %u\n"
	       "Device size:               %.2f GB (%llu blocks)\n"
	       "Filesystem size:           %.2f GB (%llu blocks)\n"
	       "Journals:                  %u\n"
	       "Journal size:              %uMB\n"
	       "Resource groups:           %u\n"
	       "Locking protocol:          \"%s\"\n"
	       "Lock table:                \"%s\"\n"
	       "UUID:                      %s\n",
	       run->args.device, plan->geom.bsize,
	       (double)plan->device_blocks * plan->geom.bsize / gb,
	       (unsigned long long)plan->device_blocks,
	       (double)plan->fs_blocks * plan->geom.bsize / gb,
	       (unsigned long long)plan->fs_blocks, plan->journals,
	       plan->jsize_mb, plan->group_count, id->lockproto, id->locktable,
	       uuid);
}

/* ---- all of it --------------------------------------------------------- */

static int run_mkfs(struct mkfs_run *run)
{
	int status = STATUS_REFUSED;

	if (make_identity(run) || open_device(run) || plan_volume(run))
		return STATUS_REFUSED;
	warn_about_device(run);
	if (run->args.debug)
		print_plan(run);
	if (confirm(run))
		status = write_volume(run);
	if (status == STATUS_DONE && !run->args.quiet)
		print_summary(run);
	return status;
}

/* "ugfs mkfs" or the name of the helper that mkfs(8) calls. */
static const char *program_name(const char *argv0)
{
	const char *slash = strrchr(argv0, '/');

	if (strcmp(argv0, "mkfs") == 0)
		return "ugfs mkfs";
	return slash ? slash + 1 : argv0;
}

int mkfs_main(int argc, char **argv)
{
	struct mkfs_run run = { .program = program_name(argv[0]) };
	char why[WHY_BYTES];
	int status = STATUS_DONE;

	if (mkfs_args_parse(argc, argv, &run.args, why, sizeof(why))) {
		complain(&run, "%s", why);
		fprintf(stderr, "Try \"%s --help\".\n", run.program);
		return STATUS_REFUSED;
	}
	switch (run.args.action) {
	case MKFS_HELP:
		mkfs_args_help(stdout, run.program);
		break;
	case MKFS_HELP_EXTENDED:
		mkfs_args_help_extended(stdout);
		break;
	case MKFS_VERSION:
		puts("ugfs " UGFS_VERSION);
		break;
	case MKFS_RUN:
		status = run_mkfs(&run);
		break;
	}
	mkfs_plan_free(&run.plan);
	blkdev_close(run.dev);
	return status;
}
