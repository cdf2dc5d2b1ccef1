/*
 * Users and roles of an engine, and the rights made from them: the part of struct engine_auth that
 * engines have in common. Used on the writer's thread; the rights may be used by any thread.
 *
 *   auth_state_decide ──► rows ──► the engine's log ──► auth_state_commit ──► state->rights, to publish
 *
 * Aborts without memory.
 */
#ifndef VIGIL_ENGINE_AUTH_STATE_H
#define VIGIL_ENGINE_AUTH_STATE_H

#include "auth/store.h"
#include "engine/auth.h"

/* Embedded in the engine. */
struct auth_state {
    struct auth_store *store;   /* owned */
    struct auth_rights *rights; /* one reference: the rights after the last commit */
};

/* After init, the rows of the log are loaded; then auth_state_open makes the rights. */
void auth_state_init(struct auth_state *state);
void auth_state_open(struct auth_state *state);
void auth_state_fini(struct auth_state *state); /* accepts a zeroed one */

/*
 * Checks the permission of the caller, then answers a question or returns the rows of a change, in
 * the arena. Without rows there is nothing to write.
 */
MUST_CHECK
enum status auth_state_decide(const struct auth_state *state, struct engine_auth *auth,
                              struct arena *arena, struct auth_change *ret_change);

/* A row of the log, at a start. ST_DAMAGED. */
MUST_CHECK
enum status auth_state_load_row(struct auth_state *state, const struct auth_row *row);
/* The rows of a change are in the log: applies them and makes new rights. */
void auth_state_commit(struct auth_state *state, struct engine_auth *auth,
                       const struct auth_change *change);

#endif
