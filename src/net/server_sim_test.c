/* The server over a simulated network: seeded delays, splits and resets, in one thread. */
#include "io/loop.h"
#include "net/echo_fixture_test.h"
#include "net/server.h"
#include "net/shard.h"
#include "simulated/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { CLIENTS = 5, FRAMES = 40, BODY_MAX = 3000 };

/* Sends frames with known bodies, as fast as possible, and checks that each is echoed in order. */
struct client {
    struct world *world;
    struct socket socket;
    struct io_watch watch;
    struct buf to_send;
    size_t sent;
    struct buf expected;
    size_t received;
    bool ended, broken;
    bool deaf;     /* does not read */
    bool outlives; /* stays when the server has sent its last byte */
};

struct world {
    struct sim *sim;
    struct loop *loop; /* loop of the clients */
    struct net_server *server;
    struct echo_settings settings;
    struct protocol_kind kind;
    struct url bound;
    struct client clients[CLIENTS];
};

static void client_close(struct client *client)
{
    loop_unwatch(client->world->loop, &client->watch);
    socket_close(&client->socket);
}

static enum status client_read(struct client *client)
{
    uint8_t bytes[4096];
    size_t n;
    TRY(socket_read(&client->socket, bytes, sizeof(bytes), &n));
    assert_true(n <= client->expected.len - client->received);
    assert_memory_equal(bytes, client->expected.ptr + client->received, n);
    client->received += n;
    return ST_OK;
}

static enum status client_write(struct client *client)
{
    size_t n;
    if (client->sent == client->to_send.len)
        return ST_OK;
    TRY(socket_write(
        &client->socket,
        slice_of(client->to_send.ptr + client->sent, client->to_send.len - client->sent), &n));
    client->sent += n;
    return ST_OK;
}

static void client_ready(struct io_watch *watch, unsigned ready)
{
    struct client *client = CONTAINER_OF(watch, struct client, watch);
    enum status status = ST_OK;
    if (ready & (IO_READ | IO_BROKEN) && !client->deaf)
        status = client_read(client);
    if (status == ST_END && client->outlives) {
        client->ended = client->deaf = true;
        status = ST_OK;
    }
    if (ready & IO_WRITE && (status == ST_OK || status == ST_AGAIN))
        status = client_write(client);
    if (status == ST_OK || status == ST_AGAIN) {
        unsigned events =
            (client->sent < client->to_send.len ? IO_WRITE : 0u) | (client->deaf ? 0u : IO_READ);
        if (events)
            assert_int_equal(loop_watch(client->world->loop, watch, events), ST_OK);
        else
            loop_unwatch(client->world->loop, watch);
        return;
    }
    client->ended = status == ST_END;
    client->broken = status == ST_CLOSED;
    client_close(client);
}

static void add_frame(struct client *client, char command, size_t body_len, uint8_t fill)
{
    uint8_t head[5];
    echo_put_number(head, (uint32_t)body_len + 1);
    head[4] = (uint8_t)command;
    echo_must(buf_append(&client->to_send, slice_of(head, 5)));
    for (size_t i = 0; i < body_len; i++)
        echo_must(buf_append(&client->to_send, slice_of(&fill, 1)));
}

static void client_dial(struct client *client, struct world *world)
{
    *client = (struct client){.world = world};
    struct error error;
    assert_int_equal(
        network_connect(sim_network(world->sim), &world->bound.address, &client->socket, &error),
        ST_OK);
    client->watch = (struct io_watch){.handle = client->socket.handle, .fn = client_ready};
    assert_int_equal(loop_watch(world->loop, &client->watch, IO_READ | IO_WRITE), ST_OK);
}

static void client_talks(struct client *client, struct random *random)
{
    for (int i = 0; i < FRAMES; i++)
        add_frame(client, i == FRAMES - 1 ? 'q' : 'e', random_below(random, BODY_MAX),
                  (uint8_t)random_u64(random));
    echo_must(buf_append(&client->expected, buf_slice(&client->to_send)));
}

/* As an application that waits for its writes. */
static void spend_time(void *ctx, struct net_shard *shard)
{
    (void)ctx;
    for (int i = 0; i < 3; i++)
        loop_turn(net_shard_loop(shard), 0);
}

static void check_shard(void *ctx, struct net_shard *shard)
{
    (void)ctx;
    net_shard_check(shard);
}

static void world_init(struct world *world, const struct sim_options *options,
                       struct net_options net)
{
    const struct net_app app = {
        .shard_stop = spend_time, .after_input = check_shard, .end_of_turn = check_shard};
    *world = (struct world){.sim = sim_new(options), .settings.handshake_ns = 10 * NS_PER_S};
    world->kind = echo_kind(&world->settings);
    struct network *network = sim_network(world->sim);
    assert_int_equal(network_loop_new(network, &world->loop), ST_OK);
    assert_int_equal(net_server_new(network, &net, &app, &world->server), ST_OK);
    struct url url;
    struct error error;
    assert_int_equal(url_parse(SLICE_LITERAL("http://127.0.0.1:0"), &url, &error), ST_OK);
    assert_int_equal(net_server_listen(world->server, &url, &world->kind, &world->bound, &error),
                     ST_OK);
    assert_int_equal(net_server_start(world->server), ST_OK);
}

static void world_fini(struct world *world)
{
    for (int i = 0; i < CLIENTS; i++) {
        struct client *client = &world->clients[i];
        if (client->socket.ops)
            client_close(client);
        buf_fini(&client->to_send);
        buf_fini(&client->expected);
    }
    net_server_stop(world->server);
    net_server_free(world->server);
    loop_free(world->loop);
    sim_free(world->sim);
}

static void world_run(struct world *world)
{
    while (sim_step(world->sim))
        continue;
}

static int64_t world_now(struct world *world)
{
    return clock_mono_ns(sim_clock(world->sim));
}

static void any_split_of_the_bytes_gives_every_answer_in_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct sim_options options = SIM_OPTIONS_DEFAULT;
        options.seed = seed;
        options.buffer_bytes = seed % 3 ? 2000 : 200000;
        struct world world;
        world_init(&world, &options, NET_OPTIONS_DEFAULT);
        for (int i = 0; i < CLIENTS; i++) {
            client_dial(&world.clients[i], &world);
            client_talks(&world.clients[i], sim_random(world.sim));
        }
        world_run(&world);
        for (int i = 0; i < CLIENTS; i++) {
            struct client *client = &world.clients[i];
            assert_true(client->ended);
            assert_int_equal(client->received, client->expected.len);
        }
        assert_int_equal(net_server_stats(world.server).connections, 0);
        assert_int_equal(net_server_stats(world.server).held_bytes, 0);
        world_fini(&world);
    }
}

static void resets_anywhere_leave_nothing_behind(void **state)
{
    (void)state;
    int broken = 0, whole = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct sim_options options = SIM_OPTIONS_DEFAULT;
        options.seed = seed;
        options.buffer_bytes = 3000;
        options.reset_per_million = 2000;
        struct world world;
        world_init(&world, &options, NET_OPTIONS_DEFAULT);
        for (int i = 0; i < CLIENTS; i++) {
            client_dial(&world.clients[i], &world);
            client_talks(&world.clients[i], sim_random(world.sim));
        }
        world_run(&world);
        for (int i = 0; i < CLIENTS; i++) {
            struct client *client = &world.clients[i];
            assert_true(client->ended || client->broken);
            broken += client->broken;
            whole += client->received == client->expected.len;
        }
        assert_int_equal(net_server_stats(world.server).connections, 0);
        assert_int_equal(net_server_stats(world.server).held_bytes, 0);
        world_fini(&world);
    }
    assert_true(broken > 20 && whole > 20);
}

/* Ten megabytes are waiting to be read from one connection; a request on another one does not wait
 * for them. */
static void flood_of_one_connection_does_not_delay_another(void **state)
{
    (void)state;
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    options.buffer_bytes = 16 << 20;
    options.split_per_1000 = 0;
    struct net_options net = NET_OPTIONS_DEFAULT;
    net.shards = 1;
    struct world world;
    world_init(&world, &options, net);
    struct client *flood = &world.clients[0], *other = &world.clients[1];
    client_dial(flood, &world);
    for (int i = 0; i < 200; i++)
        add_frame(flood, 'e', 50000, (uint8_t)i);
    echo_must(buf_append(&flood->expected, buf_slice(&flood->to_send)));
    client_dial(other, &world);
    add_frame(other, 'e', 10, 'x');
    echo_must(buf_append(&other->expected, buf_slice(&other->to_send)));
    while (other->received < other->expected.len && sim_step(world.sim))
        continue;
    assert_int_equal(other->received, other->expected.len);
    assert_true(flood->received < flood->expected.len / 2);
    while (flood->received < flood->expected.len && sim_step(world.sim))
        continue;
    assert_int_equal(flood->received, flood->expected.len);
    world_fini(&world);
}

static void ask_for_bytes(struct client *client, uint32_t count)
{
    uint8_t frame[9] = {0, 0, 0, 5, 'g'};
    echo_put_number(frame + 5, count);
    echo_must(buf_append(&client->to_send, slice_of(frame, sizeof(frame))));
    for (uint32_t i = 0; i < count; i++) {
        uint8_t byte = echo_pattern(i);
        echo_must(buf_append(&client->expected, slice_of(&byte, 1)));
    }
}

static void one_turn_sends_no_more_than_its_share_on_a_connection(void **state)
{
    (void)state;
    enum { BYTES = 4 << 20 };
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    options.buffer_bytes = 2 * BYTES;
    options.split_per_1000 = 0;
    struct net_options net = NET_OPTIONS_DEFAULT;
    struct world world;
    world_init(&world, &options, net);
    client_dial(&world.clients[0], &world);
    ask_for_bytes(&world.clients[0], BYTES);
    uint64_t before = 0;
    while (before < BYTES && sim_step(world.sim)) {
        uint64_t after = net_server_stats(world.server).bytes_out;
        assert_true(after - before <= net.turn_bytes_max);
        before = after;
    }
    while (world.clients[0].received < BYTES && sim_step(world.sim))
        continue;
    assert_int_equal(world.clients[0].received, BYTES);
    world_fini(&world);
}

static void short_answer_is_sent_before_the_next_part_of_a_long_one(void **state)
{
    (void)state;
    enum { BYTES = 4 << 20 };
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    options.buffer_bytes = 2 * BYTES;
    options.split_per_1000 = options.skip_per_1000 = 0;
    options.delay_min_ns = options.delay_max_ns = 0; /* no time passes in a turn */
    struct net_options net = NET_OPTIONS_DEFAULT;
    net.shards = 1;
    struct world world;
    world_init(&world, &options, net);
    struct client *other = &world.clients[1];
    client_dial(&world.clients[0], &world);
    client_dial(other, &world);
    ask_for_bytes(&world.clients[0], BYTES);
    while (world.settings.made == 0 && sim_step(world.sim))
        continue;
    add_frame(other, 'e', 10, 'x');
    echo_must(buf_append(&other->expected, buf_slice(&other->to_send)));
    assert_int_equal(loop_watch(world.loop, &other->watch, IO_READ | IO_WRITE), ST_OK);
    while (other->received < other->expected.len && sim_step(world.sim))
        continue;
    assert_int_equal(other->received, other->expected.len);
    assert_in_range(world.settings.made_when_fed, 1, BYTES - 1);
    assert_int_equal(world.settings.made_when_echoed, world.settings.made_when_fed);
    world_fini(&world);
}

static void peer_that_does_not_read_is_not_read_from(void **state)
{
    (void)state;
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    options.buffer_bytes = 20000;
    struct world world;
    world_init(&world, &options, NET_OPTIONS_DEFAULT);
    struct client *client = &world.clients[0];
    client_dial(client, &world);
    client->deaf = true;
    for (int i = 0; i < 100; i++)
        add_frame(client, 'e', 30000, (uint8_t)i);
    echo_must(buf_append(&client->expected, buf_slice(&client->to_send)));
    int64_t start = world_now(&world);
    sim_run_until(world.sim, start + 10 * NS_PER_S);
    assert_true(net_server_stats(world.server).bytes_in <
                ECHO_QUEUE_MAX + 2 * 64 * 1024 + 2 * options.buffer_bytes);

    client->deaf = false;
    assert_int_equal(loop_watch(world.loop, &client->watch, IO_READ | IO_WRITE), ST_OK);
    sim_run_until(world.sim, start + 50 * NS_PER_S);
    assert_int_equal(client->received, client->expected.len);
    world_fini(&world);
}

/* Once a socket was full, less is filled at a time, so that stalled connections hold little. */
static void slow_reader_holds_less_from_the_second_time_on(void **state)
{
    (void)state;
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    options.buffer_bytes = 10000;
    struct world world;
    world_init(&world, &options, NET_OPTIONS_DEFAULT);
    struct client *client = &world.clients[0];
    client_dial(client, &world);
    ask_for_bytes(client, 1 << 20);
    while (net_server_stats(world.server).held_bytes == 0 && sim_step(world.sim))
        continue;
    assert_true(net_server_stats(world.server).held_bytes <= 64 * 1024);
    while (client->received < 70000 && sim_step(world.sim))
        continue;
    while (client->received < client->expected.len && sim_step(world.sim))
        assert_true(net_server_stats(world.server).held_bytes <= 16 * 1024);
    assert_int_equal(client->received, client->expected.len);
    world_fini(&world);
}

static void server_that_has_sent_its_last_byte_still_receives(void **state)
{
    (void)state;
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    options.buffer_bytes = 3000;
    struct world world;
    world_init(&world, &options, NET_OPTIONS_DEFAULT);
    struct client *client = &world.clients[0];
    client_dial(client, &world);
    client->outlives = true;
    add_frame(client, 'o', 10000, 'x');
    echo_must(buf_append(&client->expected, buf_slice(&client->to_send)));
    world_run(&world);
    assert_true(client->ended);
    assert_int_equal(client->received, client->expected.len);
    assert_int_equal(net_server_stats(world.server).connections, 1);
    for (int i = 0; i < 50; i++)
        add_frame(client, 'e', 1000, 'x');
    assert_int_equal(loop_watch(world.loop, &client->watch, IO_WRITE), ST_OK);
    world_run(&world);
    assert_int_equal(world.settings.taken, 50);
    assert_int_equal(net_server_stats(world.server).connections, 1);
    socket_shutdown(&client->socket);
    world_run(&world);
    assert_int_equal(net_server_stats(world.server).connections, 0);
    world_fini(&world);
}

static void silent_client_is_closed_after_ten_seconds(void **state)
{
    (void)state;
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    struct world world;
    world_init(&world, &options, NET_OPTIONS_DEFAULT);
    int64_t start = world_now(&world);
    client_dial(&world.clients[0], &world);
    sim_run_until(world.sim, start + 9900 * NS_PER_MS);
    assert_false(world.clients[0].ended);
    sim_run_until(world.sim, start + 10100 * NS_PER_MS);
    assert_true(world.clients[0].ended);
    world_fini(&world);
}

/* The answers are filled and held by the connection, so nothing is in progress any more. */
static void last_answers_not_read_for_a_minute_end_the_connection(void **state)
{
    (void)state;
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    options.buffer_bytes = 2000;
    struct world world;
    world_init(&world, &options, NET_OPTIONS_DEFAULT);
    struct client *client = &world.clients[0];
    client_dial(client, &world);
    client->deaf = true;
    add_frame(client, 'e', 4000, 'x');
    int64_t start = world_now(&world);
    sim_run_until(world.sim, start + 59 * NS_PER_S);
    struct net_stats stats = net_server_stats(world.server);
    assert_int_equal(stats.connections, 1);
    assert_true(stats.held_bytes > 0 && stats.held_bytes < 4100);
    sim_run_until(world.sim, start + 62 * NS_PER_S);
    stats = net_server_stats(world.server);
    assert_int_equal(stats.stalled, 1);
    assert_int_equal(stats.connections, 0);
    assert_int_equal(stats.held_bytes, 0);
    world_fini(&world);
}

/* A request in progress is ended by the protocol: a watch may wait for its reader without limit. */
static void stalled_connection_with_a_request_in_progress_stays_open(void **state)
{
    (void)state;
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    options.buffer_bytes = 2000;
    struct world world;
    world_init(&world, &options, NET_OPTIONS_DEFAULT);
    struct client *client = &world.clients[0];
    client_dial(client, &world);
    client->deaf = true;
    add_frame(client, 'h', 0, 0);
    add_frame(client, 'e', 4000, 'x');
    sim_run_until(world.sim, world_now(&world) + 600 * NS_PER_S);
    struct net_stats stats = net_server_stats(world.server);
    assert_int_equal(stats.stalled, 0);
    assert_int_equal(stats.connections, 1);
    world_fini(&world);
}

/* It neither reads our last bytes nor closes. */
static void lingering_ends_after_its_timeout(void **state)
{
    (void)state;
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    struct world world;
    world_init(&world, &options, NET_OPTIONS_DEFAULT);
    struct client *client = &world.clients[0];
    client_dial(client, &world);
    client->deaf = true;
    add_frame(client, 'q', 10, 'x');
    int64_t start = world_now(&world);
    sim_run_until(world.sim, start + 900 * NS_PER_MS);
    assert_int_equal(net_server_stats(world.server).connections, 1);
    sim_run_until(world.sim, start + 1100 * NS_PER_MS);
    assert_int_equal(net_server_stats(world.server).connections, 0);
    world_fini(&world);
}

/* Accepted, but not yet assigned to their shards when the server stops. */
static void connections_accepted_while_stopping_are_refused(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct sim_options options = SIM_OPTIONS_DEFAULT;
        options.seed = seed;
        struct world world;
        world_init(&world, &options, NET_OPTIONS_DEFAULT);
        for (int i = 0; i < CLIENTS; i++)
            client_dial(&world.clients[i], &world);
        while (net_server_stats(world.server).accepted < CLIENTS && sim_step(world.sim))
            continue;
        net_server_stop(world.server);
        assert_int_equal(net_server_stats(world.server).connections, 0);
        world_fini(&world);
    }
}

static void drain_over_the_simulated_network(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct sim_options options = SIM_OPTIONS_DEFAULT;
        options.seed = seed;
        struct world world;
        world_init(&world, &options, NET_OPTIONS_DEFAULT);
        for (int i = 0; i < CLIENTS; i++) {
            client_dial(&world.clients[i], &world);
            add_frame(&world.clients[i], i == 0 ? 'h' : 'e', 100, 'x');
            if (i)
                echo_must(
                    buf_append(&world.clients[i].expected, buf_slice(&world.clients[i].to_send)));
        }
        int64_t start = world_now(&world);
        sim_run_until(world.sim, start + random_between(sim_random(world.sim), 0, NS_PER_MS));
        net_server_drain(world.server);
        sim_run_until(world.sim, start + 6 * NS_PER_S);
        assert_true(net_server_drained(world.server));
        for (int i = 0; i < CLIENTS; i++)
            assert_true(world.clients[i].ended || world.clients[i].broken);
        world_fini(&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_split_of_the_bytes_gives_every_answer_in_order),
        cmocka_unit_test(resets_anywhere_leave_nothing_behind),
        cmocka_unit_test(flood_of_one_connection_does_not_delay_another),
        cmocka_unit_test(one_turn_sends_no_more_than_its_share_on_a_connection),
        cmocka_unit_test(short_answer_is_sent_before_the_next_part_of_a_long_one),
        cmocka_unit_test(peer_that_does_not_read_is_not_read_from),
        cmocka_unit_test(slow_reader_holds_less_from_the_second_time_on),
        cmocka_unit_test(server_that_has_sent_its_last_byte_still_receives),
        cmocka_unit_test(silent_client_is_closed_after_ten_seconds),
        cmocka_unit_test(last_answers_not_read_for_a_minute_end_the_connection),
        cmocka_unit_test(stalled_connection_with_a_request_in_progress_stays_open),
        cmocka_unit_test(lingering_ends_after_its_timeout),
        cmocka_unit_test(connections_accepted_while_stopping_are_refused),
        cmocka_unit_test(drain_over_the_simulated_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
