#include "io/worker.h"

#include "base/lock.h"
#include "base/metric/turn.h"
#include "base/xalloc.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

/* A share with waiting jobs. */
struct worker_share {
    uint64_t group, key;
    uint64_t turn;  /* the turn in which its group was last served */
    unsigned count; /* number of its jobs that may be refused */
    struct mailbox_chain jobs;
};

struct worker {
    struct lock lock;
    /* Protected by the lock: shares in the order of their turns within their group, and jobs that
     * lost their places. */
    struct worker_share *shares;
    size_t share_count, share_room;
    uint64_t served;  /* jobs that were taken so far: the number of the last turn */
    unsigned waiting; /* jobs of all shares that may be refused */
    struct mailbox_chain refused;

    unsigned queue_max;
    const char *thread_name;
    struct mailbox bell; /* always empty; wakes the thread, which waits for it */
    struct waker waker;
    pthread_t thread;
    struct turn *turn; /* borrowed */
    bool started;
    _Atomic bool stopping;
    _Atomic(const struct mailbox *) posting; /* where a job is being posted; NULL: no job is */
};

static struct worker_job *job_of(struct mailbox_node *node)
{
    return CONTAINER_OF(node, struct worker_job, in_mailbox);
}

/* The newest that may be refused, which exists. */
static struct worker_job *chain_take_newest(struct mailbox_chain *chain)
{
    struct mailbox_node *before = NULL, *newest = NULL, *last = NULL;
    for (struct mailbox_node *node = chain->first; node; last = node, node = node->next) {
        if (job_of(node)->must_run)
            continue;
        before = last;
        newest = node;
    }
    assert(newest);
    if (before)
        before->next = newest->next;
    else
        chain->first = newest->next;
    if (chain->last == newest)
        chain->last = before;
    return job_of(newest);
}

/* -- the queue, with the lock held -- */

static struct worker_share *share_find(struct worker *worker, uint64_t group, uint64_t key)
{
    for (size_t i = 0; i < worker->share_count; i++) {
        if (worker->shares[i].group == group && worker->shares[i].key == key)
            return &worker->shares[i];
    }
    return NULL;
}

/* The number of waiting jobs of a group that may be refused. */
static unsigned group_count(const struct worker *worker, uint64_t group)
{
    unsigned count = 0;
    for (size_t i = 0; i < worker->share_count; i++)
        count += worker->shares[i].group == group ? worker->shares[i].count : 0;
    return count;
}

/* A share that was added later starts as if its group had just been served. */
static uint64_t group_turn(const struct worker *worker, uint64_t group)
{
    for (size_t i = 0; i < worker->share_count; i++) {
        if (worker->shares[i].group == group)
            return worker->shares[i].turn;
    }
    return worker->served;
}

static uint64_t group_with_most(const struct worker *worker)
{
    uint64_t most = worker->shares[0].group;
    unsigned most_count = 0;
    for (size_t i = 0; i < worker->share_count; i++) {
        const struct worker_share *share = &worker->shares[i];
        bool may_be = share->count && (!most_count || share->group != most);
        unsigned count = may_be ? group_count(worker, share->group) : 0;
        if (count <= most_count)
            continue;
        most = share->group;
        most_count = count;
    }
    return most;
}

static struct worker_share *share_with_most(struct worker *worker, uint64_t group)
{
    struct worker_share *most = NULL;
    for (size_t i = 0; i < worker->share_count; i++) {
        struct worker_share *share = &worker->shares[i];
        if (share->group == group && (!most || share->count > most->count))
            most = share;
    }
    return most;
}

static struct worker_share *share_add(struct worker *worker, struct worker_share share)
{
    if (worker->share_count == worker->share_room) {
        worker->share_room = worker->share_room ? 2 * worker->share_room : 16;
        worker->shares = xrealloc(worker->shares, worker->share_room * sizeof(share));
    }
    worker->shares[worker->share_count] = share;
    return &worker->shares[worker->share_count++];
}

static void share_remove(struct worker *worker, struct worker_share *share)
{
    size_t at = (size_t)(share - worker->shares);
    worker->share_count--;
    memmove(share, share + 1, (worker->share_count - at) * sizeof(*share));
}

/* The share that has to give up a job for one of this group and share; NULL: none. A flood gives
 * its places to the others, who have fewer even with the new job. */
static struct worker_share *share_to_shrink(struct worker *worker, uint64_t group, uint64_t key)
{
    uint64_t largest = group_with_most(worker);
    if (group_count(worker, largest) > group_count(worker, group) + 1)
        return share_with_most(worker, largest);
    struct worker_share *own = share_find(worker, group, key);
    struct worker_share *most = share_with_most(worker, group);
    return most && most->count > (own ? own->count : 0) + 1 ? most : NULL;
}

static bool make_room(struct worker *worker, const struct worker_job *job)
{
    struct worker_share *share = share_to_shrink(worker, job->group, job->share);
    if (!share)
        return false;
    mailbox_chain_add(&worker->refused, &chain_take_newest(&share->jobs)->in_mailbox);
    share->count--;
    worker->waiting--;
    if (!share->jobs.first)
        share_remove(worker, share);
    return true;
}

static enum status queue_add(struct worker *worker, struct worker_job *job)
{
    if (!job->must_run && worker->waiting >= worker->queue_max && !make_room(worker, job))
        return ST_REQUEST_TOO_MANY_REQUESTS;
    struct worker_share *share = share_find(worker, job->group, job->share);
    if (!share)
        share = share_add(worker, (struct worker_share){.group = job->group,
                                                        .key = job->share,
                                                        .turn = group_turn(worker, job->group)});
    mailbox_chain_add(&share->jobs, &job->in_mailbox);
    share->count += !job->must_run;
    worker->waiting += !job->must_run;
    return ST_OK;
}

/* The first share of the group that was served longest ago. */
static struct worker_share *share_next(struct worker *worker)
{
    struct worker_share *next = &worker->shares[0];
    for (size_t i = 1; i < worker->share_count; i++)
        next = worker->shares[i].turn < next->turn ? &worker->shares[i] : next;
    return next;
}

/* Removes the share that is served now, and notes the turn of its group. */
static struct worker_share share_take(struct worker *worker)
{
    struct worker_share *next = share_next(worker), share = *next;
    share_remove(worker, next);
    share.turn = ++worker->served;
    for (size_t i = 0; i < worker->share_count; i++) {
        if (worker->shares[i].group == share.group)
            worker->shares[i].turn = share.turn;
    }
    return share;
}

/* The oldest job of the share whose turn it is; its next turn comes after those of all others. */
static struct worker_job *queue_take(struct worker *worker)
{
    LOCK_SCOPE(&worker->lock);
    struct mailbox_node *node = mailbox_chain_take(&worker->refused);
    struct worker_job *job;
    if (node) {
        job = job_of(node);
        job->status = ST_REQUEST_TOO_MANY_REQUESTS;
        return job;
    }
    if (!worker->share_count)
        return NULL;
    struct worker_share share = share_take(worker);
    job = job_of(mailbox_chain_take(&share.jobs));
    job->status = ST_OK;
    share.count -= !job->must_run;
    worker->waiting -= !job->must_run;
    if (share.jobs.first)
        share_add(worker, share);
    return job;
}

/* -- the thread -- */

static void run(struct worker *worker, struct worker_job *job)
{
    turn_begin(worker->turn, clock_mono_ns(clock_system()));
    turn_phase("working for an I/O thread");
    job->run(job);
    turn_end(worker->turn, clock_mono_ns(clock_system()));
}

static void do_job(struct worker *worker, struct worker_job *job)
{
    struct mailbox *answers = job->answers;
    if (atomic_load_explicit(&worker->stopping, memory_order_acquire))
        job->status = ST_STOPPED;
    else if (atomic_load_explicit(&job->given_up, memory_order_relaxed))
        job->status = ST_CANCELED;
    else if (job->status == ST_OK)
        run(worker, job);
    /* The receiver and its loop may be freed before we have woken it (worker_leave waits for this).
     */
    atomic_store(&worker->posting, answers);
    mailbox_post(answers, &job->in_mailbox);
    atomic_store(&worker->posting, NULL);
}

static void do_all(struct worker *worker)
{
    struct worker_job *job;
    while ((job = queue_take(worker)))
        do_job(worker, job);
}

static void *worker_main(void *arg)
{
    struct worker *worker = arg;
    while (!atomic_load_explicit(&worker->stopping, memory_order_acquire)) {
        do_all(worker);
        mailbox_wait(&worker->bell, CLOCK_NEVER);
    }
    return NULL;
}

struct worker *worker_new(const char *thread_name, unsigned queue_max)
{
    struct worker *worker = xalloc_check(aligned_alloc(64, align_up(sizeof(*worker), 64)), 1);
    memset(worker, 0, sizeof(*worker));
    worker->thread_name = thread_name;
    worker->queue_max = queue_max;
    lock_init(&worker->lock);
    waker_init_thread(&worker->waker);
    mailbox_init(&worker->bell, &worker->waker);
    return worker;
}

void worker_set_turn(struct worker *worker, struct turn *turn)
{
    assert(!worker->started);
    worker->turn = turn;
}

enum status worker_start(struct worker *worker)
{
    assert(!worker->started);
    int error = pthread_create(&worker->thread, NULL, worker_main, worker);
    if (error)
        return status_from_errno(error);
    pthread_setname_np(worker->thread, worker->thread_name);
    worker->started = true;
    return ST_OK;
}

void worker_free(struct worker *worker)
{
    if (!worker)
        return;
    atomic_store_explicit(&worker->stopping, true, memory_order_release);
    waker_wake(&worker->waker);
    if (worker->started)
        pthread_join(worker->thread, NULL);
    do_all(worker);
    assert(!worker->share_count && !worker->waiting);
    waker_fini(&worker->waker);
    lock_fini(&worker->lock);
    free(worker->shares);
    free(worker);
}

void worker_leave(const struct worker *worker, const struct mailbox *answers)
{
    while (worker && atomic_load(&worker->posting) == answers)
        sched_yield();
}

enum status worker_submit(struct worker *worker, struct worker_job *job)
{
    assert(job->answers && job->run);
    {
        LOCK_SCOPE(&worker->lock);
        TRY(queue_add(worker, job));
    }
    waker_wake(&worker->waker);
    return ST_OK;
}
