/* Validation of lists of type set and map, and of embedded resources. */
#include "kube/custom/schema/structural.h"
#include "kube/types/go_text.h"

#include <stdlib.h>

struct item_path {
    const struct item_path *up;
    struct slice key;
    size_t index;
    enum { PATH_MEMBER, PATH_ENTRY /* entry of a map */, PATH_ITEM } kind;
};

struct list_validation {
    struct arena *arena;
    struct kube_field_errors *errors;
    bool embedded; /* checks embedded resources; else lists */
};

static void walk(struct list_validation *r, const struct schema *s, const struct json_node *value,
                 const struct item_path *at);

static enum status append_path(const struct item_path *at, struct buf *to)
{
    if (!at)
        return ST_OK;
    TRY(append_path(at->up, to));
    if (at->kind == PATH_ITEM)
        return buf_append_format(to, "[%zu]", at->index);
    if (at->kind == PATH_ENTRY)
        return buf_append_format(to, "[%.*s]", SLICE_ARGS(at->key));
    return buf_append_format(to, "%s%.*s", to->len ? "." : "", SLICE_ARGS(at->key));
}

static void report(struct list_validation *r, const struct item_path *at, const char *reason,
                   struct slice message)
{
    AUTO(buf_fini) struct buf path = {0};
    if (append_path(at, &path) != ST_OK)
        r->errors->no_memory = true;
    else
        kube_field_errors_add(r->errors, reason, buf_slice(&path), "%.*s", SLICE_ARGS(message));
}

/* -- Sets and maps -- */

struct keyed_item {
    struct slice key;
    size_t at;
};

static int entry_order(const void *a, const void *b)
{
    const struct keyed_item *x = a, *y = b;
    int order = slice_compare(x->key, y->key);
    return order ? order : (x->at > y->at) - (x->at < y->at);
}

static int index_order(const void *a, const void *b)
{
    const struct keyed_item *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

/* Appends the keys that the item has: {"name":"a","port":80}. */
static enum status append_keys(const struct schema *s, const struct json_node *item, struct buf *to)
{
    bool first = true;
    TRY(buf_append_text(to, "{"));
    for (size_t i = 0; i < s->more->list_keys.count; i++) {
        const struct json_node *key = json_node_member(item, s->more->list_keys.names[i]);
        if (!key)
            continue;
        TRY(buf_append_format(to, "%s\"%.*s\":", first ? "" : ",",
                              SLICE_ARGS(s->more->list_keys.names[i])));
        TRY(json_tree_write(key, to));
        first = false;
    }
    return buf_append_text(to, "}");
}

/* The text that identifies an item, as it is shown in errors. */
static enum status make_key(struct list_validation *r, const struct schema *s,
                            const struct json_node *item, struct slice *ret_key)
{
    AUTO(buf_fini) struct buf text = {0};
    if (s->list_type == SCHEMA_LIST_MAP && item->type == JSON_TYPE_OBJECT)
        TRY(append_keys(s, item, &text));
    else if (s->list_type == SCHEMA_LIST_MAP)
        TRY(buf_append_text(&text, "{}"));
    else
        TRY(json_tree_write(item, &text));
    return arena_dup(r->arena, buf_slice(&text), ret_key);
}

static void report_duplicate(struct list_validation *r, const struct item_path *at,
                             const struct keyed_item *entry)
{
    AUTO(buf_fini) struct buf message = {0};
    struct item_path path = {.up = at, .index = entry->at, .kind = PATH_ITEM};
    if (buf_append_format(&message, "Duplicate value: %.*s",
                          (int)size_min(entry->key.len, GO_SHOWN_BYTES_MAX),
                          (const char *)entry->key.ptr) != ST_OK)
        r->errors->no_memory = true;
    else
        report(r, &path, "FieldValueDuplicate", buf_slice(&message));
}

/* Whether a list of type map has only objects and null; the first other item is reported. */
static bool are_objects(struct list_validation *r, const struct schema *s,
                        const struct json_node *array, const struct item_path *at)
{
    AUTO(buf_fini) struct buf message = {0};
    struct item_path path = {.up = at, .kind = PATH_ITEM};
    const struct json_node *item = s->list_type == SCHEMA_LIST_MAP ? array->first : NULL;
    for (; item && (item->type == JSON_TYPE_OBJECT || item->type == JSON_TYPE_NULL);
         item = item->next)
        path.index++;
    if (!item)
        return true;
    if (buf_append_text(&message, "Invalid value: ") != ST_OK ||
        go_value_append(item, r->arena, &message) != ST_OK ||
        buf_append_text(&message, ": must be an object for an array of list-type map") != ST_OK)
        r->errors->no_memory = true;
    else
        report(r, &path, "FieldValueInvalid", buf_slice(&message));
    return false;
}

/* Reports the second of each group of duplicates, in the order of the list. */
static void check_unique(struct list_validation *r, const struct schema *s,
                         const struct json_node *array, const struct item_path *at)
{
    struct keyed_item *entries = arena_calloc(r->arena, array->count, sizeof(*entries));
    size_t count = 0, twice = 0;
    for (const struct json_node *item = array->first; entries && item; item = item->next, count++) {
        entries[count].at = count;
        if (make_key(r, s, item, &entries[count].key) != ST_OK)
            entries = NULL;
    }
    if (!entries) {
        r->errors->no_memory = true;
        return;
    }
    qsort(entries, count, sizeof(*entries), entry_order);
    for (size_t i = 1; i < count; i++) {
        bool third = i > 1 && slice_equal(entries[i].key, entries[i - 2].key);
        if (!third && slice_equal(entries[i].key, entries[i - 1].key))
            entries[twice++] = entries[i];
    }
    qsort(entries, twice, sizeof(*entries), index_order);
    for (size_t i = 0; i < twice; i++)
        report_duplicate(r, at, &entries[i]);
}

/* -- Embedded resources -- */

static void check_embedded(struct list_validation *r, const struct json_node *object,
                           const struct item_path *at)
{
    static const char *const names[] = {"apiVersion", "kind"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct item_path path = {.up = at, .key = slice_from_text(names[i])};
        const struct json_node *member = json_node_named(object, names[i]);
        if (!member)
            report(r, &path, "FieldValueRequired", SLICE_LITERAL("Required value"));
        else if (member->type == JSON_TYPE_STRING && !member->text.len)
            report(r, &path, "FieldValueInvalid",
                   SLICE_LITERAL("Invalid value: \"\": must not be empty"));
    }
}

/* -- Traversal -- */

static void walk_object(struct list_validation *r, const struct schema *s,
                        const struct json_node *object, const struct item_path *at)
{
    if (s->embedded && r->embedded)
        check_embedded(r, object, at);
    for (const struct json_node *member = object->first; member; member = member->next) {
        struct item_path path = {.up = at, .key = member->key};
        const struct schema *property = schema_property(s, member->key);
        path.kind = property ? PATH_MEMBER : PATH_ENTRY;
        if (!property)
            property = s->additional;
        if (property)
            walk(r, property, member, &path);
    }
}

static void walk(struct list_validation *r, const struct schema *s, const struct json_node *value,
                 const struct item_path *at)
{
    size_t index = 0;
    if (value->type == JSON_TYPE_OBJECT)
        walk_object(r, s, value, at);
    if (value->type != JSON_TYPE_ARRAY)
        return;
    if (s->list_type != SCHEMA_LIST_ATOMIC && !r->embedded && are_objects(r, s, value, at) &&
        value->count > 1)
        check_unique(r, s, value, at);
    for (const struct json_node *item = value->first; s->items && item; item = item->next) {
        struct item_path path = {.up = at, .index = index, .kind = PATH_ITEM};
        walk(r, s->items, item, &path);
        index++;
    }
}

void schema_validate_embedded(const struct schema *schema, const struct json_node *value,
                              struct arena *arena, struct kube_field_errors *errors)
{
    struct list_validation r = {.arena = arena, .errors = errors, .embedded = true};
    walk(&r, schema, value, NULL);
}

void schema_validate_lists(const struct schema *schema, const struct json_node *value,
                           struct arena *arena, struct kube_field_errors *errors)
{
    struct list_validation r = {.arena = arena, .errors = errors};
    walk(&r, schema, value, NULL);
}
