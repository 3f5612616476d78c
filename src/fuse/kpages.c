/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kpages.c - which pages of one file the kernel may have: see kpages.h.
 */
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "fuse/kpages.h"

#define KPAGE 4096u

struct krange krange_of(uint64_t offset, uint64_t len)
{
	uint64_t last = offset + (len ? len - 1 : 0);

	/* Beyond the largest offset there is nothing. */
	if (last < offset || last > UINT64_MAX - KPAGE)
		return (struct krange){ offset & ~(uint64_t)(KPAGE - 1),
					UINT64_MAX };
	return (struct krange){
		.start = offset & ~(uint64_t)(KPAGE - 1),
		.end = (last | (KPAGE - 1)) + 1,
	};
}

static bool overlap(struct krange a, struct krange b)
{
	return a.start < b.end && b.start < a.end;
}

/* ---- R ---- */

static void remove_at(struct kpages *kp, unsigned i)
{
	kp->count--;
	memmove(&kp->ranges[i], &kp->ranges[i + 1],
		(kp->count - i) * sizeof(kp->ranges[0]));
}

static void insert_at(struct kpages *kp, unsigned i, struct krange range)
{
	memmove(&kp->ranges[i + 1], &kp->ranges[i],
		(kp->count - i) * sizeof(kp->ranges[0]));
	kp->ranges[i] = range;
	kp->count++;
}

/* Two neighbours become one: those with the least between them. */
static void merge_closest(struct kpages *kp)
{
	unsigned best = 1;

	for (unsigned i = 2; i < kp->count; i++) {
		if (kp->ranges[i].start - kp->ranges[i - 1].end <
		    kp->ranges[best].start - kp->ranges[best - 1].end)
			best = i;
	}
	kp->ranges[best - 1].end = kp->ranges[best].end;
	remove_at(kp, best);
}

static void add(struct kpages *kp, struct krange range)
{
	unsigned i = 0;

	/* Those that it touches become part of it. */
	while (i < kp->count) {
		const struct krange *r = &kp->ranges[i];

		if (r->end < range.start) {
			i++;
			continue;
		}
		if (r->start > range.end)
			break;
		range.start = UG_MIN(range.start, r->start);
		range.end = UG_MAX(range.end, r->end);
		remove_at(kp, i);
	}
	if (kp->count == KPAGES_RANGES) {
		merge_closest(kp);
		add(kp, range);
		return;
	}
	insert_at(kp, i, range);
}

static void subtract(struct kpages *kp, struct krange range)
{
	for (unsigned i = 0; i < kp->count;) {
		struct krange *r = &kp->ranges[i];
		struct krange rest = { range.end, r->end };

		if (!overlap(*r, range)) {
			i++;
		} else if (r->start >= range.start && r->end <= range.end) {
			remove_at(kp, i);
		} else if (r->start >= range.start) {
			r->start = range.end;
		} else if (r->end <= range.end) {
			r->end = range.start;
		} else if (kp->count == KPAGES_RANGES) {
			return; /* no room for two parts: too large is fine */
		} else {
			r->end = range.start;
			insert_at(kp, i + 1, rest);
		}
	}
}

void kpages_set_all(struct kpages *kp)
{
	kp->count = 1;
	kp->ranges[0] = (struct krange){ 0, UINT64_MAX };
}

bool kpages_overlap(const struct kpages *kp, struct krange range)
{
	for (unsigned i = 0; i < kp->count; i++) {
		if (overlap(kp->ranges[i], range))
			return true;
	}
	/* What is being dropped is not gone yet. */
	return kp->notifying && overlap(kp->now, range);
}

/* ---- READs ---- */

static bool wants_exclusive(const struct kpages *kp)
{
	return kp->writers || kp->upgrades;
}

bool kpages_read(struct kpages *kp, struct krange range)
{
	bool exclusive = wants_exclusive(kp);

	kp->upgrades += exclusive;
	subtract(kp, range);
	return exclusive;
}

void kpages_unread(struct kpages *kp, bool exclusive)
{
	ug_assert(kp->upgrades >= exclusive);
	kp->upgrades -= exclusive;
}

void kpages_fail(struct kpages *kp, struct krange range)
{
	subtract(kp, range);
}

bool kpages_may_go_on(const struct kpages *kp, struct krange range)
{
	if (kp->state != KPAGES_LATER || kp->very_late)
		return true;
	return kp->late && overlap(range, kp->now);
}

enum kpages_verdict kpages_admit(struct kpages *kp, struct krange range,
				 bool exclusive, bool leaving)
{
	kpages_unread(kp, exclusive);
	if (kp->state == KPAGES_HELD && leaving)
		return KPAGES_AGAIN;
	/* The lock has been elsewhere since. */
	if (kp->state == KPAGES_HELD)
		kp->state = KPAGES_FREE;
	if (wants_exclusive(kp) && !exclusive)
		return KPAGES_AGAIN;
	if (!kpages_may_go_on(kp, range))
		return KPAGES_PARKED;
	kp->admitted++;
	add(kp, range);
	return KPAGES_ADMITTED;
}

void kpages_dropped(struct kpages *kp, struct krange range, uint32_t admitted)
{
	if (kp->admitted == admitted)
		subtract(kp, range);
}

/* ---- writers ---- */

bool kpages_writer(struct kpages *kp, bool exclusive)
{
	/* What is being dropped is not gone yet. */
	if (!exclusive && (kp->count || kp->notifying))
		return false;
	kp->writers++;
	return true;
}

void kpages_writer_gone(struct kpages *kp)
{
	ug_assert(kp->writers);
	kp->writers--;
}

/* ---- the recall ---- */

void kpages_recall(struct kpages *kp)
{
	ug_assert(!kp->notifying);
	kp->state = KPAGES_FIRST;
	kp->late = kp->very_late = false;
}

bool kpages_next(struct kpages *kp, struct krange *range)
{
	ug_assert(!kp->notifying);
	ug_assert(kp->state == KPAGES_FIRST || kp->state == KPAGES_LATER);
	if (!kp->count) {
		kp->state = KPAGES_HELD;
		return false;
	}
	kp->now = kp->ranges[0];
	if (kp->state == KPAGES_FIRST) {
		kp->now.end = kp->ranges[kp->count - 1].end;
		kp->count = 0;
	} else {
		remove_at(kp, 0);
	}
	kp->notifying = true;
	*range = kp->now;
	return true;
}

void kpages_notified(struct kpages *kp)
{
	ug_assert(kp->notifying);
	kp->notifying = false;
	kp->late = kp->very_late = false;
	kp->state = KPAGES_LATER;
}

void kpages_late(struct kpages *kp, bool very)
{
	if (!kp->notifying)
		return;
	kp->late = true;
	kp->very_late |= very;
}
