/*
 * Has passwords hashed for the calls of one API, and gives the results back on its thread. Hashing
 * takes tens of milliseconds, so it is done one at a time on a separate thread (engine/hasher.h).
 *
 *     hash, verify ──► hasher, with a bounded queue ──► the API's loop ──► done
 *
 * There is one per API, used on its thread.
 */
#ifndef VIGIL_ETCD_SERVICE_PASSWORD_QUEUE_H
#define VIGIL_ETCD_SERVICE_PASSWORD_QUEUE_H

#include "base/memory/arena.h"
#include "engine/hasher.h"
#include "wire/peer/peer.h"

struct loop;
struct password_queue;

/* Embedded in the call that waits for it, which must live until done. */
struct password_job {
    struct hasher_job hasher;
    /* Called exactly once for a submitted job, with the result in hasher.work.status. */
    void (*done)(struct password_job *job);
    struct password_queue *queue; /* set by the queue */
};

/* hasher is borrowed; if it is NULL, nothing can be hashed. */
struct password_queue *password_queue_new(struct loop *loop, struct worker *hasher,
                                          unsigned bcrypt_cost);
void password_queue_free(struct password_queue *queue); /* must not be busy; accepts NULL */
/* Some job is not done. NULL is never busy. */
bool password_queue_busy(const struct password_queue *queue);

/*
 * Submit a job that makes a hash of the password, or compares the password with a hash. job->done
 * is set by the caller; password and hash are borrowed until it is called. Peers take turns.
 * ST_UNIMPLEMENTED: queue is NULL or has no hasher. ST_REQUEST_TOO_MANY_REQUESTS: the queue is
 * full.
 */
MUST_CHECK
enum status password_queue_hash(struct password_queue *queue, struct password_job *job,
                                struct wire_peer peer, struct slice password);
MUST_CHECK
enum status password_queue_verify(struct password_queue *queue, struct password_job *job,
                                  struct wire_peer peer, struct slice password, struct slice hash);
/* The result of a submitted job is no longer needed, so the hasher may skip it. done is still
 * called. */
void password_job_cancel(struct password_job *job);

/*
 * A hash of no user's password that takes as long to verify as a password set now. It is used for
 * unknown users, so that the time of an answer does not reveal whether a user exists. In the arena;
 * empty if there is no memory.
 */
struct slice password_dummy_hash(unsigned bcrypt_cost, struct arena *arena);

#endif
