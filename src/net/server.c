#include "net/server.h"

#include "net/server_private.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void on_short(void *ctx, size_t wanted)
{
    struct net_server *server = ctx;
    for (unsigned i = 0; i < server->options.shards; i++)
        net_shard_want_bytes(&server->shards[i], wanted);
}

enum status net_server_new(struct network *network, const struct net_options *options,
                           const struct net_app *app, struct net_server **ret_server)
{
    assert(options->shards >= 1 && options->shards <= NET_SHARDS_MAX);
    assert(options->turn_bytes_max >= NET_FILL_ROOM_MIN);
    size_t bytes = sizeof(struct net_server) + options->shards * sizeof(struct net_shard);
    size_t alignment = _Alignof(struct net_server);
    struct net_server *server = aligned_alloc(alignment, align_up(bytes, alignment));
    if (!server)
        return ST_NOMEM;
    memset(server, 0, bytes);
    server->network = network;
    server->options = *options;
    if (app)
        server->app = *app;
    lock_init(&server->lock);
    pthread_cond_init(&server->changed, NULL);
    /* A descriptor in reserve: with it closed, one connection can be accepted and refused when no
     * descriptors are left (listener.c). */
    server->reserve_fd = network->stepped ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC);

    for (unsigned i = 0; i < options->shards; i++) {
        enum status status = net_shard_init(&server->shards[i], server, i);
        if (status != ST_OK) {
            net_server_free(server);
            return status;
        }
    }
    if (options->budget)
        budget_set_on_short(options->budget, on_short, server);
    *ret_server = server;
    return ST_OK;
}

void net_server_free(struct net_server *server)
{
    if (!server)
        return;
    assert(!server->started);
    /* The budget outlives the server and would call shards that are gone. */
    if (server->options.budget)
        budget_set_on_short(server->options.budget, NULL, NULL);
    for (unsigned i = 0; i < server->listener_count; i++)
        net_listener_close(&server->listeners[i]);
    for (unsigned i = 0; i < server->options.shards; i++)
        net_shard_fini(&server->shards[i]);
    if (server->reserve_fd >= 0)
        close(server->reserve_fd);
    pthread_cond_destroy(&server->changed);
    lock_fini(&server->lock);
    free(server);
}

/* Listeners of one kind share what the kind has on each shard. */
static unsigned index_of_kind(struct net_server *server, const struct protocol_kind *kind)
{
    for (unsigned i = 0; i < server->kind_count; i++)
        if (server->kinds[i] == kind)
            return i;
    server->kinds[server->kind_count] = kind;
    return server->kind_count++;
}

enum status net_server_listen(struct net_server *server, const struct url *url,
                              const struct protocol_kind *kind, struct url *ret_bound,
                              struct error *error)
{
    assert(!server->started);
    if (server->listener_count == NET_LISTENERS_MAX) {
        char text[URL_TEXT_BYTES];
        url_format(url, text);
        return error_set(error, ST_LIMIT, "%s: more than %d listeners", text, NET_LISTENERS_MAX);
    }
    struct net_listener *listener = &server->listeners[server->listener_count];
    TRY(network_listen(server->network, &url->address, &listener->listener, error));
    listener->server = server;
    listener->kind = kind;
    listener->kind_index = index_of_kind(server, kind);
    server->listener_count++;
    if (ret_bound)
        *ret_bound = (struct url){.secure = url->secure, .address = listener->listener.address};
    return ST_OK;
}

/* -- threads -- */

static void report_ready(struct net_server *server, enum status status)
{
    LOCK_SCOPE(&server->lock);
    server->ready_count++;
    if (server->start_status == ST_OK)
        server->start_status = status;
    pthread_cond_broadcast(&server->changed);
}

static void *shard_main(void *arg)
{
    struct net_shard *shard = arg;
    char name[16] = "vigil-io";
    if (shard->index < 100)
        name[8] = (char)('0' + shard->index / 10), name[9] = (char)('0' + shard->index % 10);
    pthread_setname_np(pthread_self(), name);
    enum status status = net_shard_begin(shard);
    /* The thread that starts the server waits for every shard, also for those that fail. */
    report_ready(shard->server, status);
    if (status != ST_OK)
        return NULL;
    loop_run(shard->loop);
    net_shard_end(shard);
    return NULL;
}

static void stop_threads(struct net_server *server, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        loop_stop(server->shards[i].loop);
    for (unsigned i = 0; i < count; i++)
        pthread_join(server->shards[i].thread, NULL);
}

static enum status start_threads(struct net_server *server)
{
    unsigned count = 0;
    enum status status = ST_OK;
    for (; count < server->options.shards; count++) {
        struct net_shard *shard = &server->shards[count];
        if (pthread_create(&shard->thread, NULL, shard_main, shard) != 0) {
            status = ST_LIMIT;
            break;
        }
    }
    lock_take(&server->lock);
    /* Every thread that was created reports, also one that cannot begin. */
    while (server->ready_count < count)
        lock_wait(&server->lock, &server->changed);
    if (status == ST_OK)
        status = server->start_status;
    lock_release(&server->lock);
    if (status != ST_OK)
        stop_threads(server, count);
    return status;
}

/* A simulated network has no threads: the test runs the loops of the shards. */
static enum status start_stepped(struct net_server *server)
{
    for (unsigned i = 0; i < server->options.shards; i++) {
        enum status status = net_shard_begin(&server->shards[i]);
        if (status == ST_OK)
            continue;
        /* The shards before this one have begun, and end again. */
        while (i-- > 0)
            net_shard_end(&server->shards[i]);
        return status;
    }
    return ST_OK;
}

enum status net_server_start(struct net_server *server)
{
    assert(!server->started);
    TRY(server->network->stepped ? start_stepped(server) : start_threads(server));
    server->started = true;
    return ST_OK;
}

void net_server_stop(struct net_server *server)
{
    if (!server->started)
        return;
    if (server->network->stepped)
        for (unsigned i = 0; i < server->options.shards; i++)
            net_shard_end(&server->shards[i]);
    else
        stop_threads(server, server->options.shards);
    server->started = false;
}

/* -- draining -- */

void net_server_drain(struct net_server *server)
{
    if (atomic_exchange(&server->draining, true))
        return;
    for (unsigned i = 0; i < server->options.shards; i++)
        mailbox_post(&server->shards[i].mailbox, &server->shards[i].drain_message.node);
}

bool net_server_drained(struct net_server *server)
{
    return atomic_load(&server->drained_count) == server->options.shards;
}

/* -- numbers -- */

static uint64_t read_counter(_Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

struct net_stats net_server_stats(struct net_server *server)
{
    struct net_stats sum = {0};
    for (unsigned i = 0; i < server->options.shards; i++) {
        struct net_counters *c = &server->shards[i].counters;
        sum.connections += read_counter(&c->connections);
        sum.accepted += read_counter(&c->accepted);
        sum.refused += read_counter(&c->refused);
        sum.accept_failures += read_counter(&c->accept_failures);
        sum.stalled += read_counter(&c->stalled);
        sum.bytes_in += read_counter(&c->bytes_in);
        sum.bytes_out += read_counter(&c->bytes_out);
        sum.reads += read_counter(&c->reads);
        sum.writes += read_counter(&c->writes);
        sum.held_bytes += read_counter(&c->held_bytes);
    }
    return sum;
}
