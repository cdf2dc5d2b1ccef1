#include "kube/merge/apply/created.h"

#include "codec/kube_time.h"
#include "kube/merge/apply/fields_v1.h"
#include "kube/merge/apply/typed_private.h"
#include "kube/types/schema/zero.h"

#include <stdlib.h>

static struct field_entry of_status[] = {
    {.element = {.step = FIELD_NAME, .name = {(const uint8_t *)"status", 6}},
     .marks = FIELD_MEMBER},
};
static const struct field_set status_set = {of_status, COUNT_OF(of_status)};

/* -- The walk -- */

struct walk {
    struct arena *arena;
    struct buf step; /* text of one step */
};

/* Where the walk is. */
struct place {
    struct apply_type type;
    bool zero;                     /* every object of the type has this value, at least as zero */
    const struct field_set *none;  /* members that have no owner, though others below them may */
    const struct field_set *reset; /* members without which everything below them is, too */
};

/* What is owned of a value. */
struct part {
    bool whole;             /* the value itself */
    struct json_node *tree; /* and what is below it; NULL: nothing */
};

static enum status walk_value(struct walk *w, const struct place *at, const struct json_node *value,
                              struct part *ret_part);

/* Adds what is owned below a step whose text is in w->step. */
static enum status add(struct walk *w, const struct part *below, struct part *part)
{
    if (!below->whole && !below->tree)
        return ST_OK;
    struct json_node *value = below->tree;
    if (!value)
        value = json_node_new(w->arena, JSON_TYPE_OBJECT);
    if (!part->tree) {
        part->tree = json_node_new(w->arena, JSON_TYPE_OBJECT);
        if (!part->tree)
            return ST_NOMEM;
        if (part->whole)
            TRY(json_node_put(w->arena, part->tree, ".",
                              json_node_new(w->arena, JSON_TYPE_OBJECT)));
    }
    return value ? json_node_set(w->arena, part->tree, buf_slice(&w->step), value) : ST_NOMEM;
}

static const struct field_entry *find(const struct field_set *set, struct slice name)
{
    if (!set)
        return NULL;
    struct field_element element = field_name(name);
    return field_set_find(set, &element);
}

static enum status walk_member(struct walk *w, const struct place *at,
                               const struct apply_rules *rules, const struct json_node *node,
                               struct part *part)
{
    const struct field_entry *none = find(at->none, node->key);
    const struct field_entry *reset = find(at->reset, node->key);
    bool named;
    struct place next = {
        .type = apply_rules_member(at->type, rules, node->key, &named),
        .none = none ? none->below : NULL,
        .reset = reset ? reset->below : NULL,
    };
    struct part below;
    if (reset && reset->marks)
        return ST_OK;
    next.zero = at->zero && next.type.kind == APPLY_TYPE_FIELD && !kube_zero_omits(next.type.of);
    TRY(walk_value(w, &next, node, &below));
    if (none && none->marks) {
        below.whole = false;
        if (below.tree && slice_is(below.tree->first->key, "."))
            json_node_remove(below.tree, json_node_first(below.tree));
    }
    TRY(field_element_write(&(struct field_element){.step = FIELD_NAME, .name = node->key},
                            &w->step));
    return add(w, &below, part);
}

static int member_order(const void *a, const void *b)
{
    return slice_compare((*(const struct json_node *const *)a)->key,
                         (*(const struct json_node *const *)b)->key);
}

static enum status walk_map(struct walk *w, const struct place *at, const struct apply_rules *rules,
                            const struct json_node *map, struct part *part)
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
        TRY(walk_member(w, at, rules, members[i], part));
    return ST_OK;
}

static enum status walk_list(struct walk *w, const struct place *at,
                             const struct apply_rules *rules, const struct json_node *list,
                             struct part *part)
{
    struct error why;
    struct typed typed = {.arena = w->arena, .why = &why};
    struct typed_item *items, *sorted;
    size_t count;
    enum status status = typed_items(&typed, at->type, rules, list, true, &items, &count);
    if (status == ST_INVALID)
        return ST_NOT_FOUND;
    TRY(status);
    TRY(typed_sort(w->arena, items, count, &sorted));
    for (size_t i = 0; i < count; i++) {
        struct place next = {.type = rules->item};
        struct part below;
        if (i && !field_element_compare(&sorted[i - 1].element, &sorted[i].element))
            return ST_NOT_FOUND;
        TRY(walk_value(w, &next, sorted[i].node, &below));
        below.whole = true;
        TRY(field_element_write(&sorted[i].element, &w->step));
        TRY(add(w, &below, part));
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

static enum status walk_value(struct walk *w, const struct place *at, const struct json_node *value,
                              struct part *ret_part)
{
    struct apply_rules rules = apply_rules_of(at->type);
    unsigned forms = apply_rules_forms(&rules, value);
    bool map = forms & APPLY_FORM_MAP, scalar = !map && forms & APPLY_FORM_SCALAR;
    bool empty = !typed_has(value, map ? JSON_TYPE_OBJECT : JSON_TYPE_ARRAY);
    *ret_part = (struct part){.whole = !at->zero};
    if (scalar || empty || (map ? rules.map_atomic : rules.list_atomic)) {
        ret_part->whole = !at->zero || !is_zero(at, value);
        return ST_OK;
    }
    return map ? walk_map(w, at, &rules, value, ret_part)
               : walk_list(w, at, &rules, value, ret_part);
}

enum status created_list(const struct created *created, const struct json_node *object,
                         struct json_node **ret_list)
{
    struct walk w = {.arena = created->arena};
    struct place root = {
        .type = created->type, .zero = true, .none = &managed_unowned, .reset = created->reset};
    struct managed_entry entry = {.manager = created->manager, .time = created->now};
    struct part part;
    struct json_node *node;
    *ret_list = NULL;
    enum status status = walk_value(&w, &root, object, &part);
    buf_fini(&w.step);
    if (status != ST_OK || !part.tree)
        return status;
    struct json_node *list = json_node_new(created->arena, JSON_TYPE_ARRAY);
    if (!list)
        return ST_NOMEM;
    TRY(managed_write_entry(created->arena, &entry, part.tree, &node));
    TRY(json_node_insert(list, NULL, node));
    *ret_list = list;
    return ST_OK;
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
