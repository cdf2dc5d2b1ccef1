/*
 * The rules of a schema, compiled: parsed, checked and planned, with what they may cost. The same
 * functions serve the check of a definition, which wants to know what is wrong, and the validation
 * of objects, which evaluates the programs.
 *
 *     definition ─► rules_compile of each node with rules ─► errors, costs
 *     pool       ─► rule_set_new of the whole schema      ─► rule_set_find of a node ─► cel_eval
 *
 * Nodes with equal schemas share their programs. A program is read-only and used by any thread.
 */
#ifndef VIGIL_KUBE_CUSTOM_RULES_COMPILE_H
#define VIGIL_KUBE_CUSTOM_RULES_COMPILE_H

#include "cel/eval/program.h"
#include "kube/custom/schema/structural.h"

/* The variables of a program, in this order. */
enum { RULE_SELF, RULE_OLD_SELF, RULE_VARIABLES };

/* One rule. What is wrong is in Kubernetes' words; the texts are empty if nothing is. */
struct rule_program {
    const struct schema_rule *rule;
    const struct cel_program *condition; /* NULL: the rule is empty or wrong */
    const struct cel_program
        *message;  /* for messageExpression; NULL: there is none, or it is wrong */
    bool uses_old; /* the rule mentions oldSelf */
    struct slice error, message_error;
    uint64_t cost_max, message_cost_max; /* estimates for one evaluation; 0 if it is wrong */
};

/* The rules of one node, in their order. */
struct rule_programs {
    const struct schema *schema;
    struct rule_program *list;
    size_t count;
};

/*
 * Compiles the rules of one node, whose values have this type (types.h). Programs and errors are
 * in the arena and borrow from the schema; `scratch` is only used during the call. ST_NOMEM.
 */
MUST_CHECK
enum status rules_compile(struct arena *arena, struct arena *scratch, const struct schema *schema,
                          const struct cel_type *type, struct rule_programs *ret_programs);

/* The compiled rules of all nodes below the root of a resource's schema. Read-only. */
struct rule_set;

/* Rules that are wrong have no program; that happens only to definitions which were not written
 * through this server. The set is in the arena and borrows from the schema. ST_NOMEM. */
MUST_CHECK
enum status rule_set_new(struct arena *arena, const struct schema *root,
                         const struct rule_set **ret_set);

/* The rules of a node; NULL: it has none. */
const struct rule_programs *rule_set_find(const struct rule_set *set, const struct schema *schema);

#endif
