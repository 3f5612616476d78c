/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lvb.c - lock value blocks: who copies when, and what survives a crash.
 *
 * The master moves the block in the same step as the mode, so a value written
 * before a down conversion is seen by whoever is granted after it. A lock's
 * own copy is what it was granted with (or what it may write), never what the
 * caller happened to pass: after a crash of the master it may be all that is
 * left. Source: docs/spec/dlm.md 1.13, 5.6.
 */
#include <string.h>

#include "dlm/engine.h"

static bool has_block(const struct lkb *lkb)
{
	return (lkb->exflags & LKF_VALBLK) && lkb->lvb;
}

static void lvb_copy(const struct dlm_engine *engine, struct lvb *to,
		     const struct lvb *from)
{
	memcpy(to, from, sizeof(*to) + engine->config.lvblen);
}

static void set_doubt(struct lkb *lkb, bool doubt)
{
	lkb->flags &= ~(uint32_t)LKB_LVB_DOUBT;
	if (doubt)
		lkb->flags |= LKB_LVB_DOUBT;
}

/* A holder of PW or EX has decided on the value, whoever copies it. */
void lvb_wrote(struct lkb *lkb)
{
	if (lkb->exflags & (LKF_VALBLK | LKF_IVVALBLK))
		set_doubt(lkb, lkb->exflags & LKF_IVVALBLK);
}

static void lvb_read(struct dlm_engine *engine, struct lkb *lkb)
{
	const struct rsb *rsb = lkb->rsb;

	if (!has_block(lkb))
		return;
	if (rsb->lvb)
		lvb_copy(engine, lkb->lvb, rsb->lvb);
	else
		memset(lkb->lvb, 0, sizeof(*lkb->lvb) + engine->config.lvblen);
	lkb->flags |= LKB_LVB_READ;
	set_doubt(lkb, rsb->flags & RES_LVB_INVALID);
}

static void lvb_write(struct dlm_engine *engine, struct lkb *lkb)
{
	struct rsb *rsb = lkb->rsb;

	lvb_wrote(lkb);
	if (lkb->exflags & LKF_IVVALBLK) {
		rsb->flags |= RES_LVB_INVALID;
		return;
	}
	if (!has_block(lkb))
		return;
	if (!rsb->lvb)
		rsb->lvb = lvb_alloc(engine);
	lkb->lvb->seq = rsb->lvb->seq + 1;
	lvb_copy(engine, rsb->lvb, lkb->lvb);
	rsb->flags &= (uint8_t)~RES_LVB_INVALID;
}

/* On the master, before the mode changes from "from" to the requested one */
void lvb_on_grant(struct dlm_engine *engine, struct lkb *lkb, int from)
{
	switch (mode_lvb(from, lkb->rqmode)) {
	case LVB_READ:
		lvb_read(engine, lkb);
		break;
	case LVB_WRITE:
		lvb_write(engine, lkb);
		break;
	case LVB_KEEP:
		break;
	}
	if (lkb->rsb->flags & RES_LVB_INVALID)
		lkb->sbflags |= SBF_VALNOTVALID;
}

void lvb_on_unlock(struct dlm_engine *engine, struct lkb *lkb)
{
	if (lkb->grmode >= LKM_PW)
		lvb_write(engine, lkb);
}

/*
 * A call with LKF_VALBLK that may write: what the caller passes counts, unless
 * it only marks the block; then the last value is what is kept under the mark.
 */
void lvb_take_argument(struct dlm_engine *engine, struct lkb *lkb,
		       const uint8_t *lvb)
{
	if (!(lkb->exflags & LKF_VALBLK))
		return;
	if (!lkb->lvb)
		lkb->lvb = lvb_alloc(engine);
	if (lkb->grmode >= LKM_PW && lvb && !(lkb->exflags & LKF_IVVALBLK))
		memcpy(lkb->lvb->bytes, lvb, engine->config.lvblen);
}

/*
 * PW to EX reads, and nothing that is passed may get into the lock's own copy;
 * unless an alternate is granted, which is below PW: that writes. Until it is
 * known which of both, and after a failure, the copy is no good for a donor.
 */
void lvb_take_for_conversion(struct dlm_engine *engine, struct lkb *lkb,
			     const uint8_t *lvb)
{
	bool writes = mode_lvb(lkb->grmode, lkb->rqmode) == LVB_WRITE;
	bool may_write = lkb->exflags & (LKF_ALTPR | LKF_ALTCW);

	lvb_take_argument(engine, lkb, writes || may_write ? lvb : NULL);
	if (!writes && may_write && lkb->grmode >= LKM_PW)
		set_doubt(lkb, true);
}

void lvb_take_message(struct dlm_engine *engine, struct lkb *lkb,
		      const struct dlm_lockmsg *m)
{
	if (!(lkb->exflags & LKF_VALBLK))
		return;
	if (!lkb->lvb)
		lkb->lvb = lvb_alloc(engine);
	if (m->type != DLM_MSG_REQUEST)
		memcpy(lkb->lvb->bytes, m->extra,
		       UG_MIN(m->extra_len, engine->config.lvblen));
}

/*
 * The master has granted: the process copy reads by its own modes. Of a write
 * that keeps the mode it must know the mark: it is the next donor.
 */
void lvb_on_reply(struct dlm_engine *engine, struct lkb *lkb,
		  const struct dlm_lockmsg *m, int from, int to)
{
	if (mode_lvb(from, to) == LVB_WRITE)
		lvb_wrote(lkb);
	if (!has_block(lkb) || mode_lvb(from, to) != LVB_READ)
		return;
	memcpy(lkb->lvb->bytes, m->extra,
	       UG_MIN(m->extra_len, engine->config.lvblen));
	lkb->lvb->seq = m->lvbseq;
	lkb->flags |= LKB_LVB_READ;
	set_doubt(lkb, m->sbflags & SBF_VALNOTVALID);
}

/*
 * Who can know the value after the master is lost? A holder above CR: nobody
 * can have written since it was granted. *best: else the newest copy. A holder
 * that was told VALNOTVALID passes its doubt on; by the spec alone (5.6) the
 * mark would be lost with the master.
 */
static const struct lkb *lvb_donor(const struct rsb *rsb,
				   const struct lkb **best)
{
	const struct lkb_queue *queues[] = { &rsb->granted, &rsb->convert };
	const struct lkb *lkb;

	*best = NULL;
	for (unsigned q = 0; q < 2; q++) {
		queue_for_each(lkb, queues[q])
		{
			if (!has_block(lkb))
				continue;
			if (lkb->grmode > LKM_CR &&
			    !rebuild_mode_is_doubtful(lkb))
				return lkb;
			if (!*best ||
			    (int32_t)(lkb->lvb->seq - (*best)->lvb->seq) >= 0)
				*best = lkb;
		}
	}
	return NULL;
}

/* A mark on its way: the lost master may have set it, the resend will. */
static bool donor_doubts(const struct lkb *lkb)
{
	return (lkb->flags & LKB_LVB_DOUBT) ||
	       ((lkb->exflags & LKF_IVVALBLK) && rebuild_outcome_unknown(lkb));
}

void lvb_recover(struct dlm_engine *engine, struct rsb *rsb)
{
	const struct lkb *best;
	const struct lkb *donor = lvb_donor(rsb, &best);

	if (!(rsb->flags & RES_NEW_MASTER)) {
		if (rsb->flags & RES_LVB_LOST)
			rsb->flags |= RES_LVB_INVALID;
		return;
	}
	if (!donor && !best)
		return;
	if (!rsb->lvb)
		rsb->lvb = lvb_alloc(engine);
	if (donor && !donor_doubts(donor))
		rsb->flags &= (uint8_t)~RES_LVB_INVALID;
	else
		rsb->flags |= RES_LVB_INVALID;
	if (!donor)
		donor = best;
	lvb_copy(engine, rsb->lvb, donor->lvb);
}
