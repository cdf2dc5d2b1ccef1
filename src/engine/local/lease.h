/*
 * The leases of the local engine: the lessor (lease/lessor.h) joined to the store. Belongs to the
 * writer, on its thread, but for the counters.
 *
 * Grants and revocations are records of the log. Renewals and questions are not: they are answered
 * before a group is begun, when all there is to see is durable, and so wait for no sync.
 *
 * Time in which the server stood still does not count: who wanted to renew could not.
 */
#ifndef VIGIL_ENGINE_LOCAL_LEASE_H
#define VIGIL_ENGINE_LOCAL_LEASE_H

#include "base/buf.h"
#include "engine/auth_state.h"
#include "engine/engine_private.h"
#include "engine/local/metrics.h"
#include "engine/operation.h"
#include "engine/permission.h"
#include "lease/lessor.h"
#include "store/store.h"

#include <stdatomic.h>

/* All keys that hung on a lease then were in order for whose rights these are. */
struct lease_pass {
    int64_t id; /* 0: none */
    uint64_t whose;
    uint32_t attached; /* to the lease, ever */
};
enum { LEASE_PASSES = 256 }; /* a power of two */

struct local_lease {
    struct lessor *lessor; /* owned */
    struct store *store;
    const struct auth_state *auth; /* the writer's: who may renew */
    int64_t ttl_min_s;
    int64_t now_ns;        /* of the leases: that of the clock without the time we were away */
    int64_t away_ns;       /* how much that is */
    int64_t hold_until_ns; /* of the clock: nothing expires before this */
    struct buf loaded;     /* struct lessor_kept, as the rows came; ttl 0: gone. Until the start */
    struct slice *keys;    /* owned scratch: of the lease to be revoked */
    size_t keys_capacity;
    int64_t revoking;                       /* the lease that is being revoked; 0: none */
    size_t record_bytes_max;                /* of deletes when one is revoked */
    struct metric_block *counts;            /* the writer's; set before the first call */
    _Atomic uint64_t leases, attached;      /* keys that are; any thread reads */
    struct lease_pass passes[LEASE_PASSES]; /* each where its id says */
};

void local_lease_init(struct local_lease *lease, const struct auth_state *auth, int64_t ttl_min_s,
                      uint64_t seed);
void local_lease_fini(struct local_lease *lease); /* accepts a zeroed one */

/* While the store opens: takes a row of the table of leases. */
MUST_CHECK
enum status local_lease_load_row(struct local_lease *lease, const struct row *row);
/* The store is open: finds which keys hang on leases, and lets all times begin. */
void local_lease_start(struct local_lease *lease, struct store *store, int64_t now_ns);

/* Which keys hang on leases, for checks. */
struct auth_leases local_lease_keys(struct local_lease *lease);

/* How much work it will be, counted in renewals. */
size_t local_lease_work(const struct local_lease *lease, const struct engine_op *op,
                        enum engine_lease_call call);
/* All calls below take the time of the clock. */

/* A renewal or a question, while nothing is pending. False: it needs a record, execute it. */
MUST_CHECK
bool local_lease_read(struct local_lease *lease, struct engine_op *op, enum engine_lease_call call,
                      int64_t now_ns);
void local_lease_execute(struct local_lease *lease, struct engine_op *op,
                         enum engine_lease_call call, int64_t now_ns);
/* What was read is not in order yet, because that takes long: somebody else may do it. */
bool local_lease_is_unsorted(const struct engine_op *op, enum engine_lease_call call);
/* Any thread. */
void local_lease_sort(struct engine_op *op);

/* What the leases add to the size that operators see and quotas are held against. Any thread. */
int64_t local_lease_db_bytes(const struct local_lease *lease);

/* When local_lease_expire will have something to do; CLOCK_NEVER. */
int64_t local_lease_next_ns(const struct local_lease *lease);
/* Some lease's time is over. The time is now, and not that up to which renewals were heard. */
bool local_lease_is_due(struct local_lease *lease, int64_t now_ns);
/*
 * Revokes some of what has expired, up to so many bytes of log pending. The time is that up to
 * which all who came to renew were heard. If the disk has no room it fails, and is not due again
 * for a second.
 */
MUST_CHECK
enum status local_lease_expire(struct local_lease *lease, int64_t now_ns, size_t pending_max);
/* Nothing is changed any more: not due again for a second. */
void local_lease_hold(struct local_lease *lease, int64_t now_ns);
/*
 * We were away for long until now_ns: the time of the leases goes on from `from_ns`, or from where
 * it was if that is later.
 */
void local_lease_away(struct local_lease *lease, int64_t from_ns, int64_t now_ns);

#endif
