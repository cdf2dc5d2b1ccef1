/*
 * The objects of one generation of a collection as the follower knows them: of each its key, its
 * version, the revision that created it in the store, and its size. The store has the rest.
 *
 * Owned by the follower; its thread. About 100 bytes and the key for each object.
 */
#ifndef VIGIL_TIER_MIRROR_OBJECTS_H
#define VIGIL_TIER_MIRROR_OBJECTS_H

#include "base/container/hash_map.h"
#include "tier/mirror/usage.h"

struct known_object {
    uint64_t version;
    int64_t create_revision;
    uint32_t bytes; /* length of its value */
    uint16_t key_bytes;
    bool is_late; /* a fence waits until it is deleted (fence.h) */
    uint8_t key[];
};

struct objects {
    struct hash_map map; /* owned: struct known_object, by key */
    uint64_t bytes;      /* length of all values */
    size_t keys_bytes;
    struct usage *usage; /* the mirror's; follows their changes */
};

void objects_init(struct objects *objects, uint64_t seed, struct usage *usage);
/* Accepts a zeroed one. Does not change the usage: they remain in the store, or the sweeper has
 * deleted them. */
void objects_fini(struct objects *objects);

/* NULL: there is none. */
struct known_object *objects_find(const struct objects *objects, struct slice key);
/* A new one, which is not known yet, with version 0. ST_NOMEM. */
MUST_CHECK
enum status objects_add(struct objects *objects, struct slice key,
                        struct known_object **ret_object);
void objects_resize(struct objects *objects, struct known_object *object, size_t bytes);
/* Forgets and frees it. */
void objects_remove(struct objects *objects, struct known_object *object);

static inline struct slice known_object_key(const struct known_object *object)
{
    return slice_of(object->key, object->key_bytes);
}

static inline uint64_t known_object_usage(const struct known_object *object)
{
    return usage_of(1, object->key_bytes, object->bytes);
}

static inline uint64_t objects_usage(const struct objects *objects)
{
    return usage_of(objects->map.count, objects->keys_bytes, objects->bytes);
}

static inline size_t objects_count(const struct objects *objects)
{
    return objects->map.count;
}

/* Asserts every invariant; for tests. */
void objects_check(const struct objects *objects);

#endif
