/*
 * The expressions of admission policies: what they can refer to, and how they are compiled, with
 * the texts of Kubernetes' errors.
 *
 *     object, oldObject, params                dyn, unless types are checked
 *                                              (policies/type_check.h)
 *     request, namespaceObject                 objects with the fields that expression_types.c
 *                                              lists
 *     authorizer, authorizer.requestResource   functions of the library
 *     variables.x                              the type of the expression x, once it was compiled
 *
 * A compiled expression is read-only and in the arena of its scope, so that it can be evaluated on
 * any thread. It borrows its text.
 */
#ifndef VIGIL_KUBE_TYPES_EXPRESSION_EXPRESSION_H
#define VIGIL_KUBE_TYPES_EXPRESSION_EXPRESSION_H

#include "cel/eval/program.h"

#include <stdbool.h>

/* In the order in which the variables are given to cel_eval. */
enum kube_expression_slot {
    KUBE_SLOT_OBJECT,
    KUBE_SLOT_OLD_OBJECT,
    KUBE_SLOT_NAMESPACE,
    KUBE_SLOT_REQUEST,
    KUBE_SLOT_VARIABLES,
    KUBE_SLOT_PARAMS,
    KUBE_SLOT_AUTHORIZER,
    KUBE_SLOT_REQUEST_RESOURCE,
    KUBE_SLOTS,
};

/* What an expression must evaluate to. */
enum kube_expression_returns {
    KUBE_RETURNS_BOOL,
    KUBE_RETURNS_STRING,
    KUBE_RETURNS_STRING_OR_NULL,
    KUBE_RETURNS_OBJECT,  /* an Object: the apply configuration of a mutation */
    KUBE_RETURNS_PATCHES, /* a list of operations of JSON Patch */
    KUBE_RETURNS_ANY,
};

struct kube_expression {
    struct slice text;
    const struct cel_program *program; /* NULL: the error says why */
    struct slice error;                /* "compilation failed: …" */
    bool is_internal;                  /* not the fault of the text, for Kubernetes */
    const struct cel_type *type;       /* NULL with an error */
    unsigned
        nesting; /* 0: it uses no variable; otherwise one more than the variables that it uses */
};

/* Evaluating a variable within another one uses the stack of the thread. */
enum { KUBE_EXPRESSION_NESTING_MAX = 16 };

struct kube_named_expression {
    struct slice name;
    struct kube_expression expression;
};

/* What the expressions of one policy can refer to. On the stack of the function that compiles them.
 */
struct kube_expression_scope {
    /* Set by the caller. */
    struct arena *arena;
    bool has_params, has_authorizer;
    bool has_patches;   /* mutations can create objects and patches (cel/library/objects.h) */
    bool has_variables; /* `variables` is declared, perhaps without any so far */
    /* Only the errors are of interest, without "compilation failed: ", and nothing is made that
     * could be evaluated. */
    bool checks_only;
    const struct cel_type *object, *params; /* NULL: dyn */

    /* Variables that were compiled so far; of two with the same name, the last one counts. */
    struct cel_object fields;
    struct kube_named_expression *variables;
    size_t count, capacity;
    unsigned nesting; /* nesting of the expression that is being compiled */
};

/* ST_NOMEM. An expression that does not compile has an error. */
MUST_CHECK
enum status kube_expression_compile(struct kube_expression_scope *scope, struct slice text,
                                    enum kube_expression_returns returns,
                                    struct kube_expression *ret_expression);
/* The same, and adds it to the variables, also with an error. */
MUST_CHECK
enum status kube_expression_declare(struct kube_expression_scope *scope, struct slice name,
                                    struct slice text, struct kube_expression *ret_expression);

extern const struct cel_type kube_type_request, kube_type_namespace;

#endif
