/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * statistics.c - what a mount process has done, as lines of its log.
 */
#include <inttypes.h>

#include "base/log.h"
#include "daemon/statistics.h"

/* The bound that a share of the times counted stayed below. */
static uint64_t percentile_ns(const uint64_t histogram[FUSE_HISTOGRAM],
			      unsigned percent)
{
	uint64_t total = 0, seen = 0;
	unsigned i;

	for (i = 0; i < FUSE_HISTOGRAM; i++)
		total += histogram[i];
	for (i = 0; i < FUSE_HISTOGRAM - 1; i++) {
		seen += histogram[i];
		if (seen * 100 >= total * percent)
			break;
	}
	return total ? 2ull << i : 0;
}

static void log_requests(const char *who, struct fuse_session *session)
{
	struct fuse_session_stats st;

	fuse_session_get_stats(session, &st);
	ug_info(who, "statistics: requests %" PRIu64, st.requests);
	ug_info(who, "statistics: inline %" PRIu64, st.inline_done);
	ug_info(who, "statistics: handed-over %" PRIu64, st.handed_over);
	ug_info(who, "statistics: workers-peak %u", st.workers_peak);
	ug_info(who, "statistics: inline-median-ns-below %" PRIu64,
		percentile_ns(st.inline_ns, 50));
	ug_info(who, "statistics: inline-99th-ns-below %" PRIu64,
		percentile_ns(st.inline_ns, 99));
	ug_info(who, "statistics: waiting-median-ns-below %" PRIu64,
		percentile_ns(st.lane_ns, 50));
	for (unsigned i = 0; i < FUSE_OPCODES; i++)
		if (st.by_opcode[i])
			ug_info(who, "statistics: %s %" PRIu64,
				fuse_opcode_name(i), st.by_opcode[i]);
}

void statistics_log(const char *who, struct fuse_session *session,
		    struct fs *fs)
{
	struct fs_stats st;

	log_requests(who, session);
	fs_stats(fs, &st);
	ug_info(who, "statistics: inodes %" PRIu64, st.inodes);
	ug_info(who, "statistics: pages-bytes %" PRIu64, st.pages_bytes);
	ug_info(who, "statistics: buffers-bytes %" PRIu64, st.buffers_bytes);
}
