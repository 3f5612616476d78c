/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mkfs_plan.c - sizes and places, before a single byte is written.
 *
 * Groups with stripes: every group begins at a multiple of the stripe unit and
 * is a whole number of stripe widths plus one unit long, so that the headers of
 * successive groups, which are written most, wander over all disks of the
 * stripe instead of meeting on one.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "tools/mkfs_plan.h"

#define LLU(x) ((unsigned long long)(x))
#define MB_SHIFT 20

#define DEFAULT_BSIZE 4096u
#define DEFAULT_RGSIZE_MB 256u

/* A sentence for the caller, and the error. */
static int __attribute__((format(printf, 4, 5)))
refuse(int err, char *why, size_t len, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (why)
		vsnprintf(why, len, fmt, ap);
	va_end(ap);
	return err;
}

static unsigned or_default(unsigned wish, unsigned value)
{
	return wish ? wish : value;
}

/* ---- limits of the wishes ---------------------------------------------- */

static int check_mb(const char *what, unsigned value, unsigned min,
		    unsigned max, char *why, size_t len)
{
	if (value == 0 || (value >= min && value <= max))
		return 0;
	return refuse(-EINVAL, why, len, "%s is %u MB, expected %u to %u MB",
		      what, value, min, max);
}

static int check_wishes(const struct mkfs_wishes *w, char *why, size_t len)
{
	int err;

	if (w->journals > MKFS_JOURNALS_MAX)
		return refuse(-EINVAL, why, len,
			      "number of journals is %u, expected 1 to %u",
			      w->journals, MKFS_JOURNALS_MAX);
	if (w->format &&
	    (w->format < GFS2_FORMAT_FS_MIN || w->format > GFS2_FORMAT_FS_MAX))
		return refuse(-EINVAL, why, len,
			      "format is %u, expected %u or %u", w->format,
			      GFS2_FORMAT_FS_MIN, GFS2_FORMAT_FS_MAX);
	err = check_mb("journal size", w->jsize_mb, MKFS_JSIZE_MIN_MB,
		       MKFS_JSIZE_MAX_MB, why, len);
	if (!err)
		err = check_mb("resource group size", w->rgsize_mb,
			       MKFS_RGSIZE_MIN_MB, MKFS_RGSIZE_MAX_MB, why,
			       len);
	if (!err)
		err = check_mb("quota change file size", w->qcsize_mb,
			       MKFS_QCSIZE_MIN_MB, MKFS_QCSIZE_MAX_MB, why,
			       len);
	return err;
}

static int plan_bsize(const struct mkfs_wishes *w,
		      const struct mkfs_device *dev, struct mkfs_plan *plan,
		      char *why, size_t len)
{
	uint32_t bsize = or_default(w->bsize, DEFAULT_BSIZE);

	if (gfs2_geom_init(&plan->geom, bsize))
		return refuse(-EINVAL, why, len,
			      "block size is %u, expected a power of two from "
			      "%u to %u",
			      bsize, GFS2_BSIZE_MIN, GFS2_BSIZE_MAX);
	if (bsize < dev->sector_bytes)
		return refuse(-EINVAL, why, len,
			      "block size is %u, expected at least the "
			      "device's sector size of %u",
			      bsize, dev->sector_bytes);
	return 0;
}

static int plan_size(const struct mkfs_wishes *w, const struct mkfs_device *dev,
		     struct mkfs_plan *plan, char *why, size_t len)
{
	uint64_t blocks = dev->size_bytes >> plan->geom.bshift;

	if (w->size_blocks > blocks)
		return refuse(-EINVAL, why, len,
			      "size is %llu blocks, but the device has only "
			      "%llu blocks of %u bytes",
			      LLU(w->size_blocks), LLU(blocks),
			      plan->geom.bsize);
	plan->device_blocks = w->size_blocks ? w->size_blocks : blocks;
	return 0;
}

/* ---- stripes ----------------------------------------------------------- */

static int plan_given_stripe(const struct mkfs_wishes *w,
			     struct mkfs_plan *plan, char *why, size_t len)
{
	uint32_t bsize = plan->geom.bsize;

	if (!w->sunit_bytes || !w->swidth_bytes)
		return refuse(-EINVAL, why, len,
			      "stripe unit is %llu and stripe width %llu "
			      "bytes, expected both or neither",
			      LLU(w->sunit_bytes), LLU(w->swidth_bytes));
	if (w->sunit_bytes % bsize)
		return refuse(-EINVAL, why, len,
			      "stripe unit is %llu bytes, expected a multiple "
			      "of the block size, %u",
			      LLU(w->sunit_bytes), bsize);
	if (w->swidth_bytes % w->sunit_bytes)
		return refuse(-EINVAL, why, len,
			      "stripe width is %llu bytes, expected a multiple "
			      "of the stripe unit, %llu",
			      LLU(w->swidth_bytes), LLU(w->sunit_bytes));
	plan->sunit = w->sunit_bytes / bsize;
	plan->swidth = w->swidth_bytes / bsize;
	return 0;
}

/*
 * A device that prefers transfers larger than its own sectors is striped; one
 * that says nothing sensible is taken as it is.
 */
static void plan_probed_stripe(const struct mkfs_device *dev,
			       struct mkfs_plan *plan)
{
	uint32_t bsize = plan->geom.bsize;
	uint32_t min = dev->io_min_bytes, opt = dev->io_opt_bytes;

	if (opt == 0 || min <= dev->physical_bytes || opt % min || min % bsize)
		return;
	plan->sunit = min / bsize;
	plan->swidth = opt / bsize;
}

static int plan_stripe(const struct mkfs_wishes *w,
		       const struct mkfs_device *dev, struct mkfs_plan *plan,
		       char *why, size_t len)
{
	int err = 0;

	if (w->sunit_bytes || w->swidth_bytes)
		err = plan_given_stripe(w, plan, why, len);
	else
		plan_probed_stripe(dev, plan);
	if (w->no_align)
		plan->sunit = plan->swidth = 0;
	if (!err && plan->swidth > plan->device_blocks)
		err = refuse(-ENOSPC, why, len,
			     "stripe width is %llu blocks, but the volume has "
			     "only %llu",
			     LLU(plan->swidth), LLU(plan->device_blocks));
	return err;
}

/* ---- journals ---------------------------------------------------------- */

unsigned mkfs_default_jsize_mb(uint32_t bsize, uint64_t blocks_per_journal)
{
	/* Blocks of volume below which a journal has so many blocks: 10.1. */
	static const struct {
		uint64_t below;
		uint32_t jblocks;
	} steps[] = {
		{ 131072, 2048 },	{ 524288, 4096 },
		{ 2097152, 8192 },	{ 4194304, 16384 },
		{ 268435456, 32768 },	{ 2684354560, 131072 },
		{ UINT64_MAX, 262144 },
	};
	size_t i = 0;
	unsigned mb;

	while (blocks_per_journal >= steps[i].below &&
	       i < UG_ARRAY_SIZE(steps) - 1)
		i++;
	mb = (unsigned)(((uint64_t)steps[i].jblocks * bsize) >> MB_SHIFT);
	return UG_MAX(mb, MKFS_JSIZE_MIN_MB);
}

void mkfs_journal_shape(const struct gfs2_geom *geom, uint32_t jblocks,
			struct mkfs_journal_shape *shape)
{
	uint32_t count = jblocks;

	*shape = (struct mkfs_journal_shape){ .total = 1 };
	shape->height = (unsigned)gfs2_height_for(geom, jblocks - 1);
	for (unsigned level = shape->height; level-- > 0;) {
		shape->count[level] = count;
		shape->total += count;
		count = UG_DIV_UP(count, geom->inptrs);
	}
}

static int plan_journals(const struct mkfs_wishes *w, struct mkfs_plan *plan,
			 char *why, size_t len)
{
	uint32_t bsize = plan->geom.bsize;
	struct mkfs_journal_shape shape;
	uint64_t half, min;

	plan->journals = or_default(w->journals, 1);
	plan->jsize_mb = w->jsize_mb;
	if (!plan->jsize_mb)
		plan->jsize_mb = mkfs_default_jsize_mb(
			bsize, plan->device_blocks / plan->journals);
	plan->jblocks =
		(uint32_t)(((uint64_t)plan->jsize_mb << MB_SHIFT) / bsize);

	/* Journals may take one half of the volume. */
	half = plan->device_blocks / 2;
	min = (uint64_t)plan->jblocks * plan->journals;
	if (half < min)
		return refuse(-ENOSPC, why, len,
			      "the volume has %llu blocks of %u bytes, "
			      "expected at least %llu for %u journals of %u MB "
			      "(journals take at most one half)",
			      LLU(plan->device_blocks), bsize, LLU(2 * min),
			      plan->journals, plan->jsize_mb);
	mkfs_journal_shape(&plan->geom, plan->jblocks, &shape);
	plan->jtotal = shape.total;
	return 0;
}

/* ---- resource groups --------------------------------------------------- */

static uint64_t round_up(uint64_t x, uint64_t to)
{
	return UG_DIV_UP(x, to) * to;
}

/* The length of a group of at least this many blocks. */
static uint64_t group_stride(const struct mkfs_plan *plan, uint64_t blocks)
{
	if (!plan->sunit)
		return blocks;
	return round_up(blocks, plan->swidth) + plan->sunit;
}

static uint64_t first_group(const struct mkfs_plan *plan)
{
	uint64_t addr = GFS2_SB_OFFSET_BYTES / plan->geom.bsize + 1;

	return plan->sunit ? round_up(addr, plan->sunit) : addr;
}

static uint64_t journal_stride(const struct mkfs_plan *plan)
{
	uint32_t data = UG_ALIGN_UP(plan->jtotal, GFS2_NBBY);

	return group_stride(
		plan, (uint64_t)data + gfs2_rgrp_length_for(&plan->geom, data));
}

/* n1 groups of t1 blocks, then n2 of t2. */
struct spread {
	uint64_t n1, n2, t1, t2;
};

/*
 * Groups of about equal size over space blocks: as many as the wished size
 * gives, rounded up, made smaller until they fit; then so many of them one
 * step smaller that the sum fits as well.
 */
static void spread_groups(const struct mkfs_plan *plan, uint64_t space,
			  struct spread *s)
{
	uint64_t step = plan->sunit ? plan->swidth : 1;
	uint64_t target =
		group_stride(plan, ((uint64_t)plan->rgsize_mb << MB_SHIFT) /
					   plan->geom.bsize);
	uint64_t n = space / target;
	uint64_t excess;

	if (n * target < space)
		n++;
	/* Smaller by whole steps while (target - step) * n >= space. */
	if ((target - step) * n >= space) {
		excess = target - step - (space - 1) / n;
		target -= round_up(excess, step);
	}
	*s = (struct spread){ .n1 = n, .t1 = target, .t2 = target - step };
	if (n * target >= space) {
		excess = n * target - space + 1;
		s->n2 = UG_DIV_UP(excess, step);
		s->n1 -= s->n2;
	}
}

static int groups_too_small(const struct mkfs_plan *plan, char *why, size_t len)
{
	return refuse(-ENOSPC, why, len,
		      "the volume has %llu blocks of %u bytes, which leaves "
		      "no room for a resource group behind the journals",
		      LLU(plan->device_blocks), plan->geom.bsize);
}

static int add_group(struct mkfs_plan *plan, uint64_t addr, uint64_t total)
{
	struct gfs2_rindex_info *ri = &plan->groups[plan->group_count];

	if (total > UINT32_MAX ||
	    gfs2_rgrp_layout(&plan->geom, addr, (uint32_t)total, ri))
		return -ENOSPC;
	plan->group_count++;
	plan->fs_blocks = ri->data0 + ri->data;
	return plan->fs_blocks <= plan->device_blocks ? 0 : -ENOSPC;
}

static int place_groups(struct mkfs_plan *plan, const struct spread *s)
{
	uint64_t addr = first_group(plan), stride = journal_stride(plan);
	int err = 0;

	for (unsigned k = 0; !err && k < plan->journals; k++, addr += stride)
		err = add_group(plan, addr, stride);
	for (uint64_t i = 0; !err && i < s->n1; i++, addr += s->t1)
		err = add_group(plan, addr, s->t1);
	for (uint64_t i = 0; !err && i < s->n2; i++, addr += s->t2)
		err = add_group(plan, addr, s->t2);
	return err;
}

static int plan_groups(const struct mkfs_wishes *w, struct mkfs_plan *plan,
		       char *why, size_t len)
{
	uint64_t begin, count;
	struct spread s;
	int err;

	plan->rgsize_mb = or_default(w->rgsize_mb, DEFAULT_RGSIZE_MB);
	if (!ug_mul_u64(plan->journals, journal_stride(plan), &begin) ||
	    !ug_add_u64(begin, first_group(plan), &begin) ||
	    begin >= plan->device_blocks)
		return groups_too_small(plan, why, len);
	spread_groups(plan, plan->device_blocks - begin, &s);
	count = plan->journals + s.n1 + s.n2;
	if (count > MKFS_GROUPS_MAX)
		return refuse(-EFBIG, why, len,
			      "the volume would have %llu resource groups of "
			      "%u MB, at most %u are supported: ask for larger "
			      "ones",
			      LLU(count), plan->rgsize_mb, MKFS_GROUPS_MAX);
	plan->groups = calloc(count, sizeof(*plan->groups));
	if (!plan->groups)
		return refuse(-ENOMEM, why, len,
			      "no memory for %llu resource groups", LLU(count));
	err = place_groups(plan, &s);
	return err ? groups_too_small(plan, why, len) : 0;
}

int mkfs_plan_make(const struct mkfs_wishes *w, const struct mkfs_device *dev,
		   struct mkfs_plan *plan, char *why, size_t len)
{
	int err;

	*plan = (struct mkfs_plan){
		.format = or_default(w->format, GFS2_FORMAT_FS_MAX),
		.qcsize_mb = or_default(w->qcsize_mb, MKFS_QCSIZE_MIN_MB),
	};
	err = check_wishes(w, why, len);
	if (!err)
		err = plan_bsize(w, dev, plan, why, len);
	if (!err)
		err = plan_size(w, dev, plan, why, len);
	if (!err)
		err = plan_stripe(w, dev, plan, why, len);
	if (!err)
		err = plan_journals(w, plan, why, len);
	if (!err)
		err = plan_groups(w, plan, why, len);
	if (err)
		mkfs_plan_free(plan);
	return err;
}

void mkfs_plan_free(struct mkfs_plan *plan)
{
	free(plan->groups);
	plan->groups = NULL;
	plan->group_count = 0;
}
