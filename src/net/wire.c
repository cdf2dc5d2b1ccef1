#include "net/wire.h"

static void feed(void *protocol, struct slice bytes, int64_t now_ns)
{
    wire_connection_feed(protocol, bytes, now_ns);
}

static void feed_end(void *protocol, int64_t now_ns)
{
    wire_connection_feed_end(protocol, now_ns);
}

static bool wants_read(const void *protocol)
{
    return wire_connection_wants_read(protocol);
}

static bool wants_write(const void *protocol)
{
    return wire_connection_wants_write(protocol);
}

static size_t fill(void *protocol, uint8_t *dst, size_t room, int64_t now_ns)
{
    return wire_connection_fill(protocol, dst, room, now_ns);
}

static bool output_ended(const void *protocol)
{
    return wire_connection_output_ended(protocol);
}

static bool should_close(const void *protocol)
{
    return wire_connection_should_close(protocol);
}

static const char *reason(const void *protocol)
{
    return wire_connection_reason(protocol);
}

static int64_t timeout(const void *protocol)
{
    return wire_connection_timeout(protocol);
}

static void tick(void *protocol, int64_t now_ns)
{
    wire_connection_tick(protocol, now_ns);
}

static void shutdown(void *protocol, int64_t now_ns)
{
    wire_connection_shutdown(protocol, now_ns);
}

static bool idle(const void *protocol)
{
    return wire_connection_idle(protocol);
}

static void free_connection(void *protocol)
{
    wire_connection_free(protocol);
}

static enum status shard_new(void *ctx, struct net_shard *shard, void **ret_shared)
{
    (void)shard;
    const struct net_wire *wire = ctx;
    struct wire_server *server;
    TRY(wire_server_new(wire->services, wire->routes, &wire->limits, &server));
    *ret_shared = server;
    return ST_OK;
}

static void shard_free(void *shared)
{
    wire_server_free(shared);
}

static enum status open_connection(void *shared, struct protocol_hooks hooks, int64_t now_ns,
                                   void **ret_protocol)
{
    struct wire_hooks wire_hooks = {
        .on_output = hooks.on_output,
        .peer_address = hooks.peer_address,
        .fresh_ns = hooks.fresh_ns,
        .owner = hooks.owner,
        .account = hooks.account,
        .secure = hooks.secure,
        .peer_name = hooks.peer_name,
        .certificate = hooks.certificate,
    };
    struct wire_connection *connection;
    TRY(wire_connection_new(shared, wire_hooks, now_ns, &connection));
    *ret_protocol = connection;
    return ST_OK;
}

struct protocol_kind net_wire_kind(struct net_wire *wire)
{
    static const struct protocol_ops ops = {
        .feed = feed,
        .feed_end = feed_end,
        .wants_read = wants_read,
        .wants_write = wants_write,
        .fill = fill,
        .output_ended = output_ended,
        .should_close = should_close,
        .reason = reason,
        .timeout = timeout,
        .tick = tick,
        .shutdown = shutdown,
        .idle = idle,
        .free = free_connection,
    };
    return (struct protocol_kind){
        .ops = &ops,
        .shard_new = shard_new,
        .shard_free = shard_free,
        .open = open_connection,
        .ctx = wire,
    };
}
