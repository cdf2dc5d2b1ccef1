/* The public vigil_bytes and our struct slice differ only for the compiler. */
#ifndef VIGIL_CLIENT_DRIVER_BYTES_H
#define VIGIL_CLIENT_DRIVER_BYTES_H

#include "base/slice.h"

#include <stdbool.h>
#include <vigil/types.h>

static inline struct slice slice_of_bytes(vigil_bytes bytes)
{
    return slice_of(bytes.data, bytes.size);
}

static inline vigil_bytes bytes_of_slice(struct slice slice)
{
    return vigil_bytes_of(slice.ptr, slice.len);
}

/* In options, NULL and "" mean the same. */
static inline bool text_is_given(const char *text)
{
    return text && *text;
}

#endif
