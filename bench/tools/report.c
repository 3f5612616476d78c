/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * report.c - report [--markdown] PARAMETERS TARGETS JSON [COLUMN...] < SAMPLES:
 * medians and ratios.
 *
 * Samples are lines of fields separated by tabs:
 *
 *	round	row	file system	value	unit
 *
 * and come out as two tables, one for each data mode of ugfs beside the empty
 * file system in the same mode, with the targets that are known, and as JSON
 * with every sample. PARAMETERS has lines of name, tab, value. TARGETS says
 *
 *	table	row	yardstick	<= or >=	limit
 *
 * where the yardstick is ext4, emptyfs, or "-" for the value itself. A target
 * is "met", or reached by so many percent.
 *
 * With columns it is one table, with a column for each of these file systems,
 * as Markdown if wanted.
 * The table of a target is a column then, and its yardstick another one.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

#define FIELDS_MAX 5
#define LINE_MAX_BYTES 1024
#define ROUNDS_MAX 100

struct sample {
	int round;
	char *row, *fs, *unit;
	double value;
};

struct target {
	char *table, *row, *yardstick;
	bool at_most;
	double limit;
};

struct list {
	void *items;
	size_t count, item_bytes;
};

struct table {
	const char *name, *title;
	const char *empty, *ours;
	const char *empty_else; /* for rows that have no "empty" */
};

static const struct table tables[] = {
	{ "kernel", "pages of files kept by the kernel (pagecache=kernel)",
	  "emptyfs", "ugfs", "emptyfs" },
	{ "own",
	  "pages kept by ugfs, names asked for each time (pagecache=own)",
	  "emptyfs-own", "ugfs-own", "emptyfs" },
};

static bool markdown;
static struct list samples = { .item_bytes = sizeof(struct sample) };
static struct list targets = { .item_bytes = sizeof(struct target) };

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void *list_add(struct list *list)
{
	char *items =
		realloc(list->items, (list->count + 1) * list->item_bytes);

	if (!items)
		die("report");
	list->items = items;
	return items + list->count++ * list->item_bytes;
}

static char *copy(const char *s)
{
	char *new = strdup(s);

	if (!new)
		die("report");
	return new;
}

/* ---- reading ---- */

static int split(char *line, char **fields)
{
	int count = 0;

	line[strcspn(line, "\n")] = '\0';
	while (line && count < FIELDS_MAX)
		fields[count++] = strsep(&line, "\t");
	return count;
}

static void read_lines(FILE *in, const char *name, int fields,
		       void (*take)(char **field, void *arg), void *arg)
{
	char line[LINE_MAX_BYTES];
	char *field[FIELDS_MAX];

	if (!in)
		die(name);
	while (fgets(line, sizeof(line), in)) {
		if (line[0] == '#' || line[0] == '\n')
			continue;
		if (split(line, field) != fields) {
			fprintf(stderr, "report: %s: not %d fields: %s\n", name,
				fields, line);
			exit(1);
		}
		take(field, arg);
	}
}

static void take_sample(char **field, void *arg)
{
	struct sample *s = list_add(&samples);

	s->round = atoi(field[0]);
	s->row = copy(field[1]);
	s->fs = copy(field[2]);
	s->value = strtod(field[3], NULL);
	s->unit = copy(field[4]);
}

static void take_target(char **field, void *arg)
{
	struct target *t = list_add(&targets);

	t->table = copy(field[0]);
	t->row = copy(field[1]);
	t->yardstick = copy(field[2]);
	t->at_most = field[3][0] == '<';
	t->limit = strtod(field[4], NULL);
}

static void take_parameter(char **field, void *arg)
{
	printf("%-14s %s\n", field[0], field[1]);
	json_object_set_new(arg, field[0], json_string(field[1]));
}

/* ---- numbers ---- */

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Negative if there is none. */
static double median(const char *row, const char *fs)
{
	const struct sample *s = samples.items;
	double values[ROUNDS_MAX];
	size_t n = 0;

	for (size_t i = 0; i < samples.count && n < ROUNDS_MAX; i++)
		if (!strcmp(s[i].row, row) && !strcmp(s[i].fs, fs))
			values[n++] = s[i].value;
	if (!n)
		return -1;
	qsort(values, n, sizeof(values[0]), compare_doubles);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static const char *format_value(char *buf, size_t len, double v)
{
	if (v < 0)
		snprintf(buf, len, "-");
	else if (v >= 100)
		snprintf(buf, len, "%.0f", v);
	else
		snprintf(buf, len, v >= 10 ? "%.1f" : "%.3f", v);
	return buf;
}

static double ratio(double ours, double other)
{
	return ours < 0 || other <= 0 ? -1 : ours / other;
}

static const char *format_ratio(char *buf, size_t len, double r)
{
	if (r < 0)
		snprintf(buf, len, "-");
	else
		snprintf(buf, len, "%.2f", r);
	return buf;
}

/* ---- tables ---- */

struct cells {
	double ext4, empty, ours;
};

/* got: the value, or its ratio to the yardstick; negative: not measured. */
static void print_target(const struct target *t, double got)
{
	bool absolute = !strcmp(t->yardstick, "-");
	double reached;

	if (got < 0)
		return;
	printf("  %s %g%s", t->at_most ? "<=" : ">=", t->limit,
	       absolute ? ": " : " of ");
	if (!absolute)
		printf("%s: ", t->yardstick);
	if (t->at_most ? got <= t->limit : got >= t->limit) {
		printf("met");
		return;
	}
	reached = t->at_most ? t->limit / got : got / t->limit;
	printf("%.0f %%", reached * 100);
}

static double cells_reach(const struct cells *c, const struct target *t)
{
	if (!strcmp(t->yardstick, "-"))
		return c->ours;
	return ratio(c->ours,
		     !strcmp(t->yardstick, "ext4") ? c->ext4 : c->empty);
}

static void print_row(const struct table *table, const struct sample *first)
{
	const struct target *t = targets.items;
	const char *row = first->row;
	struct cells c = {
		.ext4 = median(row, "ext4"),
		.empty = median(row, table->empty),
		.ours = median(row, table->ours),
	};
	char text[5][32];

	if (c.ours < 0)
		return;
	if (c.empty < 0)
		c.empty = median(row, table->empty_else);
	printf("%-28s %-7s %9s %9s %9s %7s %7s", row, first->unit,
	       format_value(text[0], sizeof(text[0]), c.ext4),
	       format_value(text[1], sizeof(text[1]), c.empty),
	       format_value(text[2], sizeof(text[2]), c.ours),
	       format_ratio(text[3], sizeof(text[3]), ratio(c.ours, c.ext4)),
	       format_ratio(text[4], sizeof(text[4]), ratio(c.ours, c.empty)));
	for (size_t i = 0; i < targets.count; i++)
		if (!strcmp(t[i].table, table->name) && !strcmp(t[i].row, row))
			print_target(&t[i], cells_reach(&c, &t[i]));
	putchar('\n');
}

static bool is_first_of_row(size_t at)
{
	const struct sample *s = samples.items;

	for (size_t i = 0; i < at; i++)
		if (!strcmp(s[i].row, s[at].row))
			return false;
	return true;
}

static void print_table(const struct table *table)
{
	const struct sample *s = samples.items;

	printf("\n%s\n%-28s %-7s %9s %9s %9s %7s %7s  %s\n", table->title,
	       "medians", "unit", "ext4", "emptyfs", "ugfs", "/ext4", "/empty",
	       "target");
	for (size_t i = 0; i < samples.count; i++)
		if (is_first_of_row(i))
			print_row(table, &s[i]);
}

/* ---- one table of many columns ---- */

static double column_reaches(const char *row, const struct target *t)
{
	double value = median(row, t->table);

	if (!strcmp(t->yardstick, "-"))
		return value;
	return ratio(value, median(row, t->yardstick));
}

static void print_wide_row(const struct sample *first, char **columns)
{
	const struct target *t = targets.items;
	char text[32];

	printf(markdown ? "| %s | %s" : "%-28s %-7s", first->row, first->unit);
	for (char **column = columns; *column; column++)
		printf(markdown ? " | %s" : " %11s",
		       format_value(text, sizeof(text),
				    median(first->row, *column)));
	if (markdown)
		printf(" |");
	for (size_t i = 0; i < targets.count; i++)
		if (!strcmp(t[i].row, first->row))
			print_target(&t[i], column_reaches(first->row, &t[i]));
	puts(markdown ? " |" : "");
}

static void print_head(char **columns)
{
	printf(markdown ? "\n| %s | %s" : "\n%-28s %-7s", "medians", "unit");
	for (char **column = columns; *column; column++)
		printf(markdown ? " | %s" : " %11s", *column);
	puts(markdown ? " | target |" : "  target");
	if (!markdown)
		return;
	printf("| --- | ---");
	for (char **column = columns; *column; column++)
		printf(" | ---:");
	puts(" | --- |");
}

static void print_columns(char **columns)
{
	const struct sample *s = samples.items;

	print_head(columns);
	for (size_t i = 0; i < samples.count; i++)
		if (is_first_of_row(i))
			print_wide_row(&s[i], columns);
}

/* ---- JSON ---- */

static json_t *samples_json(void)
{
	const struct sample *s = samples.items;
	json_t *array = json_array();

	for (size_t i = 0; i < samples.count; i++)
		json_array_append_new(
			array,
			json_pack("{s:i, s:s, s:s, s:f, s:s}", "round",
				  s[i].round, "row", s[i].row, "fs", s[i].fs,
				  "value", s[i].value, "unit", s[i].unit));
	return array;
}

int main(int argc, char **argv)
{
	json_t *root = json_object(), *parameters = json_object();

	if (argc > 1 && !strcmp(argv[1], "--markdown")) {
		markdown = true;
		argv++;
		argc--;
	}
	if (argc < 4) {
		fputs("usage: report [--markdown] PARAMETERS TARGETS JSON "
		      "[COLUMN...] < "
		      "SAMPLES\n",
		      stderr);
		return 2;
	}
	read_lines(stdin, "samples", 5, take_sample, NULL);
	read_lines(fopen(argv[2], "r"), argv[2], 5, take_target, NULL);
	putchar('\n');
	read_lines(fopen(argv[1], "r"), argv[1], 2, take_parameter, parameters);
	for (size_t i = 0; argc == 4 && i < UG_ARRAY_SIZE(tables); i++)
		print_table(&tables[i]);
	if (argc > 4)
		print_columns(argv + 4);

	json_object_set_new(root, "parameters", parameters);
	json_object_set_new(root, "samples", samples_json());
	if (json_dump_file(root, argv[3], JSON_INDENT(1))) {
		fprintf(stderr, "report: cannot write %s\n", argv[3]);
		return 1;
	}
	json_decref(root);
	return 0;
}
