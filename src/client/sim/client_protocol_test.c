/*
 * A client against servers that do what HTTP/2 and gRPC allow but ours does not: frames are
 * rewritten on their way from the server to the client. And servers that answer late, never or
 * wrongly.
 */
#include "client/sim/sim_scenarios_test.h"
#include "wire/h2/client_test.h"

#include <signal.h>

static unsigned frames_seen; /* on this connection */
static size_t frames_of;     /* the number of this connection */
static size_t rewritten;     /* frames of all runs that were changed */

/* Which frame of the connection this is, from 1 on. */
static unsigned next_frame(void)
{
    frames_seen = frames_of == faults.connects ? frames_seen + 1 : 1;
    frames_of = faults.connects;
    return frames_seen;
}

static void put_same(struct h2_frame frame, struct slice payload, struct buf *out)
{
    test_frame(out, frame.type, frame.flags, frame.stream_id, payload);
}

static void put_numbers(struct buf *out, enum h2_frame_type type, uint32_t id, uint32_t first,
                        uint32_t second)
{
    uint8_t payload[8];
    h2_put32(h2_put32(payload, first), second);
    test_frame(out, type, 0, id,
               slice_of(payload, type == H2_WINDOW_UPDATE || type == H2_RST_STREAM ? 4 : 8));
}

/* -- What is allowed -- */

static void pad(struct h2_frame frame, struct slice payload, struct buf *out)
{
    AUTO(buf_fini) struct buf padded = {0};
    uint8_t len = (uint8_t)(next_frame() * 41);
    static const uint8_t zeros[256];
    if (frame.type != H2_DATA && frame.type != H2_HEADERS) {
        put_same(frame, payload, out);
        return;
    }
    test_put(&padded, slice_of(&len, 1));
    test_put(&padded, payload);
    test_put(&padded, slice_of(zeros, len));
    test_frame(out, frame.type, frame.flags | H2_FLAG_PADDED, frame.stream_id, buf_slice(&padded));
}

/* Cuts a frame into pieces; the last one has the flag that ends the whole. */
static void put_pieces(struct h2_frame frame, struct slice payload, size_t piece,
                       enum h2_frame_type next_type, uint8_t last_flag, struct buf *out)
{
    enum h2_frame_type type = (enum h2_frame_type)frame.type;
    uint8_t flags = frame.flags & (uint8_t)~last_flag;
    while (payload.len > piece) {
        test_frame(out, type, flags, frame.stream_id, slice_sub(payload, 0, piece));
        payload = slice_sub(payload, piece, payload.len - piece);
        if (type != next_type)
            flags = 0;
        type = next_type;
    }
    test_frame(out, type, flags | (frame.flags & last_flag), frame.stream_id, payload);
}

static void split_headers(struct h2_frame frame, struct slice payload, struct buf *out)
{
    if (frame.type == H2_HEADERS)
        put_pieces(frame, payload, payload.len / 8 + 1, H2_CONTINUATION, H2_FLAG_END_HEADERS, out);
    else
        put_same(frame, payload, out);
}

static void split_data(struct h2_frame frame, struct slice payload, struct buf *out)
{
    if (frame.type == H2_DATA)
        put_pieces(frame, payload, 1, H2_DATA, H2_FLAG_END_STREAM, out);
    else
        put_same(frame, payload, out);
}

/* Frames that mean nothing, before every other one. The first of a connection has to be SETTINGS.
 */
static void interleave(struct h2_frame frame, struct slice payload, struct buf *out)
{
    if (next_frame() > 1) {
        test_frame(out, (enum h2_frame_type)0xee, 0xff, frame.stream_id, SLICE_LITERAL("unknown"));
        test_frame(out, H2_PING, 0, 0, SLICE_LITERAL("8 bytes!"));
        test_frame(out, H2_SETTINGS, 0, 0, SLICE_EMPTY);
        put_numbers(out, H2_WINDOW_UPDATE, 0, 1, 0);
    }
    if (frame.stream_id) {
        put_numbers(out, H2_WINDOW_UPDATE, frame.stream_id, 1, 0);
        test_frame(out, H2_PRIORITY, 0, frame.stream_id, SLICE_LITERAL("\0\0\0\0\x10"));
    }
    put_same(frame, payload, out);
    if (frame.type == H2_DATA && !(frame.flags & H2_FLAG_END_STREAM))
        test_frame(out, H2_DATA, 0, frame.stream_id, SLICE_EMPTY);
}

/* The head of a response is preceded by an informational one: ":status: 103". */
static uint32_t answered_id;

static void inform(struct h2_frame frame, struct slice payload, struct buf *out)
{
    if (frame.type == H2_SETTINGS && !(frame.flags & H2_FLAG_ACK))
        answered_id = 0;
    if (frame.type == H2_HEADERS && frame.stream_id > answered_id) {
        answered_id = frame.stream_id;
        if (!(frame.flags & H2_FLAG_END_STREAM))
            test_frame(out, H2_HEADERS, H2_FLAG_END_HEADERS, frame.stream_id,
                       SLICE_LITERAL("\x08\x03"
                                     "103"));
    }
    put_same(frame, payload, out);
}

/* Adds a field with a value of this length to a header block, without a change of the table. */
static void put_large(struct h2_frame frame, struct slice payload, size_t len, struct buf *out)
{
    AUTO(buf_fini) struct buf block = {0};
    uint8_t length[] = {0x7f, (uint8_t)((len - 127) & 127) | 128, (uint8_t)((len - 127) >> 7)};
    test_put(&block, payload);
    test_put(&block, SLICE_LITERAL("\x00\x01x"));
    test_put(&block, slice_of(length, sizeof(length)));
    for (size_t i = 0; i < len; i++)
        test_put(&block, SLICE_LITERAL("v"));
    put_pieces(frame, buf_slice(&block), block.len / 4 + 1, H2_CONTINUATION, H2_FLAG_END_HEADERS,
               out);
}

static void enlarge_headers(struct h2_frame frame, struct slice payload, struct buf *out)
{
    if (frame.type == H2_HEADERS)
        put_large(frame, payload, 12000, out);
    else
        put_same(frame, payload, out);
}

/* Every setting is changed again and again, and ends with a usual value. */
static void change_settings(struct h2_frame frame, struct slice payload, struct buf *out)
{
    static const struct {
        uint16_t setting;
        uint32_t value;
    } changes[] = {
        {H2_SETTING_INITIAL_WINDOW_SIZE, 0},     {H2_SETTING_INITIAL_WINDOW_SIZE, 1 << 20},
        {H2_SETTING_MAX_CONCURRENT_STREAMS, 0},  {H2_SETTING_MAX_CONCURRENT_STREAMS, 100},
        {H2_SETTING_HEADER_TABLE_SIZE, 0},       {H2_SETTING_HEADER_TABLE_SIZE, 65536},
        {H2_SETTING_MAX_FRAME_SIZE, 16777215},   {H2_SETTING_MAX_FRAME_SIZE, 16384},
        {H2_SETTING_MAX_HEADER_LIST_SIZE, 8192}, {0xabcd, 77},
    };
    put_same(frame, payload, out);
    unsigned nth = next_frame();
    if (nth > 5) /* more frames would be a flood */
        return;
    for (size_t i = 0; i < COUNT_OF(changes); i++)
        test_setting(out, changes[i].setting, changes[i].value);
}

static void nothing(struct h2_frame frame, struct slice payload, struct buf *out)
{
    put_same(frame, payload, out);
}

static void run_with(const struct scenario *s, const struct sim_options *options,
                     void (*rewrite)(struct h2_frame, struct slice, struct buf *),
                     void (*configure)(struct world *w))
{
    struct world w;
    start(&w, s, options ? FAULT_DELAY : FAULT_NONE, 0, options);
    if (configure)
        configure(&w);
    faults.rewrite = rewrite;
    frames_of = 0;
    assert_true(world_start(&w, s->members));
    s->run(&w);
    world_check_calls(&w);
    check_truth(&w);
    s->expect(&w);
    probe(&w);
    rewritten += faults.rewritten;
    world_fini(&w);
    *context = '\0';
}

static void each_scenario(void (*rewrite)(struct h2_frame, struct slice, struct buf *),
                          void (*configure)(struct world *w))
{
    for (size_t i = 0; i < COUNT_OF(scenarios); i++)
        run_with(&scenarios[i], NULL, rewrite, configure);
}

static void frames_may_have_every_allowed_form(void **state)
{
    (void)state;
    void (*rewrites[])(struct h2_frame, struct slice, struct buf *) = {
        nothing,    pad,    split_headers,   split_data,
        interleave, inform, enlarge_headers, change_settings,
    };
    for (size_t i = 0; i < COUNT_OF(rewrites); i++) {
        rewritten = 0;
        each_scenario(rewrites[i], NULL);
        assert_int_equal(rewritten >= COUNT_OF(scenarios), i > 0);
    }
}

static void make_windows_tiny(struct world *w)
{
    for (size_t i = 0; i < WORLD_MEMBERS; i++) {
        w->members[i].wire.limits.h2.stream_window = 3;
        w->members[i].wire.limits.h2.streams_max = 2;
    }
}

static void server_may_have_tiny_windows(void **state)
{
    (void)state;
    each_scenario(NULL, make_windows_tiny);
}

static void server_may_be_slow(void **state)
{
    (void)state;
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    options.delay_min_ns = 20 * NS_PER_MS;
    options.delay_max_ns = 200 * NS_PER_MS;
    options.split_per_1000 = 900;
    options.buffer_bytes = 50;
    for (size_t i = 0; i < COUNT_OF(scenarios); i++)
        run_with(&scenarios[i], &options, NULL, NULL);
}

/* -- GOAWAY and RST_STREAM -- */

static unsigned leave_at; /* the frame before which the server says that it leaves */

static void leave(struct h2_frame frame, struct slice payload, struct buf *out)
{
    if (faults.connects == 1 && next_frame() == leave_at)
        put_numbers(out, H2_GOAWAY, 0, H2_STREAM_ID_MAX, H2_NO_ERROR);
    put_same(frame, payload, out);
}

static void server_may_leave_at_any_time(void **state)
{
    (void)state;
    for (leave_at = 2; leave_at < 20; leave_at++) {
        rewritten = 0;
        each_scenario(leave, NULL);
        assert_true(rewritten > 0);
    }
}

static enum h2_error reset_code;
static uint32_t reset_id;
static unsigned resets_left;

/* Resets streams instead of answering, and drops the rest of the answers. */
static void reset(struct h2_frame frame, struct slice payload, struct buf *out)
{
    if (frame.type == H2_HEADERS && resets_left && frame.stream_id != reset_id) {
        resets_left--;
        reset_id = frame.stream_id;
        put_numbers(out, H2_RST_STREAM, frame.stream_id, reset_code, 0);
    }
    if (frame.stream_id == 0 || frame.stream_id != reset_id)
        put_same(frame, payload, out);
}

static void run_reset(const char *name, enum h2_error code, void (*check)(const struct world *w))
{
    for (size_t i = 0; i < COUNT_OF(scenarios); i++) {
        struct world w;
        if (strcmp(scenarios[i].name, name) != 0)
            continue;
        start(&w, &scenarios[i], FAULT_NONE, code, NULL);
        reset_code = code;
        reset_id = 0;
        resets_left = 3;
        faults.rewrite = reset;
        assert_true(world_start(&w, 1));
        scenarios[i].run(&w);
        world_check_completions(&w);
        check_truth(&w);
        check(&w);
        assert_true(resets_left < 3);
        resets_left = 0;
        probe(&w);
        world_fini(&w);
    }
    *context = '\0';
}

static void expect_too_many_requests(const struct world *w)
{
    assert_int_equal(w->calls[0].code, VIGIL_ERROR_TOO_MANY_REQUESTS);
    assert_int_equal(w->calls[0].outcome, VIGIL_UNKNOWN);
}

static void expect_protocol_error(const struct world *w)
{
    assert_int_equal(w->calls[0].code, VIGIL_ERROR_PROTOCOL);
    assert_int_equal(w->calls[0].outcome, VIGIL_UNKNOWN);
}

static void reset_streams_are_reported_or_repeated(void **state)
{
    (void)state;
    run_reset("read", H2_REFUSED_STREAM, expect_calls_succeed);
    run_reset("read", H2_ENHANCE_YOUR_CALM, expect_too_many_requests);
    run_reset("writes", H2_ENHANCE_YOUR_CALM, expect_too_many_requests);
    run_reset("writes", H2_INTERNAL_ERROR, expect_protocol_error);
    run_reset("watch", H2_REFUSED_STREAM, expect_all_events);
    run_reset("watch", H2_ENHANCE_YOUR_CALM, expect_all_events);
    run_reset("watch", H2_INTERNAL_ERROR, expect_all_events);
    run_reset("watch", H2_CANCEL, expect_all_events);
}

static void exceed_headers(struct h2_frame frame, struct slice payload, struct buf *out)
{
    if (frame.type == H2_HEADERS)
        put_large(frame, payload, 16500, out);
    else
        put_same(frame, payload, out);
}

/* -- Wrong answers -- */

static void begin(struct world *w)
{
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    world_init(w, &options);
}

static void header_block_beyond_the_limit_fails_the_call(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    assert_true(world_start(&w, 1));
    faults.rewrite = exceed_headers;
    struct world_call *get = world_get(&w), *put = world_put(&w, 1);
    WORLD_RUN_UNTIL(&w, world_completed(&w));
    assert_int_equal(get->completions, 1);
    assert_int_not_equal(get->code, VIGIL_OK);
    assert_int_equal(put->outcome, VIGIL_UNKNOWN);
    world_check_calls(&w);
    faults.rewrite = NULL;
    probe(&w);
    world_fini(&w);
}

static void run_against(enum etcd_answer answer, int get_code, int put_code, int put_outcome)
{
    struct world w;
    begin(&w);
    assert_true(world_start(&w, 1));
    w.members[0].answer = answer;
    struct world_call *get = world_get(&w), *put = world_put(&w, 1);
    struct world_watch *v = world_watch_from(&w, 1);
    WORLD_RUN_UNTIL(&w, world_completed(&w));
    assert_int_equal(get->code, get_code);
    assert_int_equal(put->code, put_code);
    if (put_code != VIGIL_OK)
        assert_int_equal(put->outcome, put_outcome);
    world_check_completions(&w);
    w.members[0].answer = ETCD_ANSWERS;
    etcd_member_stop(&w.members[0]);
    etcd_member_start(&w.members[0], sim_network(w.sim));
    probe(&w);
    world_change(&w, "w", 1);
    WORLD_RUN_UNTIL(&w, v->count || v->ended);
    world_check_events(&w, v, 1);
    assert_int_equal(v->ended, answer == ETCD_ANSWERS_EXHAUSTED);
    if (v->ended)
        assert_int_equal(v->end_code, VIGIL_ERROR_SERVER);
    world_fini(&w);
}

static void wrong_answers_are_reported(void **state)
{
    (void)state;
    enum { OK = VIGIL_OK, WRONG = VIGIL_ERROR_PROTOCOL, LATE = VIGIL_ERROR_TIMEOUT };
    run_against(ETCD_ANSWERS, OK, OK, 0);
    run_against(ETCD_IS_SILENT, LATE, LATE, VIGIL_UNKNOWN);
    run_against(ETCD_IS_EMPTY, WRONG, WRONG, VIGIL_UNKNOWN);
    run_against(ETCD_ANSWERS_TWICE, WRONG, OK, 0);
    run_against(ETCD_ANSWERS_MALFORMED, WRONG, WRONG, VIGIL_UNKNOWN);
    run_against(ETCD_ANSWERS_EXHAUSTED, VIGIL_ERROR_SERVER, VIGIL_ERROR_SERVER, VIGIL_REFUSED);
    run_against(ETCD_IS_UNAVAILABLE, VIGIL_ERROR_UNAVAILABLE, VIGIL_ERROR_UNAVAILABLE,
                VIGIL_UNKNOWN);
}

/* -- The memory of a decoded response -- */

enum { RECEIVE_MAX = 256 * 1024 };

static int get_of(struct slice kv, size_t len)
{
    struct world w;
    AUTO(buf_fini) struct buf bytes = {0};
    begin(&w);
    while (bytes.len + kv.len <= len)
        test_put(&bytes, kv);
    w.cluster.range_bytes = buf_slice(&bytes);
    w.options.receive_bytes_max = RECEIVE_MAX;
    assert_true(world_start(&w, 1));
    struct world_call *c = world_get(&w);
    WORLD_RUN_UNTIL(&w, c->completions);
    int code = c->code;
    w.cluster.range_bytes = SLICE_EMPTY;
    probe(&w);
    world_fini(&w);
    return code;
}

static void decoded_responses_have_a_limit(void **state)
{
    (void)state;
    struct slice empty = SLICE_LITERAL("\x12\x00"); /* a pair of two bytes takes 64 */
    struct slice small = SLICE_LITERAL("\x12\x0b\x0a\x01k\x10\x02\x18\x03\x20\x01\x2a\x00");
    struct slice usual =
        SLICE_LITERAL("\x12\x2e\x0a\x08usualkey\x10\x82\x80\x01\x18\x83\x80\x01\x20\x01\x2a\x18"
                      "a value of common size..");
    assert_int_equal(get_of(empty, RECEIVE_MAX / 16), VIGIL_OK);
    assert_int_equal(get_of(empty, RECEIVE_MAX), VIGIL_ERROR_TOO_LARGE);
    assert_int_equal(get_of(small, RECEIVE_MAX / 2), VIGIL_OK);
    assert_int_equal(get_of(usual, RECEIVE_MAX), VIGIL_OK);
    assert_int_equal(get_of(usual, RECEIVE_MAX + 100), VIGIL_ERROR_TOO_LARGE);
}

/* A response of empty events: four of its bytes take about 90 in memory. */
static int end_of_watch(size_t len)
{
    struct world w;
    AUTO(buf_fini) struct buf bytes = {0};
    begin(&w);
    while (bytes.len < len)
        test_put(&bytes, SLICE_LITERAL("\x5a\x02\x12\x00"));
    w.cluster.watch_bytes = buf_slice(&bytes);
    w.options.receive_bytes_max = RECEIVE_MAX;
    assert_true(world_start(&w, 1));
    struct world_watch *v = world_watch_from(&w, 1);
    WORLD_RUN_UNTIL(&w, v->ended || w.members[0].watch_requests > 5);
    int code = v->end_code;
    assert_true(v->ended <= 1 && v->count == 0);
    probe(&w);
    world_fini(&w);
    return code;
}

static void watch_ends_if_a_response_takes_too_much_memory(void **state)
{
    (void)state;
    assert_int_equal(end_of_watch(RECEIVE_MAX), VIGIL_ERROR_TOO_LARGE);
    assert_int_equal(end_of_watch(RECEIVE_MAX + 4), VIGIL_ERROR_TOO_LARGE);
}

#define TEST(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(frames_may_have_every_allowed_form),
        TEST(server_may_have_tiny_windows),
        TEST(server_may_be_slow),
        TEST(server_may_leave_at_any_time),
        TEST(reset_streams_are_reported_or_repeated),
        TEST(header_block_beyond_the_limit_fails_the_call),
        TEST(wrong_answers_are_reported),
        TEST(decoded_responses_have_a_limit),
        TEST(watch_ends_if_a_response_takes_too_much_memory),
    };
    signal(SIGABRT, print_context);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
