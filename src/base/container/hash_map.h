/*
 * Finds values by key. One owner, one thread.
 *
 * Values belong to the caller. Each contains its own key, which key_of returns; the key must not
 * change while the value is in the map. Open addressing with linear probing; a removal moves later
 * values up, so that no deleted slots slow a search.
 *
 * Peers choose many of our keys. A random seed prevents them from choosing keys that collide.
 */
#ifndef VIGIL_BASE_CONTAINER_HASH_MAP_H
#define VIGIL_BASE_CONTAINER_HASH_MAP_H

#include "base/slice.h"
#include "base/status.h"

struct hash_map_slot {
    uint64_t hash;
    void *value; /* NULL: the slot is free */
};

typedef struct slice (*hash_map_key_fn)(const void *value);

struct hash_map {
    struct hash_map_slot *slots;
    size_t count;
    size_t capacity; /* a power of two, or 0 */
    uint64_t secret[2];
    hash_map_key_fn key_of; /* NULL: the map has no values and only hashes with its secret */
};

/* Allocates nothing yet. key_of is NULL for a map that only hashes. */
void hash_map_init(struct hash_map *map, hash_map_key_fn key_of, uint64_t seed);
/* Does not free the values. A zeroed map may be finished. */
void hash_map_fini(struct hash_map *map);

/* NULL: the key is not in the map. */
void *hash_map_get(const struct hash_map *map, struct slice key);
/* Adds the value under its key; *ret_replaced is the previous one, or NULL. Fails only with
 * ST_NOMEM, and changes nothing then. */
MUST_CHECK
enum status hash_map_put(struct hash_map *map, void *value, void **ret_replaced);
/* Returns what was removed, or NULL. Never fails. */
void *hash_map_remove(struct hash_map *map, struct slice key);

/* The value at or after *at, which moves behind it; NULL at the end. */
void *hash_map_each(const struct hash_map *map, size_t *at);

/* Iterates over all values, in no particular order. The map must not change meanwhile. */
#define MAP_FOREACH(value, map) \
    for (size_t map_at_##value = 0; (value = hash_map_each(map, &map_at_##value)) != NULL;)

/* The hash of a key under the map's secret, for other kinds of tables. */
uint64_t hash_map_hash(const struct hash_map *map, struct slice key);

/* For tests: every value is found by its key. */
void hash_map_check(const struct hash_map *map);

#endif
