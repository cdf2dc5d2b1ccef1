#include "net/shard.h"

#include "net/server_private.h"

#include <stdlib.h>

#define FLUSH_NS_MAX (1 * NS_PER_MS)
enum { LOOKS_AT_CLOCK_EVERY = 8 };

struct loop *net_shard_loop(struct net_shard *shard)
{
    return shard->loop;
}

void net_shard_set_user(struct net_shard *shard, void *user)
{
    shard->user = user;
}

void *net_shard_user(const struct net_shard *shard)
{
    return shard->user;
}

/* -- turns -- */

static void after_input(void *ctx)
{
    struct net_shard *shard = ctx;
    const struct net_app *app = &shard->server->app;
    if (app->after_input)
        app->after_input(app->ctx, shard);
}

/*
 * A connection that had more output than its share of a turn is served after all others that have
 * output, so that a short answer does not wait for a long list on another connection. True: some
 * have more, or were not served.
 */
static bool flush_dirty(struct net_shard *shard)
{
    struct clock *clock = loop_clock(shard->loop);
    int64_t start = 0;
    unsigned flushed = 0;
    list_append(&shard->dirty, &shard->unfinished);
    if (!list_empty(&shard->dirty))
        turn_phase("sending");
    while (!list_empty(&shard->dirty)) {
        struct net_connection *c = LIST_ENTRY(shard->dirty.next, struct net_connection, in_dirty);
        list_remove(&c->in_dirty);
        if (net_connection_flush(c))
            list_push_back(&shard->unfinished, &c->in_dirty);
        if (++flushed % LOOKS_AT_CLOCK_EVERY == 0 || shard->long_step) {
            shard->long_step = false;
            int64_t now = clock_mono_ns(clock);
            if (!start)
                start = now;
            if (now - start > FLUSH_NS_MAX)
                break; /* input has waited long enough; the rest is sent in the next turn */
        }
    }
    return !list_empty(&shard->dirty) || !list_empty(&shard->unfinished);
}

static bool end_of_turn(void *ctx)
{
    struct net_shard *shard = ctx;
    const struct net_app *app = &shard->server->app;
    if (app->end_of_turn)
        app->end_of_turn(app->ctx, shard);
    bool more = flush_dirty(shard);
    if (app->after_flush)
        app->after_flush(app->ctx, shard);
    return more;
}

/* -- draining -- */

static void report_drained(struct net_shard *shard)
{
    shard->drained = true;
    loop_timer_cancel(shard->loop, &shard->drain_timer);
    atomic_fetch_add(&shard->server->drained_count, 1);
}

static void close_all(struct net_shard *shard)
{
    struct net_connection *c, *following;
    LIST_FOREACH_SAFE (c, following, &shard->connections, in_shard)
        net_connection_close(c);
}

static void on_drain_timer(struct timer *timer)
{
    close_all(CONTAINER_OF(timer, struct net_shard, drain_timer));
}

static void begin_drain(struct net_shard *shard)
{
    struct net_server *server = shard->server;
    if (shard->draining)
        return; /* the server was stopped meanwhile */
    shard->draining = true;
    for (unsigned i = 0; shard->index == 0 && i < server->listener_count; i++)
        net_listener_end(&server->listeners[i]);
    if (list_empty(&shard->connections)) {
        report_drained(shard);
        return;
    }
    int64_t deadline = clock_add(loop_now_ns(shard->loop), server->options.drain_ns);
    if (deadline != CLOCK_NEVER)
        loop_timer_set(shard->loop, &shard->drain_timer, deadline);
    struct net_connection *c;
    LIST_FOREACH (c, &shard->connections, in_shard)
        net_connection_shutdown(c);
}

void net_shard_forget(struct net_shard *shard, struct net_connection *connection)
{
    if (connection) {
        list_remove(&connection->in_shard);
        counter_add_alone(&shard->counters.connections, (uint64_t)-1);
    }
    atomic_fetch_sub_explicit(&shard->assigned, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&shard->server->connections, 1, memory_order_relaxed);
    if (shard->draining && !shard->drained && list_empty(&shard->connections))
        report_drained(shard);
}

/* -- memory -- */

/* The connections are searched no more often than this, because there may be many. */
#define RECLAIM_EVERY_NS (20 * NS_PER_MS)

static struct net_connection *largest_holder(struct net_shard *shard)
{
    struct net_connection *c, *largest = NULL;
    size_t most = 0;
    LIST_FOREACH (c, &shard->connections, in_shard) {
        size_t held = account_held_bytes(c->account);
        if (held > most) {
            most = held;
            largest = c;
        }
    }
    return largest;
}

/* Any thread: an account was refused this many bytes. */
void net_shard_want_bytes(struct net_shard *shard, size_t wanted)
{
    size_t before = atomic_load_explicit(&shard->reclaim_wanted, memory_order_relaxed);
    do {
        if (before && before <= wanted)
            return; /* a smaller request is pending; the connection that is closed for it serves
                       both */
    } while (!atomic_compare_exchange_weak(&shard->reclaim_wanted, &before, wanted));
    if (before == 0)
        mailbox_post(&shard->mailbox, &shard->reclaim_message.node);
}

/* Closes one connection; the next refusal may close another. */
static void reclaim(struct net_shard *shard)
{
    struct budget *budget = shard->server->options.budget;
    int64_t now = loop_now_ns(shard->loop);
    size_t wanted = atomic_exchange(&shard->reclaim_wanted, 0);
    if (budget_has_room(budget, wanted) || now - shard->reclaim_at_ns < RECLAIM_EVERY_NS)
        return;
    shard->reclaim_at_ns = now;
    struct net_connection *c = largest_holder(shard);
    if (!c || !budget_may_end(account_held_bytes(c->account), wanted))
        return;
    budget_count_reclaim(budget);
    net_connection_close(c);
}

/* -- messages -- */

static void refuse(struct net_shard *shard, struct net_message *message)
{
    socket_close(&message->socket);
    atomic_fetch_sub_explicit(&shard->assigned, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&shard->server->connections, 1, memory_order_relaxed);
    free(message);
}

static void receive_message(void *owner, struct mailbox_node *node)
{
    struct net_shard *shard = owner;
    struct net_message *message = CONTAINER_OF(node, struct net_message, node);
    if (message->kind == MESSAGE_DRAIN) {
        begin_drain(shard);
    } else if (message->kind == MESSAGE_RECLAIM) {
        reclaim(shard);
    } else if (shard->draining) {
        refuse(shard, message);
    } else {
        net_connection_open(shard, message->socket, message->kind_index);
        free(message);
    }
}

/* -- life -- */

enum status net_shard_init(struct net_shard *shard, struct net_server *server, unsigned index)
{
    *shard = (struct net_shard){.server = server, .index = index};
    shard->drain_timer.fn = on_drain_timer;
    shard->drain_message.kind = MESSAGE_DRAIN;
    shard->reclaim_message.kind = MESSAGE_RECLAIM;
    list_init(&shard->connections);
    list_init(&shard->dirty);
    list_init(&shard->unfinished);
    struct turn *turn;
    TRY(turns_join(server->options.turns, "io", &turn));
    TRY(network_loop_new(server->network, &shard->loop));
    loop_set_turn(shard->loop, turn);
    loop_set_hooks(
        shard->loop,
        (struct loop_hooks){.after_input = after_input, .end_of_turn = end_of_turn, .ctx = shard});
    loop_attach(shard->loop, &shard->mailbox, receive_message, shard);
    shard->read_scratch = malloc(NET_SCRATCH_BYTES);
    shard->write_scratch = malloc(NET_SCRATCH_BYTES);
    return shard->read_scratch && shard->write_scratch ? ST_OK : ST_NOMEM;
}

void net_shard_fini(struct net_shard *shard)
{
    if (!shard->loop)
        return;
    mailbox_detach(&shard->mailbox);
    for (struct mailbox_node *node = mailbox_take(&shard->mailbox); node;) {
        struct net_message *message = CONTAINER_OF(node, struct net_message, node);
        node = node->next;
        if (message->kind == MESSAGE_ADOPT) /* assigned after its shard had stopped */
            refuse(shard, message);
    }
    free(shard->read_scratch);
    free(shard->write_scratch);
    loop_free(shard->loop);
    shard->loop = NULL;
}

static void free_shared(struct net_shard *shard)
{
    struct net_server *server = shard->server;
    for (unsigned i = server->kind_count; i-- > 0;) {
        if (shard->shared_made[i] && server->kinds[i]->shard_free)
            server->kinds[i]->shard_free(shard->shared[i]);
        shard->shared_made[i] = false;
    }
}

static enum status make_shared(struct net_shard *shard)
{
    struct net_server *server = shard->server;
    for (unsigned i = 0; i < server->kind_count; i++) {
        const struct protocol_kind *kind = server->kinds[i];
        if (kind->shard_new)
            TRY(kind->shard_new(kind->ctx, shard, &shard->shared[i]));
        shard->shared_made[i] = true;
    }
    return ST_OK;
}

enum status net_shard_begin(struct net_shard *shard)
{
    struct net_server *server = shard->server;
    const struct net_app *app = &server->app;
    if (app->shard_start)
        TRY(app->shard_start(app->ctx, shard));
    enum status status = make_shared(shard);
    for (unsigned i = 0; status == ST_OK && shard->index == 0 && i < server->listener_count; i++)
        status = net_listener_begin(&server->listeners[i]);
    if (status != ST_OK)
        net_shard_end(shard);
    return status;
}

/* Calls that the application holds refer to what the protocol shares, so that is freed last. */
void net_shard_end(struct net_shard *shard)
{
    struct net_server *server = shard->server;
    for (unsigned i = 0; shard->index == 0 && i < server->listener_count; i++)
        net_listener_end(&server->listeners[i]);
    shard->draining = true; /* connections that are still assigned are refused */
    close_all(shard);
    loop_timer_cancel(shard->loop, &shard->drain_timer);
    if (server->app.shard_stop)
        server->app.shard_stop(server->app.ctx, shard);
    free_shared(shard);
}

/* -- checking -- */

void net_shard_check(const struct net_shard *shard)
{
    uint64_t count = 0, held_bytes = 0, listed = 0;
    const struct net_connection *c;
    LIST_FOREACH (c, &shard->connections, in_shard) {
        assert(c->shard == shard);
        assert(c->state != CONNECTION_CLOSED);
        assert(c->protocol);
        assert(!c->held || c->held->at < c->held->len);
        held_bytes += c->held ? c->held->len - c->held->at : 0;
        listed += !list_empty(&c->in_dirty);
        count++;
    }
    assert(shard->counters.connections == count);
    assert(shard->counters.held_bytes == held_bytes);
    assert(list_length(&shard->dirty) + list_length(&shard->unfinished) == listed);
    assert(shard->assigned >= count);
    assert(!shard->drained || shard->draining);
}
