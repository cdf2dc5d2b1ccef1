#include "kube/merge/apply/created.h"

#include "codec/json/plain.h"
#include "codec/json/writer.h"
#include "codec/kube_time.h"
#include "kube/merge/apply/fields_v1.h"
#include "kube/merge/apply/typed_private.h"
#include "kube/types/schema/zero.h"

#include <stdio.h>
#include <stdlib.h>

static struct field_entry of_status[] = {
    {.element = {.step = FIELD_NAME, .name = {(const uint8_t *)"status", 6}},
     .marks = FIELD_MEMBER},
};
static const struct field_set status_set = {of_status, COUNT_OF(of_status)};

/* -- The walk -- */

enum {
    KEY_BYTES_MAX = 64,
    USUAL_BYTES = 4096, /* so that the text of most objects is not reallocated */
};

/* The text of fieldsV1 grows at its end. What turns out to have no owner is cut off again. */
struct walk {
    struct arena *arena;
    struct buf text;
    struct buf step; /* text of one step */
};

/* Where the walk is. */
struct place {
    struct apply_type type;
    bool zero;                     /* every object of the type has this value, at least as zero */
    bool unowned;                  /* the value has no owner, though what is below it may */
    const struct field_set *none;  /* members that have no owner, though others below them may */
    const struct field_set *reset; /* members without which everything below them is, too */
};

static enum status walk_value(struct walk *w, const struct place *at, const struct json_node *value,
                              bool *ret_owned);

static const struct field_entry *find(const struct field_set *set, struct slice name)
{
    if (!set)
        return NULL;
    struct field_element element = field_name(name);
    return field_set_find(set, &element);
}

static bool is_plain(struct slice text)
{
    bool beyond_ascii = false;
    const uint8_t *end = text.ptr + text.len;
    return json_plain_end(text.ptr, end, &beyond_ascii) == end && !beyond_ascii;
}

static inline uint8_t *put(uint8_t *at, struct slice bytes)
{
    slice_copy(at, bytes);
    return at + bytes.len;
}

/* ,"BEFORE name AFTER": for a name that needs no escapes. */
static inline enum status write_quoted(struct walk *w, bool is_first, struct slice before,
                                       struct slice name, struct slice after)
{
    TRY(buf_reserve(&w->text, before.len + name.len + after.len + 4));
    uint8_t *at = w->text.ptr + w->text.len;
    if (!is_first)
        *at++ = ',';
    *at++ = '"';
    at = put(put(put(at, before), name), after);
    *at++ = '"';
    *at++ = ':';
    w->text.len = (size_t)(at - w->text.ptr);
    return ST_OK;
}

/* is_declared: it is the name of a field of a built-in type. */
static enum status write_step(struct walk *w, const struct field_element *element, bool is_declared,
                              bool is_first)
{
    struct json_writer writer;
    if (element->step == FIELD_NAME && (is_declared || is_plain(element->name)))
        return write_quoted(w, is_first, SLICE_LITERAL("f:"), element->name, SLICE_EMPTY);
    if (!is_first)
        TRY(buf_append(&w->text, SLICE_LITERAL(",")));
    TRY(field_element_write(element, &w->step));
    json_writer_init(&writer, &w->text);
    json_string(&writer, buf_slice(&w->step));
    TRY(json_writer_finish(&writer));
    return buf_append(&w->text, SLICE_LITERAL(":"));
}

/* Writes what is owned of a value below a step. begin: where the members of the parent begin. */
static enum status walk_below(struct walk *w, const struct field_element *element,
                              const struct place *at, const struct json_node *value, size_t begin)
{
    size_t before = w->text.len;
    bool owned, is_declared = at->type.kind == APPLY_TYPE_FIELD;
    TRY(write_step(w, element, is_declared, before == begin));
    TRY(walk_value(w, at, value, &owned));
    if (!owned)
        w->text.len = before;
    return ST_OK;
}

static enum status walk_member(struct walk *w, const struct place *at,
                               const struct apply_rules *rules, const struct json_node *node,
                               size_t begin)
{
    const struct field_entry *none = find(at->none, node->key);
    const struct field_entry *reset = find(at->reset, node->key);
    struct field_element element = field_name(node->key);
    bool named;
    struct place next = {
        .type = apply_rules_member(at->type, rules, node->key, &named),
        .unowned = none && none->marks,
        .none = none ? none->below : NULL,
        .reset = reset ? reset->below : NULL,
    };
    if (reset && reset->marks)
        return ST_OK;
    next.zero = at->zero && next.type.kind == APPLY_TYPE_FIELD && !kube_zero_omits(next.type.of);
    return walk_below(w, &element, &next, node, begin);
}

static int member_order(const void *a, const void *b)
{
    return slice_compare((*(const struct json_node *const *)a)->key,
                         (*(const struct json_node *const *)b)->key);
}

static enum status walk_map(struct walk *w, const struct place *at, const struct apply_rules *rules,
                            const struct json_node *map, size_t begin)
{
    const struct json_node **members = arena_alloc(w->arena, map->count * sizeof(*members));
    size_t count = 0;
    bool sorted = true;
    if (!members)
        return ST_NOMEM;
    for (const struct json_node *node = map->first; node; node = node->next) {
        sorted = sorted && (!count || slice_compare(members[count - 1]->key, node->key) < 0);
        members[count++] = node;
    }
    if (!sorted)
        qsort(members, count, sizeof(*members), member_order);
    for (size_t i = 0; i < count; i++)
        TRY(walk_member(w, at, rules, members[i], begin));
    return ST_OK;
}

/* Whether neither JSON nor Go escape anything in it. */
static bool is_plain_in_go(struct slice text)
{
    static const bool is_escaped[256] = {[0 ... ' ' - 1] = true, ['"'] = true, ['\\'] = true,
                                         ['<'] = true,           ['>'] = true, ['&'] = true,
                                         [128 ... 255] = true};
    for (size_t i = 0; i < text.len; i++)
        if (is_escaped[text.ptr[i]])
            return false;
    return true;
}

/* The text of an item's key; empty: it needs escapes, or is absent. */
static struct slice plain_key(const struct json_node *item, struct slice name)
{
    const struct json_node *key = json_node_member(item, name);
    bool plain = key && key->type == JSON_TYPE_STRING && !key->escaped && is_plain_in_go(key->text);
    return plain ? key->text : SLICE_EMPTY;
}

/* Whether the items of the list have one key, and which. */
static bool has_one_key(const struct place *at, const struct apply_rules *rules,
                        struct slice *ret_name)
{
    struct apply_type_key key, other;
    size_t keys = 0;
    if (!rules->list_keyed || !apply_type_key(at->type, &keys, &key) ||
        key.name.len > KEY_BYTES_MAX || !is_plain_in_go(key.name) ||
        apply_type_key(at->type, &keys, &other))
        return false;
    *ret_name = key.name;
    return true;
}

/* Finds the keys of all items. False: they are not plain texts that are different and in order. */
static bool find_plain_keys(const struct json_node *list, struct slice name, struct slice *texts)
{
    struct slice last = SLICE_EMPTY;
    for (const struct json_node *item = list->first; item; item = item->next) {
        struct slice text = item->type == JSON_TYPE_OBJECT ? plain_key(item, name) : SLICE_EMPTY;
        if (!text.len || slice_compare(last, text) >= 0)
            return false;
        last = *texts++ = text;
    }
    return true;
}

/* Whether two items have the same members, all of them scalars: then the same is owned of both. */
static bool are_alike(const struct json_node *a, const struct json_node *b)
{
    const struct json_node *x = a->first, *y = b->first;
    if (a->count != b->count)
        return false;
    for (; x; x = x->next, y = y->next)
        if (x->type == JSON_TYPE_NULL || x->type >= JSON_TYPE_ARRAY || y->type == JSON_TYPE_NULL ||
            y->type >= JSON_TYPE_ARRAY || !slice_equal(x->key, y->key))
            return false;
    return true;
}

/* Writes the bytes [from, to) of the text again. */
static enum status repeat(struct walk *w, size_t from, size_t to)
{
    TRY(buf_reserve(&w->text, to - from));
    memcpy(w->text.ptr + w->text.len, w->text.ptr + from, to - from);
    w->text.len += to - from;
    return ST_OK;
}

/* The usual list: containers, variables, volumes. */
static enum status walk_plainly_keyed(struct walk *w, const struct apply_rules *rules,
                                      const struct json_node *list, struct slice name,
                                      const struct slice *texts, size_t begin)
{
    const struct place next = {.type = rules->item};
    char before[KEY_BYTES_MAX + 16];
    size_t last_from = 0, last_to = 0; /* what was written of the item before */
    bool owned;
    int len = snprintf(before, sizeof(before), "k:{\\\"%.*s\\\":\\\"", SLICE_ARGS(name));
    for (const struct json_node *item = list->first; item; item = item->next) {
        TRY(write_quoted(w, w->text.len == begin, slice_of(before, (size_t)len), *texts++,
                         SLICE_LITERAL("\\\"}")));
        size_t from = w->text.len;
        TRY(item->prev && are_alike(item->prev, item) ? repeat(w, last_from, last_to)
                                                      : walk_value(w, &next, item, &owned));
        last_from = from;
        last_to = w->text.len;
    }
    return ST_OK;
}

static enum status walk_list(struct walk *w, const struct place *at,
                             const struct apply_rules *rules, const struct json_node *list,
                             size_t begin)
{
    struct error why;
    struct typed typed = {.arena = w->arena, .why = &why};
    const struct place next = {.type = rules->item};
    struct typed_item *items, *sorted;
    struct slice name;
    size_t count;
    if (has_one_key(at, rules, &name)) {
        struct slice *texts = arena_alloc(w->arena, list->count * sizeof(*texts));
        if (!texts)
            return ST_NOMEM;
        if (find_plain_keys(list, name, texts))
            return walk_plainly_keyed(w, rules, list, name, texts, begin);
    }
    enum status status = typed_items(&typed, at->type, rules, list, true, &items, &count);
    if (status == ST_INVALID)
        return ST_NOT_FOUND;
    TRY(status);
    TRY(typed_sort(w->arena, items, count, &sorted));
    for (size_t i = 0; i < count; i++) {
        if (i && !field_element_compare(&sorted[i - 1].element, &sorted[i].element))
            return ST_NOT_FOUND;
        TRY(walk_below(w, &sorted[i].element, &next, sorted[i].node, begin));
    }
    return ST_OK;
}

/* Whether the value is the zero value of the field: an empty struct is never owned. */
static bool is_zero(const struct place *at, const struct json_node *value)
{
    const struct kube_field *field = at->type.of;
    if (at->type.kind != APPLY_TYPE_FIELD || field->shape != KUBE_SHAPE_ONE ||
        field->flags & KUBE_FIELD_POINTER)
        return value->type == JSON_TYPE_NULL;
    return kube_is_zero(value);
}

/* Whether every value of the type is a leaf: a text, a number or a bool of a built-in type. */
static bool is_scalar(struct apply_type type)
{
    const struct kube_field *field = type.of;
    return type.kind == APPLY_TYPE_FIELD && field->shape == KUBE_SHAPE_ONE &&
           (field->value < KUBE_VALUE_MESSAGE ||
            (field->value >= KUBE_VALUE_TIME && field->value <= KUBE_VALUE_QUANTITY));
}

static enum status write_leaf(struct walk *w, const struct place *at, const struct json_node *value,
                              bool *ret_owned)
{
    *ret_owned = !at->unowned && (!at->zero || !is_zero(at, value));
    return *ret_owned ? buf_append(&w->text, SLICE_LITERAL("{}")) : ST_OK;
}

/* Writes {}, or the value's own mark and what is owned below it: {".":{},"f:name":{}}. */
static enum status walk_value(struct walk *w, const struct place *at, const struct json_node *value,
                              bool *ret_owned)
{
    if (is_scalar(at->type))
        return write_leaf(w, at, value, ret_owned);
    struct apply_rules rules = apply_rules_of(at->type);
    unsigned forms = apply_rules_forms(&rules, value);
    bool map = forms & APPLY_FORM_MAP, scalar = !map && forms & APPLY_FORM_SCALAR;
    bool empty = !typed_has(value, map ? JSON_TYPE_OBJECT : JSON_TYPE_ARRAY);
    bool whole = !at->unowned && !at->zero;
    if (scalar || empty || (map ? rules.map_atomic : rules.list_atomic))
        return write_leaf(w, at, value, ret_owned);
    TRY(buf_append(&w->text, whole ? SLICE_LITERAL("{\".\":{}") : SLICE_LITERAL("{")));
    size_t below = w->text.len, begin = whole ? below - SLICE_LITERAL("\".\":{}").len : below;
    TRY(map ? walk_map(w, at, &rules, value, begin) : walk_list(w, at, &rules, value, begin));
    *ret_owned = whole || w->text.len > below;
    if (w->text.len == below)
        w->text.len = begin;
    return buf_append(&w->text, SLICE_LITERAL("}"));
}

static enum status write_fields(struct walk *w, const struct created *created,
                                const struct json_node *object, bool *ret_owned)
{
    const struct place root = {
        .type = created->type, .zero = true, .none = &managed_unowned, .reset = created->reset};
    TRY(buf_reserve(&w->text, USUAL_BYTES));
    return walk_value(w, &root, object, ret_owned);
}

enum status created_list(const struct created *created, const struct json_node *object,
                         struct json_node **ret_list)
{
    struct walk w = {.arena = created->arena};
    struct managed_entry entry = {.manager = created->manager, .time = created->now};
    struct json_node *node, *fields = NULL;
    bool owned = false;
    *ret_list = NULL;
    enum status status = write_fields(&w, created, object, &owned);
    if (status == ST_OK && owned)
        fields = json_node_new_raw(created->arena, buf_slice(&w.text));
    buf_fini(&w.step);
    buf_fini(&w.text);
    if (status != ST_OK || !owned)
        return status;
    struct json_node *list = json_node_new(created->arena, JSON_TYPE_ARRAY);
    if (!fields || !list)
        return ST_NOMEM;
    TRY(managed_write_entry(created->arena, &entry, fields, &node));
    TRY(json_node_insert(list, NULL, node));
    *ret_list = list;
    return ST_OK;
}

enum status created_expand(struct arena *arena, struct json_node *object)
{
    struct json_node *entry = json_node_item(json_node_path(object, "metadata.managedFields"), 0);
    const struct json_node *raw = json_node_named(entry, "fieldsV1");
    struct json_node *fields;
    struct error ignored;
    if (!raw || raw->type != JSON_TYPE_NUMBER)
        return ST_OK;
    enum status status = json_tree_read(arena, raw->text, &fields, &ignored);
    return status == ST_OK ? json_node_set(arena, entry, SLICE_LITERAL("fieldsV1"), fields)
                           : status;
}

enum status created_by_server(struct arena *arena, const struct kube_kind *kind, int64_t now_s,
                              struct json_node *object)
{
    char version[KUBE_API_VERSION_BYTES], now[KUBE_TIME_BYTES];
    struct json_node *list, *metadata_node = json_node_named(object, "metadata");
    struct created created = {
        .arena = arena,
        .type = {.kind = APPLY_TYPE_MESSAGE, .of = kube_type_of_kind(kind)},
        .reset = kind->flags & KUBE_HAS_STATUS ? &status_set : NULL,
        .manager = {.name = strcmp(kind->group, "flowcontrol.apiserver.k8s.io") == 0
                                ? SLICE_LITERAL("api-priority-and-fairness-config-producer-v1")
                                : SLICE_LITERAL("kube-apiserver")},
    };
    assert(metadata_node);
    if (!created.type.of)
        created.type.kind = APPLY_TYPE_DEDUCED;
    kube_kind_api_version(kind, version);
    kube_time_text(now_s, now);
    created.manager.api_version = slice_from_text(version);
    created.now = slice_from_text(now);
    TRY(created_list(&created, object, &list));
    return list ? json_node_put(arena, metadata_node, "managedFields", list) : ST_OK;
}
