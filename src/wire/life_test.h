/*
 * For fuzzers and the test that runs their corpora: the whole life of one connection. The first
 * byte of the input is the seed for how the rest is split and what the services do in between.
 */
#ifndef VIGIL_WIRE_LIFE_TEST_H
#define VIGIL_WIRE_LIFE_TEST_H

#include "wire/grpc/requests_test.h"
#include "wire/grpc/services_test.h"
#include "wire/http/routes_test.h"
#include "wire/http/stream_routes_test.h"
#include "wire/memory_test.h"

struct test_life {
    struct wire_limits limits;
    struct grpc_services *services;
    struct http_routes *routes;
    struct test_memory memory;
    struct wire_server *server;
    struct wire_connection *connection;
    struct test_service service;
    struct test_site site;
    struct test_stream_site stream;
    uint32_t seed;
    int64_t now;
    size_t filled;
};

static inline uint32_t test_random(struct test_life *life)
{
    life->seed = life->seed * 1664525u + 1013904223u;
    return life->seed >> 8;
}

static inline void test_life_drain(struct test_life *life)
{
    static uint8_t room[WIRE_FILL_ROOM_MIN];
    for (int turns = 0; turns < 64 && wire_connection_wants_write(life->connection); turns++)
        life->filled += wire_connection_fill(life->connection, room, sizeof(room), life->now);
}

/* What the handler of a streamed body or an upgraded connection does. */
static inline void test_life_act_stream(struct test_life *life)
{
    struct test_stream_site *site = &life->stream;
    uint32_t choice = test_random(life) % 16;
    static const uint8_t bytes[1000];
    if (!site->latest)
        return;
    http_authorized(site->latest);
    site->withholds = choice % 2;
    site->begins = choice % 4 == 3;
    site->answers = choice == 5 ? 403 : 0;
    if (choice < 6 && site->latest && site->runs)
        http_withhold(site->latest, choice < 3);
    else if (choice < 9)
        test_stream_give(site, slice_of(bytes, test_random(life) % sizeof(bytes)));
    else if (choice == 9 && site->runs && !site->begun)
        http_respond(site->latest, 200, SLICE_EMPTY, SLICE_LITERAL("late"));
    else if (choice == 10)
        http_abort(site->latest);
}

/* What services do independently of input. */
static inline void test_life_act(struct test_life *life)
{
    struct grpc_call *call = life->service.call;
    uint32_t choice = test_random(life) % 8;
    if (life->site.later && choice < 2)
        http_respond(life->site.later, 200, SLICE_EMPTY, SLICE_LITERAL("late"));
    if (life->site.watch && choice == 4)
        test_site_watch_more(life->site.watch, test_random(life) % 30000);
    else if (life->site.watch && choice == 5)
        http_abort(life->site.watch);
    test_life_act_stream(life);
    if (!call)
        return;
    if (choice == 0) {
        grpc_call_finish(call);
    } else if (choice == 1 && !life->service.pulls) {
        test_send(call, SLICE_LITERAL("something"));
    } else if (choice == 2) {
        life->service.source_bytes += test_random(life) % 100000;
        grpc_call_wake(call);
    } else if (choice == 3) {
        grpc_call_fail(call, ST_COMPACTED);
    }
}

static inline enum status test_life_begin(struct test_life *life, uint32_t seed)
{
    *life = (struct test_life){.limits = WIRE_LIMITS_DEFAULT, .seed = seed, .now = 1000000000};
    life->limits.grpc.receive_bytes_max = 10000;
    life->limits.http.body_bytes_max = 1000;
    life->limits.http1.head_bytes_max = 2000;
    life->service.source_bytes = seed % 100000;
    life->service.source_done = seed % 3 == 0;
    life->site.big_bytes = seed * 1000;
    life->site.abort_pulls = seed % 7 == 0;
    TRY(grpc_services_new(&life->services));
    TRY(grpc_services_add(life->services, test_methods, COUNT_OF(test_methods), &life->service));
    TRY(http_routes_new(&life->routes));
    TRY(http_routes_add(life->routes, test_routes, COUNT_OF(test_routes), &life->site));
    if (seed % 4 == 3)
        TRY(http_routes_add(life->routes, test_stream_routes, COUNT_OF(test_stream_routes),
                            &life->stream));
    TRY(wire_server_new(life->services, life->routes, &life->limits, &life->server));
    TRY(budget_new(100000, &life->memory.budget));
    TRY(account_new(life->memory.budget, &life->memory.account));
    struct wire_hooks hooks = {.account = life->memory.account};
    return wire_connection_new(life->server, hooks, life->now, &life->connection);
}

static inline void test_life_end(struct test_life *life)
{
    wire_connection_free(life->connection);
    wire_server_free(life->server);
    grpc_services_free(life->services);
    http_routes_free(life->routes);
    test_memory_fini(&life->memory);
    assert(life->service.call == NULL);
    assert(life->site.later == NULL);
    assert(life->site.requests == life->site.ends);
    test_stream_site_fini(&life->stream);
}

static inline void test_life_feed(struct test_life *life, struct slice bytes)
{
    while (bytes.len && !wire_connection_should_close(life->connection)) {
        size_t most = test_random(life) % 4 ? 20 : 2000;
        size_t n = size_min(bytes.len, 1 + test_random(life) % most);
        wire_connection_feed(life->connection, slice_sub(bytes, 0, n), life->now);
        bytes = slice_sub(bytes, n, bytes.len - n);
        test_life_act(life);
        if (test_random(life) % 2)
            test_life_drain(life);
        life->now += test_random(life) % 1000 * 1000000;
        if (life->now >= wire_connection_timeout(life->connection))
            wire_connection_tick(life->connection, life->now);
    }
    wire_connection_check(life->connection);
}

/* From the first byte to the last. */
static inline void test_life_run(struct slice input, bool http2)
{
    struct test_life life;
    if (input.len < 1)
        return;
    if (test_life_begin(&life, input.ptr[0]) == ST_OK) {
        if (http2) {
            wire_connection_feed(life.connection, H2_PREFACE, life.now);
            wire_connection_feed(life.connection, SLICE_LITERAL("\0\0\0\4\0\0\0\0\0"), life.now);
        }
        test_life_feed(&life, slice_sub(input, 1, input.len - 1));
        if (life.seed % 5 == 0)
            wire_connection_shutdown(life.connection, life.now);
        test_life_drain(&life);
        wire_connection_tick(life.connection, life.now + 70 * INT64_C(1000000000));
        wire_connection_feed_end(life.connection, life.now + 70 * INT64_C(1000000000));
        test_life_drain(&life);
        wire_connection_check(life.connection);
    }
    test_life_end(&life);
}

#endif
