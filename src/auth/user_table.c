#include "auth/user_table.h"

#include "auth/store_private.h"
#include "base/xalloc.h"

#include <stdlib.h>

/* Few users per bucket, because a change copies one bucket and the array of buckets. */
enum { USERS_PER_BUCKET = 8, BUCKETS_MIN = 8, BUCKET_SLOTS_BITS = 16 };

struct user_bucket {
    _Atomic uint32_t refs;
    uint32_t count;
    struct user_slot {
        uint64_t hash;
        struct auth_user *user; /* one reference */
    } slots[];
};

/* -- Users -- */

static struct slice copy(uint8_t **at, struct slice bytes)
{
    uint8_t *memory = *at;
    slice_copy(memory, bytes);
    *at += bytes.len;
    return slice_of(memory, bytes.len);
}

struct auth_user *auth_user_new(const struct pb_user *from, struct role_ranges *role_ranges)
{
    size_t bytes = sizeof(struct auth_user) + from->roles_count * sizeof(struct slice);
    bytes += from->name.len;
    for (size_t i = 0; i < from->roles_count; i++)
        bytes += from->roles[i].len;
    struct auth_user *user = xmalloc(bytes);
    *user = (struct auth_user){
        .refs = 1, .role_ranges = role_ranges, .role_count = from->roles_count, .bytes = bytes};
    user->roles = (struct slice *)(void *)(user + 1);
    uint8_t *at = (uint8_t *)(user->roles + from->roles_count);
    user->name = copy(&at, from->name);
    for (size_t i = 0; i < from->roles_count; i++) {
        user->roles[i] = copy(&at, from->roles[i]);
        /* The name of the role decides, as in etcd, so it needs no permissions. */
        user->root |= slice_equal(from->roles[i], AUTH_ROOT);
    }
    return user;
}

static struct auth_user *user_ref(struct auth_user *user)
{
    atomic_fetch_add_explicit(&user->refs, 1, memory_order_relaxed);
    return user;
}

void auth_user_unref(struct auth_user *user)
{
    if (atomic_fetch_sub_explicit(&user->refs, 1, memory_order_acq_rel) != 1)
        return;
    role_ranges_unref(user->role_ranges);
    free(user);
}

/* -- Buckets -- */

static void bucket_unref(struct user_bucket *bucket)
{
    if (!bucket || atomic_fetch_sub_explicit(&bucket->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; i < bucket->count; i++)
        auth_user_unref(bucket->slots[i].user);
    free(bucket);
}

/* The index of a name, or count. */
static uint32_t bucket_find(const struct user_bucket *bucket, uint64_t hash, struct slice name)
{
    uint32_t count = bucket ? bucket->count : 0, at = 0;
    while (at < count &&
           (bucket->slots[at].hash != hash || !slice_equal(bucket->slots[at].user->name, name)))
        at++;
    return at;
}

/* A copy without the user at `left_out`, with one more if user is not NULL; takes its reference. */
static struct user_bucket *bucket_with(const struct user_bucket *from, uint32_t left_out,
                                       uint64_t hash, struct auth_user *user)
{
    uint32_t count = from ? from->count : 0, made = 0;
    struct user_bucket *bucket = xmalloc(sizeof(*bucket) + (count + 1) * sizeof(bucket->slots[0]));
    *bucket = (struct user_bucket){.refs = 1, .count = count + 1};
    for (uint32_t i = 0; i < count; i++) {
        if (i == left_out)
            continue;
        bucket->slots[made] = from->slots[i];
        (void)user_ref(bucket->slots[made++].user);
    }
    if (user)
        bucket->slots[made++] = (struct user_slot){.hash = hash, .user = user};
    bucket->count = made;
    return bucket;
}

/* -- The table -- */

void user_table_init(struct user_table *table, uint64_t seed)
{
    *table = (struct user_table){0};
    hash_map_init(&table->secret, NULL, seed);
}

void user_table_copy(struct user_table *table, const struct user_table *from)
{
    *table = *from;
    table->buckets = xcalloc(from->bucket_count, sizeof(struct user_bucket *));
    for (size_t i = 0; i < from->bucket_count; i++) {
        table->buckets[i] = from->buckets[i];
        if (table->buckets[i])
            atomic_fetch_add_explicit(&table->buckets[i]->refs, 1, memory_order_relaxed);
    }
}

void user_table_fini(struct user_table *table)
{
    for (size_t i = 0; i < table->bucket_count; i++)
        bucket_unref(table->buckets[i]);
    free(TAKE(table->buckets));
    table->bucket_count = table->count = 0;
}

static struct user_bucket **bucket_of(const struct user_table *table, uint64_t hash)
{
    return &table->buckets[hash & (table->bucket_count - 1)];
}

static void set_bucket(struct user_bucket **place, struct user_bucket *bucket)
{
    bucket_unref(*place);
    *place = bucket;
}

static void grow(struct user_table *table)
{
    struct user_table larger = {.bucket_count = size_max(BUCKETS_MIN, 2 * table->bucket_count)};
    larger.buckets = xcalloc(larger.bucket_count, sizeof(struct user_bucket *));
    for (size_t i = 0; i < table->bucket_count; i++) {
        const struct user_bucket *bucket = table->buckets[i];
        for (uint32_t k = 0; bucket && k < bucket->count; k++) {
            const struct user_slot *slot = &bucket->slots[k];
            struct user_bucket **place = bucket_of(&larger, slot->hash);
            set_bucket(place, bucket_with(*place, UINT32_MAX, slot->hash, user_ref(slot->user)));
        }
    }
    larger.count = table->count;
    larger.secret = table->secret;
    user_table_fini(table);
    *table = larger;
}

const struct auth_user *user_table_find(const struct user_table *table, struct slice name)
{
    if (table->bucket_count == 0)
        return NULL;
    uint64_t hash = hash_map_hash(&table->secret, name);
    const struct user_bucket *bucket = *bucket_of(table, hash);
    uint32_t at = bucket_find(bucket, hash, name);
    return bucket && at < bucket->count ? bucket->slots[at].user : NULL;
}

void user_table_put(struct user_table *table, struct auth_user *user)
{
    if (table->count >= table->bucket_count * USERS_PER_BUCKET)
        grow(table);
    uint64_t hash = hash_map_hash(&table->secret, user->name);
    struct user_bucket **place = bucket_of(table, hash);
    uint32_t at = bucket_find(*place, hash, user->name);
    table->count += !*place || at == (*place)->count;
    set_bucket(place, bucket_with(*place, at, hash, user));
}

void user_table_remove(struct user_table *table, struct slice name)
{
    if (!user_table_find(table, name))
        return;
    uint64_t hash = hash_map_hash(&table->secret, name);
    struct user_bucket **place = bucket_of(table, hash);
    set_bucket(place, bucket_with(*place, bucket_find(*place, hash, name), 0, NULL));
    table->count--;
}

/* *at combines the index of a bucket with that of a user in it; buckets are smaller than that. */
const struct auth_user *user_table_each(const struct user_table *table, size_t *at)
{
    size_t mask = ((size_t)1 << BUCKET_SLOTS_BITS) - 1;
    for (size_t i = *at >> BUCKET_SLOTS_BITS; i < table->bucket_count; i++) {
        const struct user_bucket *bucket = table->buckets[i];
        size_t k = *at & mask;
        if (bucket && k < bucket->count) {
            ++*at;
            return bucket->slots[k].user;
        }
        *at = (i + 1) << BUCKET_SLOTS_BITS;
    }
    return NULL;
}
