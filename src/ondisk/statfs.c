/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * statfs.c - the three counters of a statfs file, master or local.
 * Source: docs/spec/gfs2-ondisk.md 6.8.
 */
#include "ondisk/codec.h"

void gfs2_statfs_decode(const void *entry, struct gfs2_statfs_info *out)
{
	const struct gfs2_statfs_change *sc = entry;

	*out = (struct gfs2_statfs_info){
		.total = (int64_t)be64_get(sc->sc_total),
		.free = (int64_t)be64_get(sc->sc_free),
		.dinodes = (int64_t)be64_get(sc->sc_dinodes),
	};
}

void gfs2_statfs_encode(const struct gfs2_statfs_info *info, void *entry)
{
	struct gfs2_statfs_change *sc = entry;

	sc->sc_total = be64_of((uint64_t)info->total);
	sc->sc_free = be64_of((uint64_t)info->free);
	sc->sc_dinodes = be64_of((uint64_t)info->dinodes);
}
