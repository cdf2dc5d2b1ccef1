#include "engine/hasher.h"

#include "base/turn.h"
#include "base/xalloc.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

struct hasher {
    struct mailbox jobs;
    struct waker waker; /* the thread's */
    pthread_t thread;
    struct turn *turn; /* borrowed */
    bool started;
    _Atomic unsigned count; /* submitted and not posted back */
    _Atomic bool stopping;
    _Atomic(const struct mailbox *) posting; /* where an answer is being posted; NULL: nowhere */
};

static void hash(struct hasher *hasher, struct hasher_job *job)
{
    turn_begin(hasher->turn, clock_mono_ns(clock_system()));
    turn_phase("hashing a password");
    if (job->task == HASHER_CHECK)
        job->status = auth_password_check(job->password, job->hash);
    else
        job->status = auth_password_hash(job->password, job->salt, job->cost, job->made);
    turn_end(hasher->turn, clock_mono_ns(clock_system()));
}

static void do_job(struct hasher *hasher, struct hasher_job *job)
{
    if (atomic_load_explicit(&hasher->stopping, memory_order_acquire))
        job->status = ST_STOPPED;
    else if (atomic_load_explicit(&job->given_up, memory_order_relaxed))
        job->status = ST_CANCELED;
    else
        hash(hasher, job);
    /* Before it is posted: whoever sees the answer finds the room. */
    atomic_fetch_sub_explicit(&hasher->count, 1, memory_order_relaxed);
    /* Whoever gets it may be gone with its loop before we have woken that. */
    atomic_store(&hasher->posting, job->answers);
    mailbox_post(job->answers, &job->in_mailbox);
    atomic_store(&hasher->posting, NULL);
}

static void do_all(struct hasher *hasher)
{
    for (struct mailbox_node *node = mailbox_take(&hasher->jobs), *next; node; node = next) {
        next = node->next;
        do_job(hasher, CONTAINER_OF(node, struct hasher_job, in_mailbox));
    }
}

static void *hasher_main(void *arg)
{
    struct hasher *hasher = arg;
    while (!atomic_load_explicit(&hasher->stopping, memory_order_acquire)) {
        do_all(hasher);
        mailbox_wait(&hasher->jobs, CLOCK_NEVER);
    }
    return NULL;
}

struct hasher *hasher_new(void)
{
    struct hasher *hasher = xalloc_check(aligned_alloc(64, align_up(sizeof(*hasher), 64)), 1);
    memset(hasher, 0, sizeof(*hasher));
    waker_init_thread(&hasher->waker);
    mailbox_init(&hasher->jobs, &hasher->waker);
    return hasher;
}

void hasher_set_turn(struct hasher *hasher, struct turn *turn)
{
    assert(!hasher->started);
    hasher->turn = turn;
}

enum status hasher_start(struct hasher *hasher)
{
    assert(!hasher->started);
    int error = pthread_create(&hasher->thread, NULL, hasher_main, hasher);
    if (error)
        return status_from_errno(error);
    pthread_setname_np(hasher->thread, "vigil-hasher");
    hasher->started = true;
    return ST_OK;
}

void hasher_free(struct hasher *hasher)
{
    if (!hasher)
        return;
    atomic_store_explicit(&hasher->stopping, true, memory_order_release);
    waker_wake(&hasher->waker);
    if (hasher->started)
        pthread_join(hasher->thread, NULL);
    do_all(hasher);
    assert(atomic_load(&hasher->count) == 0);
    waker_fini(&hasher->waker);
    free(hasher);
}

void hasher_leave(const struct hasher *hasher, const struct mailbox *answers)
{
    while (atomic_load(&hasher->posting) == answers)
        sched_yield();
}

enum status hasher_submit(struct hasher *hasher, struct hasher_job *job)
{
    assert(job->answers);
    if (atomic_fetch_add_explicit(&hasher->count, 1, memory_order_relaxed) >= HASHER_QUEUE_MAX) {
        atomic_fetch_sub_explicit(&hasher->count, 1, memory_order_relaxed);
        return ST_REQUEST_TOO_MANY_REQUESTS;
    }
    mailbox_post(&hasher->jobs, &job->in_mailbox);
    return ST_OK;
}
