/* Calls of the cluster over a simulated network with two members. */
#include "mirror/link/upstream_fixture_test.h"

static void clients_calls_carry_the_clients_token_only(void **state)
{
    (void)state;
    struct world w = {.options = {.user = "vigil", .password = "p"}};
    struct test_call own = {0}, none = {0}, other = {0};
    begin(&w, 1);
    w.cluster.token = 7;
    start_get(&w, &own, NULL);
    run_until_end(&w, &own);
    assert_int_equal(own.code, GRPC_OK);
    assert_string_equal(w.seen.token, "token.7");
    assert_false(w.seen.forwarded);
    start_get(&w, &other, "token.of.client");
    run_until_end(&w, &other);
    assert_int_equal(other.code, GRPC_UNAUTHENTICATED);
    assert_string_equal(w.seen.token, "token.of.client");
    assert_true(w.seen.forwarded);
    start_get(&w, &none, "");
    run_until_end(&w, &none);
    assert_string_equal(none.text, status_text(ST_USER_EMPTY));
    assert_string_equal(w.seen.token, "");
    assert_true(w.seen.forwarded);
    assert_int_equal(w.cluster.authentications, 1);
    finish(&w);
}

/* More callers than heads are kept, twice, and with both kinds of heads. */
static void many_callers_are_distinguished(void **state)
{
    (void)state;
    struct world w = {0};
    begin(&w, 1);
    for (unsigned i = 0; i < 1200; i++) {
        struct test_call c = {0};
        char token[32];
        struct upstream_request request;
        snprintf(token, sizeof(token), "token.%u", i % 600);
        request = request_of("/etcdserverpb.KV/Range", token);
        request.require_leader = i % 3 == 0;
        start(&w, &c, &request, SLICE_LITERAL("\x0a\x01k"));
        run_until_end(&w, &c);
        assert_int_equal(c.code, GRPC_OK);
        assert_int_equal(c.messages, 1);
        assert_string_equal(w.seen.token, token);
        assert_int_equal(w.seen.leader, request.require_leader);
    }
    finish(&w);
}

static void write_that_may_have_been_applied_is_not_repeated(void **state)
{
    (void)state;
    struct world w = {0};
    struct test_call c = {0}, later = {0};
    begin(&w, MEMBERS);
    w.members[0].answer = w.members[1].answer = ETCD_IS_SILENT;
    start_put(&w, &c, 1, CLOCK_NEVER);
    run(&w, 100 * NS_PER_MS);
    assert_int_equal(w.cluster.executed[1], 1);
    for (size_t i = 0; i < MEMBERS; i++) {
        etcd_member_stop(&w.members[i]);
        w.members[i].answer = ETCD_ANSWERS;
        etcd_member_start(&w.members[i], sim_network(w.sim));
    }
    run_until_end(&w, &c);
    assert_int_equal(c.code, GRPC_UNAVAILABLE);
    start_put(&w, &later, 2, CLOCK_NEVER);
    run_until_end(&w, &later);
    assert_int_equal(later.code, GRPC_OK);
    assert_int_equal(w.cluster.executed[1], 1);
    assert_int_equal(w.cluster.executed[2], 1);
    finish(&w);
}

static void read_is_repeated_after_a_break(void **state)
{
    (void)state;
    struct world w = {0};
    struct test_call c = {0};
    begin(&w, 1);
    w.members[0].answer = ETCD_IS_SILENT;
    start_get(&w, &c, "t");
    run(&w, 100 * NS_PER_MS);
    assert_int_equal(w.cluster.ranges, 1);
    etcd_member_stop(&w.members[0]);
    w.members[0].answer = ETCD_ANSWERS;
    run(&w, 10 * NS_PER_MS);
    etcd_member_start(&w.members[0], sim_network(w.sim));
    run_until_end(&w, &c);
    assert_int_equal(c.code, GRPC_OK);
    assert_int_equal(c.messages, 1);
    assert_int_equal(w.cluster.ranges, 2);
    finish(&w);
}

/* The one that is tried first fails calls; which one that is depends on the seed. */
static void unavailable_member_is_left(void **state)
{
    (void)state;
    for (size_t bad = 0; bad < MEMBERS; bad++) {
        struct world w = {0};
        struct test_call reads[4] = {0}, put = {0};
        begin(&w, MEMBERS);
        w.members[bad].answer = ETCD_CALLS_FAIL;
        for (size_t i = 0; i < COUNT_OF(reads); i++) {
            start_get(&w, &reads[i], "t");
            run_until_end(&w, &reads[i]);
            assert_int_equal(reads[i].code, GRPC_OK);
        }
        assert_true(w.cluster.ranges <= COUNT_OF(reads) + 1);
        start_put(&w, &put, 1, CLOCK_NEVER);
        run_until_end(&w, &put);
        assert_int_equal(put.code, GRPC_OK);
        finish(&w);
    }
}

/* All members refuse writes at once, and a client repeats them without a pause. */
static void server_is_not_changed_for_every_failure(void **state)
{
    (void)state;
    struct world w = {0};
    begin(&w, MEMBERS);
    w.refuse = ST_NO_LEADER;
    int64_t begun = now(&w);
    while (now(&w) - begun < NS_PER_S) {
        struct test_call put = {0};
        start_put(&w, &put, 1, CLOCK_NEVER);
        run_until_end(&w, &put);
    }
    assert_true(w.seen.calls > 200);
    assert_in_range(w.seen.moves, 3, 6);
    finish(&w);
}

static void errors_of_the_cluster_pass_unchanged(void **state)
{
    (void)state;
    static const enum status refusals[] = {ST_NO_SPACE, ST_PERMISSION_DENIED, ST_COMPACTED,
                                           ST_INVALID_AUTH_TOKEN, ST_NO_LEADER};
    struct world w = {0};
    begin(&w, MEMBERS);
    for (size_t i = 0; i < COUNT_OF(refusals); i++) {
        struct test_call put = {0}, get = {0};
        w.refuse = refusals[i];
        start_put(&w, &put, 1, CLOCK_NEVER);
        run_until_end(&w, &put);
        start_get(&w, &get, "t");
        run_until_end(&w, &get);
        assert_int_equal(put.code, status_code(refusals[i]));
        assert_string_equal(put.text, status_text(refusals[i]));
        assert_int_equal(get.code, status_code(refusals[i]));
        assert_string_equal(get.text, status_text(refusals[i]));
    }
    assert_int_equal(w.cluster.executed[1], 0);
    finish(&w);
}

/* Moving the leader is refused by members that are not the leader. */
static void leader_is_found(void **state)
{
    (void)state;
    for (size_t leader = 0; leader < MEMBERS; leader++) {
        struct world w = {0};
        struct test_call c = {0};
        begin(&w, MEMBERS);
        w.leader = &w.members[leader];
        start_put(&w, &c, 1, CLOCK_NEVER);
        run_until_end(&w, &c);
        assert_int_equal(c.code, GRPC_OK);
        assert_int_equal(w.cluster.executed[1], 1);
        w.leader = &w.cluster; /* none of them */
        c = (struct test_call){0};
        start_put(&w, &c, 2, now(&w) + 2 * NS_PER_S);
        run_until_end(&w, &c);
        assert_string_equal(c.text, status_text(ST_NOT_LEADER));
        finish(&w);
    }
}

/* Whichever member the channel meets first. A learner does nothing, so that writes can be repeated.
 */
static void learners_are_skipped(void **state)
{
    (void)state;
    for (size_t voter = 0; voter < MEMBERS; voter++) {
        struct world w = {0};
        bool learners[MEMBERS];
        for (size_t i = 0; i < MEMBERS; i++)
            learners[i] = i != voter;
        begin(&w, MEMBERS);
        w.learners = learners;
        for (unsigned i = 0; i < 8; i++) {
            struct test_call put = {0}, get = {0};
            start_put(&w, &put, 1, CLOCK_NEVER);
            run_until_end(&w, &put);
            start_get(&w, &get, "t");
            run_until_end(&w, &get);
            assert_int_equal(put.code, GRPC_OK);
            assert_int_equal(get.code, GRPC_OK);
        }
        assert_int_equal(w.cluster.executed[1], 8);
        learners[voter] = true; /* no member votes: the members' own error */
        struct test_call put = {0};
        start_put(&w, &put, 2, now(&w) + 2 * NS_PER_S);
        run_until_end(&w, &put);
        assert_string_equal(put.text, status_text(ST_NOT_SUPPORTED_FOR_LEARNER));
        finish(&w);
    }
}

static void without_a_connection_calls_fail_with_the_reason(void **state)
{
    (void)state;
    struct world w = {0};
    struct test_call limited = {0}, patient = {0};
    begin(&w, 1);
    etcd_member_stop(&w.members[0]);
    int64_t begun = now(&w);
    start_put(&w, &limited, 1, begun + 2 * NS_PER_S);
    start_put(&w, &patient, 2, CLOCK_NEVER);
    run_until_end(&w, &limited);
    assert_int_equal(limited.code, GRPC_UNAVAILABLE);
    assert_non_null(strstr(limited.text, w.endpoints + strlen("http://")));
    assert_non_null(strstr(limited.text, "cannot be reached"));
    assert_in_range(now(&w) - begun, 1900 * NS_PER_MS, 2 * NS_PER_S - 1);
    run_until_end(&w, &patient);
    assert_int_equal(patient.code, GRPC_UNAVAILABLE);
    assert_in_range(now(&w) - begun, UPSTREAM_REACH_NS, UPSTREAM_REACH_NS + NS_PER_MS);
    assert_true(*upstream_failure(w.upstream));
    finish(&w);
}

/* A deadline that is later than that makes no difference, and the next call does not wait so long.
 */
static void an_unreachable_cluster_is_reported_soon(void **state)
{
    (void)state;
    struct world w = {0};
    struct test_call first = {0}, second = {0}, third = {0};
    begin(&w, 1);
    etcd_member_stop(&w.members[0]);
    int64_t begun = now(&w);
    start_put(&w, &first, 1, begun + 60 * NS_PER_S);
    run_until_end(&w, &first);
    assert_int_equal(first.code, GRPC_UNAVAILABLE);
    assert_non_null(strstr(first.text, w.endpoints));
    assert_in_range(now(&w) - begun, UPSTREAM_REACH_NS, UPSTREAM_REACH_NS + NS_PER_MS);
    begun = now(&w);
    start_put(&w, &second, 2, CLOCK_NEVER);
    run_until_end(&w, &second);
    assert_int_equal(second.code, GRPC_UNAVAILABLE);
    assert_in_range(now(&w) - begun, UPSTREAM_REACH_AGAIN_NS, UPSTREAM_REACH_AGAIN_NS + NS_PER_MS);
    etcd_member_start(&w.members[0], sim_network(w.sim));
    run(&w, 5 * NS_PER_S); /* longer than any pause between attempts */
    start_put(&w, &third, 3, CLOCK_NEVER);
    run_until_end(&w, &third);
    assert_int_equal(third.code, GRPC_OK);
    finish(&w);
}

/* A caller that has no time says nothing about the cluster. */
static void a_short_deadline_does_not_shorten_the_patience_of_others(void **state)
{
    (void)state;
    struct world w = {0};
    struct test_call hasty = {0}, patient = {0};
    begin(&w, 1);
    etcd_member_stop(&w.members[0]);
    start_put(&w, &hasty, 1, now(&w) + NS_PER_MS);
    run_until_end(&w, &hasty);
    int64_t begun = now(&w);
    start_put(&w, &patient, 2, CLOCK_NEVER);
    run_until_end(&w, &patient);
    assert_in_range(now(&w) - begun, UPSTREAM_REACH_NS, UPSTREAM_REACH_NS + NS_PER_MS);
    finish(&w);
}

static void call_waits_until_the_cluster_is_back(void **state)
{
    (void)state;
    struct world w = {0};
    struct test_call c = {0};
    begin(&w, 1);
    etcd_member_stop(&w.members[0]);
    start_put(&w, &c, 3, CLOCK_NEVER);
    run(&w, NS_PER_S);
    etcd_member_start(&w.members[0], sim_network(w.sim));
    run_until_end(&w, &c);
    assert_int_equal(c.code, GRPC_OK);
    assert_int_equal(w.cluster.executed[3], 1);
    assert_string_equal(upstream_failure(w.upstream), "");
    finish(&w);
}

static void deadline_ends_a_sent_call(void **state)
{
    (void)state;
    struct world w = {0};
    struct test_call c = {0};
    begin(&w, 1);
    w.members[0].answer = ETCD_IS_SILENT;
    int64_t begun = now(&w);
    start_put(&w, &c, 1, begun + 300 * NS_PER_MS);
    run_until_end(&w, &c);
    assert_in_range(w.seen.left_ns, 250 * NS_PER_MS, 301 * NS_PER_MS);
    assert_int_equal(c.code, GRPC_DEADLINE_EXCEEDED);
    assert_string_equal(c.text, "context deadline exceeded");
    assert_in_range(now(&w) - begun, 300 * NS_PER_MS, 301 * NS_PER_MS);
    finish(&w);
}

static void cancelled_calls_are_silent_and_end_at_the_server(void **state)
{
    (void)state;
    struct world w = {0};
    struct test_call waiting = {0}, streaming = {0}, received = {.act = ACT_CANCEL_IN_MESSAGE},
                     ended = {.act = ACT_CANCEL_IN_END};
    struct upstream_request request = request_of("/test/Echo", "t");
    request.lasts = true;
    begin(&w, 1);
    start_get(&w, &waiting, "t");
    upstream_cancel(waiting.call);
    start(&w, &streaming, &request, SLICE_LITERAL("x"));
    start(&w, &received, &request, SLICE_LITERAL("x"));
    start_get(&w, &ended, "t");
    run(&w, 100 * NS_PER_MS);
    assert_int_equal(streaming.messages, 1);
    assert_null(received.call);
    assert_int_equal(ended.ends, 1);
    assert_int_equal(w.seen.ended, 1);
    upstream_cancel(streaming.call);
    run(&w, 100 * NS_PER_MS);
    assert_int_equal(w.seen.ended, 2);
    assert_int_equal(waiting.ends + streaming.ends + received.ends, 0);
    assert_int_equal(received.messages, 1);
    finish(&w);
}

static void paused_call_stops_the_server(void **state)
{
    (void)state;
    struct world w = {0};
    struct test_call c = {0};
    struct upstream_request request = request_of("/test/Flood", "t");
    size_t total = (size_t)FLOOD_MESSAGES * FLOOD_BYTES;
    begin(&w, 1);
    start(&w, &c, &request, SLICE_EMPTY);
    upstream_pause(c.call, true);
    run(&w, 2 * NS_PER_S);
    size_t stopped = c.bytes;
    assert_true(stopped < total / 2);
    assert_true(w.flooded < total / 2 + (1 << 20));
    run(&w, NS_PER_S);
    assert_int_equal(c.bytes, stopped);
    upstream_pause(c.call, false);
    run_until_end(&w, &c);
    assert_int_equal(c.code, GRPC_OK);
    assert_int_equal(c.bytes, total);
    finish(&w);
}

static void answer_that_is_too_long_ends_the_call(void **state)
{
    (void)state;
    struct world w = {0};
    struct test_call c = {0};
    struct upstream_request request = request_of("/test/Large", "t");
    begin(&w, 1);
    start(&w, &c, &request, SLICE_EMPTY);
    run_until_end(&w, &c);
    assert_int_equal(c.code, GRPC_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(c.text, "larger than max"));
    finish(&w);
}

static void own_token_is_renewed(void **state)
{
    (void)state;
    struct world w = {.options = {.user = "vigil", .password = "p"}};
    begin(&w, 1);
    for (unsigned round = 0; round < 3; round++) {
        struct test_call own = {0};
        w.cluster.token = 10 * round; /* at first there is no authentication */
        start_get(&w, &own, NULL);
        run_until_end(&w, &own);
        assert_int_equal(own.code, GRPC_OK);
    }
    assert_int_equal(w.cluster.authentications, 2);
    finish(&w);
}

static void clients_are_served_if_our_user_is_refused(void **state)
{
    (void)state;
    struct world w = {.options = {.user = "vigil", .password = "wrong"}};
    struct test_call own[3] = {{.act = ACT_START_IN_END}, {0}, {0}}, client = {0};
    own[0].next = &own[2];
    begin(&w, 1);
    w.cluster.token = 1;
    w.rejects_user = true;
    start_get(&w, &own[0], NULL);
    start_get(&w, &own[1], NULL);
    start_get(&w, &client, "token.1");
    run(&w, NS_PER_S);
    assert_int_equal(client.code, GRPC_OK);
    for (size_t i = 0; i < COUNT_OF(own); i++) {
        assert_int_equal(own[i].ends, 1);
        assert_int_equal(own[i].code, GRPC_UNAUTHENTICATED);
        assert_non_null(strstr(own[i].text, status_text(ST_AUTH_FAILED)));
    }
    finish(&w);
}

static void token_that_cannot_be_sent_is_refused(void **state)
{
    (void)state;
    struct world w = {0};
    struct test_call c[2] = {0};
    char *longest = calloc(1, 16 * 1024);
    assert_non_null(longest);
    memset(longest, 'x', 16 * 1024 - 1);
    const char *tokens[] = {longest, "a\nb"};
    begin(&w, 1);
    for (size_t i = 0; i < COUNT_OF(c); i++) {
        start_get(&w, &c[i], tokens[i]);
        run_until_end(&w, &c[i]);
        assert_int_equal(c[i].code, GRPC_UNAUTHENTICATED);
    }
    assert_int_equal(w.seen.calls, 0);
    free(longest);
    finish(&w);
}

static void calls_that_wait_are_limited(void **state)
{
    (void)state;
    struct world w = {0};
    size_t count = UPSTREAM_WAITING_MAX + 1;
    struct test_call *calls = calloc(count, sizeof(*calls));
    struct upstream_request request = request_of("/etcdserverpb.KV/Range", "t");
    assert_non_null(calls);
    begin(&w, 1);
    etcd_member_stop(&w.members[0]);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(upstream_start(w.upstream, &request, &ops, &calls[i], &calls[i].call),
                         ST_OK);
    run_until_end(&w, &calls[count - 1]);
    assert_int_equal(calls[count - 1].code, GRPC_RESOURCE_EXHAUSTED);
    assert_int_equal(calls[count - 2].ends, 0);
    finish(&w);
    free(calls);
}

static void bytes_that_wait_are_limited(void **state)
{
    (void)state;
    enum { PIECE = 1 << 20 };
    struct world w = {0};
    struct test_call c = {0}, stream = {0};
    struct upstream_request request = request_of("/etcdserverpb.KV/Put", "t");
    uint8_t *piece = calloc(1, PIECE);
    assert_non_null(piece);
    begin(&w, 1);
    etcd_member_stop(&w.members[0]);
    start(&w, &c, &request, SLICE_EMPTY);
    request.lasts = true;
    start(&w, &stream, &request, slice_of(piece, PIECE - 64));
    assert_int_equal(upstream_send(stream.call, slice_of(piece, 64)), ST_LIMIT);
    upstream_cancel(c.call);
    c = (struct test_call){0};
    request.lasts = false;
    assert_int_equal(upstream_start(w.upstream, &request, &ops, &c, &c.call), ST_OK);
    for (size_t i = 0; i < UPSTREAM_HELD_BYTES_MAX / PIECE; i++)
        assert_int_equal(upstream_send(c.call, slice_of(piece, PIECE)), ST_OK);
    assert_int_equal(upstream_send(c.call, slice_of(piece, 1)), ST_LIMIT);
    upstream_check(w.upstream);
    upstream_cancel(c.call);
    start_put(&w, &c, 1, CLOCK_NEVER);
    free(piece);
    finish(&w);
}

static void avoided_member_ends_streams_that_last(void **state)
{
    (void)state;
    struct world w = {0};
    struct test_call stream = {0}, get = {0};
    struct upstream_request request = request_of("/test/Echo", "t");
    request.lasts = true;
    begin(&w, MEMBERS);
    start(&w, &stream, &request, SLICE_LITERAL("x"));
    run(&w, 50 * NS_PER_MS);
    assert_int_equal(stream.messages, 1);
    w.members[0].answer = w.members[1].answer = ETCD_CALLS_FAIL;
    start_get(&w, &get, "t");
    run_until_end(&w, &stream);
    assert_int_equal(stream.code, GRPC_UNAVAILABLE);
    run_until_end(&w, &get);
    assert_string_equal(get.text, "no quorum");
    finish(&w);
}

/* Connections break at random. Every call ends once, and no put is executed twice. */
static void random_breaks_apply_nothing_twice(void **state)
{
    (void)state;
    unsigned failed = 0, succeeded = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct sim_options options = SIM_OPTIONS_DEFAULT;
        struct world w = {0};
        struct test_call puts[30] = {0}, gets[30] = {0};
        options.seed = seed;
        options.reset_per_million = 20000;
        world_open(&w, &options, MEMBERS);
        for (unsigned i = 0; i < COUNT_OF(puts); i++) {
            start_put(&w, &puts[i], i, now(&w) + 10 * NS_PER_S);
            start_get(&w, &gets[i], "t");
            run(&w, NS_PER_MS);
        }
        for (size_t i = 0; i < COUNT_OF(puts); i++) {
            run_until_end(&w, &puts[i]);
            run_until_end(&w, &gets[i]);
            assert_true(w.cluster.executed[i] <= 1);
            assert_true(puts[i].code != GRPC_OK || w.cluster.executed[i] == 1);
            succeeded += puts[i].code == GRPC_OK;
            failed += puts[i].code != GRPC_OK;
            assert_true(puts[i].code == GRPC_OK || puts[i].code == GRPC_UNAVAILABLE);
        }
        finish(&w);
    }
    assert_true(failed > 0 && succeeded > 10 * 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_calls_carry_the_clients_token_only),
        cmocka_unit_test(many_callers_are_distinguished),
        cmocka_unit_test(write_that_may_have_been_applied_is_not_repeated),
        cmocka_unit_test(read_is_repeated_after_a_break),
        cmocka_unit_test(unavailable_member_is_left),
        cmocka_unit_test(server_is_not_changed_for_every_failure),
        cmocka_unit_test(errors_of_the_cluster_pass_unchanged),
        cmocka_unit_test(leader_is_found),
        cmocka_unit_test(learners_are_skipped),
        cmocka_unit_test(without_a_connection_calls_fail_with_the_reason),
        cmocka_unit_test(an_unreachable_cluster_is_reported_soon),
        cmocka_unit_test(a_short_deadline_does_not_shorten_the_patience_of_others),
        cmocka_unit_test(call_waits_until_the_cluster_is_back),
        cmocka_unit_test(deadline_ends_a_sent_call),
        cmocka_unit_test(cancelled_calls_are_silent_and_end_at_the_server),
        cmocka_unit_test(paused_call_stops_the_server),
        cmocka_unit_test(answer_that_is_too_long_ends_the_call),
        cmocka_unit_test(own_token_is_renewed),
        cmocka_unit_test(clients_are_served_if_our_user_is_refused),
        cmocka_unit_test(token_that_cannot_be_sent_is_refused),
        cmocka_unit_test(calls_that_wait_are_limited),
        cmocka_unit_test(bytes_that_wait_are_limited),
        cmocka_unit_test(avoided_member_ends_streams_that_last),
        cmocka_unit_test(random_breaks_apply_nothing_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
