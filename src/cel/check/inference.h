/*
 * Finds the types that the parameters of functions and empty lists stand for, by unification, as
 * cel-go does. An assignment that fails leaves no trace. In an arena; one thread.
 */
#ifndef VIGIL_CEL_CHECK_INFERENCE_H
#define VIGIL_CEL_CHECK_INFERENCE_H

#include "cel/check/function.h"

struct cel_inference {
    struct arena *arena;
    const struct cel_type **bound; /* by variable - 1; NULL: not known yet */
    uint32_t count, room;
    struct cel_binding *trail; /* what the assignment under way has replaced */
    uint32_t trail_count, trail_room;
    uint32_t steps; /* how many types may still be visited */
    bool failed;    /* no memory, or too many steps or parts: everything fails from then on */
};

/* Types that refer to each other twice at every level take exponential time; these are refused. */
enum { CEL_INFERENCE_STEPS_MAX = 2000000 };

void cel_inference_init(struct cel_inference *inference, struct arena *arena);

/* A type that is not known yet. NULL without memory. */
const struct cel_type *cel_infer_new(struct cel_inference *inference);

/* Whether a value of type `from` can be used as `to`; then the types that both stand for agree. */
MUST_CHECK
bool cel_infer_assignable(struct cel_inference *inference, const struct cel_type *from,
                          const struct cel_type *to);
/* The same for the arguments of a call: all of them or none. */
MUST_CHECK
bool cel_infer_assignable_all(struct cel_inference *inference, const struct cel_type *const *from,
                              const struct cel_type *const *to, uint32_t count);

/* The more general of two types that are assignable to each other. */
const struct cel_type *cel_more_general(const struct cel_type *a, const struct cel_type *b);

/* The overload with new types instead of its parameters. False without memory. */
MUST_CHECK
bool cel_infer_instance(struct cel_inference *inference, const struct cel_overload *overload,
                        const struct cel_type *ret_args[CEL_ARGS_MAX],
                        const struct cel_type **ret_result);

/* The type with everything that is known by now; `final`: the rest becomes dyn. NULL without
 * memory. */
const struct cel_type *cel_infer_substitute(struct cel_inference *inference,
                                            const struct cel_type *type, bool final);

#endif
