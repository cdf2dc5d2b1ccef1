/*
 * Where a face has passwords hashed and gets them back: hashing takes tens of milliseconds, on a
 * thread of its own and one at a time (engine/hasher.h). One to a face, on its thread.
 *
 *     submit ──► hasher, bounded ──► the face's loop ──► done
 */
#ifndef VIGIL_ETCD_SERVICE_PASSWORD_QUEUE_H
#define VIGIL_ETCD_SERVICE_PASSWORD_QUEUE_H

#include "base/memory/arena.h"
#include "engine/hasher.h"
#include "wire/peer.h"

struct auth_desk;
struct etcd_face;
struct loop;

/* Embedded in what waits for it, which lives until done. */
struct desk_job {
    struct hasher_job hasher;
    struct etcd_face *face;             /* the desk's own */
    void (*done)(struct desk_job *job); /* with hasher.work.status; exactly once if submitted */
};

/* hasher: may be NULL, and nothing can be hashed then. */
struct auth_desk *auth_desk_new(struct loop *loop, struct worker *hasher);
void auth_desk_free(struct auth_desk *desk); /* none may be under way; accepts NULL */

/* Until it is done the face is busy. What is hashed is lent until then. Peers take turns.
 * ST_UNIMPLEMENTED: there is no hasher; ST_REQUEST_TOO_MANY_REQUESTS. */
MUST_CHECK
enum status desk_make(struct etcd_face *face, struct desk_job *job, struct wire_peer peer,
                      struct slice password);
MUST_CHECK
enum status desk_check(struct etcd_face *face, struct desk_job *job, struct wire_peer peer,
                       struct slice password, struct slice hash);
/* Nobody waits any more for one that is under way: it need not be hashed. done comes all the same.
 */
void desk_give_up(struct desk_job *job);

/*
 * Nobody's, and as hard to hash as one that is set now: so that it cannot be told from the time an
 * answer takes whether there is a user. In the arena; empty without memory.
 */
struct slice desk_hash_of_nobody(const struct etcd_face *face, struct arena *arena);

#endif
