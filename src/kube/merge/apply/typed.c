#include "kube/merge/apply/fields_v1.h"
#include "kube/merge/apply/typed_private.h"
#include "kube/merge/patch/print.h"

#include <stdio.h>
#include <stdlib.h>

/* -- Items of lists -- */

static enum status invalid(struct error *why, const char *text)
{
    return error_set(why, ST_INVALID, "%s", text);
}

/* The keys of a list as Go prints them: ["name" "port"]. */
static enum status omits_keys(struct apply_type list, struct error *why)
{
    AUTO(buf_fini) struct buf names = {0};
    struct apply_type_key key;
    for (size_t at = 0; apply_type_key(list, &at, &key);)
        TRY(buf_append_format(&names, "%s\"%.*s\"", names.len ? " " : "", SLICE_ARGS(key.name)));
    return error_set(why, ST_INVALID,
                     "associative list with keys has an element that omits all key fields [%.*s] "
                     "(and doesn't have default values for any key fields)",
                     SLICE_ARGS(buf_slice(&names)));
}

static enum status key_value(struct arena *arena, const struct apply_type_key *key,
                             const struct json_node *item, struct json_node **ret_value)
{
    struct error error;
    const struct json_node *value = json_node_member(item, key->name);
    struct json_node *preset;
    *ret_value = NULL;
    if (!value)
        value = key->preset_node;
    if (!value && key->preset.len) {
        TRY(json_tree_read(arena, key->preset, &preset, &error));
        value = preset;
    }
    if (!value)
        return ST_OK;
    if (value->type == JSON_TYPE_ARRAY || value->type == JSON_TYPE_OBJECT)
        return ST_INVALID;
    *ret_value = field_scalar(arena, value);
    return *ret_value ? ST_OK : ST_NOMEM;
}

/* Inserts a key member sorted by name. */
static enum status put_key(struct arena *arena, struct json_node *to, struct slice name,
                           struct json_node *value)
{
    struct json_node *next[FIELD_KEY_MEMBERS_MAX];
    size_t count = 0;
    if (to->count >= FIELD_KEY_MEMBERS_MAX)
        return ST_LIMIT;
    for (struct json_node *member = json_node_first(to); member; member = json_node_next(member)) {
        if (slice_compare(member->key, name) > 0)
            next[count++] = member;
    }
    TRY(json_node_set(arena, to, name, value));
    for (size_t i = 0; i < count; i++) {
        json_node_remove(to, next[i]);
        TRY(json_node_set(arena, to, next[i]->key, next[i]));
    }
    return ST_OK;
}

static enum status keyed(struct arena *arena, struct apply_type list, const struct json_node *item,
                         struct field_element *ret_element, struct error *why)
{
    struct json_node *keys = json_node_new(arena, JSON_TYPE_OBJECT);
    struct apply_type_key key;
    if (item->type == JSON_TYPE_NULL)
        return invalid(why, "associative list with keys may not have a null element");
    if (item->type != JSON_TYPE_OBJECT)
        return invalid(why, "associative list with keys may not have non-map elements");
    if (!keys)
        return ST_NOMEM;
    for (size_t at = 0; apply_type_key(list, &at, &key);) {
        struct json_node *value;
        enum status status = key_value(arena, &key, item, &value);
        if (status == ST_INVALID)
            return invalid(why, "associative list with keys has a key that is not a scalar");
        TRY(status);
        if (value)
            TRY(put_key(arena, keys, key.name, value));
    }
    if (!keys->count)
        return omits_keys(list, why);
    *ret_element = (struct field_element){.step = FIELD_KEY, .value = keys};
    return ST_OK;
}

enum status typed_element(struct arena *arena, struct apply_type list,
                          const struct apply_rules *rules, const struct json_node *item,
                          struct field_element *ret_element, struct error *why)
{
    if (rules->list_keyed)
        return keyed(arena, list, item, ret_element, why);
    switch (item->type) {
    case JSON_TYPE_OBJECT:
        return invalid(why, "associative list without keys has an element that's a map type");
    case JSON_TYPE_ARRAY:
        return invalid(why, "not supported: associative list with lists as elements");
    case JSON_TYPE_NULL:
        return invalid(why, "associative list without keys has an element that's an explicit null");
    default:
        *ret_element =
            (struct field_element){.step = FIELD_VALUE, .value = field_scalar(arena, item)};
        return ret_element->value ? ST_OK : ST_NOMEM;
    }
}

enum status typed_items(const struct typed *typed, struct apply_type type,
                        const struct apply_rules *rules, const struct json_node *list, bool strict,
                        struct typed_item **ret_items, size_t *ret_count)
{
    *ret_items = NULL;
    *ret_count = 0;
    if (!typed_has(list, JSON_TYPE_ARRAY))
        return ST_OK;
    struct typed_item *items = arena_calloc(typed->arena, list->count, sizeof(*items));
    if (!items)
        return ST_NOMEM;
    size_t at = 0;
    for (const struct json_node *node = list->first; node; node = node->next, at++) {
        struct error why = {0};
        struct typed_item *item = &items[at];
        enum status status = typed_element(typed->arena, type, rules, node, &item->element, &why);
        if (status == ST_INVALID && strict)
            return error_set(typed->why, status, "element %zu: %s", at, why.text);
        /* An item that cannot be identified gets an index that no path has. */
        if (status == ST_INVALID)
            item->element = (struct field_element){.step = FIELD_INDEX, .index = -1};
        else
            TRY(status);
        item->node = node;
        item->at = at;
    }
    *ret_items = items;
    *ret_count = at;
    return ST_OK;
}

static int item_order(const void *a, const void *b)
{
    const struct typed_item *m = a, *n = b;
    /* Equal elements keep their order in the list, since qsort alone would not. */
    int order = field_element_compare(&m->element, &n->element);
    return order ? order : (m->at > n->at) - (m->at < n->at);
}

enum status typed_sort(struct arena *arena, const struct typed_item *items, size_t count,
                       struct typed_item **ret_sorted)
{
    *ret_sorted = NULL;
    if (!count)
        return ST_OK;
    *ret_sorted = arena_calloc(arena, count, sizeof(**ret_sorted));
    if (!*ret_sorted)
        return ST_NOMEM;
    memcpy(*ret_sorted, items, count * sizeof(*items));
    /* Most lists are in order. */
    size_t sorted = 1;
    while (sorted < count && item_order(&items[sorted - 1], &items[sorted]) < 0)
        sorted++;
    if (sorted < count)
        qsort(*ret_sorted, count, sizeof(**ret_sorted), item_order);
    return ST_OK;
}

size_t typed_find(const struct typed_item *sorted, size_t count,
                  const struct field_element *element)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (field_element_compare(&sorted[middle].element, element) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && !field_element_compare(&sorted[low].element, element) ? low : count;
}

/* -- The fields of a value -- */

struct found_fields {
    bool member;
    const struct field_set *below;
};

static enum status fields_of(const struct typed *typed, struct apply_type type,
                             const struct json_node *value, struct found_fields *found);

static enum status fields_of_map(const struct typed *typed, struct apply_type type,
                                 const struct apply_rules *rules, const struct json_node *map,
                                 const struct field_set **ret_set)
{
    struct field_builder builder = {.arena = typed->arena};
    for (const struct json_node *node = map->first; node; node = node->next) {
        struct found_fields found = {0};
        bool named;
        struct apply_type member = apply_rules_member(type, rules, node->key, &named);
        TRY(fields_of(typed, member, node, &found));
        /* A member without anything below it must itself be owned, or its owner could not remove
         * it. */
        bool empty =
            node->type == JSON_TYPE_NULL || (node->type == JSON_TYPE_OBJECT && !node->first);
        TRY(field_builder_add(&builder, field_name(node->key), found.member || empty || !named,
                              found.below));
    }
    return field_builder_finish(&builder, ret_set);
}

/*
 * An item that occurs more than once is owned as a whole. An element that cannot be identified is a
 * remnant of pruning: it has no owner, but the list itself exists.
 */
static enum status fields_of_list(const struct typed *typed, struct apply_type type,
                                  const struct apply_rules *rules, const struct json_node *list,
                                  const struct field_set **ret_set)
{
    struct field_builder builder = {.arena = typed->arena};
    struct typed_item *items, *sorted;
    size_t count;
    TRY(typed_items(typed, type, rules, list, false, &items, &count));
    TRY(typed_sort(typed->arena, items, count, &sorted));
    for (size_t i = 0, next; i < count; i = next) {
        struct found_fields found = {0};
        for (next = i + 1; next < count; next++)
            if (field_element_compare(&sorted[i].element, &sorted[next].element))
                break;
        if (next == i + 1)
            TRY(fields_of(typed, rules->item, sorted[i].node, &found));
        TRY(field_builder_add(&builder, sorted[i].element, FIELD_MEMBER, found.below));
    }
    return field_builder_finish(&builder, ret_set);
}

static enum status fields_of(const struct typed *typed, struct apply_type type,
                             const struct json_node *value, struct found_fields *found)
{
    struct apply_rules rules = apply_rules_of(type);
    unsigned forms = apply_rules_forms(&rules, value);
    if (forms & APPLY_FORM_MAP) {
        found->member = rules.map_atomic;
        if (!rules.map_atomic && value->type == JSON_TYPE_OBJECT)
            return fields_of_map(typed, type, &rules, value, &found->below);
        return ST_OK;
    }
    found->member = forms & APPLY_FORM_SCALAR || rules.list_atomic;
    if (forms & APPLY_FORM_LIST && !found->member && value->type == JSON_TYPE_ARRAY)
        return fields_of_list(typed, type, &rules, value, &found->below);
    return ST_OK;
}

enum status typed_fields(const struct typed *typed, struct apply_type type,
                         const struct json_node *value, const struct field_set **ret_set)
{
    struct found_fields found = {0};
    TRY(fields_of(typed, type, value, &found));
    *ret_set = found.below;
    return ST_OK;
}

/* -- Comparing -- */

struct compared {
    unsigned marks;
    const struct field_set *below;
    bool leaf; /* compared as a whole, and marked */
};

static enum status compare(const struct typed *typed, struct apply_type type,
                           const struct json_node *before, const struct json_node *after,
                           struct compared *ret_compared);

static void compare_leaf(const struct json_node *before, const struct json_node *after,
                         struct compared *out)
{
    if (out->leaf)
        return;
    out->leaf = true;
    if (!before)
        out->marks |= FIELD_ADDED;
    else if (!after)
        out->marks |= FIELD_REMOVED;
    else if (!json_node_equal(before, after))
        out->marks |= FIELD_MODIFIED;
}

static enum status compare_member(const struct typed *typed, struct apply_type type,
                                  const struct apply_rules *rules, const struct json_node *before,
                                  const struct json_node *after, struct field_builder *builder)
{
    struct compared compared = {0};
    struct slice key = before ? before->key : after->key;
    bool named;
    struct apply_type member = apply_rules_member(type, rules, key, &named);
    TRY(compare(typed, member, before, after, &compared));
    return field_builder_add(builder, field_name(key), compared.marks, compared.below);
}

static enum status compare_maps(const struct typed *typed, struct apply_type type,
                                const struct apply_rules *rules, const struct json_node *before,
                                const struct json_node *after, const struct field_set **ret_set)
{
    struct field_builder builder = {.arena = typed->arena};
    bool was = typed_has(before, JSON_TYPE_OBJECT), is = typed_has(after, JSON_TYPE_OBJECT);
    for (const struct json_node *node = was ? before->first : NULL; node; node = node->next) {
        const struct json_node *other = is ? json_node_member(after, node->key) : NULL;
        TRY(compare_member(typed, type, rules, node, other, &builder));
    }
    for (const struct json_node *node = is ? after->first : NULL; node; node = node->next) {
        if (!was || !json_node_member(before, node->key))
            TRY(compare_member(typed, type, rules, NULL, node, &builder));
    }
    return field_builder_finish(&builder, ret_set);
}

/* The items with one element in two lists. */
struct same_items {
    const struct typed_item *before, *after;
    size_t before_count, after_count;
};

static bool same_items_equal(const struct same_items *same)
{
    if (same->before_count != same->after_count)
        return false;
    for (size_t i = 0; i < same->before_count; i++)
        if (!json_node_equal(same->before[i].node, same->after[i].node))
            return false;
    return true;
}

static enum status compare_same_items(const struct typed *typed, const struct apply_rules *rules,
                                      const struct same_items *same, struct field_builder *builder)
{
    struct compared compared = {0};
    const struct field_element *element =
        same->before_count ? &same->before->element : &same->after->element;
    const struct json_node *before = same->before_count ? same->before->node : NULL;
    const struct json_node *after = same->after_count ? same->after->node : NULL;
    if (same->before_count <= 1 && same->after_count <= 1) {
        TRY(compare(typed, rules->item, before, after, &compared));
    } else if (same->before_count > 1 && same->after_count > 1) {
        /* Which of the repeated items corresponds to which is unknown, so they are compared as
         * one. */
        compared.marks = same_items_equal(same) ? 0 : FIELD_MODIFIED;
    } else if (same->before_count > 1) {
        if (after)
            TRY(compare(typed, rules->item, NULL, after, &compared));
        compared.marks |= FIELD_REMOVED;
    } else {
        if (before)
            TRY(compare(typed, rules->item, before, NULL, &compared));
        compared.marks |= FIELD_ADDED;
    }
    return field_builder_add(builder, *element, compared.marks, compared.below);
}

static size_t same_from(const struct typed_item *sorted, size_t count, size_t from)
{
    size_t to = from + 1;
    while (to < count && !field_element_compare(&sorted[from].element, &sorted[to].element))
        to++;
    return to - from;
}

static enum status compare_lists(const struct typed *typed, struct apply_type type,
                                 const struct apply_rules *rules, const struct json_node *before,
                                 const struct json_node *after, const struct field_set **ret_set)
{
    struct field_builder builder = {.arena = typed->arena};
    struct typed_item *items, *was, *is;
    size_t was_count, is_count, i = 0, j = 0;
    TRY(typed_items(typed, type, rules, before, true, &items, &was_count));
    TRY(typed_sort(typed->arena, items, was_count, &was));
    TRY(typed_items(typed, type, rules, after, true, &items, &is_count));
    TRY(typed_sort(typed->arena, items, is_count, &is));
    while (i < was_count || j < is_count) {
        struct same_items same = {0};
        /* Both lists are sorted by element, so one pass finds what they share. */
        int order = i == was_count  ? 1
                    : j == is_count ? -1
                                    : field_element_compare(&was[i].element, &is[j].element);
        if (order <= 0) {
            same.before = &was[i];
            i += same.before_count = same_from(was, was_count, i);
        }
        if (order >= 0) {
            same.after = &is[j];
            j += same.after_count = same_from(is, is_count, j);
        }
        TRY(compare_same_items(typed, rules, &same, &builder));
    }
    return field_builder_finish(&builder, ret_set);
}

static enum status compare_as(const struct typed *typed, struct apply_type type,
                              const struct apply_rules *rules, unsigned forms,
                              const struct json_node *before, const struct json_node *after,
                              struct compared *out)
{
    const struct field_set *below = NULL;
    bool map = forms & APPLY_FORM_MAP, scalar = !map && forms & APPLY_FORM_SCALAR;
    enum json_type container = map ? JSON_TYPE_OBJECT : JSON_TYPE_ARRAY;
    bool empty = !typed_has(before, container) && !typed_has(after, container);
    if (scalar || empty || (map ? rules->map_atomic : rules->list_atomic)) {
        compare_leaf(before, after, out);
        return ST_OK;
    }
    if (map)
        TRY(compare_maps(typed, type, rules, before, after, &below));
    else
        TRY(compare_lists(typed, type, rules, before, after, &below));
    return field_set_combine(typed->arena, FIELD_UNION, out->below, below, &out->below);
}

/* A value that changes its form is compared both in its old and in its new form. */
static enum status compare(const struct typed *typed, struct apply_type type,
                           const struct json_node *before, const struct json_node *after,
                           struct compared *ret_compared)
{
    struct apply_rules rules = apply_rules_of(type);
    unsigned was = apply_rules_forms(&rules, before), is = apply_rules_forms(&rules, after);
    struct compared out = {0};
    if (before && after && was != is) {
        TRY(compare_as(typed, type, &rules, was, before, after, &out));
        out.leaf = false;
    }
    TRY(compare_as(typed, type, &rules, after ? is : was, before, after, &out));
    if (!out.leaf && !before)
        out.marks |= FIELD_ADDED;
    else if (!out.leaf && !after)
        out.marks |= FIELD_REMOVED;
    *ret_compared = out;
    return ST_OK;
}

enum status typed_compare(const struct typed *typed, struct apply_type type,
                          const struct json_node *before, const struct json_node *after,
                          const struct field_set **ret_marked)
{
    struct compared compared = {0};
    TRY(compare(typed, type, before, after, &compared));
    *ret_marked = compared.below;
    return ST_OK;
}

/* -- Adapting sets to types -- */

static struct apply_type type_below(struct apply_type type, const struct apply_rules *rules,
                                    const struct field_element *element, bool *ret_named)
{
    *ret_named = false;
    if (element->step == FIELD_NAME && rules->forms & APPLY_FORM_MAP)
        return apply_rules_member(type, rules, element->name, ret_named);
    if (element->step == FIELD_KEY && rules->forms & APPLY_FORM_LIST)
        return rules->item;
    return (struct apply_type){.kind = APPLY_TYPE_NOTHING};
}

enum status typed_with_named(const struct typed *typed, struct apply_type type,
                             const struct field_set *set, const struct field_set **ret_set)
{
    struct field_builder builder = {.arena = typed->arena};
    struct apply_rules rules = apply_rules_of(type);
    for (size_t i = 0; set && i < set->count; i++) {
        const struct field_entry *entry = &set->entries[i];
        const struct field_set *below;
        bool named;
        struct apply_type next = type_below(type, &rules, &entry->element, &named);
        TRY(typed_with_named(typed, next, entry->below, &below));
        TRY(field_builder_add(&builder, entry->element, entry->marks || (named && below), below));
    }
    return field_builder_finish(&builder, ret_set);
}

enum status typed_reconcile(const struct typed *typed, struct apply_type type,
                            const struct field_set *set, const struct field_set **ret_set)
{
    struct field_builder builder = {.arena = typed->arena};
    struct apply_rules rules = apply_rules_of(type);
    for (size_t i = 0; set && i < set->count; i++) {
        const struct field_entry *entry = &set->entries[i];
        const struct field_set *below = entry->below;
        bool named;
        struct apply_type next = type_below(type, &rules, &entry->element, &named);
        struct apply_rules of = apply_rules_of(next);
        bool whole = below && next.kind != APPLY_TYPE_NOTHING &&
                     (of.forms & APPLY_FORM_MAP ? of.map_atomic
                                                : of.forms == APPLY_FORM_LIST && of.list_atomic);
        /* The type has become atomic since the fields were recorded: the owner of a part now owns
         * the whole. */
        if (whole)
            below = NULL;
        else
            TRY(typed_reconcile(typed, next, below, &below));
        TRY(field_builder_add(&builder, entry->element, whole ? FIELD_MEMBER : entry->marks,
                              below));
    }
    return field_builder_finish(&builder, ret_set);
}

/* -- Validation -- */

struct typed_check {
    struct arena *arena;
    struct buf *errors;
    struct buf path;
    size_t count;
};

static enum status check(struct typed_check *c, struct apply_type type,
                         const struct json_node *value);

static enum status report(struct typed_check *c, const char *text)
{
    /* Further errors are only counted. */
    if (c->count++ >= TYPED_ERRORS_MAX)
        return ST_OK;
    TRY(buf_append_text(c->errors, c->errors->len ? "\n" : ""));
    TRY(buf_append(c->errors, buf_slice(&c->path)));
    TRY(buf_append_text(c->errors, c->path.len ? ": " : ""));
    return buf_append_text(c->errors, text);
}

static enum status report_type(struct typed_check *c, const char *wanted,
                               const struct json_node *value)
{
    char text[PRINT_BYTES + 64], shown[PRINT_BYTES];
    snprintf(text, sizeof(text), "expected %s, got &{%s}", wanted, print_go(value, shown));
    return report(c, text);
}

/* Go's %#v of the value: &value.valueUnstructured{Value:1}. */
static enum status report_string(struct typed_check *c, const struct json_node *value)
{
    char text[PRINT_BYTES + 96], shown[PRINT_BYTES];
    const char *type = value->type == JSON_TYPE_OBJECT  ? "map[string]interface {}"
                       : value->type == JSON_TYPE_ARRAY ? "[]interface {}"
                                                        : "";
    const char *open = type[0] ? "{" : "", *close = type[0] ? "}" : "";
    snprintf(text, sizeof(text), "expected string, got &value.valueUnstructured{Value:%s%s%s%s}",
             type, open, print_go(value, shown), close);
    return report(c, text);
}

static enum status check_scalar(struct typed_check *c, const struct apply_rules *rules,
                                const struct json_node *value)
{
    char text[96];
    if (value->type == JSON_TYPE_NULL)
        return ST_OK;
    switch (rules->scalar) {
    case APPLY_SCALAR_STRING:
        return value->type == JSON_TYPE_STRING ? ST_OK : report_string(c, value);
    case APPLY_SCALAR_BOOLEAN:
        return value->type == JSON_TYPE_BOOL ? ST_OK : report_type(c, "boolean", value);
    case APPLY_SCALAR_NUMERIC:
        if (value->type == JSON_TYPE_NUMBER)
            return ST_OK;
        snprintf(text, sizeof(text), "expected numeric (int or float), got %s",
                 print_go_type(value));
        return report(c, text);
    default:
        if (value->type == JSON_TYPE_OBJECT || value->type == JSON_TYPE_ARRAY)
            return report_type(c, "any scalar", value);
        return ST_OK;
    }
}

static enum status check_members(struct typed_check *c, struct apply_type type,
                                 const struct apply_rules *rules, const struct json_node *map)
{
    size_t len = c->path.len;
    for (const struct json_node *node = map->first; node; node = node->next) {
        struct field_element element = field_name(node->key);
        bool named;
        struct apply_type member = apply_rules_member(type, rules, node->key, &named);
        TRY(field_element_append(&element, c->arena, &c->path));
        if (member.kind == APPLY_TYPE_NOTHING) {
            /* The first unknown field ends the check of this map. */
            TRY(report(c, "field not declared in schema"));
            c->path.len = len;
            return ST_OK;
        }
        TRY(check(c, member, node));
        c->path.len = len;
    }
    return ST_OK;
}

/* Reports each element that occurs again. */
static enum status check_unique(struct typed_check *c, const struct typed_item *items, size_t count)
{
    struct typed_item *sorted;
    TRY(typed_sort(c->arena, items, count, &sorted));
    for (size_t i = 1; i < count; i++) {
        AUTO(buf_fini) struct buf text = {0};
        if (field_element_compare(&sorted[i - 1].element, &sorted[i].element))
            continue;
        TRY(buf_append_text(&text, "duplicate entries for key "));
        TRY(field_element_append(&sorted[i].element, c->arena, &text));
        TRY(buf_append(&text, slice_of("", 1)));
        TRY(report(c, (const char *)text.ptr));
    }
    return ST_OK;
}

static enum status check_items(struct typed_check *c, struct apply_type type,
                               const struct apply_rules *rules, const struct json_node *list)
{
    size_t len = c->path.len, at = 0;
    struct typed_item *items = arena_calloc(c->arena, list->count + 1, sizeof(*items));
    if (!items)
        return ST_NOMEM;
    for (const struct json_node *node = list->first; node; node = node->next, at++) {
        struct error why = {0};
        struct field_element *element = &items[at].element;
        items[at].at = at;
        *element = (struct field_element){.step = FIELD_INDEX, .index = (int64_t)at};
        enum status status =
            rules->list_atomic ? ST_OK : typed_element(c->arena, type, rules, node, element, &why);
        if (status == ST_INVALID) {
            char text[sizeof(((struct error *)0)->text) + 40];
            snprintf(text, sizeof(text), "element %zu: %s", at, why.text);
            return report(c, text);
        }
        TRY(status);
        TRY(field_element_append(element, c->arena, &c->path));
        TRY(check(c, rules->item, node));
        c->path.len = len;
    }
    return rules->list_atomic ? ST_OK : check_unique(c, items, at);
}

static enum status check(struct typed_check *c, struct apply_type type,
                         const struct json_node *value)
{
    struct apply_rules rules = apply_rules_of(type);
    unsigned forms = apply_rules_forms(&rules, value);
    if (forms & APPLY_FORM_MAP) {
        if (value->type == JSON_TYPE_NULL)
            return ST_OK;
        if (value->type != JSON_TYPE_OBJECT)
            return report_type(c, "map", value);
        return check_members(c, type, &rules, value);
    }
    if (forms & APPLY_FORM_SCALAR)
        return check_scalar(c, &rules, value);
    if (value->type == JSON_TYPE_NULL)
        return ST_OK;
    if (value->type != JSON_TYPE_ARRAY)
        return report_type(c, "list", value);
    return check_items(c, type, &rules, value);
}

enum status typed_validate(struct arena *arena, struct apply_type type,
                           const struct json_node *value, struct buf *errors, size_t *ret_count)
{
    struct typed_check c = {.arena = arena, .errors = errors};
    enum status status = check(&c, type, value);
    buf_fini(&c.path);
    *ret_count = c.count;
    return status;
}
