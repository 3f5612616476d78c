/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_control_server.c - the socket: several clients, silent and greedy ones,
 * verbs that wait, sockets that are left over, and the end.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/control_client.h"
#include "daemon/control_server.h"

#define NAME "a:b/%c"

static char dir[] = "/tmp/ugfs-control.XXXXXX";
static struct control_server *server;
static struct control_peers peers;
static int event;
static _Atomic int waited; /* how control_wait() has ended */

static int run_echo(void *arg, struct control_call *call, const json_t *args)
{
	return control_result(call, json_incref((json_t *)args));
}

static int run_wait(void *arg, struct control_call *call, const json_t *args)
{
	int err;

	control_note(call, "waiting");
	err = control_wait(call, event, -1);
	waited = err ? err : 1;
	return err ? control_fail(call, err, "interrupted")
		   : control_result(call, json_true());
}

static int run_time(void *arg, struct control_call *call, const json_t *args)
{
	int err = control_wait(call, event, 10);

	return control_fail(call, err, "time");
}

static int run_large(void *arg, struct control_call *call, const json_t *args)
{
	size_t len = 8 << 20;
	char *text = malloc(len + 3);

	memset(text, 'x', len + 2);
	text[0] = text[len + 1] = '"';
	text[len + 2] = '\0';
	return control_result_text(call, text);
}

static const struct control_verb verbs[] = {
	{ "echo", run_echo },	{ "wait", run_wait }, { "time", run_time },
	{ "large", run_large }, { NULL, NULL },
};

static int start(void **state)
{
	const struct control_server_config config = {
		.dir = dir, .kind = "test", .name = NAME, .verbs = verbs
	};
	char why[512];

	event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	waited = 0;
	assert_int_equal(
		0, control_server_start(&config, &server, why, sizeof(why)));
	assert_int_equal(0, control_find(dir, "test", NAME, &peers));
	assert_int_equal(1, peers.count);
	return 0;
}

static int stop(void **state)
{
	control_server_stop(server);
	server = NULL;
	control_peers_free(&peers);
	assert_int_equal(0, control_find(dir, "test", NULL, &peers));
	assert_int_equal(0, peers.count);
	close(event);
	return 0;
}

static int ask(const char *verb, json_t *args, json_t **result, char *why)
{
	const struct control_question q = { .dir = dir,
					    .peer = &peers.peer[0],
					    .verb = verb,
					    .args = args,
					    .timeout_ms = 20000 };

	return control_ask(&q, result, why, CONTROL_WHY_LEN);
}

static void answers(void)
{
	char why[CONTROL_WHY_LEN];
	json_t *result;

	assert_int_equal(0,
			 ask("echo", json_pack("{s:i}", "a", 5), &result, why));
	assert_int_equal(5, json_integer_value(json_object_get(result, "a")));
	json_decref(result);
}

/* A client by hand. */
static int connect_raw(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int n, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	n = snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s", dir,
		     peers.peer[0].file);
	assert_true(n < (int)sizeof(addr.sun_path));
	assert_int_equal(0,
			 connect(fd, (struct sockaddr *)&addr, sizeof(addr)));
	return fd;
}

/* What comes until the end of the connection. */
static void read_all(int fd, char *buf, size_t len)
{
	size_t got = 0;
	ssize_t n;

	while (got < len - 1 && (n = read(fd, buf + got, len - 1 - got)) > 0)
		got += (size_t)n;
	buf[got] = '\0';
}

static void test_answers(void **state)
{
	char why[CONTROL_WHY_LEN];
	struct stat st;
	char path[256];
	json_t *result;

	answers();
	assert_string_equal(NAME, peers.peer[0].name);
	assert_int_equal(getpid(), peers.peer[0].pid);
	snprintf(path, sizeof(path), "%s/%s", dir, peers.peer[0].file);
	assert_int_equal(0, stat(path, &st));
	assert_int_equal(0600, st.st_mode & 0777);
	assert_int_equal(-ENOSYS, ask("nothing", NULL, &result, why));
	assert_non_null(strstr(why, "nothing"));
	assert_int_equal(-ETIMEDOUT, ask("time", NULL, &result, why));
	assert_string_equal("time", why);
	assert_int_equal(0, ask("large", NULL, &result, why));
	assert_int_equal(8 << 20, json_string_length(result));
	json_decref(result);
}

/* Two requests in one write, and one byte by byte. */
static void test_pieces(void **state)
{
	static const char text[] = "{\"version\":\"1.0\",\"verb\":\"echo\"}\n";
	char buf[512];
	int fd = connect_raw();

	for (size_t i = 0; i < strlen(text); i++)
		assert_int_equal(1, write(fd, text + i, 1));
	assert_int_equal(strlen(text), write(fd, text, strlen(text)));
	assert_int_equal(strlen(text), write(fd, text, strlen(text)));
	shutdown(fd, SHUT_WR);
	read_all(fd, buf, sizeof(buf));
	assert_string_equal("{\"version\":\"1.1\",\"result\":{}}\n"
			    "{\"version\":\"1.1\",\"result\":{}}\n"
			    "{\"version\":\"1.1\",\"result\":{}}\n",
			    buf);
	close(fd);
}

/* One that never ends a line is told so; others are served meanwhile. */
static void test_endless(void **state)
{
	char *text = malloc(CONTROL_REQUEST_MAX), buf[512];
	int fd = connect_raw();

	memset(text, '{', CONTROL_REQUEST_MAX);
	for (size_t done = 0; done < CONTROL_REQUEST_MAX;) {
		ssize_t n = send(fd, text, CONTROL_REQUEST_MAX - done,
				 MSG_NOSIGNAL);

		assert_true(n > 0);
		done += (size_t)n;
		answers();
	}
	read_all(fd, buf, sizeof(buf));
	assert_non_null(strstr(buf, "longer than 65536"));
	close(fd);
	free(text);
	answers();
}

/* Silent clients take all connections: a further one hears it. */
static void test_crowd(void **state)
{
	int fds[CONTROL_CONNECTIONS];
	char why[CONTROL_WHY_LEN];
	json_t *result;
	int err;

	for (unsigned i = 0; i < CONTROL_CONNECTIONS; i++)
		fds[i] = connect_raw();
	err = ask("echo", NULL, &result, why);
	assert_int_equal(-EBUSY, err);
	assert_non_null(strstr(why, "too many"));
	for (unsigned i = 0; i < CONTROL_CONNECTIONS; i++)
		close(fds[i]);
	while ((err = ask("echo", NULL, &result, why)) == -EBUSY)
		usleep(1000);
	assert_int_equal(0, err);
	json_decref(result);
}

/* One that asks for much and reads nothing holds up nobody. */
static void test_greedy(void **state)
{
	static const char text[] = "{\"version\":\"1.0\",\"verb\":\"large\"}\n";
	int fd = connect_raw();

	assert_int_equal(strlen(text), write(fd, text, strlen(text)));
	answers();
	close(fd);
}

static void until_waited(int expected)
{
	while (!waited)
		usleep(1000);
	assert_int_equal(expected, waited);
}

/* A client that goes away ends what waits for it. */
static void test_client_gone(void **state)
{
	static const char text[] = "{\"version\":\"1.0\",\"verb\":\"wait\"}\n";
	char buf[64];
	int fd = connect_raw();

	assert_int_equal(strlen(text), write(fd, text, strlen(text)));
	assert_true(read(fd, buf, sizeof(buf)) > 0);
	close(fd);
	until_waited(-ECONNRESET);
}

static void *ring(void *arg)
{
	usleep(20000);
	eventfd_write(event, 1);
	return NULL;
}

static void test_waited_for(void **state)
{
	char why[CONTROL_WHY_LEN];
	pthread_t thread;
	json_t *result;

	pthread_create(&thread, NULL, ring, NULL);
	assert_int_equal(0, ask("wait", NULL, &result, why));
	json_decref(result);
	pthread_join(thread, NULL);
	until_waited(1);
}

static void *stop_soon(void *arg)
{
	usleep(20000);
	control_server_stop(server);
	return NULL;
}

/* The end interrupts what waits, and its answer still arrives. */
static void test_stop(void **state)
{
	char why[CONTROL_WHY_LEN];
	pthread_t thread;
	json_t *result;

	pthread_create(&thread, NULL, stop_soon, NULL);
	assert_int_equal(-ESHUTDOWN, ask("wait", NULL, &result, why));
	assert_string_equal("interrupted", why);
	pthread_join(thread, NULL);
	server = NULL;
}

/* What a killed process has left is not found, and goes away. */
static void test_left_over(void **state)
{
	char why[CONTROL_WHY_LEN], path[256];
	struct control_peers found;
	struct stat st;
	json_t *result;
	int status;
	pid_t pid = fork();

	if (!pid) {
		const struct control_server_config config = { .dir = dir,
							      .kind = "test",
							      .name = "dead",
							      .verbs = verbs };

		_exit(control_server_start(&config, &server, why, sizeof(why)));
	}
	assert_int_equal(pid, waitpid(pid, &status, 0));
	assert_int_equal(0, status);
	snprintf(path, sizeof(path), "%s/test.dead.%d.control", dir, (int)pid);
	assert_int_equal(0, stat(path, &st));
	assert_int_equal(0, control_find(dir, "test", "dead", &found));
	assert_int_equal(0, found.count);
	assert_int_equal(-1, stat(path, &st));
	snprintf(peers.peer[0].file, sizeof(peers.peer[0].file), "gone");
	assert_int_equal(-ENOENT, ask("echo", NULL, &result, why));
	assert_non_null(strstr(why, NAME));
}

static void test_names(void **state)
{
	char buf[108], name[258];

	assert_int_equal(
		0, control_socket_name("dlm", "a:b", 7, buf, sizeof(buf)));
	assert_string_equal("dlm.a:b.7.control", buf);
	assert_int_equal(
		0, control_socket_name("dlm", "../x y", 7, buf, sizeof(buf)));
	assert_string_equal("dlm.%2E%2E%2Fx%20y.7.control", buf);
	memset(name, 'a', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(-ENAMETOOLONG,
			 control_socket_name("dlm", name, 7, buf, sizeof(buf)));
	name[100] = '\0';
	assert_int_equal(-ENAMETOOLONG,
			 control_socket_name("dlm", name, 7, buf, sizeof(buf)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_answers, start, stop),
		cmocka_unit_test_setup_teardown(test_pieces, start, stop),
		cmocka_unit_test_setup_teardown(test_endless, start, stop),
		cmocka_unit_test_setup_teardown(test_crowd, start, stop),
		cmocka_unit_test_setup_teardown(test_greedy, start, stop),
		cmocka_unit_test_setup_teardown(test_client_gone, start, stop),
		cmocka_unit_test_setup_teardown(test_waited_for, start, stop),
		cmocka_unit_test_setup_teardown(test_stop, start, stop),
		cmocka_unit_test_setup_teardown(test_left_over, start, stop),
		cmocka_unit_test(test_names),
	};
	int failed;

	if (!mkdtemp(dir))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(dir);
	return failed;
}
