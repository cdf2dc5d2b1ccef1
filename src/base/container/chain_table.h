/*
 * A hash table whose links are embedded in its members: eight bytes each, and half a pointer for
 * the buckets. For objects that exist in millions (idle watchers, leases), where the 16 bytes per
 * slot of hash_map, half of them unused, would matter.
 *
 * It grows and shrinks by one bucket at a time (linear hashing), so that no call takes long however
 * many members it has. Up to eight members need no memory at all: they form one chain. A zeroed
 * struct is empty. One owner, one thread. Aborts without memory.
 */
#ifndef VIGIL_BASE_CONTAINER_CHAIN_TABLE_H
#define VIGIL_BASE_CONTAINER_CHAIN_TABLE_H

#include "base/slice.h"

struct chain_link {
    struct chain_link *next;
};

struct chain_table {
    union {
        struct chain_link *few;      /* while bucket_count is 0 */
        struct chain_link **buckets; /* room for `capacity`, a power of two */
    };
    uint32_t count;
    uint32_t bucket_count, capacity;
};

/* Hashes a member again when its bucket is split. */
typedef uint64_t (*chain_hash_fn)(const void *ctx, const struct chain_link *link);

enum { CHAIN_FEW = 8 };

void chain_table_fini(struct chain_table *table);

void chain_table_add(struct chain_table *table, struct chain_link *link, chain_hash_fn hash_of,
                     const void *ctx);
/* The link must be in the table. */
void chain_table_remove(struct chain_table *table, struct chain_link *link, chain_hash_fn hash_of,
                        const void *ctx);

static inline uint32_t chain_table_buckets(const struct chain_table *table)
{
    return table->bucket_count ? table->bucket_count : 1;
}

/* The first member of bucket `at`, for iterating over all. */
static inline struct chain_link *chain_table_bucket(const struct chain_table *table, uint32_t at)
{
    return table->bucket_count ? table->buckets[at] : table->few;
}

/* The largest power of two that is not above n. */
static inline uint32_t chain_table_top(uint32_t n)
{
    return 1u << (31 - (unsigned)__builtin_clz(n));
}

/* The bucket of a hash: its low bits, or, while that bucket does not exist, one bit less. */
static inline uint32_t chain_table_place(const struct chain_table *table, uint64_t hash)
{
    uint32_t top = chain_table_top(table->bucket_count);
    uint32_t at = (uint32_t)hash & (2 * top - 1);
    return at < table->bucket_count ? at : at - top;
}

/* The chain in which a member with this hash is, if it is in the table. */
static inline struct chain_link *chain_table_chain(const struct chain_table *table, uint64_t hash)
{
    return table->bucket_count ? table->buckets[chain_table_place(table, hash)] : table->few;
}

/* Removes any member of a table that is being emptied, NULL at the end; *at is 0 at first and
 * advances over the buckets. Meanwhile the table may only be iterated. */
static inline struct chain_link *chain_table_drain(struct chain_table *table, uint32_t *at)
{
    for (; table->count && *at < chain_table_buckets(table); ++*at) {
        struct chain_link **first = table->bucket_count ? &table->buckets[*at] : &table->few;
        struct chain_link *link = *first;
        if (!link)
            continue;
        *first = link->next;
        table->count--;
        return link;
    }
    return NULL;
}

/*
 * Visits all members over several calls, between which others may be added and removed. Returns the
 * first member of the next bucket, NULL if that is empty. *at is 0 at first, and 0 again when all
 * buckets were visited. A member that is in the table all the time is visited at least once.
 *
 * Buckets are visited in the order of their lowest bits, read from right to left: in this order the
 * members of a bucket stay together, and in their place, however many buckets there are.
 */
struct chain_link *chain_table_visit(const struct chain_table *table, uint32_t *at);

/* Iterates over all members; none may be added or removed meanwhile. */
#define CHAIN_FOREACH(link, table)                                                    \
    for (uint32_t chain_at_ = 0; chain_at_ < chain_table_buckets(table); chain_at_++) \
        for (struct chain_link *link = chain_table_bucket(table, chain_at_); link;    \
             link = link->next)

#endif
