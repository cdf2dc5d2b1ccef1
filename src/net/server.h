/*
 * Listeners and the shards that serve their connections. One acceptor (on the first shard) assigns
 * each new connection to the shard with the fewest, so that even a few are distributed evenly.
 *
 *     new ─► listen… ─► start ─► drain ─► (wait_drained) ─► stop ─► free
 *
 * Over a simulated network start makes no threads: the simulation steps the shards' loops.
 */
#ifndef VIGIL_NET_SERVER_H
#define VIGIL_NET_SERVER_H

#include "base/clock.h"
#include "io/socket.h"
#include "net/protocol.h"
#include "net/stats.h"
#include "net/url.h"

struct turns;
struct net_server;
struct net_shard; /* net/shard.h */

enum { NET_SHARDS_MAX = 64, NET_LISTENERS_MAX = 16 };

struct net_options {
    unsigned shards;          /* I/O threads, 1 to NET_SHARDS_MAX */
    unsigned connections_max; /* in total; one more is accepted and closed immediately */
    size_t turn_bytes_max;    /* sent on one connection in one turn, NET_FILL_ROOM_MIN or more; then
                                 other connections are served */
    int64_t stall_ns;         /* how long an idle peer may refuse to take bytes */
    int64_t linger_ns;        /* for a peer to take our last bytes and close, when we close */
    int64_t drain_ns;         /* for requests in progress when the server shuts down */
    int64_t accept_pause_ns;  /* how long accepting pauses without descriptors or memory */
    struct turns *turns;      /* measure the shards' turns; may be NULL */
    /* Limits the memory that connections make the process hold, with an account for each. When an
     * account is refused, the connections that hold most are closed. Borrowed; NULL: no limit. */
    struct budget *budget;
};

#define NET_OPTIONS_DEFAULT                 \
    ((struct net_options){                  \
        .shards = 2,                        \
        .connections_max = 65536,           \
        .turn_bytes_max = 64 * 1024,        \
        .stall_ns = 60 * NS_PER_S,          \
        .linger_ns = 1 * NS_PER_S,          \
        .drain_ns = 5 * NS_PER_S,           \
        .accept_pause_ns = 100 * NS_PER_MS, \
    })

/* Called on each shard's thread. Every function may be NULL. */
struct net_app {
    enum status (*shard_start)(void *ctx, struct net_shard *shard); /* before its first turn */
    void (*shard_stop)(void *ctx, struct net_shard *shard);  /* after its connections are closed */
    void (*after_input)(void *ctx, struct net_shard *shard); /* after ready sockets were read */
    void (*end_of_turn)(void *ctx, struct net_shard *shard); /* before output is sent */
    void (*after_flush)(void *ctx,
                        struct net_shard *shard); /* after output was sent, before the loop waits */
    void *ctx;
};

/* The network and the kinds given to listen are borrowed. */
MUST_CHECK
enum status net_server_new(struct network *network, const struct net_options *options,
                           const struct net_app *app, struct net_server **ret_server);
void net_server_free(struct net_server *server); /* only if never started, or stopped */
DEFINE_CLEANUP(struct net_server *, net_server_free)

/* Before start. The socket is open and accepts connections, which wait until start. The kind
 * decides whether the URL must be a secure one (net/tls/tls.h). ret_bound, unless NULL, gets the
 * URL with the chosen port. */
MUST_CHECK
enum status net_server_listen(struct net_server *server, const struct url *url,
                              const struct protocol_kind *kind, struct url *ret_bound,
                              struct error *error);

/* On return all shards run, or none. */
MUST_CHECK
enum status net_server_start(struct net_server *server);

/* Any thread, while started: stops listening, shuts every connection down, and after drain_ns
 * closes those that are left. A second call does nothing. */
void net_server_drain(struct net_server *server);
bool net_server_drained(struct net_server *server);

/* Closes the remaining connections, ends the threads and joins them. */
void net_server_stop(struct net_server *server);

/* Any thread, while started. */
struct net_stats net_server_stats(struct net_server *server);

#endif
