/*
 * What the checks of a CustomResourceDefinition share: where they are in it, and how they report
 * errors there.
 */
#ifndef VIGIL_KUBE_CUSTOM_DEFINITION_ERRORS_H
#define VIGIL_KUBE_CUSTOM_DEFINITION_ERRORS_H

#include "codec/json/tree.h"
#include "kube/custom/schema/patterns.h"
#include "kube/types/field_errors.h"

struct rule_reports;

/* The state of a check: the position in the definition, and the errors so far. */
struct definition_check {
    struct arena *arena;
    struct kube_field_errors *errors;
    struct buf path;                      /* "spec.versions[0]" */
    struct patterns patterns;             /* patterns of all versions */
    int64_t steps;                        /* left for validating defaults */
    const struct json_node *old_versions; /* the definition is updated from; NULL: it is created */
    bool sets_searched, sets_merge;       /* the old versions have sets whose items are merged */
    struct rule_reports *reports;         /* NULL: they are not needed */
    bool costs_unchecked; /* the schema is unchanged, and each of its rules may cost more */
};

/* Descend to a child; return a value for check_leave. */
size_t check_enter(struct definition_check *check, const char *format, ...) PRINTF_LIKE(2, 3);
size_t check_enter_property(struct definition_check *check, struct slice name);
void check_leave(struct definition_check *check, size_t before);

/* Report errors at a child of the current position; "" is the position itself. */
void check_required(struct definition_check *check, const char *child, const char *why);
void check_forbidden(struct definition_check *check, const char *child, const char *why);
void check_internal(struct definition_check *check, const char *child, const char *why);
/* value: NULL is shown as "". */
void check_invalid(struct definition_check *check, const char *child, const struct json_node *value,
                   const char *why);
/* shown: the text of the value in the message. */
void check_invalid_shown(struct definition_check *check, const char *child, struct slice shown,
                         const char *why);
void check_unsupported(struct definition_check *check, const char *child,
                       const struct json_node *value, const char *supported);

/* False: the list has more items than `max`, which is reported. */
bool check_few(struct definition_check *check, const char *child, const struct json_node *list,
               size_t max);

bool check_is_true(const struct json_node *node, const char *key);
const struct json_node *check_array(const struct json_node *node, const char *key);
bool check_has(const struct json_node *node, const char *key); /* present and not null */

#endif
