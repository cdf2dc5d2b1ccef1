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

/* Defines a type at file scope: SHOWN_TYPE(taint_type, SHOWN_TEXT("Key", "key"), …); */
#define SHOWN_TYPE(type_name, ...)                                          \
    static const struct shown_member type_name##_members[] = {__VA_ARGS__}; \
    static const struct shown_type type_name = {type_name##_members, COUNT_OF(type_name##_members)}
#define SHOWN_TEXT(go, json)   \
    {                          \
        go, json, "\"\"", NULL \
    }
#define SHOWN_NULL(go, json)   \
    {                          \
        go, json, "null", NULL \
    }
#define SHOWN_OF(go, json, type) \
    {                            \
        go, json, "null", type   \
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
