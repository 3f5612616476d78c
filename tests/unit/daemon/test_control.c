/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_control.c - requests and answers as text: versions, verbs, arguments,
 * and what a hostile client may write.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "daemon/control.h"

static char sent[4096];

static int on_send(struct control_call *call, const char *line, size_t len)
{
	snprintf(sent, sizeof(sent), "%.*s", (int)len, line);
	return 0;
}

static const struct control_call_ops ops = { .send = on_send };

static int run_add(void *arg, struct control_call *call, const json_t *args)
{
	int a, b = 1;
	int err = control_args(call, args, "{s:i,s?i}", "a", &a, "b", &b);

	if (err)
		return err;
	*(int *)arg += 1;
	control_note(call, "adding %d", a);
	return control_result(call, json_pack("{s:i}", "sum", a + b));
}

static int run_busy(void *arg, struct control_call *call, const json_t *args)
{
	return control_fail(call, -EBUSY, "%s is \"busy\"\xff", "all");
}

static int run_raw(void *arg, struct control_call *call, const json_t *args)
{
	return control_result_text(call, strdup("{\n \"a\": [\n  1]\n}"));
}

static int run_text(void *arg, struct control_call *call, const json_t *args)
{
	int err = control_text(call, "two\nlines\nand more", 10);

	return err ? err : control_result(call, json_true());
}

static const struct control_verb verbs[] = { { "add", run_add },
					     { "text", run_text },
					     { "busy", run_busy },
					     { "raw", run_raw },
					     { NULL, NULL } };
static int calls;

/* The answer as the client has it. */
static enum control_answer ask(const char *text, size_t len, json_t **value,
			       int *err, char *why)
{
	struct control_call call = { .ops = &ops };
	char *line = control_dispatch(verbs, &calls, &call, text, len);
	enum control_answer kind;

	assert_non_null(line);
	/* One line, whatever happens. */
	assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
	assert_int_equal(0, control_parse_answer(line, strlen(line) - 1, &kind,
						 value, err, why,
						 CONTROL_WHY_LEN));
	free(line);
	return kind;
}

static void refused(const char *text, int expected, const char *words)
{
	char why[CONTROL_WHY_LEN];
	json_t *value;
	int err;

	assert_int_equal(CONTROL_ERROR,
			 ask(text, strlen(text), &value, &err, why));
	assert_int_equal(expected, err);
	if (!strstr(why, words))
		fail_msg("\"%s\" is not in \"%s\"", words, why);
}

static void test_answer(void **state)
{
	static const char text[] = "{\"version\":\"1.7\",\"verb\":\"add\","
				   "\"args\":{\"a\":41},\"later\":true}";
	char why[CONTROL_WHY_LEN];
	enum control_answer kind;
	json_t *value;
	int err, sum;

	calls = 0;
	assert_int_equal(CONTROL_RESULT,
			 ask(text, strlen(text), &value, &err, why));
	assert_int_equal(0, json_unpack(value, "{s:i}", "sum", &sum));
	assert_int_equal(42, sum);
	assert_int_equal(1, calls);
	json_decref(value);
	assert_int_equal(0,
			 control_parse_answer(sent, strlen(sent), &kind, &value,
					      &err, why, sizeof(why)));
	assert_int_equal(CONTROL_NOTE, kind);
	assert_string_equal("adding 41", json_string_value(value));
	json_decref(value);
}

/* A piece of a text comes before the result, and is one line as well. */
static void test_text(void **state)
{
	static const char text[] = "{\"version\":\"1.1\",\"verb\":\"text\"}";
	char why[CONTROL_WHY_LEN];
	enum control_answer kind;
	json_t *value;
	int err;

	assert_int_equal(CONTROL_RESULT,
			 ask(text, strlen(text), &value, &err, why));
	json_decref(value);
	assert_ptr_equal(strchr(sent, '\n'), sent + strlen(sent) - 1);
	assert_int_equal(0,
			 control_parse_answer(sent, strlen(sent), &kind, &value,
					      &err, why, sizeof(why)));
	assert_int_equal(CONTROL_TEXT, kind);
	assert_string_equal("two\nlines\n", json_string_value(value));
	json_decref(value);
}

/* A result that was laid out for people stays one line. */
static void test_raw(void **state)
{
	static const char text[] = "{\"version\":\"1.0\",\"verb\":\"raw\"}";
	char why[CONTROL_WHY_LEN];
	json_t *value;
	int err;

	assert_int_equal(CONTROL_RESULT,
			 ask(text, strlen(text), &value, &err, why));
	assert_int_equal(1, json_array_size(json_object_get(value, "a")));
	json_decref(value);
}

static void test_request(void **state)
{
	char *line =
		control_request("add", json_pack("{s:i,s:i}", "a", 1, "b", 2));
	char why[CONTROL_WHY_LEN];
	json_t *value;
	int err, sum;

	assert_int_equal(CONTROL_RESULT,
			 ask(line, strlen(line) - 1, &value, &err, why));
	assert_int_equal(0, json_unpack(value, "{s:i}", "sum", &sum));
	assert_int_equal(3, sum);
	json_decref(value);
	free(line);
}

static void test_refused(void **state)
{
	calls = 0;
	refused("", -EBADMSG, "not a request");
	refused("{", -EBADMSG, "not a request");
	refused("[]", -EBADMSG, "no object");
	refused("{}", -EBADMSG, "no version");
	refused("{\"version\":1}", -EBADMSG, "no version");
	refused("{\"version\":\"1\"}", -EBADMSG, "no version");
	refused("{\"version\":\"1.0x\"}", -EBADMSG, "no version");
	refused("{\"version\":\"2.0\",\"verb\":\"add\"}", -EPROTONOSUPPORT,
		"version 2 of");
	refused("{\"version\":\"1.0\"}", -EBADMSG, "no verb");
	refused("{\"version\":\"1.0\",\"verb\":7}", -EBADMSG, "no verb");
	refused("{\"version\":\"1.0\",\"verb\":\"sub\"}", -ENOSYS, "\"sub\"");
	refused("{\"version\":\"1.0\",\"verb\":\"add\",\"args\":[]}", -EBADMSG,
		"args");
	refused("{\"version\":\"1.0\",\"verb\":\"add\",\"verb\":\"busy\"}",
		-EBADMSG, "duplicate");
	refused("{\"version\":\"1.0\",\"verb\":\"add\"}", -EINVAL,
		"not found: a");
	refused("{\"version\":\"1.0\",\"verb\":\"add\",\"args\":{\"a\":\"1\"}}",
		-EINVAL, "integer");
	refused("{\"version\":\"1.0\",\"verb\":\"add\","
		"\"args\":{\"a\":1,\"c\":2}}",
		-EINVAL, "c");
	assert_int_equal(0, calls);
	refused("{\"version\":\"1.0\",\"verb\":\"busy\"}", -EBUSY,
		"all is \"busy\"?");
}

static void bad_answer(const char *text, const char *words)
{
	char why[CONTROL_WHY_LEN];
	enum control_answer kind;
	json_t *value;
	int err;

	assert_int_equal(-EBADMSG,
			 control_parse_answer(text, strlen(text), &kind, &value,
					      &err, why, sizeof(why)));
	if (!strstr(why, words))
		fail_msg("\"%s\" is not in \"%s\"", words, why);
}

static void test_bad_answers(void **state)
{
	bad_answer("", "else than JSON");
	bad_answer("{\"version\":\"3.1\",\"result\":1}", "version 3");
	bad_answer("{\"version\":\"1.0\"}", "neither");
	bad_answer("{\"version\":\"1.0\",\"note\":1}", "neither");
	bad_answer("{\"version\":\"1.0\",\"error\":\"no\"}", "neither");
	bad_answer("{\"version\":\"1.0\",\"error\":{\"code\":1}}", "neither");
}

/* Every cut of a request, and bytes changed at random: always one answer. */
static void test_hostile(void **state)
{
	static const char text[] = "{\"version\":\"1.0\",\"verb\":\"add\","
				   "\"args\":{\"a\":41,\"b\":-7}}";
	char copy[sizeof(text)], why[CONTROL_WHY_LEN];
	struct ug_prng prng;
	json_t *value;
	int err;

	for (size_t len = 0; len < strlen(text); len++)
		assert_int_equal(CONTROL_ERROR,
				 ask(text, len, &value, &err, why));
	ug_prng_seed(&prng, 7);
	for (unsigned i = 0; i < 20000; i++) {
		memcpy(copy, text, sizeof(text));
		for (unsigned n = 0; n < 3; n++)
			copy[ug_prng_below(&prng, sizeof(text) - 1)] =
				(char)ug_prng_below(&prng, 256);
		ask(copy, sizeof(text) - 1, &value, &err, why);
		json_decref(value);
	}
}

/* Deep nesting must not be recursion without a bound. */
static void test_deep(void **state)
{
	size_t len = CONTROL_REQUEST_MAX;
	char *text = malloc(len), why[CONTROL_WHY_LEN];
	json_t *value;
	int err;

	memset(text, '[', len);
	assert_int_equal(CONTROL_ERROR, ask(text, len, &value, &err, why));
	assert_int_equal(-EBADMSG, err);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answer),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_raw),
		cmocka_unit_test(test_request),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_bad_answers),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_deep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
