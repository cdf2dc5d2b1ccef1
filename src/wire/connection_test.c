#include "wire/connection.h"

#include "base/failing_memory_test.h"
#include "wire/life_test.h"
#include "wire/sniff.h"

#include <dirent.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* ---- any allocation may fail ---- */

static void write_session(struct buf *in)
{
    static uint8_t bytes[20000];
    test_hello(in);
    test_window(in, 0, 1000000);
    test_call(in, 1, "/t.T/Echo");
    test_message(in, 1, H2_FLAG_END_STREAM, SLICE_LITERAL("hello"));
    test_call(in, 3, "/t.T/Chat");
    test_message(in, 3, 0, SLICE_LITERAL("one"));
    test_message(in, 3, 0, slice_of(bytes, 5000));
    test_call(in, 5, "/t.T/List");
    test_message(in, 5, H2_FLAG_END_STREAM, slice_of(bytes, 3000));
    test_headers(in, 7, H2_FLAG_END_STREAM,
                 SLICE_LITERAL(TEST_REQUEST "\x40\5token\5value\x40\1a\1b"));
    test_headers(in, 9, H2_FLAG_END_STREAM, SLICE_LITERAL(TEST_REQUEST "\xbe\xbf"));
    test_call(in, 11, "/t.T/Fail");
    test_message(in, 11, H2_FLAG_END_STREAM, slice_of(bytes, 9000));
    test_frame(in, H2_RST_STREAM, 0, 3, SLICE_LITERAL("\0\0\0\x08"));
    test_http(in, 13, "/chunks/", 0);
    test_frame(in, H2_DATA, H2_FLAG_END_STREAM, 13, slice_of(bytes, 500));
    static const char *const paths[] = {"/pull", "/watch", "/later", "/nope"};
    for (uint32_t i = 0; i < COUNT_OF(paths); i++)
        test_http(in, 15 + 2 * i, paths[i], H2_FLAG_END_STREAM);
    test_frame(in, H2_PING, 0, 0, SLICE_LITERAL("12345678"));
}

static void live_through(void *ctx)
{
    const struct slice *input = ctx;
    struct test_life life;
    if (test_life_begin(&life, 1) == ST_OK) {
        test_life_feed(&life, *input);
        test_life_drain(&life);
    }
    test_life_end(&life);
}

static void each_allocation_fails_in_turn(struct slice input)
{
    assert_true(each_allocation_fails(live_through, &input) > 5);
}

static void failed_allocations_end_a_call_or_the_connection_of_h2(void **state)
{
    (void)state;
    struct buf input = {0};
    write_session(&input);
    each_allocation_fails_in_turn(buf_slice(&input));
    buf_fini(&input);
}

static void failed_allocations_end_the_connection_of_http1(void **state)
{
    (void)state;
    each_allocation_fails_in_turn(
        SLICE_LITERAL("GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
                      "POST /chunks/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                      "5\r\nhello\r\n0\r\n\r\nGET /nope HTTP/1.1\r\nHost: x\r\n\r\n"
                      "GET /pull HTTP/1.1\r\nHost: x\r\n\r\nGET /room HTTP/1.1\r\nHost: x\r\n\r\n"
                      "GET /later HTTP/1.1\r\nHost: x\r\n\r\n"));
}

/* ---- detecting the protocol ---- */

static void protocols_are_detected_by_the_first_bytes(void **state)
{
    (void)state;
    struct slice preface = H2_PREFACE;
    for (size_t n = 0; n < preface.len; n++)
        assert_int_equal(sniff(slice_sub(preface, 0, n)), SNIFFED_MORE);
    assert_int_equal(sniff(preface), SNIFFED_HTTP2);
    assert_int_equal(sniff(SLICE_LITERAL("P")), SNIFFED_MORE);
    assert_int_equal(sniff(SLICE_LITERAL("PO")), SNIFFED_HTTP1);
    assert_int_equal(sniff(SLICE_LITERAL("PRI * HTTP/2.0\r\n\r\nXX")), SNIFFED_HTTP1);
    assert_int_equal(sniff(SLICE_LITERAL("\x16")), SNIFFED_TLS);
    assert_int_equal(sniff(SLICE_LITERAL("\x16\x03")), SNIFFED_TLS);
}

static void both_protocols_are_answered_byte_by_byte(void **state)
{
    (void)state;
    struct buf input = {0};
    write_session(&input);
    struct slice inputs[] = {buf_slice(&input),
                             SLICE_LITERAL("POST /chunks/ HTTP/1.1\r\nHost: x\r\n"
                                           "Content-Length: 2\r\n\r\nhi")};
    for (size_t i = 0; i < COUNT_OF(inputs); i++) {
        struct test_life life;
        assert_int_equal(test_life_begin(&life, 1), ST_OK);
        for (size_t k = 0; k < inputs[i].len; k++)
            wire_connection_feed(life.connection, slice_sub(inputs[i], k, 1), life.now);
        test_life_drain(&life);
        assert_true(life.filled > 50);
        assert_false(wire_connection_should_close(life.connection));
        test_life_end(&life);
    }
    buf_fini(&input);
}

static void without_routes_http1_connections_are_closed(void **state)
{
    (void)state;
    struct wire_limits limits = WIRE_LIMITS_DEFAULT;
    AUTO(grpc_services_freep) struct grpc_services *services = NULL;
    AUTO(wire_server_freep) struct wire_server *server = NULL;
    AUTO(wire_connection_freep) struct wire_connection *connection = NULL;
    assert_int_equal(grpc_services_new(&services), ST_OK);
    assert_int_equal(wire_server_new(services, NULL, &limits, &server), ST_OK);
    assert_int_equal(wire_connection_new(server, (struct wire_hooks){0}, 1, &connection), ST_OK);
    wire_connection_feed(connection, SLICE_LITERAL("GET /health HTTP/1.1\r\n"), 1);
    assert_true(wire_connection_should_close(connection));
    assert_string_equal(wire_connection_reason(connection), "only gRPC is served here");
}

static void silent_client_is_closed_after_the_handshake_timeout(void **state)
{
    (void)state;
    static const char *const beginnings[] = {"", "PRI * HT", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"};
    for (size_t i = 0; i < COUNT_OF(beginnings); i++) {
        struct test_life life;
        assert_int_equal(test_life_begin(&life, 1), ST_OK);
        wire_connection_feed(life.connection, slice_from_text(beginnings[i]), life.now);
        int64_t until = life.now + life.limits.handshake_ns;
        assert_int_equal(wire_connection_timeout(life.connection), until);
        wire_connection_tick(life.connection, until - 1);
        assert_false(wire_connection_should_close(life.connection));
        wire_connection_tick(life.connection, until);
        assert_true(wire_connection_should_close(life.connection));
        assert_string_equal(wire_connection_reason(life.connection), "no request in time");
        test_life_end(&life);
    }
}

#ifndef VIGIL_SANITIZED
static void idle_connection_and_parked_stream_are_small(void **state)
{
    (void)state;
    struct test_life life;
    struct buf input = {0};
    assert_int_equal(test_life_begin(&life, 1), ST_OK);
    test_hello(&input);
    test_call(&input, 1, "/t.T/Echo");
    test_message(&input, 1, H2_FLAG_END_STREAM, SLICE_LITERAL("hello"));
    wire_connection_free(life.connection);
    size_t before = mallinfo2().uordblks;
    assert_int_equal(
        wire_connection_new(life.server, (struct wire_hooks){0}, life.now, &life.connection),
        ST_OK);
    wire_connection_feed(life.connection, buf_slice(&input), life.now);
    test_life_drain(&life);
    assert_true(wire_connection_idle(life.connection));
    assert_in_range(mallinfo2().uordblks - before, 1, 6000);

    life.service.source_bytes = 0;
    for (uint32_t id = 3; id < 2003; id += 2) {
        input.len = 0;
        test_call(&input, id, "/t.T/Watch");
        test_message(&input, id, 0, SLICE_LITERAL("create"));
        if (id == 3)
            before = mallinfo2().uordblks;
        wire_connection_feed(life.connection, buf_slice(&input), life.now);
        test_life_drain(&life);
    }
    assert_in_range((mallinfo2().uordblks - before) / 1000, 1, 1000);
    buf_fini(&input);
    test_life_end(&life);
}

static void parked_http_answers_are_small(void **state)
{
    (void)state;
    struct test_life life;
    struct buf input = {0};
    assert_int_equal(test_life_begin(&life, 1), ST_OK);
    test_hello(&input);
    test_http(&input, 1, "/health", H2_FLAG_END_STREAM);
    wire_connection_feed(life.connection, buf_slice(&input), life.now);
    test_life_drain(&life);
    size_t before = mallinfo2().uordblks;
    for (uint32_t id = 3; id < 2003; id += 2) {
        input.len = 0;
        test_http(&input, id, "/watch", H2_FLAG_END_STREAM);
        wire_connection_feed(life.connection, buf_slice(&input), life.now);
        test_life_drain(&life);
    }
    /* The exchange, and about 70 bytes of the handler. */
    assert_in_range((mallinfo2().uordblks - before) / 1000, 1, 900);
    buf_fini(&input);
    test_life_end(&life);
}
#endif

/* ---- corpora of the fuzzers ---- */

static size_t run_corpus(const char *name, bool http2)
{
    char path[1024];
    size_t count = 0;
    snprintf(path, sizeof(path), VIGIL_SOURCE_DIR "/fuzz/corpus/%s", name);
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        char file[2048];
        static uint8_t bytes[1 << 20];
        snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
        FILE *input = entry->d_name[0] == '.' ? NULL : fopen(file, "rb");
        if (!input)
            continue;
        size_t n = fread(bytes, 1, sizeof(bytes), input);
        fclose(input);
        test_life_run(slice_of(bytes, n), http2);
        count++;
    }
    closedir(dir);
    return count;
}

static void corpora_run_clean(void **state)
{
    (void)state;
    assert_true(run_corpus("wire_h2", true) > 5);
    assert_true(run_corpus("wire_http1", false) > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(protocols_are_detected_by_the_first_bytes),
        cmocka_unit_test(both_protocols_are_answered_byte_by_byte),
        cmocka_unit_test(without_routes_http1_connections_are_closed),
        cmocka_unit_test(silent_client_is_closed_after_the_handshake_timeout),
        cmocka_unit_test(failed_allocations_end_a_call_or_the_connection_of_h2),
        cmocka_unit_test(failed_allocations_end_the_connection_of_http1),
#ifndef VIGIL_SANITIZED
        cmocka_unit_test(idle_connection_and_parked_stream_are_small),
        cmocka_unit_test(parked_http_answers_are_small),
#endif
        cmocka_unit_test(corpora_run_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
