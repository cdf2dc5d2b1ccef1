/*
 * Passwords are hashed on a thread of its own (io/worker.h), one at a time: a hash takes tens of
 * milliseconds, and however many clients log in at once, they take one core at most. The shares of
 * its queue are the addresses of clients (wire_peer_key), which take turns.
 */
#ifndef VIGIL_ENGINE_HASHER_H
#define VIGIL_ENGINE_HASHER_H

#include "auth/password.h"
#include "io/worker.h"

enum { HASHER_QUEUE_MAX = 128 };

enum hasher_task { HASHER_MAKE, HASHER_CHECK };

/* Its bytes are lent until it is back. */
struct hasher_job {
    struct worker_job work; /* status: of auth_password_hash or _check, if it has run */
    enum hasher_task task;
    struct slice password;
    struct slice hash;             /* HASHER_CHECK: what it is compared with */
    uint8_t salt[AUTH_SALT_BYTES]; /* HASHER_MAKE */
    unsigned cost;                 /* HASHER_MAKE */
    uint8_t made[AUTH_HASH_BYTES]; /* HASHER_MAKE: the result */
};

/* A worker for hasher_submit, not started. */
struct worker *hasher_new(void);

/* As worker_submit; work.answers and work.share are set. */
MUST_CHECK
enum status hasher_submit(struct worker *hasher, struct hasher_job *job);

#endif
