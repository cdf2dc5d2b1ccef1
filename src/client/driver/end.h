/* Why a client ends everything that it has: the program has shut it down or frees it, unless
 * another reason was given. It is given once, on any thread, and then read on any. */
#ifndef VIGIL_CLIENT_DRIVER_END_H
#define VIGIL_CLIENT_DRIVER_END_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <vigil/types.h>

enum { DRIVER_END_TEXT_BYTES = 200 };

/* Zeroed, none was given. */
struct driver_end {
    _Atomic bool given; /* the next two are set, and not changed any more */
    enum vigil_code code;
    char text[DRIVER_END_TEXT_BYTES];
};

static inline void driver_end_give(struct driver_end *end, enum vigil_code code, const char *text)
{
    end->code = code;
    snprintf(end->text, sizeof(end->text), "%s", text);
    atomic_store_explicit(&end->given, true, memory_order_release);
}

static inline enum vigil_code driver_end_code(const struct driver_end *end)
{
    bool given = atomic_load_explicit(&end->given, memory_order_acquire);
    return given ? end->code : VIGIL_ERROR_CANCELED;
}

static inline const char *driver_end_text(const struct driver_end *end)
{
    bool given = atomic_load_explicit(&end->given, memory_order_acquire);
    return given ? end->text : "the client was shut down";
}

#endif
