/* The head of a request as its handler sees it, over HTTP/1.1 or HTTP/2. */
#ifndef VIGIL_WIRE_HTTP_REQUEST_H
#define VIGIL_WIRE_HTTP_REQUEST_H

#include "base/status.h"
#include "wire/http/field.h"
#include "wire/peer/peer.h"

struct http_certificate;

/* Borrowed by the handler until on_end. */
struct http_request {
    struct slice method;
    struct slice target;             /* as sent: "/v3/kv/range?x=1" */
    struct slice path;               /* target up to '?', with its escapes decoded */
    struct slice query;              /* after '?', not decoded: see query.h */
    struct slice host;               /* the Host field, or HTTP/2's :authority; empty if absent */
    struct slice body;               /* empty if the route takes it as it arrives */
    const struct http_field *fields; /* for HTTP/2 including the pseudo-fields */
    size_t field_count;
    uint8_t major, minor; /* 1.0, 1.1, 2.0 */
    bool keep_alive;      /* HTTP/1: the connection may stay open; HTTP/2: always true */
    bool secure;          /* came over TLS */
    bool guarded;         /* it did not, and the server refuses pages of other origins */
    bool own;             /* made by the server itself (wire/http/local.h), which may do anything */
    bool has_body;        /* the route takes it as it arrives: on_body follows */
    bool upgrade;         /* it asks for another protocol and has no body: see http_upgrade */
    const char *own_account; /* then: the account it stands for; NULL: the server */
    /* The common name of the client's verified certificate; NULL without one. */
    const char *peer_name;
    const struct http_certificate *certificate; /* wire/http/certificate.h; NULL if peer_name is */
    struct wire_peer peer;                      /* the client's address */
};

/* The first field with that name, in any case of letters, or false. */
bool http_request_get(const struct http_request *request, struct slice name,
                      struct slice *ret_value);

#endif
