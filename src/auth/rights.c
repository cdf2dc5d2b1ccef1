#include "auth/rights.h"

#include "auth/store_parts.h"
#include "base/hash_map.h"
#include "base/random.h"
#include "base/xalloc.h"

#include <stdatomic.h>
#include <stdlib.h>

/* [from, to), or everything from `from` on. */
struct range {
    struct slice from;
    struct slice to;
    bool endless;
};

struct ranges {
    struct range *items; /* sorted; between two lies at least one key */
    size_t count;
};

struct user {
    struct slice name;
    bool root; /* has the role root */
    struct ranges ranges[AUTH_ACCESSES];
    struct slice *roles; /* sorted */
    size_t role_count;
};

struct auth_rights {
    _Atomic uint32_t refs;
    bool enabled;
    uint64_t revision;
    struct hash_map users; /* of struct user */
    struct arena arena;    /* everything else */
};

static struct slice user_key(const void *value)
{
    return ((const struct user *)value)->name;
}

static bool is_open_ended(struct slice range_end)
{
    return range_end.len == 1 && range_end.ptr[0] == 0;
}

bool auth_range_is_valid(struct slice key, struct slice range_end)
{
    if (key.len == 0)
        return false;
    return range_end.len == 0 || is_open_ended(range_end) || slice_compare(key, range_end) < 0;
}

/* -- Making -- */

static void *take(struct auth_rights *rights, size_t count, size_t bytes_each)
{
    return xalloc_check(arena_calloc(&rights->arena, size_max(count, 1), bytes_each),
                        count * bytes_each);
}

static struct slice copy(struct auth_rights *rights, struct slice bytes)
{
    uint8_t *memory = take(rights, bytes.len, 1);
    slice_copy(memory, bytes);
    return slice_of(memory, bytes.len);
}

/* The key and a NUL behind it: the first key after it. */
static struct slice copy_successor(struct auth_rights *rights, struct slice key)
{
    uint8_t *memory = take(rights, key.len + 1, 1);
    slice_copy(memory, key);
    return slice_of(memory, key.len + 1);
}

static struct range range_of(struct auth_rights *rights, const struct pb_permission *permission)
{
    struct range range = {.from = copy(rights, permission->key),
                          .endless = is_open_ended(permission->range_end)};
    if (permission->range_end.len == 0)
        range.to = copy_successor(rights, permission->key);
    else if (!range.endless)
        range.to = copy(rights, permission->range_end);
    return range;
}

static bool gives(int32_t type, enum auth_access access)
{
    if (type == PB_PERMISSION_TYPE_READWRITE)
        return true;
    return type == (access == AUTH_READ ? PB_PERMISSION_TYPE_READ : PB_PERMISSION_TYPE_WRITE);
}

static int compare_ranges(const void *a, const void *b)
{
    return slice_compare(((const struct range *)a)->from, ((const struct range *)b)->from);
}

static bool reaches_further(const struct range *a, const struct range *b)
{
    if (a->endless || b->endless)
        return a->endless && !b->endless;
    return slice_compare(a->to, b->to) > 0;
}

/* Sorts, and joins what overlaps or touches. */
static void ranges_join(struct ranges *ranges)
{
    size_t kept = 0;
    if (ranges->count == 0)
        return;
    qsort(ranges->items, ranges->count, sizeof(*ranges->items), compare_ranges);
    for (size_t i = 1; i < ranges->count; i++) {
        struct range *last = &ranges->items[kept];
        struct range *next = &ranges->items[i];
        if (last->endless || slice_compare(next->from, last->to) <= 0) {
            if (reaches_further(next, last)) {
                last->to = next->to;
                last->endless = next->endless;
            }
        } else {
            ranges->items[++kept] = *next;
        }
    }
    ranges->count = kept + 1;
}

/* The roles of a user that have a row, and how many permissions they have in all. */
static size_t permissions_of(const struct auth_store *store, const struct pb_user *from,
                             const struct pb_role **ret_roles, size_t *ret_role_count)
{
    size_t permissions = 0;
    *ret_role_count = 0;
    for (size_t i = 0; i < from->roles_count; i++) {
        const struct auth_entry *entry = auth_entry_find(store, AUTH_TABLE_ROLES, from->roles[i]);
        if (!entry)
            continue;
        ret_roles[(*ret_role_count)++] = &entry->role;
        permissions += entry->role.key_permission_count;
    }
    return permissions;
}

static void user_add_ranges(struct auth_rights *rights, struct user *user,
                            const struct pb_role *const *roles, size_t role_count,
                            size_t permissions)
{
    for (int access = 0; access < AUTH_ACCESSES; access++)
        user->ranges[access].items = take(rights, permissions, sizeof(struct range));
    for (size_t i = 0; i < role_count; i++) {
        for (size_t k = 0; k < roles[i]->key_permission_count; k++) {
            const struct pb_permission *permission = &roles[i]->key_permission[k];
            if (!auth_range_is_valid(permission->key, permission->range_end))
                continue; /* gives nothing: what an import brought along */
            struct range range = range_of(rights, permission);
            for (int access = 0; access < AUTH_ACCESSES; access++) {
                struct ranges *ranges = &user->ranges[access];
                if (gives(permission->perm_type, (enum auth_access)access))
                    ranges->items[ranges->count++] = range;
            }
        }
    }
    for (int access = 0; access < AUTH_ACCESSES; access++)
        ranges_join(&user->ranges[access]);
}

static void add_user(struct auth_rights *rights, const struct auth_store *store,
                     const struct pb_user *from)
{
    struct user *user = take(rights, 1, sizeof(*user));
    user->name = copy(rights, from->name);
    user->role_count = from->roles_count;
    user->roles = take(rights, from->roles_count, sizeof(*user->roles));
    for (size_t i = 0; i < from->roles_count; i++) {
        user->roles[i] = copy(rights, from->roles[i]);
        user->root |= slice_equal(from->roles[i], AUTH_ROOT);
    }
    const struct pb_role **roles = take(rights, from->roles_count, sizeof(struct pb_role *));
    size_t role_count;
    size_t permissions = permissions_of(store, from, roles, &role_count);
    user_add_ranges(rights, user, roles, role_count, permissions);

    void *replaced = NULL;
    enum status status = hash_map_put(&rights->users, user, &replaced);
    xalloc_check(status == ST_OK ? user : NULL, sizeof(*user));
    assert(!replaced);
}

struct auth_rights *auth_rights_new(const struct auth_store *store)
{
    struct auth_rights *rights = xcalloc(1, sizeof(*rights));
    rights->refs = 1;
    rights->enabled = store->enabled;
    rights->revision = store->revision;
    arena_init(&rights->arena, NULL, 0, SIZE_MAX);
    hash_map_init(&rights->users, user_key, random_seed_system());
    for (size_t i = 0; i < auth_store_user_count(store); i++)
        add_user(rights, store, auth_store_user_at(store, i));
    return rights;
}

struct auth_rights *auth_rights_ref(struct auth_rights *rights)
{
    atomic_fetch_add_explicit(&rights->refs, 1, memory_order_relaxed);
    return rights;
}

void auth_rights_unref(struct auth_rights *rights)
{
    if (!rights || atomic_fetch_sub_explicit(&rights->refs, 1, memory_order_acq_rel) != 1)
        return;
    hash_map_fini(&rights->users);
    arena_fini(&rights->arena);
    free(rights);
}

/* -- Checking -- */

bool auth_rights_enabled(const struct auth_rights *rights)
{
    return rights->enabled;
}

uint64_t auth_rights_revision(const struct auth_rights *rights)
{
    return rights->revision;
}

/* The last that begins at or before the key; NULL when the key lies before all. */
static const struct range *ranges_find(const struct ranges *ranges, struct slice key)
{
    size_t low = 0, high = ranges->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (slice_compare(ranges->items[middle].from, key) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &ranges->items[low - 1] : NULL;
}

/* A range without any key in it, [b, a), has to lie within one too, from its end to its key. */
static bool ranges_hold(const struct ranges *ranges, struct slice key, struct slice range_end)
{
    const struct range *range = ranges_find(ranges, key);
    if (!range || (!range->endless && slice_compare(key, range->to) >= 0))
        return false;
    if (range_end.len == 0)
        return true;
    if (is_open_ended(range_end))
        return range->endless;
    return slice_compare(range->from, range_end) < 0 &&
           (range->endless || slice_compare(range_end, range->to) <= 0);
}

bool auth_rights_unchecked(const struct auth_rights *rights, const struct auth_principal *principal)
{
    return !rights->enabled || principal->is_server;
}

enum status auth_rights_check(const struct auth_rights *rights,
                              const struct auth_principal *principal, enum auth_access access,
                              struct slice key, struct slice range_end)
{
    if (auth_rights_unchecked(rights, principal))
        return ST_OK;
    if (principal->revision == 0)
        return ST_USER_EMPTY;
    if (principal->revision < rights->revision)
        return ST_AUTH_OLD_REVISION;
    const struct user *user = hash_map_get(&rights->users, principal->user);
    if (!user)
        return ST_PERMISSION_DENIED;
    if (user->root)
        return ST_OK;
    /* No key is empty. */
    if (key.len == 0 || !ranges_hold(&user->ranges[access], key, range_end))
        return ST_PERMISSION_DENIED;
    return ST_OK;
}

enum status auth_rights_check_admin(const struct auth_rights *rights,
                                    const struct auth_principal *principal)
{
    if (auth_rights_unchecked(rights, principal))
        return ST_OK;
    if (principal->revision == 0 || principal->user.len == 0)
        return ST_USER_EMPTY;
    const struct user *user = hash_map_get(&rights->users, principal->user);
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
    return hash_map_get(&rights->users, principal->user) ? ST_OK : ST_PERMISSION_DENIED;
}

enum status auth_rights_check_user_get(const struct auth_rights *rights,
                                       const struct auth_principal *principal, struct slice user)
{
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
    const struct user *user = hash_map_get(&rights->users, principal->user);
    for (size_t i = 0; user && i < user->role_count; i++) {
        if (slice_equal(user->roles[i], role))
            return ST_OK;
    }
    return status;
}

size_t auth_rights_bytes(const struct auth_rights *rights)
{
    return sizeof(*rights) + rights->arena.held_bytes +
           rights->users.capacity * sizeof(*rights->users.slots);
}

void auth_rights_check_order(const struct auth_rights *rights)
{
    const struct user *user;
    MAP_FOREACH (user, &rights->users) {
        for (int access = 0; access < AUTH_ACCESSES; access++) {
            const struct ranges *ranges = &user->ranges[access];
            for (size_t i = 0; i < ranges->count; i++) {
                const struct range *range = &ranges->items[i];
                assert(range->endless || slice_compare(range->from, range->to) < 0);
                assert(i == 0 ||
                       (!range[-1].endless && slice_compare(range[-1].to, range->from) < 0));
            }
        }
    }
}
