/* What limits a client and its server: sizes, floods, streams, windows, pings; and how a session
 * ends.
 */
#include "wire/h2/request_test.h"
#include "wire/h2/session_private.h"

/* ---- limits ---- */

static void assert_ends_calmly(struct client_fixture *f)
{
    client_exchange(f);
    assert_int_equal(test_error(client_frames(f), 0), H2_ENHANCE_YOUR_CALM);
    assert_true(h2_session_over(f->session));
}

static void large_header_list_resets_its_stream(void **state)
{
    struct client_fixture *f = *state;
    AUTO(buf_fini) struct buf block = {0};
    struct request *many = request_open(f, 0), *next = request_open(f, 0);
    test_put(&block, SLICE_LITERAL(TEST_RESPONSE));
    for (size_t i = 0; i < 128; i++)
        test_put(&block, SLICE_LITERAL("\0\1n\1v"));
    client_drain(f);
    test_headers(&f->in, many->id, 0, buf_slice(&block));
    answer_headers(f, next, H2_FLAG_END_STREAM);
    client_exchange(f);
    assert_int_equal(many->ended_by, H2_ENDED_BY_FAULT);
    assert_int_equal(many->code, H2_FRAME_SIZE_ERROR);
    assert_int_equal(test_error(client_frames(f), many->id), H2_FRAME_SIZE_ERROR);
    assert_int_equal(next->ended_by, H2_ENDED_COMPLETE);
}

static void header_bomb_ends_the_connection(void **state)
{
    struct client_fixture *f = *state;
    AUTO(buf_fini) struct buf block = {0};
    static uint8_t value[3900];
    memset(value, 'v', sizeof(value));
    test_put(&block, SLICE_LITERAL(TEST_RESPONSE "\x40\1n\x7f\xbd\x1d"));
    test_put(&block, slice_of(value, sizeof(value)));
    for (size_t i = 0; i < 12000; i++)
        test_put(&block, SLICE_LITERAL("\xbe"));
    struct request *r = request_open(f, 0);
    client_drain(f);
    test_headers(&f->in, r->id, 0, buf_slice(&block));
    assert_ends_calmly(f);
}

static void continuation_flood_ends_the_connection(void **state)
{
    struct client_fixture *f = *state;
    struct request *r = request_open(f, 0);
    client_drain(f);
    test_frame(&f->in, H2_HEADERS, 0, r->id, SLICE_LITERAL(TEST_RESPONSE));
    for (size_t i = 0; i < 9; i++)
        test_frame(&f->in, H2_CONTINUATION, 0, r->id, SLICE_EMPTY);
    assert_ends_calmly(f);
}

static void settings_flood_ends_the_connection(void **state)
{
    struct client_fixture *f = *state;
    for (size_t i = 0; i < 100; i++)
        test_frame(&f->in, H2_SETTINGS, 0, 0, SLICE_EMPTY);
    assert_ends_calmly(f);
}

static void empty_data_flood_ends_the_connection(void **state)
{
    struct client_fixture *f = *state;
    struct request *r = request_open(f, 0);
    client_drain(f);
    answer_headers(f, r, 0);
    for (size_t i = 0; i < 101; i++)
        test_frame(&f->in, H2_DATA, 0, r->id, SLICE_EMPTY);
    assert_ends_calmly(f);
}

static void informational_flood_ends_the_connection(void **state)
{
    struct client_fixture *f = *state;
    struct request *r = request_open(f, 0);
    client_drain(f);
    for (size_t i = 0; i < 100; i++)
        test_headers(&f->in, r->id, 0,
                     SLICE_LITERAL("\x08\3"
                                   "103"));
    client_exchange(f);
    assert_false(h2_session_failed(f->session));
    assert_int_equal(r->heads, 0);
    test_headers(&f->in, r->id, 0,
                 SLICE_LITERAL("\x08\3"
                               "103"));
    assert_ends_calmly(f);
}

static void faults_on_closed_streams_are_limited(void **state)
{
    struct client_fixture *f = *state;
    struct request *r = request_open(f, 0);
    client_drain(f);
    reset_by_server(f, r, H2_CANCEL);
    client_exchange(f);
    for (size_t i = 0; i < 2000 && !h2_session_failed(f->session); i++) {
        test_frame(&f->in, H2_DATA, 0, r->id, SLICE_EMPTY);
        test_frame(&f->in, H2_DATA, 0, r->id, SLICE_LITERAL("x"));
        client_exchange(f);
    }
    assert_true(test_count(client_frames(f), H2_RST_STREAM, r->id) <= 1000);
}

static void slow_frame_ends_the_connection(void **state)
{
    struct client_fixture *f = *state;
    struct request *r = request_open(f, 0);
    client_exchange(f);
    test_headers(&f->in, r->id, 0, SLICE_LITERAL(TEST_RESPONSE "\0\1a\1b"));
    f->in.len--;
    client_exchange(f);
    assert_int_equal(h2_session_timeout(f->session), f->now + f->limits.frame_ns);
    f->now += f->limits.frame_ns;
    h2_session_tick(f->session, f->now);
    assert_ends_calmly(f);
}

/* A server of grpc-go sends a ping with nearly every message that it receives. */
static void every_ping_of_a_server_is_answered_while_it_reads(void **state)
{
    struct client_fixture *f = *state;
    f->limits.ping_interval_ns = f->limits.ping_idle_ns = H2_SECOND_NS;
    for (size_t i = 0; i < 2000; i++) {
        test_frame(&f->in, H2_PING, 0, 0, SLICE_LITERAL("12345678"));
        client_exchange(f);
    }
    assert_int_equal(test_count(client_frames(f), H2_PING, 0), 2000);
    while (h2_session_wants_read(f->session)) {
        test_frame(&f->in, H2_PING, 0, 0, SLICE_LITERAL("12345678"));
        client_feed(f, SIZE_MAX / 2);
    }
    assert_false(h2_session_failed(f->session));
    for (size_t i = 0; i < 100000 && !h2_session_failed(f->session); i++) {
        test_frame(&f->in, H2_PING, 0, 0, SLICE_LITERAL("12345678"));
        client_feed(f, SIZE_MAX / 2);
    }
    assert_ends_calmly(f);
}

/* ---- how many streams ---- */

static void streams_are_limited_by_the_setting_of_the_server(void **state)
{
    struct client_fixture *f = *state;
    struct request *extra = request_new(f, 0);
    test_setting(&f->in, H2_SETTING_MAX_CONCURRENT_STREAMS, 2);
    client_exchange(f);
    struct request *first = request_open(f, 0), *second = request_open(f, 0);
    client_drain(f);
    assert_int_equal(h2_session_open(f->session, &extra->stream), ST_AGAIN);
    assert_null(extra->stream.session);
    client_exchange(f);
    assert_int_equal(f->rooms, 0);
    /* A lower limit does not end streams that are open. */
    test_setting(&f->in, H2_SETTING_MAX_CONCURRENT_STREAMS, 1);
    answer_headers(f, first, H2_FLAG_END_STREAM);
    client_exchange(f);
    assert_int_equal(f->rooms, 0);
    assert_int_equal(h2_session_open(f->session, &extra->stream), ST_AGAIN);
    f->open_on_room = 1;
    answer_headers(f, second, H2_FLAG_END_STREAM);
    client_exchange(f);
    assert_int_equal(f->rooms, 1);
    assert_int_equal(h2_session_streams(f->session), 1);
    assert_int_equal(test_count(client_frames(f), H2_HEADERS, 5), 1);
    assert_int_equal(h2_session_open(f->session, &extra->stream), ST_AGAIN);
    test_setting(&f->in, H2_SETTING_MAX_CONCURRENT_STREAMS, 3);
    client_exchange(f);
    assert_int_equal(f->rooms, 2);
    client_exchange(f);
    assert_int_equal(f->rooms, 2);
}

static void cancelling_makes_room(void **state)
{
    struct client_fixture *f = *state;
    struct request *extra = request_new(f, 0);
    test_setting(&f->in, H2_SETTING_MAX_CONCURRENT_STREAMS, 1);
    client_exchange(f);
    struct request *first = request_open(f, 0);
    assert_int_equal(h2_session_open(f->session, &extra->stream), ST_AGAIN);
    f->open_on_room = 1;
    h2_stream_reset(&first->stream, H2_CANCEL);
    assert_int_equal(f->rooms, 1);
    client_exchange(f);
    assert_int_equal(h2_session_streams(f->session), 1);
}

/* A server may allow no stream at all for a while. */
static void no_stream_is_opened_while_the_server_allows_none(void **state)
{
    struct client_fixture *f = *state;
    struct request *r = request_new(f, 0);
    test_setting(&f->in, H2_SETTING_MAX_CONCURRENT_STREAMS, 0);
    client_exchange(f);
    assert_int_equal(h2_session_open(f->session, &r->stream), ST_AGAIN);
    test_setting(&f->in, H2_SETTING_MAX_CONCURRENT_STREAMS, 1);
    client_exchange(f);
    assert_int_equal(f->rooms, 1);
}

static void hundred_streams_are_opened_before_the_settings_arrive(void **state)
{
    struct client_fixture *f = *state;
    struct request *extra = request_new(f, 0);
    for (size_t i = 0; i < 100; i++)
        request_open(f, 0);
    assert_int_equal(h2_session_open(f->session, &extra->stream), ST_AGAIN);
    client_exchange(f);
    assert_int_equal(f->rooms, 1);
    for (size_t i = 0; i < 1000; i++)
        request_open(f, 0);
}

static void own_limit_of_streams_holds_too(void **state)
{
    struct client_fixture *f = *state;
    f->limits.streams_max = 3;
    for (size_t i = 0; i < 3; i++)
        request_open(f, 0);
    assert_int_equal(h2_session_open(f->session, &request_new(f, 0)->stream), ST_AGAIN);
}

static void session_without_ids_opens_no_stream(void **state)
{
    struct client_fixture *f = *state;
    f->session->next_id = H2_STREAM_ID_MAX;
    struct request *last = request_open(f, 5);
    assert_int_equal(last->id, H2_STREAM_ID_MAX);
    assert_int_equal(h2_session_open(f->session, &request_new(f, 0)->stream), ST_CLOSED);
    client_drain(f);
    answer_headers(f, last, H2_FLAG_END_STREAM);
    client_exchange(f);
    assert_int_equal(last->ended_by, H2_ENDED_COMPLETE);
}

/* Ids must rise on the wire, whatever the streams have to send. */
static void heads_are_sent_in_the_order_of_their_ids(void **state)
{
    struct client_fixture *f = *state;
    uint8_t room[H2_FILL_ROOM_MIN];
    test_setting(&f->in, H2_SETTING_INITIAL_WINDOW_SIZE, 1000000);
    client_exchange(f);
    for (size_t i = 0; i < 300; i++) {
        request_open(f, i % 3 * 5000);
        if (i % 7 == 0) {
            size_t n = h2_session_fill(f->session, room, sizeof(room), f->now);
            test_put(&f->out, slice_of(room, n));
            test_window(&f->in, 0, 3000);
            client_feed(f, SIZE_MAX / 2);
        }
        if (i % 11 == 0 && f->requests[i / 2]->closed == 0)
            h2_stream_reset(&f->requests[i / 2]->stream, H2_CANCEL);
        h2_session_check(f->session);
    }
    client_drain(f);
    struct slice bytes = client_frames(f), payload;
    struct h2_frame frame;
    uint32_t last = 0;
    while (test_next(&bytes, &frame, &payload)) {
        if (frame.type == H2_HEADERS) {
            assert_true(frame.stream_id > last);
            last = frame.stream_id;
        } else {
            assert_true(frame.stream_id <= last);
        }
    }
    assert_true(last > 0);
}

/* ---- leaving ---- */

static void goaway_closes_only_what_the_server_ignores(void **state)
{
    struct client_fixture *f = *state;
    struct request *kept = request_open(f, 5), *refused = request_open(f, 5);
    client_exchange(f);
    struct request *unsent = request_open(f, 5);
    goaway(f, kept->id, H2_NO_ERROR, "bye");
    client_feed(f, SIZE_MAX / 2);
    assert_int_equal(f->goaways, 1);
    assert_int_equal(f->goaway_code, H2_NO_ERROR);
    assert_string_equal(f->goaway_text, "bye");
    assert_int_equal(kept->closed, 0);
    assert_true(refused->closed && refused->unprocessed && unsent->closed && unsent->unprocessed);
    assert_int_equal(refused->code, H2_REFUSED_STREAM);
    assert_int_equal(refused->ended_by, H2_ENDED_BY_PEER);
    assert_int_equal(h2_session_open(f->session, &request_new(f, 0)->stream), ST_CLOSED);
    client_drain(f);
    assert_false(h2_session_over(f->session));
    answer_headers(f, kept, 0);
    answer_trailers(f, kept);
    client_exchange(f);
    assert_int_equal(kept->ended_by, H2_ENDED_COMPLETE);
    assert_true(h2_session_over(f->session));
    assert_false(h2_session_failed(f->session));
}

/* The first GOAWAY of a graceful shutdown names no stream, so that none is lost; streams whose head
 * was not sent must not be opened all the same. */
static void goaway_in_two_steps(void **state)
{
    struct client_fixture *f = *state;
    struct request *first = request_open(f, 5), *second = request_open(f, 5);
    client_exchange(f);
    struct request *unsent = request_open(f, 5);
    goaway(f, H2_STREAM_ID_MAX, H2_NO_ERROR, "graceful_stop");
    client_feed(f, SIZE_MAX / 2);
    assert_true(unsent->unprocessed);
    assert_int_equal(first->closed + second->closed, 0);
    goaway(f, first->id, H2_NO_ERROR, "");
    client_exchange(f);
    assert_int_equal(f->goaways, 2);
    assert_int_equal(first->closed, 0);
    assert_true(second->unprocessed);
}

static void too_many_pings_is_recognised(void **state)
{
    struct client_fixture *f = *state;
    struct request *r = request_open(f, 5);
    client_exchange(f);
    goaway(f, H2_STREAM_ID_MAX, H2_ENHANCE_YOUR_CALM, "too_many_pings");
    client_exchange(f);
    assert_int_equal(f->goaway_code, H2_ENHANCE_YOUR_CALM);
    assert_string_equal(f->goaway_text, "too_many_pings");
    assert_int_equal(r->closed, 0);
    h2_session_lost(f->session, "closed by the server");
    assert_int_equal(r->ended_by, H2_ENDED_WITH_SESSION);
    assert_false(r->unprocessed);
}

static void goaway_contradicting_an_answer_is_ignored(void **state)
{
    struct client_fixture *f = *state;
    struct request *r = request_open(f, 5);
    client_drain(f);
    answer_headers(f, r, 0);
    goaway(f, 0, H2_NO_ERROR, "");
    client_exchange(f);
    assert_int_equal(r->ended_by, H2_ENDED_BY_PEER);
    assert_false(r->unprocessed);
}

static void shutdown_finishes_the_open_streams(void **state)
{
    struct client_fixture *f = *state;
    struct request *r = request_open(f, 5);
    client_exchange(f);
    h2_session_shutdown(f->session, f->now);
    client_exchange(f);
    struct h2_frame frame;
    struct slice payload;
    assert_true(test_find(client_frames(f), H2_GOAWAY, 0, 0, &frame, &payload));
    assert_int_equal(h2_get32(payload.ptr), 0);
    assert_int_equal(h2_get32(payload.ptr + 4), H2_NO_ERROR);
    assert_int_equal(h2_session_open(f->session, &request_new(f, 0)->stream), ST_CLOSED);
    assert_false(h2_session_over(f->session));
    answer_headers(f, r, H2_FLAG_END_STREAM);
    client_exchange(f);
    assert_int_equal(r->ended_by, H2_ENDED_COMPLETE);
    assert_true(h2_session_over(f->session));
}

static void lost_connection_closes_all_streams(void **state)
{
    struct client_fixture *f = *state;
    struct request *sent = request_open(f, 5);
    client_exchange(f);
    struct request *unsent = request_open(f, 5);
    f->open_on_close = true;
    h2_session_lost(f->session, "connection reset by peer");
    assert_int_equal(f->opened_on_close, ST_CLOSED);
    assert_int_equal(sent->ended_by, H2_ENDED_WITH_SESSION);
    assert_int_equal(unsent->ended_by, H2_ENDED_WITH_SESSION);
    assert_false(sent->unprocessed);
    assert_true(unsent->unprocessed);
    assert_false(h2_session_wants_write(f->session));
    assert_true(h2_session_over(f->session));
    const char *reason;
    assert_int_equal(h2_session_error(f->session, &reason), H2_CANCEL);
    assert_string_equal(reason, "connection reset by peer");
    h2_session_lost(f->session, "again");
}

static void freeing_a_session_closes_its_streams(void **state)
{
    struct client_fixture *f = *state;
    struct request *r = request_open(f, 5);
    f->open_on_close = true;
    h2_session_free(f->session);
    f->session = NULL;
    assert_int_equal(r->closed, 1);
    assert_int_equal(f->opened_on_close, ST_CLOSED);
}

/* ---- windows ---- */

static void request_waits_for_the_windows_of_the_server(void **state)
{
    struct client_fixture *f = *state;
    test_setting(&f->in, H2_SETTING_INITIAL_WINDOW_SIZE, 100);
    client_exchange(f);
    struct request *r = request_open(f, 200000);
    client_exchange(f);
    assert_int_equal(test_data_bytes(client_frames(f), r->id), 100);
    assert_false(h2_session_wants_write(f->session));
    test_setting(&f->in, H2_SETTING_INITIAL_WINDOW_SIZE, 1000000);
    client_exchange(f);
    assert_int_equal(test_data_bytes(client_frames(f), r->id), H2_WINDOW_DEFAULT);
    test_window(&f->in, 0, 1000000);
    client_exchange(f);
    assert_int_equal(test_data_bytes(client_frames(f), r->id), 200000);
    assert_int_equal(r->closed, 0);
}

static void windows_are_given_back_and_enforced(void **state)
{
    struct client_fixture *f = *state;
    static uint8_t bytes[H2_FRAME_BYTES_MAX];
    f->limits.stream_window = 40000;
    struct request *r = request_open(f, 0);
    client_exchange(f);
    answer_headers(f, r, 0);
    for (size_t i = 0; i < 500; i++) {
        test_frame(&f->in, H2_DATA, 0, r->id, slice_of(bytes, sizeof(bytes)));
        client_exchange(f);
    }
    assert_int_equal(r->received, 500 * sizeof(bytes));
    assert_true(test_count(client_frames(f), H2_WINDOW_UPDATE, r->id) > 100);
    for (size_t i = 0; i < 3; i++) /* without reading the window that is given back */
        test_frame(&f->in, H2_DATA, 0, r->id, slice_of(bytes, sizeof(bytes)));
    client_feed(f, SIZE_MAX / 2);
    assert_int_equal(r->closed, 0);
    r->stream.recv_window = 100; /* as if no window had been given back */
    test_frame(&f->in, H2_DATA, 0, r->id, slice_of(bytes, 101));
    client_exchange(f);
    assert_int_equal(r->code, H2_FLOW_CONTROL_ERROR);
    assert_int_equal(r->ended_by, H2_ENDED_BY_FAULT);
}

static void settings_of_the_server_are_known(void **state)
{
    struct client_fixture *f = *state;
    assert_int_equal(h2_session_peer_header_list_bytes(f->session), UINT32_MAX);
    test_setting(&f->in, H2_SETTING_MAX_HEADER_LIST_SIZE, 5000);
    client_exchange(f);
    assert_int_equal(h2_session_peer_header_list_bytes(f->session), 5000);
}

/* ---- keepalive ---- */

static void silent_server_gets_a_ping_and_is_then_left(void **state)
{
    struct client_fixture *f = *state;
    f->limits.keepalive_ns = 10 * H2_SECOND_NS;
    client_exchange(f);
    assert_int_equal(h2_session_timeout(f->session), INT64_MAX); /* no stream is open */
    f->now += 100 * H2_SECOND_NS;
    h2_session_tick(f->session, f->now);
    client_exchange(f);
    assert_int_equal(test_count(client_frames(f), H2_PING, 0), 0);
    struct request *r = request_open(f, 5); /* after a long silence: checked immediately */
    assert_true(h2_session_timeout(f->session) <= f->now);
    h2_session_tick(f->session, f->now);
    client_exchange(f);
    assert_int_equal(test_count(client_frames(f), H2_PING, 0), 1);
    test_frame(&f->in, H2_PING, H2_FLAG_ACK, 0, SLICE_LITERAL("vigilhi?"));
    client_exchange(f);
    assert_int_equal(h2_session_timeout(f->session), f->now + f->limits.keepalive_ns);
    f->now += f->limits.keepalive_ns;
    h2_session_tick(f->session, f->now);
    client_exchange(f);
    assert_int_equal(test_count(client_frames(f), H2_PING, 0), 2);
    f->now += f->limits.keepalive_timeout_ns;
    h2_session_tick(f->session, f->now);
    assert_true(h2_session_failed(f->session));
    assert_int_equal(r->ended_by, H2_ENDED_WITH_SESSION);
    assert_false(r->unprocessed);
}

static void answer_to_a_ping_is_awaited_after_all_streams_ended(void **state)
{
    struct client_fixture *f = *state;
    f->limits.keepalive_ns = 10 * H2_SECOND_NS;
    client_exchange(f);
    struct request *r = request_open(f, 5);
    f->now += f->limits.keepalive_ns;
    h2_session_tick(f->session, f->now);
    h2_stream_reset(&r->stream, H2_CANCEL);
    f->now += f->limits.keepalive_timeout_ns;
    assert_int_equal(h2_session_timeout(f->session), f->now);
    h2_session_tick(f->session, f->now);
    assert_true(h2_session_failed(f->session));
}

static void idle_session_is_pinged_if_wanted(void **state)
{
    struct client_fixture *f = *state;
    f->limits.keepalive_ns = 10 * H2_SECOND_NS;
    f->limits.keepalive_streams_only = false;
    client_exchange(f);
    f->now += f->limits.keepalive_ns;
    assert_int_equal(h2_session_timeout(f->session), f->now);
    h2_session_tick(f->session, f->now);
    client_exchange(f);
    assert_int_equal(test_count(client_frames(f), H2_PING, 0), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, client_setup, client_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(large_header_list_resets_its_stream),
        TEST(header_bomb_ends_the_connection),
        TEST(continuation_flood_ends_the_connection),
        TEST(settings_flood_ends_the_connection),
        TEST(empty_data_flood_ends_the_connection),
        TEST(informational_flood_ends_the_connection),
        TEST(faults_on_closed_streams_are_limited),
        TEST(slow_frame_ends_the_connection),
        TEST(every_ping_of_a_server_is_answered_while_it_reads),
        TEST(streams_are_limited_by_the_setting_of_the_server),
        TEST(cancelling_makes_room),
        TEST(no_stream_is_opened_while_the_server_allows_none),
        TEST(hundred_streams_are_opened_before_the_settings_arrive),
        TEST(own_limit_of_streams_holds_too),
        TEST(session_without_ids_opens_no_stream),
        TEST(heads_are_sent_in_the_order_of_their_ids),
        TEST(goaway_closes_only_what_the_server_ignores),
        TEST(goaway_in_two_steps),
        TEST(too_many_pings_is_recognised),
        TEST(goaway_contradicting_an_answer_is_ignored),
        TEST(shutdown_finishes_the_open_streams),
        TEST(lost_connection_closes_all_streams),
        TEST(freeing_a_session_closes_its_streams),
        TEST(request_waits_for_the_windows_of_the_server),
        TEST(windows_are_given_back_and_enforced),
        TEST(settings_of_the_server_are_known),
        TEST(silent_server_gets_a_ping_and_is_then_left),
        TEST(answer_to_a_ping_is_awaited_after_all_streams_ended),
        TEST(idle_session_is_pinged_if_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
