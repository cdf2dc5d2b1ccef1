/*
 * Users, roles and rights of the local engine: connects engine/auth_state.h to the store. Changes
 * are records of the log. The rights after a change are published with the state that contains it,
 * so that a shard always sees data and rights of the same revision.
 */
#ifndef VIGIL_ENGINE_LOCAL_STATE_AUTH_H
#define VIGIL_ENGINE_LOCAL_STATE_AUTH_H

#include "engine/auth.h"
#include "engine/auth_state.h"
#include "store/store.h"

#include <stdatomic.h>

/* Embedded in the engine. */
struct local_auth {
    struct auth_state state; /* used by the writer only, as is `changed` */
    struct store *store;
    bool changed; /* since the last commit, after which the writer notifies shards */
    /* Any thread: the rights of the newest published state, or of the next. Only for comparing;
     * they may be freed at any time. */
    _Atomic(const struct auth_rights *) newest;
    _Atomic uint64_t newest_revision;
};

void local_auth_init(struct local_auth *auth);
void local_auth_fini(struct local_auth *auth); /* accepts a zeroed one */

/* While the store opens: a row of ROW_USER, ROW_ROLE or ROW_AUTH. */
MUST_CHECK
enum status local_auth_load_row(struct local_auth *auth, const struct row *row);
/* After the store was opened, before anything reads it. */
void local_auth_open(struct local_auth *auth, struct store *store);

/* -- The writer -- */

/* Executes it with the rights after everything that was applied so far. */
void local_auth_execute(struct local_auth *auth, struct engine_auth *op);

/* -- Shards -- */

/* The rights of a state; valid while it is pinned. */
static inline struct auth_rights *local_auth_of(const struct store_view *view)
{
    return view->attachment;
}

/* The rights that one shard uses, on its thread. */
struct local_auth_reader {
    struct local_auth *auth;    /* borrowed, as are the next two */
    struct epoch_slot *slot;    /* slot of the shard's thread */
    struct engine_shard *shard; /* its listeners are notified of changes */
    struct auth_rights *rights; /* one reference */
};

/* Loads the newest rights; if they have changed, notifies the listeners. */
void local_auth_reader_load(struct local_auth_reader *reader);
static inline void local_auth_reader_refresh(struct local_auth_reader *reader)
{
    /* The rights that the shard holds are not freed, so an equal address means equal rights. */
    if (atomic_load_explicit(&reader->auth->newest, memory_order_acquire) != reader->rights)
        local_auth_reader_load(reader);
}

#endif
