/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rgrp_window.c - windows: room behind a growing file, kept from others.
 *
 * Files that grow in small steps while others do the same would end up
 * interleaved. So a file that is open for writing gets, with the places it
 * asked for, a window behind them; its next places come from there. A
 * window is memory only and binds nobody: when nothing else is left, others
 * take its blocks. It is as long as the file is by then, from RGRP_WINDOW_MIN
 * to RGRP_WINDOW_MAX blocks: with each one used up the next is twice as long.
 *
 * Locks: rg_lock guards the list and the windows on it. rw_start says whose
 * group that is, so it is read before any lock is held and looked at again
 * under it; it goes from 0 to a block by compare-and-exchange, since two
 * threads may find places for one inode in two groups at once.
 */
#include "fs/rgrp_int.h"

static uint64_t window_start(const struct inode *ip)
{
	return __atomic_load_n(&ip->i_window.rw_start, __ATOMIC_ACQUIRE);
}

static void set_start(struct inode *ip, uint64_t start)
{
	__atomic_store_n(&ip->i_window.rw_start, start, __ATOMIC_RELEASE);
}

static bool claim_start(struct inode *ip, uint64_t start)
{
	uint64_t none = 0;

	return __atomic_compare_exchange_n(&ip->i_window.rw_start, &none, start,
					   false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

uint32_t rgrp_window_wanted(struct inode *ip)
{
	uint64_t owned = __atomic_load_n(&ip->i_blocks, __ATOMIC_RELAXED);

	if (!atomic_load_explicit(&ip->i_writers, memory_order_relaxed))
		return 0;
	if (owned <= RGRP_WINDOW_MIN)
		return RGRP_WINDOW_MIN;
	return (uint32_t)UG_MIN(owned, (uint64_t)RGRP_WINDOW_MAX);
}

static void window_remove(struct rgrp *rg, struct inode *ip)
{
	struct rgrp_window *rw = &ip->i_window;

	rgrp_bits_clear(rg->rg_soft, rgrp_number(rg, rw->rw_start), rw->rw_len);
	rgrp_run_grows(rg, rw->rw_len);
	cds_list_del_init(&rw->rw_list);
	rw->rw_len = 0;
	set_start(ip, 0);
}

uint32_t rgrp_window_peek(struct rgrp *rg, struct inode *ip, uint32_t max,
			  uint32_t *start)
{
	struct rgrp_window *rw = &ip->i_window;
	uint32_t n, len;

	if (!rgrp_maps(rg, window_start(ip)))
		return 0;
	n = rgrp_number(rg, rw->rw_start);
	len = rgrp_run_length(rg->rg_avail, n, UG_MIN(max, rw->rw_len));
	if (!len) {
		/* Others had nothing else left. */
		window_remove(rg, ip);
		return 0;
	}
	*start = n;
	return len;
}

void rgrp_window_advance(struct rgrp *rg, struct inode *ip, uint32_t len)
{
	struct rgrp_window *rw = &ip->i_window;

	if (len == rw->rw_len) {
		window_remove(rg, ip);
		return;
	}
	rgrp_bits_clear(rg->rg_soft, rgrp_number(rg, rw->rw_start), len);
	rw->rw_len -= len;
	set_start(ip, rw->rw_start + len);
}

void rgrp_window_set(struct rgrp *rg, struct inode *ip, uint32_t start,
		     uint32_t len)
{
	struct rgrp_window *rw = &ip->i_window;

	if (!claim_start(ip, rg->rg_ri.data0 + start))
		return;
	rw->rw_len = len;
	rgrp_bits_set(rg->rg_soft, start, len);
	cds_list_add(&rw->rw_list, &rg->rg_windows);
}

void rgrp_window_return(struct rgrp *rg, struct inode *ip, uint32_t start,
			uint32_t len)
{
	struct rgrp_window *rw = &ip->i_window;
	uint64_t block = rg->rg_ri.data0 + start;

	if (window_start(ip) == 0) {
		if (rgrp_window_wanted(ip))
			rgrp_window_set(rg, ip, start, len);
		return;
	}
	if (window_start(ip) != block + len)
		return;
	rgrp_bits_set(rg->rg_soft, start, len);
	rw->rw_len += len;
	set_start(ip, block);
}

void rgrp_windows_forget(struct rgrp *rg)
{
	struct rgrp_window *rw, *next;

	cds_list_for_each_entry_safe (rw, next, &rg->rg_windows, rw_list)
		window_remove(rg, ug_container_of(rw, struct inode, i_window));
}

void rgrp_window_drop(struct inode *ip)
{
	struct rgrps *rgs = ip->i_fs->fs_rgrps;
	uint64_t start;

	/* It may move on, or to another group, until its lock is held. */
	while ((start = window_start(ip)) != 0) {
		struct rgrp *rg = rgrps_find(rgs, start);

		pthread_mutex_lock(&rg->rg_lock);
		if (rgrp_maps(rg, window_start(ip)))
			window_remove(rg, ip);
		pthread_mutex_unlock(&rg->rg_lock);
	}
}
