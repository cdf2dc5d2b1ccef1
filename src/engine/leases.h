/*
 * Operations on leases (engine/engine.h). Errors are etcd's. A lease that does not exist is not an
 * error for renewals and time-to-live.
 */
#ifndef VIGIL_ENGINE_LEASES_H
#define VIGIL_ENGINE_LEASES_H

#include "engine/operation.h"

struct engine_lease {
    struct engine_op op; /* first */
    int64_t id;          /* grant: 0 lets the engine choose; after done, the id */
    int64_t ttl_s; /* grant: requested, after done granted; time-to-live, after done: remaining,
                      -1 if the lease does not exist */
    int64_t granted_ttl_s;
    int64_t until_ns; /* grant: the lease ends at this time of the real clock, also after a restart,
                         or with its last key. 0: an ordinary lease of etcd */
    bool want_keys;   /* time-to-live */

    /* Answers, in the operation's arena. */
    struct slice *keys; /* sorted */
    size_t key_count;
    int64_t *ids; /* the first to expire comes first */
    size_t id_count;
    void *unsorted; /* private to the engine: ids or keys */
};

/* Durable when done. */
static inline void engine_lease_grant(struct engine_shard *shard, struct engine_lease *lease)
{
    engine_start(shard, &lease->op, ENGINE_LEASE_GRANT, NULL);
}

/* Also deletes the attached keys, all at one revision. */
static inline void engine_lease_revoke(struct engine_shard *shard, struct engine_lease *lease)
{
    engine_start(shard, &lease->op, ENGINE_LEASE_REVOKE, NULL);
}

static inline void engine_lease_time_to_live(struct engine_shard *shard, struct engine_lease *lease)
{
    engine_start(shard, &lease->op, ENGINE_LEASE_TIME_TO_LIVE, NULL);
}

static inline void engine_lease_list(struct engine_shard *shard, struct engine_lease *lease)
{
    engine_start(shard, &lease->op, ENGINE_LEASE_LIST, NULL);
}

struct engine_renewal {
    int64_t id;
    int64_t ttl_s; /* after done: the whole time to live; 0: the lease does not exist */
};

/* Renewals that arrived together. */
struct engine_renewals {
    struct engine_op op;          /* first; at its revision the renewed leases existed */
    struct engine_renewal *items; /* borrowed until done */
    size_t count;
    size_t answered;  /* after done: the first items that were renewed. Fewer than count if the next
                         one failed; op.status is its error */
    int64_t asked_ns; /* private to the engine */
};

static inline void engine_lease_renew(struct engine_shard *shard, struct engine_renewals *renewals)
{
    renewals->answered = 0;
    engine_start(shard, &renewals->op, ENGINE_LEASE_RENEW, NULL);
}

#endif
