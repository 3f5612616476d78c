/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * statistics.h - what a mount process has done, as lines of its log.
 */
#ifndef UG_DAEMON_STATISTICS_H
#define UG_DAEMON_STATISTICS_H

#include "fs/fs.h"
#include "fuse/session.h"

/*
 * One line for each thing counted: requests by kind, how they were answered,
 * how long an answer from memory took, what the caches hold. After
 * fuse_session_run(), before fs_unmount().
 */
void statistics_log(const char *who, struct fuse_session *session,
		    struct fs *fs);

#endif
