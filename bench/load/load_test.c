#include "load/load.h"

#include "load/sink.h"

#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

/* A sink on its own thread, and a load that aims at it. */
struct fixture {
    struct bench_sink *sink;
    pthread_t thread;
    struct bench_target target;
    struct bench_load load;
    struct bench_outcome outcome;
    struct error error;
};

static void start(struct fixture *f, enum bench_sink_fault fault, uint64_t every)
{
    *f = (struct fixture){0};
    struct bench_sink_config config = {.response_bytes = 300, .fault = fault, .fault_every = every};
    assert_int_equal(bench_address_resolve("127.0.0.1:0", &config.address, &f->error), ST_OK);
    assert_int_equal(bench_sink_new(&config, &f->sink, &f->error), ST_OK);
    assert_int_equal(pthread_create(&f->thread, NULL, bench_sink_serve, f->sink), 0);
    char endpoint[32];
    snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%u", bench_sink_port(f->sink));
    assert_int_equal(bench_address_resolve(endpoint, &f->target.address.socket, &f->error), ST_OK);
    f->target.authority = "sink";
    f->target.token = "";
    f->load = (struct bench_load){
        .target = &f->target,
        .verb = BENCH_GET,
        .order = BENCH_RANDOM,
        .prefix = "k",
        .key_space = 100,
        .value_bytes = 256,
        .connections = 4,
        .pipeline = 8,
        .threads = 2,
        .total = 10000,
    };
}

static void stop(struct fixture *f)
{
    bench_sink_stop(f->sink);
    pthread_join(f->thread, NULL);
    bench_sink_free(f->sink);
}

static enum status run(struct fixture *f)
{
    return bench_load_run(&f->load, &f->outcome, &f->error);
}

static void every_call_is_made_once_and_answered(void **state)
{
    (void)state;
    static struct fixture f;
    start(&f, BENCH_SINK_ERROR_STATUS, 0);
    assert_int_equal(run(&f), ST_OK);
    assert_int_equal(f.outcome.latency.count, 10000);
    assert_int_equal(f.outcome.errors, 0);
    assert_true(f.outcome.seconds > 0);
    assert_true(f.outcome.bytes_in > 10000 * 300);
    stop(&f);
}

static void error_statuses_are_counted_and_reported(void **state)
{
    (void)state;
    static struct fixture f;
    start(&f, BENCH_SINK_ERROR_STATUS, 10);
    assert_int_equal(run(&f), ST_OK);
    assert_int_equal(f.outcome.errors, 1000);
    assert_int_equal(f.outcome.latency.count, 9000);
    assert_string_equal(f.outcome.first_error, "grpc-status 14 out of order");
    assert_int_equal(f.outcome.connections_lost, 0);
    stop(&f);
}

static void resets_are_counted_as_errors(void **state)
{
    (void)state;
    static struct fixture f;
    start(&f, BENCH_SINK_RESET, 100);
    assert_int_equal(run(&f), ST_OK);
    assert_int_equal(f.outcome.errors, 100);
    assert_string_equal(f.outcome.first_error, "stream reset, error 7");
    stop(&f);
}

static void a_good_status_without_the_value_is_an_error(void **state)
{
    (void)state;
    static struct fixture f;
    start(&f, BENCH_SINK_EMPTY, 50);
    assert_int_equal(run(&f), ST_OK);
    assert_int_equal(f.outcome.errors, 200);
    stop(&f);
}

static void lost_connections_fail_their_calls_and_end_the_load(void **state)
{
    (void)state;
    static struct fixture f;
    start(&f, BENCH_SINK_GOAWAY, 500);
    assert_int_equal(run(&f), ST_OK);
    assert_int_equal(f.outcome.connections_lost, 4);
    assert_int_equal(f.outcome.latency.count + f.outcome.errors, 10000);
    assert_true(f.outcome.errors > 0);
    assert_non_null(strstr(f.outcome.first_error, "GOAWAY"));
    stop(&f);
}

static void a_load_by_time_measures_about_that_time(void **state)
{
    (void)state;
    static struct fixture f;
    start(&f, BENCH_SINK_ERROR_STATUS, 0);
    f.load.total = 0;
    f.load.warmup_ns = 20000000;
    f.load.duration_ns = 250000000;
    f.target.processes.server = getpid();
    assert_int_equal(run(&f), ST_OK);
    assert_int_equal(f.outcome.errors, 0);
    assert_true(f.outcome.latency.count > 0);
    assert_true(f.outcome.seconds == 0.25);
    assert_true(f.outcome.has_usage);
    assert_true(f.outcome.after.at_ns > f.outcome.before.at_ns);
    stop(&f);
}

static void large_requests_are_cut_into_frames_and_arrive(void **state)
{
    (void)state;
    static struct fixture f;
    start(&f, BENCH_SINK_ERROR_STATUS, 0);
    f.load.verb = BENCH_PUT;
    f.load.value_bytes = BENCH_VALUE_BYTES_MAX;
    f.load.total = 200;
    assert_int_equal(run(&f), ST_OK);
    assert_int_equal(f.outcome.errors, 0);
    assert_int_equal(f.outcome.latency.count, 200);
    stop(&f);
}

static void a_missing_server_is_reported(void **state)
{
    (void)state;
    static struct fixture f;
    start(&f, BENCH_SINK_ERROR_STATUS, 0);
    stop(&f);
    assert_int_not_equal(run(&f), ST_OK);
    assert_non_null(strstr(f.error.text, "cannot open a connection"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_is_made_once_and_answered),
        cmocka_unit_test(error_statuses_are_counted_and_reported),
        cmocka_unit_test(resets_are_counted_as_errors),
        cmocka_unit_test(a_good_status_without_the_value_is_an_error),
        cmocka_unit_test(lost_connections_fail_their_calls_and_end_the_load),
        cmocka_unit_test(a_load_by_time_measures_about_that_time),
        cmocka_unit_test(large_requests_are_cut_into_frames_and_arrive),
        cmocka_unit_test(a_missing_server_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
