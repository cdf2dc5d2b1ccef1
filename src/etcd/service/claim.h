/*
 * Locks and elections as etcd's clients know them: a key of one's own under a prefix, held by a
 * lease. Whose key is oldest has the lock, or leads; everybody else waits for the one before it to
 * go, and for no other, so that a release wakes one.
 *
 *     granting ──► claiming ──► (proclaiming) ──► looking ⇄ waiting ──► (confirming) ──► answered
 *        └────────────┴───────────────┴──────────────┴─────────┴─────────────┴──► failed
 *     the peer leaves before it was answered ──► withdrawing ──► over
 *
 * Lock.Lock and Election.Campaign are this, with other answers. In the call's arena; the
 * connection's thread.
 */
#ifndef VIGIL_ETCD_SERVICE_CLAIM_H
#define VIGIL_ETCD_SERVICE_CLAIM_H

#include "etcd/service.h"

struct pb_response_header;

/* What a call has got. */
struct claim_result {
    struct pb_response_header *header;
    struct slice name;
    struct slice key;
    int64_t create_revision;
    int64_t lease;
};

struct claim_kind {
    const char *gone; /* the key must still be there after a wait; what is said if it is not */
    bool proclaims;   /* a key that the lease had already gets the new value */
    /* Answers the call: replies with a message made of the result. */
    void (*reply)(const struct claim_result *result,
                  void (*send)(void *ctx, const struct pb_message *type, const void *message),
                  void *ctx);
};

/* What a lease lives that is granted for who has none. */
enum { CLAIM_LEASE_S = 60 };

/* False: the request is too long for a write, and was told so in the words of etcd's client. */
bool claim_admit(struct grpc_call *call, const struct etcd_face *face, struct slice message);

/* The slices lie in the call's arena or message. */
void claim_start(struct grpc_call *call, struct etcd_face *face, const struct claim_kind *kind,
                 struct slice name, struct slice value, int64_t lease);
void claim_on_end(struct grpc_call *call, void *face);

#endif
