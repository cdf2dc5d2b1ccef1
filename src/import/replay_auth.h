/* The part of a replay that changes users, roles and whether authentication is enabled. */
#ifndef VIGIL_IMPORT_REPLAY_AUTH_H
#define VIGIL_IMPORT_REPLAY_AUTH_H

#include "auth/store.h"
#include "codec/pb/raft.pb.h"
#include "store/mvcc/applier.h"

/* A row of ROW_USER, ROW_ROLE or ROW_AUTH. */
MUST_CHECK
enum status import_auth_take_row(struct auth_store *auth, const struct row *row);

/* Whether only root may make this request. */
bool import_auth_needs_admin(const struct pb_log_request *request);

/* Executes the request; one that does not concern users and roles changes nothing. */
MUST_CHECK
enum status import_auth_change(struct auth_store *auth, struct applier *applier,
                               const struct pb_log_request *request, struct arena *arena,
                               bool *ret_changed);

#endif
