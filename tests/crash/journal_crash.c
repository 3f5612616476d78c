/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * journal_crash.c - the power fails at every moment of a random run.
 *
 * A run is a sequence of random transactions over a few hundred blocks, with
 * flushes and write-back between them, over a tiny journal that goes round many
 * times. The device records all writes and flushes. Then, for every event of
 * the record, disks are made that a crash at that moment could have left (all
 * arrived; what was not flushed lost, torn, reordered; the write in flight
 * torn), each is replayed, and must hold exactly the state after some
 * transaction T:
 *
 *   atomic    T is the last transaction of a flush, and every block is as it
 *             was after T
 *   durable   T is not older than what journal_flush() had returned for
 *   freed     a block that has become plain file data holds that data, and
 *             nothing of its former life
 *
 * Every transaction writes its number into one of a few root blocks, so the
 * highest number found there is T.
 *
 * Blocks change their use as the file system would: metadata, journaled data
 * (some that looks like a log header), plain data written before the
 * transaction that allocates it; a freed block is used again when, and only
 * when, the freeing transaction's commit callback has run.
 *
 *   journal_crash [--seed N] [--runs N]
 *
 * The same seed gives the same run and the same cuts, but for the order in
 * which several requests of one iopool_run() enter the record.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/prng.h"
#include "block/fault.h"
#include "block/record.h"
#include "jtest.h"

#define BLOCKS 200u
#define ROOTS 4u /* blocks 0 to 3 */
#define STEPS 250u
#define OPS_MAX 6u
#define SECTOR 512u

enum use {
	USE_FREE,
	USE_META,
	USE_JDATA,
	USE_DATA,
};

/* What a block was from a transaction on. */
struct version {
	uint64_t txn;
	enum use use;
	uint64_t value;
};

/* A write of plain data, in place. */
struct data_write {
	uint64_t life; /* which use of the block as data */
	uint64_t value;
};

struct mblock {
	struct version *versions;
	size_t versions_count;
	struct data_write *writes;
	size_t writes_count;
	uint64_t life;
	bool available; /* free, and the free is durable */
};

/* journal_flush() returned when the record had so many events. */
struct mark {
	size_t events;
	uint64_t txn;
};

struct sim {
	uint64_t seed;
	struct ug_prng prng;
	struct jtest jt;
	struct blkdev *dev;
	struct record *rec;
	struct mblock blocks[BLOCKS];
	uint64_t txn; /* the last one; 0: none */
	uint64_t batch_of[STEPS * 2 + 2];
	uint64_t generation; /* of the journal: it is opened again at times */
	struct mark marks[STEPS * 4];
	size_t marks_count;
	uint64_t value; /* the last one used */
	unsigned long cuts;
};

static uint64_t below(struct sim *sim, uint64_t limit)
{
	return ug_prng_below(&sim->prng, limit);
}

/* ---- content ----------------------------------------------------------- */

static void fill_words(uint8_t *block, uint32_t len, uint64_t value)
{
	for (uint32_t i = 0; i < len; i += 8) {
		uint64_t word = value * 0x9e3779b97f4a7c15u + i;

		memcpy(block + i, &word, sizeof(word));
	}
}

/* Journaled data of every kind that the log could be confused by. */
static void fill_jdata(struct sim *sim, uint8_t *block, uint64_t value)
{
	const be32 magic = be32_of(GFS2_MAGIC);
	struct gfs2_lh_info lh = {
		.v2 = true,
		.sequence = 1ull << 40,
		.blkno = (uint32_t)(value / 4 % sim->jt.log_blocks),
		.addr = value,
	};

	fill_words(block, sim->jt.bsize, value);
	switch (value % 4) {
	case 0:
		memcpy(block, &magic, sizeof(magic));
		break;
	case 1:
		memset(block, 0, 8);
		memcpy(block, &magic, sizeof(magic));
		break;
	case 2:
		gfs2_lh_encode(&sim->jt.geom, &lh, block);
		break;
	default:
		break;
	}
}

/* What the device must hold for this use and value; not for free blocks. */
static void fill_expected(struct sim *sim, uint8_t *block, enum use use,
			  uint64_t value)
{
	memset(block, 0, sim->jt.bsize);
	switch (use) {
	case USE_META:
		gfs2_meta_init(block, GFS2_METATYPE_IN);
		gfs2_meta_set_jid(block, JT_JID);
		jt_fill(&sim->jt, block, value);
		break;
	case USE_JDATA:
		fill_jdata(sim, block, value);
		break;
	case USE_DATA:
		fill_words(block, sim->jt.bsize, value);
		break;
	case USE_FREE:
		break;
	}
}

/* ---- the model --------------------------------------------------------- */

static void version_add(struct mblock *mb, uint64_t txn, enum use use,
			uint64_t value)
{
	mb->versions = reallocarray(mb->versions, mb->versions_count + 1,
				    sizeof(*mb->versions));
	mb->versions[mb->versions_count++] = (struct version){
		.txn = txn,
		.use = use,
		.value = value,
	};
}

/* As of after transaction txn. */
static struct version version_at(const struct mblock *mb, uint64_t txn)
{
	struct version v = { 0 };

	for (size_t i = 0; i < mb->versions_count; i++) {
		if (mb->versions[i].txn <= txn)
			v = mb->versions[i];
	}
	return v;
}

static struct version version_now(const struct mblock *mb)
{
	return version_at(mb, UINT64_MAX);
}

static void mark_durable(struct sim *sim)
{
	sim->marks[sim->marks_count++] = (struct mark){
		.events = record_count(sim->rec),
		.txn = sim->txn,
	};
}

/* ---- a run ------------------------------------------------------------- */

#define MUST(expr)                                                    \
	do {                                                          \
		int must_err = (expr);                                \
		if (must_err) {                                       \
			fprintf(stderr, "seed %llu: %s: %d\n",        \
				(unsigned long long)sim->seed, #expr, \
				must_err);                            \
			abort();                                      \
		}                                                     \
	} while (0)

static void write_data(struct sim *sim, uint32_t i, uint64_t life,
		       uint64_t value)
{
	struct mblock *mb = &sim->blocks[i];
	uint8_t block[4096];

	mb->writes = reallocarray(mb->writes, mb->writes_count + 1,
				  sizeof(*mb->writes));
	mb->writes[mb->writes_count++] = (struct data_write){ life, value };
	fill_expected(sim, block, USE_DATA, value);
	jt_write_block(&sim->jt, sim->jt.meta_first + i, block);
}

struct freed {
	struct commit_cb cb;
	struct mblock *mb;
};

static void freed_is_durable(struct commit_cb *cb, int err)
{
	struct freed *freed = ug_container_of(cb, struct freed, cb);

	if (!err)
		freed->mb->available = true;
	free(freed);
}

static void set_logged(struct sim *sim, struct trans *tr, uint32_t i,
		       enum use use, uint64_t value)
{
	struct mblock *mb = &sim->blocks[i];
	struct version now = version_now(mb);
	struct buf *b;

	if (now.use == use) {
		uint8_t expected[4096];

		b = jt_read(&sim->jt, i);
		fill_expected(sim, expected, use, now.value);
		MUST(memcmp(b->b_data, expected, sim->jt.bsize) != 0);
	} else {
		b = jt_new(&sim->jt, i);
		if (use == USE_META)
			gfs2_meta_init(b->b_data, GFS2_METATYPE_IN);
	}
	if (use == USE_META)
		trans_add_meta(tr, b);
	else
		trans_add_jdata(tr, b);
	fill_expected(sim, b->b_data, use, value);
	buf_put(b);
	version_add(mb, sim->txn, use, value);
}

static void free_one(struct sim *sim, struct trans *tr, uint32_t i)
{
	struct mblock *mb = &sim->blocks[i];
	struct freed *freed = malloc(sizeof(*freed));

	if (version_now(mb).use != USE_DATA)
		trans_free_block(tr, sim->jt.meta_first + i);
	freed->cb.fn = freed_is_durable;
	freed->mb = mb;
	trans_on_commit(tr, &freed->cb);
	version_add(mb, sim->txn, USE_FREE, 0);
}

/* Something sensible for the state that the block is in. */
static void change_block(struct sim *sim, struct trans *tr, uint32_t i,
			 uint64_t data_value)
{
	struct mblock *mb = &sim->blocks[i];
	enum use use = version_now(mb).use;

	if (use == USE_FREE) {
		mb->available = false;
		if (data_value) {
			version_add(mb, sim->txn, USE_DATA, data_value);
			return;
		}
		use = below(sim, 3) ? USE_META : USE_JDATA;
		set_logged(sim, tr, i, use, ++sim->value);
	} else if (use == USE_DATA || below(sim, 3) == 0) {
		free_one(sim, tr, i);
	} else {
		set_logged(sim, tr, i, use, ++sim->value);
	}
}

/* Blocks for a transaction, all different; free ones only if available. */
static unsigned choose_blocks(struct sim *sim, uint32_t *chosen, unsigned max)
{
	unsigned want = 1 + (unsigned)below(sim, max), n = 0;
	/* A busy part of the volume, so that blocks are used again soon. */
	uint32_t range = below(sim, 4) ? 24 : BLOCKS - ROOTS;

	for (unsigned tries = 0; tries < 4 * max && n < want; tries++) {
		uint32_t i = ROOTS + (uint32_t)below(sim, range);
		struct mblock *mb = &sim->blocks[i];
		bool ok = version_now(mb).use != USE_FREE || mb->available;

		for (unsigned k = 0; k < n; k++)
			ok &= chosen[k] != i;
		if (ok)
			chosen[n++] = i;
	}
	return n;
}

static void run_transaction(struct sim *sim)
{
	uint32_t root = (uint32_t)below(sim, ROOTS);
	uint64_t data_value[OPS_MAX] = { 0 };
	uint32_t chosen[OPS_MAX];
	unsigned n = choose_blocks(sim, chosen, OPS_MAX);
	struct trans tr;

	/* Plain data goes to its place before the transaction begins. */
	for (unsigned k = 0; k < n; k++) {
		struct mblock *mb = &sim->blocks[chosen[k]];

		if (version_now(mb).use == USE_FREE && below(sim, 2)) {
			data_value[k] = ++sim->value;
			write_data(sim, chosen[k], ++mb->life, data_value[k]);
		}
	}
	MUST(trans_begin(sim->jt.j, &tr, n + 1, n, 0));
	sim->txn++;
	for (unsigned k = 0; k < n; k++)
		change_block(sim, &tr, chosen[k], data_value[k]);
	set_logged(sim, &tr, root, USE_META, sim->txn);
	sim->batch_of[sim->txn] = sim->generation + trans_end(&tr);
}

static void overwrite_data(struct sim *sim)
{
	for (unsigned tries = 0; tries < 20; tries++) {
		uint32_t i = ROOTS + (uint32_t)below(sim, BLOCKS - ROOTS);
		struct mblock *mb = &sim->blocks[i];

		if (version_now(mb).use == USE_DATA) {
			write_data(sim, i, mb->life, ++sim->value);
			return;
		}
	}
}

static void reopen(struct sim *sim)
{
	jt_close(&sim->jt);
	mark_durable(sim);
	sim->generation += 1000000;
	jt_open(&sim->jt, sim->dev);
	MUST(!sim->jt.head.clean || sim->jt.replayed.blocks_replayed);
}

static void run_step(struct sim *sim)
{
	switch (below(sim, 32)) {
	case 0:
	case 1:
	case 2:
	case 3:
		MUST(journal_flush(sim->jt.j, UINT64_MAX));
		mark_durable(sim);
		break;
	case 4:
	case 5:
		MUST(journal_writeback(sim->jt.j, (unsigned)below(sim, 100)));
		break;
	case 6:
		MUST(journal_writeback(sim->jt.j, 0));
		mark_durable(sim);
		break;
	case 7:
		MUST(journal_writeback_owner(sim->jt.j, &sim->jt.owner));
		mark_durable(sim);
		break;
	case 8:
	case 9:
		overwrite_data(sim);
		break;
	case 10:
		if (below(sim, 4) == 0)
			reopen(sim);
		break;
	default:
		run_transaction(sim);
		break;
	}
}

static void sim_setup(struct sim *sim, uint64_t seed)
{
	static const uint32_t log_blocks[] = { 32, 48, 64, 150 };
	struct blkdev *memory;

	memset(sim, 0, sizeof(*sim));
	sim->seed = seed;
	ug_prng_seed(&sim->prng, seed);
	jt_init(&sim->jt, below(sim, 4) ? 512 : 4096, log_blocks[below(sim, 4)],
		1 + (unsigned)below(sim, 3), BLOCKS);
	sim->jt.cache_bytes = 64 * sim->jt.bsize;
	MUST(blkdev_open_memory(jt_device_bytes(&sim->jt), SECTOR, &memory));
	jt_format(&sim->jt, memory, below(sim, sim->jt.log_blocks));
	MUST(record_create(memory, &sim->rec, &sim->dev));
	jt_open(&sim->jt, sim->dev);
	for (uint32_t i = 0; i < BLOCKS; i++)
		sim->blocks[i].available = true;
}

static void sim_teardown(struct sim *sim)
{
	for (uint32_t i = 0; i < BLOCKS; i++) {
		free(sim->blocks[i].versions);
		free(sim->blocks[i].writes);
	}
	record_destroy(sim->rec);
	jt_fini(&sim->jt);
}

/* ---- after the crash --------------------------------------------------- */

struct cut {
	struct record_crash crash;
	const char *kind;
};

static int complain(struct sim *sim, const struct cut *cut, const char *what,
		    uint64_t a, uint64_t b)
{
	printf("FAILED: --seed %llu, cut after event %zu of %zu (%s): %s "
	       "(%llu, %llu)\n",
	       (unsigned long long)sim->seed, cut->crash.upto,
	       record_count(sim->rec), cut->kind, what, (unsigned long long)a,
	       (unsigned long long)b);
	return -EUCLEAN;
}

static void read_block(struct sim *sim, struct blkdev *image, uint32_t i,
		       uint8_t *block)
{
	MUST(blkdev_read(image, block, sim->jt.bsize,
			 (sim->jt.meta_first + i) * sim->jt.bsize));
}

static uint64_t last_transaction(struct sim *sim, struct blkdev *image,
				 uint8_t *block)
{
	uint64_t txn = 0;

	for (uint32_t i = 0; i < ROOTS; i++) {
		read_block(sim, image, i, block);
		if (!gfs2_check_meta(block, GFS2_METATYPE_IN))
			txn = UG_MAX(txn, jt_value(block));
	}
	return txn;
}

/* Every sector is from some write of this life of the block. */
static bool data_is_ours(struct sim *sim, const struct mblock *mb,
			 uint64_t life, const uint8_t *block)
{
	uint8_t expected[4096];

	for (uint32_t at = 0; at < sim->jt.bsize; at += SECTOR) {
		bool ours = false;

		for (size_t w = 0; w < mb->writes_count && !ours; w++) {
			if (mb->writes[w].life != life)
				continue;
			fill_expected(sim, expected, USE_DATA,
				      mb->writes[w].value);
			ours = !memcmp(block + at, expected + at, SECTOR);
		}
		if (!ours)
			return false;
	}
	return true;
}

static uint64_t life_of(const struct mblock *mb, uint64_t first_value)
{
	for (size_t w = 0; w < mb->writes_count; w++) {
		if (mb->writes[w].value == first_value)
			return mb->writes[w].life;
	}
	return 0;
}

static int check_block(struct sim *sim, const struct cut *cut,
		       struct blkdev *image, uint32_t i, uint64_t txn,
		       uint8_t *block)
{
	const struct mblock *mb = &sim->blocks[i];
	struct version v = version_at(mb, txn);
	uint8_t expected[4096];

	if (v.use == USE_FREE)
		return 0;
	read_block(sim, image, i, block);
	if (v.use == USE_DATA) {
		if (data_is_ours(sim, mb, life_of(mb, v.value), block))
			return 0;
		return complain(sim, cut, "foreign bytes in a data block", i,
				txn);
	}
	fill_expected(sim, expected, v.use, v.value);
	if (memcmp(block, expected, sim->jt.bsize) == 0)
		return 0;
	return complain(sim, cut, "a block is not as the transaction left it",
			i, txn);
}

/* What must be there at least: the last flush that had returned. */
static uint64_t durable_at(const struct sim *sim, const struct cut *cut)
{
	size_t events = cut->crash.upto - cut->crash.last_in_flight;
	uint64_t txn = 0;

	for (size_t i = 0; i < sim->marks_count; i++) {
		if (sim->marks[i].events <= events)
			txn = sim->marks[i].txn;
	}
	return txn;
}

static int check_state(struct sim *sim, const struct cut *cut,
		       struct blkdev *image, uint8_t *block)
{
	uint64_t txn = last_transaction(sim, image, block);
	uint64_t durable = durable_at(sim, cut);
	int err = 0;

	if (txn < durable)
		return complain(sim, cut, "a flushed transaction is lost", txn,
				durable);
	if (txn && txn < sim->txn &&
	    sim->batch_of[txn] == sim->batch_of[txn + 1])
		return complain(sim, cut, "half a flush", txn, txn + 1);
	for (uint32_t i = 0; i < BLOCKS && !err; i++)
		err = check_block(sim, cut, image, i, txn, block);
	return err;
}

/*
 * Replay is cut short by a failing device, now and then, and done again. The
 * image gets a layer then.
 */
static int recover_somehow(struct sim *sim, struct blkdev **image)
{
	struct fault_rule rule = {
		.ops = LAYER_WRITE | LAYER_FLUSH,
		.fail = 1,
	};
	struct fault *fault;

	if (below(sim, 8))
		return jt_recover(&sim->jt, *image);
	MUST(fault_open(*image, &fault, image));
	for (unsigned i = 0; i < 3; i++) {
		rule.pass = below(sim, 8);
		rule.carried_out = below(sim, 2);
		fault_set(fault, &rule);
		if (jt_recover(&sim->jt, *image) == 0)
			break;
	}
	fault_set(fault, NULL);
	return jt_recover(&sim->jt, *image);
}

/* The journal goes on from where recovery has left it. */
static void go_on(struct sim *sim, struct blkdev *image)
{
	struct jtest jt = sim->jt;

	jt_open(&jt, image);
	for (uint32_t i = 0; i < 10; i++) {
		jt_set(&jt, i, 1ull << 50);
		if (i % 3 == 0)
			MUST(journal_flush(jt.j, UINT64_MAX));
	}
	jt_crash(&jt);
	MUST(jt_recover(&jt, image));
	jt.dev = image;
	for (uint32_t i = 0; i < 10; i++)
		MUST(jt_on_device(&jt, i) != 1ull << 50);
	jt_open(&jt, image);
	jt_close(&jt);
}

static int check_cut(struct sim *sim, const struct cut *cut)
{
	uint8_t *block = blkdev_alloc(4096);
	struct blkdev *image;
	int err;

	sim->cuts++;
	MUST(record_image(sim->rec, &cut->crash, &image));
	err = recover_somehow(sim, &image);
	if (err)
		complain(sim, cut, "replay fails", (uint64_t)-err, 0);
	else
		err = check_state(sim, cut, image, block);
	if (!err && below(sim, 64) == 0)
		go_on(sim, image);
	blkdev_close(image);
	free(block);
	return err;
}

static int check_random_losses(struct sim *sim, struct cut *cut)
{
	size_t max = record_pending(sim->rec, &cut->crash, NULL, 0);
	struct record_loss *losses = calloc(max + 1, sizeof(*losses));
	int err;

	cut->crash.losses = losses;
	cut->crash.losses_count =
		record_losses_random(sim->rec, &cut->crash, &sim->prng, losses);
	err = check_cut(sim, cut);
	cut->crash.losses = NULL;
	cut->crash.losses_count = 0;
	free(losses);
	return err;
}

/* Without flushes and headers in flight, then with everything at risk. */
static int check_event(struct sim *sim, size_t upto)
{
	struct cut cut = { .crash.upto = upto, .kind = "all arrived" };
	int err = check_cut(sim, &cut);

	if (err)
		return err;
	cut.kind = "random losses";
	err = check_random_losses(sim, &cut);
	if (err || !upto)
		return err;
	cut.kind = "random losses, last in flight";
	cut.crash.last_in_flight = true;
	return check_random_losses(sim, &cut);
}

static int run(struct sim *sim, uint64_t seed)
{
	size_t events;
	int err = 0;

	sim_setup(sim, seed);
	for (unsigned i = 0; i < STEPS; i++)
		run_step(sim);
	if (below(sim, 2))
		jt_close(&sim->jt);
	else
		jt_crash(&sim->jt);
	blkdev_close(sim->dev);
	events = record_count(sim->rec);
	for (size_t upto = 0; upto <= events && !err; upto++)
		err = check_event(sim, upto);
	sim_teardown(sim);
	return err;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "runs", required_argument, NULL, 'r' },
		{ NULL, 0, NULL, 0 },
	};
	uint64_t seed = (uint64_t)time(NULL), runs = 20;
	unsigned long cuts = 0;
	static struct sim sim;
	bool one = false;
	int opt;

	while ((opt = getopt_long(argc, argv, "s:r:", options, NULL)) != -1) {
		if (opt == 's') {
			seed = strtoull(optarg, NULL, 0);
			one = true;
		} else if (opt == 'r') {
			runs = strtoull(optarg, NULL, 0);
		} else {
			return 2;
		}
	}
	for (uint64_t i = 0; i < (one ? 1 : runs); i++) {
		if (run(&sim, seed + i))
			return 1;
		cuts += sim.cuts;
	}
	printf("seeds %llu..%llu: %lu cuts\n", (unsigned long long)seed,
	       (unsigned long long)(seed + (one ? 0 : runs - 1)), cuts);
	return 0;
}
