/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fuzz_ondisk.c - every decoder of src/ondisk on one block.
 *
 * Input: a byte of choices, then the block, filled up with zeroes. The choices:
 * bits 0-1 the block size, bit 2 the format, bit 7 repairs the checksums first,
 * so that what lies behind them is reached. A decoder must stay inside the
 * block (the sanitizer watches), and what it accepts must survive an encoder.
 */
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"
#include "ondisk/codec.h"

#define ADDR 17u

/* Where bytes go that are only to be touched. */
static volatile unsigned sum;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void repair_checksums(const struct gfs2_geom *geom, void *block)
{
	struct gfs2_log_header *lh = block;

	if (gfs2_meta_type(block) == GFS2_METATYPE_RG)
		gfs2_rgrp_seal(block);
	if (gfs2_meta_type(block) != GFS2_METATYPE_LH)
		return;
	lh->lh_hash = be32_of(0);
	lh->lh_hash = be32_of(ug_crc32(block, 48));
	lh->lh_crc =
		be32_of(ug_crc32c_raw((char *)block + 52, geom->bsize - 52));
}

static void fuzz_sb(const void *block)
{
	struct gfs2_sb_info sb, back;
	uint8_t again[512];
	char why[200];

	for (size_t len = 0; len <= 512; len += 34)
		gfs2_sb_decode(block, len, &sb, why, sizeof(why));
	if (gfs2_sb_decode(block, 512, &sb, NULL, 0))
		return;
	gfs2_sb_encode(&sb, again);
	must(gfs2_sb_decode(again, 512, &back, NULL, 0) == 0);
	must(back.bsize == sb.bsize && back.root_addr == sb.root_addr);
}

static void fuzz_dinode(const struct gfs2_geom *geom, const void *block)
{
	struct gfs2_dinode_info di;
	uint8_t again[GFS2_BSIZE_MAX];
	char why[200];

	if (gfs2_dinode_decode(geom, block, ADDR, &di, why, sizeof(why)))
		return;
	/* All that is not a field is kept, so the block comes out the same. */
	memcpy(again, block, geom->bsize);
	gfs2_dinode_encode(&di, again);
	gfs2_meta_set_jid(again, 0);
	must(gfs2_dinode_decode(geom, again, ADDR, &di, NULL, 0) == 0);
	must(memcmp(again + 24, (const char *)block + 24, geom->bsize - 24) ==
	     0);
}

static void fuzz_area(void *area, uint32_t len, const char *name,
		      unsigned name_len)
{
	uint32_t hash = gfs2_name_hash(name, name_len);
	uint32_t off = 0, prev = 0;
	const struct gfs2_dirent *de;
	bool sound = gfs2_dirents_check(area, 0, len) == 0;
	int err;

	de = gfs2_dirent_search(area, len, hash, name, name_len, &off, &prev,
				&err);
	must(!(sound && err));
	if (de && sound) {
		gfs2_dirent_delete(area, len, off, prev);
		must(gfs2_dirents_check(area, 0, len) == 0);
	}
	if (gfs2_dirent_insert(area, len, name, name_len, hash, 1, 1, 8) &&
	    sound) {
		must(gfs2_dirents_check(area, 0, len) == 0);
		must(gfs2_dirent_search(area, len, hash, name, name_len, NULL,
					NULL, &err));
	}
}

static void fuzz_ea(const struct gfs2_geom *geom, const uint8_t *block,
		    uint32_t fs_format)
{
	struct gfs2_ea_info ea = { .last = false };
	uint32_t off = GFS2_EA_FIRST_OFF;
	int err = 0;

	for (; !ea.last && !err; off += ea.rec_len) {
		err = gfs2_ea_at(geom, block, fs_format, off, &ea);
		if (err)
			break;
		/* Touch what was handed out. */
		for (unsigned i = 0; i < ea.name_len; i++)
			sum += (uint8_t)ea.name[i];
		for (unsigned i = 0; ea.value && i < ea.data_len; i++)
			sum += ea.value[i];
		for (unsigned i = 0; ea.ptrs && i < ea.num_ptrs; i++)
			sum += (unsigned)be64_get(ea.ptrs[i]);
	}
	if (gfs2_ea_check(geom, block, fs_format) == 0)
		must(err == 0 && off == geom->bsize);
}

static void fuzz_rgrp(const struct gfs2_geom *geom, const uint8_t *block)
{
	struct gfs2_rindex_info ri;
	struct gfs2_rgrp_info rg;
	unsigned start;
	uint32_t first, count;

	if (gfs2_rindex_decode(geom, block + 128, &ri))
		ri = (struct gfs2_rindex_info){ ADDR, 1, ADDR + 1, 64, 16 };
	gfs2_rgrp_bitmap_span(geom, &ri, block[24] % 4, &start, &first, &count);
	must((uint64_t)first + count <= ri.data);
	gfs2_bitmap_count(block + start, count, GFS2_BLKST_DINODE);
	gfs2_bitmap_find(block + start, count / 2, count, GFS2_BLKST_UNLINKED);
	if (gfs2_rgrp_decode(block, &ri, &rg) == 0)
		must((uint64_t)rg.free + rg.dinodes <= ri.data);
}

static void fuzz_journal(const struct gfs2_geom *geom, const void *block)
{
	struct gfs2_lh_info lh;
	struct gfs2_ld_info ld;
	uint8_t again[GFS2_BSIZE_MAX];

	if (gfs2_lh_decode(geom, block, &lh) == 0) {
		gfs2_lh_encode(geom, &lh, again);
		must(gfs2_lh_decode(geom, again, &lh) == 0);
	}
	if (gfs2_ld_decode(geom, block, &ld) == 0) {
		must(ld.length > 0);
		gfs2_ld_encode(geom, &ld, again);
		must(gfs2_ld_decode(geom, again, &ld) == 0);
	}
}

static void fuzz_dirs(const struct gfs2_geom *geom, uint8_t *block)
{
	char name[GFS2_NAME_MAX];
	unsigned len = 1 + block[geom->bsize - 1] % GFS2_NAME_MAX;
	struct gfs2_leaf_info leaf;

	/* A name taken from the block itself has a chance of being there. */
	memcpy(name, block + 104 + 40, len);
	gfs2_leaf_decode(geom, block, &leaf);
	gfs2_leaf_check(geom, block);
	fuzz_area(gfs2_dinode_area(block), geom->stuffed_max, name, len);
	fuzz_area(gfs2_leaf_area(block), gfs2_leaf_area_len(geom), name, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t choice = size ? data[0] : 0;
	struct gfs2_geom geom;
	uint8_t *block;
	size_t len = size ? size - 1 : 0;

	must(gfs2_geom_init(&geom, 512u << (choice & 3)) == 0);
	block = calloc(1, geom.bsize);
	must(block != NULL);
	if (len)
		memcpy(block, data + 1, UG_MIN(len, geom.bsize));
	if (choice & 0x80)
		repair_checksums(&geom, block);
	fuzz_sb(block);
	fuzz_dinode(&geom, block);
	fuzz_ea(&geom, block, choice & 4 ? 1802 : 1801);
	fuzz_rgrp(&geom, block);
	fuzz_journal(&geom, block);
	fuzz_dirs(&geom, block);
	free(block);
	return 0;
}
