/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asked.c - see asked.h. */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>

#include "cluster/asked.h"

struct asked {
	atomic_bool asked, admitted;
};

static struct asked *shared;

int asked_share(void)
{
	void *page = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return -errno;
	shared = page; /* zeroes: false */
	return 0;
}

void asked_note(void)
{
	if (shared)
		atomic_store(&shared->asked, true);
}

bool asked_ever(void)
{
	return !shared || atomic_load(&shared->asked);
}

void asked_note_admitted(void)
{
	if (shared)
		atomic_store(&shared->admitted, true);
}

bool asked_was_admitted(void)
{
	return !shared || atomic_load(&shared->admitted);
}
