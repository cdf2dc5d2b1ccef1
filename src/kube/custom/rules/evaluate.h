/*
 * The rules of a schema (x-kubernetes-validations) are evaluated when an object is written, by
 * kube/handlers/write/custom_rules.c: those of a value in their order, then those below it, sorted
 * by name. A rule that mentions oldSelf runs
 * if there is an old value (schema/correlate.h), or if optionalOldSelf says so. A failed rule on an
 * unchanged value is only a warning. Order, texts and costs are Kubernetes'.
 *
 * On any thread; rules and values are only read. What it may take is limited by RULE_WRITE_COST_MAX
 * and by RULE_MEMORY_MAX for each expression.
 */
#ifndef VIGIL_KUBE_CUSTOM_RULES_EVALUATE_H
#define VIGIL_KUBE_CUSTOM_RULES_EVALUATE_H

#include "kube/custom/rules/tree.h"
#include "kube/types/field_errors.h"

enum {
    RULE_CALL_COST_MAX = 1000000,   /* each expression */
    RULE_WRITE_COST_MAX = 10000000, /* all expressions for an object */
    RULE_MEMORY_MAX = 64 << 20,
};

struct rule_evaluation {
    struct arena *arena; /* for temporary memory */
    struct kube_field_errors *errors;
    struct kube_field_errors *warnings; /* NULL: failed rules on unchanged values are errors, too */
    uint64_t call_max;                  /* RULE_CALL_COST_MAX */
    int64_t budget; /* what is left of RULE_WRITE_COST_MAX; negative: rules were not run, and an
                       error says so */
};

/* old: NULL if there is none. path: of the value; empty for a whole object. */
void rules_evaluate(const struct rule_node *root, const struct json_node *value,
                    const struct json_node *old, struct slice path,
                    struct rule_evaluation *evaluation);

#endif
