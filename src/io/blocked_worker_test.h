/*
 * For tests: a worker that can be blocked. It then runs a job of ours that ends when it is
 * released, and further jobs of ours are in the queue before whatever is submitted; each has its
 * own group.
 */
#ifndef VIGIL_IO_BLOCKED_WORKER_TEST_H
#define VIGIL_IO_BLOCKED_WORKER_TEST_H

#include "base/clock.h"
#include "io/worker.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct blocked_worker {
    struct worker *worker;
    struct waker waker;
    struct mailbox *answers;
    sem_t begun, released;
    struct worker_job jobs[1 + WORKER_QUEUE_MAX];
    size_t count; /* number of our jobs, including the one that blocks */
};

static inline void blocked_worker_run_first(struct worker_job *job)
{
    struct blocked_worker *b = CONTAINER_OF(job, struct blocked_worker, jobs[0]);
    sem_post(&b->begun);
    sem_wait(&b->released);
}

static inline void blocked_worker_run_other(struct worker_job *job)
{
    (void)job;
}

/* Starts the worker, which is not blocked yet. */
static inline void blocked_worker_init(struct blocked_worker *b)
{
    memset(b, 0, sizeof(*b));
    b->answers = aligned_alloc(64, align_up(sizeof(*b->answers), 64));
    assert_non_null(b->answers);
    waker_init_thread(&b->waker);
    mailbox_init(b->answers, &b->waker);
    sem_init(&b->begun, 0, 0);
    sem_init(&b->released, 0, 0);
    b->worker = worker_new("test-worker", WORKER_QUEUE_MAX);
    assert_int_equal(worker_start(b->worker), ST_OK);
}

/* From here on the worker is blocked, and `waiting` jobs are in its queue. */
static inline void blocked_worker_block(struct blocked_worker *b, size_t waiting)
{
    assert_int_equal(b->count, 0);
    for (; b->count <= waiting; b->count++) {
        b->jobs[b->count] = (struct worker_job){
            .answers = b->answers,
            .run = b->count ? blocked_worker_run_other : blocked_worker_run_first,
            .group = 1 + b->count,
        };
        assert_int_equal(worker_submit(b->worker, &b->jobs[b->count]), ST_OK);
        if (!b->count)
            sem_wait(&b->begun);
    }
}

/* Returns when all our jobs are back. */
static inline void blocked_worker_release(struct blocked_worker *b)
{
    sem_post(&b->released);
    while (b->count) {
        struct mailbox_node *node = mailbox_take(b->answers);
        if (!node)
            mailbox_wait(b->answers, CLOCK_NEVER);
        for (; node; node = node->next)
            b->count--;
    }
}

/* All jobs that others submitted must be back. */
static inline void blocked_worker_fini(struct blocked_worker *b)
{
    worker_leave(b->worker, b->answers);
    worker_free(b->worker);
    waker_fini(&b->waker);
    sem_destroy(&b->begun);
    sem_destroy(&b->released);
    free(b->answers);
}

#endif
