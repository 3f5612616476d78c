/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_clusterconf.c - what is read from cluster.conf, and what is said of a
 * file that is wrong: which line, what is there, what should be.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/clusterconf.h"

static char why[512], notes[1024];

static void note(void *arg, const char *sentence)
{
	strncat(notes, sentence, sizeof(notes) - strlen(notes) - 2);
	strcat(notes, "\n");
}

static int parse(const char *text, struct plock_settings *set)
{
	why[0] = notes[0] = '\0';
	return clusterconf_parse(text, strlen(text), "c.conf", set, note, NULL,
				 why, sizeof(why));
}

static struct plock_settings good(const char *text)
{
	struct plock_settings set;

	plock_settings_init(&set);
	if (parse(text, &set))
		fail_msg("%s: %s", text, why);
	return set;
}

static void refused(const char *text, const char *sentence)
{
	struct plock_settings set, before;

	plock_settings_init(&set);
	before = set;
	assert_int_equal(parse(text, &set), -EINVAL);
	assert_string_equal(why, sentence);
	assert_memory_equal(&set, &before, sizeof(set));
}

static void test_built_in(void **state)
{
	struct plock_settings set = good("<cluster name='a'/>");

	assert_int_equal(set.value[PLOCKSET_OWNERSHIP], 1);
	assert_int_equal(set.value[PLOCKSET_RATE_LIMIT], 0);
	assert_int_equal(set.value[PLOCKSET_DROP_AGE], 10000);
	assert_int_equal(set.value[PLOCKSET_ENABLE], 1);
	assert_int_equal(set.value[PLOCKSET_MODE], PLOCK_MODE_DIRECT);
	assert_int_equal(set.from[PLOCKSET_MODE], PLOCK_BUILT_IN);
}

/* With everything that such a file has, also for others. */
static void test_whole_file(void **state)
{
	struct plock_settings set = good(
		"<?xml version=\"1.0\"?>\n"
		"<cluster name=\"alpha\" config_version=\"7\">\n"
		"  <gulm heartbeat_rate=\"2\" allowed_misses=\"2\">\n"
		"    <lockserver name=\"lk1\"/>\n"
		"  </gulm>\n"
		"  <!-- <dlm plock_ownership=\"9\"/> -->\n"
		"  <cman expected_votes=\"3\" two_node=\"0\"/>\n"
		"  <clusternodes><clusternode name=\"fs1\" nodeid=\"1\">\n"
		"    <fence><method name=\"power\"/></fence>\n"
		"  </clusternode></clusternodes>\n"
		"  <dlm protocol='tcp' plock_ownership=\"0\"\n"
		"       plock_rate_limit='250' drop_resources_time=\"1\"\n"
		"       drop_resources_count=\"2\"\n"
		"       drop_resources_age=\"3\" enable_plock=\"0\">\n"
		"    <lockspace name=\"x\" nodir=\"1\"/>\n"
		"  </dlm>\n"
		"  <gfs_controld plock_rate_limit=\"100\" plock_debug=\"1\"\n"
		"    plock_mode=\"group\"/>\n"
		"</cluster>\n");
	static const uint32_t values[PLOCKSET_COUNT] = {
		0, 250, 1, 2, 3, 0, PLOCK_MODE_GROUP
	};
	struct plock_tuning tuning = plock_settings_tuning(&set);

	assert_memory_equal(set.value, values, sizeof(values));
	assert_int_equal(set.from[PLOCKSET_RATE_LIMIT], PLOCK_DLM);
	assert_int_equal(set.from[PLOCKSET_MODE], PLOCK_GFS_CONTROLD);
	assert_int_equal(tuning.rate_limit, 250);
	assert_int_equal(tuning.drop_every_ns, 1000000);
	assert_int_equal(tuning.drop_count, 2);
	assert_int_equal(tuning.idle_ns, 3000000);
	assert_string_equal(notes, "");
}

/* Whatever comes first in the file. */
static void test_precedence(void **state)
{
	struct plock_settings set = good("<cluster><dlm plock_rate_limit='1'/>"
					 "<gfs_controld plock_rate_limit='2' "
					 "drop_resources_age='7'/></cluster>");
	char expected[64];

	assert_int_equal(set.value[PLOCKSET_RATE_LIMIT], 1);
	assert_int_equal(set.value[PLOCKSET_DROP_AGE], 7);
	set = good("<cluster><gfs_controld plock_rate_limit='2'/>"
		   "<dlm plock_rate_limit='1'/></cluster>");
	assert_int_equal(set.value[PLOCKSET_RATE_LIMIT], 1);

	plock_settings_init(&set);
	assert_int_equal(plock_setting_parse(&set, PLOCKSET_RATE_LIMIT, "5",
					     PLOCK_MOUNT_OPTION, expected,
					     sizeof(expected)),
			 0);
	assert_int_equal(
		parse("<cluster><dlm plock_rate_limit='1'/></cluster>", &set),
		0);
	assert_int_equal(set.value[PLOCKSET_RATE_LIMIT], 5);
}

static void test_characters(void **state)
{
	refused("<cluster>\n"
		"  <gfs_controld plock_rate_limit=”0″/>\n"
		"</cluster>\n",
		"c.conf:2: found '”' (U+201D), expected \" or ' before the "
		"value of an attribute");
	refused("<cluster>\n<dlm plock_rate_limit=0/>\n</cluster>",
		"c.conf:2: found '0', expected \" or ' before the value of an "
		"attribute");
	refused("<cluster>\n\n<dlm plock_rate_limit=\"0/>\n</cluster>\n",
		"c.conf:4: found '<', expected \" or ' at the end of the value "
		"of an attribute");
	refused("<cluster>\n<dlm plock_rate_limit=\"0\"plock_ownership='1'/>"
		"</cluster>",
		"c.conf:2: found 'p', expected a space");
	refused("<cluster>\n<dlm plock_rate_limit/></cluster>",
		"c.conf:2: found '/', expected = and a value behind the name "
		"of an attribute");
	refused("<cluster>\n<dlm>\x01</dlm></cluster>",
		"c.conf:2: found a byte 0x01, expected a character that XML "
		"allows");
	refused("<cluster>\n<dlm>\xe4</dlm></cluster>",
		"c.conf:2: found a byte 0xE4, expected text in UTF-8");
	refused("<?xml version='1.0' encoding='ISO-8859-1'?>\n"
		"<cluster name='\xe4'/>",
		"c.conf:2: found a byte 0xE4, expected text in UTF-8");
	good("<?xml version='1.0' encoding='ISO-8859-1'?><cluster/>");
	refused("", "c.conf:1: found the end of the file, expected <cluster>");
	refused("plock_ownership=1\n", "c.conf:1: found 'p', expected "
				       "<cluster>");
	refused("<cluster/>\n<dlm/>\n",
		"c.conf:2: found '<', expected nothing behind the end of "
		"<cluster>");
}

static void test_elements(void **state)
{
	refused("<?xml version='1.0'?>\n<clutser>\n</clutser>",
		"c.conf:2: found <clutser>, expected <cluster>");
	refused("<cluster><dlm/>\n<dlm/></cluster>",
		"c.conf:2: found a second <dlm>, expected one at most");
	refused("<cluster>\n<cman>\n<dlm/></cman></cluster>",
		"c.conf:3: found <dlm> in another element, expected it in "
		"<cluster>");
	refused("<!DOCTYPE cluster>\n<cluster/>",
		"c.conf:1: found <!DOCTYPE, expected <cluster>");
	refused("<!DOCTYPE c [<!ENTITY a '1'>]>\n"
		"<cluster><dlm plock_ownership='&a;'/></cluster>",
		"c.conf:1: found <!DOCTYPE, expected <cluster>");
	good("<cluster><clusternodes/>\n<dml plock_ownership='0'/></cluster>");
	assert_string_equal(notes, "c.conf:2: <dml> is not known and has no "
				   "effect\n");
}

static void test_values(void **state)
{
	refused("<cluster>\n<dlm plock_ownership='2'/></cluster>",
		"c.conf:2: found plock_ownership=\"2\" in <dlm>, expected a "
		"number from 0 to 1");
	/* Of an attribute it is its own line. */
	refused("<cluster>\n<dlm plock_ownership='1'\n"
		"  plock_rate_limit=' 1'\n  enable_plock='1'\n/></cluster>",
		"c.conf:3: found plock_rate_limit=\" 1\" in <dlm>, expected a "
		"number from 0 to 1000000");
	refused("<cluster><gfs_controld\n\ndrop_resources_count='-1'/>"
		"</cluster>",
		"c.conf:3: found drop_resources_count=\"-1\" in "
		"<gfs_controld>, expected a number from 1 to 1000000");
	refused("<cluster><dlm plock_mode='fast'/></cluster>",
		"c.conf:1: found plock_mode=\"fast\" in <dlm>, expected direct "
		"or group");
	refused("<cluster><dlm plock_rate_limt='1'/></cluster>",
		"c.conf:1: found attribute plock_rate_limt of <dlm>, expected "
		"plock_ownership, plock_rate_limit, drop_resources_time, "
		"drop_resources_count, drop_resources_age, enable_plock or "
		"plock_mode");
	refused("<cluster><dlm enable_plock=''/></cluster>",
		"c.conf:1: found enable_plock=\"\" in <dlm>, expected a number "
		"from 0 to 1");
	refused("<cluster><dlm plock_ownership='"
		"00000000000000000000000000000000000000000000000000000000000000"
		"0000000000000000000000001'/></cluster>",
		"c.conf:1: found plock_ownership=\""
		"000000000000000000000000000000000000000000000000000000000..."
		"\" in <dlm>, expected a number from 0 to 1");
}

static void test_files(void **state)
{
	char path[] = "/tmp/test-clusterconf-XXXXXX";
	static const char text[] = "<cluster><dlm plock_ownership='0'/>"
				   "</cluster>";
	struct plock_settings set;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	plock_settings_init(&set);
	assert_int_equal(
		clusterconf_read(path, &set, NULL, NULL, why, sizeof(why)), 0);
	assert_int_equal(set.value[PLOCKSET_OWNERSHIP], 0);
	assert_int_equal(ftruncate(fd, CLUSTERCONF_BYTES_MAX + 1), 0);
	assert_int_equal(
		clusterconf_read(path, &set, NULL, NULL, why, sizeof(why)),
		-EINVAL);
	assert_non_null(strstr(why, "found more than 1048576 bytes"));
	close(fd);
	unlink(path);
	assert_int_equal(
		clusterconf_read(path, &set, NULL, NULL, why, sizeof(why)),
		-ENOENT);
	assert_non_null(strstr(why, ": No such file"));
	assert_int_equal(
		clusterconf_read("/tmp", &set, NULL, NULL, why, sizeof(why)),
		-EISDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_built_in),
		cmocka_unit_test(test_whole_file),
		cmocka_unit_test(test_precedence),
		cmocka_unit_test(test_characters),
		cmocka_unit_test(test_elements),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
