/*
 * The way to a cluster: endpoints, of which one is connected, and the credentials that every call
 * carries. It connects when something is started, and again after a break, with a growing pause
 * once every endpoint has failed. While an endpoint does not answer, the next one is tried beside
 * it every 250 ms; the first connection that is open is used. Only SRV records are resolved.
 *
 *     idle ──► resolving ──► connecting ──► authenticating ◄──► ready
 *      ▲           │             │                │               │ │
 *      │           └─────────────┴─► pausing ◄────┴── broken soon ┘ │
 *      │             (then it resolves or connects again)           │
 *      └──────────────── broken, or avoided ────────────────────────┘
 *
 * Owned by a client; all functions on its loop's thread.
 */
#ifndef VIGIL_CLIENT_CONNECT_CHANNEL_H
#define VIGIL_CLIENT_CONNECT_CHANNEL_H

#include "base/container/list.h"
#include "client/connect/channel_options.h"
#include "wire/grpc/client.h"

struct channel;
struct client_metadata;
struct connector;
struct endpoint_list;
struct lookup;
struct lookup_hooks;
struct lookup_result;
struct loop;
struct network;
struct resolver;

/* Waits until something can be started. Embedded by its owner; zeroed except for ready, it does not
 * wait. */
struct channel_waiter {
    void (*ready)(struct channel_waiter *waiter);
    struct list in_channel; /* links channel.waiters; its links are NULL until first used */
};

/* A call that lasts, such as a stream of watches. Embedded by its owner; zeroed except for avoided.
 */
struct channel_lasting {
    /* Other calls avoid the connection of this one: the owner ends the call and starts it again,
     * but not from within. */
    void (*avoided)(struct channel_lasting *lasting);
    struct list in_link; /* links link.lasting; its links are NULL until first used */
};

struct channel_stats {
    uint64_t connects, connect_errors, disconnects;
    uint64_t bytes_sent, bytes_received;
};

/* The options are copied. The error says which option is wrong. */
MUST_CHECK
enum status channel_new(struct loop *loop, struct network *network,
                        const struct channel_options *options, struct channel **ret_channel,
                        struct error *error);
/* Ends all calls. */
void channel_free(struct channel *channel);
DEFINE_CLEANUP(struct channel *, channel_free)

struct channel_request {
    struct slice path;
    bool require_leader;
    const struct client_metadata *metadata; /* NULL: none */
    /* The token of another client, in whose name the call is made, or empty: it carries none of the
     * channel's own credentials. NULL: in the channel's own name. */
    const struct slice *caller;
    struct slice via;    /* with a caller: instead of the options' */
    int64_t deadline_ns; /* sent to the server as the time that is left; CLOCK_NEVER: none */
    size_t receive_max;  /* bytes of one message; 0: as the options say */
    bool replayable;     /* the messages are kept for another start */
    struct channel_lasting *lasting; /* NULL: the call is finished where it was started */
};

/* Starts a call. ST_AGAIN: not now; the waiter is called once when it is worth another try.
 * ST_NOMEM; ST_LIMIT, ST_INVALID: see CHANNEL_BAD_CREDENTIALS. */
#define CHANNEL_BAD_CREDENTIALS "the token is too long, or contains bytes that cannot be sent"
MUST_CHECK
enum status channel_start(struct channel *channel, struct grpc_client_call *call,
                          const struct channel_request *request, struct channel_waiter *waiter);
/* No effect if it does not wait. */
void channel_waiter_cancel(struct channel_waiter *waiter);
/* To be called when the call has ended. */
void channel_lasting_end(struct channel_lasting *lasting);

/* This connection is to be replaced by one to another endpoint, because calls on it failed as
 * unavailable. Calls in progress are finished; those that last are moved, at most every ten
 * seconds. generation: of the connection that the failed call used; an older one is ignored. */
void channel_avoid(struct channel *channel, uint64_t generation);
/* The same for a call that failed and is not repeated, so that a program may call again at once: a
 * connection is not left because of it in its first second. */
void channel_blame(struct channel *channel, uint64_t generation);
/* A call that was sent at this time has not been answered in time. The server is blamed unless it
 * has answered another call since then; for a call that needs a quorum, unless a call that needs
 * one has succeeded: a member without a leader still answers others. */
void channel_timed_out(struct channel *channel, uint64_t generation, int64_t sent_ns, bool quorum);
/* A call on this connection has received an answer or an event: when it breaks, it is replaced
 * without a pause. generation: as above. */
void channel_worked(struct channel *channel, uint64_t generation);
/* A call that needs a quorum has succeeded. */
void channel_agreed(struct channel *channel, uint64_t generation);
/* There is another endpoint than the one in use. */
bool channel_has_choice(const struct channel *channel);
/* Changes with every connection. */
uint64_t channel_generation(const struct channel *channel);

/* The server refused the token. True: another one is being fetched, so that a repeated call may
 * succeed; it waits for it. False: there is no user to fetch one with. */
bool channel_renew_token(struct channel *channel, uint64_t generation);
/* Calls carry a token: the connection was made while authentication was enabled, or one was given.
 */
bool channel_has_token(const struct channel *channel);

/* A call can be started now, unless the server allows no more of them. */
bool channel_is_ready(const struct channel *channel);
/* "host:port" of the connection that is open or being opened; "" if there is none. */
const char *channel_endpoint(const struct channel *channel);
/* Why there is no connection: one line that names the endpoint; "" if nothing has failed. */
const char *channel_failure(const struct channel *channel);
/* The server refuses the user or the password: waiting for another token is useless. */
bool channel_is_rejected(const struct channel *channel);

/* Any thread. */
struct channel_stats channel_stats(const struct channel *channel);

/* -- For connections of HTTP/1.1, which are made beside its own one: client/connect/http_link.h --
 */

struct connector *channel_connector(struct channel *channel);
/* The result of a lookup of the SRV records. */
void channel_take_targets(struct channel *channel, const struct lookup_result *result);
/* How long to pause after a failure of every endpoint, with jitter; *backoff_ns grows, and is 0 at
 * first. */
int64_t channel_next_pause(struct channel *channel, int64_t *backoff_ns);
const struct channel_options *channel_get_options(const struct channel *channel);
/* Logs and counts what happened to such a connection. */
enum channel_news { CHANNEL_CONNECTED, CHANNEL_CONNECT_FAILED, CHANNEL_DISCONNECTED };
void channel_report(struct channel *channel, enum channel_news news, const char *text);

/* Asserts every invariant; for tests. */
void channel_check(const struct channel *channel);

#endif
