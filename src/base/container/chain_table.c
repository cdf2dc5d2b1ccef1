#include "base/container/chain_table.h"

#include "base/xalloc.h"

enum { BUCKETS_MIN = 8, PER_BUCKET_MAX = 2 };

void chain_table_fini(struct chain_table *table)
{
    if (table->bucket_count)
        free(table->buckets);
    *table = (struct chain_table){0};
}

static struct chain_link **chain_of(struct chain_table *table, uint64_t hash)
{
    return table->bucket_count ? &table->buckets[chain_table_place(table, hash)] : &table->few;
}

static void push(struct chain_link **chain, struct chain_link *link)
{
    link->next = *chain;
    *chain = link;
}

/* Changes from a single chain to buckets. */
static void spread(struct chain_table *table, chain_hash_fn hash_of, const void *ctx)
{
    struct chain_link *link = table->few;
    table->buckets = xcalloc(BUCKETS_MIN, sizeof(struct chain_link *));
    table->bucket_count = table->capacity = BUCKETS_MIN;
    while (link) {
        struct chain_link *following = link->next;
        push(chain_of(table, hash_of(ctx, link)), link);
        link = following;
    }
}

/* Changes from buckets to a single chain. */
static void gather(struct chain_table *table)
{
    struct chain_link *few = NULL;
    for (uint32_t i = 0; i < table->bucket_count; i++)
        while (table->buckets[i]) {
            struct chain_link *link = table->buckets[i];
            table->buckets[i] = link->next;
            push(&few, link);
        }
    free(table->buckets);
    table->few = few;
    table->bucket_count = table->capacity = 0;
}

static void set_capacity(struct chain_table *table, uint32_t capacity)
{
    table->buckets = xrealloc(table->buckets, capacity * sizeof(struct chain_link *));
    table->capacity = capacity;
}

/* Adds one bucket, which takes its share of the bucket that held its members. */
static void split_one(struct chain_table *table, chain_hash_fn hash_of, const void *ctx)
{
    uint32_t added = table->bucket_count;
    if (added == table->capacity)
        set_capacity(table, added * 2);
    table->buckets[added] = NULL;
    table->bucket_count++;
    struct chain_link **at = &table->buckets[added - chain_table_top(added)];
    while (*at) {
        struct chain_link *link = *at;
        if (chain_table_place(table, hash_of(ctx, link)) != added) {
            at = &link->next;
            continue;
        }
        *at = link->next;
        push(&table->buckets[added], link);
    }
}

/* Removes the last bucket. */
static void join_one(struct chain_table *table)
{
    uint32_t removed = --table->bucket_count;
    struct chain_link **end = &table->buckets[removed - chain_table_top(removed)];
    while (*end)
        end = &(*end)->next;
    *end = table->buckets[removed];
    if (removed <= table->capacity / 4)
        set_capacity(table, table->capacity / 2);
}

static uint32_t bits_reversed(uint32_t bits)
{
    uint32_t reversed = 0;
    for (int i = 0; i < 32; i++, bits >>= 1)
        reversed = reversed << 1 | (bits & 1);
    return reversed;
}

/* How many low bits the hashes of a bucket have in common. */
static unsigned bits_of(const struct chain_table *table, uint32_t bucket)
{
    uint32_t top = chain_table_top(table->bucket_count);
    unsigned bits = (unsigned)__builtin_ctz(top);
    bool is_split = bucket >= top || bucket < table->bucket_count - top;
    return is_split ? bits + 1 : bits;
}

struct chain_link *chain_table_visit(const struct chain_table *table, uint32_t *at)
{
    if (!table->bucket_count) {
        *at = 0;
        return table->few;
    }
    uint32_t bucket = chain_table_place(table, bits_reversed(*at));
    unsigned below = 32 - bits_of(table, bucket);
    *at = ((*at >> below) + 1) << below; /* 0 behind the last */
    return table->buckets[bucket];
}

void chain_table_add(struct chain_table *table, struct chain_link *link, chain_hash_fn hash_of,
                     const void *ctx)
{
    if (!table->bucket_count && table->count >= CHAIN_FEW)
        spread(table, hash_of, ctx);
    push(chain_of(table, hash_of(ctx, link)), link);
    table->count++;
    if (table->bucket_count && table->count > table->bucket_count * PER_BUCKET_MAX)
        split_one(table, hash_of, ctx);
}

void chain_table_remove(struct chain_table *table, struct chain_link *link, chain_hash_fn hash_of,
                        const void *ctx)
{
    struct chain_link **at = chain_of(table, hash_of(ctx, link));
    while (*at != link) {
        assert(*at);
        at = &(*at)->next;
    }
    *at = link->next;
    table->count--;
    /* Slightly below where it grew, so that alternating adds and removes cost nothing. */
    if (table->bucket_count > BUCKETS_MIN && table->count < table->bucket_count)
        join_one(table);
    else if (table->bucket_count == BUCKETS_MIN && table->count < CHAIN_FEW / 2)
        gather(table);
}
