/*
 * The inside of a vigil_kube_call: a request, its attempts, and the answer.
 *
 *     created ──► waiting ──► sent ──► pausing ──► waiting
 *        │          │ ▲         │         │
 *        │          │ └─────────┤ (the next request of the same call)
 *        └──────────┴───────────┴─────────┴──► completed
 *
 *     waiting   for its turn (rate_limiter.h)
 *     pausing   before another attempt, as long as the server wants
 *
 * As in client-go, there are up to 10 more attempts: after 429 and 5xx with a Retry-After field,
 * and for GET after a connection broke before an answer.
 *
 * The states are those of the loop's thread: a call that was started by the user is `created` until
 * the loop has received it.
 */
#ifndef VIGIL_KUBECLIENT_CALL_CALL_H
#define VIGIL_KUBECLIENT_CALL_CALL_H

#include "base/buf.h"
#include "client/driver/operation.h"
#include "kubeclient/call/exchange.h"
#include "kubeclient/call/rate_limiter.h"

#include <vigil/kube/call.h>

enum { KUBE_CALL_RETRIES_MAX = 10 }; /* as in client-go */

enum kube_call_state {
    KUBE_CALL_CREATED,
    KUBE_CALL_WAITING,
    KUBE_CALL_SENT,
    KUBE_CALL_PAUSING,
    KUBE_CALL_COMPLETED,
};

/* What a call does whose answers are not just kept. The loop's thread; each may be NULL. */
struct kube_call_ops {
    /* The head of an accepted response: called again for every request of the call. */
    void (*begin)(struct vigil_kube_call *call);
    /* Bytes of it. ST_NOMEM, ST_LIMIT, ST_MALFORMED with a text. NULL: they are collected. */
    enum status (*receive)(struct vigil_kube_call *call, struct slice bytes, struct error *error);
    /* The response is complete. The call continues if another request was set
     * (kube_call_set_target), otherwise it completes. Errors as for receive. NULL: the answer is an
     * object. */
    enum status (*end)(struct vigil_kube_call *call, struct error *error);
    /* The server refused the request, and not only for now. True: that does not matter; the call
     * continues or completes as above. False or NULL: it fails. */
    bool (*refused)(struct vigil_kube_call *call, const struct exchange_result *result);
    /* Frees what the call has beyond a vigil_kube_call. At the completion and when it is freed. */
    void (*release)(struct vigil_kube_call *call);
};

struct vigil_kube_call {
    struct operation operation; /* has a reference to the client, and the error */
    struct vigil_kube *kube;
    const struct kube_call_ops *ops;

    /* The request. */
    const char *method;
    struct buf target, body;
    const char *accept, *content_type;
    char *texts;  /* owned: what of these is not constant; may be NULL */
    bool invalid; /* it fails when it is started: the error is set */
    int64_t timeout_ms;

    /* The loop's thread, from the start on. */
    enum kube_call_state state;
    bool has_next; /* another request was set */
    struct kube_exchange exchange;
    struct rate_waiter turn;
    struct timer deadline, pause;
    unsigned retries;          /* retries of this request */
    char previous[128];        /* why the connection of an earlier attempt broke; "" if none did */
    bool may_be_sent;          /* one of its attempts may have reached the server */
    bool is_json, is_protobuf; /* the content type of the response */

    /* The answer. */
    struct buf received;
    struct vigil_kube_status *refusal; /* owned; NULL: it was not refused */
    struct vigil_kube_object *object;  /* owned; NULL: none */
    struct buf version, next; /* version and next page of a list: with a final zero, or empty */
    vigil_kube_done done;
    void *user;
};

/* With an empty target, from which kube_call_finish makes a call. NULL: no memory. bytes is the
 * size of a larger object that begins with the call; the rest is zeroed. */
struct vigil_kube_call *kube_call_create(struct vigil_kube *kube, const char *method, size_t bytes);

/* The call will fail when it is started, unless the status is ST_OK. NULL without memory, and then
 * the call is freed. */
struct vigil_kube_call *kube_call_finish(struct vigil_kube_call *call, enum status status,
                                         const struct error *error);

/* Sets the request, or another one of the same call: a path with a query. ST_NOMEM. */
MUST_CHECK
enum status kube_call_set_target(struct vigil_kube_call *call, struct slice target);

/* Copies a text with a final zero. ST_NOMEM. */
MUST_CHECK
enum status kube_call_copy_text(struct buf *to, struct slice text);

/* True: the call is not cancelled, and its functions may be called by the program. */
bool kube_call_is_wanted(const struct vigil_kube_call *call);

/* Asserts every invariant; for tests. The loop's thread. */
void kube_call_check(const struct vigil_kube_call *call);

#endif
