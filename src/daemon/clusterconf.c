/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * clusterconf.c - cluster.conf, by libxml2's callbacks.
 *
 * Callbacks rather than a tree: they come while the parser still stands at the
 * place, which is the only way to the line of an attribute, and to the
 * character that it cannot take. The first error counts; what comes after it is
 * not listened to.
 */
#include <errno.h>
#include <fcntl.h>
#include <libxml/parser.h>
#include <libxml/parserInternals.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "daemon/clusterconf.h"

#define SHOWN_MAX 64u

struct conf {
	xmlParserCtxtPtr xml;
	const char *file;
	struct plock_settings set;
	void (*note)(void *arg, const char *sentence);
	void *note_arg;
	char *why;
	size_t why_len;
	int err;
	unsigned depth;
	bool seen[PLOCK_MOUNT_OPTION]; /* the element of this source */
};

/* ---- sentences ---- */

ug_printf(3, 4) static void refuse(struct conf *c, int line, const char *fmt,
				   ...)
{
	char text[512];
	va_list ap;

	if (c->err)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	snprintf(c->why, c->why_len, "%s:%d: %s", c->file, UG_MAX(line, 1),
		 text);
	c->err = -EINVAL;
}

/* Printable, and not too long. */
static const char *shown(const char *text, size_t len, char buf[SHOWN_MAX])
{
	size_t used = 0;

	for (size_t i = 0; i < len; i++) {
		unsigned char byte = (unsigned char)text[i];

		if (used + 4 >= SHOWN_MAX) {
			memcpy(buf + used - 3, "...", 3);
			break;
		}
		buf[used++] = byte < ' ' || byte == 127 ? '?' : (char)byte;
	}
	buf[used] = '\0';
	return buf;
}

/* Of a well-formed UTF-8 sequence; 0: it is none. */
static uint32_t code_point(const unsigned char *at, const unsigned char *end)
{
	int len = (int)UG_MIN(end - at, 4);
	int code = xmlGetUTF8Char(at, &len);

	return code < 0 ? 0 : (uint32_t)code;
}

/* What stands where the parser cannot go on. */
static void name_character(const struct conf *c, char *buf, size_t len)
{
	const xmlParserInput *in = c->xml->input;
	uint32_t code;

	if (!in || in->cur >= in->end) {
		snprintf(buf, len, "the end of the file");
		return;
	}
	code = code_point(in->cur, in->end);
	if (*in->cur == '\n' || *in->cur == '\r')
		snprintf(buf, len, "the end of the line");
	else if (*in->cur >= ' ' && *in->cur < 127)
		snprintf(buf, len, "'%c'", *in->cur);
	else if (code > 127)
		snprintf(buf, len, "'%.*s' (U+%04X)",
			 code < 0x800	  ? 2
			 : code < 0x10000 ? 3
					  : 4,
			 in->cur, code);
	else
		snprintf(buf, len, "a byte 0x%02X", *in->cur);
}

static const char *expected_of(int code)
{
	switch (code) {
	case XML_ERR_ATTRIBUTE_NOT_STARTED:
		return "\" or ' before the value of an attribute";
	case XML_ERR_ATTRIBUTE_NOT_FINISHED:
	case XML_ERR_LT_IN_ATTRIBUTE:
		return "\" or ' at the end of the value of an attribute";
	case XML_ERR_ATTRIBUTE_WITHOUT_VALUE:
		return "= and a value behind the name of an attribute";
	case XML_ERR_SPACE_REQUIRED:
		return "a space";
	case XML_ERR_GT_REQUIRED:
		return "the name of an attribute, > or />";
	case XML_ERR_DOCUMENT_EMPTY:
	case XML_ERR_DOCUMENT_START:
		return "<cluster>";
	case XML_ERR_DOCUMENT_END:
		return "nothing behind the end of <cluster>";
	case XML_ERR_INVALID_CHAR:
		return "a character that XML allows";
	default:
		return NULL;
	}
}

static void on_error(void *arg, xmlErrorPtr error)
{
	struct conf *c = arg;
	const char *expected = expected_of(error->code);
	char found[64], message[160];

	if (c->err || error->level < XML_ERR_ERROR)
		return;
	if (error->code == XML_ERR_NO_MEMORY) {
		refuse(c, error->line, "no memory");
		c->err = -ENOMEM;
		return;
	}
	name_character(c, found, sizeof(found));
	if (expected) {
		refuse(c, error->line, "found %s, expected %s", found,
		       expected);
		return;
	}
	snprintf(message, sizeof(message), "%s",
		 error->message ? error->message : "not well-formed");
	message[strcspn(message, "\n")] = '\0';
	refuse(c, error->line, "found %s, expected well-formed XML: %s", found,
	       message);
}

/* ---- elements ---- */

/* The parser is behind the start tag; from here back to the place. */
static int line_of(const struct conf *c, const xmlChar *at)
{
	const xmlParserInput *in = c->xml->input;
	int line = in->line;

	if (at < in->base || at >= in->cur)
		return line;
	for (const xmlChar *p = at; p < in->cur; p++)
		line -= *p == '\n';
	return line;
}

struct attribute {
	const char *name;
	const xmlChar *at;
	size_t len;
	int line;
};

static struct attribute attribute_at(const struct conf *c,
				     const xmlChar **attributes, int i)
{
	const xmlChar **a = &attributes[i * 5];

	return (struct attribute){
		.name = (const char *)a[0],
		.at = a[3],
		.len = (size_t)(a[4] - a[3]),
		.line = line_of(c, a[3]),
	};
}

/* Attributes of these elements that are not about application locks. */
static bool is_others(const char *name)
{
	static const char *const names[] = {
		"protocol",	  "timewarn",	     "log_debug",
		"enable_fencing", "enable_quorum",   "enable_deadlk",
		"plock_debug",	  "enable_withdraw",
	};

	for (size_t i = 0; i < UG_ARRAY_SIZE(names); i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

static const char *known_names(char *buf, size_t len)
{
	size_t used = 0;

	for (unsigned i = 0; i < PLOCKSET_COUNT && used < len; i++)
		used += (size_t)snprintf(buf + used, len - used, "%s%s",
					 !i			  ? ""
					 : i + 1 < PLOCKSET_COUNT ? ", "
								  : " or ",
					 plock_setting_infos[i].name);
	return buf;
}

static void take_attribute(struct conf *c, const char *element,
			   const struct attribute *a, enum plock_source from)
{
	enum plock_setting which;
	char expected[64], value[SHOWN_MAX], copy[SHOWN_MAX] = "";
	char names[256];

	if (!plock_setting_find(a->name, strlen(a->name), &which)) {
		if (!is_others(a->name))
			refuse(c, a->line,
			       "found attribute %s of <%s>, expected %s",
			       shown(a->name, strlen(a->name), value), element,
			       known_names(names, sizeof(names)));
		return;
	}
	/* What does not fit is none, and neither is nothing. */
	if (a->len < sizeof(copy))
		memcpy(copy, a->at, a->len);
	if (plock_setting_parse(&c->set, which, copy, from, expected,
				sizeof(expected)))
		refuse(c, a->line, "found %s=\"%s\" in <%s>, expected %s",
		       a->name, shown((const char *)a->at, a->len, value),
		       element, expected);
}

static void take_element(struct conf *c, const char *name,
			 enum plock_source from, int count,
			 const xmlChar **attributes)
{
	int line = c->xml->input->line;

	if (c->depth != 1) {
		refuse(c, line,
		       "found <%s> in another element, expected it in "
		       "<cluster>",
		       name);
		return;
	}
	if (c->seen[from]) {
		refuse(c, line, "found a second <%s>, expected one at most",
		       name);
		return;
	}
	c->seen[from] = true;
	for (int i = 0; i < count && !c->err; i++) {
		struct attribute a = attribute_at(c, attributes, i);

		take_attribute(c, name, &a, from);
	}
}

static void note_unknown(struct conf *c, const char *name)
{
	static const char *const known[] = {
		"altmulticast", "clusternodes", "cman",	 "fence_daemon",
		"fence_xvmd",	"fencedevices", "group", "gulm",
		"logging",	"quorumd",	"rm",	 "totem",
		"uidgid",	"dbus",
	};
	char text[512], value[SHOWN_MAX];

	for (size_t i = 0; i < UG_ARRAY_SIZE(known); i++)
		if (!strcmp(known[i], name))
			return;
	if (!c->note)
		return;
	snprintf(text, sizeof(text),
		 "%s:%d: <%s> is not known and has no effect", c->file,
		 c->xml->input->line, shown(name, strlen(name), value));
	c->note(c->note_arg, text);
}

static void on_start(void *arg, const xmlChar *local, const xmlChar *prefix,
		     const xmlChar *uri, int namespaces_used,
		     const xmlChar **namespaces, int attributes_used,
		     int defaulted, const xmlChar **attributes)
{
	struct conf *c = arg;
	const char *name = (const char *)local;
	char value[SHOWN_MAX];

	if (c->err)
		return;
	if (!c->depth && strcmp(name, "cluster"))
		refuse(c, c->xml->input->line, "found <%s>, expected <cluster>",
		       shown(name, strlen(name), value));
	else if (!strcmp(name, "dlm"))
		take_element(c, name, PLOCK_DLM, attributes_used, attributes);
	else if (!strcmp(name, "gfs_controld"))
		take_element(c, name, PLOCK_GFS_CONTROLD, attributes_used,
			     attributes);
	else if (c->depth == 1)
		note_unknown(c, name);
	c->depth++;
}

static void on_end(void *arg, const xmlChar *local, const xmlChar *prefix,
		   const xmlChar *uri)
{
	struct conf *c = arg;

	c->depth--;
}

static void on_doctype(void *arg, const xmlChar *name, const xmlChar *public,
		       const xmlChar *system)
{
	struct conf *c = arg;

	refuse(c, c->xml->input->line, "found <!DOCTYPE, expected <cluster>");
}

/*
 * libxml2 would guess and convert encodings; then neither the place of a fault
 * nor its own pointers could be relied on. NULL: all is UTF-8, without NUL.
 */
static const char *find_wrong_byte(const char *text, size_t len)
{
	const unsigned char *at = (const unsigned char *)text, *end = at + len;

	while (at < end) {
		int used = (int)UG_MIN(end - at, 4);

		if (xmlGetUTF8Char(at, &used) <= 0)
			return (const char *)at;
		at += used;
	}
	return NULL;
}

static int check_text(struct conf *c, const char *text, size_t len)
{
	const char *wrong;
	int line = 1;

	if (len > CLUSTERCONF_BYTES_MAX) {
		refuse(c, 1,
		       "found more than %u bytes, expected a cluster.conf",
		       CLUSTERCONF_BYTES_MAX);
		return c->err;
	}
	if (!len)
		refuse(c, 1, "found the end of the file, expected <cluster>");
	wrong = find_wrong_byte(text, len);
	for (const char *p = text; wrong && p < wrong; p++)
		line += *p == '\n';
	if (wrong)
		refuse(c, line, "found a byte 0x%02X, expected text in UTF-8",
		       (unsigned char)*wrong);
	return c->err;
}

int clusterconf_parse(const char *text, size_t len, const char *file,
		      struct plock_settings *set,
		      void (*note)(void *arg, const char *sentence), void *arg,
		      char *why, size_t why_len)
{
	struct conf c = { .file = file,
			  .set = *set,
			  .note = note,
			  .note_arg = arg,
			  .why = why,
			  .why_len = why_len };
	static const xmlSAXHandler handler = {
		.initialized = XML_SAX2_MAGIC,
		.startElementNs = on_start,
		.endElementNs = on_end,
		.internalSubset = on_doctype,
		.serror = on_error,
	};

	if (check_text(&c, text, len))
		return c.err;
	c.xml = xmlCreateMemoryParserCtxt(text, (int)len);
	if (!c.xml) {
		snprintf(why, why_len, "%s: no memory", file);
		return -ENOMEM;
	}
	*c.xml->sax = handler;
	c.xml->userData = &c;
	xmlCtxtUseOptions(c.xml, XML_PARSE_NONET | XML_PARSE_IGNORE_ENC);
	*c.xml->sax = handler;
	if (xmlParseDocument(c.xml) && !c.err)
		refuse(&c, c.xml->input ? c.xml->input->line : 1,
		       "expected well-formed XML");
	xmlFreeDoc(c.xml->myDoc);
	xmlFreeParserCtxt(c.xml);
	if (!c.err)
		*set = c.set;
	return c.err;
}

/* ---- files ---- */

/* The whole file and one byte more, which tells that it is too long. */
static ssize_t read_all(int fd, char *buf)
{
	size_t used = 0;

	while (used <= CLUSTERCONF_BYTES_MAX) {
		ssize_t n =
			read(fd, buf + used, CLUSTERCONF_BYTES_MAX + 1 - used);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		used += (size_t)n;
	}
	return (ssize_t)used;
}

int clusterconf_read(const char *path, struct plock_settings *set,
		     void (*note)(void *arg, const char *sentence), void *arg,
		     char *why, size_t why_len)
{
	const char *file = path ? path : CLUSTERCONF_DEFAULT;
	ug_autoclose int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ug_autofree char *text = NULL;
	ssize_t len;

	if (fd < 0 && errno == ENOENT && !path)
		return 0;
	len = fd < 0 ? -errno : 0;
	if (!len) {
		text = malloc(CLUSTERCONF_BYTES_MAX + 1);
		len = text ? read_all(fd, text) : -ENOMEM;
	}
	if (len < 0) {
		snprintf(why, why_len, "%s: %s", file, strerror((int)-len));
		return (int)len;
	}
	return clusterconf_parse(text, (size_t)len, file, set, note, arg, why,
				 why_len);
}
