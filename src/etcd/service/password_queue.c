#include "etcd/service/password_queue.h"

#include "base/random.h"
#include "base/xalloc.h"
#include "etcd/service.h"

#include <stdio.h>
#include <stdlib.h>

struct auth_desk {
    struct mailbox answers;
    struct worker *hasher; /* borrowed; may be NULL */
};

static void receive(void *owner, struct mailbox_node *node)
{
    (void)owner;
    struct desk_job *job = CONTAINER_OF(node, struct desk_job, hasher.work.in_mailbox);
    job->face->under_way--;
    job->done(job);
}

struct auth_desk *auth_desk_new(struct loop *loop, struct worker *hasher)
{
    size_t bytes = align_up(sizeof(struct auth_desk), 64);
    struct auth_desk *desk = xalloc_check(aligned_alloc(64, bytes), bytes);
    memset(desk, 0, sizeof(*desk));
    desk->hasher = hasher;
    mailbox_attach(&desk->answers, loop, receive, desk);
    return desk;
}

void auth_desk_free(struct auth_desk *desk)
{
    if (!desk)
        return;
    worker_leave(desk->hasher, &desk->answers);
    mailbox_detach(&desk->answers);
    free(desk);
}

static enum status submit(struct etcd_face *face, struct desk_job *job)
{
    assert(job->done);
    if (!face->desk || !face->desk->hasher)
        return ST_UNIMPLEMENTED;
    job->face = face;
    job->hasher.work.answers = &face->desk->answers;
    TRY(hasher_submit(face->desk->hasher, &job->hasher));
    face->under_way++;
    return ST_OK;
}

enum status desk_make(struct etcd_face *face, struct desk_job *job, struct wire_peer peer,
                      struct slice password)
{
    job->hasher.work.share = wire_peer_key(peer);
    job->hasher.task = HASHER_MAKE;
    job->hasher.password = password;
    job->hasher.cost = face->config->bcrypt_cost;
    random_secret(job->hasher.salt, sizeof(job->hasher.salt));
    return submit(face, job);
}

enum status desk_check(struct etcd_face *face, struct desk_job *job, struct wire_peer peer,
                       struct slice password, struct slice hash)
{
    job->hasher.work.share = wire_peer_key(peer);
    job->hasher.task = HASHER_CHECK;
    job->hasher.password = password;
    job->hasher.hash = hash;
    return submit(face, job);
}

void desk_give_up(struct desk_job *job)
{
    atomic_store_explicit(&job->hasher.work.given_up, true, memory_order_relaxed);
}

struct slice desk_hash_of_nobody(const struct etcd_face *face, struct arena *arena)
{
    enum { ROOM = AUTH_HASH_BYTES + 1 };
    char *text = arena_alloc(arena, ROOM);
    if (!text)
        return SLICE_EMPTY;
    int len = snprintf(text, ROOM, "$2a$%02u$%s", face->config->bcrypt_cost,
                       "zZ9wYk0QeVbT7uJx3RmNfOq1sLh5cGpDa8iK6tBv2yEwXoMnUrCdS");
    return slice_of(text, (size_t)len);
}
