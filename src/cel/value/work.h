/* What an evaluation may use, and the functions that it calls. */
#ifndef VIGIL_CEL_VALUE_WORK_H
#define VIGIL_CEL_VALUE_WORK_H

#include "base/memory/arena.h"

struct cel_value;

/*
 * Deep comparisons and long texts take more work than cel-go's cost
 * counts, so that work is limited as well: about one step for each item or 64 bytes.
 */
struct cel_work {
    struct arena *arena;
    int64_t steps_left;
};

/* A function of the language. It takes values of any kind, also those that it refuses. */
typedef struct cel_value cel_builtin_fn(struct cel_work *work, const struct cel_value *args);

#endif
