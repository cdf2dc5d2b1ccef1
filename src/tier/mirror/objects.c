#include "tier/mirror/objects.h"

#include <stdlib.h>

static struct slice key_of(const void *value)
{
    return known_object_key(value);
}

void objects_init(struct objects *objects, uint64_t seed, struct usage *usage)
{
    *objects = (struct objects){.usage = usage};
    hash_map_init(&objects->map, key_of, seed);
}

void objects_fini(struct objects *objects)
{
    struct known_object *object;
    MAP_FOREACH (object, &objects->map)
        free(object);
    hash_map_fini(&objects->map);
    *objects = (struct objects){0};
}

struct known_object *objects_find(const struct objects *objects, struct slice key)
{
    return hash_map_get(&objects->map, key);
}

enum status objects_add(struct objects *objects, struct slice key, struct known_object **ret_object)
{
    assert(key.len <= UINT16_MAX);
    void *replaced = NULL;
    struct known_object *object = malloc(sizeof(*object) + key.len);
    if (!object)
        return ST_NOMEM;
    *object = (struct known_object){.key_bytes = (uint16_t)key.len};
    slice_copy(object->key, key);
    enum status status = hash_map_put(&objects->map, object, &replaced);
    assert(!replaced);
    if (status != ST_OK) {
        free(object);
        return status;
    }
    objects->keys_bytes += key.len;
    objects->usage->held += known_object_usage(object);
    *ret_object = object;
    return ST_OK;
}

void objects_resize(struct objects *objects, struct known_object *object, size_t bytes)
{
    assert(bytes <= UINT32_MAX);
    if (object->bytes)
        usage_replace(objects->usage, object->bytes);
    objects->bytes += bytes - object->bytes;
    objects->usage->held += bytes - object->bytes;
    object->bytes = (uint32_t)bytes;
}

void objects_remove(struct objects *objects, struct known_object *object)
{
    void *removed = hash_map_remove(&objects->map, known_object_key(object));
    assert(removed == object);
    (void)removed;
    usage_replace(objects->usage, known_object_usage(object));
    objects->usage->held -= known_object_usage(object);
    objects->bytes -= object->bytes;
    objects->keys_bytes -= object->key_bytes;
    free(object);
}

void objects_check(const struct objects *objects)
{
    const struct known_object *object;
    uint64_t bytes = 0;
    size_t keys_bytes = 0;
    hash_map_check(&objects->map);
    MAP_FOREACH (object, &objects->map) {
        bytes += object->bytes;
        keys_bytes += object->key_bytes;
    }
    assert(bytes == objects->bytes && keys_bytes == objects->keys_bytes);
}
