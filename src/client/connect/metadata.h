/* Metadata that a program gives to a request: header fields beside those of the library. A copy
 * that does not change; owned by one object at a time. */
#ifndef VIGIL_CLIENT_CONNECT_METADATA_H
#define VIGIL_CLIENT_CONNECT_METADATA_H

#include "base/status.h"
#include "wire/http/field.h"

#include <stdlib.h>
#include <vigil/watch.h>

/* Bounds the work of a search for equal metadata. */
enum { CLIENT_METADATA_FIELDS_MAX = 32 };

struct client_metadata {
    size_t count;
    struct http_field fields[]; /* followed by their bytes */
};

/* *ret_metadata is NULL if there is none. ST_INVALID: a field cannot be sent; ST_LIMIT: they are
 * too large for a request; ST_NOMEM. It is freed with free. */
MUST_CHECK
enum status client_metadata_new(const vigil_metadata *fields, size_t count,
                                struct client_metadata **ret_metadata);

static inline void client_metadata_freep(struct client_metadata **metadata)
{
    free(*metadata);
}

/* Either may be NULL. The order matters. */
bool client_metadata_equal(const struct client_metadata *a, const struct client_metadata *b);

#endif
