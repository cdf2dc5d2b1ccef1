/* A client's session joined to a server: our own, and nghttp2's as the judge of what we send. */
#include "base/failing_memory_test.h"
#include "wire/h2/answer_test.h"
#include "wire/h2/request_test.h"

#include <nghttp2/nghttp2.h>

static uint32_t seed;

static uint32_t next_random(void)
{
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

/* Only what the client's session allocates may fail, not what the test or the server does. */
static void client_turn(struct client_fixture *f, struct slice bytes)
{
    memory_exempt = false;
    h2_session_feed(f->session, bytes, f->now);
    memory_exempt = true;
    h2_session_check(f->session);
}

static size_t client_write(struct client_fixture *f, uint8_t *dst, size_t room)
{
    memory_exempt = false;
    size_t n = h2_session_fill(f->session, dst, room, f->now);
    memory_exempt = true;
    h2_session_check(f->session);
    return n;
}

static bool client_request(struct client_fixture *f, struct request *r)
{
    memory_exempt = false;
    enum status status = h2_session_open(f->session, &r->stream);
    memory_exempt = true;
    if (status == ST_OK)
        r->id = r->stream.id;
    return status == ST_OK;
}

static bool client_begin(struct client_fixture *f)
{
    memory_exempt = false;
    enum status status =
        h2_session_new_client(&f->limits, &client_ops, f, NULL, f->now, &f->session);
    memory_exempt = true;
    return status == ST_OK;
}

/* ---- our own server ---- */

struct joined {
    struct client_fixture client;
    struct fixture server;
    size_t step; /* the pieces in which bytes arrive */
};

static void to_server(struct joined *j)
{
    uint8_t room[H2_FILL_ROOM_MIN];
    while (h2_session_wants_write(j->client.session)) {
        size_t n = client_write(&j->client, room, sizeof(room));
        for (size_t i = 0; i < n; i += j->step)
            h2_session_feed(j->server.session, slice_of(room + i, size_min(j->step, n - i)), 1);
    }
    h2_session_check(j->server.session);
}

static void to_client(struct joined *j)
{
    uint8_t room[H2_FILL_ROOM_MIN];
    while (h2_session_wants_write(j->server.session)) {
        size_t n = h2_session_fill(j->server.session, room, sizeof(room), 1);
        for (size_t i = 0; i < n; i += j->step)
            client_turn(&j->client, slice_of(room + i, size_min(j->step, n - i)));
    }
}

static void join_init(struct joined *j, size_t step)
{
    *j = (struct joined){.step = step};
    client_init(&j->client);
    j->server.limits = H2_LIMITS_DEFAULT;
    j->server.limits.stream_window = 20000;
    j->server.limits.streams_max = 5;
    j->server.reply = 50000;
    fx = &j->server;
    assert_int_equal(
        h2_session_new(&j->server.limits, &session_ops, &j->server, NULL, 1, &j->server.session),
        ST_OK);
}

static void join_fini(struct joined *j)
{
    client_stop(&j->client);
    h2_session_free(j->server.session);
    assert_int_equal(j->server.opened, j->server.closed);
    buf_fini(&j->client.in);
    buf_fini(&j->client.out);
}

static void run_joined(struct joined *j)
{
    for (size_t turns = 0; turns < 20; turns++) {
        to_server(j);
        to_client(j);
    }
}

static void both_roles_exchange_for_every_split_of_the_bytes(void **state)
{
    (void)state;
    memory_exempt = true;
    struct joined *j = malloc(sizeof(*j));
    for (size_t step = 1; step < 300; step++) {
        join_init(j, step);
        assert_true(client_begin(&j->client));
        to_server(j);
        to_client(j);
        for (size_t i = 0; i < 5; i++)
            assert_true(client_request(&j->client, request_new(&j->client, i * 10000)));
        assert_false(client_request(&j->client, request_new(&j->client, 0)));
        run_joined(j);
        for (size_t i = 0; i < 5; i++) {
            const struct request *r = j->client.requests[i];
            assert_int_equal(r->closed, 1);
            assert_int_equal(r->ended_by, H2_ENDED_COMPLETE);
            assert_int_equal(r->heads, 2);
            assert_int_equal(r->received, 50000);
        }
        assert_int_equal(j->client.rooms, 1);
        assert_int_equal(j->server.opened, 5);
        /* The server leaves gracefully: nothing is lost. */
        assert_true(client_request(&j->client, request_new(&j->client, 3000)));
        to_server(j);
        h2_session_shutdown(j->server.session, 1);
        run_joined(j);
        assert_int_equal(j->client.requests[6]->ended_by, H2_ENDED_COMPLETE);
        assert_true(h2_session_over(j->client.session));
        assert_true(h2_session_over(j->server.session));
        assert_true(j->client.goaways >= 1);
        join_fini(j);
    }
    free(j);
}

static void run_without_memory(void *ctx)
{
    struct joined *j = ctx;
    memory_exempt = true;
    join_init(j, 1000);
    if (client_begin(&j->client)) {
        to_server(j);
        to_client(j);
        for (size_t i = 0; i < 5; i++)
            client_request(&j->client, request_new(&j->client, i * 10000));
        run_joined(j);
        for (size_t i = 0; i < 5; i++) {
            const struct request *r = j->client.requests[i];
            if (r->closed && r->ended_by == H2_ENDED_COMPLETE)
                assert_int_equal(r->received, 50000);
        }
    }
    join_fini(j);
}

static void client_without_memory_ends_cleanly(void **state)
{
    (void)state;
    struct joined *j = malloc(sizeof(*j));
    assert_true(each_allocation_fails(run_without_memory, j) > 5);
    free(j);
}

/* ---- nghttp2's server ---- */

struct judge {
    nghttp2_session *session;
    size_t faults; /* faults of the client, as nghttp2 sees it */
    size_t requests, ended, resets, bytes;
    size_t reply;
    bool refuses, with_trailers;
    bool early; /* answers every fourth request before it has ended */
};

static ssize_t read_reply(nghttp2_session *session, int32_t id, uint8_t *dst, size_t room,
                          uint32_t *flags, nghttp2_data_source *source, void *user)
{
    struct judge *judge = user;
    size_t left = (size_t)(uintptr_t)nghttp2_session_get_stream_user_data(session, id);
    size_t n = size_min(left, room);
    (void)source;
    memset(dst, 'd', n);
    nghttp2_session_set_stream_user_data(session, id, (void *)(uintptr_t)(left - n));
    if (left > n)
        return (ssize_t)n;
    *flags = NGHTTP2_DATA_FLAG_EOF;
    if (judge->with_trailers) {
        nghttp2_nv trailer = {(uint8_t *)"grpc-status", (uint8_t *)"0", 11, 1, 0};
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        assert_int_equal(nghttp2_submit_trailer(session, id, &trailer, 1), 0);
    }
    return (ssize_t)n;
}

static void judge_reply(struct judge *judge, int32_t id)
{
    nghttp2_nv head[] = {{(uint8_t *)":status", (uint8_t *)"200", 7, 3, 0},
                         {(uint8_t *)"content-type", (uint8_t *)"application/grpc", 12, 16, 0}};
    nghttp2_data_provider provider = {.read_callback = read_reply};
    nghttp2_session_set_stream_user_data(judge->session, id, (void *)(uintptr_t)judge->reply);
    assert_int_equal(nghttp2_submit_response(judge->session, id, head, 2, &provider), 0);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct judge *judge = user;
    bool begins = frame->hd.type == NGHTTP2_HEADERS;
    bool ends =
        frame->hd.flags & NGHTTP2_FLAG_END_STREAM && (begins || frame->hd.type == NGHTTP2_DATA);
    judge->requests += begins;
    judge->ended += ends;
    judge->resets += frame->hd.type == NGHTTP2_RST_STREAM;
    if (begins && judge->refuses)
        nghttp2_submit_rst_stream(session, 0, frame->hd.stream_id, NGHTTP2_REFUSED_STREAM);
    else if (judge->early && frame->hd.stream_id % 8 == 1 ? begins : ends)
        judge_reply(judge, frame->hd.stream_id);
    return 0;
}

static int on_invalid(nghttp2_session *session, const nghttp2_frame *frame, int code, void *user)
{
    (void)session;
    (void)frame;
    print_error("nghttp2: %s\n", nghttp2_strerror(code));
    ((struct judge *)user)->faults++;
    return 0;
}

static int on_chunk(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes,
                    size_t len, void *user)
{
    (void)session;
    (void)flags;
    (void)id;
    (void)bytes;
    ((struct judge *)user)->bytes += len;
    return 0;
}

static void judge_init(struct judge *judge)
{
    nghttp2_session_callbacks *calls;
    assert_int_equal(nghttp2_session_callbacks_new(&calls), 0);
    nghttp2_session_callbacks_set_on_frame_recv_callback(calls, on_frame);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(calls, on_invalid);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, on_chunk);
    *judge = (struct judge){.with_trailers = true, .reply = 100};
    assert_int_equal(nghttp2_session_server_new(&judge->session, calls, judge), 0);
    nghttp2_session_callbacks_del(calls);
    assert_int_equal(nghttp2_submit_settings(judge->session, 0, NULL, 0), 0);
}

static void judge_setting(struct judge *judge, int32_t id, uint32_t value)
{
    nghttp2_settings_entry entry = {id, value};
    assert_int_equal(nghttp2_submit_settings(judge->session, 0, &entry, 1), 0);
}

static void judge_turn(struct client_fixture *f, struct judge *judge)
{
    uint8_t room[H2_FILL_ROOM_MIN];
    while (h2_session_wants_write(f->session)) {
        size_t n = client_write(f, room, sizeof(room));
        assert_int_equal(nghttp2_session_mem_recv(judge->session, room, n), (ssize_t)n);
    }
    for (;;) {
        const uint8_t *bytes;
        ssize_t n = nghttp2_session_mem_send(judge->session, &bytes);
        assert_true(n >= 0);
        if (n == 0)
            break;
        for (size_t at = 0; at < (size_t)n;) { /* in random pieces */
            size_t piece = size_min((size_t)n - at, 1 + next_random() % 3000);
            client_turn(f, slice_of(bytes + at, piece));
            at += piece;
        }
    }
    assert_int_equal(judge->faults, 0);
}

static void nghttp2_serves_our_requests(void **state)
{
    struct client_fixture *f = *state;
    struct judge judge;
    memory_exempt = true;
    f->in.len = 0;
    judge_init(&judge);
    size_t body = 0;
    for (size_t i = 0; i < 100; i++) {
        judge.with_trailers = i % 3;
        judge.reply = i % 5 * 30000;
        body += i * 700;
        struct request *r = request_open(f, i * 700);
        for (size_t turns = 0; turns < 20 && !r->closed; turns++)
            judge_turn(f, &judge);
        assert_int_equal(r->closed, 1);
        assert_int_equal(r->ended_by, H2_ENDED_COMPLETE);
        assert_int_equal(r->received, judge.reply);
        assert_int_equal(r->heads, 1 + judge.with_trailers);
    }
    assert_int_equal(judge.requests, 100);
    assert_int_equal(judge.ended, 100);
    assert_int_equal(judge.bytes, body);
    assert_int_equal(judge.resets, 0);
    nghttp2_session_del(judge.session);
}

/* What a server may change and refuse at any time, against requests that begin, park and are
 * cancelled at any time. */
static void nghttp2_finds_no_fault_in_a_random_life(void **state)
{
    struct client_fixture *f = *state;
    struct judge judge;
    memory_exempt = true;
    seed = 5;
    f->in.len = 0;
    judge_init(&judge);
    judge.early = true;
    size_t complete = 0, refused = 0;
    for (size_t turn = 0; turn < 3000; turn++) {
        uint32_t choice = next_random() % 16;
        struct request *any = f->count ? f->requests[next_random() % f->count] : NULL;
        if (choice < 6)
            client_request(f, request_new(f, next_random() % 8 ? next_random() % 3000 : 100000));
        else if (choice == 6)
            judge_setting(&judge, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, next_random() % 100000);
        else if (choice == 7)
            judge_setting(&judge, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 1 + next_random() % 20);
        else if (choice == 8)
            judge_setting(&judge, NGHTTP2_SETTINGS_MAX_FRAME_SIZE, 16384 + next_random() % 90000);
        else if (choice == 9)
            judge.refuses = next_random() % 4 == 0;
        else if (choice == 11 && any && any->id && !any->closed)
            h2_stream_reset(&any->stream, H2_CANCEL);
        else if (choice == 12)
            assert_int_equal(nghttp2_submit_ping(judge.session, 0, NULL), 0);
        if (f->count >= REQUESTS_MAX - 2)
            break;
        f->now += H2_SECOND_NS; /* so that SETTINGS are not a flood */
        judge_turn(f, &judge);
        assert_false(h2_session_failed(f->session));
    }
    judge_setting(&judge, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 100000);
    for (size_t turns = 0; turns < 200; turns++)
        judge_turn(f, &judge);
    assert_int_equal(h2_session_streams(f->session), 0);
    for (size_t i = 0; i < f->count; i++) {
        const struct request *r = f->requests[i];
        complete += r->closed && r->ended_by == H2_ENDED_COMPLETE && r->heads == 2;
        refused += r->unprocessed;
    }
    assert_true(complete > 200);
    assert_true(refused > 20);
    nghttp2_session_del(judge.session);
}

static void nghttp2_leaves_without_losing_a_request(void **state)
{
    struct client_fixture *f = *state;
    struct judge judge;
    memory_exempt = true;
    f->in.len = 0;
    judge_init(&judge);
    struct request *r = request_open(f, 10);
    judge.reply = 20 * (size_t)f->limits.stream_window;
    judge_turn(f, &judge);
    assert_int_equal(r->closed, 0);
    assert_int_equal(nghttp2_submit_shutdown_notice(judge.session), 0);
    struct request *late = request_open(f, 10);
    judge_turn(f, &judge);
    int32_t last = nghttp2_session_get_last_proc_stream_id(judge.session);
    assert_int_equal(nghttp2_submit_goaway(judge.session, 0, last, NGHTTP2_NO_ERROR, NULL, 0), 0);
    for (size_t turns = 0; turns < 100; turns++)
        judge_turn(f, &judge);
    assert_int_equal(f->goaways, 2);
    assert_int_equal(r->received, judge.reply);
    assert_int_equal(late->received, judge.reply); /* sent before the notice was read */
    assert_true(h2_session_over(f->session));
    nghttp2_session_del(judge.session);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, client_setup, client_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_roles_exchange_for_every_split_of_the_bytes),
        cmocka_unit_test(client_without_memory_ends_cleanly),
        TEST(nghttp2_serves_our_requests),
        TEST(nghttp2_finds_no_fault_in_a_random_life),
        TEST(nghttp2_leaves_without_losing_a_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
