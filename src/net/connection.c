#include "net/server_private.h"

#include <stdio.h>
#include <stdlib.h>

static void mark_dirty(struct net_connection *c)
{
    if (list_empty(&c->in_dirty))
        list_push_back(&c->shard->dirty, &c->in_dirty);
}

static void on_output(void *owner)
{
    struct net_connection *c = owner;
    if (c->state == CONNECTION_OPEN)
        mark_dirty(c);
}

static void on_long_step(void *owner)
{
    struct net_connection *c = owner;
    c->shard->long_step = true;
}

/* Drawn in server_private.h. */
static const uint8_t connection_moves[] = {
    [CONNECTION_OPEN] = 1u << CONNECTION_LINGERING | 1u << CONNECTION_CLOSED,
    [CONNECTION_LINGERING] = 1u << CONNECTION_CLOSED,
    [CONNECTION_CLOSED] = 0,
};

static void move(struct net_connection *c, enum net_connection_state next)
{
    assert(connection_moves[c->state] & (1u << next));
    c->state = (uint8_t)next;
}

static size_t held_size(size_t len)
{
    return sizeof(struct net_held) + len;
}

static void drop_held(struct net_connection *c)
{
    if (c->held)
        account_release(c->account, held_size(c->held->len));
    free(c->held);
    c->held = NULL;
}

void net_connection_close(struct net_connection *c)
{
    struct net_shard *shard = c->shard;
    move(c, CONNECTION_CLOSED); /* for hooks that freeing the protocol calls */
    loop_unwatch(shard->loop, &c->watch);
    loop_timer_cancel(shard->loop, &c->timer);
    list_remove(&c->in_dirty);
    if (c->protocol)
        c->ops->free(c->protocol);
    socket_close(&c->socket);
    if (c->held)
        counter_add_alone(&shard->counters.held_bytes, -(uint64_t)(c->held->len - c->held->at));
    drop_held(c);
    account_unref(c->account);
    net_shard_forget(shard, c);
    free(c);
}

/* -- deadlines -- */

/* An idle client may read our last bytes later; stopping the server does not wait for it. */
#define DRAIN_LINGER_NS (100 * NS_PER_MS)

/* Nothing is in progress, or the connection shuts down: we may then give up on bytes that the peer
 * does not take. Otherwise the protocol ends a stalled response, and a watch may wait for its
 * reader without limit. */
static bool may_give_up(const struct net_connection *c)
{
    return c->ops->should_close(c->protocol) || c->ops->idle(c->protocol);
}

static int64_t stall_at(const struct net_connection *c)
{
    return c->held ? clock_add(c->progress_ns, c->shard->server->options.stall_ns) : CLOCK_NEVER;
}

static int64_t deadline(const struct net_connection *c)
{
    if (c->state == CONNECTION_LINGERING) {
        int64_t linger_ns = c->shard->server->options.linger_ns;
        if (c->shard->draining && linger_ns > DRAIN_LINGER_NS)
            linger_ns = DRAIN_LINGER_NS;
        return clock_add(c->progress_ns, linger_ns);
    }
    int64_t at = c->ops->timeout(c->protocol);
    int64_t stall = stall_at(c);
    if (stall <= loop_now_ns(c->shard->loop) && !may_give_up(c))
        stall = CLOCK_NEVER; /* checked again when the protocol makes progress */
    return stall < at ? stall : at;
}

/* A deadline that moves with every request does not change the heap: the timer fires early, finds
 * nothing due, and is set again. */
static void arm(struct net_connection *c)
{
    int64_t at = deadline(c);
    if (at != CLOCK_NEVER && (!c->timer.set || at < c->timer.at_ns))
        loop_timer_set(c->shard->loop, &c->timer, at);
}

static void on_timer(struct timer *timer)
{
    struct net_connection *c = CONTAINER_OF(timer, struct net_connection, timer);
    int64_t now = loop_now_ns(c->shard->loop);
    if (c->state == CONNECTION_LINGERING) {
        net_connection_close(c); /* the peer has had its time to read the last bytes */
        return;
    }
    assert(c->state == CONNECTION_OPEN);
    if (c->ops->timeout(c->protocol) <= now)
        c->ops->tick(c->protocol, now);
    if (stall_at(c) <= now && may_give_up(c)) {
        counter_add_alone(&c->shard->counters.stalled, 1);
        net_connection_close(c);
        return;
    }
    mark_dirty(c);
}

/* -- what is watched -- */

static unsigned wanted_events(const struct net_connection *c)
{
    unsigned events = c->held ? IO_WRITE : 0;
    if (!c->ended && (c->state == CONNECTION_LINGERING || c->ops->wants_read(c->protocol)))
        events |= IO_READ;
    return events;
}

/* False: it failed and the connection was closed. */
static bool update_watch(struct net_connection *c)
{
    unsigned events = wanted_events(c);
    if (events == c->watch.events)
        return true;
    if (events == 0) {
        loop_unwatch(c->shard->loop, &c->watch);
        return true;
    }
    if (loop_watch(c->shard->loop, &c->watch, events) == ST_OK)
        return true;
    net_connection_close(c);
    return false;
}

/* -- for the log of long turns -- */

static void peer_address(void *owner, char *text)
{
    const struct net_connection *c = owner;
    struct address address;
    text[0] = 0;
    if (socket_peer(&c->socket, &address) == ST_OK)
        address_format(&address, text);
    if (!text[0])
        snprintf(text, ADDRESS_TEXT_BYTES,
                 "@"); /* a client of a Unix socket has no address; Go prints this */
}

/* Work for this connection is done; if it took long, the log line needs the client's address. */
static void note_work(const struct net_connection *c)
{
    char text[ADDRESS_TEXT_BYTES];
    if (!turn_work_done())
        return;
    peer_address((void *)(uintptr_t)c, text);
    turn_peer(text);
}

/* -- sending -- */

static enum status write_bytes(struct net_connection *c, struct slice bytes, size_t *ret_len)
{
    struct net_counters *counters = &c->shard->counters;
    TRY(socket_write(&c->socket, bytes, ret_len));
    counter_add_alone(&counters->writes, 1);
    counter_add_alone(&counters->bytes_out, *ret_len);
    return ST_OK;
}

static enum status hold(struct net_connection *c, struct slice rest)
{
    assert(!c->held);
    assert(rest.len > 0 && rest.len <= NET_SCRATCH_BYTES);
    if (!account_charge(c->account, held_size(rest.len)))
        return ST_NOMEM;
    c->held = malloc(held_size(rest.len));
    if (!c->held) {
        account_release(c->account, held_size(rest.len));
        return ST_NOMEM;
    }
    c->held->at = 0;
    c->held->len = (uint32_t)rest.len;
    slice_copy(c->held->bytes, rest);
    c->was_full = true;
    c->progress_ns = loop_now_ns(c->shard->loop);
    counter_add_alone(&c->shard->counters.held_bytes, rest.len);
    return ST_OK;
}

/* ST_AGAIN: some bytes are left. */
static enum status send_held(struct net_connection *c)
{
    struct net_held *held = c->held;
    size_t n;
    assert(held->at < held->len);
    TRY(write_bytes(c, slice_of(held->bytes + held->at, held->len - held->at), &n));
    held->at += (uint32_t)n;
    c->progress_ns = loop_now_ns(c->shard->loop);
    counter_add_alone(&c->shard->counters.held_bytes, -(uint64_t)n);
    if (held->at < held->len)
        return ST_AGAIN;
    drop_held(c);
    return ST_OK;
}

/* Sends all that the protocol has, or as much as a turn or the socket allows. ST_AGAIN: bytes are
 * held. */
static enum status send_filled(struct net_connection *c, bool *ret_more)
{
    int64_t now = loop_now_ns(c->shard->loop);
    uint8_t *scratch = c->shard->write_scratch;
    size_t share = c->shard->server->options.turn_bytes_max;
    *ret_more = false;
    while (c->ops->wants_write(c->protocol)) {
        if (share < NET_FILL_ROOM_MIN) { /* other connections come first */
            *ret_more = true;
            return ST_OK;
        }
        /* A peer that did not take everything gets little at once: what it does not take is copied.
         */
        size_t room = c->was_full ? NET_FILL_ROOM_MIN : size_min(share, NET_SCRATCH_BYTES);
        size_t filled = c->ops->fill(c->protocol, scratch, room, now);
        assert(filled <= room);
        if (filled == 0)
            break;
        share -= filled;
        size_t sent = 0;
        enum status status = write_bytes(c, slice_of(scratch, filled), &sent);
        if (status != ST_OK && status != ST_AGAIN)
            return status;
        if (sent < filled) {
            TRY(hold(c, slice_of(scratch + sent, filled - sent)));
            return ST_AGAIN;
        }
    }
    c->was_full = false;
    return ST_OK;
}

/* -- closing -- */

/* False: the connection was closed. */
static bool linger(struct net_connection *c)
{
    if (c->ended) {
        net_connection_close(c);
        return false;
    }
    /* The peer may still send. Closing now would make its system discard our last bytes. */
    socket_shutdown(&c->socket);
    move(c, CONNECTION_LINGERING);
    c->progress_ns = loop_now_ns(c->shard->loop);
    loop_timer_cancel(c->shard->loop, &c->timer);
    if (!update_watch(c))
        return false;
    arm(c);
    return true;
}

bool net_connection_flush(struct net_connection *c)
{
    assert(c->state == CONNECTION_OPEN);
    bool more = false;
    enum status status = c->held ? ST_AGAIN : send_filled(c, &more);
    note_work(c);
    if (status != ST_OK && status != ST_AGAIN) {
        net_connection_close(c);
        return false;
    }
    /* Everything was sent. The connection is over if the protocol says so, or if the peer has ended
     * its side and waits for nothing. */
    bool ended = c->ended && !c->ops->wants_write(c->protocol) && c->ops->idle(c->protocol);
    if (!c->held && !more && (ended || c->ops->should_close(c->protocol))) {
        linger(c);
        return false;
    }
    bool half = !c->output_ended && c->ops->output_ended && c->ops->output_ended(c->protocol);
    if (half && !c->held && !more) {
        c->output_ended = true;
        socket_shutdown(&c->socket);
    }
    if (!update_watch(c))
        return false;
    arm(c);
    return more;
}

void net_connection_shutdown(struct net_connection *c)
{
    if (c->state != CONNECTION_OPEN)
        return;
    c->ops->shutdown(c->protocol, loop_now_ns(c->shard->loop));
    mark_dirty(c);
}

/* -- receiving -- */

/* One piece per turn, so that a client that sends more waits for the others. False: the connection
 * was closed. */
static bool receive(struct net_connection *c)
{
    struct net_shard *shard = c->shard;
    size_t n = 0;
    assert(!c->ended);
    enum status status = socket_read(&c->socket, shard->read_scratch, NET_SCRATCH_BYTES, &n);
    if (status == ST_AGAIN)
        return true;
    if (status != ST_OK && (status != ST_END || c->state == CONNECTION_LINGERING)) {
        net_connection_close(c);
        return false;
    }
    if (c->state == CONNECTION_LINGERING)
        return true; /* dropped */
    if (status == ST_END) {
        c->ended = true;
        c->ops->feed_end(c->protocol, loop_now_ns(shard->loop));
    } else {
        counter_add_alone(&shard->counters.reads, 1);
        counter_add_alone(&shard->counters.bytes_in, n);
        c->ops->feed(c->protocol, slice_of(shard->read_scratch, n), loop_now_ns(shard->loop));
    }
    mark_dirty(c);
    return true;
}

static void on_ready(struct io_watch *watch, unsigned ready)
{
    struct net_connection *c = CONTAINER_OF(watch, struct net_connection, watch);
    if (c->held && ready & (IO_WRITE | IO_BROKEN)) {
        enum status status = send_held(c);
        if (status != ST_OK && status != ST_AGAIN) {
            net_connection_close(c);
            return;
        }
        if (status == ST_OK)
            mark_dirty(c);
    }
    if (!(ready & (IO_READ | IO_BROKEN) && watch->events & IO_READ))
        return;
    if (wanted_events(c) & IO_READ) {
        if (receive(c))
            note_work(c);
    } else {
        mark_dirty(c); /* the watch differs from what the protocol wants; flushing corrects it */
    }
}

/* -- opening -- */

static int64_t fresh_ns(void *owner)
{
    const struct net_connection *c = owner;
    return clock_mono_ns(loop_clock(c->shard->loop));
}

void net_connection_open(struct net_shard *shard, struct socket socket, unsigned kind_index)
{
    const struct protocol_kind *kind = shard->server->kinds[kind_index];
    struct net_connection *c = calloc(1, sizeof(*c));
    if (!c) {
        socket_close(&socket);
        net_shard_forget(shard, NULL);
        return;
    }
    c->watch = (struct io_watch){.handle = socket.handle, .fn = on_ready};
    c->socket = socket;
    c->timer.fn = on_timer;
    c->shard = shard;
    c->ops = kind->ops;
    list_init(&c->in_dirty);
    list_push_back(&shard->connections, &c->in_shard);
    counter_add_alone(&shard->counters.connections, 1);

    struct protocol_hooks hooks = {.on_output = on_output,
                                   .on_long_step = on_long_step,
                                   .peer_address = peer_address,
                                   .fresh_ns = fresh_ns,
                                   .owner = c};
    int64_t now = loop_now_ns(shard->loop);
    enum status status = account_new(shard->server->options.budget, &c->account);
    hooks.account = c->account;
    if (status != ST_OK ||
        kind->open(shard->shared[kind_index], hooks, now, &c->protocol) != ST_OK ||
        loop_watch(shard->loop, &c->watch, IO_READ) != ST_OK) {
        net_connection_close(c);
        return;
    }
    mark_dirty(c); /* a server may send first, and the handshake has a deadline */
}
