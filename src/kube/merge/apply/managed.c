#include "kube/merge/apply/managed.h"

#include "codec/kube_time.h"
#include "kube/merge/apply/fields_v1.h"

#include <stdlib.h>

/* -- Fields without owners -- */

#define NAMED(text)                                                                           \
    {                                                                                         \
        .element = {.step = FIELD_NAME, .name = {(const uint8_t *)(text), sizeof(text) - 1}}, \
        .marks = FIELD_MEMBER,                                                                \
    }

/* Sorted, as in every set. */
static struct field_entry of_metadata[] = {
    NAMED("clusterName"),
    NAMED("creationTimestamp"),
    NAMED("generation"),
    NAMED("managedFields"),
    NAMED("name"),
    NAMED("namespace"),
    NAMED("resourceVersion"),
    NAMED("selfLink"),
    NAMED("uid"),
};
static const struct field_set metadata = {of_metadata, COUNT_OF(of_metadata)};
static struct field_entry of_object[] = {
    NAMED("apiVersion"),
    NAMED("kind"),
    {.element = {.step = FIELD_NAME, .name = {(const uint8_t *)"metadata", 8}},
     .marks = FIELD_MEMBER,
     .below = &metadata},
};
const struct field_set managed_unowned = {of_object, COUNT_OF(of_object)};

/* -- Identifiers -- */

static void member(struct json_node *object, struct arena *arena, const char *key,
                   struct slice text, enum status *status)
{
    if (*status != ST_OK || !text.len)
        return;
    struct json_node *node = json_node_new_text(arena, text);
    *status = node ? json_node_set(arena, object, slice_from_text(key), node) : ST_NOMEM;
}

enum status managed_id(struct arena *arena, const struct field_manager *manager,
                       struct slice *ret_id)
{
    AUTO(buf_fini) struct buf text = {0};
    enum status status = ST_OK;
    struct json_node *object = json_node_new(arena, JSON_TYPE_OBJECT);
    if (!object)
        return ST_NOMEM;
    member(object, arena, "manager", manager->name, &status);
    member(object, arena, "operation",
           manager->applied ? SLICE_LITERAL("Apply") : SLICE_LITERAL("Update"), &status);
    /* A manager that applies is the same in every version, so that it need not take over its own
     * fields after an upgrade. */
    member(object, arena, "apiVersion", manager->applied ? SLICE_EMPTY : manager->api_version,
           &status);
    member(object, arena, "subresource", manager->subresource, &status);
    TRY(status);
    TRY(go_json_append(object, &text));
    return arena_dup(arena, buf_slice(&text), ret_id);
}

struct managed_entry *managed_find(const struct managed *managed, struct slice id)
{
    for (size_t i = 0; i < managed->count; i++)
        if (slice_equal(managed->entries[i].id, id))
            return &managed->entries[i];
    return NULL;
}

void managed_drop(struct managed *managed, struct managed_entry *entry)
{
    /* The order is of no importance here: managed_write sorts. */
    *entry = managed->entries[--managed->count];
}

/* -- Entries -- */

enum status managed_add(struct managed *managed, const struct managed_entry *entry)
{
    if (managed->count == MANAGED_ENTRIES_MAX)
        return ST_LIMIT;
    if (managed->count == managed->capacity) {
        size_t capacity = managed->capacity ? managed->capacity * 2 : 8;
        struct managed_entry *entries = arena_calloc(managed->arena, capacity, sizeof(*entries));
        if (!entries)
            return ST_NOMEM;
        if (managed->count)
            memcpy(entries, managed->entries, managed->count * sizeof(*entries));
        managed->entries = entries;
        managed->capacity = capacity;
    }
    managed->entries[managed->count++] = *entry;
    return ST_OK;
}

enum status managed_set(struct managed *managed, const struct field_manager *manager,
                        const struct field_set *set, struct managed_entry **ret_entry)
{
    struct managed_entry entry = {.manager = *manager, .set = set};
    *ret_entry = NULL;
    TRY(managed_id(managed->arena, manager, &entry.id));
    struct managed_entry *found = managed_find(managed, entry.id);
    if (!set) {
        if (found)
            managed_drop(managed, found);
        return ST_OK;
    }
    if (found) {
        /* The time stays. Whether the fields have changed, and with them the time, is decided by
         * the caller. */
        found->set = set;
        found->manager.api_version = manager->api_version;
    } else {
        TRY(managed_add(managed, &entry));
        found = &managed->entries[managed->count - 1];
    }
    *ret_entry = found;
    return ST_OK;
}

/* -- Reading -- */

static enum status get_text(struct arena *arena, const struct json_node *object, const char *key,
                            struct slice *ret_text)
{
    const struct json_node *node = json_node_named(object, key);
    *ret_text = SLICE_EMPTY;
    if (!node || node->type == JSON_TYPE_NULL)
        return ST_OK;
    if (node->type != JSON_TYPE_STRING)
        return ST_MALFORMED;
    return json_node_text(node, arena, ret_text);
}

/* Normalizes to UTC seconds, so that texts sort by time. */
static enum status read_time(struct arena *arena, const struct json_node *node,
                             struct slice *ret_time)
{
    struct slice text;
    int64_t seconds;
    int32_t nanos;
    char utc[KUBE_TIME_BYTES];
    TRY(get_text(arena, node, "time", &text));
    *ret_time = SLICE_EMPTY;
    if (!text.len)
        return ST_OK;
    if (!kube_time_read(text, &seconds, &nanos) || !kube_time_write(seconds, 0, false, utc))
        return ST_MALFORMED;
    return arena_dup(arena, slice_from_text(utc), ret_time);
}

static enum status read_entry(struct arena *arena, const struct json_node *node, size_t *budget,
                              struct managed_entry *entry)
{
    struct slice operation, type;
    struct field_manager *manager = &entry->manager;
    const struct json_node *fields = json_node_named(node, "fieldsV1");
    TRY(get_text(arena, node, "manager", &manager->name));
    TRY(get_text(arena, node, "apiVersion", &manager->api_version));
    TRY(get_text(arena, node, "subresource", &manager->subresource));
    TRY(get_text(arena, node, "operation", &operation));
    TRY(get_text(arena, node, "fieldsType", &type));
    TRY(read_time(arena, node, &entry->time));
    manager->applied = slice_is(operation, "Apply");
    if ((!manager->applied && !slice_is(operation, "Update")) || !manager->api_version.len ||
        !slice_is(type, "FieldsV1"))
        return ST_MALFORMED;
    if (json_node_is_set(fields))
        TRY(fields_v1_read(arena, fields, budget, &entry->set));
    return managed_id(arena, manager, &entry->id);
}

enum status managed_read(struct managed *managed, const struct json_node *list)
{
    size_t budget = FIELDS_V1_STEPS_MAX;
    if (!list || list->type == JSON_TYPE_NULL)
        return ST_OK;
    if (list->type != JSON_TYPE_ARRAY)
        return ST_MALFORMED;
    if (list->count > MANAGED_ENTRIES_MAX)
        return ST_LIMIT;
    for (const struct json_node *node = list->first; node; node = node->next) {
        struct managed_entry entry = {0};
        if (node->type != JSON_TYPE_OBJECT)
            return ST_MALFORMED;
        TRY(read_entry(managed->arena, node, &budget, &entry));
        /* Two entries of one manager can only come from a client. The later one counts. */
        struct managed_entry *same = managed_find(managed, entry.id);
        if (same)
            *same = entry;
        else
            TRY(managed_add(managed, &entry));
    }
    return ST_OK;
}

bool managed_is_reset(const struct json_node *list)
{
    if (!list || list->type != JSON_TYPE_ARRAY)
        return false;
    /* Clients reset the field with [] or [{}]; null leaves it as it is. */
    return !list->first ||
           (list->count == 1 && list->first->type == JSON_TYPE_OBJECT && !list->first->first);
}

/* -- Writing -- */

static int entry_order(const void *a, const void *b)
{
    const struct managed_entry *m = a, *n = b;
    if (m->manager.applied != n->manager.applied)
        return m->manager.applied ? -1 : 1;
    int order = slice_compare(m->time, n->time);
    order = order ? order : slice_compare(m->manager.name, n->manager.name);
    order = order ? order : slice_compare(m->manager.api_version, n->manager.api_version);
    return order ? order : slice_compare(m->manager.subresource, n->manager.subresource);
}

enum status managed_write_entry(struct arena *arena, const struct managed_entry *entry,
                                struct json_node *fields, struct json_node **ret_node)
{
    struct json_node *object = json_node_new(arena, JSON_TYPE_OBJECT);
    enum status status = ST_OK;
    if (!object)
        return ST_NOMEM;
    member(object, arena, "manager", entry->manager.name, &status);
    member(object, arena, "operation",
           entry->manager.applied ? SLICE_LITERAL("Apply") : SLICE_LITERAL("Update"), &status);
    member(object, arena, "apiVersion", entry->manager.api_version, &status);
    member(object, arena, "time", entry->time, &status);
    member(object, arena, "fieldsType", SLICE_LITERAL("FieldsV1"), &status);
    TRY(status);
    TRY(json_node_set(arena, object, SLICE_LITERAL("fieldsV1"), fields));
    member(object, arena, "subresource", entry->manager.subresource, &status);
    *ret_node = object;
    return status;
}

enum status managed_write(const struct managed *managed, struct json_node **ret_list)
{
    *ret_list = NULL;
    if (!managed->count)
        return ST_OK;
    struct json_node *list = json_node_new(managed->arena, JSON_TYPE_ARRAY), *fields, *node;
    if (!list)
        return ST_NOMEM;
    qsort(managed->entries, managed->count, sizeof(*managed->entries), entry_order);
    for (size_t i = 0; i < managed->count; i++) {
        TRY(fields_v1_write(managed->arena, managed->entries[i].set, &fields));
        TRY(managed_write_entry(managed->arena, &managed->entries[i], fields, &node));
        TRY(json_node_insert(list, NULL, node));
    }
    *ret_list = list;
    return ST_OK;
}

/* -- Limiting the number of updates -- */

static int age_order(const void *a, const void *b)
{
    const struct managed_entry *m = a, *n = b;
    /* Updates come first. Entries of appliers are never merged. */
    if (m->manager.applied != n->manager.applied)
        return m->manager.applied ? 1 : -1;
    int order = slice_compare(m->time, n->time);
    return order ? order : slice_compare(m->id, n->id);
}

#define BUCKET SLICE_LITERAL("ancient-changes")

static bool is_bucket(const struct managed_entry *entry)
{
    return slice_equal(entry->manager.name, BUCKET) && !entry->manager.subresource.len;
}

static bool has_bucket(const struct managed *managed, struct slice api_version)
{
    for (size_t i = 0; i < managed->count; i++) {
        const struct managed_entry *entry = &managed->entries[i];
        if (!entry->manager.applied && is_bucket(entry) &&
            slice_equal(entry->manager.api_version, api_version))
            return true;
    }
    return false;
}

static enum status into_bucket(struct managed *managed, struct managed_entry *old)
{
    struct field_manager manager = {.name = BUCKET, .api_version = old->manager.api_version};
    struct managed_entry merged = *old, *bucket;
    struct slice id;
    const struct field_set *set;
    TRY(managed_id(managed->arena, &manager, &id));
    bucket = managed_find(managed, id);
    TRY(field_set_combine(managed->arena, FIELD_UNION, merged.set, bucket ? bucket->set : NULL,
                          &set));
    managed_drop(managed, managed_find(managed, merged.id));
    TRY(managed_set(managed, &manager, set, &bucket));
    if (bucket)
        bucket->time = merged.time;
    return ST_OK;
}

enum status managed_cap(struct managed *managed)
{
    size_t updates = 0;
    for (size_t i = 0; i < managed->count; i++)
        updates += !managed->entries[i].manager.applied;
    if (updates <= MANAGED_UPDATES_MAX)
        return ST_OK;
    struct managed_entry *old = arena_calloc(managed->arena, managed->count, sizeof(*old));
    if (!old)
        return ST_NOMEM;
    memcpy(old, managed->entries, managed->count * sizeof(*old));
    qsort(old, managed->count, sizeof(*old), age_order);
    for (size_t i = 0, all = updates; i < all && updates > MANAGED_UPDATES_MAX; i++) {
        size_t first = 0;
        /* Only entries of one version can be merged, because their paths may differ otherwise. */
        while (!slice_equal(old[first].manager.api_version, old[i].manager.api_version))
            first++;
        /* The oldest entry of a version is merged together with the second one: alone it would only
         * be renamed. */
        if (first == i || is_bucket(&old[i]))
            continue;
        if (!has_bucket(managed, old[i].manager.api_version))
            TRY(into_bucket(managed, &old[first]));
        TRY(into_bucket(managed, &old[i]));
        updates--;
    }
    return ST_OK;
}
