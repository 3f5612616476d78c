/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jfixture.c - a journal over a device in memory, for the tests of one story.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "jfixture.h"

#define META_BLOCKS 3000u

static int setup_with(void **state, uint32_t bsize, uint32_t log_blocks,
		      unsigned extents)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct blkdev *memory, *counted;

	jt_init(&f->jt, bsize, log_blocks, extents, META_BLOCKS);
	assert_int_equal(
		blkdev_open_memory(jt_device_bytes(&f->jt), 512, &memory), 0);
	assert_int_equal(fault_open(memory, &f->counter, &counted), 0);
	assert_int_equal(delay_open(counted, &f->delay, &f->dev), 0);
	jt_format(&f->jt, f->dev, 1000 % log_blocks);
	jt_open(&f->jt, f->dev);
	*state = f;
	return 0;
}

int jf_setup(void **state)
{
	return setup_with(state, 4096, 256, 1);
}

int jf_setup_big(void **state)
{
	return setup_with(state, 4096, 2048, 1);
}

int jf_setup_512(void **state)
{
	return setup_with(state, 512, 2048, 7);
}

int jf_teardown(void **state)
{
	struct fixture *f = *state;

	delay_release(f->delay);
	if (f->jt.j)
		jt_close(&f->jt);
	jt_fini(&f->jt);
	blkdev_close(f->dev);
	free(f);
	return 0;
}

void jf_crash_and_reopen(struct fixture *f)
{
	jt_crash(&f->jt);
	jt_open(&f->jt, f->dev);
}

int jf_flush(struct fixture *f)
{
	return journal_flush(f->jt.j, UINT64_MAX);
}

void jf_free(struct fixture *f, uint32_t i)
{
	struct trans tr;

	assert_int_equal(trans_begin(f->jt.j, &tr, 0, 1, 0), 0);
	trans_free_block(&tr, f->jt.meta_first + i);
	trans_free_block(&tr, f->jt.meta_first + i); /* counts once */
	trans_end(&tr);
}

void job_start(struct job *job, struct fixture *f, void *(*fn)(void *),
	       uint32_t arg)
{
	memset(job, 0, sizeof(*job));
	job->f = f;
	job->arg = arg;
	pthread_create(&job->thread, NULL, fn, job);
}

int job_join(struct job *job)
{
	pthread_join(job->thread, NULL);
	return job->result;
}

void *job_flush(void *arg)
{
	struct job *job = arg;

	job->result = jf_flush(job->f);
	atomic_store(&job->done, true);
	return NULL;
}

void *job_writeback(void *arg)
{
	struct job *job = arg;

	job->result = journal_writeback(job->f->jt.j, job->arg);
	atomic_store(&job->done, true);
	return NULL;
}
