/*
 * A hash table whose links are embedded in what it holds: eight bytes each, and one or two halves
 * of a pointer for the buckets. For the millions of keys and watch ids of idle watchers, where the
 * 16 bytes a slot of hash_map, half of them free, would count.
 *
 * Up to eight members need no memory at all: they hang in one chain. A zeroed struct is empty.
 * One owner, one thread. Aborts without memory.
 */
#ifndef VIGIL_WATCH_CHAIN_TABLE_H
#define VIGIL_WATCH_CHAIN_TABLE_H

#include "base/slice.h"

struct chain_link {
    struct chain_link *next;
};

struct chain_table {
    union {
        struct chain_link *few;      /* mask is 0 */
        struct chain_link **buckets; /* mask + 1 of them */
    };
    uint32_t count;
    uint32_t mask;
};

/* How to hash a member again when the table grows. */
typedef uint64_t (*chain_hash_fn)(const void *ctx, const struct chain_link *link);

enum { CHAIN_FEW = 8 };

void chain_table_fini(struct chain_table *table);

void chain_table_add(struct chain_table *table, struct chain_link *link, chain_hash_fn hash_of,
                     const void *ctx);
/* The link is in the table. */
void chain_table_remove(struct chain_table *table, struct chain_link *link, chain_hash_fn hash_of,
                        const void *ctx);

static inline uint32_t chain_table_buckets(const struct chain_table *table)
{
    return table->mask + 1;
}

/* The first of bucket `at`, for going through all. */
static inline struct chain_link *chain_table_bucket(const struct chain_table *table, uint32_t at)
{
    return table->mask ? table->buckets[at] : table->few;
}

/* The chain where a member of that hash is, if it is in. */
static inline struct chain_link *chain_table_chain(const struct chain_table *table, uint64_t hash)
{
    return table->mask ? table->buckets[hash & table->mask] : table->few;
}

/* All members; none may be added or removed meanwhile. */
#define CHAIN_FOREACH(link, table)                                                    \
    for (uint32_t chain_at_ = 0; chain_at_ < chain_table_buckets(table); chain_at_++) \
        for (struct chain_link *link = chain_table_bucket(table, chain_at_); link;    \
             link = link->next)

#endif
