/* Metadata that a program gives to a request: header fields beside those of the library. A copy
 * that does not change; owned by one object at a time. */
#ifndef VIGIL_CLIENT_CONNECT_METADATA_H
#define VIGIL_CLIENT_CONNECT_METADATA_H

#include "base/status.h"
#include "wire/grpc/head.h"

#include <stdlib.h>
#include <vigil/watch.h>

struct connection;

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

/* What the head of a request contains beside its target. */
struct client_credentials {
    struct slice token; /* empty: none */
    /* Not empty: in the name of another client, whose token it is, so the server must not take the
     * name in the certificate of this connection for the caller's. */
    struct slice via;
    bool is_usual; /* via is that of nearly all calls of the connection */
    bool require_leader;
    const struct client_metadata *metadata; /* NULL: none */
};

/* The heads of the requests of one connection, of which the common ones are kept. Zeroed, it has
 * none. */
struct client_heads {
    struct grpc_head *own[2];        /* without and with require_leader; NULL: not made yet */
    struct grpc_head_cache *callers; /* made for the first call in another's name; NULL: not yet */
};

/* With a reference. As grpc_head_new. */
MUST_CHECK
enum status client_heads_find(struct client_heads *heads, const struct connection *connection,
                              const struct client_credentials *credentials,
                              struct grpc_head **ret_head);
/* Forgets them, because the connection or the token has changed. */
void client_heads_drop(struct client_heads *heads);

/* Either may be NULL. The order matters. */
bool client_metadata_equal(const struct client_metadata *a, const struct client_metadata *b);

#endif
