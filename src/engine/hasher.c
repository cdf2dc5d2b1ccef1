#include "engine/hasher.h"

#include "base/lock.h"
#include "base/turn.h"
#include "base/xalloc.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

/* Jobs in order, linked by their nodes. */
struct job_chain {
    struct mailbox_node *first, *last;
};

/* A peer with jobs that wait. */
struct hasher_peer {
    uint64_t key;
    unsigned count;
    struct job_chain jobs;
};

struct hasher {
    struct lock lock;
    /* With the lock held: peers in the order of their turns, and what is to be told that there is
     * no room for it after all. */
    struct hasher_peer peers[HASHER_QUEUE_MAX];
    unsigned peer_count, waiting;
    struct job_chain refused;

    struct mailbox bell; /* nothing is ever in it: the thread waits at it, and is woken */
    struct waker waker;
    pthread_t thread;
    struct turn *turn; /* borrowed */
    bool started;
    _Atomic bool stopping;
    _Atomic(const struct mailbox *) posting; /* where an answer is being posted; NULL: nowhere */
};

static struct hasher_job *job_of(struct mailbox_node *node)
{
    return CONTAINER_OF(node, struct hasher_job, in_mailbox);
}

static void chain_add(struct job_chain *chain, struct hasher_job *job)
{
    job->in_mailbox.next = NULL;
    if (chain->last)
        chain->last->next = &job->in_mailbox;
    else
        chain->first = &job->in_mailbox;
    chain->last = &job->in_mailbox;
}

static struct hasher_job *chain_take(struct job_chain *chain)
{
    struct mailbox_node *node = chain->first;
    if (!node)
        return NULL;
    chain->first = node->next;
    if (!node->next)
        chain->last = NULL;
    return job_of(node);
}

static struct hasher_job *chain_take_last(struct job_chain *chain)
{
    struct mailbox_node *last = chain->last, *before = NULL;
    for (struct mailbox_node *node = chain->first; node != last; node = node->next)
        before = node;
    chain->last = before;
    if (before)
        before->next = NULL;
    else
        chain->first = NULL;
    return job_of(last);
}

/* -- The queue, with the lock held -- */

static struct hasher_peer *peer_find(struct hasher *hasher, uint64_t key)
{
    for (unsigned i = 0; i < hasher->peer_count; i++) {
        if (hasher->peers[i].key == key)
            return &hasher->peers[i];
    }
    return NULL;
}

static struct hasher_peer *peer_with_most(struct hasher *hasher)
{
    struct hasher_peer *most = &hasher->peers[0];
    for (unsigned i = 1; i < hasher->peer_count; i++)
        most = hasher->peers[i].count > most->count ? &hasher->peers[i] : most;
    return most;
}

static void peer_remove(struct hasher *hasher, struct hasher_peer *peer)
{
    size_t at = (size_t)(peer - hasher->peers);
    hasher->peer_count--;
    memmove(peer, peer + 1, (hasher->peer_count - at) * sizeof(*peer));
}

/* Only one that has fewer, still after it: so that whoever floods makes room for the others. */
static bool make_room(struct hasher *hasher, uint64_t key)
{
    struct hasher_peer *own = peer_find(hasher, key), *most = peer_with_most(hasher);
    if (most->count <= (own ? own->count : 0) + 1)
        return false;
    chain_add(&hasher->refused, chain_take_last(&most->jobs));
    most->count--;
    hasher->waiting--;
    return true;
}

static enum status queue_add(struct hasher *hasher, struct hasher_job *job)
{
    if (hasher->waiting == HASHER_QUEUE_MAX && !make_room(hasher, job->peer))
        return ST_REQUEST_TOO_MANY_REQUESTS;
    struct hasher_peer *peer = peer_find(hasher, job->peer);
    if (!peer) {
        peer = &hasher->peers[hasher->peer_count++];
        *peer = (struct hasher_peer){.key = job->peer};
    }
    chain_add(&peer->jobs, job);
    peer->count++;
    hasher->waiting++;
    return ST_OK;
}

/* The first peer's oldest; the peer's next turn comes after all others'. */
static struct hasher_job *queue_take(struct hasher *hasher)
{
    LOCK_SCOPE(&hasher->lock);
    struct hasher_job *job = chain_take(&hasher->refused);
    if (job) {
        job->status = ST_REQUEST_TOO_MANY_REQUESTS;
        return job;
    }
    if (hasher->waiting == 0)
        return NULL;
    struct hasher_peer peer = hasher->peers[0];
    peer_remove(hasher, &hasher->peers[0]);
    job = chain_take(&peer.jobs);
    job->status = ST_OK;
    hasher->waiting--;
    if (--peer.count)
        hasher->peers[hasher->peer_count++] = peer;
    return job;
}

/* -- The thread -- */

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
    else if (job->status == ST_OK)
        hash(hasher, job);
    /* Whoever gets it may be gone with its loop before we have woken that. */
    atomic_store(&hasher->posting, job->answers);
    mailbox_post(job->answers, &job->in_mailbox);
    atomic_store(&hasher->posting, NULL);
}

static void do_all(struct hasher *hasher)
{
    struct hasher_job *job;
    while ((job = queue_take(hasher)))
        do_job(hasher, job);
}

static void *hasher_main(void *arg)
{
    struct hasher *hasher = arg;
    while (!atomic_load_explicit(&hasher->stopping, memory_order_acquire)) {
        do_all(hasher);
        mailbox_wait(&hasher->bell, CLOCK_NEVER);
    }
    return NULL;
}

struct hasher *hasher_new(void)
{
    struct hasher *hasher = xalloc_check(aligned_alloc(64, align_up(sizeof(*hasher), 64)), 1);
    memset(hasher, 0, sizeof(*hasher));
    lock_init(&hasher->lock);
    waker_init_thread(&hasher->waker);
    mailbox_init(&hasher->bell, &hasher->waker);
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
    assert(hasher->waiting == 0);
    waker_fini(&hasher->waker);
    lock_fini(&hasher->lock);
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
    {
        LOCK_SCOPE(&hasher->lock);
        TRY(queue_add(hasher, job));
    }
    waker_wake(&hasher->waker);
    return ST_OK;
}
