/*
 * Formats of strings in schemas, as kube-openapi checks them: a regular expression, and for some
 * formats a function.
 */
#ifndef VIGIL_KUBE_CUSTOM_SCHEMA_FORMATS_H
#define VIGIL_KUBE_CUSTOM_SCHEMA_FORMATS_H

#include "base/slice.h"

struct schema_format {
    const char *name;                 /* without dashes */
    const char *shape;                /* a regular expression; NULL: none */
    bool (*check)(struct slice text); /* further check; NULL: none */
};

/* Finds "date-time" or "datetime". NULL: unknown, also to Kubernetes. */
const struct schema_format *schema_format_find(struct slice name);

#endif
