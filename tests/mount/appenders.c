/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * appenders.c - several processes append to one file at once.
 *
 *   appenders FILE PROCESSES RECORDS
 *
 * Each record is written with one O_APPEND write; all must be there in the end,
 * each once, whole, those of one process in order.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define RECORD_MAX 400
#define PROCESSES_MAX 64

/* Records have different lengths, so that their ends cross blocks. */
static int format(char *record, int who, int number)
{
	int pad = (who * 31 + number * 17) % 300;

	return snprintf(record, RECORD_MAX, "%d %d %0*d\n", who, number,
			pad + 1, 0);
}

static void append(const char *path, int who, int records)
{
	char record[RECORD_MAX];
	int fd = open(path, O_WRONLY | O_APPEND);

	for (int i = 0; i < records; i++) {
		int len = format(record, who, i);

		if (fd < 0 || write(fd, record, (size_t)len) != len)
			_exit(1);
	}
	_exit(close(fd) ? 1 : 0);
}

/* next[]: of each process, the number of the record to come; all 0. */
static int verify(const char *path, int *next, int processes, int records)
{
	char line[RECORD_MAX], want[RECORD_MAX];
	FILE *in = fopen(path, "r");
	int who, number;

	while (in && fgets(line, sizeof(line), in)) {
		if (sscanf(line, "%d %d", &who, &number) != 2 || who < 0 ||
		    who >= processes || number != next[who]++) {
			fprintf(stderr, "appenders: unexpected %s", line);
			return 1;
		}
		format(want, who, number);
		if (strcmp(line, want)) {
			fprintf(stderr, "appenders: torn record %s", line);
			return 1;
		}
	}
	if (in)
		fclose(in);
	for (who = 0; who < processes; who++) {
		if (next[who] == records)
			continue;
		fprintf(stderr, "appenders: process %d: %d of %d records\n",
			who, next[who], records);
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	int next[PROCESSES_MAX] = { 0 };
	int processes, records, status, failed = 0;

	if (argc != 4)
		return 2;
	processes = atoi(argv[2]);
	records = atoi(argv[3]);
	if (processes > PROCESSES_MAX)
		return 2;
	if (close(open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0644)))
		return 1;
	for (int i = 0; i < processes; i++)
		if (!fork())
			append(argv[1], i, records);
	while (wait(&status) > 0)
		failed |= status;
	if (failed) {
		fprintf(stderr, "appenders: a write failed\n");
		return 1;
	}
	return verify(argv[1], next, processes, records);
}
