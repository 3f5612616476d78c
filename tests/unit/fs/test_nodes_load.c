/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_nodes_load.c - several mounts of one volume at work at the same time, on
 * the same names, against a model; now and then one of them dies.
 *
 * The model has slots: names in some directories, one of which makes files with
 * journaled data. A call works on one slot or two, whose locks in the model
 * it holds, so that its outcome is known; calls on different slots meet in the
 * directories, resource groups and blocks that they share.
 *
 * A slot remembers which life of which node has changed it last, as long as no
 * other node has seen it, and no fsync has been answered. When that node dies
 * the slot may be as before the change, as after it, or in between for its
 * data: it is looked at, and what is found is what holds from then on.
 *
 * Usage: test_nodes_load [deaths] [seed [steps [lockstep]]]
 * deaths: nodes die; without it none does. lockstep: one call at a time, from
 * one thread; the same seed makes the same calls.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "fs/inode.h"
#include "ondisk/ondisk.h"
#include "tests/unit/fs/nodecalls.h"

#define DIRS 3u
#define SLOTS 48u
#define DATA_MAX 50000u
#define NOBODY NODES_MAX

static uint64_t seed = 1;
static unsigned steps = 300;
static bool lockstep;

struct slot {
	pthread_mutex_t lock;
	unsigned dir, number;
	bool exists;
	uint64_t id;
	uint32_t size;
	uint8_t *data;
	unsigned writer; /* NOBODY: durable */
	unsigned life;	 /* of the writer */
};

struct load {
	struct nodes n;
	uint64_t dirs[DIRS];
	struct slot slots[DIRS][SLOTS];
	atomic_uint deaths[NODES_MAX];
	atomic_uint calls;
};

/*
 * Who makes calls at a node. calling is held around what is done there, after
 * the locks of slots: whoever waits for one of these may be held up by another
 * node, until ours is buried.
 */
struct worker {
	pthread_mutex_t calling;
	struct load *l;
	unsigned node, life;
	struct fs *fs;
	struct ug_prng prng;
	uint8_t *buf;
	unsigned steps;
	pthread_t thread;
};

static unsigned below(struct worker *w, unsigned n)
{
	return (unsigned)ug_prng_below(&w->prng, n);
}

static void wrong(struct worker *w, const struct slot *s, const char *what,
		  long got, long expected)
{
	fprintf(stderr,
		"seed %llu: node %u, dir %u, slot %u: %s: %ld, expected %ld\n",
		(unsigned long long)seed, w->node, s->dir, s->number, what, got,
		expected);
	abort();
}

static bool is_dead(const struct worker *w)
{
	return atomic_load(&w->l->deaths[w->node]) != w->life;
}

/* Its last writer has died since. */
static bool is_unsure(const struct worker *w, const struct slot *s)
{
	return s->writer != NOBODY &&
	       atomic_load(&w->l->deaths[s->writer]) != s->life;
}

/* False: somebody has died, and nothing follows from the outcome. */
static bool expect(struct worker *w, const struct slot *s, const char *what,
		   long got, long expected)
{
	if (is_dead(w) || is_unsure(w, s))
		return false;
	if (got != expected)
		wrong(w, s, what, got, expected);
	return true;
}

static const char *name_of(const struct slot *s, char *text)
{
	sprintf(text,
		"a name that is long enough for a few of them to fill a block "
		"of a directory, and which has the number %u",
		s->number);
	return text;
}

/* ---- calls ---- */

static int find(struct worker *w, const struct slot *s, struct fs_entry *e)
{
	char name[160];

	return look_at(w->fs, w->l->dirs[s->dir], name_of(s, name), e);
}

static void forget(struct worker *w, uint64_t id)
{
	if (below(w, 3))
		fs_forget(w->fs, id, 1);
}

static ssize_t read_all(struct worker *w, uint64_t id)
{
	struct inode *ip = get(w->fs, id);
	ssize_t n = fs_read(&volume_req, ip, w->buf, DATA_MAX, 0, 0);

	inode_put(ip);
	return n;
}

static const char *second_name(const struct slot *s, char *text)
{
	name_of(s, text);
	strcat(text, ", twice");
	return text;
}

/*
 * What is there is what holds. It is durable, but for a second name that goes
 * now (do_link()).
 */
static void resolve(struct worker *w, struct slot *s)
{
	char other[170];
	bool twice =
		!unlink_at(w->fs, w->l->dirs[s->dir], second_name(s, other));
	struct fs_entry e;
	int err = find(w, s, &e);
	ssize_t n = 0;

	if (!err) {
		n = read_all(w, e.nodeid);
		fs_forget(w->fs, e.nodeid, 1);
	}
	if (is_dead(w))
		return;
	if ((err && err != -ENOENT) || n < 0)
		wrong(w, s, "after a death", err ? err : n, 0);
	s->exists = !err;
	s->writer = twice ? w->node : NOBODY;
	s->life = w->life;
	if (err)
		return;
	if (n != (ssize_t)e.attr.size)
		wrong(w, s, "size after a death", n, (long)e.attr.size);
	s->id = e.nodeid;
	s->size = (uint32_t)n;
	memcpy(s->data, w->buf, s->size);
	memset(s->data + s->size, 0, DATA_MAX - s->size);
}

/*
 * The slot is as this call has left it. If its last writer has died during the
 * call, what is found is in part what the call has done: that goes with us.
 */
static void changed(struct worker *w, struct slot *s)
{
	if (is_unsure(w, s) && !is_dead(w))
		resolve(w, s);
	s->writer = w->node;
	s->life = w->life;
}

/*
 * This call has seen it: if it was another node's, that has written it. Those
 * of a dead node have seen nothing.
 */
static void seen(struct worker *w, struct slot *s)
{
	if (is_dead(w))
		return;
	if (is_unsure(w, s))
		resolve(w, s);
	else if (s->writer != w->node)
		s->writer = NOBODY;
}

/* The same, of the directory alone. */
static void seen_name(struct worker *w, struct slot *s)
{
	if (!s->exists)
		seen(w, s);
}

/* ---- one slot ---- */

static void do_create(struct worker *w, struct slot *s)
{
	struct fs_entry e;
	char name[160];
	int err = make_at(w->fs, w->l->dirs[s->dir], name_of(s, name),
			  S_IFREG | 0644, &e);

	if (!expect(w, s, "create", err, s->exists ? -EEXIST : 0)) {
		changed(w, s);
	} else if (!err) {
		s->exists = true;
		s->id = e.nodeid;
		s->size = 0;
		memset(s->data, 0, DATA_MAX);
		changed(w, s);
		forget(w, e.nodeid);
	}
}

static void do_unlink(struct worker *w, struct slot *s)
{
	char name[160];
	int err = unlink_at(w->fs, w->l->dirs[s->dir], name_of(s, name));

	if (expect(w, s, "unlink", err, s->exists ? 0 : -ENOENT))
		s->exists = false;
	changed(w, s);
}

static void random_data(struct worker *w, size_t len)
{
	uint64_t x = ug_prng_u64(&w->prng);

	for (size_t i = 0; i < len; i++) {
		if (i % 8 == 0)
			x = x * 6364136223846793005u + 1442695040888963407u;
		w->buf[i] = (uint8_t)(x >> (i % 8 * 8));
	}
}

static void do_write(struct worker *w, struct slot *s)
{
	uint32_t offset = below(w, 2) ? below(w, DATA_MAX) : 0;
	uint32_t len = 1 + below(w, below(w, 2) ? 100 : 14000);
	bool append = !below(w, 3);
	struct fs_entry e;
	struct inode *ip;
	ssize_t n;
	int err = find(w, s, &e);

	if (!expect(w, s, "look up", err, s->exists ? 0 : -ENOENT) || err) {
		seen(w, s);
		if (!err)
			forget(w, e.nodeid);
		return;
	}
	if (append)
		offset = s->size;
	len = UG_MIN(len, DATA_MAX - UG_MIN(offset, DATA_MAX));
	random_data(w, len);
	ip = get(w->fs, e.nodeid);
	err = fs_open(&volume_req, ip, O_WRONLY);
	n = 0;
	if (!err) {
		n = fs_write(&volume_req, ip, w->buf, len, append ? 0 : offset,
			     append ? FS_IO_APPEND : 0);
		fs_release(ip, O_WRONLY);
	}
	inode_put(ip);
	if (expect(w, s, "open", err, 0) &&
	    expect(w, s, "write", n, (long)len)) {
		memcpy(s->data + offset, w->buf, len);
		if (len)
			s->size = UG_MAX(s->size, offset + len);
	}
	changed(w, s);
	forget(w, e.nodeid);
}

static void do_truncate(struct worker *w, struct slot *s)
{
	struct fs_setattr set = { .valid = FS_SET_SIZE };
	struct fs_entry e;
	struct fs_attr attr;
	struct inode *ip;
	int err = find(w, s, &e);

	if (!expect(w, s, "look up", err, s->exists ? 0 : -ENOENT) || err) {
		seen(w, s);
		if (!err)
			forget(w, e.nodeid);
		return;
	}
	set.size = below(w, below(w, 2) ? 100 : DATA_MAX);
	ip = get(w->fs, e.nodeid);
	err = fs_setattr(&volume_req, ip, &set, &attr);
	inode_put(ip);
	if (expect(w, s, "truncate", err, 0)) {
		s->size = (uint32_t)set.size;
		memset(s->data + s->size, 0, DATA_MAX - s->size);
	}
	changed(w, s);
	forget(w, e.nodeid);
}

static void do_read(struct worker *w, struct slot *s)
{
	struct fs_entry e;
	ssize_t n;
	int err = find(w, s, &e);

	if (expect(w, s, "look up", err, s->exists ? 0 : -ENOENT) && !err) {
		n = read_all(w, e.nodeid);
		if (expect(w, s, "inode", (long)e.nodeid, (long)s->id) &&
		    expect(w, s, "size", (long)e.attr.size, s->size) &&
		    expect(w, s, "links", e.attr.nlink, 1) &&
		    expect(w, s, "read", n, s->size))
			expect(w, s, "contents differ",
			       memcmp(w->buf, s->data, s->size), 0);
	}
	if (!err)
		forget(w, e.nodeid);
	seen(w, s);
}

static void do_fsync(struct worker *w, struct slot *s)
{
	struct fs_entry e;
	struct inode *ip;
	int err = find(w, s, &e);

	if (expect(w, s, "look up", err, s->exists ? 0 : -ENOENT) && !err) {
		ip = get(w->fs, e.nodeid);
		err = fs_fsync(&volume_req, ip, false);
		inode_put(ip);
		forget(w, e.nodeid);
		if (expect(w, s, "fsync", err, 0))
			s->writer = NOBODY;
		return;
	}
	if (!err)
		forget(w, e.nodeid);
	seen(w, s);
}

/* A second name, and away with it. */
static void do_link(struct worker *w, struct slot *s)
{
	uint64_t dir = w->l->dirs[s->dir];
	char other[170];
	struct inode *ip, *d;
	struct fs_entry e, f;
	int err = find(w, s, &e), err2 = 0;

	if (!expect(w, s, "look up", err, s->exists ? 0 : -ENOENT) || err) {
		seen(w, s);
		if (!err)
			forget(w, e.nodeid);
		return;
	}
	second_name(s, other);
	ip = get(w->fs, e.nodeid);
	d = get(w->fs, dir);
	err = fs_link(&volume_req, ip, d, other, strlen(other), &f);
	if (!err) {
		fs_forget(w->fs, e.nodeid, 1);
		err2 = fs_unlink(&volume_req, d, other, strlen(other));
	}
	inode_put(ip);
	inode_put(d);
	/* After a death the second name may be there. */
	if (err != -EEXIST && expect(w, s, "link", err, 0) &&
	    expect(w, s, "links", f.attr.nlink, 2))
		expect(w, s, "unlink of second name", err2, 0);
	changed(w, s);
	forget(w, e.nodeid);
}

/* Its name goes while it is open. */
static void do_orphan(struct worker *w, struct slot *s)
{
	char name[160];
	struct fs_entry e;
	struct inode *ip;
	ssize_t n = 0;
	int err = find(w, s, &e);

	if (!expect(w, s, "look up", err, s->exists ? 0 : -ENOENT) || err) {
		seen(w, s);
		if (!err)
			forget(w, e.nodeid);
		return;
	}
	ip = get(w->fs, e.nodeid);
	err = fs_open(&volume_req, ip, O_RDWR);
	if (expect(w, s, "open", err, 0)) {
		err = unlink_at(w->fs, w->l->dirs[s->dir], name_of(s, name));
		n = fs_read(&volume_req, ip, w->buf, DATA_MAX, 0, 0);
		if (expect(w, s, "unlink of open file", err, 0) &&
		    expect(w, s, "read without name", n, s->size))
			expect(w, s, "contents without name",
			       memcmp(w->buf, s->data, s->size), 0);
		if (!err)
			s->exists = false;
		fs_release(ip, O_RDWR);
	} else if (!err) {
		fs_release(ip, O_RDWR);
	}
	inode_put(ip);
	changed(w, s);
	forget(w, e.nodeid);
}

/* ---- more than one slot ---- */

static void lock_slots(struct slot *a, struct slot *b)
{
	pthread_mutex_lock(a < b ? &a->lock : &b->lock);
	if (a != b)
		pthread_mutex_lock(a < b ? &b->lock : &a->lock);
}

static void unlock_slots(struct slot *a, struct slot *b)
{
	pthread_mutex_unlock(&a->lock);
	if (a != b)
		pthread_mutex_unlock(&b->lock);
}

static void swap_contents(struct slot *a, struct slot *b)
{
	uint8_t *data = b->data;

	b->exists = true;
	b->id = a->id;
	b->size = a->size;
	b->data = a->data;
	a->exists = false;
	a->data = data;
}

static void do_rename(struct worker *w, struct slot *a, struct slot *b)
{
	char name[160], other[160];
	int err = rename_at(w->fs, w->l->dirs[a->dir], name_of(a, name),
			    w->l->dirs[b->dir], name_of(b, other));
	bool sure = expect(w, a, "rename", err, a->exists ? 0 : -ENOENT) &&
		    !is_unsure(w, b);

	if (sure && !err && a != b)
		swap_contents(a, b);
	if (sure && (err || a == b)) {
		/* No inode has been locked: what is dirty of b stays so. */
		seen_name(w, a);
		return;
	}
	/* If not, it has been done, or not, with both. */
	if (!sure && !is_dead(w)) {
		resolve(w, a);
		resolve(w, b);
	}
	changed(w, a);
	changed(w, b);
}

struct listing {
	struct load *l;
	unsigned dir, count;
	bool odd;
};

static bool list_one(void *arg, const struct fs_dirent *de)
{
	struct listing *ls = arg;
	const char *hash = memrchr(de->name, ' ', de->len);
	unsigned number;

	if (de->name[0] == '.')
		return true;
	number = (unsigned)atoi(hash + 1);
	/* "twice": left by a node that died between link and unlink. */
	if (number >= SLOTS || !memcmp(hash, " twice", 6))
		return true;
	ls->count++;
	if (!ls->l->slots[ls->dir][number].exists)
		ls->odd = true;
	return true;
}

/* All slots of a directory: what exists, and nothing else. */
static void do_list(struct worker *w, unsigned dir)
{
	struct slot *slots = w->l->slots[dir];
	struct listing ls = { .l = w->l, .dir = dir };
	struct inode *d;
	unsigned expected = 0;
	bool sure = true;
	int err;

	d = get(w->fs, w->l->dirs[dir]);
	err = fs_readdir(&volume_req, d, 0, list_one, &ls);
	for (unsigned i = 0; i < SLOTS; i++) {
		expected += slots[i].exists;
		sure = sure && !is_unsure(w, &slots[i]);
	}
	if (sure && expect(w, &slots[0], "list", err, 0) &&
	    expect(w, &slots[0], "names", ls.count, expected))
		expect(w, &slots[0], "a name that is not there", ls.odd, 0);
	inode_put(d);
}

/* ---- the run ---- */

static struct slot *any_slot(struct worker *w)
{
	return &w->l->slots[below(w, DIRS)][below(w, SLOTS)];
}

static void one_slot(struct worker *w, struct slot *s, unsigned what)
{
	static void (*const calls[])(struct worker * w, struct slot * s) = {
		do_create, do_create, do_create,   do_unlink, do_write,
		do_write,  do_write,  do_truncate, do_read,   do_read,
		do_fsync,  do_link,   do_orphan,
	};

	calls[what % (sizeof(calls) / sizeof(calls[0]))](w, s);
}

/* Dead: nothing of the node may be touched any more. */
static bool begin_calls(struct worker *w)
{
	pthread_mutex_lock(&w->calling);
	return !is_dead(w);
}

static void list_step(struct worker *w, unsigned dir)
{
	struct slot *slots = w->l->slots[dir];

	for (unsigned i = 0; i < SLOTS; i++)
		pthread_mutex_lock(&slots[i].lock);
	if (begin_calls(w))
		do_list(w, dir);
	pthread_mutex_unlock(&w->calling);
	for (unsigned i = 0; i < SLOTS; i++)
		pthread_mutex_unlock(&slots[i].lock);
}

static void slot_step(struct worker *w, struct slot *a, struct slot *b,
		      unsigned what)
{
	if (is_unsure(w, a))
		resolve(w, a);
	if (b != a && is_unsure(w, b))
		resolve(w, b);
	/* If we have died in there, the next one does it. */
	if (is_dead(w))
		return;
	if (what < 13)
		one_slot(w, a, what);
	else
		do_rename(w, a, b);
}

static void step(struct worker *w)
{
	struct slot *a = any_slot(w), *b = any_slot(w);
	unsigned what = below(w, 16);

	atomic_fetch_add(&w->l->calls, 1);
	if (what == 15 && below(w, 2)) {
		list_step(w, a->dir);
		return;
	}
	if (what < 13)
		b = a;
	lock_slots(a, b);
	if (begin_calls(w))
		slot_step(w, a, b, what);
	pthread_mutex_unlock(&w->calling);
	unlock_slots(a, b);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	for (unsigned i = 0; i < w->steps && !is_dead(w); i++)
		step(w);
	return NULL;
}

static void worker_begin(struct worker *w, struct load *l, unsigned node,
			 uint64_t number)
{
	char name[8];

	w->l = l;
	w->node = node;
	w->life = atomic_load(&l->deaths[node]);
	w->fs = l->n.node[node].fs;
	w->steps = steps;
	if (!w->buf)
		pthread_mutex_init(&w->calling, NULL);
	if (!w->buf)
		w->buf = aligned_alloc(BLKDEV_ALIGN, (DATA_MAX / BLKDEV_ALIGN +
						      1) * BLKDEV_ALIGN);
	ug_prng_seed(&w->prng, seed * 1000 + number);
	for (unsigned d = 0; d < DIRS; d++) {
		sprintf(name, "dir%u", d);
		assert_int_equal(walk(w->fs, ROOT, name), l->dirs[d]);
	}
}

static void make_dirs(struct load *l)
{
	struct fs *fs = l->n.node[0].fs;
	struct inode *jdata;
	struct fs_entry e;
	char name[8];

	for (unsigned d = 0; d < DIRS; d++) {
		sprintf(name, "dir%u", d);
		assert_int_equal(make_at(fs, ROOT, name, S_IFDIR | 0755, &e),
				 0);
		l->dirs[d] = e.nodeid;
		for (unsigned i = 0; i < SLOTS; i++) {
			struct slot *s = &l->slots[d][i];

			pthread_mutex_init(&s->lock, NULL);
			s->dir = d;
			s->number = i;
			s->writer = NOBODY;
			s->data = calloc(1, DATA_MAX);
		}
	}
	/* With the first name in it this is in its dinode. */
	jdata = get(fs, l->dirs[DIRS - 1]);
	jdata->i_flags |= GFS2_DIF_INHERIT_JDATA;
	inode_put(jdata);
	assert_int_equal(
		make_at(fs, l->dirs[DIRS - 1], "x", S_IFREG | 0644, &e), 0);
	assert_int_equal(unlink_at(fs, l->dirs[DIRS - 1], "x"), 0);
	assert_int_equal(fs_sync(fs), 0);
}

static struct load *load_begin(void)
{
	struct load *l = calloc(1, sizeof(*l));

	printf("seed %llu, %u steps%s\n", (unsigned long long)seed, steps,
	       lockstep ? ", lockstep" : "");
	nodes_make(&l->n, seed, 0);
	for (unsigned i = 0; i < NODES_MAX; i++)
		nodes_mount(&l->n, i);
	make_dirs(l);
	return l;
}

/* Each slot, from any node. */
static void load_end(struct load *l, struct worker *workers)
{
	for (unsigned i = 0; i < DIRS * SLOTS; i++) {
		struct slot *s = &l->slots[i / SLOTS][i % SLOTS];
		struct worker *w = &workers[i % NODES_MAX];

		if (is_unsure(w, s))
			resolve(w, s);
		do_read(w, s);
		free(s->data);
	}
	for (unsigned i = 0; i < NODES_MAX; i++)
		free(workers[i].buf);
	nodes_end(&l->n);
	free(l);
}

/* ---- one call at a time ---- */

static void run_lockstep(struct load *l, struct worker *workers, unsigned kills)
{
	struct ug_prng prng;
	unsigned until_death = kills ? steps / (kills + 1) : UINT32_MAX;

	ug_prng_seed(&prng, seed);
	for (unsigned i = 1; i <= steps; i++) {
		unsigned k = (unsigned)ug_prng_below(&prng, NODES_MAX);

		step(&workers[k]);
		if (i % until_death || !kills)
			continue;
		atomic_fetch_add(&l->deaths[k], 1);
		nodes_kill(&l->n, k);
		nodes_mount(&l->n, k);
		worker_begin(&workers[k], l, k, NODES_MAX + i);
		kills--;
	}
}

/* ---- all at once ---- */

static void start(struct worker *w)
{
	assert_int_equal(pthread_create(&w->thread, NULL, worker_main, w), 0);
}

static void kill_one(struct load *l, struct worker *w, uint64_t number)
{
	unsigned k = w->node;

	atomic_fetch_add(&l->deaths[k], 1);
	nodes_cut(&l->n, k);
	pthread_mutex_lock(&w->calling);
	nodes_bury(&l->n, k);
	pthread_mutex_unlock(&w->calling);
	pthread_join(w->thread, NULL);
	nodes_mount(&l->n, k);
	worker_begin(w, l, k, number);
	start(w);
}

static void run_together(struct load *l, struct worker *workers, unsigned kills)
{
	struct ug_prng prng;

	ug_prng_seed(&prng, seed);
	for (unsigned k = 0; k < NODES_MAX; k++)
		start(&workers[k]);
	for (unsigned i = 1; i <= kills; i++) {
		unsigned k = (unsigned)ug_prng_below(&prng, NODES_MAX);
		unsigned at = i * steps * NODES_MAX / (kills + 1);

		/* Calls of all nodes together; a death of each is no more. */
		while (atomic_load(&l->calls) < at)
			usleep(1000);
		kill_one(l, &workers[k], NODES_MAX + i);
	}
	for (unsigned k = 0; k < NODES_MAX; k++)
		pthread_join(workers[k].thread, NULL);
}

static void run(unsigned kills)
{
	struct worker workers[NODES_MAX] = { 0 };
	struct load *l = load_begin();

	for (unsigned k = 0; k < NODES_MAX; k++)
		worker_begin(&workers[k], l, k, k);
	if (lockstep)
		run_lockstep(l, workers, kills);
	else
		run_together(l, workers, kills);
	load_end(l, workers);
}

static void test_load(void **state)
{
	run(0);
}

static void test_load_and_deaths(void **state)
{
	run(3);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest load[] = {
		cmocka_unit_test(test_load),
	};
	static const struct CMUnitTest deaths[] = {
		cmocka_unit_test(test_load_and_deaths),
	};
	bool die = argc > 1 && !strcmp(argv[1], "deaths");

	argc -= die;
	argv += die;
	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		steps = (unsigned)atoi(argv[2]);
	lockstep = argc > 3;
	return die ? cmocka_run_group_tests(deaths, NULL, NULL)
		   : cmocka_run_group_tests(load, NULL, NULL);
}
