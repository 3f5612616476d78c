/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * replay.c - committed images of a dirty journal to their places.
 *
 *   walk     from the tail to the head, descriptor by descriptor: note every
 *            image (address, place in the log) and every revoke. All is
 *            checked here, before anything is written.
 *   select   of each address the last image, unless a revoke stands behind it
 *   write    by ascending address, neighbours together
 *
 * Writing only the last image of a block gives the same result as writing all
 * in log order. A revoke hides the images in front of it; as both are
 * positions in a ring, "in front" is measured from the tail.
 *
 * Everything read from the log may be garbage, or worse: positions are checked
 * against the head, addresses against the volume, and against the journal
 * itself, which replay must not change under its own feet. Memory is bounded
 * by the size of the journal.
 *
 * A crash meanwhile costs nothing: the head is as it was, all is done again.
 * Source: docs/spec/gfs2-ondisk.md 7.6, 7.8.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/log.h"
#include "journal/replay.h"
#include "journal/revoke.h"
#include "ondisk/codec.h"

/* Images handled at a time: 4 MiB at 4 KiB. */
#define CHUNK_BLOCKS 1024u
/* Blocks of the log read at once when walking. */
#define WINDOW_BYTES (1u << 20)

struct image {
	uint64_t addr;
	uint32_t distance; /* of its place in the log, from the tail */
	bool metadata;	   /* it must begin with the magic */
	bool escaped;	   /* the magic was taken out */
};

struct replay {
	struct blkdev *dev;
	const struct logmap *map;
	const char *who;
	struct gfs2_geom geom;
	uint64_t fs_blocks;
	uint32_t tail;
	uint32_t length; /* blocks from the tail to before the head */

	uint8_t *desc; /* the descriptor being read */

	/* A piece of the log in memory. */
	uint8_t *window;
	uint32_t window_blocks; /* that have room */
	uint32_t window_pos;
	uint32_t window_count;

	struct image *images;
	size_t images_count;
	size_t images_size;
	struct revoke_set revokes; /* value: distance from the tail */
	struct replay_result result;
};

static int io_error(int err)
{
	return err == -ENOMEM ? err : -EIO;
}

static uint32_t ring_pos(const struct replay *rp, uint32_t distance)
{
	return (uint32_t)(((uint64_t)rp->tail + distance) % rp->map->blocks);
}

static int malformed(const struct replay *rp, uint32_t distance,
		     const char *what)
{
	ug_error(rp->who, "log block %u: %s; run fsck", ring_pos(rp, distance),
		 what);
	return -EUCLEAN;
}

/* A block of the log, by distance from the tail; valid until the next call. */
static int log_block(struct replay *rp, uint32_t distance,
		     const uint8_t **block)
{
	uint32_t bsize = rp->geom.bsize;
	uint32_t pos = ring_pos(rp, distance);

	if (pos < rp->window_pos || pos - rp->window_pos >= rp->window_count) {
		uint32_t run;
		uint64_t addr = logmap_addr(rp->map, pos, &run);
		int err;

		run = UG_MIN(run, rp->window_blocks);
		err = blkdev_read(rp->dev, rp->window, (uint64_t)run * bsize,
				  addr * bsize);
		rp->window_count = 0;
		if (err)
			return io_error(err);
		rp->window_pos = pos;
		rp->window_count = run;
	}
	*block = rp->window + (size_t)(pos - rp->window_pos) * bsize;
	return 0;
}

static int add_image(struct replay *rp, const struct image *image)
{
	if (rp->images_count == rp->images_size) {
		size_t size = rp->images_size ? rp->images_size * 2 : 256;
		struct image *images =
			realloc(rp->images, size * sizeof(*images));

		if (!images)
			return -ENOMEM;
		rp->images = images;
		rp->images_size = size;
	}
	rp->images[rp->images_count++] = *image;
	return 0;
}

static bool address_is_sound(const struct replay *rp, uint64_t addr)
{
	return addr != 0 && addr < rp->fs_blocks &&
	       !logmap_contains(rp->map, addr);
}

/* ---- walk -------------------------------------------------------------- */

static int walk_images(struct replay *rp, const struct gfs2_ld_info *ld,
		       uint32_t distance)
{
	bool jdata = ld->type == GFS2_LOG_DESC_JDATA;
	const be64 *slot = gfs2_ld_slots(rp->desc);

	for (uint32_t i = 0; i < ld->data1; i++) {
		struct image image = {
			.addr = be64_get(*slot++),
			.distance = distance + 1 + i,
			.metadata = !jdata,
		};
		int err;

		if (jdata)
			image.escaped = be64_get(*slot++) != 0;
		if (!address_is_sound(rp, image.addr))
			return malformed(rp, distance,
					 "an image's address is impossible");
		err = add_image(rp, &image);
		if (err)
			return err;
	}
	return 0;
}

/* A revoke of a block that cannot be in the log is void. */
static void add_revokes(struct replay *rp, const be64 *slots, uint32_t count,
			uint32_t distance)
{
	for (uint32_t i = 0; i < count; i++) {
		uint64_t addr = be64_get(slots[i]);

		/* Of several revokes of one block, the last counts. */
		if (addr && addr < rp->fs_blocks)
			revoke_set_put(&rp->revokes, addr, distance);
	}
	rp->result.revokes += count;
}

static int walk_revokes(struct replay *rp, const struct gfs2_ld_info *ld,
			uint32_t distance)
{
	uint32_t count = UG_MIN(ld->data1, rp->geom.ldptrs);
	uint32_t left = ld->data1 - count;

	if (revoke_set_reserve(&rp->revokes, rp->revokes.rs_count + ld->data1))
		return -ENOMEM;
	add_revokes(rp, gfs2_ld_slots(rp->desc), count, distance);
	while (left) {
		const uint8_t *block;
		int err = log_block(rp, ++distance, &block);

		if (err)
			return err;
		if (gfs2_check_meta(block, GFS2_METATYPE_LB))
			return malformed(rp, distance,
					 "not a continuation of revokes");
		count = UG_MIN(left, rp->geom.inptrs);
		add_revokes(
			rp,
			(const be64 *)(block + sizeof(struct gfs2_meta_header)),
			count, distance);
		left -= count;
	}
	return 0;
}

static int walk_descriptor(struct replay *rp, const uint8_t *block,
			   uint32_t *distance)
{
	uint32_t at = *distance;
	struct gfs2_ld_info ld;
	int err = 0;

	if (gfs2_ld_decode(&rp->geom, block, &ld))
		return malformed(rp, at, "the descriptor contradicts itself");
	if (ld.length > rp->length - at)
		return malformed(rp, at, "the descriptor goes past the head");
	memcpy(rp->desc, block, rp->geom.bsize);
	switch (ld.type) {
	case GFS2_LOG_DESC_METADATA:
	case GFS2_LOG_DESC_JDATA:
		err = walk_images(rp, &ld, at);
		break;
	case GFS2_LOG_DESC_REVOKE:
		err = walk_revokes(rp, &ld, at);
		break;
	default:
		ug_debug(rp->who, "log block %u: descriptor of type %u skipped",
			 ring_pos(rp, at), ld.type);
		break;
	}
	*distance = at + ld.length;
	return err;
}

static int walk_header(struct replay *rp, const uint8_t *block,
		       uint32_t *distance)
{
	struct gfs2_lh_info lh;

	if (gfs2_lh_decode(&rp->geom, block, &lh) ||
	    lh.blkno != ring_pos(rp, *distance))
		return malformed(rp, *distance, "not a valid log header");
	(*distance)++;
	return 0;
}

static int walk(struct replay *rp)
{
	uint32_t distance = 0;

	while (distance < rp->length) {
		const uint8_t *block;
		int err = log_block(rp, distance, &block);

		if (err)
			return err;
		switch (gfs2_meta_type(block)) {
		case GFS2_METATYPE_LH:
			err = walk_header(rp, block, &distance);
			break;
		case GFS2_METATYPE_LD:
			err = walk_descriptor(rp, block, &distance);
			break;
		default:
			err = malformed(rp, distance,
					"neither descriptor nor header");
			break;
		}
		if (err)
			return err;
	}
	return 0;
}

/* ---- select ------------------------------------------------------------ */

static void drop_revoked(struct replay *rp)
{
	size_t kept = 0;

	for (size_t i = 0; i < rp->images_count; i++) {
		const struct image *image = &rp->images[i];
		const struct revoke *rv =
			revoke_set_find(&rp->revokes, image->addr);

		if (rv && image->distance < rv->rv_value)
			rp->result.blocks_revoked++;
		else
			rp->images[kept++] = *image;
	}
	rp->images_count = kept;
}

/* In log order, so that the log is read from one end to the other. */
static int check_magics(struct replay *rp)
{
	for (size_t i = 0; i < rp->images_count; i++) {
		const struct image *image = &rp->images[i];
		const uint8_t *block;
		int err;

		if (!image->metadata)
			continue;
		err = log_block(rp, image->distance, &block);
		if (err)
			return err;
		if (be32_get(*(const be32 *)block) != GFS2_MAGIC)
			return malformed(rp, image->distance,
					 "an image of metadata has no header");
	}
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct image *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->distance < y->distance ? -1 : x->distance > y->distance;
}

static void keep_latest(struct replay *rp)
{
	size_t kept = 0;

	if (rp->images_count)
		qsort(rp->images, rp->images_count, sizeof(*rp->images),
		      by_address);
	for (size_t i = 0; i < rp->images_count; i++) {
		if (i + 1 < rp->images_count &&
		    rp->images[i + 1].addr == rp->images[i].addr)
			continue;
		rp->images[kept++] = rp->images[i];
	}
	rp->images_count = kept;
}

/* ---- write ------------------------------------------------------------- */

/* Some of the images, by address; block i of mem is for the i-th. */
struct chunk {
	struct replay *rp;
	const struct image *images;
	unsigned count;
	uint8_t *mem;
	unsigned order[CHUNK_BLOCKS]; /* their indexes, by place in the log */
	struct iovec iov[CHUNK_BLOCKS];
};

static int by_distance(const void *a, const void *b, void *arg)
{
	const struct image *images = arg;
	uint32_t x = images[*(const unsigned *)a].distance;
	uint32_t y = images[*(const unsigned *)b].distance;

	return x < y ? -1 : x > y;
}

/* One read for images that stand together in the log, the first'th on. */
static int chunk_read_run(struct chunk *chunk, unsigned first, unsigned *next)
{
	const struct replay *rp = chunk->rp;
	uint32_t bsize = rp->geom.bsize;
	uint32_t distance = chunk->images[chunk->order[first]].distance;
	uint32_t run;
	uint64_t addr = logmap_addr(rp->map, ring_pos(rp, distance), &run);
	unsigned n = 0;

	while (first + n < chunk->count && n < run &&
	       chunk->images[chunk->order[first + n]].distance ==
		       distance + n) {
		chunk->iov[n].iov_base =
			chunk->mem + (size_t)chunk->order[first + n] * bsize;
		chunk->iov[n].iov_len = bsize;
		n++;
	}
	*next = first + n;
	return blkdev_readv(rp->dev, chunk->iov, (int)n, addr * bsize);
}

static int chunk_read(struct chunk *chunk)
{
	unsigned at = 0;
	int err = 0;

	for (unsigned i = 0; i < chunk->count; i++)
		chunk->order[i] = i;
	qsort_r(chunk->order, chunk->count, sizeof(*chunk->order), by_distance,
		(void *)chunk->images);
	while (!err && at < chunk->count)
		err = chunk_read_run(chunk, at, &at);
	for (unsigned i = 0; !err && i < chunk->count; i++) {
		be32 *word = (be32 *)(chunk->mem +
				      (size_t)i * chunk->rp->geom.bsize);

		if (chunk->images[i].escaped)
			*word = be32_of(GFS2_MAGIC);
	}
	return err;
}

static int chunk_write(struct chunk *chunk)
{
	const struct replay *rp = chunk->rp;
	uint32_t bsize = rp->geom.bsize;
	unsigned at = 0;
	int err = 0;

	while (!err && at < chunk->count) {
		uint64_t addr = chunk->images[at].addr;
		unsigned n = 1;

		while (at + n < chunk->count &&
		       chunk->images[at + n].addr == addr + n)
			n++;
		err = blkdev_write(rp->dev, chunk->mem + (size_t)at * bsize,
				   (uint64_t)n * bsize, addr * bsize, 0);
		at += n;
	}
	return err;
}

static int write_chunks(struct replay *rp, struct chunk *chunk)
{
	size_t at = 0;
	int err = 0;

	chunk->rp = rp;
	while (!err && at < rp->images_count) {
		chunk->images = rp->images + at;
		chunk->count = (unsigned)UG_MIN(rp->images_count - at,
						(size_t)CHUNK_BLOCKS);
		err = chunk_read(chunk);
		if (!err)
			err = chunk_write(chunk);
		at += chunk->count;
	}
	return err;
}

static int write_images(struct replay *rp)
{
	size_t blocks = UG_MIN(rp->images_count, (size_t)CHUNK_BLOCKS);
	struct chunk *chunk = malloc(sizeof(*chunk));
	int err = -ENOMEM;

	if (!chunk)
		return -ENOMEM;
	/* One more, as there may be no image at all. */
	chunk->mem = blkdev_alloc((blocks + 1) * rp->geom.bsize);
	if (chunk->mem)
		err = write_chunks(rp, chunk);
	if (!err)
		err = blkdev_flush(rp->dev);
	free(chunk->mem);
	free(chunk);
	return err ? io_error(err) : 0;
}

static int replay_run(struct replay *rp)
{
	int err = walk(rp);

	if (err)
		return err;
	drop_revoked(rp);
	err = check_magics(rp);
	if (err)
		return err;
	keep_latest(rp);
	rp->result.blocks_replayed = (uint32_t)rp->images_count;
	return write_images(rp);
}

int replay_journal(struct blkdev *dev, uint32_t block_bytes,
		   const struct logmap *map, uint64_t fs_blocks,
		   const struct replay_head *head, const char *who,
		   struct replay_result *result)
{
	struct replay rp = {
		.dev = dev,
		.map = map,
		.who = who,
		.fs_blocks = UG_MIN(fs_blocks, dev->size_bytes / block_bytes),
		.tail = head->tail,
	};
	int err;

	if (gfs2_geom_init(&rp.geom, block_bytes))
		return -EINVAL;
	if (head->tail >= map->blocks || head->blkno >= map->blocks) {
		ug_error(who, "the log header's tail %u is outside the journal",
			 head->tail);
		return -EUCLEAN;
	}
	rp.length =
		(uint32_t)(((uint64_t)head->blkno + map->blocks - head->tail) %
			   map->blocks);
	rp.window_blocks = UG_MIN(WINDOW_BYTES / block_bytes, map->blocks);
	rp.window = blkdev_alloc((size_t)rp.window_blocks * block_bytes);
	rp.desc = malloc(block_bytes);
	err = rp.window && rp.desc ? replay_run(&rp) : -ENOMEM;
	if (!err)
		*result = rp.result;
	free(rp.window);
	free(rp.desc);
	free(rp.images);
	revoke_set_fini(&rp.revokes);
	return err;
}
