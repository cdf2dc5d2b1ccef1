/*
 * One watch of a collection, from the first attempt until the server ends it: Request.Watch and
 * the decoder of StreamWatcher in client-go. Watches and informers use it.
 *
 *     idle ──start──► waiting ──► requesting ──► receiving ──► on_end ──► idle
 *                        ▲            │              └──► ending ──► (on_end)
 *                        └──retried───┘
 *
 *     waiting      before an attempt: the server asked for time, or its back-off is not over
 *     requesting   the head of the response has not arrived
 *     receiving    the server has accepted the watch, and events arrive
 *     ending       the response is over, but events of it are withheld
 *
 * An attempt is repeated at most 10 times: after a 429 or 5xx with Retry-After, and one second
 * after a connection broke. Other refusals, and a server that cannot be reached, end it, so that
 * its owner decides when to begin again. After the server has accepted it, nothing is repeated.
 *
 * A watch with a time (timeoutSeconds) ends at the latest when the server was to end it and nothing
 * has arrived for half a minute after that: a connection that has become silent is not noticed
 * otherwise with HTTP/1.1, which has no pings.
 *
 * Embedded by its owner; zeroed except for ops, it is idle. The loop's thread. No function is
 * called from within watch_request_start. on_event may cancel, free or start it again after
 * cancelling it, and so may on_end.
 */
#ifndef VIGIL_KUBECLIENT_WATCH_WATCH_REQUEST_H
#define VIGIL_KUBECLIENT_WATCH_WATCH_REQUEST_H

#include "kubeclient/call/exchange.h"
#include "kubeclient/data/framer.h"
#include "kubeclient/data/received_event.h"
#include "kubeclient/watch/watch_query.h"

enum {
    WATCH_RETRIES_MAX = 10,             /* as in client-go */
    WATCH_WITHHELD_BYTES_MAX = 1 << 20, /* that are kept; the server sends less (its window) */
};

struct watch_request;

/* How a watch ended. */
enum watch_end {
    /* Without an error: the owner may begin another one after the last version that it knows. */
    WATCH_END_COMPLETE, /* by the server, between two events */
    WATCH_END_CUT_OFF,  /* within an event, or the connection broke */
    WATCH_END_TIMEOUT,  /* the connection did not answer any more, or was silent for too long */
    WATCH_END_RETRIES,  /* all attempts failed with errors that may pass: an empty watch */
    /* Failures. */
    WATCH_END_REFUSED,     /* with the server's Status */
    WATCH_END_FAILED,      /* no connection or no credentials (code 0), or an answer that is not a
                              watch (InternalError) */
    WATCH_END_UNDECODABLE, /* what followed the last event: InternalError, ClientWatchDecoding */
    WATCH_END_NO_MEMORY,
};

struct watch_result {
    enum watch_end end;
    const char *reason; /* one line for people; "" if complete */
    /* NULL: it ended without an error. code is 0 if the server was not reached, or memory is
     * missing. */
    const struct vigil_kube_status *status;
};

struct watch_request_ops {
    /* The server has accepted the watch. May be NULL. */
    void (*on_accepted)(struct watch_request *request);
    /* An event, also one of the type ERROR, after which the server usually ends the watch. Valid
     * until the function returns, even if it cancels the request. */
    void (*on_event)(struct watch_request *request, const struct received_event *event);
    /* Exactly once, unless it is cancelled. */
    void (*on_end)(struct watch_request *request, const struct watch_result *result);
};

enum watch_request_state {
    WATCH_REQUEST_IDLE,
    WATCH_REQUEST_WAITING,
    WATCH_REQUEST_REQUESTING,
    WATCH_REQUEST_RECEIVING,
    WATCH_REQUEST_ENDING,
};

struct watch_request {
    const struct watch_request_ops *ops; /* set by the owner; the rest is private */
    enum watch_request_state state;
    bool withheld;
    unsigned retries; /* retries of the request under way, or of the last one */
    _Atomic uint64_t bytes, sent, retried; /* since it was zeroed; to be read by any thread */
    struct vigil_kube *kube;               /* borrowed; the owner holds a reference */
    struct kube_exchange exchange;
    struct framer framer;
    struct buf rest; /* received, but withheld */
    size_t rest_used;
    struct timer timer;              /* the next attempt, or the delivery of the rest */
    struct timer silence;            /* requesting or receiving, of a watch with a time */
    int64_t timeout_ns;              /* after which the server ends it; 0: unknown */
    uint64_t bytes_before;           /* when the silence was last examined */
    struct watch_attempts *attempts; /* owned: what the next attempt needs; NULL once accepted */
    struct watch_delivery *delivery; /* on the stack; NULL: no event is being delivered */
    enum watch_end late_end;         /* while ending */
    char *late_reason;               /* owned */
};

/* Params are copied. ST_NOMEM; ST_INVALID: the target or another text cannot be sent; ST_CLOSED:
 * the client is being freed. Otherwise on_end follows. */
MUST_CHECK
enum status watch_request_start(struct watch_request *request, struct vigil_kube *kube,
                                const struct watch_params *params, struct error *error);
/* No function is called any more. No effect if it is idle. */
void watch_request_cancel(struct watch_request *request);
/* While set, no event and no end is delivered after the server has accepted the watch, and the
 * server is made to stop sending. It stays set until it is lifted, also for the next start. */
void watch_request_withhold(struct watch_request *request, bool withhold);

/* Asserts every invariant; for tests. */
void watch_request_check(const struct watch_request *request);

#endif
