/*
 * A client against a small etcd on a simulated network: each scenario runs once without a fault,
 * and then with one fault at every byte, allocation and system call. Whatever happens, every call
 * completes once and tells the truth about what the server executed, every watch delivers the
 * history in order without gaps, and the client can be used afterwards.
 */
#include "client/sim/sim_scenarios_test.h"
#include "net/tls/certs_test.h"
#include "net/tls/server_context.h"
#include "net/tls/tls.h"

#include <signal.h>

/* Returns what the run did, to be repeated with faults. */
static struct faults run_clean(const struct scenario *s)
{
    struct world w;
    start(&w, s, FAULT_NONE, 0, NULL);
    assert_true(world_start(&w, s->members));
    s->run(&w);
    struct faults totals = faults;
    world_check_calls(&w);
    check_truth(&w);
    s->expect(&w);
    probe(&w);
    world_fini(&w);
    *context = '\0';
    return totals;
}

static void scenarios_succeed_without_faults(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(scenarios); i++) {
        struct faults totals = run_clean(&scenarios[i]);
        assert_true(totals.bytes_read > 50 && totals.bytes_written > 100 && totals.calls > 5);
    }
}

static void restart(struct world *w, const struct scenario *s)
{
    for (size_t i = 0; i < s->members; i++) {
        etcd_member_stop(&w->members[i]);
        etcd_member_start(&w->members[i], sim_network(w->sim));
    }
}

static void run_with_fault(const struct scenario *s, enum fault_kind kind, size_t at)
{
    struct world w;
    start(&w, s, kind, at, NULL);
    assert_true(world_start(&w, s->members));
    s->run(&w);
    if (kind == FAULT_GARBAGE) {
        world_check_completions(&w); /* what the server seems to say may be wrong */
        restart(&w, s);              /* even a window of 0 would be valid */
    } else {
        world_check_calls(&w);
        check_truth(&w);
        if (kind != FAULT_SILENCE || !w.lost)
            s->expect(&w);
    }
    probe(&w);
    world_fini(&w);
}

static void each_scenario(enum fault_kind kind)
{
    for (size_t i = 0; i < COUNT_OF(scenarios); i++) {
        struct faults totals = run_clean(&scenarios[i]);
        for (size_t at = 0; at < fault_places(kind, &totals); at++)
            run_with_fault(&scenarios[i], kind, at);
    }
    *context = '\0';
}

static void connection_may_be_lost_after_every_received_byte(void **state)
{
    (void)state;
    each_scenario(FAULT_LOST_READING);
}

static void connection_may_be_lost_after_every_sent_byte(void **state)
{
    (void)state;
    each_scenario(FAULT_LOST_WRITING);
}

static void connection_may_be_reset_after_every_byte(void **state)
{
    (void)state;
    each_scenario(FAULT_RESET);
}

static void server_may_end_after_every_byte(void **state)
{
    (void)state;
    each_scenario(FAULT_END);
}

static void connection_may_fall_silent_after_every_byte(void **state)
{
    (void)state;
    each_scenario(FAULT_SILENCE);
}

static void bytes_may_be_wrong_anywhere(void **state)
{
    (void)state;
    each_scenario(FAULT_GARBAGE);
}

static void every_system_call_may_fail(void **state)
{
    (void)state;
    each_scenario(FAULT_CALL);
}

/* False: there were fewer allocations. */
static bool run_without_memory(const struct scenario *s, size_t nth, bool all_following)
{
    struct world w;
    start(&w, s, FAULT_NONE, nth, NULL);
    memory_fail_on = all_following;
    faulty_memory_at = nth;
    bool started = world_start(&w, s->members);
    if (started)
        s->run(&w);
    bool failed = faulty_memory_at == (all_following ? 1 : 0);
    faulty_memory_at = 0;
    if (started) {
        WORLD_RUN_UNTIL(&w, watches_are_done(&w));
        world_check_calls(&w);
        check_truth(&w);
        probe(&w);
    }
    world_fini(&w);
    return failed;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(scenarios); i++)
        for (int all_following = 0; all_following < 2; all_following++) {
            size_t nth = 1;
            while (run_without_memory(&scenarios[i], nth, all_following))
                nth++;
            assert_true(nth > 20);
        }
    *context = '\0';
}

/* Many faults in one run, on a network that also splits and delays. */
static void connections_may_break_again_and_again(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12 * COUNT_OF(scenarios); seed++) {
        const struct scenario *s = &scenarios[seed % COUNT_OF(scenarios)];
        struct sim_options options = SIM_OPTIONS_DEFAULT;
        struct world w;
        options.reset_per_million = 10000;
        options.split_per_1000 = 700;
        options.buffer_bytes = seed % 3 ? 200 : 100000;
        options.seed = seed;
        start(&w, s, FAULT_DELAY, seed, &options);
        assert_true(world_start(&w, s->members));
        s->run(&w);
        world_check_calls(&w);
        check_truth(&w);
        s->expect(&w);
        probe(&w);
        world_fini(&w);
    }
    *context = '\0';
}

/* -- TLS -- */

enum { TLS_RUNS = 24 }; /* runs of each scenario: a handshake takes time */

static struct secure_server {
    struct test_certs certs;
    struct tls_source *source;
    struct protocol_kind inner[WORLD_MEMBERS];
    struct net_tls tls[WORLD_MEMBERS];
} secure;

static void open_secure(void)
{
    struct tls_options options = TLS_OPTIONS_NONE;
    struct tls_recipe recipe;
    struct error error;
    test_certs_init(&secure.certs);
    options.cert_file = secure.certs.cert_file;
    options.key_file = secure.certs.key_file;
    if (tls_server_recipe(&options, &recipe, &error) != ST_OK ||
        tls_source_new(&recipe, (struct tls_source_hooks){0}, &secure.source, &error) != ST_OK)
        fail_msg("%s", error.text);
}

static void use_tls(struct world *w)
{
    for (size_t i = 0; i < WORLD_MEMBERS; i++) {
        secure.inner[i] = w->members[i].kind;
        secure.tls[i] = (struct net_tls){
            .inner = &secure.inner[i], .source = secure.source, .limits = NET_TLS_LIMITS_DEFAULT};
        w->members[i].kind = net_tls_kind(&secure.tls[i]);
        w->members[i].secure = true;
    }
    w->options.ca_file = secure.certs.ca_file;
    w->options.server_name = "localhost";
}

static size_t run_over_tls(const struct scenario *s, enum fault_kind kind, size_t at)
{
    struct world w;
    start(&w, s, kind, at, NULL);
    use_tls(&w);
    assert_true(world_start(&w, s->members));
    s->run(&w);
    size_t bytes = faults.bytes_read;
    world_check_calls(&w);
    check_truth(&w);
    if (kind != FAULT_GARBAGE || !w.lost) /* a wrong length makes TLS wait: then it is silence */
        s->expect(&w);
    probe(&w);
    world_fini(&w);
    return bytes;
}

/* TLS notices what was garbled, so that it is as if the connection were lost. */
static void faults_over_tls_change_nothing(void **state)
{
    (void)state;
    static const enum fault_kind kinds[] = {FAULT_GARBAGE, FAULT_LOST_READING, FAULT_END};
    open_secure();
    for (size_t i = 0; i < COUNT_OF(scenarios); i++) {
        size_t bytes = run_over_tls(&scenarios[i], FAULT_NONE, 0);
        assert_true(bytes > 600); /* with a certificate */
        for (size_t at = 0, nth = i; at < bytes; at += bytes / TLS_RUNS + 1, nth++)
            run_over_tls(&scenarios[i], kinds[nth % COUNT_OF(kinds)], at);
    }
    *context = '\0';
    tls_source_free(secure.source);
    test_certs_fini(&secure.certs);
}

/* -- The end of the client -- */

/* In the middle of everything the client is freed, before or after what it was used for. Every call
 * completes, if it has not been freed. */
static void client_may_be_freed_at_any_time(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(scenarios); i++) {
        const struct scenario *s = &scenarios[i];
        struct faults totals = run_clean(s);
        for (size_t at = 2; at <= 2 * totals.turns; at++) {
            struct world w;
            start(&w, s, FAULT_NONE, at, NULL);
            assert_true(world_start(&w, s->members));
            world_stop_at = at / 2;
            s->run(&w);
            if (at % 2) {
                world_free_client(&w);
                world_take(&w);
                world_check_calls(&w);
            }
            world_fini(&w);
        }
    }
    *context = '\0';
}

static void check_ended(const struct world *w)
{
    world_check_calls(w);
    for (size_t i = 0; i < w->watch_count; i++) {
        world_check_events(w, &w->watches[i], 1);
        assert_true(w->watches[i].ended == 1 || w->watches[i].freed);
    }
    assert_int_equal(w->lost, w->lease != NULL);
}

static void shutdown_ends_everything_at_any_time(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(scenarios); i++) {
        const struct scenario *s = &scenarios[i];
        struct faults totals = run_clean(s);
        for (size_t at = 1; at <= totals.turns; at++) {
            struct world w;
            start(&w, s, FAULT_NONE, at, NULL);
            assert_true(world_start(&w, s->members));
            world_shutdown_at = at;
            s->run(&w);
            vigil_client_shutdown(w.client);
            struct world_call *c = world_get(&w);
            WORLD_RUN_UNTIL(&w, world_completed(&w));
            assert_int_equal(c->code, VIGIL_ERROR_CANCELED);
            check_ended(&w);
            world_fini(&w);
        }
    }
    *context = '\0';
}

#define TEST(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(scenarios_succeed_without_faults),
        TEST(connection_may_be_lost_after_every_received_byte),
        TEST(connection_may_be_lost_after_every_sent_byte),
        TEST(connection_may_be_reset_after_every_byte),
        TEST(server_may_end_after_every_byte),
        TEST(connection_may_fall_silent_after_every_byte),
        TEST(bytes_may_be_wrong_anywhere),
        TEST(every_system_call_may_fail),
        TEST(every_allocation_may_fail),
        TEST(connections_may_break_again_and_again),
        TEST(faults_over_tls_change_nothing),
        TEST(client_may_be_freed_at_any_time),
        TEST(shutdown_ends_everything_at_any_time),
    };
    signal(SIGABRT, print_context);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
