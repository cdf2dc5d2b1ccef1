/*
 * The errors that parsing and checking an expression find, each with its place in the text.
 * Displayed as cel-go does, sorted by place, because Kubernetes' answers contain them:
 *
 *     ERROR: <input>:1:6: undefined field 'b'
 *      | self.b
 *      | .....^
 *
 * Everything is in the arena of the expression. At most CEL_ERRORS_MAX are kept; the others are
 * counted. One owner, one thread.
 */
#ifndef VIGIL_CEL_ERRORS_H
#define VIGIL_CEL_ERRORS_H

#include "base/buf.h"
#include "base/memory/arena.h"

enum {
    CEL_ERRORS_MAX = 100,
    CEL_SNIPPET_BYTES_MAX = 16384, /* a longer line is not shown */
    CEL_ERROR_BYTES_MAX = 4096,    /* a longer text is cut off */
};

/* The error concerns the expression as a whole. It is displayed as line -1, column 0. */
#define CEL_NO_PLACE UINT32_MAX

struct cel_error {
    uint32_t offset; /* in bytes from the beginning of the source, or CEL_NO_PLACE */
    struct slice text;
};

struct cel_errors {
    struct arena *arena;
    struct slice source;
    struct cel_error *list; /* in the order of their discovery; NULL before the first */
    uint32_t count;         /* errors found, also beyond CEL_ERRORS_MAX */
};

/* The source must be valid UTF-8, and outlive the errors. */
void cel_errors_init(struct cel_errors *errors, struct arena *arena, struct slice source);

/* Without memory the error is only counted. */
void cel_error_add(struct cel_errors *errors, uint32_t offset, const char *format, ...)
    PRINTF_LIKE(3, 4);

static inline bool cel_errors_any(const struct cel_errors *errors)
{
    return errors->count > 0;
}

/* Appends all of them, one below the other. ST_NOMEM. */
MUST_CHECK
enum status cel_errors_display(const struct cel_errors *errors, struct buf *to);

#endif
