/*
 * The leases of the local engine: connects the lessor (lease/lessor.h) to the store. Used on the
 * writer's thread, except for the counters.
 *
 * Grants and revocations are records of the log. Renewals and questions are not: they are answered
 * before a group begins, when everything visible is durable, so they need no sync.
 *
 * Time during which the server was stalled does not count, because clients could not renew.
 */
#ifndef VIGIL_ENGINE_LOCAL_STATE_LEASE_H
#define VIGIL_ENGINE_LOCAL_STATE_LEASE_H

#include "base/buf.h"
#include "engine/auth_state.h"
#include "engine/leases.h"
#include "engine/local/state/metrics.h"
#include "engine/permission.h"
#include "lease/lessor.h"
#include "store/store.h"

#include <stdatomic.h>

/* A permission check that has passed: `whose` (auth_rights_number) may access the keys that were
 * attached to the lease at that time. */
struct lease_pass {
    int64_t id; /* 0: unused */
    uint64_t whose;
    uint32_t attached; /* lessor_lease.attached at that time */
};
enum { LEASE_PASSES = 256 }; /* a power of two */

struct local_lease {
    struct lessor *lessor; /* owned */
    struct store *store;
    const struct auth_state *auth; /* the rights for checking renewals */
    struct auth_leases keys_of;    /* enumerates attached keys, for permission checks */
    int64_t ttl_min_s;
    int64_t now_ns;        /* the time of leases: the clock minus away_ns */
    int64_t away_ns;       /* total time during which the server was stalled */
    int64_t hold_until_ns; /* clock time: nothing expires before this */
    struct buf loaded;  /* struct lessor_kept in the order of the rows; ttl 0: revoked. Freed by the
                           start */
    struct slice *keys; /* owned scratch space: keys of the lease to be revoked */
    size_t keys_capacity;
    int64_t revoking;            /* the lease that is being revoked; 0: none */
    size_t record_bytes_max;     /* limit for the deletes of one record */
    struct metric_block *counts; /* the writer's; set before the first call */
    _Atomic uint64_t leases,
        attached; /* published number of leases and of attached keys; any thread may read */
    struct lease_pass passes[LEASE_PASSES]; /* indexed by id */
};

void local_lease_init(struct local_lease *lease, const struct auth_state *auth, int64_t ttl_min_s,
                      uint64_t seed);
void local_lease_fini(struct local_lease *lease); /* accepts a zeroed one */

/* While the store opens: a row of ROW_LEASE. */
MUST_CHECK
enum status local_lease_load_row(struct local_lease *lease, const struct row *row);
/* After the store was opened: attaches keys to leases and starts all their times. */
void local_lease_start(struct local_lease *lease, struct store *store, int64_t now_ns);

/* Shows all threads the number of leases and of attached keys, which every write may change. */
void local_lease_publish(struct local_lease *lease);

/* The estimated work, in units of a renewal. */
size_t local_lease_work(const struct local_lease *lease, const struct engine_op *op);
/* All calls below take the time of the monotonic clock. */

/* Answers a renewal or a question while no group is pending. False: it needs a record; call
 * local_lease_execute. */
MUST_CHECK
bool local_lease_read(struct local_lease *lease, struct engine_op *op, int64_t now_ns);
void local_lease_execute(struct local_lease *lease, struct engine_op *op, int64_t now_ns);
/* The answer is not sorted yet, because it is long: the keeper sorts it. */
bool local_lease_is_unsorted(const struct engine_op *op);
/* Any thread. */
void local_lease_sort(struct engine_op *op);

/* Whether there are leases, those of the group that is being applied not included. Any thread. */
static inline bool local_lease_any(const struct local_lease *lease)
{
    return atomic_load_explicit(&lease->leases, memory_order_relaxed) > 0;
}

/* What leases add to the reported size and to the quota. Any thread. */
static inline int64_t local_lease_db_bytes(const struct local_lease *lease)
{
    enum { EACH = 64 }; /* about the size of a row in etcd's file */
    return EACH * (int64_t)atomic_load_explicit(&lease->leases, memory_order_relaxed);
}

/* When the next lease may expire; CLOCK_NEVER: there is none. */
int64_t local_lease_next_ns(const struct local_lease *lease);
/* Some lease has expired by now_ns, whether or not all renewals up to then were read. */
bool local_lease_is_due(struct local_lease *lease, int64_t now_ns);
/*
 * Revokes some expired leases, until pending_max bytes of log are pending. All renewals that
 * arrived before now_ns must have been processed. If the disk is full it fails, and is not due
 * again for a second.
 */
MUST_CHECK
enum status local_lease_expire(struct local_lease *lease, int64_t now_ns, size_t pending_max);
/* Changes are refused at the moment: not due again for a second. */
void local_lease_hold(struct local_lease *lease, int64_t now_ns);
/*
 * The server was stalled until now_ns: the time of leases continues from `from_ns`, or from its
 * last value if that is later.
 */
void local_lease_away(struct local_lease *lease, int64_t from_ns, int64_t now_ns);

/* Asserts that they are consistent; for tests, on the writer's thread or after it has stopped. */
void local_lease_check(const struct local_lease *lease);

#endif
