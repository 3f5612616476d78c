/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * modes.c - tables of lock modes, drawn as those of docs/spec/dlm.md.
 */
#include "dlm/modes.h"

#include <assert.h>

#define MODES (LKM_EX + 1)

/* Spec 1.4: can both be granted at once? Row and column may be swapped. */
static const bool compatible[MODES][MODES] = {
	/*       NL CR CW PR PW EX */
	/* NL */ { 1, 1, 1, 1, 1, 1 },
	/* CR */ { 1, 1, 1, 1, 1, 0 },
	/* CW */ { 1, 1, 1, 0, 0, 0 },
	/* PR */ { 1, 1, 0, 1, 0, 0 },
	/* PW */ { 1, 1, 0, 0, 0, 0 },
	/* EX */ { 1, 0, 0, 0, 0, 0 },
};

#define K LVB_KEEP
#define R LVB_READ
#define W LVB_WRITE
/* Spec 1.13: row = held before (first row: a new lock), column = granted */
static const unsigned char lvb_moves[MODES + 1][MODES] = {
	/*       NL CR CW PR PW EX */
	/* -- */ { R, R, R, R, R, R },
	/* NL */ { R, R, R, R, R, R },
	/* CR */ { K, R, R, R, R, R },
	/* CW */ { K, K, R, R, R, R },
	/* PR */ { K, K, K, R, R, R },
	/* PW */ { W, W, W, W, W, R },
	/* EX */ { W, W, W, W, W, W },
};
#undef K
#undef R
#undef W

/* Spec 1.5: conversions that may ask to queue behind other conversions */
static const bool may_queue[MODES][MODES] = {
	/*       NL CR CW PR PW EX */
	/* NL */ { 0, 1, 1, 1, 1, 1 },
	/* CR */ { 0, 0, 1, 1, 1, 1 },
	/* CW */ { 0, 0, 0, 1, 1, 1 },
	/* PR */ { 0, 0, 1, 0, 1, 1 },
	/* PW */ { 0, 0, 0, 0, 0, 1 },
	/* EX */ { 0, 0, 0, 0, 0, 0 },
};

bool mode_valid(int mode)
{
	return mode >= LKM_NL && mode <= LKM_EX;
}

bool modes_conflict(int a, int b)
{
	if (a == LKM_IV || b == LKM_IV)
		return false;
	return !compatible[a][b];
}

bool dlm_modes_compatible(enum dlm_mode a, enum dlm_mode b)
{
	return !modes_conflict(a, b);
}

enum lvb_move mode_lvb(int from, int to)
{
	return (enum lvb_move)lvb_moves[from + 1][to];
}

bool mode_may_queue(int from, int to)
{
	return may_queue[from][to];
}

bool mode_is_middle(int from, int to)
{
	return (from == LKM_PR && to == LKM_CW) ||
	       (from == LKM_CW && to == LKM_PR);
}

bool mode_is_down(int from, int to)
{
	return to < from && !mode_is_middle(from, to);
}

const char *mode_name(int mode)
{
	static const char *const names[] = { "--", "NL", "CR", "CW",
					     "PR", "PW", "EX" };

	return names[mode + 1];
}
