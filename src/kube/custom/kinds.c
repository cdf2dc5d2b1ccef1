#include "kube/custom/kinds.h"

#include "base/xalloc.h"

#include <stdlib.h>

struct kube_kinds {
    unsigned refs;
    const struct kube_kind **rows; /* owned */
    size_t row_count;
    struct kube_definition **definitions; /* owned, each a counted reference; sorted by name */
    size_t definition_count;
};

/* -- Order -- */

static bool is_of_builtin_group(const struct kube_kind *kind)
{
    const struct kube_custom *custom = kube_custom_of(kind);
    return !custom || custom->definition->builtin_group;
}

static int row_order(const void *a, const void *b)
{
    const struct kube_kind *x = *(const struct kube_kind *const *)a;
    const struct kube_kind *y = *(const struct kube_kind *const *)b;
    int order = strcmp(x->group, y->group);
    if (order && (x->flags | y->flags) & KUBE_CUSTOM) {
        bool own = is_of_builtin_group(x), other = is_of_builtin_group(y);
        if (own != other)
            return own ? -1 : 1;
    }
    if (!order)
        order = strcmp(x->version, y->version);
    return order ? order : strcmp(x->plural, y->plural);
}

static int definition_order(const void *a, const void *b)
{
    return slice_compare((*(struct kube_definition *const *)a)->name,
                         (*(struct kube_definition *const *)b)->name);
}

/* -- The set of kinds -- */

/* A definition cannot replace a built-in kind. */
static bool is_builtin(const struct kube_kind *kind)
{
    return kube_builtin_find(slice_from_text(kind->group), slice_from_text(kind->version),
                             slice_from_text(kind->plural));
}

static void add_rows(struct kube_kinds *kinds)
{
    size_t builtin, count;
    const struct kube_kind *own = kube_builtin_kinds(&builtin);
    count = builtin;
    for (size_t i = 0; i < kinds->definition_count; i++)
        count += kinds->definitions[i]->version_count;
    kinds->rows = xcalloc(count, sizeof(*kinds->rows));
    for (size_t i = 0; i < builtin; i++)
        kinds->rows[kinds->row_count++] = &own[i];
    for (size_t i = 0; i < kinds->definition_count; i++) {
        const struct kube_definition *d = kinds->definitions[i];
        for (size_t k = 0; k < d->version_count; k++)
            if (d->established && d->versions[k].served && !is_builtin(&d->versions[k].kind))
                kinds->rows[kinds->row_count++] = &d->versions[k].kind;
    }
    qsort(kinds->rows, kinds->row_count, sizeof(*kinds->rows), row_order);
}

struct kube_kinds *kube_kinds_new(struct kube_definition *const *definitions, size_t count)
{
    struct kube_kinds *kinds = xcalloc(1, sizeof(*kinds));
    kinds->refs = 1;
    kinds->definitions = count ? xcalloc(count, sizeof(*kinds->definitions)) : NULL;
    kinds->definition_count = count;
    for (size_t i = 0; i < count; i++)
        kinds->definitions[i] = kube_definition_ref(definitions[i]);
    if (count)
        qsort(kinds->definitions, count, sizeof(*kinds->definitions), definition_order);
    add_rows(kinds);
    return kinds;
}

struct kube_kinds *kube_kinds_ref(struct kube_kinds *kinds)
{
    kinds->refs++;
    return kinds;
}

void kube_kinds_unref(struct kube_kinds *kinds)
{
    if (!kinds || --kinds->refs)
        return;
    for (size_t i = 0; i < kinds->definition_count; i++)
        kube_definition_unref(kinds->definitions[i]);
    free(kinds->definitions);
    free(kinds->rows);
    free(kinds);
}

void kube_kinds_check(const struct kube_kinds *kinds)
{
    size_t builtin;
    (void)kube_builtin_kinds(&builtin);
    assert(kinds->refs);
    assert(kinds->row_count >= builtin);
    for (size_t i = 1; i < kinds->row_count; i++)
        assert(row_order(&kinds->rows[i - 1], &kinds->rows[i]) < 0);
    for (size_t i = 1; i < kinds->definition_count; i++)
        assert(definition_order(&kinds->definitions[i - 1], &kinds->definitions[i]) < 0);
}

const struct kube_kind *const *kube_kinds_rows(const struct kube_kinds *kinds, size_t *ret_count)
{
    *ret_count = kinds->row_count;
    return kinds->rows;
}

struct kube_definition *const *kube_kinds_definitions(const struct kube_kinds *kinds,
                                                      size_t *ret_count)
{
    *ret_count = kinds->definition_count;
    return kinds->definitions;
}

static int name_order(const void *key, const void *row)
{
    return slice_compare(*(const struct slice *)key, (*(struct kube_definition *const *)row)->name);
}

struct kube_definition *kube_kinds_definition(const struct kube_kinds *kinds, struct slice name)
{
    if (!kinds->definition_count)
        return NULL;
    struct kube_definition **found = bsearch(&name, kinds->definitions, kinds->definition_count,
                                             sizeof(*kinds->definitions), name_order);
    return found ? *found : NULL;
}

const struct kube_kind *kube_kinds_find(const struct kube_kinds *kinds, struct slice group,
                                        struct slice version, struct slice plural)
{
    const struct kube_kind *builtin = kube_builtin_find(group, version, plural);
    char name[1024];
    if (builtin || plural.len + group.len + 1 > sizeof(name))
        return builtin;
    slice_copy(name, plural);
    name[plural.len] = '.';
    slice_copy(name + plural.len + 1, group);
    struct kube_definition *d =
        kube_kinds_definition(kinds, slice_of(name, plural.len + 1 + group.len));
    for (size_t i = 0; d && d->established && i < d->version_count; i++)
        if (d->versions[i].served &&
            slice_equal(version, slice_from_text(d->versions[i].kind.version)))
            return &d->versions[i].kind;
    return NULL;
}
