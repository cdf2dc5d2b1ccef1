/*
 * Passwords are hashed on a thread of its own, one at a time: a hash takes tens of milliseconds,
 * and however many log in at once, it is one core at most that they take.
 *
 *   shard ── submit ──► queue, bounded ── thread ──► the shard's mailbox
 *
 * Peers take turns: the first job of one waits for at most one hash of each other peer that waits,
 * and the one under way. When the queue is full, a job of a peer with fewer takes the place of the
 * newest of the peer with the most, which then comes back with ST_REQUEST_TOO_MANY_REQUESTS.
 *
 * A job belongs to the hasher from submit until it is posted back, and its bytes are lent for that
 * long. It always comes back. Any thread may submit. Aborts without memory.
 */
#ifndef VIGIL_ENGINE_HASHER_H
#define VIGIL_ENGINE_HASHER_H

#include "auth/password.h"
#include "io/mailbox.h"

#include <stdatomic.h>

struct hasher;
struct turn;

enum { HASHER_QUEUE_MAX = 128 };

enum hasher_task { HASHER_MAKE, HASHER_CHECK };

struct hasher_job {
    struct mailbox_node in_mailbox;
    struct mailbox *answers; /* where it is posted when done */
    uint64_t peer;           /* whose it is (wire_peer_key) */

    enum hasher_task task;
    struct slice password;
    struct slice hash;             /* HASHER_CHECK: what it is held against */
    uint8_t salt[AUTH_SALT_BYTES]; /* HASHER_MAKE */
    unsigned cost;                 /* HASHER_MAKE */
    _Atomic bool given_up;         /* nobody waits for it any more: it need not be hashed */

    /* Of auth_password_hash or _check; ST_CANCELED when given up, ST_STOPPED,
     * ST_REQUEST_TOO_MANY_REQUESTS. */
    enum status status;
    uint8_t made[AUTH_HASH_BYTES]; /* HASHER_MAKE */
};

struct hasher *hasher_new(void);
/* Where its turns, one for each password, are measured. Before it is started. */
void hasher_set_turn(struct hasher *hasher, struct turn *turn);
/* Its thread; until then jobs wait. */
MUST_CHECK
enum status hasher_start(struct hasher *hasher);
/* What has not begun is posted back with ST_STOPPED. Nobody may submit any more. Accepts NULL. */
void hasher_free(struct hasher *hasher);
DEFINE_CLEANUP(struct hasher *, hasher_free)

/* ST_REQUEST_TOO_MANY_REQUESTS: HASHER_QUEUE_MAX wait already, and no peer has two more of them
 * than this one; the job is the caller's still. */
MUST_CHECK
enum status hasher_submit(struct hasher *hasher, struct hasher_job *job);

/* Returns once nothing is being posted there: the mailbox, all of whose jobs have come back, and
 * its loop may then go. */
void hasher_leave(const struct hasher *hasher, const struct mailbox *answers);

#endif
