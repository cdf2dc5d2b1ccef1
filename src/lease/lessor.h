/*
 * The leases: their ids and times, and which keys hang on which. Keeps no log and knows no clock:
 * who grants and revokes writes that down first, and the time comes in with each call, from a clock
 * that is never set.
 *
 * As in etcd: a lease lives for its time from the grant, from each renewal and from each start of
 * the server; when that has passed it is *expired*, and it is gone when it is revoked. Until then
 * its id exists, keys can be attached to it, and it cannot be renewed any more.
 *
 * A renewal changes one number. The heap of deadlines may say a time that has since been put off:
 * that is seen, and put right, when it comes up. A million leases take about 82 bytes each; a key
 * that hangs on one takes 36 and itself.
 *
 * One owner, one thread. Aborts without memory.
 */
#ifndef VIGIL_LEASE_LESSOR_H
#define VIGIL_LEASE_LESSOR_H

#include "base/slice.h"
#include "base/status.h"

#include <stdbool.h>

struct lessor;

/* etcd's longest; a longer time is refused. */
#define LEASE_TTL_MAX_S INT64_C(9000000000)

struct lessor *lessor_new(uint64_t seed);
void lessor_free(struct lessor *lessor); /* accepts NULL */
DEFINE_CLEANUP(struct lessor *, lessor_free)

size_t lessor_count(const struct lessor *lessor);
size_t lessor_key_count(const struct lessor *lessor); /* attached, all together */
bool lessor_has(const struct lessor *lessor, int64_t id);

/* An id that no lease has: positive, and not to be guessed from others. */
int64_t lessor_choose_id(struct lessor *lessor);
/* ST_LEASE_TTL_TOO_LARGE, ST_LEASE_EXIST. */
MUST_CHECK
enum status lessor_check_grant(const struct lessor *lessor, int64_t id, int64_t ttl_s);
/* The id is new and not 0, the time positive. */
void lessor_grant(struct lessor *lessor, int64_t id, int64_t ttl_s, int64_t now_ns);
/*
 * The same for a lease whose end is fixed and which belongs to its keys: it also expires as soon as
 * the last key that hung on it has gone.
 */
void lessor_grant_until(struct lessor *lessor, int64_t id, int64_t ttl_s, int64_t expires_ns);
/* Those that were kept, into an empty lessor: all ids differ. Looks for none of them. */
struct lessor_kept {
    int64_t id;
    int64_t ttl_s;
    int64_t remaining_s; /* of it this time, until it is renewed; 0: all */
    bool fixed;          /* its end is, as lessor_grant_until has it */
    int64_t expires_ns;  /* then: when */
};
void lessor_load(struct lessor *lessor, const struct lessor_kept *kept, size_t count,
                 int64_t now_ns);
/* The lease goes, if it is there. Keys still attached are let go of, in the middle of which leases
 * may be renewed (base/yield_point.h). */
void lessor_revoke(struct lessor *lessor, int64_t id);

/*
 * ST_LEASE_NOT_FOUND; ST_AGAIN when it had expired by the time it was asked for, and waits to be
 * revoked. The new time begins now.
 */
MUST_CHECK
enum status lessor_renew(struct lessor *lessor, int64_t id, int64_t asked_ns, int64_t now_ns,
                         int64_t *ret_ttl_s);

struct lessor_lease {
    int64_t id;
    int64_t ttl_s;
    int64_t expires_ns;
    uint32_t key_count;
    uint32_t attached; /* ever, so that one sees how many are new; may begin again from 0 */
};
/* False: there is no such lease. */
bool lessor_get(const struct lessor *lessor, int64_t id, struct lessor_lease *ret_lease);
/* Fills key_count keys, in no order; they are valid until one of them is moved. */
void lessor_keys(const struct lessor *lessor, int64_t id, struct slice *ret_keys);
/*
 * Shows keys of a lease, those first that were attached last and at most so many, or with the id 0
 * all keys of all leases, until one is refused: returns what was said then. Nothing may be changed
 * meanwhile.
 */
MUST_CHECK
enum status lessor_each_key(const struct lessor *lessor, int64_t id, uint32_t max,
                            enum status (*visit)(void *ctx, struct slice key), void *ctx);
/* Of a million it takes half a second, during which it passes yield points (base/yield_point.h).
 * Any thread. */
void lessor_keys_sort(struct slice *keys, size_t count);
/* One of all leases. */
struct lessor_entry {
    int64_t id;
    int64_t expires_ns;
};
/* All of them, in no order: room for lessor_count. A million take 30 ms, … */
void lessor_list(const struct lessor *lessor, struct lessor_entry *ret_entries);
/* … and ten times that to be sorted, as etcd's are: who expires first comes first. Any thread. */
void lessor_list_sort(struct lessor_entry *entries, size_t count);

/* A key went from one lease to another; 0 is none. One that is not known has no keys. */
void lessor_move_key(struct lessor *lessor, struct slice key, int64_t from, int64_t to);

/* Before this moment nothing expires; CLOCK_NEVER without leases. */
int64_t lessor_next_ns(const struct lessor *lessor);
/*
 * A lease that has expired, the longest ago first; 0: none, or none was found in a bounded time,
 * and then lessor_next_ns is still past.
 */
int64_t lessor_expired(struct lessor *lessor, int64_t now_ns);

size_t lessor_bytes(const struct lessor *lessor); /* of memory, keys included */

/* For tests: every key is on its lease's list, every lease in the heap. */
void lessor_check(const struct lessor *lessor);

#endif
