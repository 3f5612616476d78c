/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * control.c - requests and answers of the control socket. Pure.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/control.h"

#define STRING(x) #x
#define VERSION_TEXT(major, minor) STRING(major) "." STRING(minor)
#define VERSION VERSION_TEXT(CONTROL_MAJOR, CONTROL_MINOR)

/* Lines */

/* JSON's own newlines are between tokens only; in strings they are escaped. */
static void one_line(char *text)
{
	for (char *c = text; (c = strchr(c, '\n')); c++)
		*c = ' ';
}

/* An object of the version and one more value, which is taken over. */
static char *line_of(const char *key, json_t *value)
{
	json_t *root = json_pack("{s:s,s:o}", "version", VERSION, key, value);
	char *text, *line;

	if (!root)
		return NULL;
	text = json_dumps(root, JSON_COMPACT);
	json_decref(root);
	if (!text)
		return NULL;
	line = realloc(text, strlen(text) + 2);
	if (!line)
		free(text);
	else
		strcat(line, "\n");
	return line;
}

/* The result is not parsed for this: it can be large. */
static char *result_line(const char *result)
{
	char *line = NULL;

	if (asprintf(&line, "{\"version\":\"%s\",\"result\":%s}\n", VERSION,
		     result) < 0)
		return NULL;
	return line;
}

/* Sentences can hold names that others have chosen. */
static json_t *string_of(const char *text)
{
	json_t *string = json_string(text);
	char clean[CONTROL_WHY_LEN];

	if (string)
		return string;
	snprintf(clean, sizeof(clean), "%s", text);
	for (char *c = clean; *c; c++)
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	return json_string(clean);
}

char *control_error(int err, const char *text)
{
	const char *code = strerrorname_np(-err);

	return line_of("error",
		       json_pack("{s:s,s:o}", "code", code ? code : "EIO",
				 "text", string_of(text)));
}

/* For verbs */

int control_result(struct control_call *call, json_t *value)
{
	char *text;

	if (!value)
		return control_fail(call, -ENOMEM, "out of memory");
	text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	json_decref(value);
	return control_result_text(call, text);
}

int control_result_text(struct control_call *call, char *text)
{
	if (!text)
		return control_fail(call, -ENOMEM, "out of memory");
	one_line(text);
	free(call->result);
	call->result = text;
	return 0;
}

int control_fail(struct control_call *call, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(call->why, sizeof(call->why), fmt, ap);
	va_end(ap);
	return err;
}

void control_note(struct control_call *call, const char *fmt, ...)
{
	char text[CONTROL_WHY_LEN], *line;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	line = line_of("note", string_of(text));
	if (line)
		call->ops->send(call, line, strlen(line));
	free(line);
}

int control_text(struct control_call *call, const char *text, size_t len)
{
	char *line = line_of("text", json_stringn(text, len));
	int err = -ENOMEM;

	if (line)
		err = call->ops->send(call, line, strlen(line));
	free(line);
	return err;
}

int control_wait(struct control_call *call, int fd, int timeout_ms)
{
	return call->ops->wait(call, fd, timeout_ms);
}

int control_args(struct control_call *call, const json_t *args, const char *fmt,
		 ...)
{
	json_error_t error;
	va_list ap;
	int bad;

	va_start(ap, fmt);
	bad = json_vunpack_ex((json_t *)args, &error, JSON_STRICT, fmt, ap);
	va_end(ap);
	return bad ? control_fail(call, -EINVAL, "arguments: %s", error.text)
		   : 0;
}

/* Requests */

/* 0; -EBADMSG: not a version. */
static int read_version(const json_t *root, unsigned *major)
{
	const char *text = json_string_value(json_object_get(root, "version"));
	unsigned minor;
	char end;

	if (!text || sscanf(text, "%5u.%5u%c", major, &minor, &end) != 2)
		return -EBADMSG;
	return 0;
}

static int refuse(struct control_call *call, const char *what)
{
	return control_fail(call, -EBADMSG,
			    "not a request: %s; expected an object like "
			    "{\"version\":\"%s\",\"verb\":\"status\","
			    "\"args\":{}}",
			    what, VERSION);
}

static const struct control_verb *find(const struct control_verb *verbs,
				       const char *name)
{
	for (; verbs->name; verbs++)
		if (!strcmp(verbs->name, name))
			return verbs;
	return NULL;
}

static int run(const struct control_verb *verbs, void *arg,
	       struct control_call *call, const json_t *root)
{
	const char *name = json_string_value(json_object_get(root, "verb"));
	json_t *args = json_object_get(root, "args"), *none = NULL;
	const struct control_verb *verb;
	unsigned major;
	int err;

	if (!json_is_object(root))
		return refuse(call, "no object");
	if (read_version(root, &major))
		return refuse(call, "no version");
	if (major != CONTROL_MAJOR)
		return control_fail(call, -EPROTONOSUPPORT,
				    "the request is of version %u of the "
				    "control protocol, this process speaks "
				    "version %d: use the ugfs command of the "
				    "same release",
				    major, CONTROL_MAJOR);
	if (!name)
		return refuse(call, "no verb");
	if (args && !json_is_object(args))
		return refuse(call, "args is no object");
	verb = find(verbs, name);
	if (!verb)
		return control_fail(call, -ENOSYS,
				    "this process does not know \"%s\"", name);
	if (!args)
		args = none = json_object();
	err = args ? verb->run(arg, call, args)
		   : control_fail(call, -ENOMEM, "out of memory");
	json_decref(none);
	return err;
}

char *control_dispatch(const struct control_verb *verbs, void *arg,
		       struct control_call *call, const char *text, size_t len)
{
	json_error_t error;
	json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
	char *line;
	int err;

	call->result = NULL;
	snprintf(call->why, sizeof(call->why), "it could not be done");
	err = root ? run(verbs, arg, call, root) : refuse(call, error.text);
	json_decref(root);
	if (err)
		line = control_error(err, call->why);
	else
		line = result_line(call->result ? call->result : "null");
	free(call->result);
	call->result = NULL;
	return line;
}

/* The client's side */

char *control_request(const char *verb, json_t *args)
{
	json_t *root = args ? args : json_object();
	char *text = NULL, *line = NULL;
	json_t *name = string_of(verb);

	root = json_pack("{s:s,s:o,s:o}", "version", VERSION, "verb", name,
			 "args", root);
	if (root)
		text = json_dumps(root, JSON_COMPACT);
	if (text && asprintf(&line, "%s\n", text) < 0)
		line = NULL;
	free(text);
	json_decref(root);
	return line;
}

static int errno_of(const char *name)
{
	for (int err = 1; err < 134; err++) {
		const char *known = strerrorname_np(err);

		if (known && !strcmp(known, name))
			return -err;
	}
	return -EIO;
}

static int take(json_t *root, enum control_answer *kind, json_t **value,
		int *err, char *why, size_t why_len)
{
	json_t *error = json_object_get(root, "error");
	const char *code, *text;

	*value = json_object_get(root, "note");
	*kind = CONTROL_NOTE;
	if (!*value) {
		*value = json_object_get(root, "text");
		*kind = CONTROL_TEXT;
	}
	if (!*value) {
		*value = json_object_get(root, "result");
		*kind = CONTROL_RESULT;
	}
	if (*value && (*kind == CONTROL_RESULT || json_is_string(*value))) {
		json_incref(*value);
		return 0;
	}
	if (json_unpack(error, "{s:s,s:s}", "code", &code, "text", &text))
		return -EBADMSG;
	*kind = CONTROL_ERROR;
	*err = errno_of(code);
	*value = NULL;
	snprintf(why, why_len, "%s", text);
	return 0;
}

int control_parse_answer(const char *text, size_t len,
			 enum control_answer *kind, json_t **value, int *err,
			 char *why, size_t why_len)
{
	json_error_t error;
	json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
	unsigned major;
	int bad = -EBADMSG;

	if (!root || read_version(root, &major))
		snprintf(why, why_len,
			 "the process answers with something "
			 "else than JSON of our kind");
	else if (major != CONTROL_MAJOR)
		snprintf(why, why_len,
			 "the process speaks version %u of the control "
			 "protocol, this command version %d: use the ugfs "
			 "command of the same release",
			 major, CONTROL_MAJOR);
	else if (!(bad = take(root, kind, value, err, why, why_len)))
		bad = 0;
	else
		snprintf(why, why_len,
			 "the process answers with neither note, text, result "
			 "nor "
			 "error");
	json_decref(root);
	return bad;
}
