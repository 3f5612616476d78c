/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * quota.c - entries of the quota file and slots of a quota_change file.
 * Source: docs/spec/gfs2-ondisk.md 8.
 */
#include "ondisk/codec.h"

void gfs2_quota_decode(const void *entry, struct gfs2_quota_info *out)
{
	const struct gfs2_quota *qu = entry;

	*out = (struct gfs2_quota_info){
		.limit = be64_get(qu->qu_limit),
		.warn = be64_get(qu->qu_warn),
		.value = (int64_t)be64_get(qu->qu_value),
	};
}

void gfs2_quota_encode(const struct gfs2_quota_info *info, void *entry)
{
	struct gfs2_quota *qu = entry;

	qu->qu_limit = be64_of(info->limit);
	qu->qu_warn = be64_of(info->warn);
	qu->qu_value = be64_of((uint64_t)info->value);
}

void gfs2_quota_change_decode(const void *slot,
			      struct gfs2_quota_change_info *out)
{
	const struct gfs2_quota_change *qc = slot;

	*out = (struct gfs2_quota_change_info){
		.change = (int64_t)be64_get(qc->qc_change),
		.flags = be32_get(qc->qc_flags),
		.id = be32_get(qc->qc_id),
	};
}

void gfs2_quota_change_encode(const struct gfs2_quota_change_info *info,
			      void *slot)
{
	struct gfs2_quota_change *qc = slot;

	qc->qc_change = be64_of((uint64_t)info->change);
	qc->qc_flags = be32_of(info->flags);
	qc->qc_id = be32_of(info->id);
}
