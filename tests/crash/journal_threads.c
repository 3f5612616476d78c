/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * journal_threads.c - many threads with transactions, flushes, write-back and
 * demotions at once; then the power fails at random moments of what happened.
 *
 * What must hold on every disk that a crash could have left, after replay:
 *
 *   accounts   blocks that hold a balance and a version. A transaction moves
 *              an amount between two of them, so the sum never changes. An
 *              account is not older than what was acknowledged as durable.
 *   tables     blocks whose entries say what other blocks are: free, metadata
 *              with this value, or plain data with this value. It must be
 *              true of each of these.
 *
 * Each account and each table has a mutex for what would be its glock. A
 * demotion takes one, makes its buffers durable in their places, looks at the
 * device, and drops them from the cache.
 *
 *   journal_threads [--seed N] [--ops N] [--cuts N]
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/prng.h"
#include "block/delay.h"
#include "block/record.h"
#include "jtest.h"

#define THREADS 4u
#define ACCOUNTS 40u
#define BALANCE 1000u
#define TABLES 4u
#define ENTRIES 32u /* of a table */
#define BSIZE 512u
#define SUM ((uint64_t)ACCOUNTS * BALANCE)

/* Test blocks: accounts, tables, then the blocks that tables speak of. */
#define TABLE_BLOCK(t) (ACCOUNTS + (t))
#define ENTRY_BLOCK(t, e) (ACCOUNTS + TABLES + (t)*ENTRIES + (e))
#define BLOCKS (ACCOUNTS + TABLES + TABLES * ENTRIES)

enum use {
	USE_FREE,
	USE_META,
	USE_DATA,
};

struct account {
	pthread_mutex_t lock;
	struct buf_owner owner;
};

struct table {
	pthread_mutex_t lock;
	struct buf_owner owner;
	/* Freed, and the free is not durable yet. */
	atomic_bool busy[ENTRIES];
	uint64_t value; /* the last one used */
};

/* An account was acknowledged to have this version at this moment. */
struct ack {
	size_t events;
	uint32_t account;
	uint32_t version;
};

struct sim {
	uint64_t seed;
	unsigned ops;
	struct jtest jt;
	struct blkdev *dev;
	struct record *rec;
	struct account accounts[ACCOUNTS];
	struct table tables[TABLES];
	atomic_bool stop;

	pthread_mutex_t ack_lock;
	struct ack *acks;
	size_t acks_count;
};

struct worker {
	pthread_t thread;
	struct sim *sim;
	struct ug_prng prng;
};

#define MUST(expr)                                                       \
	do {                                                             \
		int must_err = (expr);                                   \
		if (must_err) {                                          \
			fprintf(stderr, "seed %llu: %s:%d: %s: %d\n",    \
				(unsigned long long)sim->seed, __FILE__, \
				__LINE__, #expr, must_err);              \
			abort();                                         \
		}                                                        \
	} while (0)

/* ---- accounts ---------------------------------------------------------- */

static uint64_t account_value(uint32_t version, uint32_t balance)
{
	return (uint64_t)version << 32 | balance;
}

static struct buf *account_read(struct sim *sim, uint32_t i)
{
	struct buf *b;

	MUST(buf_read(sim->jt.cache, &sim->accounts[i].owner,
		      sim->jt.meta_first + i, 0, &b));
	MUST(!jt_is_whole(&sim->jt, b->b_data));
	return b;
}

static void account_add(struct sim *sim, struct buf *b, int32_t amount)
{
	uint64_t value = jt_value(b->b_data);

	jt_fill(&sim->jt, b->b_data,
		account_value((uint32_t)(value >> 32) + 1,
			      (uint32_t)value + (uint32_t)amount));
}

static void acknowledge(struct sim *sim, uint32_t account, uint32_t version)
{
	pthread_mutex_lock(&sim->ack_lock);
	sim->acks = reallocarray(sim->acks, sim->acks_count + 1,
				 sizeof(*sim->acks));
	sim->acks[sim->acks_count++] = (struct ack){
		.events = record_count(sim->rec),
		.account = account,
		.version = version,
	};
	pthread_mutex_unlock(&sim->ack_lock);
}

static void transfer(struct worker *w)
{
	struct sim *sim = w->sim;
	uint32_t i = (uint32_t)ug_prng_below(&w->prng, ACCOUNTS - 1);
	uint32_t k =
		i + 1 + (uint32_t)ug_prng_below(&w->prng, ACCOUNTS - 1 - i);
	int32_t amount = (int32_t)ug_prng_below(&w->prng, 100);
	struct buf *from, *to;
	struct trans tr;
	uint32_t version;
	uint64_t seq;

	pthread_mutex_lock(&sim->accounts[i].lock);
	pthread_mutex_lock(&sim->accounts[k].lock);
	from = account_read(sim, i);
	to = account_read(sim, k);
	MUST(trans_begin(sim->jt.j, &tr, 2, 0, 0));
	trans_add_meta(&tr, from);
	account_add(sim, from, -amount);
	trans_add_meta(&tr, to);
	account_add(sim, to, amount);
	version = (uint32_t)(jt_value(from->b_data) >> 32);
	seq = trans_end(&tr);
	buf_put(from);
	buf_put(to);
	pthread_mutex_unlock(&sim->accounts[k].lock);
	pthread_mutex_unlock(&sim->accounts[i].lock);
	if (ug_prng_below(&w->prng, 8) == 0) {
		MUST(journal_flush(sim->jt.j, seq));
		acknowledge(sim, i, version);
	}
}

/* ---- tables ------------------------------------------------------------ */

/* An entry of a table block: use in the lowest bits, value above. */
static be64 *table_entries(void *block)
{
	return gfs2_indirect_ptrs(block);
}

static void fill_data(uint8_t *block, uint64_t value)
{
	for (uint32_t at = 0; at < BSIZE; at += 8) {
		uint64_t word = (value + at) * 0x9e3779b97f4a7c15u;

		memcpy(block + at, &word, sizeof(word));
	}
}

struct freed {
	struct commit_cb cb;
	atomic_bool *busy;
};

static void freed_is_durable(struct commit_cb *cb, int err)
{
	struct freed *freed = ug_container_of(cb, struct freed, cb);

	if (!err)
		atomic_store(freed->busy, false);
	free(freed);
}

static void free_entry(struct sim *sim, struct trans *tr, uint32_t t,
		       uint32_t e, enum use use)
{
	struct freed *freed = malloc(sizeof(*freed));

	freed->cb.fn = freed_is_durable;
	freed->busy = &sim->tables[t].busy[e];
	atomic_store(freed->busy, true);
	if (use == USE_META)
		trans_free_block(tr, sim->jt.meta_first + ENTRY_BLOCK(t, e));
	trans_on_commit(tr, &freed->cb);
}

static void write_meta(struct sim *sim, struct trans *tr, uint32_t t,
		       uint32_t e, bool is_new, uint64_t value)
{
	uint64_t blkno = sim->jt.meta_first + ENTRY_BLOCK(t, e);
	struct buf_owner *owner = &sim->tables[t].owner;
	struct buf *b;

	if (is_new)
		MUST(buf_new(sim->jt.cache, owner, blkno, &b));
	else
		MUST(buf_read(sim->jt.cache, owner, blkno, 0, &b));
	trans_add_meta(tr, b);
	jt_fill(&sim->jt, b->b_data, value);
	buf_put(b);
}

static void change_entry(struct worker *w)
{
	struct sim *sim = w->sim;
	uint32_t t = (uint32_t)ug_prng_below(&w->prng, TABLES);
	uint32_t e = (uint32_t)ug_prng_below(&w->prng, ENTRIES);
	uint64_t dice = ug_prng_below(&w->prng, 4);
	struct table *table = &sim->tables[t];
	uint8_t data[BSIZE];
	struct trans tr;
	struct buf *b;
	enum use use;
	uint64_t value;
	be64 *entry;

	pthread_mutex_lock(&table->lock);
	MUST(buf_read(sim->jt.cache, &table->owner,
		      sim->jt.meta_first + TABLE_BLOCK(t), 0, &b));
	entry = &table_entries(b->b_data)[e];
	use = be64_get(*entry) & 3;
	value = ++table->value;
	if (use == USE_FREE && atomic_load(&table->busy[e]))
		goto out;
	if (use == USE_FREE && dice < 2) {
		fill_data(data, value);
		jt_write_block(&sim->jt, sim->jt.meta_first + ENTRY_BLOCK(t, e),
			       data);
	}
	MUST(trans_begin(sim->jt.j, &tr, 2, 1, 0));
	trans_add_meta(&tr, b);
	if (use == USE_FREE && dice < 2) {
		*entry = be64_of(value << 2 | USE_DATA);
	} else if (use == USE_FREE || (use == USE_META && dice < 2)) {
		write_meta(sim, &tr, t, e, use == USE_FREE, value);
		*entry = be64_of(value << 2 | USE_META);
	} else {
		free_entry(sim, &tr, t, e, use);
		*entry = be64_of(USE_FREE);
	}
	trans_end(&tr);
out:
	buf_put(b);
	pthread_mutex_unlock(&table->lock);
}

/* ---- demotion ---------------------------------------------------------- */

static void check_on_device(struct sim *sim, uint32_t i, struct buf *b)
{
	uint8_t block[BSIZE];

	jt_read_block(&sim->jt, sim->jt.meta_first + i, block);
	MUST(memcmp(block, b->b_data, BSIZE) != 0);
}

static void demote_account(struct worker *w)
{
	struct sim *sim = w->sim;
	uint32_t i = (uint32_t)ug_prng_below(&w->prng, ACCOUNTS);
	struct account *account = &sim->accounts[i];
	struct buf *b;

	pthread_mutex_lock(&account->lock);
	MUST(journal_writeback_owner(sim->jt.j, &account->owner));
	b = account_read(sim, i);
	check_on_device(sim, i, b);
	buf_put(b);
	buf_invalidate_owner(sim->jt.cache, &account->owner);
	pthread_mutex_unlock(&account->lock);
}

static void demote_table(struct worker *w)
{
	struct sim *sim = w->sim;
	uint32_t t = (uint32_t)ug_prng_below(&w->prng, TABLES);
	struct table *table = &sim->tables[t];

	pthread_mutex_lock(&table->lock);
	MUST(journal_writeback_owner(sim->jt.j, &table->owner));
	buf_invalidate_owner(sim->jt.cache, &table->owner);
	pthread_mutex_unlock(&table->lock);
}

/* ---- threads ----------------------------------------------------------- */

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	for (unsigned i = 0; i < w->sim->ops; i++) {
		uint64_t dice = ug_prng_below(&w->prng, 100);

		if (dice < 55)
			transfer(w);
		else if (dice < 97)
			change_entry(w);
		else if (dice < 99)
			demote_account(w);
		else
			demote_table(w);
	}
	return NULL;
}

static void *writeback_main(void *arg)
{
	struct worker *w = arg;
	struct sim *sim = w->sim;

	while (!atomic_load(&sim->stop)) {
		unsigned percent = (unsigned)ug_prng_below(&w->prng, 60);

		if (ug_prng_below(&w->prng, 4) == 0)
			percent = 0;
		MUST(journal_writeback(sim->jt.j, percent));
	}
	return NULL;
}

static void worker_start(struct worker *w, struct sim *sim, unsigned index,
			 void *(*fn)(void *))
{
	w->sim = sim;
	ug_prng_seed(&w->prng, sim->seed * 100 + index);
	pthread_create(&w->thread, NULL, fn, w);
}

static void run_threads(struct sim *sim)
{
	struct worker workers[THREADS], writeback;

	worker_start(&writeback, sim, THREADS, writeback_main);
	for (unsigned i = 0; i < THREADS; i++)
		worker_start(&workers[i], sim, i, worker_main);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	atomic_store(&sim->stop, true);
	pthread_join(writeback.thread, NULL);
}

static void lay_down(struct sim *sim, struct blkdev *dev)
{
	uint8_t block[BSIZE] = { 0 };

	sim->jt.dev = dev;
	jt_format(&sim->jt, dev, sim->seed % sim->jt.log_blocks);
	jt_fill(&sim->jt, block, account_value(0, BALANCE));
	for (uint32_t i = 0; i < ACCOUNTS; i++)
		jt_write_block(&sim->jt, sim->jt.meta_first + i, block);
	memset(block, 0, sizeof(block));
	gfs2_meta_init(block, GFS2_METATYPE_IN);
	for (uint32_t t = 0; t < TABLES; t++)
		jt_write_block(&sim->jt, sim->jt.meta_first + TABLE_BLOCK(t),
			       block);
}

static void sim_setup(struct sim *sim)
{
	struct blkdev *memory, *slow;
	struct delay *delay;

	jt_init(&sim->jt, BSIZE, 64 + (uint32_t)(sim->seed % 3) * 50, 2,
		BLOCKS);
	sim->jt.cache_bytes = (uint64_t)BSIZE * 64;
	MUST(blkdev_open_memory(jt_device_bytes(&sim->jt), BSIZE, &memory));
	lay_down(sim, memory);
	/* Requests take their time, so that others meet them half way. */
	MUST(delay_open(memory, &delay, &slow));
	MUST(record_create(slow, &sim->rec, &sim->dev));
	delay_set(delay, LAYER_WRITE | LAYER_FLUSH, 20 + sim->seed % 100);
	sim->jt.shared = sim->seed & 2;
	jt_open(&sim->jt, sim->dev);
	pthread_mutex_init(&sim->ack_lock, NULL);
	for (uint32_t i = 0; i < ACCOUNTS; i++) {
		pthread_mutex_init(&sim->accounts[i].lock, NULL);
		buf_owner_init(&sim->accounts[i].owner);
	}
	for (uint32_t t = 0; t < TABLES; t++) {
		pthread_mutex_init(&sim->tables[t].lock, NULL);
		buf_owner_init(&sim->tables[t].owner);
	}
}

/* The end of the mount; the owners' buffers go first. */
static void sim_end(struct sim *sim)
{
	if (sim->seed % 2)
		MUST(journal_shutdown(sim->jt.j));
	else
		journal_abort(sim->jt.j, -EIO);
	for (uint32_t i = 0; i < ACCOUNTS; i++) {
		buf_invalidate_owner(sim->jt.cache, &sim->accounts[i].owner);
		buf_owner_destroy(&sim->accounts[i].owner);
	}
	for (uint32_t t = 0; t < TABLES; t++) {
		buf_invalidate_owner(sim->jt.cache, &sim->tables[t].owner);
		buf_owner_destroy(&sim->tables[t].owner);
	}
	jt_teardown(&sim->jt);
	blkdev_close(sim->dev);
}

/* ---- after the crash --------------------------------------------------- */

static void image_read(struct sim *sim, struct blkdev *image, uint32_t i,
		       uint8_t *block)
{
	MUST(blkdev_read(image, block, BSIZE,
			 (sim->jt.meta_first + i) * BSIZE));
}

static const char *check_accounts(struct sim *sim, struct blkdev *image,
				  uint8_t *block, size_t events)
{
	uint32_t versions[ACCOUNTS];
	uint64_t sum = 0;

	for (uint32_t i = 0; i < ACCOUNTS; i++) {
		image_read(sim, image, i, block);
		if (!jt_is_whole(&sim->jt, block))
			return "an account is torn";
		versions[i] = (uint32_t)(jt_value(block) >> 32);
		sum += (uint64_t)(int64_t)(int32_t)jt_value(block);
	}
	if (sum != SUM)
		return "the sum of the accounts is wrong";
	for (size_t i = 0; i < sim->acks_count; i++) {
		const struct ack *ack = &sim->acks[i];

		if (ack->events <= events &&
		    versions[ack->account] < ack->version)
			return "an acknowledged transaction is lost";
	}
	return NULL;
}

static const char *check_entry(struct sim *sim, struct blkdev *image,
			       uint8_t *block, uint32_t i, uint64_t entry)
{
	uint8_t expected[BSIZE];

	image_read(sim, image, i, block);
	switch ((enum use)(entry & 3)) {
	case USE_FREE:
		return NULL;
	case USE_META:
		if (!jt_is_whole(&sim->jt, block) ||
		    jt_value(block) != entry >> 2)
			return "a metadata block is not as its table says";
		return NULL;
	case USE_DATA:
		fill_data(expected, entry >> 2);
		if (memcmp(block, expected, BSIZE))
			return "a data block is not as its table says";
		return NULL;
	}
	return "a table is broken";
}

static const char *check_tables(struct sim *sim, struct blkdev *image,
				uint8_t *block)
{
	uint64_t entries[ENTRIES];
	const char *wrong = NULL;

	for (uint32_t t = 0; t < TABLES && !wrong; t++) {
		image_read(sim, image, TABLE_BLOCK(t), block);
		for (uint32_t e = 0; e < ENTRIES; e++)
			entries[e] = be64_get(table_entries(block)[e]);
		for (uint32_t e = 0; e < ENTRIES && !wrong; e++)
			wrong = check_entry(sim, image, block,
					    ENTRY_BLOCK(t, e), entries[e]);
	}
	return wrong;
}

static int check_cut(struct sim *sim, const struct record_crash *crash)
{
	uint8_t *block = blkdev_alloc(4096);
	const char *wrong = NULL;
	struct blkdev *image;

	MUST(record_image(sim->rec, crash, &image));
	if (jt_recover(&sim->jt, image))
		wrong = "replay fails";
	if (!wrong)
		wrong = check_accounts(sim, image, block,
				       crash->upto - crash->last_in_flight);
	if (!wrong)
		wrong = check_tables(sim, image, block);
	if (wrong)
		printf("FAILED: --seed %llu, cut after event %zu of %zu: %s\n",
		       (unsigned long long)sim->seed, crash->upto,
		       record_count(sim->rec), wrong);
	blkdev_close(image);
	free(block);
	return wrong ? 1 : 0;
}

static int check_random_cut(struct sim *sim, struct ug_prng *prng)
{
	struct record_crash crash = {
		.upto = (size_t)ug_prng_below(prng, record_count(sim->rec) + 1),
	};
	struct record_loss *losses;
	int failed;

	crash.last_in_flight = crash.upto && ug_prng_below(prng, 2);
	losses = calloc(record_pending(sim->rec, &crash, NULL, 0) + 1,
			sizeof(*losses));
	if (ug_prng_below(prng, 4))
		crash.losses_count =
			record_losses_random(sim->rec, &crash, prng, losses);
	crash.losses = losses;
	failed = check_cut(sim, &crash);
	free(losses);
	return failed;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "ops", required_argument, NULL, 'o' },
		{ "cuts", required_argument, NULL, 'c' },
		{ NULL, 0, NULL, 0 },
	};
	static struct sim sim = { .ops = 1500 };
	struct record_crash end = { 0 };
	unsigned long cuts = 400;
	struct ug_prng prng;
	int opt, failed;

	sim.seed = (uint64_t)time(NULL);
	while ((opt = getopt_long(argc, argv, "s:o:c:", options, NULL)) != -1) {
		if (opt == 's')
			sim.seed = strtoull(optarg, NULL, 0);
		else if (opt == 'o')
			sim.ops = (unsigned)strtoul(optarg, NULL, 0);
		else if (opt == 'c')
			cuts = strtoul(optarg, NULL, 0);
		else
			return 2;
	}
	sim_setup(&sim);
	run_threads(&sim);
	sim_end(&sim);
	end.upto = record_count(sim.rec);
	failed = check_cut(&sim, &end);
	ug_prng_seed(&prng, sim.seed);
	for (unsigned long i = 0; i < cuts && !failed; i++)
		failed = check_random_cut(&sim, &prng);
	printf("seed %llu: %zu events, %zu acknowledged, %lu cuts\n",
	       (unsigned long long)sim.seed, end.upto, sim.acks_count, cuts);
	free(sim.acks);
	record_destroy(sim.rec);
	jt_fini(&sim.jt);
	return failed;
}
