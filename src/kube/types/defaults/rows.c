#include "kube/types/defaults/rows.h"

#include "kube/types/schema/zero.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* The names of enum values in defaults_rows.inc. */
enum { TEXT = DEFAULT_TEXT, INT = DEFAULT_INT, BOOL = DEFAULT_BOOL, OBJECT = DEFAULT_OBJECT };

/* Ordered by type. */
static const struct default_row rows[] = {
#include "kube/types/defaults/defaults_rows.inc"
};

/* More than there are types; asserted. */
enum { TYPES_MAX = 1024 };
static struct default_plan plans[TYPES_MAX];
static uint8_t places[COUNT_OF(rows)];

static int compare(const void *key, const void *row)
{
    return strcmp(key, ((const struct default_row *)row)->type);
}

static void find_rows(const char *name, struct default_plan *plan)
{
    const struct default_row *end = rows + COUNT_OF(rows);
    const struct default_row *row = bsearch(name, rows, COUNT_OF(rows), sizeof(rows[0]), compare);
    if (!row)
        return;
    while (row > rows && strcmp(row[-1].type, name) == 0)
        row--;
    plan->rows = row;
    while (row < end && strcmp(row->type, name) == 0)
        row++;
    plan->row_count = (uint8_t)(row - plan->rows);
}

static uint8_t place_of(const struct kube_type *type, const struct default_row *row)
{
    const struct kube_field *field = kube_type_field(type, slice_from_text(row->field));
    if (!field)
        return DEFAULT_BY_PATH;
    bool zero = !(field->flags & KUBE_FIELD_POINTER) && !kube_zero_omits(field);
    size_t position = (size_t)(field - kube_type_fields(type));
    assert(position < type->field_count); /* rows are of the struct itself, not of an inlined one */
    return (uint8_t)(position | (zero ? DEFAULT_NOT_ZERO : 0));
}

static void find_always(const struct kube_type *type, struct default_plan *plan)
{
    const struct kube_field *field = kube_type_fields(type);
    for (size_t i = 0; i < type->field_count; i++, field++) {
        if (!(field->flags & KUBE_FIELD_INLINE) && !kube_zero_omits(field))
            plan->always |= UINT64_C(1) << i;
    }
}

static bool adds_something(const struct kube_type *type)
{
    const struct default_plan *plan = &plans[kube_type_index(type)];
    const struct kube_field *field = kube_type_fields(type);
    bool any = plan->rule || plan->row_count || plan->always;
    for (size_t i = 0; i < type->field_count && !any; i++, field++)
        any = field->flags & KUBE_FIELD_INLINE && adds_something(kube_field_type(field));
    return any;
}

/* After the plans of all types are known. */
static void find_inlined(const struct kube_type *type, struct default_plan *plan)
{
    const struct kube_field *field = kube_type_fields(type);
    for (size_t i = 0; i < type->field_count; i++, field++) {
        if (field->flags & KUBE_FIELD_INLINE && adds_something(kube_field_type(field)))
            plan->inlined |= UINT64_C(1) << i;
    }
}

static void build(void)
{
    assert(kube_type_count() <= TYPES_MAX);
    for (size_t i = 0; i < kube_type_count(); i++) {
        const struct kube_type *type = kube_type_at(i);
        char name[256];
        snprintf(name, sizeof(name), "%s.%s", kube_type_package(type), kube_type_name(type));
        plans[i].rule = default_rule_of(name);
        find_rows(name, &plans[i]);
        /* Rows and their places are parallel arrays. */
        size_t first = plans[i].rows ? (size_t)(plans[i].rows - rows) : 0;
        plans[i].places = &places[first];
        for (size_t row = 0; row < plans[i].row_count; row++)
            places[first + row] = place_of(type, &plans[i].rows[row]);
        find_always(type, &plans[i]);
    }
    for (size_t i = 0; i < kube_type_count(); i++)
        find_inlined(kube_type_at(i), &plans[i]);
}

const struct default_plan *default_plan_of(const struct kube_type *type)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, build);
    return &plans[kube_type_index(type)];
}

const struct default_row *default_rows(size_t *ret_count)
{
    *ret_count = COUNT_OF(rows);
    return rows;
}
