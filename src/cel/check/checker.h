/*
 * Checks the types of an expression, as cel-go does: finds what each name refers to and which
 * overloads of a function can be called, and gives every node its type. What is only known when
 * the expression is evaluated has the type dyn.
 */
#ifndef VIGIL_CEL_CHECK_CHECKER_H
#define VIGIL_CEL_CHECK_CHECKER_H

#include "cel/check/function.h"
#include "cel/errors.h"
#include "cel/syntax/expr.h"

struct cel_variable {
    struct slice name; /* may have dots */
    const struct cel_type *type;
};

struct cel_value;
struct cel_work;

/* Objects that an expression can create, Name{field: value}. */
struct cel_objects {
    /* The type with this name, made in the arena if necessary; NULL: there is none. ST_NOMEM. */
    enum status (*find)(const struct cel_objects *objects, struct slice name, struct arena *arena,
                        const struct cel_type **ret_type);
    /* An object of this type, or an error; the names differ. NULL: none can be evaluated. */
    struct cel_value (*make)(struct cel_work *work, const struct cel_type *type,
                             const struct slice *names, const struct cel_value *values,
                             uint32_t count);
};

/* What an expression can refer to besides the functions. Borrowed while it is checked. */
struct cel_env {
    const struct cel_variable *variables;
    uint32_t variable_count;
    const struct cel_objects *objects; /* NULL: none can be created; outlives the program */
    bool has_patches;                  /* the functions jsonpatch.… are known */
};

/*
 * The tree is changed: names with dots become one node, and calls of functions with dots lose their
 * target. Types are in errors->arena. ST_INVALID: there are errors. ST_NOMEM.
 */
MUST_CHECK
enum status cel_check(const struct cel_env *env, struct cel_errors *errors, struct cel_expr *root);

#endif
