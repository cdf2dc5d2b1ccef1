/* Ranges of keys that begin with a prefix, and the prefix that a client adds to all its keys. */
#ifndef VIGIL_CLIENT_CALL_PREFIX_H
#define VIGIL_CLIENT_CALL_PREFIX_H

#include "base/slice.h"
#include "base/status.h"

/* The first key after all keys that begin with the prefix. buffer has prefix.len bytes; the result
 * is in it, or "\0" (no end) if there is no such key. */
struct slice prefix_end(struct slice prefix, uint8_t *buffer);

/* A range as it is sent. key and end are in memory, or borrowed from the request. */
struct prefixed_range {
    struct slice key, end;
    uint8_t *memory; /* owned; NULL: everything is borrowed */
};
void prefixed_range_fini(struct prefixed_range *range);

/* Adds the client's prefix, which may be empty, to a range of etcd's API. ST_NOMEM. */
MUST_CHECK
enum status prefix_range(struct slice prefix, struct slice key, struct slice end,
                         struct prefixed_range *ret_range);
/* All keys that begin with `of`, after the client's prefix. ST_NOMEM. */
MUST_CHECK
enum status prefix_all(struct slice prefix, struct slice of, struct prefixed_range *ret_range);

/* Removes the client's prefix. A server that sends a shorter key gets an empty one. */
static inline void prefix_strip(struct slice *key, size_t prefix_len)
{
    size_t n = size_min(prefix_len, key->len);
    *key = slice_sub(*key, n, key->len - n);
}

#endif
