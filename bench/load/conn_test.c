#include "load/conn.h"

#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* A peer whose output the test chooses; the test has both ends of the connection. */
struct fixture {
    int listener;
    int peer;
    struct bench_address address;
    struct buf settings; /* sent as soon as a client connects */
    struct bench_conn conn;
    uint8_t scratch[BENCH_CONN_SCRATCH_BYTES];
    struct error error;
    unsigned ended;
    struct bench_verdict last;
    bool last_good;
};

static void on_end(struct bench_conn *conn, struct bench_call *call,
                   const struct bench_verdict *error)
{
    struct fixture *f = conn->owner;
    (void)call;
    f->ended++;
    f->last_good = !error;
    if (error)
        f->last = *error;
}

static const struct bench_conn_handler handler = {.on_end = on_end};

static void *greet(void *argument)
{
    struct fixture *f = argument;
    f->peer = accept(f->listener, NULL, NULL);
    if (f->peer >= 0)
        (void)!write(f->peer, f->settings.ptr, f->settings.len);
    return NULL;
}

static void set(struct fixture *f, unsigned id, uint32_t value)
{
    uint8_t one[6] = {0, (uint8_t)id};
    bench_u32_write(one + 2, value);
    assert_int_equal(
        bench_frame_append(&f->settings, BENCH_FRAME_SETTINGS, 0, 0, slice_of(one, sizeof(one))),
        ST_OK);
}

static enum status open_conn(struct fixture *f, uint32_t in_flight)
{
    pthread_t thread;
    socklen_t len = sizeof(f->address.socket);
    assert_int_equal(bench_address_resolve("127.0.0.1:0", &f->address.socket, &f->error), ST_OK);
    f->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(
        bind(f->listener, (struct sockaddr *)&f->address.socket, sizeof(struct sockaddr_in)), 0);
    assert_int_equal(listen(f->listener, 1), 0);
    assert_int_equal(getsockname(f->listener, (struct sockaddr *)&f->address.socket, &len), 0);
    assert_int_equal(pthread_create(&thread, NULL, greet, f), 0);
    enum status status = bench_conn_open(&f->conn, &f->address, in_flight, &handler, f, &f->error);
    pthread_join(thread, NULL);
    return status;
}

static void finish(struct fixture *f)
{
    bench_conn_close(&f->conn);
    close(f->peer);
    close(f->listener);
    buf_fini(&f->settings);
}

static enum status send_frame(struct fixture *f, enum bench_frame_type type, unsigned flags,
                              uint32_t stream, struct slice payload)
{
    AUTO(buf_fini) struct buf bytes = {0};
    assert_int_equal(bench_frame_append(&bytes, type, flags, stream, payload), ST_OK);
    assert_int_equal(write(f->peer, bytes.ptr, bytes.len), bytes.len);
    return bench_conn_read(&f->conn, f->scratch);
}

static void windows_and_limits_of_the_server_hold_calls_back(void **state)
{
    (void)state;
    static struct fixture f;
    f = (struct fixture){0};
    set(&f, BENCH_SETTING_MAX_CONCURRENT_STREAMS, 3);
    set(&f, BENCH_SETTING_INITIAL_WINDOW_SIZE, 1000);
    assert_int_equal(open_conn(&f, 100), ST_OK);
    /* The two settings frames may arrive separately. */
    while (f.conn.stream_window != 1000)
        assert_int_equal(bench_conn_read(&f.conn, f.scratch), ST_OK);

    assert_null(bench_conn_begin(&f.conn, 1001, 0));
    struct bench_call *call = bench_conn_begin(&f.conn, 900, 0);
    assert_non_null(call);
    assert_int_equal(call->stream, 1);
    assert_false(bench_conn_take_window(&f.conn, call, 101));
    uint8_t more[4] = {0, 0, 0, 1};
    assert_int_equal(send_frame(&f, BENCH_FRAME_WINDOW_UPDATE, 0, 1, slice_of(more, 4)), ST_OK);
    assert_true(bench_conn_take_window(&f.conn, call, 101));
    assert_non_null(bench_conn_begin(&f.conn, 10, 0));
    assert_non_null(bench_conn_begin(&f.conn, 10, 0));
    assert_null(bench_conn_begin(&f.conn, 10, 0));
    assert_int_equal(f.conn.send_window, BENCH_WINDOW_DEFAULT - 900 - 101 - 20);
    finish(&f);
}

static void the_connections_window_holds_calls_back(void **state)
{
    (void)state;
    static struct fixture f;
    f = (struct fixture){0};
    set(&f, BENCH_SETTING_MAX_CONCURRENT_STREAMS, 100);
    assert_int_equal(open_conn(&f, 100), ST_OK);
    assert_non_null(bench_conn_begin(&f.conn, 40000, 0));
    assert_null(bench_conn_begin(&f.conn, 40000, 0));
    uint8_t more[4] = {0, 0, 0xff, 0};
    assert_int_equal(send_frame(&f, BENCH_FRAME_WINDOW_UPDATE, 0, 0, slice_of(more, 4)), ST_OK);
    assert_non_null(bench_conn_begin(&f.conn, 40000, 0));
    finish(&f);
}

static void pings_are_answered(void **state)
{
    (void)state;
    static struct fixture f;
    f = (struct fixture){0};
    set(&f, BENCH_SETTING_MAX_CONCURRENT_STREAMS, 100);
    assert_int_equal(open_conn(&f, 1), ST_OK);
    assert_int_equal(send_frame(&f, BENCH_FRAME_PING, 0, 0, SLICE_LITERAL("12345678")), ST_OK);
    assert_true(slice_equal(buf_slice(&f.conn.out), SLICE_LITERAL("\0\0\x08\x06\x01\0\0\0\0"
                                                                  "12345678")));
    finish(&f);
}

static void a_stream_that_ends_without_status_is_an_error(void **state)
{
    (void)state;
    static struct fixture f;
    f = (struct fixture){0};
    set(&f, BENCH_SETTING_MAX_CONCURRENT_STREAMS, 100);
    assert_int_equal(open_conn(&f, 4), ST_OK);
    assert_non_null(bench_conn_begin(&f.conn, 10, 0));
    assert_int_equal(
        send_frame(&f, BENCH_FRAME_DATA, BENCH_FRAME_END_STREAM, 1, SLICE_LITERAL("x")), ST_OK);
    assert_int_equal(f.ended, 1);
    assert_false(f.last_good);
    assert_int_equal(f.conn.in_flight, 0);
    /* A frame on a stream without a call is ignored. */
    assert_int_equal(
        send_frame(&f, BENCH_FRAME_DATA, BENCH_FRAME_END_STREAM, 2147483647, SLICE_EMPTY), ST_OK);
    assert_int_equal(f.ended, 1);
    finish(&f);
}

static void frames_that_break_the_protocol_end_the_connection(void **state)
{
    (void)state;
    static const struct {
        enum bench_frame_type type;
        unsigned flags;
        const char *payload;
    } bad[] = {
        {BENCH_FRAME_PING, 0, "123"},
        {BENCH_FRAME_WINDOW_UPDATE, 0, "12345"},
        {BENCH_FRAME_RST_STREAM, 0, "1"},
        {BENCH_FRAME_SETTINGS, 0, "1234567"},
        {BENCH_FRAME_HEADERS, BENCH_FRAME_END_HEADERS, "\xfe"},
        {BENCH_FRAME_HEADERS, 0, "\x88"},
        {BENCH_FRAME_GOAWAY, 0, "12345678too_many_pings"},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        static struct fixture f;
        f = (struct fixture){0};
        set(&f, BENCH_SETTING_MAX_CONCURRENT_STREAMS, 100);
        assert_int_equal(open_conn(&f, 4), ST_OK);
        assert_int_not_equal(
            send_frame(&f, bad[i].type, bad[i].flags, 1, slice_from_text(bad[i].payload)), ST_OK);
        assert_true(f.conn.failure[0] != 0);
        finish(&f);
    }
}

static void a_table_too_small_for_our_fields_is_reported(void **state)
{
    (void)state;
    static struct fixture f;
    f = (struct fixture){0};
    set(&f, BENCH_SETTING_HEADER_TABLE_SIZE, 100);
    assert_int_equal(open_conn(&f, 1), ST_UNIMPLEMENTED);
    assert_non_null(strstr(f.error.text, "header table"));
    finish(&f);
}

static void endpoints_are_host_and_port(void **state)
{
    (void)state;
    struct sockaddr_storage address;
    struct error error;
    assert_int_equal(bench_address_resolve("http://127.0.0.1:80", &address, &error), ST_OK);
    assert_int_equal(((struct sockaddr_in *)&address)->sin_port, htons(80));
    assert_int_equal(bench_address_resolve("127.0.0.1", &address, &error), ST_INVALID);
    assert_int_equal(bench_address_resolve("127.0.0.1:notaport", &address, &error), ST_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_and_limits_of_the_server_hold_calls_back),
        cmocka_unit_test(the_connections_window_holds_calls_back),
        cmocka_unit_test(pings_are_answered),
        cmocka_unit_test(a_stream_that_ends_without_status_is_an_error),
        cmocka_unit_test(frames_that_break_the_protocol_end_the_connection),
        cmocka_unit_test(a_table_too_small_for_our_fields_is_reported),
        cmocka_unit_test(endpoints_are_host_and_port),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
