/*
 * The conversation of a vigil_v2_watch with the server: reads the state once, then polls for one
 * change after the other, and repeats what a broken connection or an unavailable server has
 * prevented. It knows nothing of objects and calls nothing of the program.
 *
 *     reading ──► polling ──► over
 *        └───────────────────▲
 *
 * A poll waits at the server for the first change at or after next_index. A server ends it after
 * five minutes without one, so a poll that lasts longer has lost its server and is repeated.
 * Mirrors the Watcher of etcd's client/keys.go and etcdGetInitialWatchState of Kubernetes. Embedded
 * in its watch; the loop's thread.
 */
#ifndef VIGIL_CLIENT_V2_V2_POLLER_H
#define VIGIL_CLIENT_V2_V2_POLLER_H

#include "base/buf.h"
#include "base/container/list.h"
#include "client/connect/http_link.h"
#include "client/v2/v2_response.h"

#include <vigil/types.h>

struct v2_poller;

/* A response with a state or a change. */
struct v2_reply {
    struct list in_queue; /* for the receiver */
    bool is_state;
    int64_t index; /* a state has the index of the store; a change has its own, 0 if it has none */
    struct buf body;       /* body of a state; empty if the key does not exist */
    struct arena arena;    /* texts of the event */
    struct v2_event event; /* valid for a change; borrows the body and the arena */
};

void v2_reply_free(struct v2_reply *reply);

struct v2_poller_hooks {
    /* The receiver owns the reply. */
    void (*on_reply)(struct v2_poller *poller, struct v2_reply *reply);
    /* Nothing follows. cleared_index: the store's index if its history has been cleared, otherwise
     * 0. The error is borrowed. */
    void (*on_failed)(struct v2_poller *poller, const vigil_error *error, int64_t cleared_index);
};

struct v2_poller_options {
    struct slice key;
    bool recursive, quorum;
    int64_t index; /* 0: the state is read first */
    size_t receive_bytes_max;
};

enum v2_poller_state { V2_POLLER_READING, V2_POLLER_POLLING, V2_POLLER_OVER };

struct v2_poller {
    enum v2_poller_state state;
    const struct v2_poller_hooks *hooks;
    bool recursive, quorum;
    bool wanted; /* by the receiver: another response */
    size_t receive_bytes_max;
    struct buf path; /* "/v2/keys/…", with escapes */
    struct buf authorization;
    struct loop *loop;     /* borrowed */
    struct http_link link; /* its channel is NULL once the poller is over */
    struct http1_call call;
    struct timer limit; /* set while a poll is under way */
    int64_t next_index; /* index of the next change; valid while polling */
    /* What is known of the response that is arriving. */
    unsigned status;
    int64_t store_index; /* -1: it is missing */
    struct buf body;
    uint64_t requests, retries;
};

/* Nothing is sent before v2_poller_want. ST_NOMEM: it must be finished nevertheless. */
MUST_CHECK
enum status v2_poller_init(struct v2_poller *poller, struct channel *channel,
                           const struct v2_poller_options *options,
                           const struct v2_poller_hooks *hooks);
/* Also zeroed, and within a hook. */
void v2_poller_fini(struct v2_poller *poller);

/* Whether a response is wanted: if so, a request is sent unless one is under way. */
void v2_poller_want(struct v2_poller *poller, bool wanted);

/* Asserts every invariant; for tests. */
void v2_poller_check(const struct v2_poller *poller);

#endif
