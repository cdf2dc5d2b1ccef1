/* The server on the loopback interface, with threads. Clients are blocking sockets. */
#include "net/server.h"

#include "io/loop.h"
#include "net/echo_fixture_test.h"
#include "net/server_private.h"
#include "net/shard.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    struct echo_settings settings;
    struct protocol_kind kind;
    struct net_server *server;
    struct url bound;
};

static void listen_at(struct fixture *f, const char *text)
{
    struct url url;
    struct error error;
    assert_int_equal(url_parse(slice_from_text(text), &url, &error), ST_OK);
    if (net_server_listen(f->server, &url, &f->kind, &f->bound, &error) != ST_OK)
        fail_msg("%s", error.text);
}

static void fixture_init(struct fixture *f, struct net_options options, const struct net_app *app)
{
    *f = (struct fixture){.settings.handshake_ns = 10 * NS_PER_S};
    f->kind = echo_kind(&f->settings);
    assert_int_equal(net_server_new(network_posix(), &options, app, &f->server), ST_OK);
    listen_at(f, "http://127.0.0.1:0");
}

static void fixture_start(struct fixture *f, struct net_options options)
{
    fixture_init(f, options, NULL);
    assert_int_equal(net_server_start(f->server), ST_OK);
}

static void fixture_stop(struct fixture *f)
{
    net_server_stop(f->server);
    net_server_free(f->server);
}

static int dial(const struct url *url)
{
    const struct address *address = &url->address;
    int fd = socket(address->as.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    struct timeval limit = {.tv_sec = 20};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    assert_int_equal(connect(fd, &address->as.any, address->len), 0);
    return fd;
}

static void send_all(int fd, const void *bytes, size_t len)
{
    assert_int_equal(send(fd, bytes, len, MSG_NOSIGNAL), len);
}

static size_t make_frame(uint8_t *to, const char *body)
{
    size_t len = strlen(body);
    echo_put_number(to, (uint32_t)len);
    slice_copy(to + 4, slice_of(body, len));
    return 4 + len;
}

static void send_frame(int fd, const char *body)
{
    uint8_t frame[256];
    send_all(fd, frame, make_frame(frame, body));
}

static void ask_for_bytes(int fd, uint32_t count)
{
    uint8_t frame[9] = {0, 0, 0, 5, 'g'};
    echo_put_number(frame + 5, count);
    send_all(fd, frame, sizeof(frame));
}

static void read_all(int fd, void *to, size_t len)
{
    assert_int_equal(recv(fd, to, len, MSG_WAITALL), len);
}

static void expect_frame(int fd, const char *body)
{
    uint8_t frame[256], expected[256];
    size_t len = make_frame(expected, body);
    read_all(fd, frame, len);
    assert_memory_equal(frame, expected, len);
}

/* The peer closed: an end or, if it discarded our bytes, a reset. */
static void expect_hang_up(int fd)
{
    char byte;
    ssize_t n = recv(fd, &byte, 1, 0);
    assert_true(n == 0 || (n < 0 && errno == ECONNRESET));
}

static void expect_pattern(int fd, uint64_t from, uint64_t to)
{
    static uint8_t bytes[1 << 16];
    while (from < to) {
        ssize_t n = recv(fd, bytes, size_min(sizeof(bytes), to - from), 0);
        assert_true(n > 0);
        for (ssize_t i = 0; i < n; i++)
            assert_int_equal(bytes[i], echo_pattern(from + (uint64_t)i));
        from += (uint64_t)n;
    }
}

/* Waits until the statistic has the value, for a limited time. */
#define WAIT_FOR_STAT(f, field, value)                                                       \
    do {                                                                                     \
        for (int i_ = 0; i_ < 60000 && net_server_stats((f)->server).field != (value); i_++) \
            usleep(1000);                                                                    \
        assert_int_equal(net_server_stats((f)->server).field, (value));                      \
    } while (0)

static void wait_drained(struct net_server *server)
{
    while (!net_server_drained(server))
        usleep(1000);
}

static int64_t cpu_ns(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NS_PER_S +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * NS_PER_US;
}

static void requests_are_answered_over_tcp_and_unix_sockets(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NET_OPTIONS_DEFAULT, NULL);
    struct url tcp = f.bound;
    char path[96];
    snprintf(path, sizeof(path), "unix:///tmp/vigil-net-test-%d.sock", getpid());
    listen_at(&f, path);
    struct url local = f.bound;
    assert_int_equal(net_server_start(f.server), ST_OK);

    int a = dial(&tcp), b = dial(&local);
    send_frame(a, "e over tcp");
    send_frame(b, "e over unix");
    expect_frame(a, "e over tcp");
    expect_frame(b, "e over unix");
    send_frame(a, "q last");
    expect_frame(a, "q last");
    expect_hang_up(a);
    close(a);
    close(b);
    fixture_stop(&f);
    assert_int_not_equal(access(address_path(&local.address), F_OK), 0);
}

static void few_connections_are_spread_evenly(void **state)
{
    (void)state;
    struct net_options options = NET_OPTIONS_DEFAULT;
    options.shards = 3;
    struct fixture f;
    fixture_start(&f, options);
    int fds[9];
    for (int i = 0; i < 9; i++)
        fds[i] = dial(&f.bound);
    WAIT_FOR_STAT(&f, connections, 9);
    for (int i = 0; i < 3; i++)
        assert_int_equal(f.server->shards[i].assigned, 3);
    for (int i = 0; i < 9; i++) {
        send_frame(fds[i], "e");
        expect_frame(fds[i], "e");
        close(fds[i]);
    }
    WAIT_FOR_STAT(&f, connections, 0);
    fixture_stop(&f);
}

static void answers_to_pipelined_requests_share_writes(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, NET_OPTIONS_DEFAULT);
    int fd = dial(&f.bound);
    static uint8_t many[1000 * 8], got[1000 * 8];
    for (int i = 0; i < 1000; i++)
        make_frame(many + (size_t)i * 8, "eabc");
    send_all(fd, many, sizeof(many));
    read_all(fd, got, sizeof(got));
    assert_memory_equal(got, many, sizeof(many));
    WAIT_FOR_STAT(&f, bytes_out, sizeof(many));
    assert_true(net_server_stats(f.server).writes <= 10);
    close(fd);
    fixture_stop(&f);
}

static void connection_beyond_the_maximum_is_closed_immediately(void **state)
{
    (void)state;
    struct net_options options = NET_OPTIONS_DEFAULT;
    options.connections_max = 3;
    struct fixture f;
    fixture_start(&f, options);
    int fds[3];
    for (int i = 0; i < 3; i++) {
        fds[i] = dial(&f.bound);
        send_frame(fds[i], "e");
        expect_frame(fds[i], "e");
    }
    int fourth = dial(&f.bound);
    expect_hang_up(fourth);
    close(fourth);
    WAIT_FOR_STAT(&f, refused, 1);

    close(fds[0]);
    WAIT_FOR_STAT(&f, connections, 2);
    fds[0] = dial(&f.bound);
    send_frame(fds[0], "e again");
    expect_frame(fds[0], "e again");
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    fixture_stop(&f);
}

static void silent_client_is_closed_after_the_protocols_timeout(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NET_OPTIONS_DEFAULT, NULL);
    f.settings.handshake_ns = 50 * NS_PER_MS;
    assert_int_equal(net_server_start(f.server), ST_OK);
    int64_t start = clock_mono_ns(clock_system());
    int silent = dial(&f.bound);
    expect_hang_up(silent);
    assert_true(clock_mono_ns(clock_system()) - start >= 45 * NS_PER_MS);
    close(silent);
    fixture_stop(&f);
}

static void slow_reader_holds_little_and_does_not_delay_others(void **state)
{
    (void)state;
    enum { BYTES = 40 * 1024 * 1024 };
    struct net_options options = NET_OPTIONS_DEFAULT;
    options.shards = 1;
    struct fixture f;
    fixture_start(&f, options);
    int slow = dial(&f.bound), quick = dial(&f.bound);
    ask_for_bytes(slow, BYTES);
    for (int i = 0; i < 200; i++) {
        send_frame(quick, "e quick");
        expect_frame(quick, "e quick");
        assert_true(net_server_stats(f.server).held_bytes <= 64 * 1024);
    }
    struct net_stats stats = net_server_stats(f.server);
    for (int i = 0; i < 60000 && stats.held_bytes == 0; i++) { /* until its socket is full */
        usleep(1000);
        stats = net_server_stats(f.server);
    }
    assert_true(stats.held_bytes > 0 && stats.held_bytes <= 64 * 1024);
    assert_true(stats.bytes_out < BYTES);

    expect_pattern(slow, 0, BYTES);
    send_frame(slow, "e back");
    expect_frame(slow, "e back");
    assert_int_equal(net_server_stats(f.server).held_bytes, 0);
    close(slow);
    close(quick);
    fixture_stop(&f);
}

static void peer_that_ended_its_side_still_gets_its_answers(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, NET_OPTIONS_DEFAULT);
    int fd = dial(&f.bound);
    ask_for_bytes(fd, 3000000);
    shutdown(fd, SHUT_WR);
    expect_pattern(fd, 0, 3000000);
    expect_hang_up(fd);
    close(fd);
    WAIT_FOR_STAT(&f, connections, 0);
    fixture_stop(&f);
}

/* Closing with unread bytes would make the peer's TCP discard our last answer. */
static void last_answer_reaches_a_peer_that_keeps_sending(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, NET_OPTIONS_DEFAULT);
    int fd = dial(&f.bound);
    static uint8_t junk[300000];
    send_frame(fd, "q last");
    for (int i = 0; i < 3; i++) {
        send_all(fd, junk, sizeof(junk));
        usleep(10000);
    }
    expect_frame(fd, "q last");
    expect_hang_up(fd);
    close(fd);
    fixture_stop(&f);
}

static void malformed_input_ends_only_its_connection(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, NET_OPTIONS_DEFAULT);
    int bad = dial(&f.bound), good = dial(&f.bound);
    uint8_t huge[64 * 1024];
    memset(huge, 0xff, sizeof(huge));
    send_all(bad, huge, sizeof(huge));
    expect_hang_up(bad);
    send_frame(good, "e");
    expect_frame(good, "e");
    close(bad);
    close(good);
    fixture_stop(&f);
}

/* Without descriptors accepting pauses instead of spinning, and continues afterwards. */
static void accepting_pauses_without_descriptors(void **state)
{
    (void)state;
    struct net_options options = NET_OPTIONS_DEFAULT;
    options.accept_pause_ns = 20 * NS_PER_MS;
    struct fixture f;
    fixture_start(&f, options);
    int fds[64], opened = 0;
    struct rlimit before, tight;
    getrlimit(RLIMIT_NOFILE, &before);
    for (; opened < 40;
         opened++) { /* sockets of the clients, created while there are descriptors */
        fds[opened] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_true(fds[opened] >= 0);
    }
    tight = before;
    tight.rlim_cur = (rlim_t)fds[39] + 6;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    const struct address *address = &f.bound.address;
    for (int i = 0; i < 40; i++)
        assert_int_equal(connect(fds[i], &address->as.any, address->len), 0);

    int64_t cpu = cpu_ns(), start = clock_mono_ns(clock_system()), used, took;
    struct net_stats stats;
    do {
        usleep(200000);
        stats = net_server_stats(f.server);
        used = cpu_ns() - cpu;
        took = clock_mono_ns(clock_system()) - start;
    } while (stats.accept_failures < 2 && took < 60 * NS_PER_S);
    assert_in_range(stats.accept_failures, 2, 2 + took / options.accept_pause_ns);
    assert_true(used < took / 2 + 50 * NS_PER_MS);

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    int late = dial(&f.bound);
    send_frame(late, "e late");
    expect_frame(late, "e late");
    close(late);
    for (int i = 0; i < 40; i++)
        close(fds[i]);
    fixture_stop(&f);
}

static void drain_answers_requests_in_progress_and_closes_the_rest(void **state)
{
    (void)state;
    struct net_options options = NET_OPTIONS_DEFAULT;
    options.drain_ns = 4 * NS_PER_S;
    struct fixture f;
    fixture_start(&f, options);
    int idle = dial(&f.bound), busy = dial(&f.bound), stuck = dial(&f.bound);
    send_frame(idle, "e");
    expect_frame(idle, "e");
    ask_for_bytes(busy, 2 * 1024 * 1024);
    send_frame(stuck, "h");
    WAIT_FOR_STAT(&f, bytes_in, 5 + 9 + 5);

    int64_t start = clock_mono_ns(clock_system());
    net_server_drain(f.server);
    expect_hang_up(idle);
    close(idle);
    expect_pattern(busy, 0, 2 * 1024 * 1024);
    expect_hang_up(busy);
    close(busy);
    assert_false(net_server_drained(f.server));
    wait_drained(f.server);
    assert_true(clock_mono_ns(clock_system()) - start >= 3990 * NS_PER_MS);
    expect_hang_up(stuck);
    close(stuck);

    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_not_equal(connect(fd, &f.bound.address.as.any, f.bound.address.len), 0);
    close(fd);
    fixture_stop(&f);
}

struct storm {
    struct url url;
    atomic_bool over;
};

static void *keep_dialling(void *arg)
{
    struct storm *storm = arg;
    while (!storm->over) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fd, &storm->url.address.as.any, storm->url.address.len) == 0)
            (void)send(fd, "\0\0\0\1e", 5, MSG_NOSIGNAL);
        close(fd);
    }
    return NULL;
}

/* As an application that waits for its writes. */
static void spend_time(void *ctx, struct net_shard *shard)
{
    (void)ctx;
    for (int i = 0; i < 3; i++)
        loop_turn(net_shard_loop(shard), NS_PER_MS);
}

/* Connections between acceptor and shard are not lost. */
static void server_can_stop_while_connections_arrive(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        struct net_options options = NET_OPTIONS_DEFAULT;
        options.shards = 3;
        struct net_app app = {.shard_stop = spend_time};
        struct fixture f;
        fixture_init(&f, options, &app);
        assert_int_equal(net_server_start(f.server), ST_OK);
        struct storm storm = {.url = f.bound};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, keep_dialling, &storm), 0);
        usleep(5000);
        if (i % 2) {
            net_server_drain(f.server);
            net_server_drain(f.server);
            wait_drained(f.server);
        }
        net_server_stop(f.server);
        storm.over = true;
        pthread_join(thread, NULL);
        for (unsigned k = 0; k < options.shards; k++)
            assert_int_equal(f.server->shards[k].counters.connections, 0);
        net_server_free(f.server);
    }
}

/* An echo protocol that answers before it reads more, slowly. */
static atomic_uint fed_unasked;

static bool reluctant_wants_read(const void *protocol)
{
    return echo_queued(protocol) == 0;
}

static void reluctant_feed(void *protocol, struct slice bytes, int64_t now_ns)
{
    if (!reluctant_wants_read(protocol))
        atomic_fetch_add(&fed_unasked, 1);
    echo_feed(protocol, bytes, now_ns);
}

static size_t reluctant_fill(void *protocol, uint8_t *dst, size_t room, int64_t now_ns)
{
    struct echo *e = protocol;
    usleep(2000); /* more than the shard allows for all of them in one turn */
    e->hooks.on_long_step(e->hooks.owner);
    return echo_fill(protocol, dst, room, now_ns);
}

static void protocol_is_not_fed_until_it_wants_to_read(void **state)
{
    (void)state;
    enum { PEERS = 8, FRAMES = 10 };
    struct fixture f = {.settings.handshake_ns = 10 * NS_PER_S};
    struct net_options options = NET_OPTIONS_DEFAULT;
    options.shards = 1;
    f.kind = echo_kind(&f.settings);
    struct protocol_ops ops = *f.kind.ops;
    ops.feed = reluctant_feed;
    ops.wants_read = reluctant_wants_read;
    ops.fill = reluctant_fill;
    f.kind.ops = &ops;
    atomic_store(&fed_unasked, 0);
    assert_int_equal(net_server_new(network_posix(), &options, NULL, &f.server), ST_OK);
    listen_at(&f, "http://127.0.0.1:0");
    assert_int_equal(net_server_start(f.server), ST_OK);
    int peers[PEERS];
    for (int i = 0; i < PEERS; i++)
        peers[i] = dial(&f.bound);
    for (int frame = 0; frame < FRAMES; frame++) {
        for (int i = 0; i < PEERS; i++)
            send_frame(peers[i], "e");
        usleep(1000);
    }
    for (int frame = 0; frame < FRAMES; frame++)
        for (int i = 0; i < PEERS; i++)
            expect_frame(peers[i], "e");
    assert_int_equal(atomic_load(&fed_unasked), 0);
    for (int i = 0; i < PEERS; i++)
        close(peers[i]);
    fixture_stop(&f);
}

static enum status refuse_to_open(void *shared, struct protocol_hooks hooks, int64_t now_ns,
                                  void **ret_protocol)
{
    (void)shared;
    (void)hooks;
    (void)now_ns;
    (void)ret_protocol;
    return ST_NOMEM;
}

static void connection_without_memory_for_its_protocol_is_closed(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NET_OPTIONS_DEFAULT, NULL);
    f.kind.open = refuse_to_open;
    assert_int_equal(net_server_start(f.server), ST_OK);
    int fd = dial(&f.bound);
    expect_hang_up(fd);
    close(fd);
    WAIT_FOR_STAT(&f, connections, 0);
    assert_int_equal(f.server->connections, 0);
    fixture_stop(&f);
}

static enum status fail_to_share(void *ctx, struct net_shard *shard, void **ret_shared)
{
    (void)ctx;
    (void)ret_shared;
    return shard->index == 1 ? ST_NOMEM : ST_OK;
}

static void failure_of_a_protocol_to_start_fails_the_server(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NET_OPTIONS_DEFAULT, NULL);
    f.kind.shard_new = fail_to_share;
    assert_int_equal(net_server_start(f.server), ST_NOMEM);
    net_server_free(f.server);
}

/* -- the application's functions -- */

struct app_state {
    atomic_uint started, stopped, inputs, ends, flushes;
    unsigned fail_at; /* index of the shard whose start fails, plus one */
};

static enum status app_start(void *ctx, struct net_shard *shard)
{
    struct app_state *app = ctx;
    if (app->fail_at == shard->index + 1)
        return ST_NOMEM;
    atomic_fetch_add(&app->started, 1);
    net_shard_set_user(shard, &app->started);
    return ST_OK;
}

static void app_stop(void *ctx, struct net_shard *shard)
{
    struct app_state *app = ctx;
    assert_ptr_equal(net_shard_user(shard), &app->started);
    atomic_fetch_add(&app->stopped, 1);
}

static void app_input(void *ctx, struct net_shard *shard)
{
    (void)shard;
    atomic_fetch_add(&((struct app_state *)ctx)->inputs, 1);
}

static void app_end(void *ctx, struct net_shard *shard)
{
    net_shard_check(shard);
    atomic_fetch_add(&((struct app_state *)ctx)->ends, 1);
}

/* After the end of the same turn. */
static void app_flushed(void *ctx, struct net_shard *shard)
{
    (void)shard;
    struct app_state *app = ctx;
    assert_true(atomic_fetch_add(&app->flushes, 1) < app->ends);
}

static void application_is_called_on_every_shard_and_turn(void **state)
{
    (void)state;
    struct app_state app = {0};
    struct net_app hooks = {app_start, app_stop, app_input, app_end, app_flushed, &app};
    struct fixture f;
    fixture_init(&f, NET_OPTIONS_DEFAULT, &hooks);
    assert_int_equal(net_server_start(f.server), ST_OK);
    assert_int_equal(app.started, 2);
    int fd = dial(&f.bound);
    send_frame(fd, "e");
    expect_frame(fd, "e");
    assert_true(app.inputs >= 1 && app.ends >= 1);
    close(fd);
    net_server_stop(f.server);
    assert_int_equal(app.stopped, 2);
    assert_int_equal(app.flushes, app.ends); /* every turn is flushed */
    net_server_free(f.server);
}

static void failed_start_of_a_shard_fails_the_server(void **state)
{
    (void)state;
    struct app_state app = {.fail_at = 2};
    struct net_app hooks = {app_start, app_stop, app_input, app_end, app_flushed, &app};
    struct fixture f;
    fixture_init(&f, NET_OPTIONS_DEFAULT, &hooks);
    assert_int_equal(net_server_start(f.server), ST_NOMEM);
    assert_int_equal(app.started, 1);
    assert_int_equal(app.stopped, 1);
    net_server_free(f.server);
}

static void ports_in_use_are_an_error_with_a_message(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NET_OPTIONS_DEFAULT, NULL);
    struct url url = f.bound;
    struct error error;
    assert_int_equal(net_server_listen(f.server, &url, &f.kind, NULL, &error), ST_IN_USE);
    net_server_free(f.server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_answered_over_tcp_and_unix_sockets),
        cmocka_unit_test(few_connections_are_spread_evenly),
        cmocka_unit_test(answers_to_pipelined_requests_share_writes),
        cmocka_unit_test(connection_beyond_the_maximum_is_closed_immediately),
        cmocka_unit_test(silent_client_is_closed_after_the_protocols_timeout),
        cmocka_unit_test(slow_reader_holds_little_and_does_not_delay_others),
        cmocka_unit_test(peer_that_ended_its_side_still_gets_its_answers),
        cmocka_unit_test(last_answer_reaches_a_peer_that_keeps_sending),
        cmocka_unit_test(malformed_input_ends_only_its_connection),
        cmocka_unit_test(accepting_pauses_without_descriptors),
        cmocka_unit_test(drain_answers_requests_in_progress_and_closes_the_rest),
        cmocka_unit_test(server_can_stop_while_connections_arrive),
        cmocka_unit_test(protocol_is_not_fed_until_it_wants_to_read),
        cmocka_unit_test(connection_without_memory_for_its_protocol_is_closed),
        cmocka_unit_test(failure_of_a_protocol_to_start_fails_the_server),
        cmocka_unit_test(application_is_called_on_every_shard_and_turn),
        cmocka_unit_test(failed_start_of_a_shard_fails_the_server),
        cmocka_unit_test(ports_in_use_are_an_error_with_a_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
