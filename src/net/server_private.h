/* The structs that server.c, shard.c, listener.c and connection.c share; only for them. */
#ifndef VIGIL_NET_SERVER_PRIVATE_H
#define VIGIL_NET_SERVER_PRIVATE_H

#include "base/container/list.h"
#include "base/lock.h"
#include "base/memory/budget.h"
#include "base/metric/counter.h"
#include "io/loop.h"
#include "net/server.h"

enum { NET_SCRATCH_BYTES = 64 * 1024 };

/* Written only by the shard's thread, read by any. */
struct net_counters {
    _Atomic uint64_t connections, accepted, refused, accept_failures, stalled;
    _Atomic uint64_t bytes_in, bytes_out, reads, writes, held_bytes;
};

struct net_listener {
    struct net_server *server;
    struct listener listener;
    const struct protocol_kind *kind;
    unsigned kind_index;   /* index in net_shard.shared */
    struct io_watch watch; /* in the first shard's loop */
    struct timer resume;   /* set while accepting pauses */
};

/* Bytes that the socket of a connection did not take. */
struct net_held {
    uint32_t at, len;
    uint8_t bytes[];
};

/*
 *     open ──► lingering ──► closed (freed)
 *       └───────────────────────┘
 *
 * Lingering: all output and our end were sent; further input is dropped until the peer ends, too.
 * Closing immediately would make the peer's TCP discard our last bytes.
 */
enum net_connection_state { CONNECTION_OPEN, CONNECTION_LINGERING, CONNECTION_CLOSED };

/* Owned by its shard. Holds no buffer unless its socket is full. */
struct net_connection {
    struct io_watch watch;
    struct socket socket;
    struct timer timer; /* never set later than the connection's deadline, but possibly earlier */
    struct net_shard *shard;
    const struct protocol_ops *ops;
    void *protocol;           /* owned */
    struct account *account;  /* a reference; charged for held; NULL without a budget */
    struct net_held *held;    /* owned; NULL: the socket took everything */
    int64_t progress_ns;      /* held: when the socket last took bytes; lingering: when it began */
    struct list in_shard;     /* links net_shard.connections */
    struct list in_dirty;     /* links dirty or unfinished while there may be output */
    uint8_t state;            /* enum net_connection_state */
    bool ended, output_ended; /* the peer sent its last byte; it knows that we have sent ours */
    bool was_full;            /* recently: fill less at a time, so that less is held */
};

enum net_message_kind { MESSAGE_ADOPT, MESSAGE_DRAIN, MESSAGE_RECLAIM };

struct net_message {
    struct mailbox_node node;
    enum net_message_kind kind;
    struct socket socket; /* for MESSAGE_ADOPT */
    unsigned kind_index;
};

struct net_shard {
    struct net_server *server;
    unsigned index;
    struct loop *loop;
    void *user;
    pthread_t thread;
    struct mailbox mailbox;
    struct net_message drain_message, reclaim_message;
    _Atomic size_t reclaim_wanted;       /* by the smallest request that was refused; 0: none was */
    int64_t reclaim_at_ns;               /* when connections were last searched for it */
    struct list connections;             /* net_connection.in_shard */
    struct list dirty;                   /* net_connection.in_dirty */
    struct list unfinished;              /* the same: sent their share of a turn and have more */
    void *shared[NET_LISTENERS_MAX];     /* made by protocol_kind's shard_new, by kind_index */
    bool shared_made[NET_LISTENERS_MAX]; /* shard_new succeeded */
    uint8_t *read_scratch, *write_scratch;
    bool draining, drained;
    bool long_step; /* a step took long: read the clock */
    struct timer drain_timer;
    atomic_uint assigned; /* connections assigned to it and not closed; for the acceptor's choice */
    struct net_counters counters;
};

struct net_server {
    struct network *network;
    struct net_options options;
    struct net_app app;
    struct net_listener listeners[NET_LISTENERS_MAX];
    unsigned listener_count;
    const struct protocol_kind *kinds[NET_LISTENERS_MAX];
    unsigned kind_count;
    int reserve_fd; /* closed in order to accept and close one connection when there is no other
                       descriptor */
    bool started;
    atomic_bool draining;
    atomic_uint connections;   /* in all shards */
    atomic_uint drained_count; /* shards without connections left */
    unsigned next_shard; /* where the acceptor begins to search, so that equal shards alternate */

    struct lock lock; /* protects the fields below */
    pthread_cond_t changed;
    unsigned ready_count;
    enum status start_status; /* the first failure of a shard */

    struct net_shard shards[]; /* their number is options.shards */
};

/* connection.c */
void net_connection_open(struct net_shard *shard, struct socket socket, unsigned kind_index);
/* Sends output. True: it sent its share of the turn and has more. The connection may have been
 * closed. */
bool net_connection_flush(struct net_connection *connection);
void net_connection_shutdown(struct net_connection *connection);
void net_connection_close(struct net_connection *connection);

/* shard.c */
MUST_CHECK
enum status net_shard_init(struct net_shard *shard, struct net_server *server, unsigned index);
void net_shard_fini(struct net_shard *shard);
/* On the shard's thread. */
MUST_CHECK
enum status net_shard_begin(struct net_shard *shard);
void net_shard_end(struct net_shard *shard);
void net_shard_want_bytes(struct net_shard *shard, size_t wanted); /* any thread */
/* The connection was closed. */
void net_shard_forget(struct net_shard *shard, struct net_connection *connection);

/* listener.c, on the first shard's thread */
MUST_CHECK
enum status net_listener_begin(struct net_listener *listener);
void net_listener_end(struct net_listener *listener);
void net_listener_close(struct net_listener *listener);

#endif
