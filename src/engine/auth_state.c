#include "engine/auth_state.h"

void auth_state_init(struct auth_state *state)
{
    *state = (struct auth_state){.store = auth_store_new()};
}

void auth_state_open(struct auth_state *state)
{
    state->rights = auth_rights_new(state->store);
}

void auth_state_fini(struct auth_state *state)
{
    auth_store_free(TAKE(state->store));
    auth_rights_unref(TAKE(state->rights));
}

/* -- Questions -- */

static MUST_CHECK
enum status copy_names(struct engine_auth *auth, const struct slice *names, size_t count)
{
    auth->names = arena_calloc(auth->op.arena, size_max(count, 1), sizeof(*auth->names));
    if (!auth->names)
        return ST_NOMEM;
    for (size_t i = 0; i < count; i++)
        TRY(arena_dup(auth->op.arena, names[i], &auth->names[i]));
    auth->name_count = count;
    return ST_OK;
}

static MUST_CHECK
enum status user_get(const struct auth_state *state, struct engine_auth *auth)
{
    const struct pb_user *user;
    TRY(auth_store_user_get(state->store, auth->user, &user));
    return copy_names(auth, user->roles, user->roles_count);
}

static MUST_CHECK
enum status role_get(const struct auth_state *state, struct engine_auth *auth)
{
    const struct pb_role *role;
    TRY(auth_store_role_get(state->store, auth->role, &role));
    const struct pb_permission *shown;
    size_t count;
    auth_role_shown(role, &shown, &count);
    struct arena *arena = auth->op.arena;
    auth->permissions = arena_calloc(arena, size_max(count, 1), sizeof(*auth->permissions));
    if (!auth->permissions)
        return ST_NOMEM;
    for (size_t i = 0; i < count; i++) {
        auth->permissions[i].perm_type = shown[i].perm_type;
        TRY(arena_dup(arena, shown[i].key, &auth->permissions[i].key));
        TRY(arena_dup(arena, shown[i].range_end, &auth->permissions[i].range_end));
    }
    auth->permission_count = count;
    return ST_OK;
}

static MUST_CHECK
enum status list(const struct auth_state *state, struct engine_auth *auth)
{
    bool users = auth->call == ENGINE_AUTH_USER_LIST;
    size_t count =
        users ? auth_store_user_count(state->store) : auth_store_role_count(state->store);
    auth->names = arena_calloc(auth->op.arena, size_max(count, 1), sizeof(*auth->names));
    if (!auth->names)
        return ST_NOMEM;
    for (size_t i = 0; i < count; i++) {
        struct slice name = users ? auth_store_user_at(state->store, i)->name
                                  : auth_store_role_at(state->store, i)->name;
        TRY(arena_dup(auth->op.arena, name, &auth->names[i]));
    }
    auth->name_count = count;
    return ST_OK;
}

static MUST_CHECK
enum status password(const struct auth_state *state, struct engine_auth *auth)
{
    struct slice hash;
    uint64_t revision;
    TRY(auth_store_password(state->store, auth->user, &hash, &revision));
    return arena_dup(auth->op.arena, hash, &auth->password_hash);
}

/* -- Deciding -- */

static MUST_CHECK
enum status may(const struct auth_state *state, const struct engine_auth *auth)
{
    const struct auth_principal *principal = &auth->op.principal;
    switch (auth->call) {
    case ENGINE_AUTH_PASSWORD:
        return ST_OK;
    case ENGINE_AUTH_USER_GET:
        return auth_rights_check_user_get(state->rights, principal, auth->user);
    case ENGINE_AUTH_ROLE_GET:
        return auth_rights_check_role_get(state->rights, principal, auth->role);
    default:
        return auth_rights_check_admin(state->rights, principal);
    }
}

static MUST_CHECK
enum status decide(const struct auth_state *state, struct engine_auth *auth, struct arena *arena,
                   struct auth_change *ret_change)
{
    const struct auth_store *store = state->store;
    switch (auth->call) {
    case ENGINE_AUTH_ENABLE:
        return auth_store_enable(store, arena, ret_change);
    case ENGINE_AUTH_DISABLE:
        return auth_store_disable(store, arena, ret_change);
    case ENGINE_AUTH_USER_ADD:
        return auth_store_user_add(store, auth->user, auth->hash, auth->no_password, arena,
                                   ret_change);
    case ENGINE_AUTH_USER_DELETE:
        return auth_store_user_delete(store, auth->user, arena, ret_change);
    case ENGINE_AUTH_USER_CHANGE_PASSWORD:
        return auth_store_user_change_password(store, auth->user, auth->hash, arena, ret_change);
    case ENGINE_AUTH_USER_GRANT_ROLE:
        return auth_store_user_grant_role(store, auth->user, auth->role, arena, ret_change);
    case ENGINE_AUTH_USER_REVOKE_ROLE:
        return auth_store_user_revoke_role(store, auth->user, auth->role, arena, ret_change);
    case ENGINE_AUTH_ROLE_ADD:
        return auth_store_role_add(store, auth->role, arena, ret_change);
    case ENGINE_AUTH_ROLE_DELETE:
        return auth_store_role_delete(store, auth->role, arena, ret_change);
    case ENGINE_AUTH_ROLE_GRANT:
        return auth_store_role_grant(store, auth->role, auth->permission, arena, ret_change);
    case ENGINE_AUTH_ROLE_REVOKE:
        return auth_store_role_revoke(store, auth->role, auth->key, auth->range_end, arena,
                                      ret_change);
    case ENGINE_AUTH_USER_GET:
        return user_get(state, auth);
    case ENGINE_AUTH_ROLE_GET:
        return role_get(state, auth);
    case ENGINE_AUTH_USER_LIST:
    case ENGINE_AUTH_ROLE_LIST:
        return list(state, auth);
    case ENGINE_AUTH_PASSWORD:
        return password(state, auth);
    }
    return ST_INTERNAL;
}

enum status auth_state_decide(const struct auth_state *state, struct engine_auth *auth,
                              struct arena *arena, struct auth_change *ret_change)
{
    struct auth_change change = {0};
    auth->name_count = auth->permission_count = 0;
    auth->ends_tokens_of = SLICE_EMPTY;
    auth->ends_all_tokens = false;
    auth->auth_revision = auth_store_revision(state->store);
    TRY(may(state, auth));
    TRY(decide(state, auth, arena, &change));
    TRY(arena_dup(auth->op.arena, change.ends_tokens_of, &auth->ends_tokens_of));
    auth->ends_all_tokens = change.ends_all_tokens;
    *ret_change = change;
    return ST_OK;
}

/* -- Committing -- */

enum status auth_state_load_row(struct auth_state *state, const struct auth_row *row)
{
    return auth_store_apply(state->store, row);
}

void auth_state_commit(struct auth_state *state, struct engine_auth *auth,
                       const struct auth_change *change)
{
    for (size_t i = 0; i < change->row_count; i++) {
        enum status status = auth_store_apply(state->store, &change->rows[i]);
        assert(status == ST_OK); /* auth_state_decide made it */
    }
    auth->auth_revision = auth_store_revision(state->store);
    if (change->row_count == 0)
        return;
    struct auth_rights *before = state->rights;
    state->rights = auth_rights_after(before, state->store, change->rows, change->row_count);
    auth_rights_unref(before);
}
