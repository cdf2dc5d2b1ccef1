/*
 * The leases: their ids and times, and the keys attached to each. It keeps no log and reads no
 * clock: the caller makes grants and revocations durable first, and passes the time with each call,
 * from a monotonic clock.
 *
 * As in etcd: a lease lives for its time to live from the grant, from each renewal and from each
 * start of the server. After that it is *expired*, and it is removed when it is revoked. Until then
 * its id exists and keys can be attached to it, but it cannot be renewed any more.
 *
 * A renewal changes one number. The heap of deadlines may still have the earlier deadline, which is
 * corrected when it comes up. With a million leases each takes about 82 bytes; an attached key
 * takes 36 bytes and its length.
 *
 * One owner, one thread. Aborts without memory.
 */
#ifndef VIGIL_LEASE_LESSOR_H
#define VIGIL_LEASE_LESSOR_H

#include "base/slice.h"
#include "base/status.h"

#include <stdbool.h>

struct lessor;

/* etcd's limit; a longer time to live is refused. */
#define LEASE_TTL_MAX_S INT64_C(9000000000)

struct lessor *lessor_new(uint64_t seed);
void lessor_free(struct lessor *lessor); /* accepts NULL */
DEFINE_CLEANUP(struct lessor *, lessor_free)

size_t lessor_count(const struct lessor *lessor);
size_t lessor_key_count(const struct lessor *lessor); /* attached to all leases */
bool lessor_has(const struct lessor *lessor, int64_t id);

/* A positive id that no lease has, and that cannot be guessed from others. */
int64_t lessor_choose_id(struct lessor *lessor);
/* ST_LEASE_TTL_TOO_LARGE, ST_LEASE_EXIST. */
MUST_CHECK
enum status lessor_check_grant(const struct lessor *lessor, int64_t id, int64_t ttl_s);
/* The id is new and not 0, the time to live positive. */
void lessor_grant(struct lessor *lessor, int64_t id, int64_t ttl_s, int64_t now_ns);
/*
 * Grants a lease with a fixed end, which also expires as soon as its last attached key is deleted
 * or moved to another lease.
 */
void lessor_grant_until(struct lessor *lessor, int64_t id, int64_t ttl_s, int64_t expires_ns);
/* Loads stored leases into an empty lessor. All ids must differ, which is not checked. */
struct lessor_kept {
    int64_t id;
    int64_t ttl_s;
    int64_t remaining_s; /* time left until the first renewal; 0: all of ttl_s */
    bool fixed;          /* granted by lessor_grant_until */
    int64_t expires_ns;  /* if fixed */
};
void lessor_load(struct lessor *lessor, const struct lessor_kept *kept, size_t count,
                 int64_t now_ns);
/* Removes the lease, if it exists, and detaches its keys. Leases may be renewed in the middle of
 * that (base/yield_point.h). */
void lessor_revoke(struct lessor *lessor, int64_t id);

/*
 * ST_LEASE_NOT_FOUND; ST_AGAIN if the lease had expired when the renewal arrived (asked_ns) and is
 * not revoked yet. The new time begins at now_ns.
 */
MUST_CHECK
enum status lessor_renew(struct lessor *lessor, int64_t id, int64_t asked_ns, int64_t now_ns,
                         int64_t *ret_ttl_s);

struct lessor_lease {
    int64_t id;
    int64_t ttl_s;
    int64_t expires_ns;
    uint32_t key_count;
    uint32_t
        attached; /* number of keys ever attached, to find out how many are new; may overflow */
};
/* False: the lease does not exist. */
bool lessor_get(const struct lessor *lessor, int64_t id, struct lessor_lease *ret_lease);
/* Fills in key_count keys, unordered; they are valid until one of them is moved. */
void lessor_keys(const struct lessor *lessor, int64_t id, struct slice *ret_keys);
/*
 * Calls visit for at most max keys of a lease, the last attached first, or with the id 0 for all
 * keys of all leases, until it fails; returns its status. visit must not change the lessor.
 */
MUST_CHECK
enum status lessor_each_key(const struct lessor *lessor, int64_t id, uint32_t max,
                            enum status (*visit)(void *ctx, struct slice key), void *ctx);
/* A million keys take half a second, during which it passes yield points (base/yield_point.h). Any
 * thread. */
void lessor_keys_sort(struct slice *keys, size_t count);
struct lessor_entry {
    int64_t id;
    int64_t expires_ns;
};
/* All leases, unordered: ret_entries has room for lessor_count. A million take 30 ms, … */
void lessor_list(const struct lessor *lessor, struct lessor_entry *ret_entries);
/* … and ten times that to be sorted. As in etcd the first to expire comes first. Any thread. */
void lessor_list_sort(struct lessor_entry *entries, size_t count);

/* A key was moved from one lease to another; 0: no lease. An unknown lease is ignored. */
void lessor_move_key(struct lessor *lessor, struct slice key, int64_t from, int64_t to);

/* No lease expires before this time; CLOCK_NEVER without leases. */
int64_t lessor_next_ns(const struct lessor *lessor);
/*
 * An expired lease, the one that expired first. 0: there is none, or none was found with bounded
 * work; in that case lessor_next_ns is still in the past.
 */
int64_t lessor_expired(struct lessor *lessor, int64_t now_ns);

size_t lessor_bytes(const struct lessor *lessor); /* for tests: memory, keys included */

/* For tests: every key is on its lease's list, every lease in the heap. */
void lessor_check(const struct lessor *lessor);

#endif
