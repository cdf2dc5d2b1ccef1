/* The inside of a channel, which channel.c, channel_auth.c and http_link.c share. */
#ifndef VIGIL_CLIENT_CONNECT_CHANNEL_INTERNAL_H
#define VIGIL_CLIENT_CONNECT_CHANNEL_INTERNAL_H

#include "base/random.h"
#include "client/connect/channel_options.h"
#include "client/connect/connection.h"
#include "client/connect/metadata.h"
#include "client/names/endpoint_list.h"

enum { CHANNEL_FAILURE_BYTES = 512 };

enum channel_state {
    CHANNEL_IDLE,
    CHANNEL_RESOLVING, /* the SRV records */
    CHANNEL_CONNECTING,
    CHANNEL_AUTHENTICATING,
    CHANNEL_READY,
    CHANNEL_PAUSING,
};

/* A connection of the channel: being opened, the one in use, or one that only finishes its calls.
 */
struct link {
    struct channel *channel;
    struct connection *connection; /* owned */
    struct list in_channel;        /* links channel.attempts or old; alone while it is in use */
    bool is_attempt;               /* it is being opened */
    struct list lasting;           /* channel_lasting.in_link */
    bool avoided;
};

/* Written by the loop's thread, read by any. */
struct channel_counters {
    _Atomic uint64_t connects, connect_errors, disconnects;
};

struct channel {
    struct loop *loop;
    struct channel_options options; /* its texts are owned */
    struct connector connector;
    struct resolver *resolver;
    struct tls_client_source *tls; /* NULL: not configured */
    struct endpoint_list endpoints;
    size_t next_endpoint;
    struct lookup *lookup; /* lookup of SRV records, while resolving */

    enum channel_state state;
    struct list attempts; /* link.in_channel, the newest last; some exactly while connecting */
    struct link *current; /* NULL: no connection is in use */
    struct list old;      /* link.in_channel */
    struct list waiters;  /* channel_waiter.in_channel */
    size_t tried;         /* endpoints that are tried or have failed since the last pause */
    int64_t backoff_ns;   /* the next pause */
    int64_t opened_ns;    /* when the latest connection was opened */
    bool worked;          /* see channel_worked */
    int64_t worked_ns, agreed_ns; /* when that was last; of any connection */
    struct timer pause;
    struct timer next_attempt; /* another endpoint is tried, because the others take long */
    struct timer move;         /* lasting calls are moved to another connection */
    int64_t move_again_ns;     /* not before this time */
    struct random random;
    uint64_t generation;

    struct grpc_client_call auth; /* open only while authenticating */
    struct timer auth_limit;      /* set only while authenticating */
    bool auth_answered;
    struct buf token;
    struct client_heads heads;
    bool token_wanted; /* the token was refused: another one is fetched first */
    bool rejected;     /* the waiters fail because of it, just now */
    bool ending;
    char failure[CHANNEL_FAILURE_BYTES];
    struct channel_counters counters;
};

/* Moves and checks the move. */
void channel_move(struct channel *channel, enum channel_state next);
/* Keeps and logs a line for people. */
void channel_note_failure(struct channel *channel, const char *text);
void channel_wake_waiters(struct channel *channel);
/* On the current connection. ST_CLOSED: it is closed. */
MUST_CHECK
enum status channel_start_call(struct channel *channel, struct grpc_client_call *call,
                               const struct channel_request *request);
/* The current connection can be used. */
void channel_become_ready(struct channel *channel);
/* The current connection is not used any more: the next one may do better. Calls that were started
 * on it are finished. */
void channel_give_up_connection(struct channel *channel, const char *text);

/* Gets a token on the current connection, which is new or whose token was refused. */
void channel_authenticate(struct channel *channel);
void channel_on_auth_limit(struct timer *timer);

#endif
