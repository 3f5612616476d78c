/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tune.c - see tune.h.
 */
#include <errno.h>
#include <string.h>

#include "fs/file.h"
#include "fs/super.h"

#define SECONDS_MAX 86400u
#define READAHEAD_MAX (FILL_PAGES_MAX << PAGE_SHIFT)
#define CACHED_MAX 1000000000u

/* In the order in which they are shown. */
static const struct {
	const char *name;
	const char *unit;
	unsigned min, max;
	bool shared; /* of no use without other nodes */
} tunes[FS_TUNES] = {
	[TUNE_DEMOTE_SECS] = { "demote_secs", "s", 1, SECONDS_MAX, false },
	[TUNE_LOG_FLUSH_SECS] = { "log_flush_secs", "s", 1, SECONDS_MAX,
				  false },
	[TUNE_MAX_READAHEAD] = { "max_readahead", "bytes", 0, READAHEAD_MAX,
				 false },
	[TUNE_STATFS_QUANTUM] = { "statfs_quantum", "s", 0, SECONDS_MAX,
				  false },
	[TUNE_STATFS_PERCENT] = { "statfs_percent", "%", 0, 100, false },
	[TUNE_GLOCKS_CACHED_MAX] = { "glocks_cached_max", "glocks", 0,
				     CACHED_MAX, true },
	[TUNE_HOLD_MAX_MS] = { "hold_max_ms", "ms", 0, GLOCK_HOLD_MS_LIMIT,
			       true },
};

void tune_init(struct fs *fs)
{
	const struct fs_options *opt = &fs->fs_opt;
	const unsigned values[FS_TUNES] = {
		[TUNE_DEMOTE_SECS] = GLOCK_DEMOTE_SECS,
		[TUNE_LOG_FLUSH_SECS] = opt->commit_sec,
		[TUNE_MAX_READAHEAD] = READAHEAD_MAX,
		[TUNE_STATFS_QUANTUM] = opt->statfs_quantum_sec,
		[TUNE_STATFS_PERCENT] = opt->statfs_percent,
		[TUNE_GLOCKS_CACHED_MAX] = GLOCK_CACHED_MAX,
		[TUNE_HOLD_MAX_MS] = GLOCK_HOLD_MS,
	};

	for (unsigned i = 0; i < FS_TUNES; i++)
		atomic_store(&fs->fs_tune[i], values[i]);
}

void tune_glocks(struct fs *fs)
{
	glock_table_set_idle(fs->fs_shared_glocks,
			     tune_get(fs, TUNE_DEMOTE_SECS),
			     tune_get(fs, TUNE_GLOCKS_CACHED_MAX));
	glock_table_set_hold(fs->fs_shared_glocks,
			     tune_get(fs, TUNE_HOLD_MAX_MS));
}

/* The next one from i on that this mount has. */
static unsigned next(const struct fs *fs, unsigned i)
{
	while (i < FS_TUNES && tunes[i].shared && !fs->fs_shared_glocks)
		i++;
	return i;
}

bool fs_tunable(struct fs *fs, unsigned i, struct fs_tunable *out)
{
	unsigned at = next(fs, 0);

	while (i-- && at < FS_TUNES)
		at = next(fs, at + 1);
	if (at == FS_TUNES)
		return false;
	*out = (struct fs_tunable){
		.name = tunes[at].name,
		.unit = tunes[at].unit,
		.value = tune_get(fs, at),
		.min = tunes[at].min,
		.max = tunes[at].max,
	};
	return true;
}

int fs_tune(struct fs *fs, const char *name, unsigned value)
{
	unsigned i = next(fs, 0);

	while (i < FS_TUNES && strcmp(tunes[i].name, name))
		i = next(fs, i + 1);
	if (i == FS_TUNES)
		return -ENOENT;
	if (value < tunes[i].min || value > tunes[i].max)
		return -ERANGE;
	atomic_store(&fs->fs_tune[i], value);
	if (fs->fs_shared_glocks)
		tune_glocks(fs);
	return 0;
}
