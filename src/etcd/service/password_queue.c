#include "etcd/service/password_queue.h"

#include "base/random.h"
#include "base/xalloc.h"
#include "io/loop.h"

#include <stdio.h>
#include <stdlib.h>

struct password_queue {
    struct mailbox answers;
    struct worker *hasher; /* borrowed; may be NULL */
    unsigned bcrypt_cost;
    size_t under_way; /* jobs that are not done */
};

static void receive(void *owner, struct mailbox_node *node)
{
    struct password_queue *queue = owner;
    struct password_job *job = CONTAINER_OF(node, struct password_job, hasher.work.in_mailbox);
    assert(job->queue == queue);
    queue->under_way--;
    job->done(job);
}

struct password_queue *password_queue_new(struct loop *loop, struct worker *hasher,
                                          unsigned bcrypt_cost)
{
    size_t bytes = align_up(sizeof(struct password_queue), 64);
    struct password_queue *queue = xalloc_check(aligned_alloc(64, bytes), bytes);
    memset(queue, 0, sizeof(*queue));
    queue->hasher = hasher;
    queue->bcrypt_cost = bcrypt_cost;
    loop_attach(loop, &queue->answers, receive, queue);
    return queue;
}

void password_queue_free(struct password_queue *queue)
{
    if (!queue)
        return;
    assert(queue->under_way == 0);
    worker_leave(queue->hasher, &queue->answers);
    mailbox_detach(&queue->answers);
    free(queue);
}

bool password_queue_busy(const struct password_queue *queue)
{
    return queue && queue->under_way > 0;
}

static enum status submit(struct password_queue *queue, struct password_job *job)
{
    assert(job->done);
    job->queue = queue;
    job->hasher.work.answers = &queue->answers;
    TRY(hasher_submit(queue->hasher, &job->hasher));
    queue->under_way++;
    return ST_OK;
}

enum status password_queue_hash(struct password_queue *queue, struct password_job *job,
                                struct wire_peer peer, struct slice password)
{
    if (!queue || !queue->hasher)
        return ST_UNIMPLEMENTED;
    job->hasher.work.group = wire_peer_key(peer);
    job->hasher.task = HASHER_MAKE;
    job->hasher.password = password;
    job->hasher.cost = queue->bcrypt_cost;
    random_secret(job->hasher.salt, sizeof(job->hasher.salt));
    return submit(queue, job);
}

enum status password_queue_verify(struct password_queue *queue, struct password_job *job,
                                  struct wire_peer peer, struct slice password, struct slice hash)
{
    if (!queue || !queue->hasher)
        return ST_UNIMPLEMENTED;
    job->hasher.work.group = wire_peer_key(peer);
    job->hasher.task = HASHER_CHECK;
    job->hasher.password = password;
    job->hasher.hash = hash;
    return submit(queue, job);
}

void password_job_cancel(struct password_job *job)
{
    atomic_store_explicit(&job->hasher.work.given_up, true, memory_order_relaxed);
}

struct slice password_dummy_hash(unsigned bcrypt_cost, struct arena *arena)
{
    enum { ROOM = AUTH_HASH_BYTES + 1 };
    char *text = arena_alloc(arena, ROOM);
    if (!text)
        return SLICE_EMPTY;
    int len = snprintf(text, ROOM, "$2a$%02u$%s", bcrypt_cost,
                       "zZ9wYk0QeVbT7uJx3RmNfOq1sLh5cGpDa8iK6tBv2yEwXoMnUrCdS");
    return slice_of(text, (size_t)len);
}
