/* Sockets connected to wire/, over a simulated network. */
#include "net/wire.h"

#include "base/buf.h"
#include "io/loop.h"
#include "net/server.h"
#include "simulated/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

struct client {
    struct loop *loop;
    struct socket socket;
    struct io_watch watch;
    struct buf to_send, received;
    size_t sent;
    bool over; /* ended or broken */
    bool broken;
    bool deaf;
};

struct world {
    struct sim *sim;
    struct loop *loop;
    struct net_server *server;
    struct net_wire wire;
    struct protocol_kind kind;
    struct http_routes *routes;
    struct url bound;
    struct client client;
};

static void client_close(struct client *c)
{
    if (!c->socket.ops)
        return;
    loop_unwatch(c->loop, &c->watch);
    socket_close(&c->socket);
    c->over = true;
}

static enum status client_read(struct client *c)
{
    uint8_t bytes[4096];
    size_t n;
    TRY(socket_read(&c->socket, bytes, sizeof(bytes), &n));
    return buf_append(&c->received, slice_of(bytes, n));
}

static enum status client_write(struct client *c)
{
    size_t n;
    struct slice rest = slice_of(c->to_send.ptr + c->sent, c->to_send.len - c->sent);
    TRY(socket_write(&c->socket, rest, &n));
    c->sent += n;
    return ST_OK;
}

static void client_ready(struct io_watch *watch, unsigned ready)
{
    struct client *c = CONTAINER_OF(watch, struct client, watch);
    enum status status = ST_OK;
    if (ready & (IO_READ | IO_BROKEN) && !c->deaf)
        status = client_read(c);
    if ((status == ST_OK || status == ST_AGAIN) && ready & IO_WRITE && c->sent < c->to_send.len)
        status = client_write(c);
    if (status != ST_OK && status != ST_AGAIN) {
        c->broken = status == ST_CLOSED;
        client_close(c);
        return;
    }
    unsigned events = (c->sent < c->to_send.len ? IO_WRITE : 0u) | (c->deaf ? 0u : IO_READ);
    if (!events)
        loop_unwatch(c->loop, watch);
    else
        assert_int_equal(loop_watch(c->loop, watch, events), ST_OK);
}

static void client_send(struct client *c, struct slice bytes)
{
    assert_int_equal(buf_append(&c->to_send, bytes), ST_OK);
    assert_int_equal(loop_watch(c->loop, &c->watch, IO_WRITE | (c->deaf ? 0u : IO_READ)), ST_OK);
}

static void client_dial(struct world *w)
{
    struct client *c = &w->client;
    *c = (struct client){.loop = w->loop};
    struct error error;
    assert_int_equal(network_connect(sim_network(w->sim), &w->bound.address, &c->socket, &error),
                     ST_OK);
    c->watch = (struct io_watch){.handle = c->socket.handle, .fn = client_ready};
    assert_int_equal(loop_watch(w->loop, &c->watch, IO_READ), ST_OK);
}

static void echo(struct http_exchange *exchange, void *service, const struct http_request *request)
{
    (void)service;
    http_respond(exchange, 200, SLICE_LITERAL("text/plain"), request->body);
}

static void answer_much(struct http_exchange *exchange, void *service,
                        const struct http_request *request)
{
    (void)service;
    (void)request;
    static uint8_t much[1 << 20];
    http_respond(exchange, 200, SLICE_LITERAL("text/plain"), slice_of(much, sizeof(much)));
}

static const struct http_route rows[] = {
    {.path = "/echo", .on_request = echo},
    {.path = "/much", .on_request = answer_much},
};

static void world_init(struct world *w, uint64_t seed, uint32_t reset_per_million)
{
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    options.seed = seed;
    options.reset_per_million = reset_per_million;
    options.buffer_bytes = seed % 2 ? 1500 : 100000;
    *w = (struct world){.sim = sim_new(&options), .wire.limits = WIRE_LIMITS_DEFAULT};
    assert_int_equal(http_routes_new(&w->routes), ST_OK);
    assert_int_equal(http_routes_add(w->routes, rows, COUNT_OF(rows), NULL), ST_OK);
    w->wire.routes = w->routes;
    w->kind = net_wire_kind(&w->wire);
    struct network *network = sim_network(w->sim);
    struct net_options net = NET_OPTIONS_DEFAULT;
    struct url url;
    struct error error;
    assert_int_equal(network_loop_new(network, &w->loop), ST_OK);
    assert_int_equal(net_server_new(network, &net, NULL, &w->server), ST_OK);
    assert_int_equal(url_parse(SLICE_LITERAL("http://127.0.0.1:0"), &url, &error), ST_OK);
    assert_int_equal(net_server_listen(w->server, &url, &w->kind, &w->bound, &error), ST_OK);
    assert_int_equal(net_server_start(w->server), ST_OK);
    client_dial(w);
}

static void world_fini(struct world *w)
{
    client_close(&w->client);
    buf_fini(&w->client.to_send);
    buf_fini(&w->client.received);
    net_server_stop(w->server);
    net_server_free(w->server);
    http_routes_free(w->routes);
    loop_free(w->loop);
    sim_free(w->sim);
}

static void run_for(struct world *w, int64_t ns)
{
    sim_run_until(w->sim, clock_mono_ns(sim_clock(w->sim)) + ns);
}

static size_t connections(struct world *w)
{
    return net_server_stats(w->server).connections;
}

/* "<i>" for i from 0 on, in order; returns their number. */
static int answers_in_order(const struct client *c)
{
    struct slice rest = buf_slice(&c->received);
    for (int i = 0;; i++) {
        char body[16];
        snprintf(body, sizeof(body), "<%d>", i);
        const uint8_t *at = rest.len ? memmem(rest.ptr, rest.len, body, strlen(body)) : NULL;
        if (!at)
            return i;
        rest = slice_sub(rest, (size_t)(at - rest.ptr), rest.len - (size_t)(at - rest.ptr));
    }
}

static void send_requests(struct client *c, int count)
{
    for (int i = 0; i < count; i++) {
        char body[16], request[256];
        snprintf(body, sizeof(body), "<%d>", i);
        int len = snprintf(request, sizeof(request),
                           "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n%s\r\n%s",
                           strlen(body), i == count - 1 ? "Connection: close\r\n" : "", body);
        client_send(c, slice_of(request, (size_t)len));
    }
}

static void pipelined_http1_survives_any_split(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct world w;
        world_init(&w, seed, 0);
        send_requests(&w.client, 50);
        run_for(&w, 5 * NS_PER_S);
        assert_true(w.client.over && !w.client.broken);
        assert_int_equal(answers_in_order(&w.client), 50);
        assert_int_equal(connections(&w), 0);
        world_fini(&w);
    }
}

static void broken_http1_connections_leave_nothing_behind(void **state)
{
    (void)state;
    int broken = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct world w;
        world_init(&w, seed, 50000);
        send_requests(&w.client, 50);
        run_for(&w, 400 * NS_PER_S);
        assert_true(w.client.over);
        broken += w.client.broken;
        assert_int_equal(connections(&w), 0);
        assert_int_equal(net_server_stats(w.server).held_bytes, 0);
        world_fini(&w);
    }
    assert_true(broken > 10);
}

static void silent_client_is_disconnected_after_ten_seconds(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 1, 0);
    run_for(&w, 9900 * NS_PER_MS);
    assert_int_equal(connections(&w), 1);
    run_for(&w, 1200 * NS_PER_MS);
    assert_true(w.client.over);
    assert_int_equal(connections(&w), 0);
    world_fini(&w);
}

/* One byte per second: each is progress, but there is a timeout for the whole head. */
static void slow_header_times_out_after_ten_seconds(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 2, 0);
    client_send(&w.client, SLICE_LITERAL("GET /echo HTTP/1.1\r\nX: "));
    for (int second = 0; second < 9; second++) {
        run_for(&w, NS_PER_S);
        client_send(&w.client, SLICE_LITERAL("x"));
    }
    assert_int_equal(connections(&w), 1);
    run_for(&w, 3 * NS_PER_S);
    assert_true(w.client.over);
    assert_int_equal(connections(&w), 0);
    world_fini(&w);
}

static void kept_alive_connection_is_closed_when_idle_too_long(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 3, 0);
    client_send(&w.client, SLICE_LITERAL("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n"
                                         "\r\n<0>"));
    run_for(&w, 299 * NS_PER_S);
    assert_int_equal(answers_in_order(&w.client), 1);
    assert_int_equal(connections(&w), 1);
    run_for(&w, 4 * NS_PER_S);
    assert_int_equal(connections(&w), 0);
    world_fini(&w);
}

static void unread_answer_ends_after_a_minute(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 4, 0);
    w.client.deaf = true;
    client_send(&w.client, SLICE_LITERAL("GET /much HTTP/1.1\r\nHost: x\r\n\r\n"));
    run_for(&w, 58 * NS_PER_S);
    assert_int_equal(connections(&w), 1);
    assert_true(net_server_stats(w.server).held_bytes <= 64 * 1024);
    run_for(&w, 4 * NS_PER_S);
    assert_int_equal(connections(&w), 0);
    world_fini(&w);
}

/* Whether the received frames contain one of that type. */
static bool has_frame(const struct client *c, uint8_t type)
{
    struct slice rest = buf_slice(&c->received);
    while (rest.len >= 9) {
        size_t len = (size_t)rest.ptr[0] << 16 | (size_t)rest.ptr[1] << 8 | rest.ptr[2];
        if (rest.ptr[3] == type)
            return true;
        if (rest.len < 9 + len)
            return false;
        rest = slice_sub(rest, 9 + len, rest.len - 9 - len);
    }
    return false;
}

static void http2_is_detected_and_sends_goaway_when_drained(void **state)
{
    (void)state;
    enum { FRAME_SETTINGS = 4, FRAME_GOAWAY = 7 };
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct world w;
        world_init(&w, seed, 0);
        client_send(&w.client, SLICE_LITERAL("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
        client_send(&w.client, SLICE_LITERAL("\0\0\0\4\0\0\0\0\0"));
        run_for(&w, 20 * NS_PER_S);
        assert_true(has_frame(&w.client, FRAME_SETTINGS));
        assert_false(has_frame(&w.client, FRAME_GOAWAY));
        assert_int_equal(connections(&w), 1);

        net_server_drain(w.server);
        run_for(&w, 6 * NS_PER_S);
        assert_true(has_frame(&w.client, FRAME_GOAWAY));
        assert_true(net_server_drained(w.server));
        assert_true(w.client.over);
        world_fini(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipelined_http1_survives_any_split),
        cmocka_unit_test(broken_http1_connections_leave_nothing_behind),
        cmocka_unit_test(silent_client_is_disconnected_after_ten_seconds),
        cmocka_unit_test(slow_header_times_out_after_ten_seconds),
        cmocka_unit_test(kept_alive_connection_is_closed_when_idle_too_long),
        cmocka_unit_test(unread_answer_ends_after_a_minute),
        cmocka_unit_test(http2_is_detected_and_sends_goaway_when_drained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
