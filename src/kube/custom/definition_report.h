/*
 * What the check of a CustomResourceDefinition finds out about its rules, for the author of
 * the definition: what each may cost, and why it is wrong. `vigil cel check --schema` prints it.
 */
#ifndef VIGIL_KUBE_CUSTOM_DEFINITION_REPORT_H
#define VIGIL_KUBE_CUSTOM_DEFINITION_REPORT_H

#include "codec/json/tree.h"
#include "kube/types/field_errors.h"

/* A rule or messageExpression, or the total of a schema, which has no text. */
struct rule_report {
    struct rule_report *next;
    struct slice field, text;
    uint64_t cost, cost_max; /* estimated for all values of an object, and the limit */
    struct slice error;      /* why it does not compile; empty: it does */
};

struct rule_reports {
    struct rule_report *first, *last;
};

/*
 * Checks a definition as if it were created, after setting its defaults in the tree. Reports and
 * errors are in the arena. Rules are only compiled, and reported, if their schema has no errors.
 * ST_NOMEM.
 */
MUST_CHECK
enum status kube_definition_report(struct arena *arena, struct json_node *object,
                                   struct rule_reports *ret_reports,
                                   struct kube_field_errors *errors);

#endif
