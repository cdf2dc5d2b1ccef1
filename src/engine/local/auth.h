/*
 * Users, roles and rights of the local engine: the book (engine/auth_state.h) joined to the store.
 * Changes are records of the log; the rights after them are published with the very state that has
 * them, so that a shard sees data and rights of one moment.
 */
#ifndef VIGIL_ENGINE_LOCAL_AUTH_H
#define VIGIL_ENGINE_LOCAL_AUTH_H

#include "engine/auth_state.h"
#include "store/store.h"

#include <stdatomic.h>

/* Embedded in the engine. */
struct local_auth {
    struct auth_book book; /* the writer's */
    struct store *store;
    bool changed; /* the writer's: since the last commit */
    /* Any thread: what the newest published state has, or the next. To be compared, not to be
     * looked into. */
    _Atomic(const struct auth_rights *) shown;
    _Atomic uint64_t shown_revision;
};

void local_auth_init(struct local_auth *auth);
void local_auth_fini(struct local_auth *auth); /* accepts a zeroed one */

/* While the store opens: a row of ROW_USER, ROW_ROLE or ROW_AUTH. */
MUST_CHECK
enum status local_auth_row(struct local_auth *auth, const struct row *row);
/* The store is open, and nobody reads it yet. */
void local_auth_open(struct local_auth *auth, struct store *store);

/* -- The writer -- */

/* With the rights after everything applied so far. */
void local_auth_execute(struct local_auth *auth, struct engine_auth *op);
/* After the group is on disk and published. True: shards are to be told. */
bool local_auth_committed(struct local_auth *auth);

/* -- Readers -- */

/* Of a state that is pinned, and for as long as it is. */
static inline struct auth_rights *local_auth_of(const struct store_view *view)
{
    return view->attachment;
}

#endif
