/*
 * An error for a person: a status, and a sentence that says what happened, to what, and what to do.
 * Used where a bare status is not enough: opening a store, reading flags, starting up.
 */
#ifndef VIGIL_BASE_ERROR_H
#define VIGIL_BASE_ERROR_H

#include "base/status.h"

struct error {
    enum status status;
    char text[1024]; /* two paths and a remedy */
};

/* Fills the error and returns status, so that a caller can return it at once. */
enum status error_set(struct error *error, enum status status, const char *format, ...)
    PRINTF_LIKE(3, 4);

static inline enum status error_no_memory(struct error *error)
{
    return error_set(error, ST_NOMEM, "out of memory");
}

/* Adds to the text. */
void error_append(struct error *error, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
