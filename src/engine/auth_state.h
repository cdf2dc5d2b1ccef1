/*
 * Users and roles as an engine's writer keeps them, and the rights made from them: what engines
 * share of engine/engine.h. Belongs to the writer, on its thread; the rights are for everybody.
 *
 *   auth_state_decide ──► rows ──► the engine's log ──► auth_state_commit ──► state->rights, to publish
 *
 * Aborts without memory.
 */
#ifndef VIGIL_ENGINE_AUTH_STATE_H
#define VIGIL_ENGINE_AUTH_STATE_H

#include "auth/store.h"
#include "engine/operation.h"

/* Embedded in the engine. */
struct auth_state {
    struct auth_store *store;   /* owned */
    struct auth_rights *rights; /* one reference: after every change that was taken in */
};

/* auth_state_open follows, after the rows of a start were taken in. */
void auth_state_init(struct auth_state *state);
void auth_state_open(struct auth_state *state);
void auth_state_fini(struct auth_state *state); /* accepts a zeroed one */

/*
 * Whether the caller may, and what comes of it: answers a question, or says which rows a change
 * makes, in that arena; a role's end takes as many as users had it. Without any there is nothing
 * to write.
 */
MUST_CHECK
enum status auth_state_decide(const struct auth_state *state, struct engine_auth *auth,
                              struct arena *arena, struct auth_change *ret_change);

/* A row that is in the log, at a start. ST_DAMAGED. */
MUST_CHECK
enum status auth_state_load_row(struct auth_state *state, const struct auth_row *row);
/* The rows of a change are in the log: the rights are new ones then. */
void auth_state_commit(struct auth_state *state, struct engine_auth *auth,
                       const struct auth_change *change);

#endif
