/*
 * Leases through the seam: see engine/engine.h for the lives of operations. Errors are etcd's: a
 * lease that exists, one that does not, a time that is too long. A lease that is gone is no error
 * for who renews it or asks for its time.
 */
#ifndef VIGIL_ENGINE_LEASE_H
#define VIGIL_ENGINE_LEASE_H

#include "engine/operation.h"

struct engine_lease {
    struct engine_op op; /* first */
    int64_t id;          /* to be granted: 0 lets the engine choose, and says what it chose */
    int64_t ttl_s;       /* grant: what is asked, then what is given; time-to-live: what is left,
                            -1 when the lease is gone */
    int64_t granted_ttl_s;
    int64_t until_ns; /* grant: of the real clock, when it ends, however often the server starts; it
                         ends with its last key too. 0: as etcd's do */
    bool want_keys;

    /* In the operation's arena. */
    struct slice *keys; /* sorted */
    size_t key_count;
    int64_t *ids; /* who expires first comes first */
    size_t id_count;
    void *unsorted; /* the engine's: ids or keys */
};

/* What is to be renewed, as many as came together. */
struct engine_renewal {
    int64_t id;
    int64_t ttl_s; /* out: the whole time; 0: the lease is gone */
};

struct engine_renewals {
    struct engine_op op;          /* first; its revision is one at which the leases lived */
    struct engine_renewal *items; /* the caller's, lent until done */
    size_t count;
    size_t answered;  /* out: the first so many; fewer than count if the next one is refused, which
                         op.status says, or if nothing could be done */
    int64_t asked_ns; /* the engine's own */
};

/* Durable when done. */
void engine_lease_grant(struct engine_shard *shard, struct engine_lease *lease);
/* Deletes its keys too, all at one revision. */
void engine_lease_revoke(struct engine_shard *shard, struct engine_lease *lease);
void engine_lease_time_to_live(struct engine_shard *shard, struct engine_lease *lease);
void engine_lease_list(struct engine_shard *shard, struct engine_lease *lease);
void engine_lease_renew(struct engine_shard *shard, struct engine_renewals *renewals);

#endif
