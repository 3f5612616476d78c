/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lstrace.c - the trace of a lockspace: a ring of what happened last.
 *
 * A lock that is taken and released in memory takes less time than printing a
 * line about it. So what happens all the time is kept as numbers and printed
 * when somebody asks; only what is rare, or what the engine says during a
 * recovery, is kept as text. Everything is under the lockspace's lock.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/lockspace.h"

#define TEXT_BYTES 104u

struct entry {
	uint64_t now_ns;
	uint8_t kind; /* enum ls_trace_kind */
	union {
		char text[TEXT_BYTES];
		struct {
			uint32_t lkid;
			int a, b, c;
		} op;
	};
};

struct ls_trace {
	uint64_t next; /* entries ever written */
	struct entry ring[LS_TRACE_LINES];
};

int ls_trace_init(struct ugdlm *ls)
{
	ls->trace = calloc(1, sizeof(*ls->trace));
	return ls->trace ? 0 : -ENOMEM;
}

void ls_trace_free(struct ugdlm *ls)
{
	free(ls->trace);
}

static struct entry *next_entry(struct ugdlm *ls, enum ls_trace_kind kind)
{
	struct entry *e = &ls->trace->ring[ls->trace->next++ % LS_TRACE_LINES];

	e->now_ns = ls->now_ns;
	e->kind = (uint8_t)kind;
	return e;
}

void ls_trace(struct ugdlm *ls, enum ls_trace_kind kind, uint32_t lkid, int a,
	      int b, int c)
{
	struct entry *e = next_entry(ls, kind);

	e->op.lkid = lkid;
	e->op.a = a;
	e->op.b = b;
	e->op.c = c;
}

void ls_trace_line(void *arg, const char *line)
{
	struct entry *e = next_entry(arg, LS_TR_TEXT);

	snprintf(e->text, sizeof(e->text), "%s", line);
}

void ls_trace_text(struct ugdlm *ls, const char *fmt, ...)
{
	struct entry *e = next_entry(ls, LS_TR_TEXT);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
}

static const char *mode_name(int mode)
{
	static const char *const names[] = { "IV", "NL", "CR", "CW",
					     "PR", "PW", "EX" };

	return mode >= LKM_IV && mode <= LKM_EX ? names[mode + 1] : "?";
}

static const char *status_name(int status)
{
	static const char *const names[] = {
		[UGDLM_OK] = "ok",
		[UGDLM_NOTQUEUED] = "not queued",
		[UGDLM_DEADLOCK] = "deadlock",
		[UGDLM_CANCELLED] = "cancelled",
		[UGDLM_TIMEDOUT] = "timed out",
		[UGDLM_UNLOCKED] = "unlocked",
		[UGDLM_LOST] = "lost",
	};

	return (unsigned)status < UG_ARRAY_SIZE(names) ? names[status] : "?";
}

static const char *message_name(int b)
{
	static const char *const msgs[] = {
		[DLM_MSG_REQUEST] = "request",
		[DLM_MSG_CONVERT] = "convert",
		[DLM_MSG_UNLOCK] = "unlock",
		[DLM_MSG_CANCEL] = "cancel",
		[DLM_MSG_REQUEST_REPLY] = "request reply",
		[DLM_MSG_CONVERT_REPLY] = "convert reply",
		[DLM_MSG_UNLOCK_REPLY] = "unlock reply",
		[DLM_MSG_CANCEL_REPLY] = "cancel reply",
		[DLM_MSG_GRANT] = "grant",
		[DLM_MSG_BAST] = "bast",
		[DLM_MSG_LOOKUP] = "lookup",
		[DLM_MSG_REMOVE] = "remove",
		[DLM_MSG_LOOKUP_REPLY] = "lookup reply",
		[DLM_MSG_PURGE] = "purge",
	};
	static const char *const rcoms[] = {
		[DLM_RCOM_STATUS] = "status",
		[DLM_RCOM_NAMES] = "names",
		[DLM_RCOM_LOOKUP] = "recovery lookup",
		[DLM_RCOM_LOCK] = "recovery lock",
		[DLM_RCOM_STATUS_REPLY] = "status reply",
		[DLM_RCOM_NAMES_REPLY] = "names reply",
		[DLM_RCOM_LOOKUP_REPLY] = "recovery lookup reply",
		[DLM_RCOM_LOCK_REPLY] = "recovery lock reply",
	};
	unsigned type = (unsigned)b & 0xff;
	const char *name = NULL;

	if (b >> 8 == DLM_MSG && type < UG_ARRAY_SIZE(msgs))
		name = msgs[type];
	if (b >> 8 == DLM_RCOM && type < UG_ARRAY_SIZE(rcoms))
		name = rcoms[type];
	return name ? name : "?";
}

static void print_entry(FILE *out, const struct entry *e)
{
	fprintf(out, "%llu.%06llu ",
		(unsigned long long)e->now_ns / 1000000000u,
		(unsigned long long)e->now_ns / 1000 % 1000000);
	switch ((enum ls_trace_kind)e->kind) {
	case LS_TR_TEXT:
		fprintf(out, "%s\n", e->text);
		return;
	case LS_TR_REQUEST:
		fprintf(out, "request %08x %s flags %x\n", e->op.lkid,
			mode_name(e->op.a), (unsigned)e->op.b);
		return;
	case LS_TR_CONVERT:
		fprintf(out, "convert %08x %s flags %x\n", e->op.lkid,
			mode_name(e->op.a), (unsigned)e->op.b);
		return;
	case LS_TR_UNLOCK:
		fprintf(out, "unlock %08x flags %x\n", e->op.lkid,
			(unsigned)e->op.b);
		return;
	case LS_TR_WAIT:
		fprintf(out, "call for %08x waits\n", e->op.lkid);
		return;
	case LS_TR_CAST:
		fprintf(out, "cast %08x %s mode %s flags %x\n", e->op.lkid,
			status_name(e->op.a), mode_name(e->op.b),
			(unsigned)e->op.c);
		return;
	case LS_TR_BAST:
		fprintf(out, "bast %08x mode %s\n", e->op.lkid,
			mode_name(e->op.a));
		return;
	case LS_TR_SEND:
		fprintf(out, "send %s to %d lkid %08x result %d\n",
			message_name(e->op.b), e->op.a, e->op.lkid, e->op.c);
		return;
	case LS_TR_RECEIVE:
		fprintf(out, "receive %s of %d lkid %08x result %d\n",
			message_name(e->op.b), e->op.a, e->op.lkid, e->op.c);
		return;
	}
}

/* The copy is printed without the lock, which everybody wants. */
static struct entry *copy_ring(struct ugdlm *ls, uint64_t *count)
{
	struct entry *copy = malloc(sizeof(ls->trace->ring));
	uint64_t first = 0, next;

	if (!copy)
		return NULL;
	ls_lock(ls);
	next = ls->trace->next;
	if (next > LS_TRACE_LINES)
		first = next - LS_TRACE_LINES;
	for (uint64_t i = first; i < next; i++)
		copy[i - first] = ls->trace->ring[i % LS_TRACE_LINES];
	ls_unlock(ls);
	*count = next - first;
	return copy;
}

int ugdlm_trace_text(struct ugdlm *ls, char **text)
{
	struct entry *copy;
	uint64_t count;
	size_t len;
	FILE *out;
	int err;

	copy = copy_ring(ls, &count);
	if (!copy)
		return -ENOMEM;
	out = open_memstream(text, &len);
	if (!out) {
		free(copy);
		return -ENOMEM;
	}
	for (uint64_t i = 0; i < count; i++)
		print_entry(out, &copy[i]);
	err = ferror(out);
	if (fclose(out) || err) {
		free(*text);
		err = -ENOMEM;
	}
	free(copy);
	return err;
}
