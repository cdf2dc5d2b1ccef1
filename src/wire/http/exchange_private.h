/* The inside of an exchange: only for the two transports (http1/, http2/), routes.c and tests. */
#ifndef VIGIL_WIRE_HTTP_EXCHANGE_PRIVATE_H
#define VIGIL_WIRE_HTTP_EXCHANGE_PRIVATE_H

#include "base/memory/arena.h"
#include "base/memory/budget.h"
#include "wire/http/exchange.h"
#include "wire/http/hooks.h"
#include "wire/http/route.h"
#include "wire/http/transport.h"

/*
 *     receiving ─────────────────────► admitted ──► handled ──► answering ──► complete ──► ended
 *         │ └──────► authorizing ─────────▲ │            │            ▲            ▲           ▲
 *         └────────────────┴────────────────┴────────────┴─(refused)──┘            │           │
 *         └────────────────┴────────────────┴────────────┴─(aborted)───────────────┘           │
 *         └────────────────┴────────────────┴────────────┴──────────────(the peer is gone)─────┘
 *
 * Answering may also be ended by the peer. Every move is made by http_exchange_move.
 */
enum http_exchange_state {
    HTTP_RECEIVING,   /* the head has arrived, or is arriving */
    HTTP_AUTHORIZING, /* the route's authorize was called and has not decided */
    HTTP_ADMITTED,    /* by the gate and by the route's admit and authorize */
    HTTP_HANDLED,     /* the route has the request, with its body or with what follows of it */
    HTTP_ANSWERING,   /* the status and the fields were given */
    HTTP_COMPLETE,    /* the answer was given completely, or was aborted */
    HTTP_ENDED,       /* on_end was called, if the route had the request */
};

/* Before the exchange, HTTP/2 has the fields that sending uses; prefetched before many are sent. */
enum { HTTP_TRANSPORT_BYTES = 128 };

/* What is needed only until the answer has begun, unless the handler reads the request later. */
struct http_opening {
    struct http_request request;
    struct buf body;
    struct buf path;   /* request.path, if it had escapes */
    struct buf fields; /* fields of the response, as text: "Name: value\r\n" each */
};

/* Embedded by value in what a transport keeps for a request. Zeroed between requests. The fields
 * that sending uses come first. */
struct http_exchange {
    const struct http_exchange_ops *ops;
    struct http_source *source; /* source of the handler; NULL unless answering */
    uint8_t state;              /* enum http_exchange_state */
    bool bodiless : 1;          /* answers HEAD, or its status has no body */
    bool source_parked : 1;     /* the source had nothing to send */
    bool parks : 1;             /* http_park was called */
    bool needs_peer : 1;        /* see http_need_peer */
    bool leaving : 1;           /* the server shuts down */
    bool called : 1;            /* authorize or on_request was called, so on_end is due */
    bool in_admit : 1;          /* http_routes_admit is running */
    bool withheld : 1;          /* the handler does not want more of the body */
    bool upgraded : 1;          /* the answer is 101: it completes when both directions ended */
    bool output_ended : 1;      /* upgraded: our direction has ended */
    void *user;
    struct http_opening *opening;   /* NULL after http_forget_request */
    const struct http_route *route; /* NULL until it was found */
    void *service;
    void (*on_leave)(struct http_exchange *x);
    void (*on_deadline)(struct http_exchange *x); /* NULL: there is none, or it has passed */
    int64_t deadline_ns;
    struct account *account; /* the connection's, charged for the buffers below; may be NULL */
};

/* Asserts that the exchange is consistent. */
void http_exchange_check(const struct http_exchange *x);
/* Asserts that the table of moves allows it. */
void http_exchange_move(struct http_exchange *x, enum http_exchange_state next);
/* Nothing more will be written: moves to complete, unless it is there or beyond. */
void http_exchange_stop(struct http_exchange *x);

static inline bool http_exchange_complete(const struct http_exchange *x)
{
    return x->state >= HTTP_COMPLETE;
}

static inline bool http_exchange_is_authorizing(const struct http_exchange *x)
{
    return x->state == HTTP_AUTHORIZING;
}

/* The route has the request and takes its body as it arrives. */
static inline bool http_exchange_streams(const struct http_exchange *x)
{
    return x->route && x->route->on_body &&
           (x->state == HTTP_HANDLED || x->state == HTTP_ANSWERING);
}

/* Passes bytes of the body to the route, or none for its end, if it still wants them. */
void http_exchange_pass(struct http_exchange *x, struct slice bytes);

/* How long the body of an admitted request may be. */
size_t http_exchange_body_max(const struct http_exchange *x, size_t limit);
/* The body is longer than that. */
void http_answer_too_long(struct http_exchange *x);
/* Calls the handler's on_end, once. */
void http_exchange_end(struct http_exchange *x);
/* Frees the buffers. */
void http_exchange_fini(struct http_exchange *x);
/* A short text answer: 404 in Go's words, 429 and 500 when there is no memory. */
void http_answer_plain(struct http_exchange *x, unsigned status);
const char *http_status_text(unsigned status);

/* Calls the source until there is no room or it has nothing to send. room is not 0. */
size_t http_exchange_fill(struct http_exchange *x, uint8_t *dst, size_t room);
/* When to call http_exchange_tick; INT64_MAX: never. */
static inline int64_t http_exchange_deadline(const struct http_exchange *x)
{
    return x->on_deadline && !http_exchange_complete(x) ? x->deadline_ns : INT64_MAX;
}
/* Calls on_deadline if it is due. */
void http_exchange_tick(struct http_exchange *x, int64_t now_ns);
/* The server shuts down: ends the exchange if it parks (http_park). */
void http_exchange_leave(struct http_exchange *x);

/* The source has something to send, as far as is known. */
static inline bool http_exchange_flows(const struct http_exchange *x)
{
    return x->source && !x->source_parked;
}

/* Appends to the queued bytes of an answer. A short answer is accepted even without budget, so that
 * a refusal can be sent. */
MUST_CHECK
enum status http_exchange_append(struct http_exchange *x, struct buf *queue, struct slice bytes);

/* Splits "path?query". */
void http_split_target(struct slice target, struct http_request *request);

/* Fills in what is known from the connection. */
void http_request_set_connection(struct http_request *request, const struct http_hooks *hooks);

/* The next field of http_opening.fields. */
bool http_fields_next(struct slice *rest, struct http_field *ret_field);

#endif
