/*
 * Listeners and the shards that serve their connections. One acceptor (on the first shard) hands
 * each new connection to the shard that has fewest, so that also a handful is spread evenly.
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
    unsigned connections_max; /* in all; one more is accepted and closed at once */
    size_t turn_bytes_max;    /* sent on one connection in one turn, NET_FILL_ROOM_MIN or more: the
                               * others come first then, and it is what a request waits for */
    int64_t stall_ns;         /* bytes a peer with nothing under way does not take for so long */
    int64_t linger_ns;        /* for a peer to take our last bytes and hang up, when we close */
    int64_t drain_ns;         /* for requests under way when the server shuts down */
    int64_t accept_pause_ns;  /* without descriptors or memory, accepting rests for so long */
    struct turns *turns;      /* where the shards' turns are measured; NULL: nowhere */
    /* What connections make the process hold is charged to it, an account for each. When one is
     * refused, the connections that hold most are closed for it. Borrowed; NULL: no limit. */
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
    void (*shard_stop)(void *ctx, struct net_shard *shard);         /* its connections are gone */
    void (*after_input)(void *ctx, struct net_shard *shard);        /* ready sockets were read */
    void (*end_of_turn)(void *ctx, struct net_shard *shard); /* before what is to be sent is sent */
    void (*after_flush)(void *ctx, struct net_shard *shard); /* and after, before the loop waits */
    void *ctx;
};

/* The network and the kinds given to listen are borrowed. */
MUST_CHECK
enum status net_server_new(struct network *network, const struct net_options *options,
                           const struct net_app *app, struct net_server **ret_server);
void net_server_free(struct net_server *server); /* never started, or stopped */
DEFINE_CLEANUP(struct net_server *, net_server_free)

/* Before start. The socket is open and takes connections, which wait until start. Whether the URL
 * is a secure one is the kind's business (net/tls/tls.h). ret_bound, unless NULL, gets the URL with
 * the port chosen. */
MUST_CHECK
enum status net_server_listen(struct net_server *server, const struct url *url,
                              const struct protocol_kind *kind, struct url *ret_bound,
                              struct error *error);

/* On return all shards turn, or none does. */
MUST_CHECK
enum status net_server_start(struct net_server *server);

/* Any thread, while started: stops listening, tells every connection to finish, gives up on those
 * that have not after drain_ns. A second call does nothing. */
void net_server_drain(struct net_server *server);
bool net_server_drained(struct net_server *server);

/* Closes what is left, ends the threads and joins them. */
void net_server_stop(struct net_server *server);

/* Any thread, while started. */
struct net_stats net_server_stats(struct net_server *server);

#endif
