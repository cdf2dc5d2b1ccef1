/* The Watch service over a real connection, the watch layer and the fake engine's history. */
#include "codec/pb/rpc.pb.h"
#include "etcd/peer_calls_test.h"

#include <stdio.h>

enum { WATCHERS_MAX = 5000 };

static struct peer *watching_peer(uint32_t stream_window)
{
    struct peer *p = malloc(sizeof(*p));
    assert_non_null(p);
    struct fake_options options = {.seed = 1,
                                   .inline_percent = 100,
                                   .identity = peer_identity,
                                   .watchers_max = WATCHERS_MAX,
                                   .watch_progress_ns = 1000};
    peer_init(p, &peer_config, &options, stream_window, 0);
    return p;
}

static int setup(void **state)
{
    *state = watching_peer(1 << 30);
    return 0;
}

static int teardown(void **state)
{
    peer_free(*state);
    return 0;
}

/* -- Requests -- */

static uint32_t open_watch(struct peer *p)
{
    return peer_open(p, PB_WATCH_WATCH_PATH, SLICE_LITERAL("3.7"));
}

static void send(struct peer *p, uint32_t id, const struct pb_watch_request *request)
{
    uint8_t bytes[1024];
    size_t size = pb_size(&pb_watch_request_table, request);
    assert_true(size <= sizeof(bytes));
    pb_encode(&pb_watch_request_table, request, bytes, size);
    peer_send(p, id, slice_of(bytes, size), false);
}

static void create_with(struct peer *p, uint32_t id, struct pb_watch_create_request request)
{
    send(p, id,
         &(struct pb_watch_request){.request_union_case = PB_WATCH_REQUEST_CREATE_REQUEST,
                                    .create_request = &request});
}

static void create(struct peer *p, uint32_t id, const char *key)
{
    create_with(p, id, (struct pb_watch_create_request){.key = slice_from_text(key)});
}

static void cancel(struct peer *p, uint32_t id, int64_t watch_id)
{
    struct pb_watch_cancel_request request = {.watch_id = watch_id};
    send(p, id,
         &(struct pb_watch_request){.request_union_case = PB_WATCH_REQUEST_CANCEL_REQUEST,
                                    .cancel_request = &request});
}

static void progress(struct peer *p, uint32_t id)
{
    struct pb_watch_progress_request request = {0};
    send(p, id,
         &(struct pb_watch_request){.request_union_case = PB_WATCH_REQUEST_PROGRESS_REQUEST,
                                    .progress_request = &request});
}

static void ignore_done(struct engine_op *op)
{
    assert_int_equal(op->status, ST_OK);
}

static void put(struct peer *p, const char *key, const char *value)
{
    struct engine_write write = {.op = {.done = ignore_done, .arena = &p->arena}};
    struct pb_put_request request = {.key = slice_from_text(key), .value = slice_from_text(value)};
    engine_put(p->shard, &write, &request);
    engine_write_close(&write);
}

static void delete (struct peer *p, const char *key)
{
    struct engine_write write = {.op = {.done = ignore_done, .arena = &p->arena}};
    struct pb_delete_range_request request = {.key = slice_from_text(key)};
    engine_delete_range(p->shard, &write, &request);
    engine_write_close(&write);
}

/* -- Responses -- */

/* "id created canceled reason revision: PUT key=value<previous …". */
static void response_text(const struct pb_watch_response *r, char *text, size_t room)
{
    int n = snprintf(text, room, "%lld%s%s%s%.*s @%lld", (long long)r->watch_id,
                     r->created ? " created" : "", r->canceled ? " canceled" : "",
                     r->cancel_reason.len ? " because " : "", (int)r->cancel_reason.len,
                     (const char *)r->cancel_reason.ptr, (long long)r->header->revision);
    for (size_t i = 0; i < r->events_count; i++) {
        const struct pb_event *e = &r->events[i];
        n += snprintf(text + n, room - (size_t)n, " %s %.*s=%.*s%s%.*s",
                      e->type == PB_EVENT_TYPE_PUT ? "PUT" : "DELETE", SLICE_ARGS(e->kv->key),
                      SLICE_ARGS(e->kv->value), e->prev_kv ? "<" : "",
                      e->prev_kv ? (int)e->prev_kv->value.len : 0,
                      e->prev_kv ? (const char *)e->prev_kv->value.ptr : "");
    }
}

/* The responses of the call since `at`, one per line. */
static const char *responses(struct peer *p, uint32_t id, size_t *at)
{
    static char text[8192];
    struct pb_watch_response r;
    text[0] = 0;
    while (next_message(p, id, at, &pb_watch_response_table, &r)) {
        assert_int_equal(r.header->cluster_id, 7);
        assert_int_equal(r.header->member_id, 9);
        assert_int_equal(r.header->raft_term, 2);
        size_t n = strlen(text);
        response_text(&r, text + n, sizeof(text) - n);
        n = strlen(text);
        snprintf(text + n, sizeof(text) - n, "\n");
    }
    return text;
}

static void events_follow_the_created_response(void **state)
{
    struct peer *p = *state;
    size_t at = 0;
    put(p, "k", "0");
    uint32_t id = open_watch(p);
    create(p, id, "k");
    peer_turn(p);
    assert_string_equal(responses(p, id, &at), "0 created @2\n");
    assert_true(fake_listens(p->engine));
    put(p, "k", "1");
    put(p, "other", "1");
    peer_turn(p);
    assert_string_equal(responses(p, id, &at), "0 @3 PUT k=1\n");
    delete (p, "k");
    peer_turn(p);
    assert_string_equal(responses(p, id, &at), "0 @5 DELETE k=\n");
}

static void request_options_select_the_events(void **state)
{
    struct peer *p = *state;
    size_t at = 0;
    enum pb_filter_type no_put[] = {PB_FILTER_TYPE_NOPUT, 77},
                        no_delete[] = {PB_FILTER_TYPE_NODELETE};
    put(p, "a", "1");
    put(p, "a", "2");
    delete (p, "a");
    put(p, "b", "3");
    uint32_t id = open_watch(p);
    create_with(p, id,
                (struct pb_watch_create_request){.key = SLICE_LITERAL("a"),
                                                 .start_revision = 3,
                                                 .prev_kv = true,
                                                 .watch_id = 17,
                                                 .filters = (void *)no_delete,
                                                 .filters_count = 1});
    peer_turn(p);
    assert_string_equal(responses(p, id, &at), "17 created @5\n17 @5 PUT a=2<1\n");
    create_with(p, id,
                (struct pb_watch_create_request){.key = SLICE_LITERAL("a"),
                                                 .start_revision = 1,
                                                 .filters = (void *)no_put,
                                                 .filters_count = 2});
    peer_turn(p);
    assert_string_equal(responses(p, id, &at), "0 created @5\n0 @5 DELETE a=\n");
    /* An empty key means the first key, and the range end "\0" means all following keys. */
    create_with(
        p, id,
        (struct pb_watch_create_request){.range_end = SLICE_LITERAL("\0"), .start_revision = 5});
    peer_turn(p);
    assert_string_equal(responses(p, id, &at), "1 created @5\n1 @5 PUT b=3\n");
}

static void cancel_and_progress_are_answered(void **state)
{
    struct peer *p = *state;
    size_t at = 0;
    uint32_t id = open_watch(p);
    create(p, id, "k");
    create(p, id, "k");
    put(p, "other", "1");
    peer_turn(p);
    assert_string_equal(responses(p, id, &at), "0 created @1\n1 created @1\n");
    progress(p, id);
    peer_turn(p);
    assert_string_equal(responses(p, id, &at), "-1 @2\n");
    cancel(p, id, 0);
    cancel(p, id, 0);
    cancel(p, id, 99);
    put(p, "k", "1");
    peer_turn(p);
    assert_string_equal(responses(p, id, &at), "0 canceled @2\n1 @3 PUT k=1\n");
}

static void unknown_requests_are_ignored(void **state)
{
    struct peer *p = *state;
    size_t at = 0;
    uint32_t id = open_watch(p);
    peer_send(p, id, SLICE_EMPTY, false);
    peer_send(p, id, SLICE_LITERAL("\xa2\x06\x01x"), false);
    create(p, id, "k");
    peer_turn(p);
    assert_string_equal(responses(p, id, &at), "0 created @1\n");
}

static void malformed_request_fails_the_call(void **state)
{
    struct peer *p = *state;
    uint32_t id = open_watch(p);
    create(p, id, "k");
    peer_turn(p);
    assert_true(fake_listens(p->engine));
    peer_send(p, id, SLICE_LITERAL("\x0a\xff"), false);
    assert_false(fake_listens(p->engine)); /* the stream was freed */
    create(p, id, "k");
    peer_turn(p);
    assert_true(peer_stream(p, id)->ended);
    assert_int_equal(peer_stream(p, id)->code, GRPC_INTERNAL);
}

static void watch_continues_after_half_close(void **state)
{
    struct peer *p = *state;
    size_t at = 0;
    uint32_t id = open_watch(p);
    create(p, id, "k");
    peer_half_close(p, id);
    peer_turn(p);
    put(p, "k", "1");
    peer_turn(p);
    assert_string_equal(responses(p, id, &at), "0 created @1\n0 @2 PUT k=1\n");
    uint32_t silent = open_watch(p);
    peer_half_close(p, silent);
    peer_turn(p);
    assert_false(peer_stream(p, silent)->ended);
    peer_reset(p, silent);
    peer_turn(p);
}

static void reset_releases_everything(void **state)
{
    struct peer *p = *state;
    uint32_t id = open_watch(p), other = open_watch(p);
    create(p, id, "k");
    create(p, other, "k");
    peer_turn(p);
    peer_reset(p, id);
    assert_true(fake_listens(p->engine));
    put(p, "k", "1");
    peer_turn(p);
    peer_reset(p, other);
    assert_false(fake_listens(p->engine));
    put(p, "k", "2");
    peer_turn(p);
}

static void progress_is_sent_periodically(void **state)
{
    struct peer *p = *state;
    size_t at = 0;
    uint32_t id = open_watch(p);
    create_with(
        p, id,
        (struct pb_watch_create_request){.key = SLICE_LITERAL("k"), .progress_notify = true});
    peer_turn(p);
    put(p, "other", "1");
    peer_turn(p);
    assert_string_equal(responses(p, id, &at), "0 created @1\n");
    fake_set_now(p->engine, 5000);
    peer_turn(p);
    assert_string_equal(responses(p, id, &at), "0 @2\n");
}

static void watchers_of_a_stream_are_limited(void **state)
{
    struct peer *p = *state;
    size_t at = 0;
    uint32_t id = open_watch(p);
    for (int i = 0; i < WATCHERS_MAX; i++) {
        create(p, id, "k");
        if (i % 100 == 0)
            peer_turn(p);
    }
    peer_turn(p);
    at = peer_stream(p, id)->body.len;
    create(p, id, "k");
    peer_turn(p);
    struct pb_watch_response r;
    assert_true(next_message(p, id, &at, &pb_watch_response_table, &r));
    assert_true(r.created && r.canceled && r.cancel_reason.len > 0);
    assert_int_equal(r.watch_id, -1);
    assert_false(peer_stream(p, id)->ended);
}

static void client_that_does_not_read_gets_no_more_window(void **state)
{
    (void)state;
    struct peer *deaf = watching_peer(0);
    uint32_t id = open_watch(deaf);
    create(deaf, id, "k");
    peer_turn(deaf);
    int sent = 0;
    /* First it respects the window, as a client must; then it does not. */
    while (deaf->window_used[id / 2] + 64 < 64 * 1024) {
        create(deaf, id, "a key that takes some room");
        sent++;
        peer_turn(deaf);
    }
    assert_true(sent > 1000);
    assert_false(peer_stream(deaf, id)->ended);
    peer_open_window(deaf, id, 1 << 30);
    peer_turn(deaf);
    create(deaf, id, "k");
    peer_turn(deaf);
    size_t at = 0;
    struct pb_watch_response r;
    for (int i = 0; i < sent + 2; i++) {
        assert_true(next_message(deaf, id, &at, &pb_watch_response_table, &r));
        assert_true(r.created);
        assert_int_equal(r.watch_id, i);
    }
    peer_fini(deaf);
    free(deaf);
}

static void long_response_compacted_before_it_was_read_ends_the_call(void **state)
{
    (void)state;
    struct peer *slow = watching_peer(16 * 1024);
    static char value[300 * 1024];
    memset(value, 'v', sizeof(value) - 1);
    put(slow, "k", value);
    put(slow, "k", "short");
    uint32_t id = open_watch(slow);
    create_with(slow, id,
                (struct pb_watch_create_request){.key = SLICE_LITERAL("k"), .start_revision = 2});
    peer_turn(slow);
    assert_int_equal(peer_stream(slow, id)->body.len, 16 * 1024);

    struct pb_compaction_request request = {.revision = 3};
    struct engine_op op = {.done = ignore_done, .arena = &slow->arena};
    engine_compact(slow->shard, &op, &request);
    peer_open_window(slow, id, 1 << 20);
    peer_turn(slow);
    peer_turn(slow);
    assert_true(peer_stream(slow, id)->ended);
    assert_int_equal(peer_stream(slow, id)->code,
                     GRPC_UNAVAILABLE); /* clients resume after this code */
    assert_false(fake_listens(slow->engine));

    /* After resuming, the client gets the compaction. */
    size_t at = 0;
    id = open_watch(slow);
    create_with(slow, id,
                (struct pb_watch_create_request){.key = SLICE_LITERAL("k"), .start_revision = 2});
    peer_turn(slow);
    struct pb_watch_response r;
    assert_true(next_message(slow, id, &at, &pb_watch_response_table, &r));
    assert_true(r.created && !r.canceled);
    assert_true(next_message(slow, id, &at, &pb_watch_response_table, &r));
    assert_true(r.canceled);
    assert_int_equal(r.compact_revision, 3);
    peer_fini(slow);
    free(slow);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(events_follow_the_created_response),
        TEST(request_options_select_the_events),
        TEST(cancel_and_progress_are_answered),
        TEST(unknown_requests_are_ignored),
        TEST(malformed_request_fails_the_call),
        TEST(watch_continues_after_half_close),
        TEST(reset_releases_everything),
        TEST(progress_is_sent_periodically),
        TEST(watchers_of_a_stream_are_limited),
        cmocka_unit_test(client_that_does_not_read_gets_no_more_window),
        cmocka_unit_test(long_response_compacted_before_it_was_read_ends_the_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
