/*
 * One request to the server with credentials, and its response: the common part of calls and
 * watches. It does not retry; it says what happened, so that its owner can.
 *
 *     idle ──start──► authorizing ──► sent ──► receiving ──► on_end ──► idle
 *                                      └─────► refusing ───────▲
 *
 *     authorizing   an exec plugin is running
 *     receiving     the head of an accepted response has arrived: 200 to 206, as in client-go
 *     refusing      the head of another response has arrived; its body is collected, up to a limit,
 *                   and becomes a Status
 *
 * on_head and on_body are only called for a response that is accepted. Warning fields are passed on
 * to the program. After a 401 the credentials are renewed for the next exchange.
 *
 * Embedded by its owner; zeroed except for ops, it is idle. The loop's thread. No function is
 * called from within kube_exchange_start. on_head and on_body may cancel and free the exchange, and
 * on_end may start it again.
 */
#ifndef VIGIL_KUBECLIENT_CALL_EXCHANGE_H
#define VIGIL_KUBECLIENT_CALL_EXCHANGE_H

#include "kubeclient/call/kube.h"

#include <vigil/kube/status.h>

enum {
    EXCHANGE_ERROR_BYTES_MAX = 64 << 10, /* bytes of a refusal that are read; the rest is dropped */
};
/* For the body of a refusal; afterwards what has arrived of it is used. */
#define EXCHANGE_ERROR_NS (10 * NS_PER_S)

struct kube_exchange;

/* How an exchange ended. */
enum exchange_end {
    EXCHANGE_COMPLETE,     /* an accepted response, to its end */
    EXCHANGE_REFUSED,      /* a response that is not accepted: see status */
    EXCHANGE_UNREACHED,    /* no connection could be made */
    EXCHANGE_BROKEN,       /* the connection broke before the head arrived */
    EXCHANGE_CUT_OFF,      /* the connection broke within the body */
    EXCHANGE_UNAUTHORIZED, /* there are no credentials: the plugin failed, a file cannot be read */
    EXCHANGE_MALFORMED,    /* the server violated HTTP */
    EXCHANGE_LIMIT,        /* a limit of ours, or of the system's */
    EXCHANGE_NO_MEMORY,
};

struct exchange_result {
    enum exchange_end end;
    /* For people: the message of a refusal, otherwise one line that names the server; "" if
     * complete. */
    const char *reason;
    int retry_after_s; /* the Retry-After field of a refusal, at most the limit; -1: none */
    bool timed_out;    /* no answer: with UNREACHED, BROKEN and CUT_OFF */
    bool may_be_sent;  /* the server may have received the request */
    /* Set for a refusal; otherwise NULL, 0 and empty. */
    const struct vigil_kube_status *status;
    unsigned http_code; /* status->code is the one that the body says, if it says one */
    struct slice body;
};

struct exchange_ops {
    /* The head of a response that is accepted. Borrowed. */
    void (*on_head)(struct kube_exchange *exchange, unsigned status,
                    const struct http_field *fields, size_t field_count);
    void (*on_body)(struct kube_exchange *exchange, struct slice bytes);
    /* Exactly once, unless it is cancelled. */
    void (*on_end)(struct kube_exchange *exchange, const struct exchange_result *result);
};

enum exchange_state {
    EXCHANGE_IDLE,
    EXCHANGE_AUTHORIZING,
    EXCHANGE_SENT,
    EXCHANGE_RECEIVING,
    EXCHANGE_REFUSING,
};

/* Copied. */
struct exchange_request {
    const char *method;
    struct slice target;      /* path and query, without the prefix of the server's URL */
    const char *accept;       /* "application/json" */
    const char *content_type; /* type of the body; NULL without one */
    struct slice body;
    bool waits; /* a stream of events: silence is not a stall */
};

struct kube_exchange {
    const struct exchange_ops *ops; /* set by the owner; the rest is private */
    enum exchange_state state;
    struct vigil_kube *kube; /* borrowed; the owner holds a reference */
    struct pool_request request;
    struct credentials_waiter waiter;
    struct exchange_copy *copy;       /* owned: the request, while authorizing */
    struct exchange_refusal *refusal; /* owned; while refusing */
    uint64_t generation;              /* generation of the credentials that were sent */
    bool creates;                     /* the method is POST */
};

/* ST_NOMEM; ST_INVALID: a text contains bytes that cannot be sent; ST_CLOSED: the client is being
 * freed. Otherwise on_end follows. */
MUST_CHECK
enum status kube_exchange_start(struct kube_exchange *exchange, struct vigil_kube *kube,
                                const struct exchange_request *request);
/* No function is called any more. No effect if it is idle. */
void kube_exchange_cancel(struct kube_exchange *exchange);
/* While set, the server is made to stop sending. */
void kube_exchange_withhold(struct kube_exchange *exchange, bool withhold);

/* The text of the first field of this name; empty: there is none. */
struct slice exchange_find_field(const struct http_field *fields, size_t count, struct slice name);

/* Asserts every invariant; for tests. */
void kube_exchange_check(const struct kube_exchange *exchange);

#endif
