/*
 * The calls that a store executes itself, without a connection: ranges, puts, deletes, transactions
 * and compactions.
 *
 * A thread that waits in vigil_call_run reads from the published state, and passes a write to the
 * writer. If many wait, it lets others run a few times; then it sleeps. When a group is durable,
 * the writer wakes a few of the threads that sleep, and each of them wakes the next one before it
 * does anything else:
 *
 *     waiting ──► asleep ──► done ──► the thread wakes the next one and takes its answer
 *        │           └─────► left (the timeout has passed) ──► who would wake it drops the answer
 *        └─────────────────► done ──► the thread takes its answer
 *
 * A call that was started with a callback begins on the loop's thread, and uses the shard of the
 * engine there. Only gets of one key are executed that way: longer ranges go to the connection,
 * which does not keep the loop busy for long.
 *
 * Everything goes to the connection while authentication is enabled, because a call then needs the
 * token of its user.
 */
#ifndef VIGIL_EMBED_DIRECT_H
#define VIGIL_EMBED_DIRECT_H

#include "client/call/call.h"
#include "client/call/client.h"
#include "embed/store.h"

struct etcd_api;

enum { DIRECT_STRIPES = 16 };

/* Threads that are inside, counted in several places so that they seldom share a cache line. */
struct embed_inside {
    _Alignas(64) _Atomic unsigned count;
};

/* Embedded in the part of a client. */
struct embed_direct {
    struct embed_store *store;  /* borrowed until it is closed, as the next */
    struct etcd_api *etcd;      /* its constants are used on any thread */
    struct engine_shard *shard; /* the loop's thread */
    unsigned begun;             /* on the loop's thread, and not answered; the loop's thread */
    _Atomic bool closed;        /* calls go to the connection, which is closed */
    /* Threads that wait for a write. */
    _Atomic int waiting;      /* how many there are */
    _Atomic int yield_misses; /* how often letting others run took too long, less later successes */
    _Atomic int yield_pause;  /* if there are misses: waits until one thread tries again */
    struct embed_inside inside[DIRECT_STRIPES];
};

void embed_direct_init(struct embed_direct *direct, struct embed_store *store,
                       struct engine_shard *shard, struct etcd_api *etcd);

/* As client_local_ops. */
bool embed_direct_run(struct embed_direct *direct, struct vigil_call *call);
bool embed_direct_begin(struct embed_direct *direct, struct vigil_call *call);

/* Nothing begins any more. What has begun is finished when it is not busy. */
void embed_direct_close(struct embed_direct *direct);
bool embed_direct_is_busy(const struct embed_direct *direct);

#endif
