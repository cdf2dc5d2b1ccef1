#include "watch/chain_table.h"

#include "base/xalloc.h"

enum { BUCKETS_MIN = 8, PER_BUCKET_MAX = 2 };

void chain_table_fini(struct chain_table *table)
{
    if (table->mask)
        free(table->buckets);
    *table = (struct chain_table){0};
}

static struct chain_link **chain_of(struct chain_table *table, uint64_t hash)
{
    return table->mask ? &table->buckets[hash & table->mask] : &table->few;
}

static void push(struct chain_table *table, struct chain_link *link, uint64_t hash)
{
    struct chain_link **chain = chain_of(table, hash);
    link->next = *chain;
    *chain = link;
}

/* buckets: a power of two; 1 for the chain that needs no memory. */
static void resize(struct chain_table *table, uint32_t buckets, chain_hash_fn hash_of,
                   const void *ctx)
{
    struct chain_table next = {.count = table->count, .mask = buckets - 1};
    if (next.mask)
        next.buckets = xcalloc(buckets, sizeof(struct chain_link *));
    for (uint32_t i = 0; i < chain_table_buckets(table); i++) {
        struct chain_link *link = chain_table_bucket(table, i);
        while (link) {
            struct chain_link *following = link->next;
            push(&next, link, hash_of(ctx, link));
            link = following;
        }
    }
    if (table->mask)
        free(table->buckets);
    *table = next;
}

void chain_table_add(struct chain_table *table, struct chain_link *link, chain_hash_fn hash_of,
                     const void *ctx)
{
    uint32_t buckets = chain_table_buckets(table);
    if (buckets == 1 ? table->count >= CHAIN_FEW : table->count >= buckets * PER_BUCKET_MAX)
        resize(table, buckets == 1 ? BUCKETS_MIN : buckets * 2, hash_of, ctx);
    push(table, link, hash_of(ctx, link));
    table->count++;
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
    uint32_t buckets = chain_table_buckets(table);
    if (buckets > 1 && table->count < buckets / 4)
        resize(table, buckets == BUCKETS_MIN ? 1 : buckets / 2, hash_of, ctx);
}
