#include "auth/store.h"

#include "auth/store_private.h"
#include "base/xalloc.h"

#include <stdlib.h>

static const struct pb_message *const message_of[] = {
    [AUTH_TABLE_USERS] = &pb_user_table,
    [AUTH_TABLE_ROLES] = &pb_role_table,
};

/* Memory per byte of a row: a decoded message takes up to 32 (pb.h), and an arena may double it. */
enum { ENTRY_BYTES_MAX = 96 };

struct auth_store *auth_store_new(void)
{
    struct auth_store *store = xcalloc(1, sizeof(*store));
    store->revision = 1;
    return store;
}

static void entry_free(struct auth_entry *entry)
{
    if (!entry)
        return;
    arena_fini(&entry->arena);
    free(entry);
}
DEFINE_CLEANUP(struct auth_entry *, entry_free)

void auth_store_free(struct auth_store *store)
{
    if (!store)
        return;
    for (int table = 0; table < AUTH_ENTRY_TABLES; table++) {
        for (size_t i = 0; i < store->tables[table].count; i++)
            entry_free(store->tables[table].entries[i]);
        free(store->tables[table].entries);
    }
    free(store);
}

/* The first entry whose name is not before this one. */
static size_t entry_place(const struct auth_entries *entries, struct slice name)
{
    size_t low = 0, high = entries->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (slice_compare(entries->entries[middle]->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct auth_entry *auth_entry_find(const struct auth_store *store, enum auth_table table,
                                   struct slice name)
{
    const struct auth_entries *entries = &store->tables[table];
    size_t at = entry_place(entries, name);
    bool found = at < entries->count && slice_equal(entries->entries[at]->name, name);
    return found ? entries->entries[at] : NULL;
}

static bool roles_are_sorted(const struct pb_user *user)
{
    /* etcd keeps the roles of a user sorted, and the search in rights.c relies on it. */
    for (size_t i = 1; i < user->roles_count; i++) {
        if (slice_compare(user->roles[i - 1], user->roles[i]) >= 0)
            return false;
    }
    return true;
}

static MUST_CHECK
enum status entry_new(const struct auth_row *row, struct auth_entry **ret_entry)
{
    AUTO(entry_freep) struct auth_entry *entry = xcalloc(1, sizeof(*entry));
    arena_init(&entry->arena, NULL, 0, (row->key.len + row->value.len) * ENTRY_BYTES_MAX + 4096);
    struct slice value;
    TRY(arena_dup(&entry->arena, row->value, &value));
    if (pb_decode(message_of[row->table], value, &entry->arena, &entry->message) != ST_OK)
        return ST_DAMAGED;
    entry->name = row->table == AUTH_TABLE_USERS ? entry->user.name : entry->role.name;
    /* The row was written by this program or made by an import, so anything unexpected is
     * damage. */
    if (!slice_equal(entry->name, row->key) || row->key.len == 0)
        return ST_DAMAGED;
    if (row->table == AUTH_TABLE_USERS && !roles_are_sorted(&entry->user))
        return ST_DAMAGED;
    entry->bytes = row->key.len + row->value.len;

    *ret_entry = TAKE(entry);
    return ST_OK;
}

static void entry_remove(struct auth_store *store, struct auth_entries *entries, size_t at)
{
    store->bytes -= entries->entries[at]->bytes;
    entry_free(entries->entries[at]);
    entries->count--;
    memmove(entries->entries + at, entries->entries + at + 1,
            (entries->count - at) * sizeof(*entries->entries));
}

static void entry_insert(struct auth_store *store, struct auth_entries *entries, size_t at,
                         struct auth_entry *entry)
{
    if (entries->count == entries->capacity) {
        entries->capacity = size_max(16, entries->capacity * 2);
        entries->entries =
            xrealloc(entries->entries, entries->capacity * sizeof(*entries->entries));
    }
    memmove(entries->entries + at + 1, entries->entries + at,
            (entries->count - at) * sizeof(*entries->entries));
    entries->entries[at] = entry;
    entries->count++;
    store->bytes += entry->bytes;
}

static MUST_CHECK
enum status apply_entry(struct auth_store *store, const struct auth_row *row)
{
    struct auth_entries *entries = &store->tables[row->table];
    struct auth_entry *entry = NULL;
    if (!row->deleted)
        TRY(entry_new(row, &entry));
    size_t at = entry_place(entries, row->key);
    /* The row replaces the one that is known, or deletes it. */
    if (at < entries->count && slice_equal(entries->entries[at]->name, row->key))
        entry_remove(store, entries, at);
    if (entry)
        entry_insert(store, entries, at, entry);
    return ST_OK;
}

static MUST_CHECK
enum status apply_state(struct auth_store *store, const struct auth_row *row)
{
    if (row->deleted)
        return ST_DAMAGED;
    if (slice_equal(row->key, AUTH_ENABLED_KEY)) {
        if (row->value.len != 1 || row->value.ptr[0] > 1)
            return ST_DAMAGED;
        store->enabled = row->value.ptr[0];
        return ST_OK;
    }
    /* The only other row is the revision, in etcd's form: eight bytes, the highest first. */
    if (!slice_equal(row->key, AUTH_REVISION_KEY) || row->value.len != sizeof(uint64_t))
        return ST_DAMAGED;
    uint64_t revision = 0;
    for (size_t i = 0; i < sizeof(revision); i++)
        revision = revision << 8 | row->value.ptr[i];
    if (revision == 0)
        return ST_DAMAGED;
    store->revision = revision;
    return ST_OK;
}

enum status auth_store_apply(struct auth_store *store, const struct auth_row *row)
{
    assert(row->table < AUTH_TABLES);
    return row->table == AUTH_TABLE_STATE ? apply_state(store, row) : apply_entry(store, row);
}

bool auth_store_enabled(const struct auth_store *store)
{
    return store->enabled;
}

uint64_t auth_store_revision(const struct auth_store *store)
{
    return store->revision;
}

size_t auth_store_user_count(const struct auth_store *store)
{
    return store->tables[AUTH_TABLE_USERS].count;
}

size_t auth_store_role_count(const struct auth_store *store)
{
    return store->tables[AUTH_TABLE_ROLES].count;
}

const struct pb_user *auth_store_user_at(const struct auth_store *store, size_t index)
{
    assert(index < auth_store_user_count(store));
    return &store->tables[AUTH_TABLE_USERS].entries[index]->user;
}

const struct pb_role *auth_store_role_at(const struct auth_store *store, size_t index)
{
    assert(index < auth_store_role_count(store));
    return &store->tables[AUTH_TABLE_ROLES].entries[index]->role;
}

enum status auth_store_user_get(const struct auth_store *store, struct slice name,
                                const struct pb_user **ret_user)
{
    const struct auth_entry *entry = auth_entry_find(store, AUTH_TABLE_USERS, name);
    if (!entry)
        return ST_USER_NOT_FOUND;
    *ret_user = &entry->user;
    return ST_OK;
}

enum status auth_store_role_get(const struct auth_store *store, struct slice name,
                                const struct pb_role **ret_role)
{
    const struct auth_entry *entry = auth_entry_find(store, AUTH_TABLE_ROLES, name);
    if (!entry)
        return ST_ROLE_NOT_FOUND;
    *ret_role = &entry->role;
    return ST_OK;
}

void auth_role_shown(const struct pb_role *role, const struct pb_permission **ret_permissions,
                     size_t *ret_count)
{
    static const struct pb_permission everything = {
        .perm_type = PB_PERMISSION_TYPE_READWRITE,
        .range_end = {(const uint8_t *)"", 1},
    };
    /* As in etcd, the role root is shown with everything that it allows, whatever its row says. */
    bool root = slice_equal(role->name, AUTH_ROOT);
    *ret_permissions = root ? &everything : role->key_permission;
    *ret_count = root ? 1 : role->key_permission_count;
}

enum status auth_store_password(const struct auth_store *store, struct slice user,
                                struct slice *ret_hash, uint64_t *ret_revision)
{
    if (!store->enabled)
        return ST_AUTH_NOT_ENABLED;
    const struct auth_entry *entry = auth_entry_find(store, AUTH_TABLE_USERS, user);
    /* A user that does not exist and a wrong password get the same answer. */
    if (!entry || auth_user_has_no_password(&entry->user))
        return ST_AUTH_FAILED;
    *ret_hash = entry->user.password;
    *ret_revision = store->revision;
    return ST_OK;
}

void auth_store_check(const struct auth_store *store)
{
    size_t bytes = 0;
    assert(store->revision > 0);
    for (int table = 0; table < AUTH_ENTRY_TABLES; table++) {
        const struct auth_entries *entries = &store->tables[table];
        assert(entries->count <= entries->capacity);
        for (size_t i = 0; i < entries->count; i++) {
            bytes += entries->entries[i]->bytes;
            assert(i == 0 ||
                   slice_compare(entries->entries[i - 1]->name, entries->entries[i]->name) < 0);
        }
    }
    assert(bytes == store->bytes);
}
