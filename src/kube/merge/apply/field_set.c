#include "kube/merge/apply/field_set.h"

#include "codec/json/number.h"

#include <stdlib.h>

/* -- Order -- */

static double as_double(const struct json_node *node)
{
    char text[64];
    size_t len = size_min(node->text.len, sizeof(text) - 1);
    memcpy(text, node->text.ptr, len);
    text[len] = 0;
    return strtod(text, NULL);
}

static int compare_numbers(const struct json_node *a, const struct json_node *b)
{
    int64_t m, n;
    if (json_number_i64(a->text, &m) && json_number_i64(b->text, &n))
        return (m > n) - (m < n);
    /* Numbers that do not both fit into int64 are compared as Go compares floats. */
    double x = as_double(a), y = as_double(b);
    return (x > y) - (x < y);
}

int field_value_compare(const struct json_node *a, const struct json_node *b)
{
    static const int ranks[] = {
        [JSON_TYPE_NUMBER] = 0, [JSON_TYPE_STRING] = 1, [JSON_TYPE_BOOL] = 2,
        [JSON_TYPE_ARRAY] = 3,  [JSON_TYPE_OBJECT] = 4, [JSON_TYPE_NULL] = 5,
    };
    /* The order among types is that of Kubernetes' structured-merge-diff. It decides the order in
     * fieldsV1. */
    if (a->type != b->type)
        return ranks[a->type] - ranks[b->type];
    switch (a->type) {
    case JSON_TYPE_NUMBER:
        return compare_numbers(a, b);
    case JSON_TYPE_STRING:
        return slice_compare(a->text, b->text); /* without escapes, see field_scalar */
    case JSON_TYPE_BOOL:
        return (int)a->truth - (int)b->truth;
    default:
        return 0;
    }
}

static int compare_keys(const struct json_node *a, const struct json_node *b)
{
    const struct json_node *m = a->first, *n = b->first;
    for (; m && n; m = m->next, n = n->next) {
        int order = slice_compare(m->key, n->key);
        if (!order)
            order = field_value_compare(m, n);
        if (order)
            return order;
    }
    return (m != NULL) - (n != NULL);
}

int field_element_compare(const struct field_element *a, const struct field_element *b)
{
    if (a->step != b->step)
        return (int)a->step - (int)b->step;
    switch (a->step) {
    case FIELD_NAME:
        return slice_compare(a->name, b->name);
    case FIELD_KEY:
        return compare_keys(a->value, b->value);
    case FIELD_VALUE:
        return field_value_compare(a->value, b->value);
    default:
        return (a->index > b->index) - (a->index < b->index);
    }
}

struct field_element field_name(struct slice name)
{
    return (struct field_element){.step = FIELD_NAME, .name = name};
}

const struct field_entry *field_set_find(const struct field_set *set,
                                         const struct field_element *element)
{
    size_t low = 0, high = set ? set->count : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = field_element_compare(&set->entries[middle].element, element);
        if (!order)
            return &set->entries[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

size_t field_set_count(const struct field_set *set)
{
    size_t count = 0;
    for (size_t i = 0; set && i < set->count; i++)
        count += (set->entries[i].marks ? 1 : 0) + field_set_count(set->entries[i].below);
    return count;
}

bool field_set_equal(const struct field_set *a, const struct field_set *b)
{
    if (a == b)
        return true;
    if (!a || !b || a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        const struct field_entry *m = &a->entries[i], *n = &b->entries[i];
        if (!m->marks != !n->marks || field_element_compare(&m->element, &n->element) ||
            !field_set_equal(m->below, n->below))
            return false;
    }
    return true;
}

/* -- Building -- */

static enum status grow(struct field_builder *builder)
{
    size_t capacity = builder->capacity ? builder->capacity * 2 : 8;
    struct field_entry *entries = arena_calloc(builder->arena, capacity, sizeof(*entries));
    if (!entries)
        return ST_NOMEM;
    if (builder->count)
        memcpy(entries, builder->entries, builder->count * sizeof(*entries));
    builder->entries = entries;
    builder->capacity = capacity;
    return ST_OK;
}

enum status field_builder_add(struct field_builder *builder, struct field_element element,
                              unsigned marks, const struct field_set *below)
{
    /* A set has no entries that say nothing. */
    if (!marks && !below)
        return ST_OK;
    if (builder->count == builder->capacity)
        TRY(grow(builder));
    if (builder->count &&
        field_element_compare(&builder->entries[builder->count - 1].element, &element) >= 0)
        builder->unsorted = true;
    builder->entries[builder->count++] =
        (struct field_entry){.element = element, .marks = marks, .below = below};
    return ST_OK;
}

static int entry_order(const void *a, const void *b)
{
    return field_element_compare(&((const struct field_entry *)a)->element,
                                 &((const struct field_entry *)b)->element);
}

static enum status join_equals(struct field_builder *builder)
{
    size_t kept = 0;
    for (size_t i = 1; i < builder->count; i++) {
        struct field_entry *last = &builder->entries[kept], *entry = &builder->entries[i];
        if (field_element_compare(&last->element, &entry->element)) {
            builder->entries[++kept] = *entry;
            continue;
        }
        last->marks |= entry->marks;
        TRY(field_set_combine(builder->arena, FIELD_UNION, last->below, entry->below,
                              &last->below));
    }
    builder->count = kept + 1;
    return ST_OK;
}

enum status field_builder_finish(struct field_builder *builder, const struct field_set **ret_set)
{
    *ret_set = NULL;
    if (!builder->count)
        return ST_OK;
    /* Most sets are built in order, and sorting them again would cost more than building. */
    if (builder->unsorted) {
        qsort(builder->entries, builder->count, sizeof(*builder->entries), entry_order);
        TRY(join_equals(builder));
    }
    struct field_set *set = arena_calloc(builder->arena, 1, sizeof(*set));
    if (!set)
        return ST_NOMEM;
    set->entries = builder->entries;
    set->count = builder->count;
    *ret_set = set;
    return ST_OK;
}

enum status field_set_of_path(struct arena *arena, const char *const *names, size_t count,
                              const struct field_set **ret_set)
{
    const struct field_set *below = NULL;
    for (size_t i = count; i; i--) {
        struct field_builder builder = {.arena = arena};
        TRY(field_builder_add(&builder, field_name(slice_from_text(names[i - 1])), i == count,
                              below));
        TRY(field_builder_finish(&builder, &below));
    }
    *ret_set = below;
    return ST_OK;
}

/* -- Combining -- */

static enum status combine_entries(struct field_builder *builder, enum field_operation operation,
                                   const struct field_entry *a, const struct field_entry *b)
{
    const struct field_set *below = NULL;
    unsigned marks;
    switch (operation) {
    case FIELD_UNION:
        marks = a->marks | b->marks;
        break;
    case FIELD_INTERSECTION:
        marks = a->marks && b->marks ? FIELD_MEMBER : 0;
        break;
    default:
        marks = b->marks ? 0 : a->marks;
        /* Removing a field removes everything below it. */
        if (operation == FIELD_RECURSIVE_DIFFERENCE && b->marks)
            return ST_OK;
        break;
    }
    TRY(field_set_combine(builder->arena, operation, a->below, b->below, &below));
    return field_builder_add(builder, a->element, marks, below);
}

static enum status combine_level(struct field_builder *builder, enum field_operation operation,
                                 const struct field_set *a, const struct field_set *b)
{
    size_t i = 0, j = 0;
    while (i < a->count || j < b->count) {
        const struct field_entry *m = i < a->count ? &a->entries[i] : NULL;
        const struct field_entry *n = j < b->count ? &b->entries[j] : NULL;
        int order = !m ? 1 : !n ? -1 : field_element_compare(&m->element, &n->element);
        i += order <= 0;
        j += order >= 0;
        if (order < 0 && operation != FIELD_INTERSECTION)
            TRY(field_builder_add(builder, m->element, m->marks, m->below));
        else if (order > 0 && operation == FIELD_UNION)
            TRY(field_builder_add(builder, n->element, n->marks, n->below));
        else if (!order)
            TRY(combine_entries(builder, operation, m, n));
    }
    return ST_OK;
}

enum status field_set_combine(struct arena *arena, enum field_operation operation,
                              const struct field_set *a, const struct field_set *b,
                              const struct field_set **ret_set)
{
    struct field_builder builder = {.arena = arena};
    if (!a || !b) {
        *ret_set = operation == FIELD_INTERSECTION ? NULL
                   : operation == FIELD_UNION      ? (a ? a : b)
                                                   : a;
        return ST_OK;
    }
    TRY(combine_level(&builder, operation, a, b));
    return field_builder_finish(&builder, ret_set);
}

enum status field_set_select(struct arena *arena, const struct field_set *set, unsigned marks,
                             const struct field_set **ret_set)
{
    struct field_builder builder = {.arena = arena};
    for (size_t i = 0; set && i < set->count; i++) {
        const struct field_entry *entry = &set->entries[i];
        const struct field_set *below;
        TRY(field_set_select(arena, entry->below, marks, &below));
        TRY(field_builder_add(&builder, entry->element, entry->marks & marks ? FIELD_MEMBER : 0,
                              below));
    }
    return field_builder_finish(&builder, ret_set);
}
