#include "kube/policy/admission/amounts/amounts.h"

#include <stdlib.h>

/* No quantity with up to 36 digits is as large. */
static const struct quantity too_large = {.amount = 1, .scale = 99, .format = QUANTITY_EXPONENT};

static int by_name(const void *a, const void *b)
{
    const struct kube_amount *one = a, *other = b;
    return slice_compare(one->name, other->name);
}

static size_t drop_repeats(struct kube_amount *items, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (!kept || !slice_equal(items[kept - 1].name, items[i].name))
            items[kept++] = items[i];
    }
    return kept;
}

enum status kube_amounts_init(struct kube_amounts *amounts, struct arena *arena,
                              const struct slice *names, size_t count)
{
    *amounts = (struct kube_amounts){0};
    if (!count)
        return ST_OK;
    struct kube_amount *items = arena_calloc(arena, count, sizeof(*items));
    if (!items)
        return ST_NOMEM;
    for (size_t i = 0; i < count; i++)
        items[i].name = names[i];
    qsort(items, count, sizeof(*items), by_name);
    *amounts = (struct kube_amounts){.items = items, .count = drop_repeats(items, count)};
    return ST_OK;
}

enum status kube_amounts_same(struct kube_amounts *amounts, struct arena *arena,
                              const struct kube_amounts *as)
{
    *amounts = (struct kube_amounts){0};
    if (!as->count)
        return ST_OK;
    struct kube_amount *items = arena_calloc(arena, as->count, sizeof(*items));
    if (!items)
        return ST_NOMEM;
    for (size_t i = 0; i < as->count; i++)
        items[i].name = as->items[i].name;
    *amounts = (struct kube_amounts){.items = items, .count = as->count};
    return ST_OK;
}

struct kube_amount *kube_amounts_find(const struct kube_amounts *amounts, struct slice name)
{
    const struct kube_amount wanted = {.name = name};
    if (!amounts->count)
        return NULL;
    return bsearch(&wanted, amounts->items, amounts->count, sizeof(wanted), by_name);
}

void kube_amount_add(struct kube_amount *to, const struct quantity *value)
{
    if (!to->known)
        to->value = *value;
    else if (!quantity_add(&to->value, value))
        to->value = too_large;
    to->known = true;
}

void kube_amount_raise(struct kube_amount *to, const struct quantity *value)
{
    if (!to->known || quantity_compare(value, &to->value) > 0)
        to->value = *value;
    to->known = true;
}

static struct slice text_of(const struct json_node *node)
{
    bool has = node && (node->type == JSON_TYPE_STRING || node->type == JSON_TYPE_NUMBER);
    return has ? slice_trim(node->text) : SLICE_EMPTY;
}

struct quantity kube_amount_read(const struct json_node *node)
{
    struct quantity value;
    return quantity_read(text_of(node), &value) ? value : too_large;
}

struct slice kube_amount_text(const struct json_node *node, char to[QUANTITY_BYTES])
{
    return quantity_canonical(text_of(node), false, to);
}
