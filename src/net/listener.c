#include "net/server_private.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { ACCEPTS_PER_TURN = 64 };

/* The shard with the fewest connections; among equals they alternate. */
static struct net_shard *choose_shard(struct net_server *server)
{
    unsigned shards = server->options.shards;
    struct net_shard *best = &server->shards[server->next_shard];
    unsigned best_count = atomic_load_explicit(&best->assigned, memory_order_relaxed);
    for (unsigned i = 1; i < shards; i++) {
        struct net_shard *shard = &server->shards[(server->next_shard + i) % shards];
        unsigned count = atomic_load_explicit(&shard->assigned, memory_order_relaxed);
        if (count < best_count) {
            best = shard;
            best_count = count;
        }
    }
    server->next_shard = (best->index + 1) % shards;
    return best;
}

static void hand_over(struct net_listener *listener, struct socket socket)
{
    struct net_server *server = listener->server;
    struct net_message *message = malloc(sizeof(*message));
    if (!message) {
        socket_close(&socket);
        return;
    }
    *message = (struct net_message){
        .kind = MESSAGE_ADOPT, .socket = socket, .kind_index = listener->kind_index};
    struct net_shard *shard = choose_shard(server);
    /* Counted when it is assigned, not when the shard adopts it: otherwise a burst of connections
     * would all go to the same shard. */
    atomic_fetch_add_explicit(&shard->assigned, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&server->connections, 1, memory_order_relaxed);
    mailbox_post(&shard->mailbox, &message->node);
}

/* Accepts one connection and closes it, so that the peer does not wait in vain. */
static void shed_one(struct net_listener *listener)
{
    struct net_server *server = listener->server;
    if (server->reserve_fd < 0)
        return;
    close(server->reserve_fd);
    struct socket socket;
    if (listener_accept(&listener->listener, &socket) == ST_OK)
        socket_close(&socket);
    server->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void rest(struct net_listener *listener)
{
    struct loop *loop = listener->server->shards[0].loop;
    counter_add_alone(&listener->server->shards[0].counters.accept_failures, 1);
    shed_one(listener);
    /* The connection stays in the queue, and the poller would report it again at once. */
    loop_unwatch(loop, &listener->watch);
    loop_timer_set(loop, &listener->resume,
                   clock_add(loop_now_ns(loop), listener->server->options.accept_pause_ns));
}

static void on_resume(struct timer *timer)
{
    struct net_listener *listener = CONTAINER_OF(timer, struct net_listener, resume);
    if (loop_watch(listener->server->shards[0].loop, &listener->watch, IO_READ) != ST_OK)
        rest(listener);
}

static void on_connection(struct io_watch *watch, unsigned ready)
{
    (void)ready;
    struct net_listener *listener = CONTAINER_OF(watch, struct net_listener, watch);
    struct net_server *server = listener->server;
    struct net_counters *counters = &server->shards[0].counters;
    /* The shard serves its connections between two such batches. */
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        struct socket socket;
        enum status status = listener_accept(&listener->listener, &socket);
        if (status == ST_AGAIN)
            return;
        if (status == ST_LIMIT) {
            rest(listener);
            return;
        }
        if (status != ST_OK)
            continue; /* it was closed before it was accepted */
        if (atomic_load_explicit(&server->connections, memory_order_relaxed) >=
            server->options.connections_max) {
            socket_close(&socket);
            counter_add_alone(&counters->refused, 1);
            continue;
        }
        counter_add_alone(&counters->accepted, 1);
        hand_over(listener, socket);
    }
}

enum status net_listener_begin(struct net_listener *listener)
{
    listener->watch = (struct io_watch){.handle = listener->listener.handle, .fn = on_connection};
    listener->resume.fn = on_resume;
    return loop_watch(listener->server->shards[0].loop, &listener->watch, IO_READ);
}

void net_listener_end(struct net_listener *listener)
{
    struct loop *loop = listener->server->shards[0].loop;
    if (listener->watch.fn)
        loop_unwatch(loop, &listener->watch);
    loop_timer_cancel(loop, &listener->resume);
    net_listener_close(listener);
}

void net_listener_close(struct net_listener *listener)
{
    listener_close(&listener->listener);
}
