/* Formats of strings in schemas, as kube-openapi checks them: a shape, and for some more. */
#ifndef VIGIL_KUBE_CUSTOM_SCHEMA_FORMATS_H
#define VIGIL_KUBE_CUSTOM_SCHEMA_FORMATS_H

#include "base/slice.h"

struct schema_format {
    const char *name;                 /* without dashes */
    const char *shape;                /* a regular expression; NULL: none */
    bool (*check)(struct slice text); /* beyond it; NULL: nothing */
};

/* Of "date-time" or "datetime". NULL: Kubernetes does not know it either. */
const struct schema_format *schema_format_find(struct slice name);

#endif
