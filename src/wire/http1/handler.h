/*
 * The seam between HTTP/1.1 and those who answer it: a table of routes, and the exchange of one
 * request and its response.
 *
 * The body is read whole (up to the route's limit) before on_request is called. The handler may
 * answer at once or keep the exchange and answer later; it lives until on_end, which comes exactly
 * once for every on_request. Requests of a connection are answered one after the other, in order.
 * Everything happens on the connection's thread.
 */
#ifndef VIGIL_WIRE_HTTP1_HANDLER_H
#define VIGIL_WIRE_HTTP1_HANDLER_H

#include "base/slice.h"
#include "base/status.h"

struct http1_exchange;

struct http1_field {
    struct slice name; /* as sent; compare without case */
    struct slice value;
};

/* Borrowed by the handler until on_end. */
struct http1_request {
    struct slice method;
    struct slice target; /* as sent: "/v3/kv/range?x=1" */
    struct slice path;   /* target up to '?', not decoded */
    struct slice query;  /* after '?', not decoded */
    struct slice body;
    const struct http1_field *fields;
    size_t field_count;
    unsigned minor_version; /* 0 or 1 */
    bool keep_alive;
};

/* The first field of that name in any case, or false. */
bool http1_request_get(const struct http1_request *request, struct slice name,
                       struct slice *ret_value);

struct http1_route {
    const char *path; /* "/health", or a prefix that ends in '/': "/v3/" */
    void (*on_request)(struct http1_exchange *exchange, void *service,
                       const struct http1_request *request);
    /* The exchange is over, for whatever reason. May be NULL. */
    void (*on_end)(struct http1_exchange *exchange, void *service);
};

struct http1_routes;

MUST_CHECK
enum status http1_routes_new(struct http1_routes **ret_routes);
void http1_routes_free(struct http1_routes *routes);
DEFINE_CLEANUP(struct http1_routes *, http1_routes_free)
/* Rows are borrowed. The longest matching path wins; an exact one before a prefix. */
MUST_CHECK
enum status http1_routes_add(struct http1_routes *routes, const struct http1_route *rows,
                             size_t count, void *service);
const struct http1_route *http1_routes_find(const struct http1_routes *routes, struct slice path,
                                            void **ret_service);

/* A pointer for the handler's own use; NULL at first. */
void http1_exchange_set_user(struct http1_exchange *exchange, void *user);
void *http1_exchange_user(const struct http1_exchange *exchange);

/* A whole answer in one call. content_type may be empty. */
void http1_respond(struct http1_exchange *x, unsigned status, struct slice content_type,
                   struct slice body);

/*
 * Or in parts: extra fields (before the status line is made), then begin, then chunks, then end.
 * An HTTP/1.0 peer gets the chunks bare and then the end of the connection. A write that fails
 * (memory, queued_bytes_max) has ended the connection; later calls do nothing.
 */
MUST_CHECK
enum status http1_add_field(struct http1_exchange *exchange, struct slice name, struct slice value);
void http1_begin(struct http1_exchange *x, unsigned status, struct slice content_type);
MUST_CHECK
enum status http1_write(struct http1_exchange *x, struct slice bytes);
void http1_end(struct http1_exchange *x);

/* Response bytes not yet taken by the network: a producer of a long stream waits while many. */
size_t http1_queued_bytes(const struct http1_exchange *exchange);

#endif
