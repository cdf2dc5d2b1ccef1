#include "auth/rights.h"

#include "auth/store_private.h"
#include "auth/user_table.h"
#include "base/random.h"
#include "base/xalloc.h"

#include <stdatomic.h>
#include <stdlib.h>

struct whole_rights {
    struct auth_rights rights; /* first */
    _Atomic uint32_t refs;
    struct user_table users;
};

static struct whole_rights *whole(const struct auth_rights *rights)
{
    return CONTAINER_OF(rights, struct whole_rights, rights);
}

static struct user_table *users_of(const struct auth_rights *rights)
{
    return &whole(rights)->users;
}

/* -- Building -- */

/* Builds users; consecutive users with the same roles share their ranges. */
struct rights_builder {
    const struct auth_store *store;
    const struct pb_user *last;      /* the user of `role_ranges`; NULL: none yet */
    struct role_ranges *role_ranges; /* one reference */
};

static bool same_roles(const struct pb_user *a, const struct pb_user *b)
{
    if (a->roles_count != b->roles_count)
        return false;
    for (size_t i = 0; i < a->roles_count; i++) {
        if (!slice_equal(a->roles[i], b->roles[i]))
            return false;
    }
    return true;
}

/* From those of its roles that exist. */
static struct role_ranges *role_ranges_of(const struct auth_store *store,
                                          const struct pb_user *from)
{
    const struct pb_role **roles = xcalloc(size_max(from->roles_count, 1), sizeof(*roles));
    size_t count = 0;
    for (size_t i = 0; i < from->roles_count; i++) {
        const struct auth_entry *entry = auth_entry_find(store, AUTH_TABLE_ROLES, from->roles[i]);
        if (entry)
            roles[count++] = &entry->role;
    }
    struct role_ranges *role_ranges = role_ranges_new(roles, count);
    free(roles);
    return role_ranges;
}

static void put_user(struct auth_rights *rights, struct rights_builder *builder,
                     const struct pb_user *from)
{
    /* Many users with few roles are usual, and computing the ranges is the expensive part. */
    if (!builder->last || !same_roles(builder->last, from)) {
        role_ranges_unref(builder->role_ranges);
        builder->role_ranges = role_ranges_of(builder->store, from);
    }
    builder->last = from;
    user_table_put(users_of(rights), auth_user_new(from, role_ranges_ref(builder->role_ranges)));
}

static struct auth_rights *rights_new(const struct auth_store *store)
{
    struct whole_rights *made = xcalloc(1, sizeof(*made));
    made->refs = 1;
    made->rights = (struct auth_rights){.enabled = store->enabled, .revision = store->revision};
    return &made->rights;
}

struct auth_rights *auth_rights_new(const struct auth_store *store)
{
    struct auth_rights *rights = rights_new(store);
    struct rights_builder builder = {.store = store};
    user_table_init(users_of(rights), random_seed_system());
    for (size_t i = 0; i < auth_store_user_count(store); i++)
        put_user(rights, &builder, auth_store_user_at(store, i));
    role_ranges_unref(builder.role_ranges);
    return rights;
}

static bool has_role(const struct pb_user *user, struct slice role)
{
    size_t low = 0, high = user->roles_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = slice_compare(user->roles[middle], role);
        if (order == 0)
            return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

static void take_row(struct auth_rights *rights, struct rights_builder *builder,
                     const struct auth_row *row)
{
    const struct auth_store *store = builder->store;
    if (row->table == AUTH_TABLE_USERS) {
        const struct auth_entry *entry = auth_entry_find(store, AUTH_TABLE_USERS, row->key);
        if (entry)
            put_user(rights, builder, &entry->user);
        else
            user_table_remove(users_of(rights), row->key);
    } else if (row->table == AUTH_TABLE_ROLES) {
        /* The ranges of a role are part of those of every user that has it. */
        for (size_t i = 0; i < auth_store_user_count(store); i++) {
            const struct pb_user *user = auth_store_user_at(store, i);
            if (has_role(user, row->key))
                put_user(rights, builder, user);
        }
    }
}

struct auth_rights *auth_rights_after(const struct auth_rights *before,
                                      const struct auth_store *store, const struct auth_row *rows,
                                      size_t row_count)
{
    struct auth_rights *rights = rights_new(store);
    struct rights_builder builder = {.store = store};
    /* Readers still use the old rights, so the new ones share all users that have not changed. */
    user_table_copy(users_of(rights), users_of(before));
    for (size_t i = 0; i < row_count; i++)
        take_row(rights, &builder, &rows[i]);
    role_ranges_unref(builder.role_ranges);
    return rights;
}

struct auth_rights *auth_rights_ref(struct auth_rights *rights)
{
    atomic_fetch_add_explicit(&whole(rights)->refs, 1, memory_order_relaxed);
    return rights;
}

void auth_rights_unref(struct auth_rights *rights)
{
    if (!rights || atomic_fetch_sub_explicit(&whole(rights)->refs, 1, memory_order_acq_rel) != 1)
        return;
    user_table_fini(users_of(rights));
    free(whole(rights));
}

/* -- Checking -- */

enum status auth_rights_check(const struct auth_rights *rights,
                              const struct auth_principal *principal, enum auth_access access,
                              struct slice key, struct slice range_end)
{
    if (auth_rights_unchecked(rights, principal))
        return ST_OK;
    /* No credentials were given. */
    if (principal->revision == 0)
        return ST_USER_EMPTY;
    /* Users or roles have changed since the token was given. The client logs in again and
     * retries. */
    if (principal->revision < rights->revision)
        return ST_AUTH_OLD_REVISION;
    const struct auth_user *user = user_table_find(users_of(rights), principal->user);
    if (!user)
        return ST_PERMISSION_DENIED;
    if (user->root)
        return ST_OK;
    /* Keys are never empty. */
    if (key.len == 0 || !role_ranges_hold(user->role_ranges, access, key, range_end))
        return ST_PERMISSION_DENIED;
    return ST_OK;
}

uint64_t auth_rights_number(const struct auth_rights *rights,
                            const struct auth_principal *principal, enum auth_access access)
{
    const struct auth_user *user = user_table_find(users_of(rights), principal->user);
    return user ? AUTH_ACCESSES * role_ranges_number(user->role_ranges) + (uint64_t)access : 0;
}

enum status auth_rights_check_admin(const struct auth_rights *rights,
                                    const struct auth_principal *principal)
{
    if (auth_rights_unchecked(rights, principal))
        return ST_OK;
    if (principal->revision == 0 || principal->user.len == 0)
        return ST_USER_EMPTY;
    const struct auth_user *user = user_table_find(users_of(rights), principal->user);
    if (!user)
        return ST_USER_NOT_FOUND;
    return user->root ? ST_OK : ST_PERMISSION_DENIED;
}

enum status auth_rights_check_user(const struct auth_rights *rights,
                                   const struct auth_principal *principal)
{
    if (auth_rights_unchecked(rights, principal))
        return ST_OK;
    if (principal->revision == 0 || principal->user.len == 0)
        return ST_USER_EMPTY;
    return user_table_find(users_of(rights), principal->user) ? ST_OK : ST_PERMISSION_DENIED;
}

enum status auth_rights_check_user_get(const struct auth_rights *rights,
                                       const struct auth_principal *principal, struct slice user)
{
    /* As in etcd, every user may see itself. */
    enum status status = auth_rights_check_admin(rights, principal);
    bool oneself = principal->revision != 0 && slice_equal(principal->user, user);
    return status != ST_OK && oneself && user.len ? ST_OK : status;
}

enum status auth_rights_check_role_get(const struct auth_rights *rights,
                                       const struct auth_principal *principal, struct slice role)
{
    enum status status = auth_rights_check_admin(rights, principal);
    if (status == ST_OK || status == ST_USER_EMPTY)
        return status;
    const struct auth_user *user = user_table_find(users_of(rights), principal->user);
    for (size_t i = 0; user && i < user->role_count; i++) {
        if (slice_equal(user->roles[i], role))
            return ST_OK;
    }
    return status;
}

/* Shared parts are counted for each user that shares them. */
size_t auth_rights_bytes(const struct auth_rights *rights)
{
    size_t bytes = sizeof(struct whole_rights) + users_of(rights)->bucket_count * sizeof(void *),
           at = 0;
    for (const struct auth_user *user; (user = user_table_each(users_of(rights), &at));)
        bytes += user->bytes + role_ranges_bytes(user->role_ranges) + 2 * sizeof(void *);
    return bytes;
}

void auth_rights_check_order(const struct auth_rights *rights)
{
    size_t count = 0, at = 0;
    for (const struct auth_user *user; (user = user_table_each(users_of(rights), &at)); count++) {
        assert(user_table_find(users_of(rights), user->name) == user);
        role_ranges_check(user->role_ranges);
    }
    assert(count == users_of(rights)->count);
}
