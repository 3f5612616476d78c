/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * log.c - lines to the log and to the ring.
 *
 *   caller --format once, on its stack--> line --copy, under the lock--> ring
 *                                           |
 *                                           +--level permits--> stderr/syslog
 *
 * A trace line costs the formatting, a clock read in user space and a copy of
 * its own length; the lock is held for the copy only. Neither formatting nor
 * output happens under it, so a slow terminal holds up nobody else.
 *
 * The ring is one array of UG_LOG_RING_LINES fixed slots. Line n is in slot
 * n modulo that; next counts all lines ever written. A dump walks the numbers
 * and skips what was overwritten before it got there.
 */
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <syslog.h>
#include <time.h>

#include "base/log.h"

#define UG_LOG_RING_LINES 4096u
#define UG_LOG_LINE_BYTES 240u

struct log_line {
	struct timespec time;
	uint16_t len; /* of text, without the NUL */
	uint8_t level;
	char text[UG_LOG_LINE_BYTES - sizeof(struct timespec) - 3];
};
static_assert(sizeof(struct log_line) == UG_LOG_LINE_BYTES,
	      "slots without padding");

static struct {
	pthread_mutex_t lock; /* guards lines and next */
	uint64_t next;
	struct log_line lines[UG_LOG_RING_LINES];
} ring = { .lock = PTHREAD_MUTEX_INITIALIZER };

static _Atomic(enum ug_level) log_level = UG_INFO;
static _Atomic(enum ug_log_target) log_target = UG_LOG_STDERR;

void ug_log_set_target(enum ug_log_target target)
{
	log_target = target;
}

void ug_log_set_level(enum ug_level level)
{
	log_level = level;
}

static const char *level_name(enum ug_level level)
{
	static const char *const names[] = {
		[UG_ERROR] = "error", [UG_WARN] = "warn",   [UG_INFO] = "info",
		[UG_DEBUG] = "debug", [UG_TRACE] = "trace",
	};

	return (unsigned)level < UG_ARRAY_SIZE(names) ? names[level] : "?";
}

static int level_priority(enum ug_level level)
{
	static const int priorities[] = {
		[UG_ERROR] = LOG_ERR,	[UG_WARN] = LOG_WARNING,
		[UG_INFO] = LOG_INFO,	[UG_DEBUG] = LOG_DEBUG,
		[UG_TRACE] = LOG_DEBUG,
	};

	return (unsigned)level < UG_ARRAY_SIZE(priorities) ? priorities[level]
							   : LOG_DEBUG;
}

/*
 * Names and labels from disks and peers end up in lines: what could end a
 * line or steer a terminal becomes a question mark.
 */
static void text_make_printable(char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			text[i] = '?';
}

/* Fill line->text with "who: message"; a line that does not fit ends in "...".
 */
static void ug_printf(3, 0) line_format(struct log_line *line, const char *who,
					const char *fmt, va_list ap)
{
	size_t size = sizeof(line->text);
	size_t len = strnlen(who, size);
	int n;

	memcpy(line->text, who, len);
	if (len + 2 < size) {
		memcpy(line->text + len, ": ", 2);
		len += 2;
		n = vsnprintf(line->text + len, size - len, fmt, ap);
		len += n < 0 ? 0 : (size_t)n;
	} else {
		len = size;
	}
	if (len >= size) {
		len = size - 1;
		memcpy(line->text + len - 3, "...", 4);
	}
	line->text[len] = '\0';
	text_make_printable(line->text, len);
	line->len = (uint16_t)len;
}

static void ring_put(const struct log_line *line)
{
	struct log_line *slot;

	pthread_mutex_lock(&ring.lock);
	slot = &ring.lines[ring.next++ % UG_LOG_RING_LINES];
	memcpy(slot, line, offsetof(struct log_line, text) + line->len + 1u);
	pthread_mutex_unlock(&ring.lock);
}

/* One call of stdio per line, so that lines of different threads do not mix. */
static void line_print(FILE *out, const struct log_line *line)
{
	struct tm tm;
	char day[32];

	if (!localtime_r(&line->time.tv_sec, &tm) ||
	    !strftime(day, sizeof(day), "%F %T", &tm))
		day[0] = '\0';
	fprintf(out, "%s.%06ld %-5s %s\n", day, line->time.tv_nsec / 1000,
		level_name(line->level), line->text);
}

void ug_log(enum ug_level level, const char *who, const char *fmt, ...)
{
	struct log_line line;
	va_list ap;

	clock_gettime(CLOCK_REALTIME, &line.time);
	line.level = (uint8_t)level;
	va_start(ap, fmt);
	line_format(&line, who, fmt, ap);
	va_end(ap);
	ring_put(&line);

	if (level > log_level)
		return;
	if (log_target == UG_LOG_SYSLOG)
		syslog(level_priority(level), "%s", line.text);
	else
		line_print(stderr, &line);
}

/*
 * Copy line *n, or the oldest one still there if it has been overwritten, and
 * move *n to it. False when there is no such line yet.
 */
static bool ring_get(uint64_t *n, struct log_line *line)
{
	bool found = false;

	pthread_mutex_lock(&ring.lock);
	if (ring.next > UG_LOG_RING_LINES && *n < ring.next - UG_LOG_RING_LINES)
		*n = ring.next - UG_LOG_RING_LINES;
	if (*n < ring.next) {
		*line = ring.lines[*n % UG_LOG_RING_LINES];
		found = true;
	}
	pthread_mutex_unlock(&ring.lock);
	return found;
}

void ug_log_dump(FILE *out)
{
	struct log_line line;
	uint64_t n = 0;
	uint64_t end;

	/* Lines written during the dump are not chased: it must end. */
	pthread_mutex_lock(&ring.lock);
	end = ring.next;
	pthread_mutex_unlock(&ring.lock);

	while (n < end && ring_get(&n, &line)) {
		line_print(out, &line);
		n++;
	}
	fflush(out);
}
