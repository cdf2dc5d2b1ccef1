/* Shared by the two halves of the store: auth/store.c holds the data, auth/change.c decides about
 * changes. */
#ifndef VIGIL_AUTH_STORE_PRIVATE_H
#define VIGIL_AUTH_STORE_PRIVATE_H

#include "auth/store.h"

#define AUTH_ROOT SLICE_LITERAL("root") /* the user, and the role */
#define AUTH_ENABLED_KEY SLICE_LITERAL("authEnabled")
#define AUTH_REVISION_KEY SLICE_LITERAL("authRevision")

/* A user or a role. Its data, including a copy of the row, is in its arena. */
struct auth_entry {
    struct arena arena;
    struct slice name;
    size_t bytes; /* size of the row */
    union {
        struct pb_user user;
        struct pb_role role;
        char message[1];
    };
};

struct auth_entries {
    struct auth_entry **entries; /* sorted by name; owned */
    size_t count, capacity;
};

enum { AUTH_ENTRY_TABLES = AUTH_TABLE_STATE };

struct auth_store {
    struct auth_entries tables[AUTH_ENTRY_TABLES];
    size_t bytes; /* size of all rows of users and roles */
    bool enabled;
    uint64_t revision; /* never 0 */
};

/* NULL if it does not exist. */
struct auth_entry *auth_entry_find(const struct auth_store *store, enum auth_table table,
                                   struct slice name);

static inline bool auth_user_has_no_password(const struct pb_user *user)
{
    return user->options && user->options->no_password;
}

#endif
