/* One connection against a server that follows a script: states, failures, cuts, time, memory. */
#include "base/failing_memory_test.h"
#include "client/connect/connection_fixture_test.h"
#include "wire/h2/client_test.h"

#include <arpa/inet.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

/* The script of a server that answers the first request and then leaves. */
struct script {
    struct buf first, second;
};

static void script_make(struct script *s)
{
    *s = (struct script){0};
    test_frame(&s->first, H2_SETTINGS, 0, 0, SLICE_EMPTY);
    test_frame(&s->first, H2_SETTINGS, H2_FLAG_ACK, 0, SLICE_EMPTY);
    test_headers(&s->second, 1, 0, SLICE_LITERAL("\x88"));
    uint8_t body[20];
    for (size_t i = 0; i < sizeof(body); i++)
        body[i] = test_byte(i);
    test_frame(&s->second, H2_DATA, 0, 1, slice_of(body, sizeof(body)));
    test_headers(&s->second, 1, H2_FLAG_END_STREAM, SLICE_LITERAL("\0\1t\1v"));
    test_frame(&s->second, H2_GOAWAY, 0, 0, SLICE_LITERAL("\0\0\0\1\0\0\0\0bye\n"));
}

static void script_free(struct script *s)
{
    buf_fini(&s->first);
    buf_fini(&s->second);
}

/* A client and a scripted server over one network. */
struct world {
    struct sim *sim; /* NULL: over the operating system */
    struct network *network;
    struct loop *loop, *server_loop;
    struct resolver_backend backend;
    struct dns_table table;
    struct resolver *resolver;
    struct connector connector;
    struct script script;
    struct script_server server;
    struct test_owner owner;
};

static const struct dns_row no_names[] = {{NULL, NULL}};

static void world_start(struct world *w, const struct address *address)
{
    struct connector_options options = CONNECTOR_OPTIONS_DEFAULT;
    w->table.rows = no_names;
    w->backend = dns_table_backend(&w->table);
    assert_int_equal(network_loop_new(w->network, &w->loop), ST_OK);
    assert_int_equal(network_loop_new(w->network, &w->server_loop), ST_OK);
    assert_int_equal(resolver_new(w->loop, &w->backend, 1, &w->resolver), ST_OK);
    options.loop = w->loop;
    options.network = w->network;
    options.resolver = w->resolver;
    connector_init(&w->connector, &options);
    script_make(&w->script);
    script_listen(&w->server, w->network, w->server_loop, address);
    w->server.first = buf_slice(&w->script.first);
    w->server.second = buf_slice(&w->script.second);
    w->owner.requests_on_open = 1;
    w->owner.body = 20;
}

static struct address loopback(void)
{
    struct address address;
    assert_int_equal(address_from_host(SLICE_LITERAL("127.0.0.1"), 0, &address), ST_OK);
    return address;
}

static void world_init_posix(struct world *w)
{
    struct address address = loopback();
    *w = (struct world){.network = network_posix()};
    world_start(w, &address);
}

static void world_init_sim(struct world *w, uint64_t seed)
{
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    struct address address = loopback();
    options.seed = seed;
    *w = (struct world){.sim = sim_new(&options)};
    w->network = sim_network(w->sim);
    world_start(w, &address);
}

static void world_fini(struct world *w)
{
    owner_fini(&w->owner);
    connector_fini(&w->connector);
    resolver_free(w->resolver);
    script_fini(&w->server);
    script_free(&w->script);
    loop_free(w->loop);
    loop_free(w->server_loop);
    sim_free(w->sim);
}

static void dial(struct world *w)
{
    struct endpoint endpoint = script_endpoint(&w->server);
    assert_int_equal(owner_connect(&w->owner, &w->connector, &endpoint), ST_OK);
}

static void dial_to(struct world *w, const char *url)
{
    struct endpoint endpoint = endpoint_of(url);
    assert_int_equal(owner_connect(&w->owner, &w->connector, &endpoint), ST_OK);
}

static void check(const struct world *w)
{
    if (w->owner.connection)
        connection_check(w->owner.connection);
}

static void run_sim(struct world *w, int64_t ns)
{
    int64_t until = clock_mono_ns(sim_clock(w->sim)) + ns;
    while (clock_mono_ns(sim_clock(w->sim)) < until && sim_step(w->sim))
        check(w);
    sim_run_until(w->sim, until);
}

/* Until it is closed; the limit is only for tests that fail. */
static void run_posix(struct world *w)
{
    for (int i = 0; i < 20000 && !w->owner.closed && w->owner.connection; i++) {
        loop_turn(w->loop, NS_PER_MS);
        loop_turn(w->server_loop, 0);
        check(w);
    }
}

static char *address_text(const struct world *w)
{
    static char text[ADDRESS_TEXT_BYTES];
    address_format(&w->server.listener.address, text);
    return text;
}

static void expect_closed(const struct world *w, enum status status, const char *format)
{
    char expected[512];
    /* NOLINTNEXTLINE(clang-diagnostic-format-nonliteral): only literals of this file */
    snprintf(expected, sizeof(expected), format, address_text(w));
    assert_int_equal(w->owner.closed, 1);
    assert_string_equal(w->owner.text, expected);
    assert_int_equal(w->owner.status, status);
}

/* -- the whole life -- */

static void request_is_answered_and_goaway_is_reported(void **state)
{
    (void)state;
    struct world w;
    world_init_posix(&w);
    dial(&w);
    run_posix(&w);
    assert_int_equal(w.owner.opened, 1);
    assert_int_equal(owner_answers(&w.owner), 1);
    assert_int_equal(w.owner.draining, 1);
    assert_string_equal(w.owner.goaway, "bye?");
    expect_closed(&w, ST_CLOSED,
                  "lost the connection to %s: the server closed it: GOAWAY, code 0, bye?");
    assert_true(w.connector.counters.bytes_received > 60);
    world_fini(&w);
}

static void unix_socket_works(void **state)
{
    (void)state;
    struct world w = {.network = network_posix()};
    char path[64];
    struct address address;
    snprintf(path, sizeof(path), "/tmp/vigil-connection-%d.sock", (int)getpid());
    assert_int_equal(address_from_path(slice_from_text(path), &address), ST_OK);
    world_start(&w, &address);
    dial(&w);
    run_posix(&w);
    assert_int_equal(owner_answers(&w.owner), 1);
    world_fini(&w);
}

static void every_split_of_the_bytes_works(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct world w;
        world_init_sim(&w, seed);
        dial(&w);
        run_sim(&w, 2 * NS_PER_S);
        assert_int_equal(owner_answers(&w.owner), 1);
        assert_int_equal(w.owner.draining, 1);
        assert_int_equal(w.owner.closed, 1);
        world_fini(&w);
    }
}

static void end_and_break_at_every_byte_are_reported_once(void **state)
{
    (void)state;
    struct script script;
    script_make(&script);
    size_t first = script.first.len, all = first + script.second.len;
    script_free(&script);
    for (int end = SCRIPT_ENDS; end <= SCRIPT_BREAKS; end++)
        for (size_t cut = 0; cut <= all; cut++) {
            struct world w;
            world_init_sim(&w, cut + 1);
            w.server.cut = cut;
            w.server.end = (enum script_end)end;
            dial(&w);
            run_sim(&w, 20 * NS_PER_S);
            assert_int_equal(w.owner.closed, 1);
            assert_int_equal(w.owner.status, ST_CLOSED);
            /* It may end before it was reported as open. */
            bool opened = w.owner.opened;
            assert_true(
                strstr(w.owner.text, "lost the connection to 127.0.0.1:") == w.owner.text ||
                (!opened && strstr(w.owner.text, "cannot connect to 127.0.0.1:") == w.owner.text));
            assert_true(!opened || cut >= H2_FRAME_HEAD_BYTES);
            assert_true(owner_answers(&w.owner) <= (cut >= all - 9 - 12));
            assert_true(opened || w.owner.count == 0);
            world_fini(&w);
        }
}

static void connections_break_at_random(void **state)
{
    (void)state;
    unsigned broken = 0;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct world w;
        struct sim_options options = SIM_OPTIONS_DEFAULT;
        struct address address = loopback();
        options.seed = seed;
        options.reset_per_million = 60000;
        w = (struct world){.sim = sim_new(&options)};
        w.network = sim_network(w.sim);
        world_start(&w, &address);
        dial(&w);
        run_sim(&w, 20 * NS_PER_S);
        assert_int_equal(w.owner.closed, 1);
        broken += strstr(w.owner.text, "connection reset by peer") != NULL;
        world_fini(&w);
    }
    assert_true(broken > 20);
}

/* -- failures -- */

static void refused_connection_says_so(void **state)
{
    (void)state;
    struct world w;
    world_init_posix(&w);
    struct endpoint endpoint = script_endpoint(&w.server);
    loop_unwatch(w.server_loop, &w.server.listener_watch);
    listener_close(&w.server.listener);
    assert_int_equal(owner_connect(&w.owner, &w.connector, &endpoint), ST_OK);
    run_posix(&w);
    expect_closed(&w, ST_CLOSED, "cannot connect to %s: connection refused");
    world_fini(&w);

    world_init_posix(&w);
    dial_to(&w, "unix:///nonexistent/socket");
    run_posix(&w);
    assert_string_equal(w.owner.text,
                        "cannot connect to /nonexistent/socket: no such file or directory");
    world_fini(&w);
}

static void unknown_host_says_so(void **state)
{
    (void)state;
    struct world w;
    world_init_sim(&w, 1);
    dial_to(&w, "http://none.test:2379");
    run_sim(&w, NS_PER_S);
    assert_int_equal(w.owner.closed, 1);
    assert_string_equal(w.owner.text,
                        "cannot connect to none.test:2379: lookup none.test: no such host");
    world_fini(&w);
}

static void next_address_is_tried(void **state)
{
    (void)state;
    static const struct dns_row rows[] = {
        {"mixed.test", "127.0.0.3 127.0.0.2 127.0.0.1"},
        {"bad.test", "127.0.0.3 127.0.0.2"},
        {NULL, NULL},
    };
    for (int good = 0; good < 2; good++) {
        struct world w;
        char url[64], expected[256];
        world_init_posix(&w);
        w.table.rows = rows;
        unsigned port = address_port(&w.server.listener.address);
        snprintf(url, sizeof(url), "http://%s.test:%u", good ? "mixed" : "bad", port);
        dial_to(&w, url);
        run_posix(&w);
        assert_int_equal(w.owner.closed, 1);
        assert_int_equal(owner_answers(&w.owner), good);
        snprintf(expected, sizeof(expected),
                 "cannot connect to bad.test:%u (127.0.0.3:%u): connection refused", port, port);
        if (!good)
            assert_string_equal(w.owner.text, expected);
        world_fini(&w);
    }
}

static void tls_without_configuration_says_so(void **state)
{
    (void)state;
    struct world w;
    world_init_sim(&w, 1);
    dial_to(&w, "https://127.0.0.1:2379");
    run_sim(&w, NS_PER_S);
    assert_int_equal(w.owner.status, ST_INVALID);
    assert_string_equal(w.owner.text, "cannot connect to 127.0.0.1:2379: the endpoint requires "
                                      "TLS, which is not configured");
    world_fini(&w);
}

static void server_that_speaks_something_else_is_refused(void **state)
{
    (void)state;
    static const struct slice answers[] = {
        SLICE_LITERAL("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"),
        SLICE_LITERAL("\x15\x03\x01\x00\x02\x02\x16 an alert of TLS"),
    };
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        struct world w;
        world_init_sim(&w, 1);
        w.server.first = answers[i];
        dial(&w);
        run_sim(&w, NS_PER_S);
        assert_int_equal(w.owner.closed, 1);
        assert_int_equal(w.owner.opened, 0);
        assert_true(strstr(w.owner.text, "cannot connect to 127.0.0.1:") == w.owner.text);
        world_fini(&w);
    }
}

/* The server sends GOAWAY and closes. The client reads only a part of it, and its request then
 * cannot be written. */
static void reason_of_the_server_is_read_even_if_writing_fails(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct world w;
        struct sim_options options = SIM_OPTIONS_DEFAULT;
        struct address address = loopback();
        options.seed = seed;
        options.split_per_1000 = 800;
        options.delay_min_ns = options.delay_max_ns = 0;
        w = (struct world){.sim = sim_new(&options)};
        w.network = sim_network(w.sim);
        world_start(&w, &address);
        test_frame(&w.script.first, H2_GOAWAY, 0, 0, SLICE_LITERAL("\0\0\0\0\0\0\0\1go away"));
        w.server.first = buf_slice(&w.script.first);
        w.server.cut = w.server.first.len;
        w.server.end = SCRIPT_ENDS;
        dial(&w);
        run_sim(&w, NS_PER_S);
        expect_closed(&w, ST_CLOSED,
                      "lost the connection to %s: the server closed it: GOAWAY, code 1, go away");
        world_fini(&w);
    }
}

/* -- time -- */

static void silent_server_times_out(void **state)
{
    (void)state;
    struct world w;
    world_init_sim(&w, 1);
    w.server.cut = 0;
    dial(&w);
    run_sim(&w, w.connector.options.connect_timeout_ns - NS_PER_MS);
    assert_int_equal(w.owner.closed, 0);
    run_sim(&w, 2 * NS_PER_MS);
    expect_closed(&w, ST_TIMEOUT,
                  "cannot connect to %s: timeout: the server did not answer with HTTP/2");
    world_fini(&w);
}

/* A listener whose queue is full: the next connection is neither accepted nor refused. */
static void connection_that_is_not_accepted_times_out(void **state)
{
    (void)state;
    enum { FILL = 8 };
    struct world w;
    world_init_posix(&w);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), full[FILL];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(listener, 0), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &len), 0);
    for (int i = 0; i < FILL; i++) {
        full[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)connect(full[i], (struct sockaddr *)&address, len);
    }
    char url[64], expected[128];
    unsigned port = ntohs(address.sin_port);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", port);
    w.connector.options.connect_timeout_ns = 50 * NS_PER_MS;
    dial_to(&w, url);
    run_posix(&w);
    snprintf(expected, sizeof(expected), "cannot connect to 127.0.0.1:%u: i/o timeout", port);
    assert_string_equal(w.owner.text, expected);
    for (int i = 0; i < FILL; i++)
        close(full[i]);
    close(listener);
    world_fini(&w);
}

static sem_t lookup_go;

static enum status stuck_host(void *ctx, const char *host, struct address *addresses,
                              size_t *ret_count, struct error *error)
{
    (void)host, (void)addresses;
    while (sem_wait(&lookup_go) != 0)
        continue;
    *ret_count = 0;
    *(atomic_bool *)ctx = true;
    return error_set(error, ST_NOT_FOUND, "no such host");
}

static void lookup_that_never_returns_times_out_and_is_left_behind(void **state)
{
    (void)state;
    static atomic_bool returned;
    struct world w;
    sem_init(&lookup_go, 0, 0);
    world_init_posix(&w);
    w.backend = (struct resolver_backend){.host = stuck_host, .ctx = &returned, .blocks = true};
    w.connector.options.connect_timeout_ns = 20 * NS_PER_MS;
    dial_to(&w, "http://stuck.test:1");
    run_posix(&w);
    assert_string_equal(w.owner.text,
                        "cannot connect to stuck.test:1: lookup stuck.test: i/o timeout");
    world_fini(&w);
    assert_false(atomic_load(&returned));
    sem_post(&lookup_go);
    for (int i = 0; i < 10000 && !atomic_load(&returned); i++)
        usleep(1000);
    assert_true(atomic_load(&returned));
}

static void dead_server_is_found_by_keep_alive(void **state)
{
    (void)state;
    struct world w;
    world_init_sim(&w, 1);
    w.connector.options.h2.keepalive_ns = NS_PER_S;
    w.connector.options.h2.keepalive_timeout_ns = NS_PER_S;
    w.server.second = SLICE_EMPTY;
    dial(&w);
    run_sim(&w, 500 * NS_PER_MS);
    assert_int_equal(w.owner.opened, 1);
    assert_int_equal(w.owner.closed, 0);
    run_sim(&w, 4 * NS_PER_S);
    assert_int_equal(w.owner.closed, 1);
    assert_true(strstr(w.owner.text, "lost the connection to 127.0.0.1:") == w.owner.text);
    world_fini(&w);
}

/* -- what is shared -- */

static void buffers_are_freed_when_nothing_passes(void **state)
{
    (void)state;
    struct world w;
    world_init_sim(&w, 1);
    w.server.second = SLICE_EMPTY;
    dial(&w);
    run_sim(&w, 300 * NS_PER_MS);
    assert_int_equal(w.owner.opened, 1);
    assert_non_null(w.connector.own_buffers.raw);
    assert_null(w.connector.own_buffers.plain); /* only TLS needs it */
    run_sim(&w, 3 * NS_PER_S);
    assert_null(w.connector.own_buffers.raw);
    assert_false(w.connector.own_buffers.idle.set);
    assert_int_equal(owner_request(&w.owner), ST_OK); /* and made again */
    run_sim(&w, 300 * NS_PER_MS);
    assert_non_null(w.connector.own_buffers.raw);
    world_fini(&w);
}

static void one_turn_needs_one_write(void **state)
{
    (void)state;
    struct world w;
    world_init_posix(&w);
    w.owner.requests_on_open = 0;
    w.server.second = SLICE_EMPTY;
    dial(&w);
    for (int i = 0; i < 1000 && !w.owner.opened; i++) {
        loop_turn(w.loop, NS_PER_MS);
        loop_turn(w.server_loop, 0);
    }
    for (int i = 0; i < 10; i++) {
        loop_turn(w.loop, 0);
        loop_turn(w.server_loop, 0);
    }
    uint64_t before = w.connector.counters.writes;
    for (int i = 0; i < 50; i++)
        assert_int_equal(owner_request(&w.owner), ST_OK);
    loop_turn(w.loop, 0);
    assert_int_equal(w.connector.counters.writes, before + 1);
    for (size_t i = 0; i < 50; i++)
        assert_int_equal(w.owner.requests[i].sent, 20);
    world_fini(&w);
}

/* -- freeing -- */

static void connection_may_be_freed_in_every_hook(void **state)
{
    (void)state;
    for (int moment = TEST_ON_OPEN; moment <= TEST_ON_DATA; moment++) {
        struct world w;
        world_init_sim(&w, 7);
        w.owner.frees_at = (enum test_moment)moment;
        dial(&w);
        run_sim(&w, 2 * NS_PER_S);
        assert_null(w.owner.connection);
        assert_int_equal(w.connector.connections, 0);
        assert_int_equal(w.owner.closed, moment == TEST_ON_CLOSED);
        world_fini(&w);
    }
}

static void connection_may_be_freed_at_every_step(void **state)
{
    (void)state;
    bool done = false;
    for (int steps = 0; !done; steps++) {
        struct world w;
        world_init_sim(&w, 3);
        dial(&w);
        for (int i = 0; i < steps && sim_step(w.sim); i++)
            check(&w);
        done = w.owner.closed;
        owner_fini(&w.owner);
        assert_int_equal(w.connector.connections, 0);
        run_sim(&w, NS_PER_S);
        world_fini(&w);
    }
}

static void shutdown_finishes_what_is_open(void **state)
{
    (void)state;
    struct world w;
    world_init_sim(&w, 5);
    w.server.second = slice_sub(w.server.second, 0, w.server.second.len - 9 - 12); /* no GOAWAY */
    dial(&w);
    while (!w.owner.opened)
        assert_true(sim_step(w.sim));
    connection_shutdown(w.owner.connection);
    assert_int_equal(owner_request(&w.owner), ST_CLOSED);
    run_sim(&w, NS_PER_S);
    assert_int_equal(owner_answers(&w.owner), 1);
    assert_int_equal(w.owner.draining, 0); /* the owner knows */
    expect_closed(&w, ST_CLOSED, "lost the connection to %s: shut down");
    world_fini(&w);

    world_init_sim(&w, 5); /* before it is open */
    dial(&w);
    connection_shutdown(w.owner.connection);
    connection_shutdown(w.owner.connection);
    assert_int_equal(w.owner.closed, 0);
    run_sim(&w, NS_PER_S);
    expect_closed(&w, ST_CLOSED, "cannot connect to %s: shut down");
    world_fini(&w);
}

/* -- memory -- */

/* Returns false when no allocation failed any more. The server's turns have memory. */
static bool live_without(size_t nth)
{
    struct world w;
    world_init_posix(&w);
    struct endpoint endpoint = script_endpoint(&w.server);
    memory_fail_at = nth;
    enum status status = owner_connect(&w.owner, &w.connector, &endpoint);
    size_t left = memory_fail_at;
    memory_fail_at = 0;
    bool refused = false; /* there was no memory for the request itself */
    for (int i = 0; status == ST_OK && i < 5000 && !w.owner.closed && !refused; i++) {
        memory_fail_at = left;
        loop_turn(w.loop, NS_PER_MS);
        left = memory_fail_at;
        memory_fail_at = 0;
        loop_turn(w.server_loop, 0);
        check(&w);
        refused = w.owner.opened && w.owner.count == 0;
    }
    assert_true(status == ST_OK ? w.owner.closed == 1 || refused : status == ST_NOMEM);
    if (w.owner.closed && w.owner.status == ST_NOMEM)
        assert_non_null(strstr(w.owner.text, "out of memory"));
    bool failed = left == 0;
    if (!failed)
        assert_int_equal(owner_answers(&w.owner), 1);
    world_fini(&w);
    return failed;
}

static void each_missing_allocation_is_reported(void **state)
{
    (void)state;
    size_t nth = 1;
    while (live_without(nth))
        nth++;
    assert_true(nth > 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(request_is_answered_and_goaway_is_reported),
        cmocka_unit_test(unix_socket_works),
        cmocka_unit_test(every_split_of_the_bytes_works),
        cmocka_unit_test(end_and_break_at_every_byte_are_reported_once),
        cmocka_unit_test(connections_break_at_random),
        cmocka_unit_test(refused_connection_says_so),
        cmocka_unit_test(unknown_host_says_so),
        cmocka_unit_test(next_address_is_tried),
        cmocka_unit_test(tls_without_configuration_says_so),
        cmocka_unit_test(server_that_speaks_something_else_is_refused),
        cmocka_unit_test(reason_of_the_server_is_read_even_if_writing_fails),
        cmocka_unit_test(silent_server_times_out),
        cmocka_unit_test(connection_that_is_not_accepted_times_out),
        cmocka_unit_test(lookup_that_never_returns_times_out_and_is_left_behind),
        cmocka_unit_test(dead_server_is_found_by_keep_alive),
        cmocka_unit_test(buffers_are_freed_when_nothing_passes),
        cmocka_unit_test(one_turn_needs_one_write),
        cmocka_unit_test(connection_may_be_freed_in_every_hook),
        cmocka_unit_test(connection_may_be_freed_at_every_step),
        cmocka_unit_test(shutdown_finishes_what_is_open),
        cmocka_unit_test(each_missing_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
