/*
 * The seam between HTTP and those who answer it: one request and its response, over HTTP/1.1 or as
 * a stream of HTTP/2. Which of the two it is a handler need not know.
 *
 *     on_request ──► respond                                  one piece
 *        │   └─────► begin ──► write… / source ──► end        as it comes
 *        └──(the peer is gone, or its time is up)──► on_end
 *
 * The sender is admitted by the head of the request (routes.h), before anything of the body is
 * kept. The body is read whole (up to the route's limit) before on_request is called. The handler
 * answers at once or keeps the exchange and answers later; it lives until on_end, which comes
 * exactly once for every on_request and is the last that is heard of it. Calls on an exchange whose
 * peer is gone do nothing until then. HTTP/1.1 answers the requests of a connection one after the
 * other, HTTP/2 side by side. Methods are the handler's business, but a response to HEAD loses its
 * body here. Everything happens on the connection's thread.
 */
#ifndef VIGIL_WIRE_HTTP_EXCHANGE_H
#define VIGIL_WIRE_HTTP_EXCHANGE_H

#include "base/status.h"
#include "wire/http/field.h"
#include "wire/peer.h"

struct account;
struct http_exchange;

/* Borrowed by the handler until on_end. */
struct http_request {
    struct slice method;
    struct slice target; /* as sent: "/v3/kv/range?x=1" */
    struct slice path;   /* target up to '?', with its escapes decoded */
    struct slice query;  /* after '?', not decoded: see query.h */
    struct slice host;   /* the Host field, or HTTP/2's :authority; empty when there is none */
    struct slice body;
    const struct http_field *fields; /* those of HTTP/2 include its pseudo-fields */
    size_t field_count;
    uint8_t major, minor; /* 1.0, 1.1, 2.0 */
    bool keep_alive;      /* HTTP/1: the connection may stay; HTTP/2: always */
    bool secure;          /* came over TLS */
    bool guarded;         /* it did not, and its server is to keep foreign pages away */
    /* The common name of the client's certificate, which we trust; NULL without one. */
    const char *peer_name;
    const struct http_certificate *certificate; /* wire/http/certificate.h; NULL as the name */
    struct wire_peer peer;                      /* where it came from */
};

/* The connection's account: what a handler keeps for the exchange is charged to it. Whatever is
 * still charged after on_end needs a reference, which an arena has. May be NULL. */
struct account *http_exchange_account(const struct http_exchange *x);

/* The first field of that name in any case, or false. */
bool http_request_get(const struct http_request *request, struct slice name,
                      struct slice *ret_value);

/* A pointer for the handler's own use; NULL at first. */
void http_exchange_set_user(struct http_exchange *x, void *user);
void *http_exchange_user(const struct http_exchange *x);
const struct http_request *http_exchange_request(const struct http_exchange *x);

/*
 * A field of the response, before it begins. ST_INVALID: bytes that do not belong there; ST_LIMIT:
 * more than HTTP_FIELDS_BYTES_MAX in all; ST_CLOSED: nobody will see it.
 */
enum { HTTP_FIELDS_BYTES_MAX = 4096 };
MUST_CHECK
enum status http_add_field(struct http_exchange *x, struct slice name, struct slice value);

/* A whole answer in one call. content_type may be empty. The body is copied. */
void http_respond(struct http_exchange *x, unsigned status, struct slice content_type,
                  struct slice body);

/*
 * Or in parts: begin, then write as often as needed, then end. An HTTP/1.0 peer gets the bytes bare
 * and then the end of the connection. A write that fails for want of memory has
 * broken the exchange off as http_abort does.
 */
void http_begin(struct http_exchange *x, unsigned status, struct slice content_type);
MUST_CHECK
enum status http_write(struct http_exchange *x, struct slice bytes);
void http_end(struct http_exchange *x);
/* The answer cannot be finished: the peer sees that it was cut off. */
void http_abort(struct http_exchange *x);

enum http_fill {
    HTTP_FILL_MORE,   /* wrote something and has more: ask again when there is room */
    HTTP_FILL_PARKED, /* nothing to send now: ask again after http_wake */
    HTTP_FILL_DONE,   /* that was the last byte: end */
};

/*
 * Or pulled: nothing is queued, fill writes at most room bytes (never 0) of the body to where they
 * are sent from, and may stop anywhere. It may call http_abort, and nothing else of the exchange.
 * Embedded in the handler's state, which lives until on_end. After begin, and after anything
 * written; at most one.
 */
struct http_source {
    enum http_fill (*fill)(struct http_source *source, uint8_t *dst, size_t room, size_t *ret_len);
};
void http_set_source(struct http_exchange *x, struct http_source *source);
/* A parked source has something to send. Cheap to call often. */
void http_wake(struct http_exchange *x);
/* It will be woken in a moment: fetches what that touches. */
void http_wake_soon(const struct http_exchange *x);

/*
 * This answer waits for things to happen, like a watch: silence is no stall. In exchange it does
 * not outlive its peer's last byte, and when the server shuts down on_leave is called, once, to
 * write what is to be said and end (at once, if it does already). NULL: it is ended where it
 * stands.
 */
void http_park(struct http_exchange *x, void (*on_leave)(struct http_exchange *x));

/*
 * on_deadline is called once at that time of http_exchange_now's clock or soon after, unless
 * everything has been said by then. At most one.
 */
void http_set_deadline(struct http_exchange *x, int64_t at_ns,
                       void (*on_deadline)(struct http_exchange *x));

/* This answer is long and can wait: others of its connection go first, and a part of the window is
 * left to them. Before it begins. */
void http_make_bulk(struct http_exchange *x);

/* The time of the connection's latest turn, monotonic. */
int64_t http_exchange_now(const struct http_exchange *x);

#endif
