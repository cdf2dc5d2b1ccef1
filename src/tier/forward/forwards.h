/*
 * How many requests one thread passes on at a time, in all and for each client. One client must
 * leave room for others: it has at most a quarter.
 *
 * Requests are of the same client if they have the same token; without one, if they come from the
 * user of the same certificate or from the same address. A token is not reviewed for that.
 */
#ifndef VIGIL_TIER_FORWARD_FORWARDS_H
#define VIGIL_TIER_FORWARD_FORWARDS_H

#include "base/container/hash_map.h"

struct http_request;

struct tier_forwards {
    size_t under_way;
    size_t max;             /* more requests are refused */
    size_t share_max;       /* the same for one client */
    struct hash_map shares; /* private; struct tier_share, of clients that have any */
};

/* The part of one client. */
struct tier_share {
    uint64_t client; /* the key */
    size_t count;
};

void tier_forwards_init(struct tier_forwards *forwards, size_t max, uint64_t seed);
void tier_forwards_fini(
    struct tier_forwards *forwards); /* none is under way; accepts a zeroed one */

/* Counts another request; the share belongs to it until it leaves. ST_LIMIT: there are as many as
 * allowed; ST_REQUEST_TOO_MANY_REQUESTS: this client has as many; ST_NOMEM. */
MUST_CHECK
enum status tier_forwards_join(struct tier_forwards *forwards, const struct http_request *request,
                               struct tier_share **ret_share);
void tier_forwards_leave(struct tier_forwards *forwards, struct tier_share *share);

#endif
