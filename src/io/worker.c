#include "io/worker.h"

#include "base/turn.h"
#include "base/xalloc.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

struct worker {
    struct mailbox jobs;
    struct waker waker; /* the thread's */
    pthread_t thread;
    struct turn *turn;      /* borrowed */
    _Atomic unsigned count; /* submitted and not posted back */
    _Atomic bool stopping;
    _Atomic(const struct mailbox *) posting; /* where a job is being posted; NULL: nowhere */
};

static void do_job(struct worker *worker, struct worker_job *job)
{
    struct mailbox *answers = job->answers;
    turn_begin(worker->turn, clock_mono_ns(clock_system()));
    turn_phase("working for an I/O thread");
    job->run(job);
    turn_end(worker->turn, clock_mono_ns(clock_system()));
    /* Before it is posted: whoever sees it finds the room. */
    atomic_fetch_sub_explicit(&worker->count, 1, memory_order_relaxed);
    /* Whoever gets it may be gone with its loop before we have woken that. */
    atomic_store(&worker->posting, answers);
    mailbox_post(answers, &job->in_mailbox);
    atomic_store(&worker->posting, NULL);
}

static void *worker_main(void *arg)
{
    struct worker *worker = arg;
    while (!atomic_load_explicit(&worker->stopping, memory_order_acquire)) {
        for (struct mailbox_node *node = mailbox_take(&worker->jobs), *next; node; node = next) {
            next = node->next;
            do_job(worker, CONTAINER_OF(node, struct worker_job, in_mailbox));
        }
        mailbox_wait(&worker->jobs, CLOCK_NEVER);
    }
    return NULL;
}

static void worker_free(struct worker *worker)
{
    waker_fini(&worker->waker);
    free(worker);
}

enum status worker_start(const char *thread_name, struct turn *turn, struct worker **ret_worker)
{
    struct worker *worker = xalloc_check(aligned_alloc(64, align_up(sizeof(*worker), 64)), 1);
    memset(worker, 0, sizeof(*worker));
    waker_init_thread(&worker->waker);
    mailbox_init(&worker->jobs, &worker->waker);
    worker->turn = turn;
    int error = pthread_create(&worker->thread, NULL, worker_main, worker);
    if (error) {
        worker_free(worker);
        return status_from_errno(error);
    }
    pthread_setname_np(worker->thread, thread_name);
    *ret_worker = worker;
    return ST_OK;
}

void worker_stop(struct worker *worker)
{
    if (!worker)
        return;
    assert(atomic_load(&worker->count) == 0);
    atomic_store_explicit(&worker->stopping, true, memory_order_release);
    waker_wake(&worker->waker);
    pthread_join(worker->thread, NULL);
    worker_free(worker);
}

void worker_leave(const struct worker *worker, const struct mailbox *answers)
{
    while (worker && atomic_load(&worker->posting) == answers)
        sched_yield();
}

enum status worker_submit(struct worker *worker, struct worker_job *job)
{
    assert(job->answers && job->run);
    if (atomic_fetch_add_explicit(&worker->count, 1, memory_order_relaxed) >= WORKER_QUEUE_MAX) {
        atomic_fetch_sub_explicit(&worker->count, 1, memory_order_relaxed);
        return ST_REQUEST_TOO_MANY_REQUESTS;
    }
    mailbox_post(&worker->jobs, &job->in_mailbox);
    return ST_OK;
}
