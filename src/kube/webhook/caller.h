/*
 * Calls of webhooks: a POST of JSON to a target, and its answer. One caller for each API, on its
 * thread; it has the connections to the targets, which are kept for the next calls, and looks up
 * the ready endpoints of services.
 *
 *     start ─► room? ─► (connection ◄─ addresses of a host, or of a service) ─► POST ─► answer ─► done
 *                └─► no: done follows soon, with ST_REQUEST_TOO_MANY_REQUESTS
 *
 * A call holds nothing but its own memory: no thread, no lock, no snapshot of the store. A webhook
 * that hangs delays no other: calls of each target have a limit of their own. All calls together
 * have one, too, so that the memory for them is bounded; it does not concern the first calls of a
 * target, so that a few targets that hang do not keep all others from being called. A thread
 * therefore has at most KUBE_WEBHOOK_CALLS_MAX calls, and KUBE_WEBHOOK_CALLS_RESERVED for each of
 * the KUBE_WEBHOOK_TARGETS_MAX targets. An answer is limited in size and time, redirects are not
 * followed, and an answer with 429 or 5xx and Retry-After is followed by another try while there is
 * time, as in Kubernetes.
 */
#ifndef VIGIL_KUBE_WEBHOOK_CALLER_H
#define VIGIL_KUBE_WEBHOOK_CALLER_H

#include "base/buf.h"
#include "kube/webhook/settings.h"
#include "kube/webhook/target.h"

struct account;
struct engine_shard;
struct kube_webhook_caller;
struct loop;

enum {
    KUBE_WEBHOOK_CALLS_PER_TARGET_MAX = 2000, /* limit for one target and thread */
    KUBE_WEBHOOK_CALLS_MAX = 8000,            /* limit for one thread, except for */
    KUBE_WEBHOOK_CALLS_RESERVED = 64,         /* so many calls of each target */
    KUBE_WEBHOOK_TARGETS_MAX = 200,           /* to which one thread has connections */
    KUBE_WEBHOOK_TRIES_MAX = 11,              /* limit for one call, as in client-go */
};

struct kube_webhook_caller_options {
    struct engine_shard *shard;
    struct loop *loop;
    size_t *under_way;                            /* counter of the API */
    const struct kube_webhook_settings *settings; /* copied; NULL: those of the system */
    void (*count)(void *ctx, bool begins);        /* a call begins or ends; NULL: not counted */
    void *ctx;
};

struct kube_webhook_caller *kube_webhook_caller_new(
    const struct kube_webhook_caller_options *options);
/* Calls under way end with ST_STOPPED, and no new ones begin. Accepts NULL. */
void kube_webhook_caller_stop(struct kube_webhook_caller *caller);
void kube_webhook_caller_free(struct kube_webhook_caller *caller); /* stopped; accepts NULL */

/* Embedded by its owner; zeroed, it is idle. */
struct kube_webhook_call {
    /* Set by the caller, and borrowed until done. */
    const struct kube_webhook_target *target;
    enum kube_webhook_use use;
    struct slice body;       /* JSON */
    int64_t timeout_ns;      /* for everything; the URL says "timeout=10s", rounded up */
    struct slice agent;      /* User-Agent: "kube-apiserver-admission" */
    struct account *account; /* charged with the answer; may be NULL */
    /* Once, never from within kube_webhook_call_start, unless the call is cancelled. */
    void (*done)(struct kube_webhook_call *call);
    void *owner;

    /* In done. ST_OK: the server has answered with a code from 200 to 206, and `answer` is its
     * body, which is not empty. ST_REQUEST_TOO_MANY_REQUESTS: the call was not made, because too
     * many wait. ST_STOPPED. Everything else: the call has failed, and `error` is the text of
     * client-go's error, such as 'Post "https://…?timeout=10s": dial tcp 127.0.0.1:1: connect:
     * connection refused' or "the server rejected our request for an unknown reason". */
    enum status status;
    unsigned code; /* HTTP's code; 0: there was no answer */
    struct buf answer, error;

    /* Private. */
    struct kube_webhook_attempt *attempt;
};

void kube_webhook_call_start(struct kube_webhook_caller *caller, struct kube_webhook_call *call);
/* done is not called any more; what was held is freed. No effect if the call is idle. */
void kube_webhook_call_cancel(struct kube_webhook_call *call);
/* Frees what done has got. */
void kube_webhook_call_fini(struct kube_webhook_call *call);

/* Targets to which it has connections; for tests. */
size_t kube_webhook_caller_targets(const struct kube_webhook_caller *caller);
/* Asserts every invariant; for tests. */
void kube_webhook_caller_check(const struct kube_webhook_caller *caller);

#endif
