/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_dlm_options.c - the options of a lock process, modes, and the histogram
 * of the benchmark.
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

#include "daemon/dlm_latency.h"
#include "daemon/dlm_options.h"

static void test_options(void **state)
{
	struct dlm_options opt = { 0 };
	char why[512];

	assert_int_equal(0,
			 dlm_options_parse(&opt,
					   "key_file=/k,ports=4000-4010,toss=5,"
					   "member_timeout=2.5,trace_all,"
					   "fence_action=reboot,kill_timeout=1,"
					   "fence=/sbin/agent -a 1,2 x=y",
					   why, sizeof(why)));
	assert_string_equal("/k", opt.config.key_file);
	assert_int_equal(4000, opt.config.port_first);
	assert_int_equal(4010, opt.config.port_last);
	assert_int_equal(5, opt.config.toss_sec);
	assert_int_equal(2500, opt.config.member_timeout_ms);
	assert_true(opt.config.trace_all);
	assert_string_equal("reboot", opt.supervise.fence_action);
	assert_int_equal(1000, opt.supervise.kill_timeout_ms);
	assert_string_equal("/sbin/agent -a 1,2 x=y", opt.supervise.fence);
	/* The last one counts. */
	assert_int_equal(
		0, dlm_options_parse(&opt, "fence=manual", why, sizeof(why)));
	assert_string_equal("manual", opt.supervise.fence);
	assert_int_equal(0,
			 dlm_options_parse(&opt, "ports=9", why, sizeof(why)));
	assert_int_equal(9, opt.config.port_last);
	dlm_options_free(&opt);
}

static void refused(const char *text, const char *words)
{
	struct dlm_options opt = { 0 };
	char why[512];

	assert_int_equal(-EINVAL,
			 dlm_options_parse(&opt, text, why, sizeof(why)));
	if (!strstr(why, words))
		fail_msg("\"%s\" is not in \"%s\"", words, why);
	dlm_options_free(&opt);
}

static void test_refused(void **state)
{
	refused("frob=1", "frob: unknown option");
	refused("toss=5,frob", "frob: unknown option");
	refused("ports=70000", "ports=70000: expected FIRST-LAST");
	refused("ports=9-8", "ports=9-8");
	refused("ports=", "expected");
	refused("toss", "toss: expected seconds");
	refused("toss=0", "toss=0");
	refused("toss=1.5", "toss=1.5");
	refused("member_timeout=inf", "member_timeout=inf");
	refused("member_timeout=0", "member_timeout=0");
	refused("member_timeout=-1", "member_timeout=-1");
	refused("trace_all=1", "trace_all=1: expected no value");
	refused("fence_action=kill", "off or reboot");
	refused("key_file=", "the path of a file");
	refused("fence", "none, manual or a command");
	refused("=", "unknown option");
}

static void test_modes(void **state)
{
	assert_int_equal(UGDLM_EX, dlm_parse_mode("ex"));
	assert_int_equal(UGDLM_NL, dlm_parse_mode("NL"));
	assert_int_equal(UGDLM_IV, dlm_parse_mode("E"));
	assert_int_equal(UGDLM_IV, dlm_parse_mode(""));
	for (int m = UGDLM_NL; m <= UGDLM_EX; m++)
		assert_int_equal(
			m, dlm_parse_mode(dlm_mode_name((enum ugdlm_mode)m)));
	assert_string_equal("none", dlm_mode_name(UGDLM_IV));
}

static void test_latency(void **state)
{
	struct latency a = { 0 }, b = { 0 };

	assert_int_equal(0, latency_percentile(&a, 50));
	for (uint64_t i = 1; i <= 500; i++)
		latency_add(&a, i * 1000);
	for (uint64_t i = 501; i <= 1000; i++)
		latency_add(&b, i * 1000);
	latency_merge(&a, &b);
	assert_int_equal(1000, a.count);
	assert_int_equal(1000000, a.max_ns);
	assert_in_range(latency_percentile(&a, 50), 500000, 535000);
	assert_in_range(latency_percentile(&a, 99), 990000, 1000000);
	assert_int_equal(1000000, latency_percentile(&a, 100));
	assert_true(latency_mean(&a) == 500500.0);
	latency_add(&a, UINT64_MAX / 2);
	assert_int_equal(UINT64_MAX / 2, a.max_ns);
	memset(&a, 0, sizeof(a));
	/* Every value is in a bucket that does not end below it. */
	for (uint64_t v = 0; v < 1ull << 39; v = v * 5 / 4 + 1) {
		memset(&a, 0, sizeof(a));
		latency_add(&a, v);
		assert_int_equal(v, latency_percentile(&a, 50));
		latency_add(&a, UINT64_MAX / 4);
		assert_in_range(latency_percentile(&a, 50), v, v + v / 16);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_modes),
		cmocka_unit_test(test_latency),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
