/*
 * Renewals of leases. All clients with the same token share one stream to the cluster; etcd answers
 * the renewals of a stream in their order.
 *
 *               a renewal               answered, and no other follows for a while
 *     closed ───────────────► open ─────────────────────────────────────────────► closed
 *                              ▲ │ broken while renewals wait
 *                              │ ▼
 *                             pausing ──► closed, when the renewals have failed
 *
 * Renewals that were not answered when a stream breaks are sent again: renewing twice is harmless.
 * If the cluster refuses one, only that client's renewals fail.
 *
 * One for each shard, on its thread.
 */
#ifndef VIGIL_MIRROR_SHARED_CALLS_LEASE_STREAMS_H
#define VIGIL_MIRROR_SHARED_CALLS_LEASE_STREAMS_H

#include <stddef.h>

struct mirror_state;
struct engine_renewals;
struct lease_streams;
struct loop;
struct upstream;

enum {
    /* Streams that are kept for the next renewal. Beyond that, a stream is closed as soon as its
     * renewals are answered. */
    LEASE_STREAMS_MAX = 256,
    LEASE_STREAM_WINDOW = 1024, /* renewals of one stream that are sent and not answered */
};

struct lease_streams *lease_streams_new(struct loop *loop, struct upstream *upstream,
                                        struct mirror_state *state); /* aborts without memory */
/* No renewal may be under way. Accepts NULL. */
void lease_streams_free(struct lease_streams *streams);

void lease_streams_renew(struct lease_streams *streams, struct engine_renewals *renewals);

/* Streams that exist, for tests and metrics. */
size_t lease_streams_count(const struct lease_streams *streams);
/* Asserts every invariant; for tests. */
void lease_streams_check(const struct lease_streams *streams);

#endif
