#include "base/container/hash_map.h"

#include <stdlib.h>

enum { CAPACITY_MIN = 8 };

/* Odd multipliers without a pattern. */
#define ODD_A 0x9e3779b97f4a7c15u
#define ODD_B 0xd1b54a32d192ed03u

static uint64_t load_word(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof(word));
    return word;
}

static uint64_t load_up_to_word(const uint8_t *bytes, size_t len)
{
    uint64_t word = 0;
    memcpy(&word, bytes, len);
    return word;
}

/* Combines both halves of the product: every bit of a and b affects every bit of the result. */
static uint64_t fold(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Each 16 bytes go into one product, both factors of which contain a secret: a peer cannot make a
 * factor zero, which would let it choose colliding keys. */
static uint64_t hash_bytes(const struct hash_map *map, struct slice key)
{
    const uint8_t *at = key.ptr;
    size_t left = key.len;
    uint64_t hash = map->secret[0] ^ (uint64_t)key.len * ODD_A;
    for (; left > 16; at += 16, left -= 16)
        hash = fold(load_word(at) ^ map->secret[1], load_word(at + 8) ^ hash);
    uint64_t a = 0, b = 0;
    if (left >= 8) {
        a = load_word(at);
        b = load_word(at + left - 8);
    } else if (left > 0) {
        a = load_up_to_word(at, left);
    }
    return fold(fold(a ^ map->secret[1], b ^ hash), ODD_B);
}

void hash_map_init(struct hash_map *map, hash_map_key_fn key_of, uint64_t seed)
{
    *map = (struct hash_map){.key_of = key_of};
    map->secret[0] = fold(seed ^ ODD_A, ODD_B);
    map->secret[1] = fold(seed ^ ODD_B, ODD_A) | 1;
}

void hash_map_fini(struct hash_map *map)
{
    free(map->slots);
    *map = (struct hash_map){0};
}

/* The key's slot, or the free one where it would be inserted. A free slot always exists. */
static struct hash_map_slot *map_slot(const struct hash_map *map, uint64_t hash, struct slice key)
{
    size_t mask = map->capacity - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        struct hash_map_slot *slot = &map->slots[i];
        if (!slot->value)
            return slot;
        if (slot->hash == hash && slice_equal(map->key_of(slot->value), key))
            return slot;
    }
}

static void map_move_all(struct hash_map *map, struct hash_map_slot *slots, size_t capacity)
{
    size_t mask = capacity - 1;
    for (size_t from = 0; from < map->capacity; from++) {
        if (!map->slots[from].value)
            continue;
        size_t to = map->slots[from].hash & mask;
        while (slots[to].value)
            to = (to + 1) & mask;
        slots[to] = map->slots[from];
    }
    free(map->slots);
    map->slots = slots;
    map->capacity = capacity;
}

MUST_CHECK
static enum status map_resize(struct hash_map *map, size_t capacity)
{
    assert(capacity > map->count);
    struct hash_map_slot *slots = calloc(capacity, sizeof(slots[0]));
    if (!slots)
        return ST_NOMEM;
    map_move_all(map, slots, capacity);
    return ST_OK;
}

MUST_CHECK
static enum status map_put(struct hash_map *map, uint64_t hash, struct slice key, void *value,
                           void **ret_replaced)
{
    assert(value);
    /* At most three in four slots are taken. */
    if (map->count + 1 > map->capacity / 4 * 3)
        TRY(map_resize(map, size_max(CAPACITY_MIN, map->capacity * 2)));
    struct hash_map_slot *slot = map_slot(map, hash, key);
    *ret_replaced = slot->value;
    map->count += slot->value == NULL;
    *slot = (struct hash_map_slot){.hash = hash, .value = value};
    return ST_OK;
}

/* Moves every following value that may be here into the gap, so that no search stops too early. */
static void map_close_gap(struct hash_map *map, size_t gap)
{
    size_t mask = map->capacity - 1;
    for (size_t i = (gap + 1) & mask; map->slots[i].value; i = (i + 1) & mask) {
        size_t from_home = (i - map->slots[i].hash) & mask;
        if (from_home >= ((i - gap) & mask)) {
            map->slots[gap] = map->slots[i];
            gap = i;
        }
    }
    map->slots[gap] = (struct hash_map_slot){0};
}

static void *map_remove(struct hash_map *map, uint64_t hash, struct slice key)
{
    if (map->count == 0)
        return NULL;
    struct hash_map_slot *slot = map_slot(map, hash, key);
    void *value = slot->value;
    if (!value)
        return NULL;
    map_close_gap(map, (size_t)(slot - map->slots));
    map->count--;
    if (map->capacity > CAPACITY_MIN && map->count < map->capacity / 8) {
        /* Without memory it stays large. */
        enum status ignored = map_resize(map, map->capacity / 2);
        (void)ignored;
    }
    return value;
}

void *hash_map_get(const struct hash_map *map, struct slice key)
{
    assert(map->key_of);
    return map->count ? map_slot(map, hash_bytes(map, key), key)->value : NULL;
}

enum status hash_map_put(struct hash_map *map, void *value, void **ret_replaced)
{
    assert(map->key_of);
    struct slice key = map->key_of(value);
    return map_put(map, hash_bytes(map, key), key, value, ret_replaced);
}

void *hash_map_remove(struct hash_map *map, struct slice key)
{
    assert(map->key_of);
    return map_remove(map, hash_bytes(map, key), key);
}

void *hash_map_each(const struct hash_map *map, size_t *at)
{
    while (*at < map->capacity) {
        void *value = map->slots[(*at)++].value;
        if (value)
            return value;
    }
    return NULL;
}

uint64_t hash_map_hash(const struct hash_map *map, struct slice key)
{
    return hash_bytes(map, key);
}

void hash_map_check(const struct hash_map *map)
{
    size_t found = 0;
    assert(map->capacity == 0 || map->count <= map->capacity / 4 * 3);
    assert((map->capacity & (map->capacity - 1)) == 0);
    for (size_t i = 0; i < map->capacity; i++) {
        const struct hash_map_slot *slot = &map->slots[i];
        if (!slot->value)
            continue;
        struct slice key = map->key_of(slot->value);
        assert(slot->hash == hash_bytes(map, key));
        assert(map_slot(map, slot->hash, key) == slot);
        found++;
    }
    assert(found == map->count);
}
