/* What an evaluation may use, and the functions that it calls. */
#ifndef VIGIL_CEL_VALUE_WORK_H
#define VIGIL_CEL_VALUE_WORK_H

#include "base/memory/arena.h"
#include "regex/regex.h"

struct cel_memo;
struct cel_value;

/*
 * Deep comparisons and long texts take more work than cel-go's cost
 * counts, so that work is limited as well: about one step for each item or 64 bytes.
 */
struct cel_work {
    struct arena *arena;
    int64_t steps_left;        /* negative: the evaluation ends */
    int64_t steps_kept;        /* those that were left when it ended for another reason */
    const struct regex *regex; /* the constant pattern of the call under way; NULL: it has none */
    const struct regex *last_regex; /* the last other pattern; NULL: there was none */
    struct slice last_pattern;
    struct regex_scratch scratch;
    int overload;                /* the only one of the called function that fits, or -1 */
    struct cel_memo **memos;     /* cel/value/memo.h; NULL: nothing so far */
    const struct cel_value *end; /* the error that ends the evaluation, where cel-go panics */
};

static inline void cel_work_stop(struct cel_work *work)
{
    if (work->steps_left < 0)
        return;
    work->steps_kept = work->steps_left;
    work->steps_left = -1;
}

/* Ends the evaluation with an error, which && and || cannot ignore. */
void cel_end(struct cel_work *work, struct cel_value error);

/* A function of the language. It takes values of any kind, also those that it refuses. */
typedef struct cel_value cel_builtin_fn(struct cel_work *work, const struct cel_value *args);

#endif
