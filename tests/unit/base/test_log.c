/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_log.c - what an administrator sees of the log: which lines come out,
 * what the ring keeps, that a line stays one line.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"

#define RING_LINES 4096

static char *dump_text(void)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	ug_log_dump(out);
	fclose(out);
	return text;
}

static unsigned count_lines(const char *text, const char *needle)
{
	unsigned n = 0;

	for (; (text = strstr(text, needle)); text += strlen(needle))
		n++;
	return n;
}

/* What one call of fn writes to stderr, as a string. */
static char *stderr_of(void (*fn)(void))
{
	static char text[4096];
	FILE *file = tmpfile();
	int saved = dup(STDERR_FILENO);
	size_t n;

	assert_non_null(file);
	fflush(stderr);
	assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
	fn();
	fflush(stderr);
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	close(saved);
	rewind(file);
	n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = '\0';
	fclose(file);
	return text;
}

static void say_all_levels(void)
{
	ug_error("vol1: block 7", "level %d", 0);
	ug_warn("vol1", "level %d", 1);
	ug_info("vol1", "level %d", 2);
	ug_debug("vol1", "level %d", 3);
	ug_trace("vol1", "level %d", 4);
}

static void test_levels_decide_what_is_shown(void **state)
{
	char *text = stderr_of(say_all_levels);

	assert_non_null(strstr(text, "error vol1: block 7: level 0\n"));
	assert_non_null(strstr(text, "warn  vol1: level 1\n"));
	assert_non_null(strstr(text, "info  vol1: level 2\n"));
	assert_null(strstr(text, "level 3"));

	ug_log_set_level(UG_TRACE);
	assert_non_null(
		strstr(stderr_of(say_all_levels), "trace vol1: level 4"));
	ug_log_set_level(UG_ERROR);
	assert_null(strstr(stderr_of(say_all_levels), "level 1"));
}

static void test_ring_has_all_levels(void **state)
{
	char *text;

	say_all_levels();
	text = dump_text();
	assert_non_null(strstr(text, "debug vol1: level 3\n"));
	assert_non_null(strstr(text, "trace vol1: level 4\n"));
	free(text);
}

static void test_ring_keeps_the_newest_in_order(void **state)
{
	char *text, *line;
	unsigned expect = 904;

	for (unsigned i = 0; i < RING_LINES + 904; i++)
		ug_trace("order", "line %u.", i);
	text = dump_text();
	assert_int_equal(count_lines(text, "\n"), RING_LINES);
	for (line = text; (line = strstr(line, "order: line ")); expect++) {
		line += strlen("order: line ");
		assert_int_equal(strtoul(line, NULL, 10), expect);
	}
	assert_int_equal(expect, RING_LINES + 904);
	free(text);
}

static void test_long_lines_say_that_they_were_cut(void **state)
{
	char long_text[1000];
	char *text;

	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	ug_trace("cut", "%s", long_text);
	ug_trace(long_text, "%s", "never seen");
	text = dump_text();
	assert_int_equal(count_lines(text, "xxx...\n"), 2);
	assert_null(strstr(text, "never seen"));
	free(text);
}

static void test_hostile_text_stays_one_line(void **state)
{
	char *text;

	ug_trace("evil", "a\nerror vol1: b\x1b[2J");
	text = dump_text();
	assert_non_null(strstr(text, "evil: a?error vol1: b?[2J\n"));
	free(text);
}

static void *write_many(void *arg)
{
	for (unsigned i = 0; i < 20000; i++)
		ug_trace("thread", "%s%u.", (const char *)arg, i);
	return NULL;
}

static void test_threads_do_not_mix_lines(void **state)
{
	pthread_t threads[3];
	static char *names[] = { "aaaaaaaa", "bbbbbbbb", "cccccccc" };
	char *text, *line, *save;

	for (int i = 0; i < 3; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, write_many, names[i]),
			0);
	free(dump_text());
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);

	text = dump_text();
	assert_int_equal(count_lines(text, "\n"), RING_LINES);
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		char *body = strstr(line, "thread: ");

		assert_non_null(body);
		body += strlen("thread: ");
		assert_int_equal(strspn(body, (char[]){ body[0], 0 }), 8);
		assert_int_equal(body[strlen(body) - 1], '.');
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_levels_decide_what_is_shown),
		cmocka_unit_test(test_ring_has_all_levels),
		cmocka_unit_test(test_ring_keeps_the_newest_in_order),
		cmocka_unit_test(test_long_lines_say_that_they_were_cut),
		cmocka_unit_test(test_hostile_text_stays_one_line),
		cmocka_unit_test(test_threads_do_not_mix_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
