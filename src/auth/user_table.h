/*
 * Users by name. A table can be copied without copying its users: a copy shares all buckets, and a
 * change replaces one of them.
 *
 *   table ──► buckets ──► users ──► ranges        all but the table itself shared and immutable
 *
 * Read by any thread; created and changed by one thread before others see it. Aborts without
 * memory.
 */
#ifndef VIGIL_AUTH_USER_TABLE_H
#define VIGIL_AUTH_USER_TABLE_H

#include "auth/role_ranges.h"
#include "base/container/hash_map.h"

#include <stdatomic.h>

struct auth_user {
    _Atomic uint32_t refs;
    struct role_ranges *role_ranges; /* one reference */
    bool root;                       /* has the role root */
    struct slice name;
    struct slice *roles; /* sorted */
    size_t role_count;
    size_t bytes; /* memory in use, without ranges */
};

/* With one reference; takes that of the ranges. */
struct auth_user *auth_user_new(const struct pb_user *from, struct role_ranges *role_ranges);
void auth_user_unref(struct auth_user *user);

struct user_bucket;

struct user_table {
    struct user_bucket **buckets; /* owned array, one reference each; NULL: empty */
    size_t bucket_count;          /* a power of two, or 0 */
    size_t count;                 /* number of users */
    struct hash_map secret; /* empty; only its hash function is used, so that clients cannot choose
                           collisions */
};

void user_table_init(struct user_table *table, uint64_t seed);
void user_table_copy(struct user_table *table, const struct user_table *from);
void user_table_fini(struct user_table *table);

/* NULL if it does not exist. */
const struct auth_user *user_table_find(const struct user_table *table, struct slice name);
/* Takes the reference; replaces a user of the same name. */
void user_table_put(struct user_table *table, struct auth_user *user);
void user_table_remove(struct user_table *table, struct slice name); /* if there is one */

/* Iterates over all users, unordered: returns the one at or after *at and advances *at; NULL at the
 * end. */
const struct auth_user *user_table_each(const struct user_table *table, size_t *at);

#endif
