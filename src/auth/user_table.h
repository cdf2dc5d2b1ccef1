/*
 * Users by name, so that one table can be made out of another without copying what is the same in
 * both: a copy shares all buckets, and a change replaces one of them.
 *
 *   table ──► buckets ──► users ──► grants        all but the table itself shared and immutable
 *
 * Looked at by any thread; made and changed by one, before others see it. Aborts without memory.
 */
#ifndef VIGIL_AUTH_USER_TABLE_H
#define VIGIL_AUTH_USER_TABLE_H

#include "auth/grants.h"
#include "base/container/hash_map.h"

#include <stdatomic.h>

struct auth_user {
    _Atomic uint32_t refs;
    struct auth_grants *grants; /* one reference */
    bool root;                  /* has the role root */
    struct slice name;
    struct slice *roles; /* sorted */
    size_t role_count;
    size_t bytes; /* of memory, grants not */
};

/* With one reference; takes that of the grants. */
struct auth_user *auth_user_new(const struct pb_user *from, struct auth_grants *grants);
void auth_user_unref(struct auth_user *user);

struct user_bucket;

struct user_table {
    struct user_bucket **buckets; /* owned array, one reference each; NULL: nobody is in it */
    size_t bucket_count;          /* a power of two, or 0 */
    size_t count;                 /* of users */
    struct hash_map secret;       /* empty: it hashes, so that nobody can choose collisions */
};

void user_table_init(struct user_table *table, uint64_t seed);
void user_table_copy(struct user_table *table, const struct user_table *from);
void user_table_fini(struct user_table *table);

/* NULL when there is none. */
const struct auth_user *user_table_find(const struct user_table *table, struct slice name);
/* Takes the reference; one of the same name goes. */
void user_table_put(struct user_table *table, struct auth_user *user);
void user_table_remove(struct user_table *table, struct slice name); /* if there is one */

/* All of them in no order: the one at or after *at, which moves behind it; NULL at the end. */
const struct auth_user *user_table_each(const struct user_table *table, size_t *at);

#endif
