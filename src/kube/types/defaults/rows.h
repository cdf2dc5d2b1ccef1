/*
 * What the walk knows about each type: its rows of the generated table, its rule, and the fields
 * that Go writes always. Built at the first use, from then on read-only, for any thread. Private to
 * kube/types/defaults.
 */
#ifndef VIGIL_KUBE_TYPES_DEFAULTS_ROWS_H
#define VIGIL_KUBE_TYPES_DEFAULTS_ROWS_H

#include "kube/types/defaults/rules.h"
#include "kube/types/schema/schema.h"

enum default_form { DEFAULT_TEXT, DEFAULT_INT, DEFAULT_BOOL, DEFAULT_OBJECT };

/* An unconditional default. */
struct default_row {
    const char *type;  /* "io.k8s.api.core.v1.Container" */
    const char *field; /* "protocol", or a path from the kind: "spec.suspend" */
    uint8_t form;      /* enum default_form */
    const char *value; /* value of a text or number; "true"; "" for an empty object */
};

/* How a row is looked up: the position of its field in the type. */
enum {
    DEFAULT_BY_PATH = 64,      /* it belongs to a member */
    DEFAULT_NOT_ZERO = 1 << 7, /* a zero that is written always counts as absent */
};

struct default_plan {
    const struct default_row *rows;
    const uint8_t *places; /* places of the rows: a position, which may have DEFAULT_NOT_ZERO, or
                              DEFAULT_BY_PATH */
    default_rule rule;     /* NULL: none */
    uint8_t row_count;
    uint64_t always;  /* bits by the position of the field: it is never omitted */
    uint64_t inlined; /* bits by the position of the field: its members belong to the same object,
                         and it has a plan */
};

const struct default_plan *default_plan_of(const struct kube_type *type);

/* The whole table, for tests. */
const struct default_row *default_rows(size_t *ret_count);

#endif
