/*
 * The cluster, as one thread reaches it: calls over channels (client/connect/channel.h) in that
 * thread's loop. Each shard has one. Calls in Vigil's own name and those of clients have separate
 * connections, so that clients are served even if the cluster refuses Vigil's own user, and
 * Vigil's token cannot get into a client's call. Calls of clients that may wait for long, and those
 * that renew leases, have further ones: a member may allow few calls at a time on a connection.
 *
 * A call waits for a connection, is sent, and is sent again only if that cannot do anything twice:
 *
 *              ┌──────────────── not processed, or it only reads and nothing was received
 *              ▼                │
 *     start ► waiting ──► sent ─┤
 *              ▲  │         │   ▼
 *              │  │         │ pausing
 *              └──┼─────────┼───┘ │
 *                 ▼         ▼     ▼
 *               failing ──► ended
 *
 *     failing    the reason is known, and on_end follows at the end of the turn
 */
#ifndef VIGIL_MIRROR_LINK_UPSTREAM_H
#define VIGIL_MIRROR_LINK_UPSTREAM_H

#include "base/error.h"
#include "base/slice.h"
#include "base/status.h"

struct loop;
struct network;
struct upstream;
struct upstream_call;
struct kept_answer;
struct upstream_options;

enum {
    /* How many calls of one upstream may wait for a connection, and how many bytes the messages of
     * all its calls may have. A call beyond them fails with ResourceExhausted. */
    UPSTREAM_WAITING_MAX = 16 * 1024,
    UPSTREAM_HELD_BYTES_MAX = 64 << 20,
    /* Queued by one call that lasts. */
    UPSTREAM_QUEUED_BYTES_MAX = 1 << 20,
    /* A longer answer ends its call with ResourceExhausted. All answers that arrive at a time have
     * the limits of link/receive_budget.h: they wait for room, or are refused in the same way. */
    UPSTREAM_ANSWER_BYTES_MAX = 64 << 20,
};

/* In whose name a call is made. */
struct upstream_caller {
    bool is_self;       /* Vigil's own user, with the credentials of the options */
    struct slice token; /* otherwise: the client's; empty: none. Borrowed until the end */
    struct slice via;   /* and through which servers it came (link/loop_guard.h); copied */
};

/* Which connection of those for clients a call uses. */
enum upstream_lane {
    UPSTREAM_LANE_CALLS,
    UPSTREAM_LANE_WAITING, /* a lock, an election, a watch, a snapshot: it may wait for long */
    UPSTREAM_LANE_LEASES,
    UPSTREAM_LANES,
};

struct upstream_request {
    struct slice path; /* borrowed until the end */
    struct upstream_caller caller;
    enum upstream_lane lane; /* not for calls in Vigil's own name */
    int64_t deadline_ns;     /* by the loop's clock; CLOCK_NEVER: none */
    size_t receive_max;      /* bytes of one message; 0: UPSTREAM_ANSWER_BYTES_MAX */
    bool keeps; /* the owner keeps the answer beyond the call: see upstream_keep_answer */
    bool reads; /* changes nothing: it may be repeated until something was received */
    bool lasts; /* a stream without an end: it ends as unavailable when its server is avoided */
    bool require_leader;
};
/*
 * How long a call waits for a connection at most, if its deadline is not earlier; and how long once
 * the cluster could not be reached for the first time: then a caller that makes several calls, one
 * after the other, has the reason soon.
 */
#define UPSTREAM_REACH_NS (INT64_C(5) * 1000 * 1000 * 1000)
#define UPSTREAM_REACH_AGAIN_NS (INT64_C(1000) * 1000 * 1000)

struct upstream_ops {
    void (*on_message)(struct upstream_call *call, struct slice message); /* borrowed */
    /* The last function that is called. The call is freed when it returns; cancelling it within has
     * no effect. */
    void (*on_end)(struct upstream_call *call, enum grpc_code code, struct slice text);
};

/* The error says which option is wrong. */
MUST_CHECK
enum status upstream_new(struct loop *loop, struct network *network,
                         const struct upstream_options *options, struct upstream **ret_upstream,
                         struct error *error);
/* The server stops: all calls fail, and so does every one that is started from now on. */
void upstream_stop(struct upstream *upstream);
/* Ends all calls, without calling anything. Accepts NULL. */
void upstream_free(struct upstream *upstream);

/* ops and user are borrowed. on_end is not called from within. ST_NOMEM, and *ret_call is not set.
 */
MUST_CHECK
enum status upstream_start(struct upstream *upstream, const struct upstream_request *request,
                           const struct upstream_ops *ops, void *user,
                           struct upstream_call **ret_call);
void *upstream_call_user(const struct upstream_call *call);
/* Within on_message of a call that keeps its answer: a long one keeps its share until it is
 * released, with kept_answer_release (link/kept_answers.h). No effect for others. */
void upstream_keep_answer(struct upstream_call *call, struct kept_answer *answer);
/* Within on_end: the cluster's answer was too long, or there was no room for it. */
bool upstream_call_is_too_long(const struct upstream_call *call);
/* Queues a copy. ST_NOMEM; ST_LIMIT: too much is queued. */
MUST_CHECK
enum status upstream_send(struct upstream_call *call, struct slice message);
void upstream_half_close(struct upstream_call *call);
/* While paused, the server gets no window. What it was allowed to send before, at most a stream's
 * window, is still delivered. */
void upstream_pause(struct upstream_call *call, bool paused);
/* The cluster has refused the call within a message, as it refuses watches: Vigil logs in again
 * before its next call. Only for calls in its own name; a client's has no effect. */
void upstream_renew_token(struct upstream_call *call);
/* Frees it; nothing is called any more. */
void upstream_cancel(struct upstream_call *call);

/* Why the cluster cannot be reached; "" if it can, or nothing has failed yet. */
const char *upstream_failure(const struct upstream *upstream);

/* Asserts every invariant; for tests. */
void upstream_check(const struct upstream *upstream);

#endif
