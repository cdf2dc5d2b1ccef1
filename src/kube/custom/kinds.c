#include "kube/custom/kinds.h"

#include "base/xalloc.h"

#include <stdlib.h>

struct kube_kinds {
    unsigned refs;
    const struct kube_kind **rows; /* owned; NULL: not needed so far */
    size_t row_count;
    struct kube_definition **definitions; /* owned, each a counted reference; sorted by name */
    size_t definition_count;
    bool *omitted; /* owned; for each definition: not served, because of KUBE_KINDS_MAX */
    size_t omitted_count;
};

/* -- Order -- */

static bool is_of_builtin_group(const struct kube_kind *kind)
{
    const struct kube_custom *custom = kube_custom_of(kind);
    return !custom || custom->definition->builtin_group;
}

/* A row while the rows are sorted, with what would be expensive to determine in each comparison. */
struct row {
    const struct kube_kind *kind;
    struct kube_version_rank rank;
    bool builtin_group;
};

static struct row row_of(const struct kube_kind *kind)
{
    return (struct row){kind, kube_version_rank(kind->version), is_of_builtin_group(kind)};
}

static int row_order(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int order = strcmp(x->kind->group, y->kind->group);
    if (order && x->builtin_group != y->builtin_group)
        return x->builtin_group ? -1 : 1;
    if (!order)
        order = kube_version_rank_compare(&x->rank, &y->rank);
    return order ? order : strcmp(x->kind->plural, y->kind->plural);
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

static size_t count_rows(const struct kube_kinds *kinds)
{
    size_t count;
    (void)kube_builtin_kinds(&count);
    for (size_t i = 0; i < kinds->definition_count; i++)
        count += kinds->definitions[i]->version_count;
    return count;
}

/* Adds the kinds that definition i serves. Returns the new number of rows. */
static size_t add_rows_of(const struct kube_kinds *kinds, size_t i, struct row *rows, size_t count)
{
    const struct kube_definition *d = kinds->definitions[i];
    bool serves = d->established && !kinds->omitted[i];
    for (size_t k = 0; serves && k < d->version_count; k++)
        if (d->versions[k].served && !is_builtin(&d->versions[k].kind))
            rows[count++] = row_of(&d->versions[k].kind);
    return count;
}

static void make_rows(struct kube_kinds *kinds)
{
    size_t builtin, count = 0;
    const struct kube_kind *own = kube_builtin_kinds(&builtin);
    struct row *rows = xcalloc(count_rows(kinds) + 1, sizeof(*rows));
    for (size_t i = 0; i < builtin; i++)
        rows[count++] = row_of(&own[i]);
    for (size_t i = 0; i < kinds->definition_count; i++)
        count = add_rows_of(kinds, i, rows, count);
    qsort(rows, count, sizeof(*rows), row_order);
    kinds->rows = xcalloc(count + 1, sizeof(*kinds->rows));
    kinds->row_count = count;
    for (size_t i = 0; i < count; i++)
        kinds->rows[i] = rows[i].kind;
    free(rows);
}

/* Those that come first by name are served, so that all threads serve the same. */
static void omit(struct kube_kinds *kinds)
{
    size_t versions = 0;
    for (size_t i = 0; i < kinds->definition_count; i++) {
        size_t more = kinds->definitions[i]->version_count;
        kinds->omitted[i] = versions + more > KUBE_KINDS_MAX;
        kinds->omitted_count += kinds->omitted[i];
        versions += kinds->omitted[i] ? 0 : more;
    }
}

struct kube_kinds *kube_kinds_new(struct kube_definition *const *definitions, size_t count)
{
    struct kube_kinds *kinds = xcalloc(1, sizeof(*kinds));
    kinds->refs = 1;
    kinds->definitions = count ? xcalloc(count, sizeof(*kinds->definitions)) : NULL;
    kinds->omitted = xcalloc(count + 1, sizeof(*kinds->omitted));
    kinds->definition_count = count;
    for (size_t i = 0; i < count; i++)
        kinds->definitions[i] = kube_definition_ref(definitions[i]);
    if (count)
        qsort(kinds->definitions, count, sizeof(*kinds->definitions), definition_order);
    omit(kinds);
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
    free(kinds->omitted);
    free(kinds->rows);
    free(kinds);
}

void kube_kinds_check(struct kube_kinds *kinds)
{
    size_t builtin, rows;
    (void)kube_builtin_kinds(&builtin);
    (void)kube_kinds_rows(kinds, &rows);
    assert(kinds->refs);
    assert(rows >= builtin);
    for (size_t i = 1; i < kinds->row_count; i++) {
        struct row before = row_of(kinds->rows[i - 1]), row = row_of(kinds->rows[i]);
        assert(row_order(&before, &row) < 0);
    }
    for (size_t i = 1; i < kinds->definition_count; i++)
        assert(definition_order(&kinds->definitions[i - 1], &kinds->definitions[i]) < 0);
}

const struct kube_kind *const *kube_kinds_rows(struct kube_kinds *kinds, size_t *ret_count)
{
    if (!kinds->rows)
        make_rows(kinds);
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

static struct kube_definition **find(const struct kube_kinds *kinds, struct slice name)
{
    if (!kinds->definition_count)
        return NULL;
    return bsearch(&name, kinds->definitions, kinds->definition_count, sizeof(*kinds->definitions),
                   name_order);
}

struct kube_definition *kube_kinds_definition(const struct kube_kinds *kinds, struct slice name)
{
    struct kube_definition **found = find(kinds, name);
    return found ? *found : NULL;
}

size_t kube_kinds_omitted(const struct kube_kinds *kinds)
{
    return kinds->omitted_count;
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
    struct kube_definition **found = find(kinds, slice_of(name, plural.len + 1 + group.len));
    if (!found || kinds->omitted[found - kinds->definitions])
        return NULL;
    const struct kube_definition *d = *found;
    for (size_t i = 0; d->established && i < d->version_count; i++)
        if (d->versions[i].served &&
            slice_equal(version, slice_from_text(d->versions[i].kind.version)))
            return &d->versions[i].kind;
    return NULL;
}
