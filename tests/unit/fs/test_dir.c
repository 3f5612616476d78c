/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_dir.c - the contents of directories against a naive oracle: a list of
 * names. Linear, hashed, split, doubled and chained directories, listings with
 * cookies while the directory changes; fsck.gfs2 has the last word each time.
 */
#include <time.h>
#include <unistd.h>

#include "base/crc.h"
#include "tests/unit/fs/names.h"

/* ---- the oracle: numbered names, and which of them are there ---- */

struct oracle {
	struct volume *v;
	uint64_t dir;
	unsigned count;
	uint64_t *ids; /* 0: not there */
	char *(*name)(unsigned n, char *buf);
	unsigned char *seen;
};

static void oracle_init(struct oracle *o, struct volume *v, uint64_t dir,
			unsigned count, char *(*name)(unsigned, char *))
{
	*o = (struct oracle){
		.v = v,
		.dir = dir,
		.count = count,
		.name = name,
		.ids = calloc(count, sizeof(uint64_t)),
		.seen = calloc(count, 1),
	};
}

static void oracle_fini(struct oracle *o)
{
	free(o->ids);
	free(o->seen);
}

static void oracle_make(struct oracle *o, unsigned n)
{
	char buf[300];

	o->ids[n] = make_file(o->v, o->dir, o->name(n, buf));
}

static void oracle_remove(struct oracle *o, unsigned n)
{
	char buf[300];

	assert_int_equal(unlink_name(o->v, o->dir, o->name(n, buf)), 0);
	o->ids[n] = 0;
}

static void oracle_look(struct oracle *o, unsigned n)
{
	struct fs_entry e;
	char buf[300];
	int err = look(o->v, o->dir, o->name(n, buf), &e);

	if (o->ids[n]) {
		assert_int_equal(err, 0);
		assert_int_equal(e.nodeid, o->ids[n]);
	} else {
		assert_int_equal(err, -ENOENT);
	}
}

/* Names are unique, so a name leads back to its number by the caller's hash. */
struct index {
	struct oracle *o;
	unsigned *slots;
	unsigned size;
};

static void index_init(struct index *x, struct oracle *o)
{
	char buf[300];
	unsigned n, at;

	x->o = o;
	for (x->size = 64; x->size < 3 * o->count; x->size *= 2)
		;
	x->slots = calloc(x->size, sizeof(unsigned));
	for (n = 0; n < o->count; n++) {
		char *name = o->name(n, buf);

		at = ug_crc32c_raw(name, strlen(name)) & (x->size - 1);
		while (x->slots[at])
			at = (at + 1) & (x->size - 1);
		x->slots[at] = n + 1;
	}
}

static unsigned index_find(struct index *x, const char *name, size_t len)
{
	unsigned at = ug_crc32c_raw(name, len) & (x->size - 1);
	char buf[300];

	for (; x->slots[at]; at = (at + 1) & (x->size - 1)) {
		const char *other = x->o->name(x->slots[at] - 1, buf);

		if (strlen(other) == len && !memcmp(other, name, len))
			return x->slots[at] - 1;
	}
	fail_msg("a name is listed that was never made");
	return 0;
}

/* ---- listings ---- */

struct listing {
	struct index *index;
	unsigned left; /* entries until the buffer is full */
	unsigned dots;
	uint64_t cookie;
	unsigned total;
};

static bool take_entry(void *arg, const struct fs_dirent *de)
{
	struct listing *l = arg;
	struct oracle *o = l->index->o;
	unsigned n;

	if (!l->left)
		return false;
	assert_true(de->next > 0 && de->next <= INT64_MAX);
	assert_true(de->next >= l->cookie);
	l->left--;
	l->cookie = de->next;
	l->total++;
	if (de->name[0] == '.' &&
	    (de->len == 1 || (de->len == 2 && de->name[1] == '.'))) {
		l->dots++;
		assert_int_equal(de->type, 4);
		return true;
	}
	n = index_find(l->index, de->name, de->len);
	assert_int_equal(o->seen[n], 0);
	o->seen[n] = 1;
	assert_int_equal(de->type, 8);
	if (o->ids[n])
		assert_int_equal(de->ino, o->ids[n]);
	return true;
}

static void list_part(struct listing *l, unsigned entries)
{
	struct inode *d = node(l->index->o->v, l->index->o->dir);

	l->left = entries;
	assert_int_equal(fs_readdir(&volume_req, d, l->cookie, take_entry, l),
			 0);
	inode_put(d);
}

/* The whole directory in pieces; must be exactly what the oracle has. */
static void list_all(struct index *x, unsigned piece)
{
	struct listing l = { .index = x };
	struct oracle *o = x->o;
	unsigned n;

	memset(o->seen, 0, o->count);
	do
		list_part(&l, piece);
	while (l.left == 0);
	assert_int_equal(l.dots, 2);
	for (n = 0; n < o->count; n++)
		if (o->seen[n] != (o->ids[n] != 0)) {
			char buf[300];

			fail_msg("%s: listed %d, there %d", o->name(n, buf),
				 o->seen[n], o->ids[n] != 0);
		}
}

/* ---- names ---- */

/* Lengths 4 to 243, so that records are of all sizes. */
static char *mixed_name(unsigned n, char *buf)
{
	unsigned pad = n * 7919u % 240u;

	if (n % 4)
		pad %= 12;
	sprintf(buf, "%04x", n);
	memset(buf + 4, 'a' + (int)(n % 26), pad);
	buf[4 + pad] = '\0';
	return buf;
}

static char *plain_name(unsigned n, char *buf)
{
	sprintf(buf, "file-%06u.txt", n);
	return buf;
}

/*
 * Names of one length that all have the same directory hash. The hash is
 * affine over GF(2): flipping a set of bits changes it by the exclusive or of
 * what each bit changes. So sets of bits that change nothing can be computed,
 * here within the lower four bits of each of 24 letters, and any combination of
 * these sets gives a further name.
 */
#define COLLIDING_LEN 24u
#define COLLIDING_SETS 20u

struct flips {
	uint32_t crc;
	unsigned char set[COLLIDING_LEN];
};

static struct flips colliding[COLLIDING_SETS];

static void base_name(char *name)
{
	memset(name, 0x60, COLLIDING_LEN);
	name[COLLIDING_LEN] = '\0';
}

static void one_bit(struct flips *f, unsigned bit)
{
	char name[COLLIDING_LEN + 1], other[COLLIDING_LEN + 1];

	base_name(name);
	base_name(other);
	memset(f, 0, sizeof(*f));
	f->set[bit / 4] = (unsigned char)(1u << bit % 4);
	other[bit / 4] ^= (char)f->set[bit / 4];
	f->crc = ug_crc32(name, COLLIDING_LEN) ^ ug_crc32(other, COLLIDING_LEN);
}

static void add_flips(struct flips *to, const struct flips *from)
{
	unsigned i;

	to->crc ^= from->crc;
	for (i = 0; i < COLLIDING_LEN; i++)
		to->set[i] ^= from->set[i];
}

/* Gaussian elimination: rows that end up with nothing are what we want. */
static void colliding_init(void)
{
	struct flips pivots[32] = { { 0 } }, row;
	unsigned bit, found = 0;

	for (bit = 0; bit < COLLIDING_LEN * 4 && found < COLLIDING_SETS;
	     bit++) {
		one_bit(&row, bit);
		while (row.crc) {
			unsigned top = 31u - (unsigned)__builtin_clz(row.crc);

			if (!pivots[top].crc) {
				pivots[top] = row;
				break;
			}
			add_flips(&row, &pivots[top]);
		}
		if (!row.crc)
			colliding[found++] = row;
	}
	assert_int_equal(found, COLLIDING_SETS);
}

static char *colliding_name(unsigned n, char *buf)
{
	unsigned i, k;

	base_name(buf);
	for (k = 0; k < COLLIDING_SETS; k++)
		for (i = 0; i < COLLIDING_LEN && n >> k & 1; i++)
			buf[i] ^= (char)colliding[k].set[i];
	return buf;
}

/* Different hashes that agree in the first 13 bits. */
static unsigned crowded[400];

static char *crowded_name(unsigned n, char *buf)
{
	sprintf(buf, "crowd%08x", crowded[n]);
	return buf;
}

static void crowded_init(void)
{
	unsigned found = 0, i;
	char buf[20];

	for (i = 0; found < UG_ARRAY_SIZE(crowded); i++) {
		sprintf(buf, "crowd%08x", i);
		if (ug_crc32(buf, 13) >> 19 == 0x1234u)
			crowded[found++] = i;
	}
}

/* ---- tests ---- */

static void remount(struct volume *v)
{
	volume_unmount(v);
	volume_fsck(v);
	volume_mount(v);
}

/* Remove everything, also the directory, and be clean. */
static void empty_and_end(struct oracle *o, const char *dirname)
{
	struct volume *v = o->v;
	unsigned n;

	for (n = 0; n < o->count; n++)
		if (o->ids[n])
			oracle_remove(o, n);
	assert_int_equal(rmdir_name(v, ROOT, dirname), 0);
	volume_unmount(v);
	volume_fsck(v);
	volume_mount(v);
	volume_unmount(v);
	volume_fsck(v);
	volume_remove(v);
	oracle_fini(o);
}

static void random_changes(struct oracle *o, struct index *x,
			   struct ug_prng *prng, unsigned steps,
			   unsigned prefer_make)
{
	char a[300], b[300];
	unsigned i, n, k;

	for (i = 0; i < steps; i++) {
		n = (unsigned)ug_prng_below(prng, o->count);
		k = (unsigned)ug_prng_below(prng, o->count);
		if (i % 97 == 0)
			list_all(x, 1 + (unsigned)ug_prng_below(prng, 40));
		if (ug_prng_below(prng, 8) == 0 && o->ids[n] && n != k) {
			/* Perhaps over an existing one. */
			assert_int_equal(rename_name(o->v, o->dir,
						     o->name(n, a), o->dir,
						     o->name(k, b)),
					 0);
			o->ids[k] = o->ids[n];
			o->ids[n] = 0;
		} else if (!o->ids[n] &&
			   ug_prng_below(prng, 10) < prefer_make) {
			oracle_make(o, n);
		} else if (o->ids[n] &&
			   ug_prng_below(prng, 10) >= prefer_make) {
			oracle_remove(o, n);
		}
		oracle_look(o, n);
		oracle_look(o, k);
	}
}

/* Grow, shrink, grow again, with names of all lengths. */
static void check_random(unsigned bsize, uint64_t seed)
{
	struct volume_geometry g = { .bsize = bsize, .size_mib = 64 };
	struct ug_prng prng;
	struct oracle o;
	struct index x;
	struct volume v;

	ug_prng_seed(&prng, seed);
	volume_make(&v, &g);
	volume_mount(&v);
	oracle_init(&o, &v, make_dir(&v, ROOT, "d"), 1500, mixed_name);
	index_init(&x, &o);
	random_changes(&o, &x, &prng, 60, 8); /* linear */
	random_changes(&o, &x, &prng, 1500, 9);
	remount(&v);
	list_all(&x, 50);
	random_changes(&o, &x, &prng, 800, 2);
	random_changes(&o, &x, &prng, 800, 8);
	list_all(&x, 1000000);
	free(x.slots);
	empty_and_end(&o, "d");
}

static void test_random(void **state)
{
	static const unsigned sizes[] = { 512, 1024, 2048, 4096 };
	unsigned i;

	for (i = 0; i < UG_ARRAY_SIZE(sizes); i++)
		check_random(sizes[i], 1000 + i);
}

/* All names in one leaf whatever the depth: chains at depth 17. */
static void check_colliding(unsigned bsize, unsigned count)
{
	struct volume_geometry g = { .bsize = bsize, .size_mib = 64 };
	struct oracle o;
	struct index x;
	struct volume v;
	unsigned n;

	colliding_init();
	volume_make(&v, &g);
	volume_mount(&v);
	oracle_init(&o, &v, make_dir(&v, ROOT, "d"), count, colliding_name);
	index_init(&x, &o);
	for (n = 0; n < count; n++)
		oracle_make(&o, n);
	/* 2^17 slots of 8 bytes. */
	assert_int_equal(attr_of(&v, o.dir).size, 1u << 20);
	list_all(&x, 7);
	remount(&v);
	for (n = 0; n < count; n++)
		oracle_look(&o, n);
	list_all(&x, 100);
	for (n = 0; n < count; n += 2)
		oracle_remove(&o, n);
	for (n = 0; n < count; n += 4)
		oracle_make(&o, n);
	list_all(&x, 1000000);
	free(x.slots);
	empty_and_end(&o, "d");
}

static void test_colliding(void **state)
{
	check_colliding(4096, 2500);
	check_colliding(512, 700);
}

/* A leaf that splits several times, and doubles several times, at once. */
static void check_crowded(unsigned bsize)
{
	struct volume_geometry g = { .bsize = bsize, .size_mib = 64 };
	struct oracle o;
	struct index x;
	struct volume v;
	unsigned n;

	crowded_init();
	volume_make(&v, &g);
	volume_mount(&v);
	oracle_init(&o, &v, make_dir(&v, ROOT, "d"), UG_ARRAY_SIZE(crowded),
		    crowded_name);
	index_init(&x, &o);
	for (n = 0; n < o.count; n++)
		oracle_make(&o, n);
	assert_true(attr_of(&v, o.dir).size > 8u << 13);
	list_all(&x, 9);
	remount(&v);
	list_all(&x, 33);
	free(x.slots);
	empty_and_end(&o, "d");
}

static void test_crowded(void **state)
{
	check_crowded(4096);
	check_crowded(512);
}

/* Change the directory between the parts of a listing. */
static void test_cookies(void **state)
{
	struct volume_geometry g = { .bsize = 1024, .size_mib = 64 };
	struct ug_prng prng;
	struct oracle o;
	struct index x;
	struct volume v;
	unsigned n, round;
	unsigned char *stays;

	ug_prng_seed(&prng, 7);
	volume_make(&v, &g);
	volume_mount(&v);
	oracle_init(&o, &v, make_dir(&v, ROOT, "d"), 3000, plain_name);
	index_init(&x, &o);
	stays = calloc(o.count, 1);
	for (round = 0; round < 3; round++) {
		struct listing l = { .index = &x };

		for (n = 0; n < o.count; n++)
			if (!o.ids[n] && n % 3 != round)
				oracle_make(&o, n);
		for (n = 0; n < o.count; n++)
			stays[n] = o.ids[n] != 0;
		memset(o.seen, 0, o.count);
		do {
			list_part(&l, 37);
			for (n = 0; n < 60; n++) {
				unsigned k =
					(unsigned)ug_prng_below(&prng, o.count);

				if (o.ids[k]) {
					oracle_remove(&o, k);
					stays[k] = 0;
				} else {
					oracle_make(&o, k);
				}
			}
		} while (l.left == 0);
		/* Never twice (take_entry), and what stayed, once. */
		for (n = 0; n < o.count; n++)
			if (stays[n])
				assert_int_equal(o.seen[n], 1);
	}
	free(stays);
	free(x.slots);
	empty_and_end(&o, "d");
}

/* The way of rm -r: list a part, remove it, go on. */
static void test_remove_while_listing(void **state)
{
	struct volume_geometry g = { .bsize = 4096, .size_mib = 64 };
	struct oracle o;
	struct index x;
	struct volume v;
	struct listing l = { 0 };
	unsigned n;

	volume_make(&v, &g);
	volume_mount(&v);
	oracle_init(&o, &v, make_dir(&v, ROOT, "d"), 5000, plain_name);
	index_init(&x, &o);
	for (n = 0; n < o.count; n++)
		oracle_make(&o, n);
	l.index = &x;
	do {
		list_part(&l, 100);
		for (n = 0; n < o.count; n++)
			if (o.seen[n] && o.ids[n])
				oracle_remove(&o, n);
	} while (l.left == 0);
	for (n = 0; n < o.count; n++)
		assert_int_equal(o.ids[n], 0);
	free(x.slots);
	empty_and_end(&o, "d");
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* One large directory at the smallest block size; most names are links. */
static void test_large(void **state)
{
	struct volume_geometry g = { .bsize = 512, .size_mib = 128 };
	unsigned n, count = 100000;
	struct oracle o;
	struct index x;
	struct volume v;
	char buf[300];
	double t;

	if (getenv("UG_TEST_QUICK"))
		count = 20000;
	volume_make(&v, &g);
	volume_mount(&v);
	oracle_init(&o, &v, make_dir(&v, ROOT, "d"), count, plain_name);
	index_init(&x, &o);
	t = seconds();
	for (n = 0; n < count; n++) {
		if (n % 10 == 0) {
			oracle_make(&o, n);
			continue;
		}
		o.ids[n] = o.ids[n - 1];
		plain_name(n, buf);
		assert_int_equal(link_name(&v, o.ids[n], o.dir, buf), 0);
	}
	print_message("%u names made, %.2f us each\n", count,
		      (seconds() - t) * 1e6 / count);
	t = seconds();
	for (n = 0; n < count; n++)
		oracle_look(&o, n);
	print_message("looked up, %.2f us each\n",
		      (seconds() - t) * 1e6 / count);
	t = seconds();
	list_all(&x, 400);
	print_message("listed, %.2f us each\n", (seconds() - t) * 1e6 / count);
	remount(&v);
	list_all(&x, 4000);
	t = seconds();
	free(x.slots);
	empty_and_end(&o, "d");
	print_message("removed and checked, %.2f us each\n",
		      (seconds() - t) * 1e6 / count);
}

/* ---- with attributes ---- */

struct plus {
	struct volume *v;
	struct index *index;
	unsigned left, total, without;
	uint64_t cookie;
};

static bool take_plus(void *arg, const struct fs_dirent *de,
		      const struct fs_entry *e)
{
	struct plus *p = arg;
	unsigned n;

	if (!p->left)
		return false;
	p->left--;
	p->cookie = de->next;
	p->total++;
	if (de->name[0] == '.') {
		assert_int_equal(e->nodeid, 0);
		return true;
	}
	n = index_find(p->index, de->name, de->len);
	assert_int_equal(e->nodeid, p->index->o->ids[n]);
	assert_int_equal(e->attr.ino, e->nodeid);
	assert_int_equal(e->attr.mode, S_IFREG | 0644);
	fs_forget(p->v->fs, e->nodeid, 1);
	return true;
}

static void test_plus(void **state)
{
	struct volume_geometry g = { .bsize = 4096, .size_mib = 64 };
	struct fs_req hasty = volume_req;
	struct oracle o;
	struct index x;
	struct volume v;
	struct plus p = { .v = &v };
	struct inode *d;
	unsigned n;

	hasty.nowait = true;
	volume_make(&v, &g);
	volume_mount(&v);
	oracle_init(&o, &v, make_dir(&v, ROOT, "d"), 1000, plain_name);
	index_init(&x, &o);
	for (n = 0; n < o.count; n++)
		oracle_make(&o, n);
	remount(&v);
	p.index = &x;
	d = node(&v, o.dir);
	/* Nothing is in memory: nothing may be said without waiting. */
	p.left = 100;
	assert_int_equal(fs_readdirplus(&hasty, d, 0, take_plus, &p), -EAGAIN);
	assert_int_equal(p.total, 0);
	do {
		p.left = 100;
		assert_int_equal(
			fs_readdirplus(&volume_req, d, p.cookie, take_plus, &p),
			0);
	} while (p.left == 0);
	assert_int_equal(p.total, 1002);
	/* Now everything is. */
	p.total = 0;
	p.cookie = 0;
	p.left = 2000;
	assert_int_equal(fs_readdirplus(&hasty, d, 0, take_plus, &p), 0);
	assert_int_equal(p.total, 1002);
	inode_put(d);
	free(x.slots);
	empty_and_end(&o, "d");
}

/* What is not in memory is not waited for; what is, is found at once. */
static void test_nowait_lookup(void **state)
{
	struct volume_geometry g = { .bsize = 4096, .size_mib = 64 };
	struct fs_req hasty = volume_req;
	const unsigned rounds = 20;
	struct fs_entry e;
	struct oracle o;
	struct volume v;
	struct inode *d;
	unsigned n, k;
	char buf[300];
	double t;

	hasty.nowait = true;
	volume_make(&v, &g);
	volume_mount(&v);
	oracle_init(&o, &v, make_dir(&v, ROOT, "d"), 10000, plain_name);
	for (n = 0; n < o.count; n++)
		oracle_make(&o, n);
	remount(&v);
	d = node(&v, o.dir);
	plain_name(5, buf);
	assert_int_equal(fs_lookup(&hasty, d, buf, strlen(buf), &e), -EAGAIN);
	for (n = 0; n < o.count; n++)
		oracle_look(&o, n);
	t = seconds();
	for (k = 0; k < rounds; k++)
		for (n = 0; n < o.count; n++) {
			plain_name(n, buf);
			assert_int_equal(
				fs_lookup(&hasty, d, buf, strlen(buf), &e), 0);
			assert_int_equal(e.nodeid, o.ids[n]);
			fs_forget(v.fs, e.nodeid, 1);
		}
	print_message("lookup and forget in memory: %.0f ns\n",
		      (seconds() - t) * 1e9 / (rounds * o.count));
	t = seconds();
	for (k = 0; k < rounds; k++)
		for (n = 0; n < o.count; n++) {
			plain_name(n, buf);
			buf[0] = 'x';
			assert_int_equal(
				fs_lookup(&hasty, d, buf, strlen(buf), &e),
				-ENOENT);
		}
	print_message("lookup of a name that is not there: %.0f ns\n",
		      (seconds() - t) * 1e9 / (rounds * o.count));
	inode_put(d);
	empty_and_end(&o, "d");
}

/* ---- crashes ---- */

/* One change of the directory: what the name names from then on. */
struct change {
	unsigned n;
	uint64_t id;
};

#define CHANGES_MAX 600

static void note(struct change *changes, unsigned *count, unsigned n,
		 uint64_t id)
{
	assert_true(*count < CHANGES_MAX);
	changes[(*count)++] = (struct change){ .n = n, .id = id };
}

static void change_and_note(struct oracle *o, struct ug_prng *prng,
			    struct change *changes, unsigned *count)
{
	unsigned n = (unsigned)ug_prng_below(prng, o->count);

	if (o->ids[n])
		oracle_remove(o, n);
	else
		oracle_make(o, n);
	note(changes, count, n, o->ids[n]);
	switch (ug_prng_below(prng, 60)) {
	case 0:
		fs_work_run(o->v->fs, FS_WORK_COMMIT, true);
		break;
	case 1:
		fs_work_run(o->v->fs, FS_WORK_CHECKPOINT, true);
		break;
	}
}

static bool note_seen(void *arg, const struct fs_dirent *de)
{
	struct index *x = arg;

	if (de->name[0] != '.')
		x->o->seen[index_find(x, de->name, de->len)] = 1;
	return true;
}

/* How many names differ between the directory and what the oracle says. */
static unsigned differences(struct index *x, const uint64_t *ids)
{
	struct inode *d = node(x->o->v, x->o->dir);
	unsigned n, differ = 0;

	memset(x->o->seen, 0, x->o->count);
	assert_int_equal(fs_readdir(&volume_req, d, 0, note_seen, x), 0);
	inode_put(d);
	for (n = 0; n < x->o->count; n++)
		differ += x->o->seen[n] != (ids[n] != 0);
	return differ;
}

/*
 * The directory must be as it was after some change since the last sync: then
 * all changes up to that one have survived, and none behind it.
 */
static void find_moment(struct index *x, uint64_t *ids,
			const struct change *changes, unsigned count)
{
	unsigned i = 0;

	while (differences(x, ids)) {
		if (i == count)
			fail_msg("no moment looked like this");
		ids[changes[i].n] = changes[i].id;
		i++;
	}
	memcpy(x->o->ids, ids, x->o->count * sizeof(*ids));
}

static void check_crashes(unsigned bsize, uint64_t seed)
{
	struct volume_geometry g = { .bsize = bsize, .size_mib = 64 };
	struct change *changes = calloc(CHANGES_MAX, sizeof(*changes));
	unsigned round, i, count;
	struct ug_prng prng;
	struct oracle o;
	struct volume v;
	struct index x;
	uint64_t *ids;

	ug_prng_seed(&prng, seed);
	volume_make(&v, &g);
	volume_mount(&v);
	oracle_init(&o, &v, make_dir(&v, ROOT, "d"), 900, mixed_name);
	index_init(&x, &o);
	ids = calloc(o.count, sizeof(*ids));
	for (round = 0; round < 8; round++) {
		assert_int_equal(fs_sync(v.fs), 0);
		memcpy(ids, o.ids, o.count * sizeof(*ids));
		count = 0;
		for (i = (unsigned)ug_prng_below(&prng, 300); i > 0; i--)
			change_and_note(&o, &prng, changes, &count);
		volume_crash(&v);
		volume_mount(&v);
		find_moment(&x, ids, changes, count);
		remount(&v);
	}
	free(ids);
	free(changes);
	free(x.slots);
	empty_and_end(&o, "d");
}

static void test_crashes(void **state)
{
	check_crashes(512, 11);
	check_crashes(4096, 12);
}

/* A large directory is being released when the machine stops. */
static void test_crash_while_freeing(void **state)
{
	struct volume_geometry g = { .bsize = 512, .size_mib = 64 };
	struct fs_entry e;
	struct ug_prng prng;
	struct volume v;
	unsigned round, n;
	uint64_t d, f;
	char buf[300];

	colliding_init();
	ug_prng_seed(&prng, 5);
	volume_make(&v, &g);
	volume_mount(&v);
	f = make_file(&v, ROOT, "f");
	for (round = 0; round < 6; round++) {
		d = make_dir(&v, ROOT, "d");
		for (n = 0; n < 1500; n++)
			assert_int_equal(
				link_name(&v, f, d, plain_name(n, buf)), 0);
		/* And a chain. */
		for (n = 0; n < 60; n++)
			assert_int_equal(
				link_name(&v, f, d, colliding_name(n, buf)), 0);
		for (n = 0; n < 1500; n++)
			assert_int_equal(unlink_name(&v, d, plain_name(n, buf)),
					 0);
		for (n = 0; n < 60; n++)
			assert_int_equal(
				unlink_name(&v, d, colliding_name(n, buf)), 0);
		assert_int_equal(rmdir_name(&v, ROOT, "d"), 0);
		assert_int_equal(fs_sync(v.fs), 0);
		/* Anywhere within the release, or after it. */
		usleep((unsigned)ug_prng_below(&prng, 4000));
		fs_work_run(v.fs, FS_WORK_COMMIT, true);
		volume_crash(&v);
		volume_mount(&v);
		assert_int_equal(look(&v, ROOT, "d", &e), -ENOENT);
		remount(&v);
	}
	volume_unmount(&v);
	volume_remove(&v);
}

/* ---- damage ---- */

/* Blocks of directories in an image: leaves, tables, and the dinode at addr. */
static unsigned directory_blocks(const unsigned char *image, size_t size,
				 unsigned bsize, uint64_t addr, size_t *offs,
				 unsigned max)
{
	static const unsigned char magic[] = { 1, 0x16, 0x19, 0x70, 0, 0, 0 };
	unsigned count = 0;
	size_t off;

	/* Behind the superblock: none of the metadata tree is hashed. */
	for (off = 1 << 17; off < size && count < max; off += bsize) {
		if (memcmp(image + off, magic, sizeof(magic)))
			continue;
		if (image[off + 7] == 6 || image[off + 7] == 7 ||
		    off == addr * bsize)
			offs[count++] = off;
	}
	return count;
}

static bool ignore_entry(void *arg, const struct fs_dirent *de)
{
	assert_in_range(de->len, 1, 255);
	return true;
}

static bool forget_entry(void *arg, const struct fs_dirent *de,
			 const struct fs_entry *e)
{
	struct volume *v = arg;

	if (e->nodeid)
		fs_forget(v->fs, e->nodeid, 1);
	return true;
}

/* Whatever comes of it: an answer or an error. */
static void use_damaged(struct volume *v, uint64_t id)
{
	struct fs_entry e;
	char buf[300];
	struct inode *d;
	unsigned n;

	if (fs_lookup_nodeid(v->fs, &volume_req, id, &e))
		return;
	d = fs_inode_get(v->fs, id);
	fs_readdir(&volume_req, d, 0, ignore_entry, NULL);
	fs_readdirplus(&volume_req, d, 0, forget_entry, v);
	for (n = 0; n < 300 && !fs_is_withdrawn(v->fs); n += 3) {
		plain_name(n, buf);
		if (!fs_lookup(&volume_req, d, buf, strlen(buf), &e))
			fs_forget(v->fs, e.nodeid, 1);
		fs_unlink(&volume_req, d, buf, strlen(buf));
		plain_name(n + 5000, buf);
		make_as(v, id, buf, S_IFREG | 0600, NULL);
		fs_rename(&volume_req, d, buf, strlen(buf), d, "new", 3, 0);
	}
	inode_put(d);
	fs_forget(v->fs, id, 1);
}

static void check_damage(unsigned bsize, unsigned rounds)
{
	struct volume_geometry g = { .bsize = bsize, .size_mib = 32 };
	const size_t size = 32u << 20;
	unsigned char *image = malloc(size);
	size_t offs[2000];
	unsigned n, k, count, round;
	struct ug_prng prng;
	struct volume v;
	char buf[300];
	uint64_t d, f;
	FILE *file;

	volume_make(&v, &g);
	volume_mount(&v);
	d = make_dir(&v, ROOT, "d");
	f = make_file(&v, ROOT, "f");
	for (n = 0; n < 1200; n++)
		assert_int_equal(link_name(&v, f, d, plain_name(n, buf)), 0);
	volume_unmount(&v);
	file = fopen(v.path, "r+");
	assert_int_equal(fread(image, 1, size, file), size);
	count = directory_blocks(image, size, bsize, d, offs, 2000);
	assert_true(count > 20);
	for (round = 0; round < rounds; round++) {
		ug_prng_seed(&prng, round);
		rewind(file);
		fwrite(image, 1, size, file);
		for (n = 0; n < 4; n++) {
			size_t off = offs[ug_prng_below(&prng, count)];

			/* Headers and first records most of all. */
			k = ug_prng_below(&prng, 2) ? 160 : bsize;
			off += ug_prng_below(&prng, k);
			fseek(file, (long)off, SEEK_SET);
			fputc((int)ug_prng_below(&prng, 256), file);
		}
		fflush(file);
		volume_mount(&v);
		use_damaged(&v, d);
		volume_crash(&v);
	}
	fclose(file);
	free(image);
	volume_remove(&v);
}

static void test_damage(void **state)
{
	const char *rounds = getenv("UG_TEST_ROUNDS");

	check_damage(512, rounds ? (unsigned)atoi(rounds) : 12);
	check_damage(4096, rounds ? (unsigned)atoi(rounds) : 12);
}

/* An argument picks tests by name, with * and ?. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_colliding),
		cmocka_unit_test(test_crowded),
		cmocka_unit_test(test_cookies),
		cmocka_unit_test(test_remove_while_listing),
		cmocka_unit_test(test_plus),
		cmocka_unit_test(test_nowait_lookup),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_crashes),
		cmocka_unit_test(test_crash_while_freeing),
		cmocka_unit_test(test_damage),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
