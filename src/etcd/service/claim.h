/*
 * One claim of a lock or an election, made the way etcd's clients make it: a key of its own under a
 * prefix, attached to a lease. The oldest key of the prefix holds the lock or leads. Every other
 * claim waits only until the key created just before its own is deleted, so a release wakes one
 * waiter.
 *
 *     granting ──► claiming ──► (proclaiming) ──► reading ⇄ waiting
 *                                                    └──► (confirming) ──► answered ──► over
 *     every state before answered ──► failed
 *     the call ends ──► (withdrawing) ──► over
 *
 *     granting      a lease is granted, because the request has none
 *     claiming      the key is created, or the key of an earlier claim of this lease is found
 *     proclaiming   Campaign: the earlier key gets the new value
 *     reading       the claim reads the key created just before its own
 *     waiting       it waits for the deletion of that key
 *     confirming    Lock, after a wait: it reads its own key, which may have expired
 *     withdrawing   the call ended unanswered, and its key is deleted
 *
 * Lock.Lock and Election.Campaign are claims with different responses. The state of a claim is in
 * the call's arena, on the connection's thread.
 */
#ifndef VIGIL_ETCD_SERVICE_CLAIM_H
#define VIGIL_ETCD_SERVICE_CLAIM_H

#include "etcd/shared/service.h"

struct pb_response_header;

/* The result of a successful claim. */
struct claim_result {
    struct pb_response_header *header;
    struct slice name;
    struct slice key;
    int64_t create_revision;
    int64_t lease;
};

struct claim_kind {
    const char *gone_text; /* error if the key does not exist after a wait; NULL: not checked */
    bool proclaims;        /* the key of an earlier claim of the lease gets the new value */
    /* Makes the response from the result and sends it. */
    void (*reply)(const struct claim_result *result,
                  void (*send)(void *ctx, const struct pb_message *type, const void *message),
                  void *ctx);
};

/* The time to live of the lease that is granted if the request has none. */
enum { CLAIM_LEASE_S = 60 };

/* False: the request is too long for a write, and was answered with the error of etcd's client. */
bool claim_admit(struct grpc_call *call, const struct etcd_api *api, struct slice message);

/* The slices are in the call's arena or message. */
void claim_start(struct grpc_call *call, struct etcd_api *api, const struct claim_kind *kind,
                 struct slice name, struct slice value, int64_t lease);
void claim_on_end(struct grpc_call *call, void *api);

#endif
