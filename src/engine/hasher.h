/*
 * Passwords are hashed on a separate thread (io/worker.h), one at a time: a hash takes tens of
 * milliseconds, and logins should use one core at most. The queue is shared fairly between the
 * addresses of clients (wire_peer_key), which take turns.
 */
#ifndef VIGIL_ENGINE_HASHER_H
#define VIGIL_ENGINE_HASHER_H

#include "auth/password.h"
#include "io/worker.h"

enum { HASHER_QUEUE_MAX = 128 };

enum hasher_task { HASHER_MAKE, HASHER_CHECK };

/* Its slices are borrowed until it is answered. */
struct hasher_job {
    struct worker_job work; /* status: result of auth_password_hash or _check */
    enum hasher_task task;
    struct slice password;
    struct slice hash;             /* HASHER_CHECK: the hash to compare with */
    uint8_t salt[AUTH_SALT_BYTES]; /* HASHER_MAKE */
    unsigned cost;                 /* HASHER_MAKE */
    uint8_t made[AUTH_HASH_BYTES]; /* HASHER_MAKE: the result */
};

/* A worker for hasher_submit, not started yet. */
struct worker *hasher_new(void);

/* As worker_submit. The caller has set work.answers and work.group. */
MUST_CHECK
enum status hasher_submit(struct worker *hasher, struct hasher_job *job);

#endif
