/* The poller against a server of the v2 API that follows a script: what it asks for, what it makes
 * of the answers, broken connections at every byte, missing memory. Also covers client/http_link.
 */
#include "client/v2/v2_poller.h"

#include "base/failing_memory_test.h"
#include "client/connect/channel.h"
#include "client/names/dns_table_test.h"
#include "client/v2/v2_server_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct world {
    struct sim *sim; /* NULL: over the operating system */
    struct network *network;
    struct loop *loop, *server_loop;
    struct v2_server server;
    struct channel *channel;
    struct v2_poller poller;
    /* What the poller has said. */
    unsigned states, failures;
    int64_t state_index, cleared_index;
    size_t state_bytes;
    int64_t changes[SCRIPT_MAX * 4];
    size_t change_count, wanted; /* it wants no more once it has so many */
    vigil_error error;
};

/* -- The receiver -- */

static void on_reply(struct v2_poller *poller, struct v2_reply *reply)
{
    struct world *w = CONTAINER_OF(poller, struct world, poller);
    assert_int_equal(w->failures, 0);
    if (reply->is_state) {
        w->states++;
        w->state_index = reply->index;
        w->state_bytes = reply->body.len;
    } else {
        assert_true(w->change_count < COUNT_OF(w->changes));
        w->changes[w->change_count++] = reply->index;
    }
    v2_reply_free(reply);
    v2_poller_want(poller, w->change_count < w->wanted);
}

static void on_failed(struct v2_poller *poller, const vigil_error *error, int64_t cleared_index)
{
    struct world *w = CONTAINER_OF(poller, struct world, poller);
    assert_int_equal(w->failures++, 0);
    w->error = *error;
    w->cleared_index = cleared_index;
}

/* -- Names -- */

static const struct dns_row no_names[] = {{NULL, NULL}};
static struct dns_table names = {.rows = no_names};

enum status __real_resolver_new(struct loop *loop, const struct resolver_backend *backend,
                                uint64_t seed, struct resolver **ret_resolver);
enum status __wrap_resolver_new(struct loop *loop, const struct resolver_backend *backend,
                                uint64_t seed, struct resolver **ret_resolver);

enum status __wrap_resolver_new(struct loop *loop, const struct resolver_backend *backend,
                                uint64_t seed, struct resolver **ret_resolver)
{
    static struct resolver_backend table;
    (void)backend;
    table = dns_table_backend(&names);
    return __real_resolver_new(loop, &table, seed, ret_resolver);
}

/* -- The poller -- */

/* more: endpoints before the server's, or the domain whose SRV records name it. */
static enum status world_connect(struct world *w, int64_t index, const char *more)
{
    static const struct v2_poller_hooks hooks = {on_reply, on_failed};
    char address[ADDRESS_TEXT_BYTES], endpoints[300];
    struct error error;
    address_format(&w->server.listener.address, address);
    snprintf(endpoints, sizeof(endpoints), "%shttp://%s", more, address);
    struct channel_options options = {
        .endpoints = endpoints,
        .srv_domain = strcmp(more, "test") == 0 ? more : NULL,
        .user = "u",
        .password = "p",
        .connect_timeout_ns = NS_PER_S,
        .backoff_min_ns = 10 * NS_PER_MS,
        .backoff_max_ns = 100 * NS_PER_MS,
    };
    struct v2_poller_options poll = {.key = SLICE_LITERAL("/a b/\xc3"),
                                     .recursive = true,
                                     .quorum = true,
                                     .index = index,
                                     .receive_bytes_max = 1000};
    TRY(channel_new(w->loop, w->network, &options, &w->channel, &error));
    TRY(v2_poller_init(&w->poller, w->channel, &poll, &hooks));
    v2_poller_want(&w->poller, true);
    return ST_OK;
}

static void world_begin(struct world *w, uint64_t seed)
{
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    options.seed = seed;
    *w = (struct world){.wanted = CHANGES};
    w->sim = seed ? sim_new(&options) : NULL;
    w->network = w->sim ? sim_network(w->sim) : network_posix();
    must(network_loop_new(w->network, &w->loop) == ST_OK);
    must(network_loop_new(w->network, &w->server_loop) == ST_OK);
    server_listen(&w->server, w->network, w->server_loop);
}

static void world_fini(struct world *w)
{
    v2_poller_fini(&w->poller);
    channel_free(w->channel);
    server_fini(&w->server);
    loop_free(w->loop);
    loop_free(w->server_loop);
    sim_free(w->sim);
}

static bool is_done(const struct world *w)
{
    return w->failures || w->change_count >= w->wanted;
}

/* At most for a minute of simulated time. */
static void run(struct world *w)
{
    int64_t until = clock_mono_ns(sim_clock(w->sim)) + 60 * NS_PER_S;
    while (!is_done(w) && clock_mono_ns(sim_clock(w->sim)) < until && sim_step(w->sim))
        v2_poller_check(&w->poller);
}

/* Every change once and in order, after the state. */
static void expect_all(const struct world *w)
{
    assert_int_equal(w->failures, 0);
    assert_int_equal(w->states, 1);
    assert_int_equal(w->state_index, STATE_INDEX);
    assert_int_equal(w->change_count, CHANGES);
    for (int i = 0; i < CHANGES; i++)
        assert_int_equal(w->changes[i], STATE_INDEX + 1 + i);
}

/* -- What is sent -- */

static void requests_are_those_of_etcds_client(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w, 1);
    assert_int_equal(world_connect(&w, 0, ""), ST_OK);
    run(&w);
    expect_all(&w);
    assert_int_equal(w.server.accepted, 1);
    assert_non_null(strstr(w.server.requests[0],
                           "GET /v2/keys/a%20b/%C3?recursive=true&quorum=true HTTP/1.1\r\n"));
    assert_non_null(strstr(w.server.requests[0], "\r\nHost: 127.0.0.1:"));
    assert_non_null(strstr(w.server.requests[0], "\r\nAuthorization: Basic dTpw\r\n"));
    assert_non_null(
        strstr(w.server.requests[1],
               "GET /v2/keys/a%20b/%C3?recursive=true&wait=true&waitIndex=11 HTTP/1.1\r\n"));
    world_fini(&w);
}

static void watch_from_an_index_reads_no_state(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w, 1);
    w.wanted = 2;
    assert_int_equal(world_connect(&w, 14, ""), ST_OK);
    run(&w);
    assert_int_equal(w.states, 0);
    assert_int_equal(w.changes[0], 15);
    assert_int_equal(w.changes[1], 16);
    assert_non_null(strstr(w.server.requests[0], "waitIndex=15 "));
    world_fini(&w);
}

/* -- Broken connections -- */

static void connection_may_break_at_every_byte(void **state)
{
    (void)state;
    size_t cut = 0, total;
    do {
        for (int breaks = 0; breaks < 2; breaks++) {
            struct world w;
            world_begin(&w, cut + 1);
            w.server.cut = cut;
            w.server.breaks = breaks;
            assert_int_equal(world_connect(&w, 0, ""), ST_OK);
            run(&w);
            expect_all(&w);
            total = w.server.sent_total;
            world_fini(&w);
        }
        cut++;
    } while (cut < total);
    assert_true(cut > 900);
}

static void connections_that_are_not_kept_are_replaced(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w, 3);
    for (size_t i = 0; i < SCRIPT_MAX; i++)
        w.server.script[i].closes = true; /* without saying so before */
    assert_int_equal(world_connect(&w, 0, ""), ST_OK);
    run(&w);
    expect_all(&w);
    assert_true(w.server.accepted > CHANGES);
    world_fini(&w);
}

/* That is not a failure, so there is no pause. */
static void announced_end_of_a_connection_is_not_a_failure(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w, 3);
    w.wanted = 2;
    for (size_t i = 0; i < 2; i++) {
        w.server.script[i].text = "HTTP/1.1 200 OK\r\nConnection: close\r\n";
        w.server.script[i].body =
            i ? "{\"node\":{\"modifiedIndex\":12}}" : "{\"node\":{\"modifiedIndex\":11}}";
    }
    assert_int_equal(world_connect(&w, 10, ""), ST_OK);
    run(&w);
    assert_int_equal(w.change_count, 2);
    assert_int_equal(w.poller.requests, 2);
    assert_int_equal(w.poller.retries, 0);
    world_fini(&w);
}

static void body_may_end_with_the_connection(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w, 3);
    w.wanted = 1;
    w.server.script[0] = (struct answer){
        .text = "HTTP/1.0 200 OK\r\n\r\n{\"node\":{\"modifiedIndex\":11}}", .closes = true};
    assert_int_equal(world_connect(&w, 10, ""), ST_OK);
    run(&w);
    assert_int_equal(w.changes[0], 11);
    assert_int_equal(w.poller.requests, 1);
    world_fini(&w);
}

/* It accepts connections and closes them. */
static void server_without_answers_is_not_flooded(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w, 3);
    for (size_t i = 0; i < SCRIPT_MAX; i++)
        w.server.script[i] = (struct answer){.text = "", .closes = true};
    assert_int_equal(world_connect(&w, 0, ""), ST_OK);
    int64_t from = clock_mono_ns(sim_clock(w.sim));
    run(&w);
    expect_all(&w);
    assert_true(clock_mono_ns(sim_clock(w.sim)) - from > 400 * NS_PER_MS);
    world_fini(&w);
}

static void run_for(struct world *w, int64_t seconds)
{
    sim_run_until(w->sim, clock_mono_ns(sim_clock(w->sim)) + seconds * NS_PER_S);
    v2_poller_check(&w->poller);
}

/* It answers with a header at once, and with a body when something happens; or not even with a
 * header. After the time for which a server waits the poll is repeated. */
static void poll_lasts_as_long_as_a_server_waits(void **state)
{
    static const char *const heads[] = {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                                        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(heads); i++) {
        struct world w;
        world_begin(&w, 3 + i);
        w.wanted = 1;
        w.server.script[0].text = w.server.script[1].text = heads[i];
        assert_int_equal(world_connect(&w, 10, ""), ST_OK);
        run_for(&w, 5 * 60 + 30);
        assert_int_equal(w.poller.requests, 1);
        assert_int_equal(w.server.accepted, 1);
        run_for(&w, 60);
        assert_int_equal(w.poller.requests, 2);
        assert_int_equal(w.server.accepted, 2);
        run_for(&w, 6 * 60);
        assert_int_equal(w.change_count, 1);
        assert_int_equal(w.changes[0], 11); /* none was skipped */
        assert_int_equal(w.failures, 0);
        run_for(&w, 3600); /* nothing more is wanted */
        assert_int_equal(w.poller.requests, 3);
        world_fini(&w);
    }
}

static void endpoint_that_refuses_is_left(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w, 4);
    assert_int_equal(world_connect(&w, 0, "http://127.0.0.1:8,http://127.0.0.1:9,"), ST_OK);
    w.server.script[0].text = "HTTP/1.1 503 No leader\r\nContent-Length: 0\r\n\r\n";
    w.server.script[1].text = "HTTP/1.1 429 Too Many\r\nContent-Length: 2\r\n\r\nxx";
    run(&w);
    expect_all(&w);
    assert_int_equal(w.server.accepted, 3);
    world_fini(&w);
}

/* They are looked up again after a pause, and after a failure. */
static void endpoints_come_from_srv_records(void **state)
{
    (void)state;
    struct world w;
    char record[64];
    world_begin(&w, 8);
    snprintf(record, sizeof(record), "0 0 9 a.test; 1 0 %u a.test",
             address_port(&w.server.listener.address));
    const struct dns_row rows[] = {
        {"_etcd-client._tcp.test", record}, {"a.test", "127.0.0.1"}, {NULL, NULL}};
    w.server.script[1] = (struct answer){.text = "", .closes = true};
    names = (struct dns_table){.rows = no_names};
    assert_int_equal(world_connect(&w, 0, "test"), ST_OK);
    sim_run_until(w.sim, clock_mono_ns(sim_clock(w.sim)) + NS_PER_S);
    assert_true(names.lookups > 3 && names.lookups < 100);
    assert_int_equal(w.server.accepted, 0);
    names = (struct dns_table){.rows = rows};
    run(&w);
    expect_all(&w);
    assert_true(names.lookups >= 4);
    world_fini(&w);
    names = (struct dns_table){.rows = no_names};
}

/* A server that never has anything to say gets requests with growing pauses. */
static void empty_answers_do_not_become_a_busy_loop(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w, 5);
    w.wanted = 1;
    for (size_t i = 0; i < SCRIPT_MAX; i++)
        w.server.script[i].text =
            "HTTP/1.1 200 OK\r\nX-Etcd-Index: 10\r\nContent-Length: 0\r\n\r\n";
    assert_int_equal(world_connect(&w, 10, ""), ST_OK);
    int64_t from = clock_mono_ns(sim_clock(w.sim));
    run(&w);
    assert_int_equal(w.changes[0], 11); /* none was skipped */
    assert_int_equal(w.server.accepted, 1);
    assert_true(clock_mono_ns(sim_clock(w.sim)) - from > 300 * NS_PER_MS);
    world_fini(&w);
}

static void server_that_does_not_answer_is_given_up(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w, 6);
    w.server.script[0].text = "HTTP/1.1 200 OK\r\n";
    assert_int_equal(world_connect(&w, 0, ""), ST_OK);
    int64_t from = clock_mono_ns(sim_clock(w.sim));
    run(&w);
    expect_all(&w);
    assert_true(clock_mono_ns(sim_clock(w.sim)) - from >= 30 * NS_PER_S);
    world_fini(&w);
}

/* -- Answers -- */

struct ending {
    struct answer answer;
    int64_t index; /* index of the watch */
    enum vigil_code code;
    int64_t cleared_index;
    const char *reason;
};

#define OK_HEAD "HTTP/1.1 200 OK\r\nX-Etcd-Index: 9\r\n"
#define ERROR_HEAD "HTTP/1.1 400 Bad Request\r\n"

static void errors_end_the_poller(void **state)
{
    (void)state;
    static const struct ending rows[] = {
        {{ERROR_HEAD, "{\"errorCode\":401,\"message\":\"old\",\"cause\":\"c\",\"index\":2007}", 0},
         5,
         VIGIL_ERROR_COMPACTED,
         2007,
         "401: old (c) [2007]"},
        {{ERROR_HEAD, "{\"errorCode\":104,\"message\":\"m\",\"cause\":\"c\",\"index\":7}", 0},
         0,
         VIGIL_ERROR_SERVER,
         0,
         "104: m (c) [7]"},
        {{ERROR_HEAD, "{\"errorCode\":100,\"message\":\"m\",\"cause\":\"c\",\"index\":7}", 0},
         5,
         VIGIL_ERROR_SERVER,
         0,
         "100: m (c) [7]"},
        {{"HTTP/1.1 401 No\r\n", "{\"message\":\"Insufficient credentials\"}", 0},
         0,
         VIGIL_ERROR_UNAUTHENTICATED,
         0,
         "0: Insufficient credentials () [0]"},
        {{"HTTP/1.1 307 Elsewhere\r\n", "", 0},
         0,
         VIGIL_ERROR_SERVER,
         0,
         "the server answered with status 307, which the v2 API does not have"},
        {{"HTTP/1.1 200 OK\r\n", "{}", 0},
         0,
         VIGIL_ERROR_PROTOCOL,
         0,
         "the response has no valid X-Etcd-Index"},
        {{OK_HEAD, "{,", 0}, 5, VIGIL_ERROR_PROTOCOL, 0, "the response is not valid JSON"},
        {{OK_HEAD, "{\"node\":{\"modifiedIndex\":5}}", 0},
         5,
         VIGIL_ERROR_PROTOCOL,
         0,
         "the server sent a change from before the requested index"},
        {{"SSH-2.0-OpenSSH\r\n\r\n", NULL, 0},
         0,
         VIGIL_ERROR_PROTOCOL,
         0,
         "a malformed status line"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct world w;
        world_begin(&w, i + 1);
        w.server.script[0] = rows[i].answer;
        assert_int_equal(world_connect(&w, rows[i].index, ""), ST_OK);
        run(&w);
        assert_int_equal(w.failures, 1);
        assert_string_equal(w.error.text, rows[i].reason);
        assert_int_equal(w.error.code, rows[i].code);
        assert_int_equal(w.cleared_index, rows[i].cleared_index);
        v2_poller_check(&w.poller);
        world_fini(&w);
    }
}

static void missing_key_is_an_empty_state(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w, 1);
    w.server.script[0].text = "HTTP/1.1 404 Not Found\r\n";
    w.server.script[0].body = "{\"errorCode\":100,\"message\":\"m\",\"cause\":\"c\",\"index\":10}";
    assert_int_equal(world_connect(&w, 0, ""), ST_OK);
    run(&w);
    expect_all(&w);
    assert_int_equal(w.state_bytes, 0);
    world_fini(&w);
}

static void change_without_a_node_is_skipped(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w, 1);
    w.wanted = 2;
    w.server.script[0].text = OK_HEAD;
    w.server.script[0].body = "{\"action\":\"set\"}";
    assert_int_equal(world_connect(&w, 10, ""), ST_OK);
    run(&w);
    assert_int_equal(w.failures, 0);
    assert_int_equal(w.changes[0], 0);
    assert_int_equal(w.changes[1], 12);
    world_fini(&w);
}

static void response_over_the_limit_ends_the_poller(void **state)
{
    (void)state;
    for (int over = 0; over < 2; over++) {
        struct world w;
        char body[1200];
        world_begin(&w, 1);
        snprintf(body, sizeof(body), "%0*d", 1000 + over, 0);
        w.server.script[0].text = OK_HEAD;
        w.server.script[0].body = body;
        w.wanted = 1;
        assert_int_equal(world_connect(&w, 0, ""), ST_OK);
        run(&w);
        assert_int_equal(w.states, !over);
        assert_int_equal(w.failures, over);
        if (over)
            assert_int_equal(w.error.code, VIGIL_ERROR_TOO_LARGE);
        world_fini(&w);
    }
}

/* -- Memory -- */

/* Returns false when no allocation failed any more. The server's turns have memory. */
static bool live_without(size_t nth)
{
    struct world w;
    world_begin(&w, 0);
    memory_fail_at = nth;
    enum status status = world_connect(&w, 0, "");
    size_t left = memory_fail_at;
    memory_fail_at = 0;
    for (int i = 0; status == ST_OK && i < 20000 && !is_done(&w); i++) {
        memory_fail_at = left;
        loop_turn(w.loop, NS_PER_MS);
        left = memory_fail_at;
        memory_fail_at = 0;
        loop_turn(w.server_loop, 0);
        v2_poller_check(&w.poller);
    }
    if (status != ST_OK)
        assert_int_equal(status, ST_NOMEM);
    else if (w.failures)
        assert_int_equal(w.error.code, VIGIL_ERROR_MEMORY);
    else
        expect_all(&w); /* also after a connection without memory was replaced */
    world_fini(&w);
    return left == 0;
}

static void each_missing_allocation_is_reported_or_survived(void **state)
{
    (void)state;
    size_t nth = 1;
    while (live_without(nth))
        nth++;
    assert_true(nth > 20);
}

static void poller_may_be_finished_at_every_step(void **state)
{
    (void)state;
    bool done = false;
    for (int steps = 0; !done; steps++) {
        struct world w;
        world_begin(&w, 7);
        w.server.script[1].closes = true;
        assert_int_equal(world_connect(&w, 0, ""), ST_OK);
        for (int i = 0; i < steps && !is_done(&w) && sim_step(w.sim); i++)
            v2_poller_check(&w.poller);
        done = is_done(&w);
        world_fini(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_those_of_etcds_client),
        cmocka_unit_test(watch_from_an_index_reads_no_state),
        cmocka_unit_test(connection_may_break_at_every_byte),
        cmocka_unit_test(connections_that_are_not_kept_are_replaced),
        cmocka_unit_test(announced_end_of_a_connection_is_not_a_failure),
        cmocka_unit_test(body_may_end_with_the_connection),
        cmocka_unit_test(server_without_answers_is_not_flooded),
        cmocka_unit_test(poll_lasts_as_long_as_a_server_waits),
        cmocka_unit_test(endpoint_that_refuses_is_left),
        cmocka_unit_test(endpoints_come_from_srv_records),
        cmocka_unit_test(empty_answers_do_not_become_a_busy_loop),
        cmocka_unit_test(server_that_does_not_answer_is_given_up),
        cmocka_unit_test(errors_end_the_poller),
        cmocka_unit_test(missing_key_is_an_empty_state),
        cmocka_unit_test(change_without_a_node_is_skipped),
        cmocka_unit_test(response_over_the_limit_ends_the_poller),
        cmocka_unit_test(each_missing_allocation_is_reported_or_survived),
        cmocka_unit_test(poller_may_be_finished_at_every_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
