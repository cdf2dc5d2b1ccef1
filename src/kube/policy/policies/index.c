#include "kube/policy/policies/index.h"

#include "base/xalloc.h"

enum { TEXT_BYTES_MAX = 255 };

/* The key is the text, a NUL byte and the name of the object. */
struct indexed {
    struct version_item item;
    const struct kube_lookup_object *object;
    uint8_t key[];
};

static struct indexed *indexed_of(const struct version_item *item)
{
    return CONTAINER_OF((struct version_item *)(uintptr_t)item, struct indexed, item);
}

static void indexed_free(struct version_item *item)
{
    free(indexed_of(item));
}

static size_t key_bytes(struct slice text, struct slice name)
{
    return text.len + 1 + name.len;
}

static struct indexed *indexed_new(struct slice text, struct slice name,
                                   const struct kube_lookup_object *object)
{
    size_t bytes = key_bytes(text, name);
    struct indexed *indexed = xmalloc(sizeof(*indexed) + bytes);
    *indexed = (struct indexed){.item = {.refs = 1, .free = indexed_free}, .object = object};
    slice_copy(indexed->key, text);
    indexed->key[text.len] = '\0';
    slice_copy(indexed->key + text.len + 1, name);
    indexed->item.key = slice_of(indexed->key, bytes);
    return indexed;
}

void kube_policy_index_put(struct version_map *index, struct slice text,
                           const struct kube_lookup_object *object)
{
    version_map_put(index, &indexed_new(text, object->name, object)->item);
}

void kube_policy_index_remove(struct version_map *index, struct slice text,
                              const struct kube_lookup_object *object)
{
    struct indexed *key = indexed_new(text, object->name, object);
    (void)version_map_remove(index, key->item.key); /* unless the same text was removed before */
    free(key);
}

size_t kube_policy_index_bytes(struct slice text, const struct kube_lookup_object *object)
{
    return VERSION_NODE_BYTES + sizeof(struct indexed) + key_bytes(text, object->name);
}

size_t kube_policy_index_match(const struct kube_match *match, struct version_map *index,
                               kube_policy_index_fn *fn, const struct kube_lookup_object *object)
{
    const struct kube_match_rules *rules = &match->rules;
    size_t bytes = 0;
    if (kube_match_is_of_any_resource(match)) {
        if (fn)
            fn(index, SLICE_LITERAL("*"), object);
        return kube_policy_index_bytes(SLICE_LITERAL("*"), object);
    }
    for (size_t i = 0; i < rules->count; i++)
        for (size_t n = 0; n < rules->items[i].resources.count; n++) {
            /* "pods" of "pods/status" */
            struct slice rest = rules->items[i].resources.items[n], text = slice_cut(&rest, '/');
            bytes += kube_policy_index_bytes(text, object);
            if (fn)
                fn(index, text, object);
        }
    return bytes;
}

bool kube_policy_index_has(const struct version_map *index, struct slice text)
{
    uint8_t key[TEXT_BYTES_MAX + 1];
    struct version_cursor cursor;
    if (text.len > TEXT_BYTES_MAX)
        return true;
    slice_copy(key, text);
    key[text.len] = '\0';
    struct slice first = slice_of(key, text.len + 1);
    version_cursor_seek(&cursor, index, first);
    const struct version_item *item = version_cursor_next(&cursor);
    return item && slice_has_prefix(item->key, first);
}

bool kube_policy_index_each(const struct version_map *index, struct slice text,
                            bool (*fn)(void *ctx, const struct kube_lookup_object *object),
                            void *ctx)
{
    struct indexed *first = indexed_new(text, SLICE_EMPTY, NULL);
    struct version_cursor cursor;
    const struct version_item *item;
    bool goes_on = true;
    version_cursor_seek(&cursor, index, first->item.key);
    while (goes_on && (item = version_cursor_next(&cursor)) &&
           slice_has_prefix(item->key, first->item.key))
        goes_on = fn(ctx, indexed_of(item)->object);
    free(first);
    return goes_on;
}
