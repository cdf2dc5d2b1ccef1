/* Which connections are known to lead to a kube-apiserver that is ready. */
#include "tier/rights/readiness.h"

#include "tier/link/link_fixture_test.h"

#define VALID_NS (3 * NS_PER_S)
#define PAUSE_NS (100 * NS_PER_MS)

struct ready_world {
    struct link_world base;
    struct tier_readiness readiness;
    unsigned code;  /* of /readyz */
    unsigned asked; /* how often */
};

/* Another call, which is not answered until end_call. */
struct test_call {
    struct tier_call call;
    uint32_t connection;
};

static void on_readyz(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    struct ready_world *w = ctx;
    assert_string_equal(request->authorization, "Bearer tiers-own");
    w->asked++;
    sim_reply_whole(reply, w->code, "text/plain", SLICE_LITERAL("so"));
}

static void on_other(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    (void)reply, (void)request, (void)ctx;
}

static void begin(struct ready_world *w, enum sim_protocol protocol, struct tier_rate *rate)
{
    link_world_init(&w->base, protocol, NULL);
    kube_server_route(&w->base.server, "GET", "/readyz", on_readyz, w);
    kube_server_route(&w->base.server, NULL, "*", on_other, NULL);
    w->base.options.token = "tiers-own";
    assert_int_equal(link_world_start(&w->base), ST_OK);
    tier_readiness_init(&w->readiness, w->base.loop, w->base.link, rate);
    w->code = 200;
    w->asked = 0;
}

static void end(struct ready_world *w)
{
    tier_readiness_fini(&w->readiness);
    link_world_fini(&w->base);
}

static void on_tick(struct timer *timer)
{
    (void)timer;
}

/* The loop has a turn at the end, so that its clock is right. */
static void run(struct ready_world *w, int64_t ns)
{
    struct timer tick = {.fn = on_tick};
    int64_t at_ns = link_world_now(&w->base) + ns;
    loop_timer_set(w->base.loop, &tick, at_ns);
    sim_run_until(w->base.sim, at_ns);
}

static int64_t now_of(struct ready_world *w)
{
    return loop_now_ns(w->base.loop);
}

/* The connection that has answered. */
static uint32_t ask(struct ready_world *w)
{
    unsigned before = w->asked;
    run(w, PAUSE_NS);
    tier_readiness_ask(&w->readiness);
    run(w, PAUSE_NS);
    assert_int_equal(w->asked, before + 1);
    return w->readiness.call.connection;
}

static void on_done(struct tier_call *call, unsigned code, struct slice body, const char *reason)
{
    struct test_call *t = CONTAINER_OF(call, struct test_call, call);
    (void)body, (void)reason;
    assert_int_equal(code, 201);
    t->connection = call->connection;
}

static void begin_call(struct ready_world *w, struct test_call *t)
{
    *t = (struct test_call){.call.done = on_done};
    assert_int_equal(tier_call_start(w->base.link, &t->call, "POST", "/other", SLICE_LITERAL("{}"),
                                     60 * NS_PER_S),
                     ST_OK);
    run(w, PAUSE_NS);
}

static void end_call(struct ready_world *w)
{
    struct sim_reply *reply = kube_server_reply(&w->base.server, "/other");
    assert_non_null(reply);
    sim_reply_json(reply, 201, "{}");
    run(w, PAUSE_NS);
}

static bool covers_now(struct ready_world *w, uint32_t connection)
{
    return tier_readiness_covers(&w->readiness, connection, now_of(w));
}

static void an_answer_is_used_for_what_is_sent_soon_after_it(void **state)
{
    (void)state;
    for (enum sim_protocol protocol = 0; protocol < SIM_PROTOCOLS; protocol++) {
        struct ready_world w;
        begin(&w, protocol, NULL);
        run(&w, PAUSE_NS);
        int64_t before_ns = now_of(&w);
        uint32_t connection = ask(&w);
        assert_true(connection);
        assert_false(tier_readiness_covers(&w.readiness, connection, before_ns));
        assert_true(covers_now(&w, connection));
        assert_false(covers_now(&w, connection + 1));
        assert_false(covers_now(&w, 0));
        int64_t sent_ns = now_of(&w);
        run(&w, VALID_NS - 2 * PAUSE_NS);
        assert_true(covers_now(&w, connection));
        /* The next answer does not make what was sent before it unknown. */
        assert_int_equal(ask(&w), connection);
        assert_true(tier_readiness_covers(&w.readiness, connection, sent_ns));
        /* But one after a gap does. */
        run(&w, VALID_NS);
        assert_false(covers_now(&w, connection));
        assert_int_equal(ask(&w), connection);
        assert_true(covers_now(&w, connection));
        assert_false(tier_readiness_covers(&w.readiness, connection, sent_ns));
        end(&w);
    }
}

static void only_200_means_ready(void **state)
{
    static const unsigned codes[] = {201, 302, 401, 403, 404, 429, 500, 503};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        struct ready_world w;
        begin(&w, SIM_HTTP2, NULL);
        uint32_t connection = ask(&w);
        assert_true(covers_now(&w, connection));
        w.code = codes[i];
        assert_int_equal(ask(&w), connection);
        assert_false(covers_now(&w, connection));
        end(&w);
    }
}

static void an_answer_says_nothing_of_other_connections(void **state)
{
    (void)state;
    struct ready_world w;
    struct test_call other;
    begin(&w, SIM_HTTP1, NULL);
    begin_call(&w, &other);
    uint32_t connection = ask(&w);
    end_call(&w);
    assert_true(other.connection);
    assert_true(covers_now(&w, connection));
    assert_false(covers_now(&w, other.connection));
    /* The one that was used last gets the question. */
    assert_int_equal(ask(&w), other.connection);
    assert_true(covers_now(&w, other.connection));
    end(&w);
}

static void it_is_not_asked_too_often(void **state)
{
    (void)state;
    struct ready_world w;
    begin(&w, SIM_HTTP2, NULL);
    for (int ms = 0; ms < 1000; ms++) {
        tier_readiness_ask(&w.readiness);
        run(&w, NS_PER_MS);
    }
    assert_in_range(w.asked, 9, 11);
    end(&w);
    /* Nor more often than all calls together may be made. */
    struct tier_rate *rate = tier_rate_new(1);
    begin(&w, SIM_HTTP2, rate);
    for (int ms = 0; ms < 10000; ms += 50) {
        tier_readiness_ask(&w.readiness);
        run(&w, 50 * NS_PER_MS);
    }
    assert_in_range(w.asked, 10, 12);
    end(&w);
    tier_rate_free(rate);
}

static void the_oldest_of_too_many_connections_is_forgotten(void **state)
{
    static struct test_call calls[TIER_READY_MAX + 1];
    uint32_t connections[TIER_READY_MAX + 1];
    (void)state;
    struct ready_world w;
    begin(&w, SIM_HTTP1, NULL);
    for (int i = 0; i <= TIER_READY_MAX; i++) {
        /* Each call keeps the connection over which the last question was sent. */
        connections[i] = ask(&w);
        begin_call(&w, &calls[i]);
        w.base.server.request_count = 0;
        if (i == TIER_READY_MAX - 1)
            assert_true(
                tier_readiness_covers(&w.readiness, connections[0], w.readiness.ready[0].first_ns));
    }
    assert_true(covers_now(&w, connections[TIER_READY_MAX]));
    for (int i = 0; i < TIER_READY_MAX; i++)
        assert_int_not_equal(w.readiness.ready[i].connection, connections[0]);
    for (int i = 0; i <= TIER_READY_MAX; i++)
        tier_call_cancel(&calls[i].call);
    end(&w);
}

static void without_memory_nothing_is_known(void **state)
{
    (void)state;
    for (size_t at = 1;; at++) {
        struct ready_world w;
        begin(&w, SIM_HTTP2, NULL);
        faulty_memory_at = at;
        faulty_memory_begin();
        tier_readiness_ask(&w.readiness);
        faulty_memory_end();
        run(&w, 10 * NS_PER_S);
        bool failed = faulty_memory_at == 0;
        faulty_memory_at = 0;
        (void)ask(&w);
        assert_true(covers_now(&w, w.readiness.call.connection));
        end(&w);
        if (!failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_used_for_what_is_sent_soon_after_it),
        cmocka_unit_test(only_200_means_ready),
        cmocka_unit_test(an_answer_says_nothing_of_other_connections),
        cmocka_unit_test(it_is_not_asked_too_often),
        cmocka_unit_test(the_oldest_of_too_many_connections_is_forgotten),
        cmocka_unit_test(without_memory_nothing_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
