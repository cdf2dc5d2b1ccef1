/* The part of a replay that changes users, roles and whether access is controlled. */
#ifndef VIGIL_IMPORT_REPLAY_AUTH_H
#define VIGIL_IMPORT_REPLAY_AUTH_H

#include "auth/store.h"
#include "codec/pb/raft.pb.h"
#include "store/applier.h"

/* A row of ROW_USER, ROW_ROLE or ROW_AUTH. */
MUST_CHECK
enum status import_auth_take_row(struct auth_store *auth, const struct row *row);

/* It is one of those that only root may ask for. */
bool import_auth_needs_admin(const struct pb_log_request *request);

/* Does what the request asks for; one that is not about users and roles changes nothing. */
MUST_CHECK
enum status import_auth_change(struct auth_store *auth, struct applier *applier,
                               const struct pb_log_request *request, struct arena *arena,
                               bool *ret_changed);

#endif
