#include "import/replay_auth.h"

#include "auth/password.h"
#include "base/random.h"
#include "codec/base64.h"
#include "codec/pb/rpc.pb.h"

#include <sys/random.h>

static const enum row_table tables[AUTH_TABLES] = {
    [AUTH_TABLE_USERS] = ROW_USER,
    [AUTH_TABLE_ROLES] = ROW_ROLE,
    [AUTH_TABLE_STATE] = ROW_AUTH,
};

enum status import_auth_take_row(struct auth_store *auth, const struct row *row)
{
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        /* Rows of other tables do not concern users and roles. */
        if (tables[i] != row->table)
            continue;
        struct auth_row known = {.table = (enum auth_table)i, .key = row->key, .value = row->value};
        return auth_store_apply(auth, &known);
    }
    return ST_OK;
}

bool import_auth_needs_admin(const struct pb_log_request *request)
{
    return request->auth_disable || request->auth_user_add || request->auth_user_delete ||
           request->auth_user_change_password || request->auth_user_grant_role ||
           request->auth_user_revoke_role || request->auth_role_add || request->auth_role_delete ||
           request->auth_role_grant_permission || request->auth_role_revoke_permission;
}

/* Since 3.5 the log contains the hash, in base64; before, it contained the password. */
static enum status hash_of(struct slice password, struct slice hashed, struct arena *arena,
                           struct slice *ret_hash)
{
    uint8_t *bytes = arena_alloc(arena, hashed.len / 4 * 3 + 3 + AUTH_HASH_BYTES);
    size_t len = AUTH_HASH_BYTES;
    if (!bytes)
        return ST_NOMEM;
    if (password.len && !hashed.len) {
        uint8_t salt[AUTH_SALT_BYTES];
        if (getrandom(salt, sizeof(salt), 0) != (ssize_t)sizeof(salt))
            return ST_IO;
        if (auth_password_hash(password, salt, AUTH_BCRYPT_COST_DEFAULT, bytes) != ST_OK)
            return ST_AUTH_FAILED; /* too long: etcd refused it as well */
    } else if (!base64_decode(hashed, bytes, &len)) {
        return ST_DAMAGED;
    }
    *ret_hash = slice_of(bytes, len);
    return ST_OK;
}

static enum status add_user(const struct auth_store *auth,
                            const struct pb_auth_user_add_request *request, struct arena *arena,
                            struct auth_change *ret_change)
{
    bool no_password = request->options && request->options->no_password;
    struct slice hash = SLICE_EMPTY;
    if (!no_password)
        TRY(hash_of(request->password, request->hashed_password, arena, &hash));
    return auth_store_user_add(auth, request->name, hash, no_password, arena, ret_change);
}

static enum status change_password(const struct auth_store *auth,
                                   const struct pb_auth_user_change_password_request *request,
                                   struct arena *arena, struct auth_change *ret_change)
{
    struct slice hash;
    TRY(hash_of(request->password, request->hashed_password, arena, &hash));
    return auth_store_user_change_password(auth, request->name, hash, arena, ret_change);
}

static enum status change_of_role(const struct auth_store *auth, const struct pb_log_request *r,
                                  struct arena *arena, struct auth_change *ret_change)
{
    if (r->auth_role_add)
        return auth_store_role_add(auth, r->auth_role_add->name, arena, ret_change);
    if (r->auth_role_delete)
        return auth_store_role_delete(auth, r->auth_role_delete->role, arena, ret_change);
    if (r->auth_role_grant_permission)
        return auth_store_role_grant(auth, r->auth_role_grant_permission->name,
                                     r->auth_role_grant_permission->perm, arena, ret_change);
    if (r->auth_role_revoke_permission)
        return auth_store_role_revoke(auth, r->auth_role_revoke_permission->role,
                                      r->auth_role_revoke_permission->key,
                                      r->auth_role_revoke_permission->range_end, arena, ret_change);
    return ST_OK;
}

static enum status change_of(const struct auth_store *auth, const struct pb_log_request *r,
                             struct arena *arena, struct auth_change *ret_change)
{
    if (r->auth_enable)
        return auth_store_enable(auth, arena, ret_change);
    if (r->auth_disable)
        return auth_store_disable(auth, arena, ret_change);
    if (r->auth_user_add)
        return add_user(auth, r->auth_user_add, arena, ret_change);
    if (r->auth_user_delete)
        return auth_store_user_delete(auth, r->auth_user_delete->name, arena, ret_change);
    if (r->auth_user_change_password)
        return change_password(auth, r->auth_user_change_password, arena, ret_change);
    if (r->auth_user_grant_role)
        return auth_store_user_grant_role(auth, r->auth_user_grant_role->user,
                                          r->auth_user_grant_role->role, arena, ret_change);
    if (r->auth_user_revoke_role)
        return auth_store_user_revoke_role(auth, r->auth_user_revoke_role->name,
                                           r->auth_user_revoke_role->role, arena, ret_change);
    return change_of_role(auth, r, arena, ret_change);
}

enum status import_auth_change(struct auth_store *auth, struct applier *applier,
                               const struct pb_log_request *request, struct arena *arena,
                               bool *ret_changed)
{
    struct auth_change change = {0};
    TRY(change_of(auth, request, arena, &change));
    *ret_changed = change.row_count > 0;
    if (!*ret_changed)
        return ST_OK;
    struct row *rows = arena_calloc(arena, change.row_count, sizeof(*rows));
    if (!rows)
        return ST_NOMEM;
    for (size_t i = 0; i < change.row_count; i++)
        rows[i] = (struct row){
            .table = tables[change.rows[i].table],
            .deleted = change.rows[i].deleted,
            .key = change.rows[i].key,
            .value = change.rows[i].value,
        };
    TRY(applier_rows(applier, rows, change.row_count, NULL, 0, NULL));
    for (size_t i = 0; i < change.row_count; i++)
        TRY(auth_store_apply(auth, &change.rows[i]));
    return ST_OK;
}
