/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_dirent.c - directory areas against a naive list of names, and against
 * bytes that want to lead a reader out of the area.
 * Source: docs/spec/gfs2-ondisk.md 4.2, 4.4.
 */
#include <errno.h>
#include <stdio.h>

#include "testing.h"

#define NAMES_MAX 64

/* The oracle: what should be in the directory, in no order. */
struct oracle {
	struct {
		char name[256];
		unsigned len;
		uint64_t addr;
	} e[NAMES_MAX];
	unsigned n;
};

static int oracle_find(const struct oracle *o, const char *name, unsigned len)
{
	for (unsigned i = 0; i < o->n; i++)
		if (o->e[i].len == len && !memcmp(o->e[i].name, name, len))
			return (int)i;
	return -1;
}

/* Few names of few lengths, so that hits and misses are both common. */
static unsigned pick_name(struct ug_prng *prng, char name[256])
{
	unsigned id = (unsigned)ug_prng_below(prng, 50);
	unsigned len = id % 7 == 0 ? 200 + id : 3 + id % 12;

	memset(name, 'n', len);
	name[0] = (char)('A' + id % 26);
	name[1] = (char)('A' + id / 26);
	return len;
}

static void check_against_oracle(const void *area, uint32_t area_len,
				 const struct oracle *o)
{
	const struct gfs2_dirent *de;
	uint32_t off = 0;
	unsigned live = 0;

	assert_int_equal(gfs2_dirents_check(area, 0, area_len), 0);
	while (off < area_len) {
		assert_int_equal(gfs2_dirent_at(area, area_len, off, &de), 0);
		if (!gfs2_dirent_is_sentinel(de)) {
			int i = oracle_find(o, gfs2_dirent_name(de),
					    be16_get(de->de_name_len));

			assert_true(i >= 0);
			assert_int_equal(be64_get(de->de_inum.no_addr),
					 o->e[i].addr);
			live++;
		}
		off += be16_get(de->de_rec_len);
	}
	assert_int_equal(live, o->n);
}

static void step_insert(void *area, uint32_t area_len, struct oracle *o,
			const char *name, unsigned len, uint64_t addr)
{
	uint32_t hash = gfs2_name_hash(name, len);
	bool fits = gfs2_dirent_fits(area, area_len, len);
	struct gfs2_dirent *de;

	de = gfs2_dirent_insert(area, area_len, name, len, hash, addr + 1, addr,
				8);
	assert_int_equal(de != NULL, fits);
	if (!de)
		return;
	assert_int_equal(be64_get(de->de_inum.no_formal_ino), addr + 1);
	assert_int_equal(be32_get(de->de_hash), hash);
	assert_int_equal(be16_get(de->de_type), 8);
	memcpy(o->e[o->n].name, name, len);
	o->e[o->n].len = len;
	o->e[o->n++].addr = addr;
}

static void step(struct ug_prng *prng, void *area, uint32_t area_len,
		 struct oracle *o)
{
	char name[256];
	unsigned len = pick_name(prng, name);
	uint32_t off, prev;
	int err = 1, i = oracle_find(o, name, len);
	const struct gfs2_dirent *de;

	de = gfs2_dirent_search(area, area_len, gfs2_name_hash(name, len), name,
				len, &off, &prev, &err);
	assert_int_equal(err, 0);
	assert_int_equal(de != NULL, i >= 0);
	if (!de) {
		step_insert(area, area_len, o, name, len,
			    1 + ug_prng_below(prng, 1u << 30));
		return;
	}
	assert_ptr_equal(de, (char *)area + off);
	assert_int_equal(be64_get(de->de_inum.no_addr), o->e[i].addr);
	if (ug_prng_below(prng, 3) == 0)
		return;
	gfs2_dirent_delete(area, area_len, off, prev);
	o->e[i] = o->e[--o->n];
}

static void test_random_steps(void **state)
{
	static const uint32_t lens[] = { 512 - 232, 1024 - 104, 4096 - 232,
					 4096 - 104 };

	for (unsigned seed = 0; seed < 40; seed++) {
		uint32_t area_len = lens[seed % 4];
		void *area = new_block(area_len);
		struct oracle o = { .n = 0 };
		struct ug_prng prng;

		ug_prng_seed(&prng, seed);
		gfs2_dirent_init_area(area, area_len);
		for (int i = 0; i < 2000; i++) {
			step(&prng, area, area_len, &o);
			check_against_oracle(area, area_len, &o);
		}
		free(area);
	}
}

/* An area takes as many names as its bytes allow, and not one more. */
static void test_fills_to_the_last_byte(void **state)
{
	const uint32_t len = 4096 - 104;
	void *area = new_block(len);
	char name[9];
	unsigned n = 0;

	gfs2_dirent_init_area(area, len);
	for (; gfs2_dirent_fits(area, len, 8); n++) {
		snprintf(name, sizeof(name), "%08u", n);
		assert_non_null(gfs2_dirent_insert(
			area, len, name, 8, gfs2_name_hash(name, 8), 1, 1, 8));
	}
	assert_int_equal(n, len / 48);
	assert_int_equal(gfs2_dirents_check(area, 0, len), 0);
	assert_null(gfs2_dirent_insert(area, len, "x", 1, 0, 1, 1, 8));
	free(area);
}

static void test_delete_first_and_others(void **state)
{
	const uint32_t len = 280;
	uint8_t *area = new_block(len);
	struct gfs2_dirent *first = (struct gfs2_dirent *)area;
	uint32_t off, prev;
	int err;

	gfs2_dirent_init_dir(area, len, 2, 20, 3, 30);
	gfs2_dirent_search(area, len, gfs2_name_hash("..", 2), "..", 2, &off,
			   &prev, &err);
	assert_int_equal(off, 48);
	assert_int_equal(prev, 0);
	gfs2_dirent_delete(area, len, off, prev);
	assert_int_equal(be16_get(first->de_rec_len), 280);
	assert_false(gfs2_dirent_is_sentinel(first));
	gfs2_dirent_search(area, len, gfs2_name_hash(".", 1), ".", 1, &off,
			   &prev, &err);
	gfs2_dirent_delete(area, len, off, prev);
	assert_true(gfs2_dirent_is_sentinel(first));
	assert_int_equal(be64_get(first->de_inum.no_addr), 0);
	assert_int_equal(be64_get(first->de_inum.no_formal_ino), 0);
	/* Its name is still there and must not be found. */
	assert_null(gfs2_dirent_search(area, len, gfs2_name_hash(".", 1), ".",
				       1, NULL, NULL, &err));
	assert_int_equal(err, 0);
	free(area);
}

/* The field of record off that is wrong, and what readers say. */
static void check_broken(void (*break_it)(uint8_t *area), uint32_t off)
{
	const uint32_t len = 280;
	uint8_t *area = new_block(len);
	const struct gfs2_dirent *de;

	gfs2_dirent_init_dir(area, len, 2, 20, 3, 30);
	assert_int_equal(gfs2_dirents_check(area, 0, len), 0);
	break_it(area);
	assert_int_equal(gfs2_dirents_check(area, 0, len), -EUCLEAN);
	assert_int_equal(gfs2_dirent_at(area, len, off, &de), -EUCLEAN);
	free(area);
}

static void rec_len_zero(uint8_t *a)
{
	((struct gfs2_dirent *)a)->de_rec_len = be16_of(0);
}
static void rec_len_odd(uint8_t *a)
{
	((struct gfs2_dirent *)a)->de_rec_len = be16_of(52);
}
static void rec_len_short(uint8_t *a)
{
	((struct gfs2_dirent *)a)->de_rec_len = be16_of(32);
}
static void rec_len_beyond(uint8_t *a)
{
	((struct gfs2_dirent *)(a + 48))->de_rec_len = be16_of(240);
}
static void name_len_zero(uint8_t *a)
{
	((struct gfs2_dirent *)(a + 48))->de_name_len = be16_of(0);
}
static void name_len_beyond(uint8_t *a)
{
	((struct gfs2_dirent *)a)->de_name_len = be16_of(9);
}
static void name_len_huge(uint8_t *a)
{
	((struct gfs2_dirent *)(a + 48))->de_name_len = be16_of(256);
}
static void sentinel_inside(uint8_t *a)
{
	((struct gfs2_dirent *)(a + 48))->de_inum.no_addr = be64_of(0);
}
static void half_a_sentinel_inside(uint8_t *a)
{
	((struct gfs2_dirent *)(a + 48))->de_inum.no_formal_ino = be64_of(0);
}

static void test_broken_records(void **state)
{
	check_broken(rec_len_zero, 0);
	check_broken(rec_len_odd, 0);
	check_broken(rec_len_short, 0);
	check_broken(rec_len_beyond, 48);
	check_broken(name_len_zero, 48);
	check_broken(name_len_beyond, 0);
	check_broken(name_len_huge, 48);
	check_broken(sentinel_inside, 48);
	check_broken(half_a_sentinel_inside, 48);
}

/* A last record that stops short leaves a rest that is no record. */
static void test_does_not_tile(void **state)
{
	const uint32_t len = 280;
	uint8_t *area = new_block(len);
	const struct gfs2_dirent *de;

	gfs2_dirent_init_dir(area, len, 2, 20, 3, 30);
	((struct gfs2_dirent *)(area + 48))->de_rec_len = be16_of(208);
	assert_int_equal(gfs2_dirents_check(area, 0, len), -EUCLEAN);
	assert_int_equal(gfs2_dirent_at(area, len, 256, &de), -EUCLEAN);
	assert_int_equal(gfs2_dirent_at(area, len, len, &de), -EUCLEAN);
	assert_int_equal(gfs2_dirent_at(area, len, UINT32_MAX, &de), -EUCLEAN);
	assert_int_equal(gfs2_dirents_check(area, len, len), -EUCLEAN);
	free(area);
}

/* Leftovers in an unused first record are nobody's business: 4.2. */
static void test_sentinel_leftovers(void **state)
{
	const uint32_t len = 280;
	uint8_t *area = new_block(len);
	struct gfs2_dirent *first = (struct gfs2_dirent *)area;

	gfs2_dirent_init_area(area, len);
	first->de_name_len = be16_of(65535);
	first->de_hash = be32_of(1);
	assert_int_equal(gfs2_dirents_check(area, 0, len), 0);
	assert_non_null(gfs2_dirent_insert(area, len, "a", 1, 5, 1, 1, 8));
	assert_int_equal(be16_get(first->de_rec_len), len);
	assert_int_equal(gfs2_dirents_check(area, 0, len), 0);
	free(area);
}

/* A search that meets a broken chain says so instead of "not found". */
static void test_search_reports_damage(void **state)
{
	const uint32_t len = 280;
	uint8_t *area = new_block(len);
	int err = 0;

	gfs2_dirent_init_dir(area, len, 2, 20, 3, 30);
	rec_len_beyond(area);
	assert_null(gfs2_dirent_search(area, len, 1, "x", 1, NULL, NULL, &err));
	assert_int_equal(err, -EUCLEAN);
	assert_false(gfs2_dirent_fits(area, len, 100));
	free(area);
}

static void test_hostile_bytes(void **state)
{
	const uint32_t len = 280;
	uint8_t *area = new_block(len);
	struct ug_prng prng;

	ug_prng_seed(&prng, 7);
	for (int i = 0; i < 100000; i++) {
		const struct gfs2_dirent *de;
		uint32_t off = 0;
		int err;

		gfs2_dirent_init_dir(area, len, 2, 20, 3, 30);
		for (int j = 0; j < 4; j++)
			area[ug_prng_below(&prng, len)] =
				(uint8_t)ug_prng_u64(&prng);
		gfs2_dirent_search(area, len, gfs2_name_hash("..", 2), "..", 2,
				   NULL, NULL, &err);
		assert_true(err == 0 || err == -EUCLEAN);
		while (off < len && !gfs2_dirent_at(area, len, off, &de))
			off += be16_get(de->de_rec_len);
		assert_int_equal(gfs2_dirents_check(area, 0, len),
				 off == len ? 0 : -EUCLEAN);
		if (gfs2_dirent_insert(area, len, "name", 4, 9, 1, 1, 8) &&
		    off == len)
			assert_int_equal(gfs2_dirents_check(area, 0, len), 0);
	}
	free(area);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_steps),
		cmocka_unit_test(test_fills_to_the_last_byte),
		cmocka_unit_test(test_delete_first_and_others),
		cmocka_unit_test(test_broken_records),
		cmocka_unit_test(test_does_not_tile),
		cmocka_unit_test(test_sentinel_leftovers),
		cmocka_unit_test(test_search_reports_damage),
		cmocka_unit_test(test_hostile_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
