/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_mkfs_reference.c - our volumes against those of mkfs.gfs2, byte by byte.
 *
 * For each case mkfs.gfs2 makes a volume in a sparse file, and our core makes
 * one in another, without command line or device. Every block that either of
 * them wrote must be the same in both, except: times of inodes, the unused
 * bytes of rindex entries and of directory entries (garbage in theirs), and the
 * numbers, times and checksums of log headers, which are compared by what they
 * mean. Then fsck.gfs2 -n must
 * find nothing to say about ours.
 *
 * Skipped (77) where mkfs.gfs2 is not installed. With arguments: one case, as
 * "SIZE_MB BSIZE FORMAT JOURNALS JSIZE RGSIZE QCSIZE SUNIT SWIDTH BLOCKS".
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/mkfs_image.h"

#define UUID_TEXT "11111111-2222-3333-4444-555555555555"
#define DIFFERENCES_SHOWN 5

static const uint8_t uuid[16] = { 0x11, 0x11, 0x11, 0x11, 0x22, 0x22,
				  0x33, 0x33, 0x44, 0x44, 0x55, 0x55,
				  0x55, 0x55, 0x55, 0x55 };

struct reference_case {
	unsigned size_mb;
	struct mkfs_wishes wishes;
};

static const struct reference_case cases[] = {
	/* Every block size, both formats, one and more journals. */
	{ 512, { .bsize = 4096, .journals = 2, .jsize_mb = 8 } },
	{ 64, { .bsize = 4096, .format = 1801 } },
	{ 300, { .bsize = 2048, .journals = 4, .format = 1801 } },
	{ 200, { .bsize = 1024, .journals = 3 } },
	{ 100, { .bsize = 1024, .journals = 1, .format = 1801 } },
	{ 100, { .bsize = 512, .journals = 1 } },
	{ 150, { .bsize = 512, .journals = 8, .format = 1801 } },
	/* Sizes: the smallest, defaults by size, a part of the device. */
	{ 16, { .bsize = 4096 } },
	{ 17, { .bsize = 512 } },
	{ 511, { .journals = 1 } },
	{ 2050, { .journals = 1 } },
	{ 1100, { .journals = 8 } },
	{ 5000, { .journals = 1, .rgsize_mb = 2048 } },
	{ 600, { .journals = 2, .size_blocks = 77777 } },
	/* Journals of several sizes, large ones with a taller tree. */
	{ 400, { .journals = 5, .jsize_mb = 9 } },
	{ 140, { .bsize = 512, .journals = 1, .jsize_mb = 65 } },
	{ 300, { .bsize = 1024, .journals = 2, .jsize_mb = 33 } },
	/* Many journals: hashed directories, at last with a table outside. */
	{ 500, { .bsize = 512, .journals = 30, .jsize_mb = 8 } },
	{ 450, { .bsize = 4096, .journals = 25, .jsize_mb = 8 } },
	/* Many groups: an rindex with a tree of its own. */
	{ 7000, { .bsize = 512, .rgsize_mb = 32, .jsize_mb = 8 } },
	{ 300, { .rgsize_mb = 37, .journals = 3 } },
	/* Quota change files that cross from one group into the next. */
	{ 300, { .bsize = 512, .qcsize_mb = 40, .rgsize_mb = 32 } },
	{ 300, { .bsize = 4096, .qcsize_mb = 3, .journals = 2 } },
	/* Stripes. */
	{ 1000, { .sunit_bytes = 65536, .swidth_bytes = 262144 } },
	{ 2000,
	  { .sunit_bytes = 524288, .swidth_bytes = 1572864, .journals = 2 } },
	{ 1500,
	  { .bsize = 1024,
	    .sunit_bytes = 1024,
	    .swidth_bytes = 65536,
	    .rgsize_mb = 100 } },
};

/* ---- two files to compare ---------------------------------------------- */

struct file {
	char path[64];
	int fd;
	uint8_t *map;
	uint64_t size;
};

static bool file_open(struct file *f, uint64_t size)
{
	const char *dir = getenv("TMPDIR");

	snprintf(f->path, sizeof(f->path), "%s/mkfs-XXXXXX",
		 dir && strlen(dir) < 40 ? dir : "/tmp");
	f->size = size;
	f->fd = mkstemp(f->path);
	if (f->fd < 0 || ftruncate(f->fd, (off_t)size))
		return false;
	f->map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
	return f->map != MAP_FAILED;
}

static void file_close(struct file *f)
{
	munmap(f->map, f->size);
	close(f->fd);
	unlink(f->path);
}

/* Exit status of a shell command, or -1; the first line it printed in text. */
static int run(const char *command, char *text, size_t len)
{
	FILE *out = popen(command, "r");
	size_t n;
	int status;

	if (!out)
		return -1;
	n = fread(text, 1, len - 1, out);
	text[n] = '\0';
	while (fread((char[512]){ 0 }, 1, 512, out) > 0)
		;
	status = pclose(out);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool make_theirs(const struct reference_case *c, const struct file *f)
{
	const struct mkfs_wishes *w = &c->wishes;
	char command[1024], text[1024];
	size_t n = 0;

#define OPTION(...) \
	(n += (size_t)snprintf(command + n, sizeof(command) - n, __VA_ARGS__))
	OPTION("PATH=$PATH:/usr/sbin:/sbin mkfs.gfs2 -O -q -U " UUID_TEXT
	       " -p lock_dlm -t clu:fs");
	if (w->bsize)
		OPTION(" -b %u", w->bsize);
	if (w->journals)
		OPTION(" -j %u", w->journals);
	if (w->jsize_mb)
		OPTION(" -J %u", w->jsize_mb);
	if (w->rgsize_mb)
		OPTION(" -r %u", w->rgsize_mb);
	if (w->qcsize_mb)
		OPTION(" -c %u", w->qcsize_mb);
	if (w->format)
		OPTION(" -o format=%u", w->format);
	if (w->sunit_bytes)
		OPTION(" -o sunit=%llu,swidth=%llu",
		       (unsigned long long)w->sunit_bytes,
		       (unsigned long long)w->swidth_bytes);
	OPTION(" %s", f->path);
	if (w->size_blocks)
		OPTION(" %llu", (unsigned long long)w->size_blocks);
	OPTION(" 2>&1");
#undef OPTION
	if (run(command, text, sizeof(text)) != 0) {
		printf("%s: %s\n", command, text);
		return false;
	}
	return true;
}

struct target {
	struct file *file;
	uint32_t bsize;
};

static int put(void *arg, uint64_t addr, const void *block)
{
	struct target *t = arg;

	if ((addr + 1) * t->bsize > t->file->size)
		return -EIO;
	memcpy(t->file->map + addr * t->bsize, block, t->bsize);
	return 0;
}

static bool make_ours(const struct reference_case *c, struct file *f,
		      struct mkfs_plan *plan)
{
	struct mkfs_device device = {
		.size_bytes = f->size,
		.sector_bytes = 512,
		.physical_bytes = 512,
		.io_min_bytes = 512,
	};
	struct mkfs_identity identity = {
		.lockproto = "lock_dlm",
		.locktable = "clu:fs",
		.time_sec = 1000000000,
		.seed = f->size,
	};
	struct target target = { f, 0 };
	struct mkfs_sink sink = { .put = put, .arg = &target };
	struct mkfs_result dry, result;
	char why[256];

	memcpy(identity.uuid, uuid, sizeof(uuid));
	if (mkfs_plan_make(&c->wishes, &device, plan, why, sizeof(why))) {
		printf("plan: %s\n", why);
		return false;
	}
	target.bsize = plan->geom.bsize;
	if (mkfs_make_volume(plan, &identity, NULL, &dry) ||
	    mkfs_make_volume(plan, &identity, &sink, &result)) {
		printf("our volume could not be made\n");
		return false;
	}
	if (dry.root.addr != result.root.addr ||
	    dry.totals.free != result.totals.free) {
		printf("trial and volume differ\n");
		return false;
	}
	mkfs_make_sb(plan, &identity, &result, f->map + GFS2_SB_OFFSET_BYTES);
	return true;
}

/* ---- comparison -------------------------------------------------------- */

/* What stands behind the names of a leaf is left over from older entries. */
static void mask_leaf(uint8_t *block, uint32_t bsize)
{
	uint8_t *area = gfs2_leaf_area(block);
	uint32_t len = bsize - sizeof(struct gfs2_leaf), off = 0, own, rec_len;
	const struct gfs2_dirent *de;

	while (off < len && gfs2_dirent_at(area, len, off, &de) == 0) {
		rec_len = be16_get(de->de_rec_len);
		own = sizeof(*de);
		if (!gfs2_dirent_is_sentinel(de))
			own += be16_get(de->de_name_len);
		memset(area + off + own, 0, rec_len - own);
		off += rec_len;
	}
}

/* Fields that may differ become zero in both. */
static void mask_block(uint8_t *block, uint32_t bsize)
{
	struct gfs2_dinode *d = (struct gfs2_dinode *)block;
	struct gfs2_log_header *lh = (struct gfs2_log_header *)block;

	if (gfs2_meta_type(block) == GFS2_METATYPE_DI) {
		d->di_atime = d->di_mtime = d->di_ctime = be64_of(0);
		d->di_atime_nsec = d->di_mtime_nsec = d->di_ctime_nsec =
			be32_of(0);
	} else if (gfs2_meta_type(block) == GFS2_METATYPE_LF) {
		mask_leaf(block, bsize);
	} else if (gfs2_meta_type(block) == GFS2_METATYPE_LH) {
		lh->lh_sequence = lh->lh_sec = be64_of(0);
		lh->lh_hash = lh->lh_crc = lh->lh_nsec = be32_of(0);
	}
}

static void mask_rindex(const struct gfs2_geom *geom, uint8_t *map,
			uint64_t addr)
{
	struct gfs2_dinode_info di;
	uint16_t path[GFS2_HEIGHT_MAX];

	if (gfs2_dinode_decode(geom, map + addr * geom->bsize, addr, &di, NULL,
			       0))
		return;
	/* An entry may straddle blocks: byte by byte. */
	for (uint64_t i = 0; i < di.size; i++) {
		uint8_t *block = map + addr * geom->bsize;
		be64 *ptrs = gfs2_dinode_ptrs(block);
		uint64_t at = i % 96;

		if (at < 12 || (at > 15 && at < 32))
			continue;
		if (di.height == 0) {
			block[232 + i] = 0;
			continue;
		}
		gfs2_tree_path(geom, di.height, i >> geom->bshift, path);
		for (unsigned l = 0; l < di.height; l++) {
			block = map + be64_get(ptrs[path[l]]) * geom->bsize;
			ptrs = gfs2_indirect_ptrs(block);
		}
		block[i % geom->bsize] = 0;
	}
}

/* Address of the last dinode but one or so: the one with payload "RI". */
static uint64_t find_rindex(const struct gfs2_geom *geom, uint8_t *map,
			    uint64_t root)
{
	for (uint64_t addr = root; addr > 0; addr--) {
		struct gfs2_dinode_info di;

		if (gfs2_dinode_decode(geom, map + addr * geom->bsize, addr,
				       &di, NULL, 0) == 0 &&
		    di.payload_format == GFS2_FORMAT_RI)
			return addr;
	}
	return 0;
}

static void show_difference(const uint8_t *a, const uint8_t *b, uint32_t bsize,
			    uint64_t addr)
{
	uint32_t i = 0;

	while (i < bsize && a[i] == b[i])
		i++;
	printf("  block %llu (ours %s, theirs %s) differs at byte %u: "
	       "%02x, expected %02x\n",
	       (unsigned long long)addr, gfs2_metatype_name(gfs2_meta_type(a)),
	       gfs2_metatype_name(gfs2_meta_type(b)), i, a[i], b[i]);
}

static unsigned compare_block(const uint8_t *ours, const uint8_t *theirs,
			      uint32_t bsize, uint64_t addr)
{
	uint8_t a[GFS2_BSIZE_MAX], b[GFS2_BSIZE_MAX];

	if (memcmp(ours, theirs, bsize) == 0)
		return 0;
	memcpy(a, ours, bsize);
	memcpy(b, theirs, bsize);
	mask_block(a, bsize);
	mask_block(b, bsize);
	if (memcmp(a, b, bsize) == 0)
		return 0;
	return show_difference(a, b, bsize, addr), 1;
}

/* Next part of either file that has been written, or the end. */
static uint64_t next_data(const struct file *a, const struct file *b,
			  uint64_t from)
{
	off_t x = lseek(a->fd, (off_t)from, SEEK_DATA);
	off_t y = lseek(b->fd, (off_t)from, SEEK_DATA);
	uint64_t end = a->size;

	if (x >= 0 && (uint64_t)x < end)
		end = (uint64_t)x;
	if (y >= 0 && (uint64_t)y < end)
		end = (uint64_t)y;
	return end;
}

static bool compare_files(const struct gfs2_geom *geom, const struct file *ours,
			  const struct file *theirs)
{
	unsigned differences = 0;
	uint64_t blocks = 0;

	for (uint64_t at = 0; at < ours->size; at += geom->bsize) {
		if (at % 65536 == 0)
			at = next_data(ours, theirs, at) & ~65535ull;
		if (at + geom->bsize > ours->size)
			break;
		blocks++;
		differences += compare_block(ours->map + at, theirs->map + at,
					     geom->bsize, at >> geom->bshift);
		if (differences > DIFFERENCES_SHOWN)
			break;
	}
	return differences == 0 && blocks > 100;
}

/* The journal's numbers: up by one modulo its length, from anywhere: 7.3. */
static bool check_journals(const struct mkfs_plan *plan, const struct file *f)
{
	struct mkfs_journal_shape shape;
	struct gfs2_lh_info lh;
	uint64_t first = 0;

	mkfs_journal_shape(&plan->geom, plan->jblocks, &shape);
	for (unsigned k = 0; k < plan->journals; k++) {
		uint64_t base =
			plan->groups[k].data0 + shape.total - plan->jblocks;

		for (uint32_t b = 0; b < plan->jblocks; b++) {
			const uint8_t *block =
				f->map + (base + b) * plan->geom.bsize;

			if (gfs2_lh_decode(&plan->geom, block, &lh))
				return false;
			if (b == 0)
				first = lh.sequence;
			if (lh.sequence != (first + b) % plan->jblocks)
				return false;
		}
	}
	return true;
}

/* fsck.gfs2 can complain and exit 0: its words count as well. */
static bool check_fsck(const struct file *f)
{
	static const char *const bad[] = { "dirty",	 "orrupt",    "rror",
					   "nvalid",	 "should be", "Bad ",
					   "bad ",	 "ncorrect",  "wrong",
					   "Fix",	 "fix",	      "reated",
					   "nreferenced" };
	char command[256], text[8192];
	int status;

	msync(f->map, f->size, MS_SYNC);
	snprintf(command, sizeof(command),
		 "PATH=$PATH:/usr/sbin:/sbin fsck.gfs2 -n %s 2>&1", f->path);
	status = run(command, text, sizeof(text));
	for (size_t i = 0; i < UG_ARRAY_SIZE(bad); i++)
		if (strstr(text, bad[i]))
			status = -1;
	if (status != 0)
		printf("fsck.gfs2 says:\n%s\n", text);
	return status == 0;
}

/* ---- cases ------------------------------------------------------------- */

static bool compare_volumes(const struct reference_case *c, struct file *ours,
			    struct file *theirs)
{
	struct mkfs_plan plan = { .groups = NULL };
	struct gfs2_sb_info sb;
	char why[256];
	bool same;

	if (!make_theirs(c, theirs) || !make_ours(c, ours, &plan))
		return false;
	same = gfs2_sb_decode(theirs->map + GFS2_SB_OFFSET_BYTES, 512, &sb, why,
			      sizeof(why)) == 0;
	if (same) {
		mask_rindex(&plan.geom, theirs->map,
			    find_rindex(&plan.geom, theirs->map, sb.root_addr));
		same = compare_files(&plan.geom, ours, theirs);
	}
	if (same && !check_journals(&plan, ours)) {
		printf("  journal headers out of order\n");
		same = false;
	}
	mkfs_plan_free(&plan);
	return same && check_fsck(ours);
}

static bool run_case(const struct reference_case *c)
{
	const struct mkfs_wishes *w = &c->wishes;
	struct file ours, theirs;
	bool good;

	printf("%u MB, block size %u, format %u, %u journals of %u MB, groups "
	       "of %u MB, quota %u MB, stripes %llu/%llu, %llu blocks\n",
	       c->size_mb, w->bsize, w->format, w->journals, w->jsize_mb,
	       w->rgsize_mb, w->qcsize_mb, (unsigned long long)w->sunit_bytes,
	       (unsigned long long)w->swidth_bytes,
	       (unsigned long long)w->size_blocks);
	fflush(stdout);
	if (!file_open(&ours, (uint64_t)c->size_mb << 20) ||
	    !file_open(&theirs, (uint64_t)c->size_mb << 20)) {
		perror("temporary file");
		return false;
	}
	good = compare_volumes(c, &ours, &theirs);
	file_close(&ours);
	file_close(&theirs);
	if (!good)
		printf("  FAILED\n");
	return good;
}

static struct reference_case case_of_arguments(char **argv)
{
	return (struct reference_case){
		.size_mb = (unsigned)atoi(argv[1]),
		.wishes =
			{
				.bsize = (uint32_t)atoi(argv[2]),
				.format = (uint32_t)atoi(argv[3]),
				.journals = (unsigned)atoi(argv[4]),
				.jsize_mb = (unsigned)atoi(argv[5]),
				.rgsize_mb = (unsigned)atoi(argv[6]),
				.qcsize_mb = (unsigned)atoi(argv[7]),
				.sunit_bytes = strtoull(argv[8], NULL, 10),
				.swidth_bytes = strtoull(argv[9], NULL, 10),
				.size_blocks = strtoull(argv[10], NULL, 10),
			},
	};
}

int main(int argc, char **argv)
{
	char text[256];
	int failed = 0;

	if (run("PATH=$PATH:/usr/sbin:/sbin mkfs.gfs2 -V 2>&1", text,
		sizeof(text)) != 0) {
		printf("mkfs.gfs2 is not installed\n");
		return 77;
	}
	if (argc == 11) {
		struct reference_case c = case_of_arguments(argv);

		return !run_case(&c);
	}
	for (size_t i = 0; i < UG_ARRAY_SIZE(cases); i++)
		failed += !run_case(&cases[i]);
	printf("%d of %zu cases failed\n", failed, UG_ARRAY_SIZE(cases));
	return failed ? 1 : 0;
}
