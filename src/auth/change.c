/* The checks and the rows of each change, in etcd's order (server/auth/store.go). */
#include "auth/role_ranges.h"
#include "auth/store_private.h"

/* Collects the rows of a change. */
struct change_builder {
    const struct auth_store *store;
    struct arena *arena;
    struct auth_change change;
    size_t bytes_before, bytes_after; /* sizes of the replaced rows and of the new ones */
};

/* Has room for rows_max rows and that of the revision. */
static MUST_CHECK
enum status builder_init(struct change_builder *builder, const struct auth_store *store,
                         struct arena *arena, size_t rows_max)
{
    *builder = (struct change_builder){.store = store, .arena = arena};
    builder->change.rows = arena_calloc(arena, rows_max + 1, sizeof(*builder->change.rows));
    return builder->change.rows ? ST_OK : ST_NOMEM;
}

static void builder_add(struct change_builder *builder, const struct auth_row *row)
{
    if (row->table != AUTH_TABLE_STATE) {
        const struct auth_entry *old = auth_entry_find(builder->store, row->table, row->key);
        builder->bytes_before += old ? old->bytes : 0;
        builder->bytes_after += row->deleted ? 0 : row->key.len + row->value.len;
    }
    builder->change.rows[builder->change.row_count++] = *row;
}

static MUST_CHECK
enum status builder_put(struct change_builder *builder, enum auth_table table, struct slice name,
                        const struct pb_message *type, const void *message)
{
    struct auth_row row = {.table = table};
    size_t size = pb_size(type, message);
    uint8_t *value = arena_alloc(builder->arena, size_max(size, 1));
    if (!value)
        return ST_NOMEM;
    pb_encode(type, message, value, size);
    row.value = slice_of(value, size);
    TRY(arena_dup(builder->arena, name, &row.key));
    builder_add(builder, &row);
    return ST_OK;
}

static MUST_CHECK
enum status put_user(struct change_builder *builder, const struct pb_user *user)
{
    return builder_put(builder, AUTH_TABLE_USERS, user->name, &pb_user_table, user);
}

static MUST_CHECK
enum status put_role(struct change_builder *builder, const struct pb_role *role)
{
    return builder_put(builder, AUTH_TABLE_ROLES, role->name, &pb_role_table, role);
}

static MUST_CHECK
enum status delete_entry(struct change_builder *builder, enum auth_table table, struct slice name)
{
    struct auth_row row = {.table = table, .deleted = true};
    TRY(arena_dup(builder->arena, name, &row.key));
    builder_add(builder, &row);
    return ST_OK;
}

/* Every change but enabling increments the revision. A change that reduces the size is allowed even
 * above the limit. */
static MUST_CHECK
enum status builder_finish(struct change_builder *builder, struct auth_change *ret_change)
{
    if (builder->bytes_after > builder->bytes_before &&
        builder->store->bytes - builder->bytes_before + builder->bytes_after > AUTH_STORE_BYTES_MAX)
        return ST_LIMIT;
    uint8_t *number = arena_alloc(builder->arena, sizeof(uint64_t));
    if (!number)
        return ST_NOMEM;
    /* Big-endian, as in etcd's backend. */
    for (size_t i = 0; i < sizeof(uint64_t); i++)
        number[i] = (uint8_t)((builder->store->revision + 1) >> (56 - 8 * i));
    builder_add(builder, &(struct auth_row){.table = AUTH_TABLE_STATE,
                                            .key = AUTH_REVISION_KEY,
                                            .value = slice_of(number, sizeof(uint64_t))});
    *ret_change = builder->change;
    return ST_OK;
}

static void builder_add_enabled(struct change_builder *builder, bool enabled)
{
    struct slice value = enabled ? SLICE_LITERAL("\1") : slice_of("", 1);
    builder_add(builder, &(struct auth_row){
                             .table = AUTH_TABLE_STATE, .key = AUTH_ENABLED_KEY, .value = value});
}

static bool user_has_role(const struct pb_user *user, struct slice role)
{
    for (size_t i = 0; i < user->roles_count; i++) {
        if (slice_equal(user->roles[i], role))
            return true;
    }
    return false;
}

enum status auth_store_enable(const struct auth_store *store, struct arena *arena,
                              struct auth_change *ret_change)
{
    struct change_builder builder;
    if (store->enabled) {
        /* Like etcd, this succeeds without a change: neither a record nor a new revision. */
        *ret_change = (struct auth_change){0};
        return ST_OK;
    }
    const struct auth_entry *root = auth_entry_find(store, AUTH_TABLE_USERS, AUTH_ROOT);
    if (!root)
        return ST_ROOT_USER_NOT_EXIST;
    if (!user_has_role(&root->user, AUTH_ROOT))
        return ST_ROOT_ROLE_NOT_EXIST;
    TRY(builder_init(&builder, store, arena, 1));
    builder_add_enabled(&builder, true);
    *ret_change = builder.change;
    return ST_OK;
}

enum status auth_store_disable(const struct auth_store *store, struct arena *arena,
                               struct auth_change *ret_change)
{
    struct change_builder builder;
    if (!store->enabled) {
        *ret_change = (struct auth_change){0};
        return ST_OK;
    }
    TRY(builder_init(&builder, store, arena, 1));
    builder_add_enabled(&builder, false);
    /* Tokens from before must not be valid again when authentication is enabled the next time. */
    builder.change.ends_all_tokens = true;
    return builder_finish(&builder, ret_change);
}

enum status auth_store_user_add(const struct auth_store *store, struct slice name,
                                struct slice hash, bool no_password, struct arena *arena,
                                struct auth_change *ret_change)
{
    struct change_builder builder;
    struct pb_user_add_options options = {.no_password = no_password};
    if (name.len == 0)
        return ST_USER_EMPTY;
    if (auth_entry_find(store, AUTH_TABLE_USERS, name))
        return ST_USER_ALREADY_EXIST;
    if (name.len > AUTH_NAME_BYTES_MAX)
        return ST_LIMIT;
    TRY(builder_init(&builder, store, arena, 1));
    TRY(put_user(&builder, &(struct pb_user){.name = name,
                                             .password = no_password ? SLICE_EMPTY : hash,
                                             .options = &options}));
    return builder_finish(&builder, ret_change);
}

enum status auth_store_user_delete(const struct auth_store *store, struct slice name,
                                   struct arena *arena, struct auth_change *ret_change)
{
    struct change_builder builder;
    /* Without root no user could change users or disable authentication any more. */
    if (store->enabled && slice_equal(name, AUTH_ROOT))
        return ST_INVALID_AUTH_MGMT;
    if (!auth_entry_find(store, AUTH_TABLE_USERS, name))
        return ST_USER_NOT_FOUND;
    TRY(builder_init(&builder, store, arena, 1));
    TRY(delete_entry(&builder, AUTH_TABLE_USERS, name));
    builder.change.ends_tokens_of = builder.change.rows[0].key;
    return builder_finish(&builder, ret_change);
}

enum status auth_store_user_change_password(const struct auth_store *store, struct slice name,
                                            struct slice hash, struct arena *arena,
                                            struct auth_change *ret_change)
{
    struct change_builder builder;
    const struct pb_user *old;
    TRY(auth_store_user_get(store, name, &old));
    struct pb_user user = *old;
    /* A user without a password logs in by certificate only, and a new password does not change
     * that. */
    user.password = auth_user_has_no_password(old) ? SLICE_EMPTY : hash;
    TRY(builder_init(&builder, store, arena, 1));
    TRY(put_user(&builder, &user));
    builder.change.ends_tokens_of = builder.change.rows[0].key;
    return builder_finish(&builder, ret_change);
}

enum status auth_store_user_grant_role(const struct auth_store *store, struct slice user_name,
                                       struct slice role, struct arena *arena,
                                       struct auth_change *ret_change)
{
    struct change_builder builder;
    const struct pb_user *old;
    TRY(auth_store_user_get(store, user_name, &old));
    /* The role root needs no row. */
    if (!slice_equal(role, AUTH_ROOT) && !auth_entry_find(store, AUTH_TABLE_ROLES, role))
        return ST_ROLE_NOT_FOUND;
    if (user_has_role(old, role)) {
        *ret_change = (struct auth_change){0};
        return ST_OK;
    }
    struct pb_user user = *old;
    user.roles = arena_calloc(arena, old->roles_count + 1, sizeof(*user.roles));
    if (!user.roles)
        return ST_NOMEM;
    /* The roles stay sorted. */
    size_t at = 0;
    for (; at < old->roles_count && slice_compare(old->roles[at], role) < 0; at++)
        user.roles[at] = old->roles[at];
    user.roles[at] = role;
    for (size_t i = at; i < old->roles_count; i++)
        user.roles[i + 1] = old->roles[i];
    user.roles_count = old->roles_count + 1;
    TRY(builder_init(&builder, store, arena, 1));
    TRY(put_user(&builder, &user));
    return builder_finish(&builder, ret_change);
}

/* The user without a role that it has. */
static MUST_CHECK
enum status put_user_without(struct change_builder *builder, const struct pb_user *old,
                             struct slice role)
{
    struct pb_user user = *old;
    user.roles = arena_calloc(builder->arena, old->roles_count, sizeof(*user.roles));
    if (!user.roles)
        return ST_NOMEM;
    user.roles_count = 0;
    for (size_t i = 0; i < old->roles_count; i++) {
        if (!slice_equal(old->roles[i], role))
            user.roles[user.roles_count++] = old->roles[i];
    }
    return put_user(builder, &user);
}

enum status auth_store_user_revoke_role(const struct auth_store *store, struct slice user,
                                        struct slice role, struct arena *arena,
                                        struct auth_change *ret_change)
{
    struct change_builder builder;
    const struct pb_user *old;
    if (store->enabled && slice_equal(user, AUTH_ROOT) && slice_equal(role, AUTH_ROOT))
        return ST_INVALID_AUTH_MGMT;
    TRY(auth_store_user_get(store, user, &old));
    if (!user_has_role(old, role))
        return ST_ROLE_NOT_GRANTED;
    TRY(builder_init(&builder, store, arena, 1));
    TRY(put_user_without(&builder, old, role));
    return builder_finish(&builder, ret_change);
}

enum status auth_store_role_add(const struct auth_store *store, struct slice name,
                                struct arena *arena, struct auth_change *ret_change)
{
    struct change_builder builder;
    if (name.len == 0)
        return ST_ROLE_EMPTY;
    if (auth_entry_find(store, AUTH_TABLE_ROLES, name))
        return ST_ROLE_ALREADY_EXIST;
    if (name.len > AUTH_NAME_BYTES_MAX)
        return ST_LIMIT;
    TRY(builder_init(&builder, store, arena, 1));
    TRY(put_role(&builder, &(struct pb_role){.name = name}));
    return builder_finish(&builder, ret_change);
}

/* Users lose the role in the same record, so that a new role of the same name has no users. */
enum status auth_store_role_delete(const struct auth_store *store, struct slice name,
                                   struct arena *arena, struct auth_change *ret_change)
{
    struct change_builder builder;
    if (store->enabled && slice_equal(name, AUTH_ROOT))
        return ST_INVALID_AUTH_MGMT;
    if (!auth_entry_find(store, AUTH_TABLE_ROLES, name))
        return ST_ROLE_NOT_FOUND;
    size_t users = auth_store_user_count(store);
    TRY(builder_init(&builder, store, arena, 1 + users));
    TRY(delete_entry(&builder, AUTH_TABLE_ROLES, name));
    for (size_t i = 0; i < users; i++) {
        const struct pb_user *user = auth_store_user_at(store, i);
        if (user_has_role(user, name))
            TRY(put_user_without(&builder, user, name));
    }
    return builder_finish(&builder, ret_change);
}

static bool permission_is_for(const struct pb_permission *permission, struct slice key,
                              struct slice range_end)
{
    return slice_equal(permission->key, key) && slice_equal(permission->range_end, range_end);
}

/*
 * The index of the permission for this range, or where it belongs. etcd compares only with the
 * first permission of the same key, so a range that is granted again next to another range of that
 * key is stored twice and keeps its old type; here it is replaced.
 */
static size_t permission_place(const struct pb_role *role, struct slice key, struct slice range_end)
{
    size_t at = 0;
    while (at < role->key_permission_count && slice_compare(role->key_permission[at].key, key) < 0)
        at++;
    while (at < role->key_permission_count && slice_equal(role->key_permission[at].key, key) &&
           !slice_equal(role->key_permission[at].range_end, range_end))
        at++;
    return at;
}

static void insert_permission(struct pb_role *role, size_t at,
                              const struct pb_permission *permission)
{
    memmove(role->key_permission + at + 1, role->key_permission + at,
            (role->key_permission_count - at) * sizeof(*permission));
    role->key_permission[at] = *permission;
    role->key_permission_count++;
}

enum status auth_store_role_grant(const struct auth_store *store, struct slice name,
                                  const struct pb_permission *permission, struct arena *arena,
                                  struct auth_change *ret_change)
{
    struct change_builder builder;
    const struct pb_role *old;
    if (!permission)
        return ST_PERMISSION_NOT_GIVEN;
    if (!auth_range_is_valid(permission->key, permission->range_end))
        return ST_INVALID_AUTH_MGMT;
    TRY(auth_store_role_get(store, name, &old));
    struct pb_role role = *old;
    size_t count = old->key_permission_count;
    role.key_permission = arena_calloc(arena, count + 1, sizeof(*permission));
    if (!role.key_permission)
        return ST_NOMEM;
    if (count)
        memcpy(role.key_permission, old->key_permission, count * sizeof(*permission));
    size_t at = permission_place(&role, permission->key, permission->range_end);
    if (at < count &&
        permission_is_for(&role.key_permission[at], permission->key, permission->range_end))
        role.key_permission[at].perm_type = permission->perm_type;
    else
        insert_permission(&role, at, permission);
    TRY(builder_init(&builder, store, arena, 1));
    TRY(put_role(&builder, &role));
    return builder_finish(&builder, ret_change);
}

enum status auth_store_role_revoke(const struct auth_store *store, struct slice name,
                                   struct slice key, struct slice range_end, struct arena *arena,
                                   struct auth_change *ret_change)
{
    struct change_builder builder;
    const struct pb_role *old;
    TRY(auth_store_role_get(store, name, &old));
    struct pb_role role = *old;
    role.key_permission =
        arena_calloc(arena, old->key_permission_count + 1, sizeof(*role.key_permission));
    if (!role.key_permission)
        return ST_NOMEM;
    role.key_permission_count = 0;
    for (size_t i = 0; i < old->key_permission_count; i++) {
        if (!permission_is_for(&old->key_permission[i], key, range_end))
            role.key_permission[role.key_permission_count++] = old->key_permission[i];
    }
    /* No permission had exactly this range: one that merely contains it is not split. */
    if (role.key_permission_count == old->key_permission_count)
        return ST_PERMISSION_NOT_GRANTED;
    TRY(builder_init(&builder, store, arena, 1));
    TRY(put_role(&builder, &role));
    return builder_finish(&builder, ret_change);
}
