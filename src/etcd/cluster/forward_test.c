/* Calls that are passed on to a cluster, which the test plays. */
#include "etcd/cluster/forward.h"

#include "auth/method.h"
#include "codec/pb/election.pb.h"
#include "codec/pb/lock.pb.h"
#include "codec/pb/rpc.pb.h"
#include "engine/forward.h"
#include "etcd/peer_calls_test.h"

static struct engine_ops ops; /* the fake's, and the functions below */

/* The call that was passed on last. */
static struct {
    struct engine_forward *forward; /* NULL: ended */
    unsigned started, cancelled;
    struct buf sent;
    char token[64];
    enum status send_fails;
    bool half_closed, paused;
} cluster;

static void forward_start(struct engine_shard *shard, struct engine_forward *forward)
{
    (void)shard;
    struct slice token = forward->principal.token;
    assert_null(cluster.forward);
    cluster.forward = forward;
    cluster.started++;
    cluster.sent.len = 0;
    cluster.half_closed = cluster.paused = false;
    snprintf(cluster.token, sizeof(cluster.token), "%.*s", SLICE_ARGS(token));
}

static enum status forward_send(struct engine_forward *forward, struct slice message)
{
    assert_ptr_equal(forward, cluster.forward);
    if (cluster.send_fails != ST_OK)
        return cluster.send_fails;
    return buf_append(&cluster.sent, message);
}

static void forward_half_close(struct engine_forward *forward)
{
    assert_ptr_equal(forward, cluster.forward);
    cluster.half_closed = true;
}

static void forward_pause(struct engine_forward *forward, bool paused)
{
    assert_true(!cluster.forward || forward == cluster.forward);
    cluster.paused = paused;
}

static void forward_cancel(struct engine_forward *forward)
{
    if (forward != cluster.forward)
        return;
    cluster.forward = NULL;
    cluster.cancelled++;
}

static void prepare(struct engine *engine)
{
    ops = *engine->ops;
    ops.forward_start = forward_start;
    ops.forward_send = forward_send;
    ops.forward_half_close = forward_half_close;
    ops.forward_pause = forward_pause;
    ops.forward_cancel = forward_cancel;
    engine->ops = &ops;
}

static void answer(struct slice message)
{
    cluster.forward->ops->on_message(cluster.forward, message);
}

static void end(enum grpc_code code, const char *text)
{
    struct engine_forward *forward = TAKE(cluster.forward);
    forward->ops->on_end(forward, code, slice_from_text(text));
}

/* -- The client -- */

static struct peer *begin_with(const struct etcd_config *config, uint32_t window, size_t memory,
                               const char *name)
{
    struct peer *p = malloc(sizeof(*p));
    assert_non_null(p);
    memset(&cluster, 0, sizeof(cluster));
    peer_prepare = prepare;
    peer_init_named(p, config,
                    &(struct fake_options){.inline_percent = 100, .identity = peer_identity},
                    window, memory, name);
    return p;
}

static struct peer *begin_named(const struct etcd_config *config, uint32_t window, const char *name)
{
    return begin_with(config, window, 0, name);
}

static struct peer *begin(void)
{
    return begin_named(&peer_config, PEER_WINDOW, NULL);
}

static void finish(struct peer *p)
{
    peer_free(p);
    assert_null(cluster.forward);
    buf_fini(&cluster.sent);
}

static uint32_t call(struct peer *p, const char *path, const char *message)
{
    uint32_t id = peer_call_bytes(p, path, SLICE_LITERAL("3.7"), slice_from_text(message));
    peer_pump(p);
    return id;
}

static void expect_end(struct peer *p, uint32_t id, enum grpc_code code, const char *text)
{
    peer_pump(p);
    const struct peer_stream *stream = peer_stream(p, id);
    assert_true(stream->ended);
    assert_int_equal(stream->code, code);
    assert_string_equal(stream->text, text);
}

/* -- Tests -- */

/* Everything except for what is answered here. The bytes are not even valid messages. */
static void methods_are_passed_on_as_bytes(void **state)
{
    (void)state;
    static const char *const own[] = {PB_KV_RANGE_PATH, PB_KV_RANGE_STREAM_PATH,
                                      PB_WATCH_WATCH_PATH, PB_LEASE_LEASE_KEEP_ALIVE_PATH};
    struct peer *p = begin();
    unsigned passed_on = 0;
    for (size_t i = 0; i < auth_method_count; i++) {
        const char *path = auth_methods[i].path;
        bool is_own = strstr(path, "grpc.health");
        for (size_t k = 0; k < COUNT_OF(own); k++)
            is_own |= strcmp(path, own[k]) == 0;
        if (is_own)
            continue;
        uint32_t id = call(p, path, "\xff bytes");
        assert_int_equal(cluster.started, ++passed_on);
        assert_true(slice_is(buf_slice(&cluster.sent), "\xff bytes"));
        assert_true(cluster.half_closed);
        assert_true(slice_is(cluster.forward->path, path));
        answer(SLICE_LITERAL("answer"));
        end(GRPC_OK, "");
        expect_end(p, id, GRPC_OK, "");
        assert_int_equal(peer_stream(p, id)->body.len, GRPC_PREFIX_BYTES + strlen("answer"));
    }
    assert_int_equal(passed_on, 45);
    finish(p);
}

static void reads_and_streams_are_known(void **state)
{
    (void)state;
    struct peer *p = begin();
    const struct {
        const char *path;
        bool reads, lasts;
    } rows[] = {
        {PB_KV_PUT_PATH, false, false},
        {PB_KV_TXN_PATH, false, false},
        {PB_MAINTENANCE_ALARM_PATH, false, false},
        {PB_AUTH_AUTHENTICATE_PATH, false, false},
        {PB_LEASE_LEASE_TIME_TO_LIVE_PATH, true, false},
        {PB_CLUSTER_MEMBER_LIST_PATH, true, false},
        {PB_MAINTENANCE_SNAPSHOT_PATH, true, false},
        {PB_ELECTION_OBSERVE_PATH, true, true},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        uint32_t id = call(p, rows[i].path, "");
        assert_int_equal(cluster.forward->reads, rows[i].reads);
        assert_int_equal(cluster.forward->lasts, rows[i].lasts);
        end(GRPC_UNAVAILABLE, "away");
        expect_end(p, id, GRPC_UNAVAILABLE, "away");
    }
    finish(p);
}

static void metadata_is_passed_on(void **state)
{
    (void)state;
    static const struct peer_field token[] = {{"token", "anna.1"},
                                              {"authorization", "other"},
                                              {"hasleader", "true"},
                                              {"grpc-timeout", "5S"},
                                              {NULL, NULL}},
                                   other[] = {{"authorization", "ben.2"}, {NULL, NULL}},
                                   empty[] = {{"token", ""}, {NULL, NULL}};
    struct peer *p = begin();
    p->metadata = token;
    call(p, PB_KV_PUT_PATH, "");
    assert_string_equal(cluster.token, "anna.1");
    assert_true(cluster.forward->require_leader);
    assert_false(cluster.forward->principal.is_server);
    assert_in_range(cluster.forward->deadline_ns, 5 * NS_PER_S, 5 * NS_PER_S + NS_PER_MS);
    end(GRPC_OK, "");
    p->metadata = other;
    call(p, PB_KV_PUT_PATH, "");
    assert_string_equal(cluster.token, "ben.2");
    assert_false(cluster.forward->require_leader);
    assert_int_equal(cluster.forward->deadline_ns, INT64_MAX);
    end(GRPC_OK, "");
    p->metadata = empty;
    call(p, PB_KV_PUT_PATH, "");
    assert_string_equal(cluster.token, "empty");
    end(GRPC_OK, "");
    p->metadata = NULL;
    call(p, PB_KV_PUT_PATH, "");
    assert_string_equal(cluster.token, "");
    end(GRPC_OK, "");
    finish(p);
}

static void client_that_leaves_cancels(void **state)
{
    (void)state;
    struct peer *p = begin();
    uint32_t id = call(p, PB_LOCK_LOCK_PATH, "");
    peer_reset(p, id);
    assert_int_equal(cluster.cancelled, 1);
    id = call(p, PB_ELECTION_OBSERVE_PATH, "");
    answer(SLICE_LITERAL("leader"));
    peer_pump(p);
    assert_int_equal(peer_stream(p, id)->body.len, GRPC_PREFIX_BYTES + strlen("leader"));
    peer_reset(p, id);
    assert_int_equal(cluster.cancelled, 2);
    call(p, PB_KV_PUT_PATH, ""); /* cancelled with the connection */
    finish(p);
    assert_int_equal(cluster.cancelled, 3);
}

static void busy_cluster_refuses_the_call(void **state)
{
    (void)state;
    struct peer *p = begin();
    cluster.send_fails = ST_LIMIT;
    uint32_t id = call(p, PB_KV_PUT_PATH, "x");
    expect_end(p, id, GRPC_RESOURCE_EXHAUSTED, status_text(ST_REQUEST_TOO_MANY_REQUESTS));
    assert_int_equal(cluster.cancelled, 1);
    finish(p);
}

/* The client reads nothing at first. The cluster is stopped, and what it had sent is kept. */
static void slow_reader_stops_the_cluster(void **state)
{
    (void)state;
    enum { PART = 32 * 1024, WINDOW = 64 * 1024 };
    static uint8_t part[PART];
    struct peer *p = begin_named(&peer_config, WINDOW, NULL);
    uint32_t id = call(p, PB_MAINTENANCE_SNAPSHOT_PATH, "");
    size_t parts = 0;
    while (!cluster.paused) {
        answer(slice_of(part, PART));
        peer_pump(p);
        parts++;
        assert_true(parts * PART <= WINDOW + FORWARD_QUEUED_BYTES_MAX + 2 * PART);
    }
    answer(slice_of(part, PART)); /* was on its way */
    parts++;
    assert_in_range(peer_stream(p, id)->body.len, WINDOW - 16, WINDOW);
    peer_open_window(p, id, 128 * 1024);
    peer_pump(p);
    assert_true(cluster.paused);
    peer_open_window(p, id, 1 << 20);
    peer_pump(p);
    assert_false(cluster.paused);
    assert_int_equal(peer_stream(p, id)->body.len, parts * (PART + GRPC_PREFIX_BYTES));
    answer(slice_of(part, PART));
    end(GRPC_OUT_OF_RANGE, "later");
    expect_end(p, id, GRPC_OUT_OF_RANGE, "later");
    assert_int_equal(peer_stream(p, id)->body.len, (parts + 1) * (PART + GRPC_PREFIX_BYTES));
    finish(p);
}

/* What a client does not read is charged to it. */
static void stream_beyond_the_clients_memory_ends(void **state)
{
    (void)state;
    static uint8_t part[32 * 1024];
    struct peer *p = begin_with(&peer_config, 1024, 128 * 1024, NULL);
    uint32_t id = call(p, PB_MAINTENANCE_SNAPSHOT_PATH, "");
    for (int i = 0; i < 8 && cluster.forward; i++)
        answer(slice_of(part, sizeof(part)));
    assert_null(cluster.forward);
    assert_int_equal(cluster.cancelled, 1);
    expect_end(p, id, GRPC_UNKNOWN, "the answer does not fit in memory");
    finish(p);
}

/* One long answer, such as that of a transaction, is sent as the client reads. */
static void long_answer_is_sent_as_it_is_read(void **state)
{
    (void)state;
    enum { WINDOW = 64 * 1024 };
    static uint8_t bytes[FORWARD_QUEUED_BYTES_MAX + 1];
    struct peer *p = begin_named(&peer_config, WINDOW, NULL);
    uint32_t id = call(p, PB_KV_TXN_PATH, "");
    answer(slice_of(bytes, sizeof(bytes)));
    end(GRPC_OK, "");
    peer_pump(p);
    assert_in_range(peer_stream(p, id)->body.len, WINDOW - 16, WINDOW);
    peer_open_window(p, id, 1 << 20);
    expect_end(p, id, GRPC_OK, "");
    assert_int_equal(peer_stream(p, id)->body.len, sizeof(bytes) + GRPC_PREFIX_BYTES);
    finish(p);
}

/* Other clients wait for the memory that it takes. */
static void long_answer_that_is_not_read_ends(void **state)
{
    (void)state;
    static uint8_t bytes[FORWARD_QUEUED_BYTES_MAX + 1];
    struct peer *p = begin_named(&peer_config, 1024, NULL);
    uint32_t id = call(p, PB_KV_TXN_PATH, "");
    struct engine_forward *forward = cluster.forward;
    answer(slice_of(bytes, sizeof(bytes)));
    end(GRPC_OK, "");
    peer_pump(p);
    assert_false(peer_stream(p, id)->ended);
    forward->ops->on_overdue(forward);
    expect_end(p, id, GRPC_UNKNOWN, "the answer was not read in time");
    finish(p);
}

static void second_answer_is_an_error(void **state)
{
    (void)state;
    struct peer *p = begin();
    uint32_t id = call(p, PB_KV_PUT_PATH, "");
    answer(SLICE_LITERAL("one"));
    answer(SLICE_LITERAL("two"));
    assert_int_equal(cluster.cancelled, 1);
    expect_end(p, id, GRPC_INTERNAL, "vigil: the cluster has answered more than once");
    finish(p);
}

static struct slice encode_members(struct peer *p)
{
    static struct slice theirs[] = {SLICE_LITERAL("http://10.0.0.1:2379")};
    struct pb_member members[] = {
        {.id = 1, .name = SLICE_LITERAL("m1"), .client_urls = theirs, .client_urls_count = 1},
        {.id = 2}, /* has not started */
    };
    struct pb_member_list_response response = {.members = members, .members_count = 2};
    size_t size = pb_size(&pb_member_list_response_table, &response);
    uint8_t *bytes = arena_alloc(&p->arena, size);
    pb_encode(&pb_member_list_response_table, &response, bytes, size);
    return slice_of(bytes, size);
}

static struct pb_member_list_response list_members(struct peer *p)
{
    struct pb_member_list_response response;
    size_t at = 0;
    uint32_t id = call(p, PB_CLUSTER_MEMBER_LIST_PATH, "");
    answer(encode_members(p));
    end(GRPC_OK, "");
    expect_end(p, id, GRPC_OK, "");
    assert_true(next_message(p, id, &at, &pb_member_list_response_table, &response));
    assert_int_equal(response.members_count, 2);
    assert_int_equal(response.members[1].client_urls_count, 0);
    assert_int_equal(response.members[0].client_urls_count, 1);
    return response;
}

static void members_have_the_advertised_urls(void **state)
{
    (void)state;
    struct etcd_config config = peer_config;
    struct peer *p = begin_named(&config, PEER_WINDOW, NULL);
    struct slice url = list_members(p).members[0].client_urls[0];
    assert_true(slice_is(url, "http://10.0.0.1:2379"));
    config.client_urls_given = true;
    url = list_members(p).members[0].client_urls[0];
    assert_true(slice_equal(url, peer_urls[0]));
    uint32_t id = call(p, PB_CLUSTER_MEMBER_LIST_PATH, "");
    answer(SLICE_LITERAL("\xff\xff"));
    assert_null(cluster.forward);
    peer_pump(p);
    assert_int_equal(peer_stream(p, id)->code, GRPC_UNKNOWN);
    finish(p);
}

static void names_in_certificates_are_explained(void **state)
{
    (void)state;
    static const struct peer_field token[] = {{"token", "anna.1"}, {NULL, NULL}};
    struct etcd_config config = peer_config;
    const char *text = status_text(ST_USER_EMPTY);
    config.names_from_certificates = true;
    struct peer *p = begin_named(&config, PEER_WINDOW, "anna");
    uint32_t id = call(p, PB_KV_PUT_PATH, "");
    end(GRPC_INVALID_ARGUMENT, text);
    peer_pump(p);
    assert_int_equal(peer_stream(p, id)->code, GRPC_INVALID_ARGUMENT);
    assert_non_null(strstr(peer_stream(p, id)->text, text));
    assert_non_null(strstr(peer_stream(p, id)->text, "log in with a user and a password"));
    p->metadata = token;
    id = call(p, PB_KV_PUT_PATH, "");
    end(GRPC_INVALID_ARGUMENT, text);
    expect_end(p, id, GRPC_INVALID_ARGUMENT, text);
    finish(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(methods_are_passed_on_as_bytes),
        cmocka_unit_test(reads_and_streams_are_known),
        cmocka_unit_test(metadata_is_passed_on),
        cmocka_unit_test(client_that_leaves_cancels),
        cmocka_unit_test(busy_cluster_refuses_the_call),
        cmocka_unit_test(slow_reader_stops_the_cluster),
        cmocka_unit_test(stream_beyond_the_clients_memory_ends),
        cmocka_unit_test(long_answer_is_sent_as_it_is_read),
        cmocka_unit_test(long_answer_that_is_not_read_ends),
        cmocka_unit_test(second_answer_is_an_error),
        cmocka_unit_test(members_have_the_advertised_urls),
        cmocka_unit_test(names_in_certificates_are_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
