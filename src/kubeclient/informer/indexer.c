#include "kubeclient/informer/indexer.h"

#include <stdlib.h>

/* The objects that have one value. Exists while there are any. */
struct index_entry {
    struct hash_map objects; /* borrowed from the indexer */
    size_t value_bytes;
    uint8_t value[];
};

static struct slice key_of_object(const void *value)
{
    return object_key(value);
}

static struct slice key_of_entry(const void *value)
{
    const struct index_entry *entry = value;
    return slice_of(entry->value, entry->value_bytes);
}

/* -- Values -- */

/* In the length of a value: the object has taken the place of the old one there. */
#define VALUE_REPLACES (UINT32_C(1) << 31)

void index_values_add(struct vigil_kube_index_values *values, struct slice value)
{
    size_t before = values->bytes.len;
    uint32_t len = (uint32_t)value.len;
    if (value.len >= VALUE_REPLACES ||
        buf_append(&values->bytes, slice_of(&len, sizeof(len))) != ST_OK ||
        buf_append(&values->bytes, value) != ST_OK) {
        values->bytes.len = before;
        values->no_memory = true;
        return;
    }
    values->count++;
}

static enum status values_of(const struct index *index, const struct vigil_kube_object *object,
                             struct vigil_kube_index_values *values)
{
    values->bytes.len = 0;
    values->count = 0;
    values->no_memory = false;
    index->fn(object, values, index->user);
    return values->no_memory ? ST_NOMEM : ST_OK;
}

static uint32_t head_at(const struct vigil_kube_index_values *values, size_t at)
{
    uint32_t head;
    memcpy(&head, values->bytes.ptr + at, sizeof(head));
    return head;
}

/* The next value; *at begins at 0. False: that was the last one. */
static bool next_value(const struct vigil_kube_index_values *values, size_t *at,
                       struct slice *ret_value)
{
    if (*at == values->bytes.len)
        return false;
    uint32_t len = head_at(values, *at) & ~VALUE_REPLACES;
    *ret_value = slice_of(values->bytes.ptr + *at + sizeof(len), len);
    *at += sizeof(len) + len;
    return true;
}

/* -- Entries -- */

static void entry_free(struct index_entry *entry)
{
    hash_map_fini(&entry->objects);
    free(entry);
}

static enum status entry_new(struct indexer *indexer, struct index *index, struct slice value,
                             struct index_entry **ret_entry)
{
    void *replaced;
    struct index_entry *entry = calloc(1, sizeof(*entry) + value.len);
    if (!entry)
        return ST_NOMEM;
    hash_map_init(&entry->objects, key_of_object, indexer->seed);
    entry->value_bytes = value.len;
    slice_copy(entry->value, value);
    if (hash_map_put(&index->entries, entry, &replaced) != ST_OK) {
        entry_free(entry);
        return ST_NOMEM;
    }
    *ret_entry = entry;
    return ST_OK;
}

static void entry_free_if_empty(struct index *index, struct index_entry *entry)
{
    if (entry->objects.count)
        return;
    hash_map_remove(&index->entries, key_of_entry(entry));
    entry_free(entry);
}

static enum status entry_add(struct indexer *indexer, struct index *index, struct slice value,
                             struct vigil_kube_object *object, void **ret_replaced)
{
    struct index_entry *entry = hash_map_get(&index->entries, value);
    if (!entry)
        TRY(entry_new(indexer, index, value, &entry));
    enum status status = hash_map_put(&entry->objects, object, ret_replaced);
    entry_free_if_empty(index, entry);
    return status;
}

/* Takes the object out, or puts the one back that it had replaced. The object may have a value
 * twice. */
static void entry_undo(struct index *index, struct slice value, struct vigil_kube_object *object,
                       struct vigil_kube_object *replaced)
{
    void *undone;
    struct index_entry *entry = hash_map_get(&index->entries, value);
    if (!entry || hash_map_get(&entry->objects, object_key(object)) != object)
        return;
    if (replaced) {
        enum status status = hash_map_put(&entry->objects, replaced, &undone);
        assert(status == ST_OK); /* it takes the place of one with the same key */
        return;
    }
    hash_map_remove(&entry->objects, object_key(object));
    entry_free_if_empty(index, entry);
}

/* -- One index -- */

/* What one change does to the indexes. */
struct index_change {
    struct vigil_kube_object *object;             /* NULL: it is removed */
    struct vigil_kube_object *old;                /* NULL: there is none */
    struct vigil_kube_index_values *now, *before; /* values of each index, now and before */
    uint32_t added;                               /* values of the object */
    uint32_t replaced;                            /* number of those that the old object had */
};

static void undo_values(struct index *index, const struct index_change *change, size_t i,
                        size_t until)
{
    size_t at = 0, from = 0;
    struct slice value;
    for (; from < until && next_value(&change->now[i], &at, &value); from = at) {
        bool replaces = head_at(&change->now[i], from) & VALUE_REPLACES;
        entry_undo(index, value, change->object, replaces ? change->old : NULL);
    }
}

static enum status add_values(struct indexer *indexer, struct index_change *change, size_t i)
{
    size_t at = 0, from = 0;
    struct slice value;
    void *replaced;
    struct index *index = &indexer->indexes[i];
    for (; next_value(&change->now[i], &at, &value); from = at) {
        enum status status = entry_add(indexer, index, value, change->object, &replaced);
        if (status != ST_OK) {
            undo_values(index, change, i, from);
            return status;
        }
        change->added += replaced != change->object; /* otherwise it has the value twice */
        if (!change->old || replaced != change->old)
            continue;
        uint32_t head = head_at(&change->now[i], from) | VALUE_REPLACES;
        memcpy(change->now[i].bytes.ptr + from, &head, sizeof(head));
        change->replaced++;
    }
    return ST_OK;
}

/* -- Changes -- */

static void change_fini(struct indexer *indexer, struct index_change *change)
{
    for (size_t i = 0; change->now && i < 2 * indexer->index_count; i++)
        buf_fini(&change->now[i].bytes);
    free(change->now);
}

static enum status change_init(struct indexer *indexer, struct vigil_kube_object *object,
                               struct vigil_kube_object *old, struct index_change *change)
{
    size_t count = indexer->index_count;
    *change = (struct index_change){.object = object, .old = old};
    if (count == 0)
        return ST_OK;
    change->now = calloc(2 * count, sizeof(*change->now));
    if (!change->now)
        return ST_NOMEM;
    change->before = change->now + count;
    for (size_t i = 0; i < count; i++) {
        if (object)
            TRY(values_of(&indexer->indexes[i], object, &change->now[i]));
    }
    return ST_OK;
}

/* Without memory for the values of the old object, every entry is searched for it. */
static void drop_everywhere(struct indexer *indexer, struct vigil_kube_object *old)
{
    struct index_entry *entry;
    for (size_t i = 0; i < indexer->index_count; i++) {
        struct index *index = &indexer->indexes[i];
        for (size_t at = 0; (entry = hash_map_each(&index->entries, &at)) != NULL;) {
            if (hash_map_get(&entry->objects, object_key(old)) != old)
                continue;
            hash_map_remove(&entry->objects, object_key(old));
            if (entry->objects.count)
                continue;
            entry_free_if_empty(index, entry);
            at = 0; /* the removal has moved other entries */
        }
    }
}

static enum status read_old_values(struct indexer *indexer, const struct index_change *change)
{
    for (size_t i = 0; i < indexer->index_count; i++)
        TRY(values_of(&indexer->indexes[i], change->old, &change->before[i]));
    return ST_OK;
}

/* An update rarely changes values. If the object has replaced the old one everywhere, the values of
 * the old one are not needed. */
static void drop_old_values(struct indexer *indexer, const struct index_change *change)
{
    if (!change->old || change->replaced == object_indexed(change->old))
        return;
    if (read_old_values(indexer, change) != ST_OK) {
        drop_everywhere(indexer, change->old);
        return;
    }
    for (size_t i = 0; i < indexer->index_count; i++) {
        /* The values that only the old object has: where the new one has not taken its place. A
         * server decides how many values there are, so they are not searched in each other. */
        size_t at = 0;
        struct slice value;
        while (next_value(&change->before[i], &at, &value)) {
            struct slice key = object_key(change->old);
            struct index_entry *entry = hash_map_get(&indexer->indexes[i].entries, value);
            if (!entry || hash_map_get(&entry->objects, key) != change->old)
                continue;
            hash_map_remove(&entry->objects, key);
            entry_free_if_empty(&indexer->indexes[i], entry);
        }
    }
}

static enum status add_to_indexes(struct indexer *indexer, struct index_change *change)
{
    for (size_t i = 0; i < indexer->index_count; i++) {
        enum status status = add_values(indexer, change, i);
        if (status == ST_OK)
            continue;
        while (i-- > 0)
            undo_values(&indexer->indexes[i], change, i, SIZE_MAX);
        return status;
    }
    return ST_OK;
}

static enum status put_changed(struct indexer *indexer, struct index_change *change)
{
    void *replaced;
    TRY(add_to_indexes(indexer, change));
    enum status status = hash_map_put(&indexer->objects, change->object, &replaced);
    if (status == ST_OK) {
        drop_old_values(indexer, change);
        object_set_indexed(change->object, change->added);
        return ST_OK;
    }
    for (size_t i = 0; i < indexer->index_count; i++)
        undo_values(&indexer->indexes[i], change, i, SIZE_MAX);
    return status;
}

enum status indexer_put(struct indexer *indexer, struct vigil_kube_object *object,
                        struct vigil_kube_object **ret_old)
{
    struct index_change change;
    struct vigil_kube_object *old = indexer_get(indexer, object_key(object));
    assert(old != object);
    enum status status = change_init(indexer, object, old, &change);
    if (status == ST_OK)
        status = put_changed(indexer, &change);
    change_fini(indexer, &change);
    if (status != ST_OK)
        return status;
    vigil_kube_object_ref(object);
    indexer->json_bytes += object_sent(object).len - (old ? object_sent(old).len : 0);
    *ret_old = old;
    return ST_OK;
}

struct vigil_kube_object *indexer_remove(struct indexer *indexer, struct slice key)
{
    struct index_change change;
    struct vigil_kube_object *old = indexer_get(indexer, key);
    if (!old)
        return NULL;
    if (change_init(indexer, NULL, old, &change) == ST_OK)
        drop_old_values(indexer, &change);
    else
        drop_everywhere(indexer, old);
    object_set_indexed(old, 0);
    change_fini(indexer, &change);
    hash_map_remove(&indexer->objects, key);
    indexer->json_bytes -= object_sent(old).len;
    return old;
}

/* -- Life -- */

void indexer_init(struct indexer *indexer, uint64_t seed)
{
    *indexer = (struct indexer){.seed = seed};
    hash_map_init(&indexer->objects, key_of_object, seed);
}

static void index_fini(struct index *index)
{
    struct index_entry *entry;
    MAP_FOREACH (entry, &index->entries)
        entry_free(entry);
    hash_map_fini(&index->entries);
    free(index->name);
}

void indexer_fini(struct indexer *indexer)
{
    struct vigil_kube_object *object;
    MAP_FOREACH (object, &indexer->objects)
        vigil_kube_object_unref(object);
    for (size_t i = 0; i < indexer->index_count; i++)
        index_fini(&indexer->indexes[i]);
    hash_map_fini(&indexer->objects);
    free(indexer->indexes);
}

static struct index *index_named(const struct indexer *indexer, const char *name)
{
    for (size_t i = 0; i < indexer->index_count; i++) {
        if (strcmp(indexer->indexes[i].name, name) == 0)
            return &indexer->indexes[i];
    }
    return NULL;
}

bool indexer_has_index(const struct indexer *indexer, const char *name)
{
    return index_named(indexer, name) != NULL;
}

static enum status index_fill(struct indexer *indexer, struct index *index)
{
    void *replaced;
    struct vigil_kube_object *object;
    struct vigil_kube_index_values values = {0};
    enum status status = ST_OK;
    MAP_FOREACH (object, &indexer->objects) {
        size_t at = 0;
        struct slice value;
        status = values_of(index, object, &values);
        while (status == ST_OK && next_value(&values, &at, &value))
            status = entry_add(indexer, index, value, object, &replaced);
        if (status != ST_OK)
            break;
    }
    buf_fini(&values.bytes);
    return status;
}

/* The objects of a new index have more values now. */
static void index_count_values(struct index *index)
{
    struct index_entry *entry;
    struct vigil_kube_object *object;
    MAP_FOREACH (entry, &index->entries)
        MAP_FOREACH (object, &entry->objects)
            object_set_indexed(object, object_indexed(object) + 1);
}

enum status indexer_add_index(struct indexer *indexer, const char *name, vigil_kube_index_fn fn,
                              void *user)
{
    struct index index = {.fn = fn, .user = user};
    if (index_named(indexer, name))
        return ST_EXISTS;
    struct index *more =
        realloc(indexer->indexes, (indexer->index_count + 1) * sizeof(*indexer->indexes));
    if (!more)
        return ST_NOMEM;
    indexer->indexes = more;
    index.name = strdup(name);
    if (!index.name)
        return ST_NOMEM;
    hash_map_init(&index.entries, key_of_entry, indexer->seed);
    /* The objects know of the index only when it is complete. */
    enum status status = index_fill(indexer, &index);
    if (status != ST_OK) {
        index_fini(&index);
        return status;
    }
    index_count_values(&index);
    indexer->indexes[indexer->index_count++] = index;
    return ST_OK;
}

/* -- Reading -- */

struct vigil_kube_object *indexer_get(const struct indexer *indexer, struct slice key)
{
    return hash_map_get(&indexer->objects, key);
}

const struct hash_map *indexer_find(const struct indexer *indexer, const char *index,
                                    struct slice value)
{
    const struct index *found = index_named(indexer, index);
    const struct index_entry *entry = found ? hash_map_get(&found->entries, value) : NULL;
    return entry ? &entry->objects : NULL;
}

/* Returns in how many entries objects are. */
static size_t index_check(const struct indexer *indexer, const struct index *index)
{
    size_t in_entries = 0, values_count = 0;
    const struct index_entry *entry;
    const struct vigil_kube_object *object;
    hash_map_check(&index->entries);
    MAP_FOREACH (entry, &index->entries) {
        assert(entry->objects.count > 0);
        hash_map_check(&entry->objects);
        in_entries += entry->objects.count;
        MAP_FOREACH (object, &entry->objects)
            assert(indexer_get(indexer, object_key(object)) == object);
    }
    MAP_FOREACH (object, &indexer->objects) {
        struct vigil_kube_index_values values = {0};
        enum status status = values_of(index, object, &values);
        assert(status == ST_OK);
        size_t at = 0, seen;
        struct slice value;
        for (seen = 0; next_value(&values, &at, &value); seen++) {
            entry = hash_map_get(&index->entries, value);
            assert(entry && hash_map_get(&entry->objects, object_key(object)) == object);
        }
        values_count += seen;
        buf_fini(&values.bytes);
    }
    assert(in_entries <= values_count); /* an object may name a value twice */
    return in_entries;
}

void indexer_check(const struct indexer *indexer)
{
    size_t json_bytes = 0, indexed = 0;
    const struct vigil_kube_object *object;
    hash_map_check(&indexer->objects);
    MAP_FOREACH (object, &indexer->objects) {
        json_bytes += object_sent(object).len;
        indexed += object_indexed(object);
    }
    assert(json_bytes == indexer->json_bytes);
    for (size_t i = 0; i < indexer->index_count; i++)
        indexed -= index_check(indexer, &indexer->indexes[i]);
    assert(indexed == 0);
}
