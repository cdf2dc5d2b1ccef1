/*
 * Macros for the tables of columns (printers.c, printers_other.c): each line is one column of
 * kubectl.
 */
#ifndef VIGIL_KUBE_CALL_TABLE_PRINTERS_PRIVATE_H
#define VIGIL_KUBE_CALL_TABLE_PRINTERS_PRIVATE_H

#include "kube/call/table/printers.h"

/* The tables of printers_other.c. */
const struct kube_printer *kube_printers_other(size_t *ret_count);

#define CELL(n, fn, where)                          \
    {                                               \
        .name = (n), .print = (fn), .path = (where) \
    }
#define NUMBER(n, where)                                                         \
    {                                                                            \
        .name = (n), .type = "integer", .print = kube_print_int, .path = (where) \
    }
#define OR(n, where, otherwise)                                                         \
    {                                                                                   \
        .name = (n), .print = kube_print_text, .path = (where), .fallback = (otherwise) \
    }
#define WIDE(n, fn, where)                                        \
    {                                                             \
        .name = (n), .wide = true, .print = (fn), .path = (where) \
    }
#define WIDE_OR(n, where, otherwise)                                          \
    {                                                                         \
        .name = (n), .wide = true, .print = kube_print_text, .path = (where), \
        .fallback = (otherwise)                                               \
    }
#define NAME                                                                                \
    {                                                                                       \
        .name = "Name", .is_name = true, .print = kube_print_text, .path = "metadata.name", \
        .description = "Name must be unique within a namespace."                            \
    }
#define AGE CELL("Age", kube_print_age, "metadata.creationTimestamp")
/* The creation time, which kubectl prints unchanged. */
#define CREATED_AT                                                      \
    {                                                                   \
        .name = "Created At", .type = "date", .print = kube_print_text, \
        .path = "metadata.creationTimestamp"                            \
    }
#define TRUTH(n, where)                                                           \
    {                                                                             \
        .name = (n), .type = "boolean", .print = kube_print_bool, .path = (where) \
    }
#define COUNTED(n, where)                                                          \
    {                                                                              \
        .name = (n), .type = "integer", .print = kube_print_count, .path = (where) \
    }

#endif
