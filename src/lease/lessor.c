#include "lease/lessor.h"

#include "base/clock.h"
#include "base/container/chain_table.h"
#include "base/container/hash_map.h"
#include "base/container/heap.h"
#include "base/memory/pool.h"
#include "base/memory/slab.h"
#include "base/random.h"
#include "base/xalloc.h"
#include "base/yield_point.h"

#include <stdlib.h>

/* Deadlines corrected in one call of lessor_expired. */
enum { LATE_MAX = 4096 };

struct attachment;

struct lease {
    struct chain_link by_id; /* first */
    int64_t id;
    int64_t ttl_s;
    int64_t expires_ns;
    struct heap_link by_deadline; /* its key is at or before lease_end_ns */
    struct attachment *keys;
    uint32_t key_count : 30;
    uint32_t fixed : 1;   /* granted by lessor_grant_until */
    uint32_t emptied : 1; /* fixed, and the last attached key is gone */
    uint32_t attached;    /* keys ever attached */
};

/* A key that is attached to a lease. */
struct attachment {
    struct chain_link by_key; /* first */
    struct attachment *next;
    struct attachment *
        *link; /* the pointer to this one: in the lease, or in the attachment before */
    uint32_t key_bytes;
    uint8_t key[];
};

struct lessor {
    struct chain_table leases;
    struct chain_table attachments;
    struct heap deadlines;
    struct slab lease_slab;
    struct pool *key_pool;
    struct hash_map secret; /* empty: hashes keys, so that clients cannot choose collisions */
    struct random random;
};

static struct lease *lease_of(const struct chain_link *link)
{
    return CONTAINER_OF((struct chain_link *)(uintptr_t)link, struct lease, by_id);
}

static struct attachment *attachment_of(const struct chain_link *link)
{
    return CONTAINER_OF((struct chain_link *)(uintptr_t)link, struct attachment, by_key);
}

static struct slice key_of(const struct attachment *attachment)
{
    return slice_of(attachment->key, attachment->key_bytes);
}

static uint64_t id_hash(const struct lessor *lessor, int64_t id)
{
    return hash_map_hash(&lessor->secret, slice_of(&id, sizeof(id)));
}

static uint64_t lease_hash(const void *ctx, const struct chain_link *link)
{
    return id_hash(ctx, lease_of(link)->id);
}

static uint64_t attachment_hash(const void *ctx, const struct chain_link *link)
{
    const struct lessor *lessor = ctx;
    return hash_map_hash(&lessor->secret, key_of(attachment_of(link)));
}

/* -- Life -- */

struct lessor *lessor_new(uint64_t seed)
{
    struct lessor *lessor = xcalloc(1, sizeof(*lessor));
    hash_map_init(&lessor->secret, NULL, seed);
    random_init(&lessor->random, seed);
    slab_init(&lessor->lease_slab, sizeof(struct lease));
    lessor->key_pool = pool_new();
    return lessor;
}

void lessor_free(struct lessor *lessor)
{
    if (!lessor)
        return;
    while (lessor->deadlines.count) {
        struct heap_link *link = heap_first(&lessor->deadlines);
        lessor_revoke(lessor, CONTAINER_OF(link, struct lease, by_deadline)->id);
    }
    chain_table_fini(&lessor->leases);
    chain_table_fini(&lessor->attachments);
    heap_fini(&lessor->deadlines);
    slab_fini(&lessor->lease_slab);
    pool_free(lessor->key_pool);
    free(lessor);
}

/* -- Finding -- */

static struct lease *lease_find(const struct lessor *lessor, int64_t id)
{
    struct chain_link *link = chain_table_chain(&lessor->leases, id_hash(lessor, id));
    while (link && lease_of(link)->id != id)
        link = link->next;
    return link ? lease_of(link) : NULL;
}

static struct attachment *attachment_find(const struct lessor *lessor, struct slice key)
{
    struct chain_link *link =
        chain_table_chain(&lessor->attachments, hash_map_hash(&lessor->secret, key));
    while (link && !slice_equal(key_of(attachment_of(link)), key))
        link = link->next;
    return link ? attachment_of(link) : NULL;
}

size_t lessor_count(const struct lessor *lessor)
{
    return lessor->leases.count;
}

size_t lessor_key_count(const struct lessor *lessor)
{
    return lessor->attachments.count;
}

bool lessor_has(const struct lessor *lessor, int64_t id)
{
    return lease_find(lessor, id) != NULL;
}

/* A request may delete the last key and put it again, so the granted end is kept. */
static int64_t lease_end_ns(const struct lease *lease)
{
    return lease->emptied ? 0 : lease->expires_ns;
}

static struct lessor_lease shown(const struct lease *lease)
{
    return (struct lessor_lease){
        .id = lease->id,
        .ttl_s = lease->ttl_s,
        .expires_ns = lease_end_ns(lease),
        .key_count = lease->key_count,
        .attached = lease->attached,
    };
}

bool lessor_get(const struct lessor *lessor, int64_t id, struct lessor_lease *ret_lease)
{
    const struct lease *lease = lease_find(lessor, id);
    if (lease)
        *ret_lease = shown(lease);
    return lease != NULL;
}

static int compare_keys(const void *left, const void *right)
{
    const struct slice *a = left, *b = right;
    yield_point_pass(1);
    return slice_compare(*a, *b);
}

void lessor_keys(const struct lessor *lessor, int64_t id, struct slice *ret_keys)
{
    const struct lease *lease = lease_find(lessor, id);
    for (const struct attachment *at = lease ? lease->keys : NULL; at; at = at->next)
        *ret_keys++ = key_of(at);
}

static enum status each_key_of_all(const struct lessor *lessor,
                                   enum status (*visit)(void *ctx, struct slice key), void *ctx)
{
    const struct chain_table *table = &lessor->attachments;
    for (uint32_t at = 0; at < chain_table_buckets(table); at++) {
        for (struct chain_link *link = chain_table_bucket(table, at); link; link = link->next)
            TRY(visit(ctx, key_of(attachment_of(link))));
    }
    return ST_OK;
}

enum status lessor_each_key(const struct lessor *lessor, int64_t id, uint32_t max,
                            enum status (*visit)(void *ctx, struct slice key), void *ctx)
{
    if (id == 0)
        return each_key_of_all(lessor, visit, ctx);
    const struct lease *lease = lease_find(lessor, id);
    for (const struct attachment *at = lease ? lease->keys : NULL; at && max; at = at->next, max--)
        TRY(visit(ctx, key_of(at)));
    return ST_OK;
}

void lessor_keys_sort(struct slice *keys, size_t count)
{
    if (count)
        qsort(keys, count, sizeof(*keys), compare_keys);
}

void lessor_list(const struct lessor *lessor, struct lessor_entry *ret_entries)
{
    enum { AHEAD = 16 };
    const struct chain_table *leases = &lessor->leases;
    for (uint32_t at = 0; at < chain_table_buckets(leases); at++) {
        /* Nearly all leases are in different cache lines. */
        if (at + AHEAD < chain_table_buckets(leases))
            __builtin_prefetch(chain_table_bucket(leases, at + AHEAD));
        for (struct chain_link *link = chain_table_bucket(leases, at); link; link = link->next) {
            const struct lease *lease = lease_of(link);
            *ret_entries++ = (struct lessor_entry){lease->id, lease_end_ns(lease)};
        }
    }
}

static int compare_entries(const void *left, const void *right)
{
    const struct lessor_entry *a = left, *b = right;
    yield_point_pass(1);
    if (a->expires_ns != b->expires_ns)
        return a->expires_ns < b->expires_ns ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

void lessor_list_sort(struct lessor_entry *entries, size_t count)
{
    if (count)
        qsort(entries, count, sizeof(*entries), compare_entries);
}

/* -- Granting and revoking -- */

int64_t lessor_choose_id(struct lessor *lessor)
{
    for (;;) {
        int64_t id = (int64_t)(random_u64(&lessor->random) & INT64_MAX);
        if (id && !lease_find(lessor, id))
            return id;
    }
}

enum status lessor_check_grant(const struct lessor *lessor, int64_t id, int64_t ttl_s)
{
    if (ttl_s > LEASE_TTL_MAX_S)
        return ST_LEASE_TTL_TOO_LARGE;
    return lease_find(lessor, id) ? ST_LEASE_EXIST : ST_OK;
}

static void put_deadline(struct lessor *lessor, struct lease *lease)
{
    enum status status = heap_put(&lessor->deadlines, &lease->by_deadline, lease_end_ns(lease));
    if (status != ST_OK)
        abort();
}

static struct lease *lease_add(struct lessor *lessor, int64_t id, int64_t ttl_s, int64_t expires_ns)
{
    assert(id != 0);
    assert(ttl_s > 0 && ttl_s <= LEASE_TTL_MAX_S);
    struct lease *lease = slab_alloc(&lessor->lease_slab);
    *lease = (struct lease){.id = id, .ttl_s = ttl_s, .expires_ns = expires_ns};
    chain_table_add(&lessor->leases, &lease->by_id, lease_hash, lessor);
    put_deadline(lessor, lease);
    return lease;
}

static int64_t seconds_after(int64_t now_ns, int64_t seconds)
{
    return clock_add(now_ns, seconds * NS_PER_S);
}

void lessor_grant(struct lessor *lessor, int64_t id, int64_t ttl_s, int64_t now_ns)
{
    assert(!lease_find(lessor, id));
    lease_add(lessor, id, ttl_s, seconds_after(now_ns, ttl_s));
}

void lessor_grant_until(struct lessor *lessor, int64_t id, int64_t ttl_s, int64_t expires_ns)
{
    assert(!lease_find(lessor, id));
    lease_add(lessor, id, ttl_s, expires_ns)->fixed = true;
}

void lessor_load(struct lessor *lessor, const struct lessor_kept *kept, size_t count,
                 int64_t now_ns)
{
    assert(lessor->leases.count == 0);
    for (size_t i = 0; i < count; i++) {
        const struct lessor_kept *k = &kept[i];
        assert(k->remaining_s >= 0 && k->remaining_s <= k->ttl_s);
        int64_t left_s = k->remaining_s ? k->remaining_s : k->ttl_s;
        int64_t expires_ns = k->fixed ? k->expires_ns : seconds_after(now_ns, left_s);
        lease_add(lessor, k->id, k->ttl_s, expires_ns)->fixed = k->fixed;
    }
}

static void detach(struct lessor *lessor, struct lease *lease, struct attachment *attachment)
{
    *attachment->link = attachment->next;
    if (attachment->next)
        attachment->next->link = attachment->link;
    assert(lease->key_count > 0);
    lease->key_count--;
    chain_table_remove(&lessor->attachments, &attachment->by_key, attachment_hash, lessor);
    pool_free_object(lessor->key_pool, attachment);
}

void lessor_revoke(struct lessor *lessor, int64_t id)
{
    struct lease *lease = lease_find(lessor, id);
    if (!lease)
        return;
    while (lease->keys) {
        detach(lessor, lease, lease->keys);
        yield_point_pass(1);
    }
    heap_remove(&lessor->deadlines, &lease->by_deadline);
    chain_table_remove(&lessor->leases, &lease->by_id, lease_hash, lessor);
    slab_free(lease);
}

/* -- Time -- */

enum status lessor_renew(struct lessor *lessor, int64_t id, int64_t asked_ns, int64_t now_ns,
                         int64_t *ret_ttl_s)
{
    struct lease *lease = lease_find(lessor, id);
    if (!lease)
        return ST_LEASE_NOT_FOUND;
    if (lease_end_ns(lease) <= asked_ns)
        return ST_AGAIN;
    if (!lease->fixed)
        lease->expires_ns = seconds_after(now_ns, lease->ttl_s);
    *ret_ttl_s = lease->ttl_s;
    return ST_OK;
}

int64_t lessor_next_ns(const struct lessor *lessor)
{
    return heap_first_number(&lessor->deadlines, CLOCK_NEVER);
}

int64_t lessor_expired(struct lessor *lessor, int64_t now_ns)
{
    for (unsigned late = 0; late < LATE_MAX && lessor_next_ns(lessor) <= now_ns; late++) {
        struct lease *lease =
            CONTAINER_OF(heap_first(&lessor->deadlines), struct lease, by_deadline);
        if (lease_end_ns(lease) <= now_ns)
            return lease->id;
        put_deadline(lessor, lease); /* it was renewed, or has keys again */
    }
    return 0;
}

/* -- Keys -- */

static void attach(struct lessor *lessor, struct lease *lease, struct slice key)
{
    struct attachment *attachment =
        pool_alloc(lessor->key_pool, offsetof(struct attachment, key) + key.len);
    attachment->key_bytes = (uint32_t)key.len;
    slice_copy(attachment->key, key);
    attachment->next = lease->keys;
    attachment->link = &lease->keys;
    if (lease->keys)
        lease->keys->link = &attachment->next;
    lease->keys = attachment;
    lease->key_count++;
    lease->attached++;
    lease->emptied = false;
    chain_table_add(&lessor->attachments, &attachment->by_key, attachment_hash, lessor);
}

void lessor_move_key(struct lessor *lessor, struct slice key, int64_t from, int64_t to)
{
    struct lease *before = from ? lease_find(lessor, from) : NULL;
    struct attachment *attachment = before ? attachment_find(lessor, key) : NULL;
    struct lease *after = to ? lease_find(lessor, to) : NULL;
    if (after)
        attach(lessor, after, key);
    if (!attachment)
        return;
    detach(lessor, before, attachment); /* last: the key may be stored in it */
    if (before->fixed && before->key_count == 0) {
        before->emptied = true;
        put_deadline(lessor, before);
    }
}

size_t lessor_bytes(const struct lessor *lessor)
{
    return lessor->lease_slab.held_bytes + pool_bytes_held(lessor->key_pool) +
           lessor->deadlines.capacity * sizeof(struct heap_entry) +
           ((size_t)lessor->leases.capacity + lessor->attachments.capacity) *
               sizeof(struct chain_link *);
}

void lessor_check(const struct lessor *lessor)
{
    size_t keys = 0;
    CHAIN_FOREACH(link, &lessor->leases)
    {
        const struct lease *lease = lease_of(link);
        uint32_t count = 0;
        for (const struct attachment *at = lease->keys; at; at = at->next) {
            assert(*at->link == at);
            assert(attachment_find(lessor, key_of(at)) == at);
            count++;
        }
        assert(count == lease->key_count);
        assert(heap_has(&lease->by_deadline));
        keys += count;
    }
    assert(keys == lessor->attachments.count);
    assert(lessor->deadlines.count == lessor->leases.count);
    heap_check(&lessor->deadlines);
}
