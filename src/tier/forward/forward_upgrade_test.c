/* Upgraded connections that are passed through, and broken ones. */
#include "tier/forward/forward_fixture_test.h"

/* -- Upgrades -- */

static void upgrade(struct pool_test_request *r)
{
    t.stream.echoes = true;
    r->target = "/f/raw";
    r->upgrade = "test/1";
    exchange(r);
    assert_int_equal(r->status, 101);
    assert_true(t.stream.upgrade);
}

static void upgraded_connections_are_passed_through(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pulled pulled = PULLED;
        struct pool_test_request r = {.pulled = &pulled, .method = "POST"};
        begin(&cases[i]);
        upgrade(&r);
        assert_non_null(strstr(r.head, "Upgrade: test/1\n"));
        give(&r, "ping");
        assert_string_equal(r.text, "ping");
        run(10 * 86400 * NS_PER_S); /* silence does not end it */
        give(&r, "pong");
        assert_string_equal(r.text, "pingpong");
        give_end(&r); /* the other server ends, too */
        assert_int_equal(r.ends, 1);
        assert_int_equal(r.end, ST_OK);
        assert_int_equal(t.stream.got_ends, 1);
        assert_int_equal(t.forwards.under_way, 0);
        pulled_fini(&pulled);
        end();
    }
}

static void each_direction_of_an_upgrade_ends_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pulled pulled = PULLED;
        struct pool_test_request r = {.pulled = &pulled};
        begin(&cases[i]);
        t.stream.echoes_max = 4; /* the other server ends first */
        upgrade(&r);
        give(&r, "ping");
        assert_int_equal(r.input_ends, 1);
        assert_int_equal(r.ends, 0);
        give(&r, "more");
        assert_int_equal(t.stream.got_bytes, 8);
        give_end(&r);
        assert_int_equal(r.end, ST_OK);
        assert_int_equal(r.ends, 1);
        assert_int_equal(t.stream.ends, 1);
        pulled_fini(&pulled);
        end();
    }
}

static void upgraded_connection_ends_with_either_side(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        for (int half = 0; half < 2; half++) {
            struct pulled pulled = PULLED;
            struct pool_test_request r = {.pulled = &pulled};
            begin(&cases[i]);
            t.stream.echoes_max = half ? 4 : 0;
            upgrade(&r);
            give(&r, "ping");
            pool_request_cancel(&r.request);
            run(NS_PER_S);
            assert_null(t.stream.latest);
            assert_int_equal(t.forwards.under_way, 0);
            pulled_fini(&pulled);
            pulled = PULLED;
            upgrade(&r);
            give(&r, "ping");
            stop_other();
            give(&r, "more");
            give(&r, "more");
            /* A client to which nothing more was sent anyway notices it when it sends. */
            run(30 * NS_PER_S);
            give(&r, "more");
            give(&r, "more");
            if (half)
                assert_int_equal(r.ends, 1);
            else
                assert_int_equal(r.input_ends, 1);
            pool_request_cancel(&r.request);
            run(NS_PER_S);
            assert_int_equal(t.forwards.under_way, 0);
            pulled_fini(&pulled);
            end();
        }
    }
}

static void raw_bytes_wait_for_a_slow_side(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pulled pulled = PULLED;
        struct pool_test_request r = {.pulled = &pulled};
        begin(&cases[i]);
        upgrade(&r);
        pulled.endless = true;
        http_withhold(t.stream.latest, true);
        pool_request_wake(&r.request);
        run(10 * NS_PER_MS);
        size_t given = pulled.given;
        assert_in_range(given, 1, 3 * HELD_MAX);
        run(1000 * NS_PER_S);
        assert_int_equal(pulled.given, given);
        assert_int_equal(r.ends, 0);
        pool_request_cancel(&r.request);
        run(NS_PER_S);
        end();
    }
}

static void refused_upgrade_is_an_ordinary_answer(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pool_test_request r = {.target = "/f/fields?403", .upgrade = "test/1"};
        begin(&cases[i]);
        exchange(&r);
        assert_int_equal(r.end, ST_OK);
        assert_int_equal(r.status, 403);
        assert_string_equal(r.text, "the body");
        end();
    }
}

/* -- Faults -- */

/* A body in parts and an upgraded connection, with a network that breaks connections. */
static void broken_connections_leave_nothing_behind(void **state)
{
    unsigned whole = 0, broken = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct sim_options options = SIM_OPTIONS_DEFAULT;
        struct pulled body = PULLED, raw_bytes = PULLED;
        struct pool_test_request r[] = {
            {.method = "POST",
             .target = "/f/take",
             .pulled = &body,
             .pulled_bytes = POOL_BYTES_UNKNOWN},
            {.target = "/f/raw", .upgrade = "x", .pulled = &raw_bytes},
            {.target = "/f/pull"},
        };
        options.seed = seed;
        options.split_per_1000 = 300;
        options.buffer_bytes = 2000;
        options.reset_per_million = seed % 4 ? 3000 : 0;
        prepare(&cases[seed % COUNT_OF(cases)], &options);
        t.stream.begins = t.stream.echoes = true;
        t.site.big_bytes = 100000;
        pool_world_start(&t.w);
        for (size_t k = 0; k < COUNT_OF(r); k++) {
            start(&r[k]);
            for (int part = 0; r[k].pulled && part < 10; part++) {
                run(5 * NS_PER_MS);
                pulled_give(r[k].pulled, "0123456789");
                r[k].pulled->ends = part == 9;
                pool_request_wake(&r[k].request);
            }
            for (int n = 0; n < 100 && !r[k].ends; n++)
                run(10 * NS_PER_MS);
            bool is_whole = r[k].ends && r[k].end == ST_OK && r[k].status < 300 &&
                            r[k].received == (r[k].pulled ? 100 : t.site.big_bytes);
            assert_true(is_whole || options.reset_per_million);
            /* What looks complete is complete, except for bytes without framing. */
            if (r[k].ends && r[k].end == ST_OK && r[k].status == 200)
                assert_true(is_whole);
            whole += is_whole;
            broken += !is_whole;
            pool_request_cancel(&r[k].request);
        }
        pulled_fini(&body);
        pulled_fini(&raw_bytes);
        end();
    }
    assert_true(whole > 100 && broken > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(upgraded_connections_are_passed_through),
        cmocka_unit_test(each_direction_of_an_upgrade_ends_alone),
        cmocka_unit_test(upgraded_connection_ends_with_either_side),
        cmocka_unit_test(raw_bytes_wait_for_a_slow_side),
        cmocka_unit_test(refused_upgrade_is_an_ordinary_answer),
        cmocka_unit_test(broken_connections_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
