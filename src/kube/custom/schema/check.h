/*
 * What may stand in a CustomResourceDefinition, with Kubernetes' words for what may not: the rules
 * of its names and versions (definition_check.c) and of its schemas (check.c).
 */
#ifndef VIGIL_KUBE_CUSTOM_SCHEMA_CHECK_H
#define VIGIL_KUBE_CUSTOM_SCHEMA_CHECK_H

#include "codec/json/tree.h"
#include "kube/custom/regex/patterns.h"
#include "kube/status/field_errors.h"

/* -- Between the two -- */

/* A walk through a definition: where it stands, and what was found so far. */
struct definition_check {
    struct arena *arena;
    struct kube_field_errors *errors;
    struct buf path;          /* "spec.versions[0]" */
    struct patterns patterns; /* of all versions */
    int64_t steps;            /* that are left for checking defaults */
};

/* Steps to a child; returns what check_leave takes back. */
size_t check_enter(struct definition_check *check, const char *format, ...) PRINTF_LIKE(2, 3);
size_t check_enter_property(struct definition_check *check, struct slice name);
void check_leave(struct definition_check *check, size_t before);

/* At a child of where the walk stands; "" is the place itself. */
void check_required(struct definition_check *check, const char *child, const char *why);
void check_forbidden(struct definition_check *check, const char *child, const char *why);
/* value: as it is shown; NULL: "". */
void check_invalid(struct definition_check *check, const char *child, const struct json_node *value,
                   const char *why);
/* shown: the text of the value in the message. */
void check_invalid_shown(struct definition_check *check, const char *child, struct slice shown,
                         const char *why);
void check_unsupported(struct definition_check *check, const char *child,
                       const struct json_node *value, const char *supported);

/* False: the list has more items than that, and it is told so. */
bool check_few(struct definition_check *check, const char *child, const struct json_node *list,
               size_t max);

bool check_is_true(const struct json_node *node, const char *key);
const struct json_node *check_array(const struct json_node *node, const char *key);
bool check_has(const struct json_node *node, const char *key); /* and it is not null */

enum { KUBE_LIST_KEYS_MAX = 64 }; /* of one list that is a map */

/* The schema of a version where the walk stands: "spec.validation". */
void check_schema(struct definition_check *check, const struct json_node *schema, bool has_status,
                  struct buf *warning);

#endif
