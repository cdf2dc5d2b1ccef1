/* Streams under authentication: watches and renewals, over a real connection and the fake engine.
 */
#include "etcd/auth_peer_test.h"

#include <stdio.h>

static uint32_t open_watch(struct fixture *f)
{
    return peer_open(&f->peer, PB_WATCH_WATCH_PATH, SLICE_LITERAL("3.7"));
}

static void create(struct fixture *f, uint32_t id, struct slice key, struct slice end)
{
    struct pb_watch_create_request made = {.key = key, .range_end = end};
    struct pb_watch_request request = {.request_union_case = PB_WATCH_REQUEST_CREATE_REQUEST,
                                       .create_request = &made};
    uint8_t bytes[128];
    size_t size = pb_size(&pb_watch_request_table, &request);
    pb_encode(&pb_watch_request_table, &request, bytes, size);
    peer_send(&f->peer, id, slice_of(bytes, size), false);
}

static void turn(struct fixture *f)
{
    engine_shard_turn_begin(f->peer.shard);
    loop_turn(f->loop, 0);
    engine_shard_turn_end(f->peer.shard);
    peer_pump(&f->peer);
    engine_shard_flushed(f->peer.shard);
}

/* The responses of a watch call since `at`, as text; up to three events of one are shown. */
static const char *responses(struct fixture *f, uint32_t id, size_t *at)
{
    static char text[1024];
    struct pb_watch_response r;
    size_t n = 0;
    text[0] = 0;
    while (next_message(&f->peer, id, at, &pb_watch_response_table, &r))
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%lld%s%s%s%.*s%.*s;",
                              (long long)r.watch_id, r.created ? " created" : "",
                              r.canceled ? " canceled" : "", r.cancel_reason.len ? ": " : "",
                              SLICE_ARGS(r.cancel_reason), 6 * (int)r.events_count,
                              " event event event");
    return text;
}

#define DENIED "rpc error: code = PermissionDenied desc = etcdserver: permission denied"

static void watch_without_permission_gets_etcds_error(void **state)
{
    struct fixture *f = *state;
    size_t at = 0;
    begin(f);
    uint32_t id = open_watch(f);
    create(f, id, SLICE_LITERAL("a/1"), SLICE_EMPTY);
    turn(f);
    assert_string_equal(responses(f, id, &at),
                        "-1 created canceled: rpc error: code = InvalidArgument "
                        "desc = etcdserver: user name is empty;");
    show(f, "token", "x");
    id = open_watch(f);
    at = 0;
    create(f, id, SLICE_LITERAL("a/1"), SLICE_EMPTY);
    turn(f);
    assert_string_equal(responses(f, id, &at),
                        "-1 created canceled: rpc error: code = Unauthenticated "
                        "desc = etcdserver: invalid auth token;");
    be(f, "anna");
    id = open_watch(f);
    at = 0;
    create(f, id, SLICE_LITERAL("c"), SLICE_EMPTY);
    create(f, id, SLICE_LITERAL("a/"), SLICE_LITERAL("\0")); /* GHSA-xg4h-6gfc-h4m8 */
    create(f, id, SLICE_LITERAL("r"), SLICE_LITERAL("\0"));
    create(f, id, SLICE_EMPTY, SLICE_LITERAL("\0"));
    create(f, id, SLICE_LITERAL("a/"), SLICE_LITERAL("b"));
    turn(f);
    assert_string_equal(responses(f, id, &at),
                        "-1 created canceled: " DENIED ";-1 created canceled: " DENIED
                        ";-1 created canceled: " DENIED ";-1 created canceled: " DENIED
                        ";0 created;");
}

static void watch_ends_when_its_permission_is_revoked(void **state)
{
    struct fixture *f = *state;
    size_t at = 0, roots_at = 0;
    begin(f);
    be(f, "root");
    uint32_t roots = open_watch(f);
    create(f, roots, SLICE_EMPTY, SLICE_LITERAL("\0"));
    be(f, "anna");
    uint32_t id = open_watch(f);
    create(f, id, SLICE_LITERAL("a/"), SLICE_LITERAL("b"));
    create(f, id, SLICE_LITERAL("r"), SLICE_EMPTY);
    turn(f);
    assert_string_equal(responses(f, id, &at), "0 created;1 created;");
    change(f, (struct engine_auth){.call = ENGINE_AUTH_ROLE_ADD, .role = SLICE_LITERAL("other")});
    turn(f); /* the change does not concern the watch */
    change(f, (struct engine_auth){.call = ENGINE_AUTH_ROLE_REVOKE,
                                   .role = SLICE_LITERAL("writer"),
                                   .key = SLICE_LITERAL("a/"),
                                   .range_end = SLICE_LITERAL("b")});
    be(f, "root");
    assert_fine(f, put(f, "a/1")); /* written after the change, so the watch must not see it */
    assert_fine(f, put(f, "r"));
    turn(f);
    assert_string_equal(responses(f, id, &at), "0 canceled: " DENIED ";1 event;");
    change(f, (struct engine_auth){.call = ENGINE_AUTH_USER_DELETE, .user = SLICE_LITERAL("anna")});
    turn(f);
    assert_string_equal(responses(f, id, &at), "1 canceled: " DENIED ";");
    assert_false(peer_stream(&f->peer, id)->ended);
    assert_string_equal(responses(f, roots, &roots_at), "0 created;0 event event;");
}

static void watch_without_user_ends_when_auth_is_enabled(void **state)
{
    struct fixture *f = *state;
    size_t at = 0;
    uint32_t id = open_watch(f);
    create(f, id, SLICE_LITERAL("k"), SLICE_EMPTY);
    turn(f);
    begin(f);
    turn(f);
    assert_string_equal(responses(f, id, &at), "0 created;0 canceled: " DENIED ";");
}

static void send_keep_alive(struct fixture *f, uint32_t stream, int64_t id)
{
    struct pb_lease_keep_alive_request request = {.id = id};
    uint8_t bytes[32];
    size_t size = pb_size(&pb_lease_keep_alive_request_table, &request);
    pb_encode(&pb_lease_keep_alive_request_table, &request, bytes, size);
    peer_send(&f->peer, stream, slice_of(bytes, size), false);
}

/* They are woken some at a time; a watch with events meanwhile is checked before it gets them. */
static void thousands_of_watches_are_rechecked_over_several_turns(void **state)
{
    enum { COUNT = 1500 };
    struct fixture *f = *state;
    static uint32_t ids[COUNT];
    static size_t at[COUNT];
    size_t turns = 0, ended = 0;
    begin(f);
    be(f, "anna");
    for (size_t i = 0; i < COUNT; i++) {
        ids[i] = open_watch(f);
        at[i] = 0;
        create(f, ids[i], i == COUNT - 1 ? SLICE_LITERAL("a/last") : SLICE_LITERAL("a/1"),
               SLICE_EMPTY);
    }
    turn(f);
    for (size_t i = 0; i < COUNT; i++)
        assert_string_equal(responses(f, ids[i], &at[i]), "0 created;");
    change(f, (struct engine_auth){.call = ENGINE_AUTH_USER_DELETE, .user = SLICE_LITERAL("anna")});
    be(f, "root");
    assert_fine(f, put(f, "a/last"));
    turn(f);
    assert_string_equal(responses(f, ids[COUNT - 1], &at[COUNT - 1]), "0 canceled: " DENIED ";");
    for (; ended < COUNT - 1; turns++) {
        assert_true(turns < COUNT);
        ended = 0;
        for (size_t i = 0; i < COUNT - 1; i++)
            ended += peer_stream(&f->peer, ids[i])->body.len > at[i];
        assert_true(turns > 0 || ended < COUNT - 1);
        turn(f);
    }
    for (size_t i = 0; i < COUNT - 1; i++)
        assert_string_equal(responses(f, ids[i], &at[i]), "0 canceled: " DENIED ";");
}

static void keep_alive(struct fixture *f, uint32_t stream, int64_t id)
{
    send_keep_alive(f, stream, id);
    settle(f);
}

static void each_renewal_of_a_stream_is_checked(void **state)
{
    struct fixture *f = *state;
    struct pb_lease_grant_request request = {.id = 5, .ttl = 60};
    struct pb_put_request on_lease = {.key = SLICE_LITERAL("c"), .lease = 5};
    begin(f);
    be(f, "anna");
    assert_fine(f, call(f, PB_LEASE_LEASE_GRANT_PATH, &pb_lease_grant_request_table, &request));
    uint32_t stream = peer_open(&f->peer, PB_LEASE_LEASE_KEEP_ALIVE_PATH, SLICE_LITERAL("3.7"));
    keep_alive(f, stream, 5);
    assert_false(peer_stream(&f->peer, stream)->ended);
    be(f, "root");
    assert_fine(f, call(f, PB_KV_PUT_PATH, &pb_put_request_table, &on_lease));
    keep_alive(f, stream, 5); /* this lease has a key that anna may not write */
    assert_true(peer_stream(&f->peer, stream)->ended);
    assert_int_equal(peer_stream(&f->peer, stream)->code, GRPC_PERMISSION_DENIED);
    be(f, "anna");
    stream = peer_open(&f->peer, PB_LEASE_LEASE_KEEP_ALIVE_PATH, SLICE_LITERAL("3.7"));
    f->peer.now_ns += TTL_NS + 1;
    keep_alive(f, stream, 6);
    assert_refused(f, stream, ST_INVALID_AUTH_TOKEN);
}

static void renewals_before_a_refused_one_are_answered(void **state)
{
    struct fixture *f = *state;
    begin(f);
    be(f, "root");
    for (int64_t id = 5; id <= 6; id++) {
        struct pb_lease_grant_request request = {.id = id, .ttl = 60};
        assert_fine(f, call(f, PB_LEASE_LEASE_GRANT_PATH, &pb_lease_grant_request_table, &request));
    }
    struct pb_put_request on_lease = {.key = SLICE_LITERAL("c"), .lease = 6};
    assert_fine(f, call(f, PB_KV_PUT_PATH, &pb_put_request_table, &on_lease));
    be(f, "anna");
    uint32_t stream = peer_open(&f->peer, PB_LEASE_LEASE_KEEP_ALIVE_PATH, SLICE_LITERAL("3.7"));
    /* While the first operation is pending the others arrive, and become one operation. */
    const int64_t ids[] = {5, 5, 99, 6, 5};
    for (size_t i = 0; i < COUNT_OF(ids); i++)
        send_keep_alive(f, stream, ids[i]);
    settle(f);
    size_t at = 0;
    for (size_t i = 0; i < 3; i++) {
        struct pb_lease_keep_alive_response response;
        assert_true(
            next_message(&f->peer, stream, &at, &pb_lease_keep_alive_response_table, &response));
        assert_int_equal(response.id, ids[i]);
        assert_int_equal(response.ttl, ids[i] == 5 ? 60 : 0);
    }
    struct pb_lease_keep_alive_response none;
    assert_false(next_message(&f->peer, stream, &at, &pb_lease_keep_alive_response_table, &none));
    assert_int_equal(peer_stream(&f->peer, stream)->code, GRPC_PERMISSION_DENIED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(watch_without_permission_gets_etcds_error),
        TEST(watch_ends_when_its_permission_is_revoked),
        TEST(watch_without_user_ends_when_auth_is_enabled),
        TEST(thousands_of_watches_are_rechecked_over_several_turns),
        TEST(each_renewal_of_a_stream_is_checked),
        TEST(renewals_before_a_refused_one_are_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
