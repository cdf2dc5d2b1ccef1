/*
 * Values of Kubernetes' internal types as its errors show them: structs with the names and the
 * order of their Go fields, {"Name":"a","Count":null}.
 */
#ifndef VIGIL_KUBE_TYPES_VALIDATE_SHOWN_H
#define VIGIL_KUBE_TYPES_VALIDATE_SHOWN_H

#include "kube/types/validate/check.h"

struct shown_member {
    const char *go_name, *name;
    const char *absent; /* what is shown if there is none: "null", "\"\"", "0" */
    /* Type of an object or of the items of a list; NULL: shown as JSON. */
    const struct shown_type *type;
};

struct shown_type {
    const struct shown_member *members;
    size_t count;
};

#define SHOWN_TYPE(list)                           \
    {                                              \
        .members = (list), .count = COUNT_OF(list) \
    }

/* In the arena; at most GO_SHOWN_BYTES_MAX bytes of a value. */
const char *show_struct(struct check *c, const struct json_node *object,
                        const struct shown_type *type);

/* An error that shows a map, in the order of its keys as Go writes it. */
void bad_map(struct check *c, const struct at *at, const struct json_node *map, const char *why);
/* The same of a LabelSelector: its labels, then its expressions. */
void bad_selector(struct check *c, const struct at *at, const struct json_node *selector,
                  const char *why);

#endif
