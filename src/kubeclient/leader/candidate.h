/*
 * The inside of a vigil_kube_candidate: an election with its requests and callbacks.
 *
 *     new ──► running ──► releasing ──► ended
 *      │         └────────────────────────▲
 *      └──────────────────────────────────┘
 *
 *     releasing   it was freed while it led, and gives the lease back
 *
 * Its requests are not delayed by the client's rate limit, which could cost it the lease.
 * Everything belongs to the loop's thread, except for the fields that say otherwise.
 */
#ifndef VIGIL_KUBECLIENT_LEADER_CANDIDATE_H
#define VIGIL_KUBECLIENT_LEADER_CANDIDATE_H

#include "client/driver/shared.h"
#include "kubeclient/call/exchange.h"
#include "kubeclient/leader/election.h"

#include <vigil/kube/leader.h>

enum candidate_state {
    CANDIDATE_NEW,
    CANDIDATE_RUNNING,
    CANDIDATE_RELEASING,
    CANDIDATE_ENDED,
};

struct vigil_kube_candidate {
    enum candidate_state state;
    struct vigil_kube *kube; /* a reference to its driver */
    struct driver_object object;
    struct driver_member member; /* membership of the driver, from the start to the end */
    struct driver_shared shared; /* its references are the user's, the loop's until it has ended,
                                    and one while the command is posted */
    vigil_kube_leader_fn fn;
    void *user;
    struct election election;
    bool keeps; /* the lease is not released */

    struct kube_exchange exchange;
    struct buf answer;                /* answer to the request under way */
    bool answer_lost;                 /* it was too long, or there was no memory */
    struct buf lease;                 /* as it was read or written last */
    int64_t request_until_ns;         /* while a request is under way */
    struct timer timer;               /* the next thing that is due */
    bool led;                         /* the program knows that it leads */
    char known[LEASE_IDENTITY_BYTES]; /* the leader that the program knows */
    char failure[128];                /* that was logged last; "" after a success */
    _Atomic int64_t leads_until_ns;   /* any thread; 0: it does not lead */
    bool over;                        /* it has ended; protected by the driver's lock */
    char *name_space, *name;          /* in texts */
    char texts[];                     /* the namespace, the name and the identity */
};

/* Asserts every invariant; for tests. The loop's thread. */
void candidate_check(const struct vigil_kube_candidate *candidate);

#endif
