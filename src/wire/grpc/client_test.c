/* Calls from the client's side, answered by our own server. */
#include "wire/grpc/client.h"

#include "base/failing_memory_test.h"
#include "wire/grpc/client_fixture_test.h"
#include "wire/grpc/services_test.h"
#include "wire/grpc/timeout.h"

struct joined {
    struct client_fixture client;
    struct wire_limits limits;
    struct grpc_services *services;
    struct wire_server *server;
    struct wire_connection *connection;
    struct test_service service;
    size_t step; /* the pieces in which bytes arrive */
};

static void joined_init(struct joined *j, size_t step)
{
    *j = (struct joined){.step = step, .limits = WIRE_LIMITS_DEFAULT};
    struct wire_hooks hooks = {0};
    assert_int_equal(grpc_services_new(&j->services), ST_OK);
    assert_int_equal(
        grpc_services_add(j->services, test_methods, COUNT_OF(test_methods), &j->service), ST_OK);
    assert_int_equal(wire_server_new(j->services, NULL, &j->limits, &j->server), ST_OK);
    assert_int_equal(wire_connection_new(j->server, hooks, H2_SECOND_NS, &j->connection), ST_OK);
    client_init(&j->client);
}

static void joined_fini(struct joined *j)
{
    client_fini(&j->client);
    wire_connection_free(j->connection);
    wire_server_free(j->server);
    grpc_services_free(j->services);
}

static void to_server(struct joined *j)
{
    uint8_t room[H2_FILL_ROOM_MIN];
    struct client_fixture *f = &j->client;
    while (h2_session_wants_write(f->session)) {
        memory_exempt = false;
        size_t n = h2_session_fill(f->session, room, sizeof(room), f->now);
        memory_exempt = true;
        client_check(f);
        for (size_t i = 0; i < n; i += j->step)
            wire_connection_feed(j->connection, slice_of(room + i, size_min(j->step, n - i)),
                                 f->now);
        if (n == 0)
            break;
    }
}

static void to_client(struct joined *j)
{
    static uint8_t room[WIRE_FILL_ROOM_MIN];
    struct client_fixture *f = &j->client;
    while (wire_connection_wants_write(j->connection)) {
        size_t n = wire_connection_fill(j->connection, room, sizeof(room), f->now);
        for (size_t i = 0; i < n; i += j->step) {
            memory_exempt = false;
            h2_session_feed(f->session, slice_of(room + i, size_min(j->step, n - i)), f->now);
            memory_exempt = true;
            client_check(f);
        }
        if (n == 0)
            break;
    }
}

static void exchange(struct joined *j)
{
    for (size_t turns = 0; turns < 30; turns++) {
        to_server(j);
        to_client(j);
    }
}

static int setup(void **state)
{
    struct joined *j = malloc(sizeof(*j));
    memory_exempt = true;
    joined_init(j, SIZE_MAX / 2);
    client_start(&j->client);
    exchange(j);
    *state = j;
    return 0;
}

static int teardown(void **state)
{
    joined_fini(*state);
    free(*state);
    return 0;
}

static void assert_outcome(const struct recorded_call *r, enum grpc_code code, const char *text,
                           bool from_peer)
{
    assert_int_equal(r->ended, r->started);
    if (strcmp(r->text, text) != 0)
        print_error("text: %s\n", r->text);
    assert_int_equal(r->code, code);
    assert_string_equal(r->text, text);
    assert_int_equal(r->from_peer, from_peer);
}

static struct recorded_call *unary(struct joined *j, const char *path, struct slice message)
{
    struct recorded_call *r = recorded_call(&j->client, path);
    assert_int_equal(grpc_client_call_send(&r->call, message), ST_OK);
    grpc_client_call_half_close(&r->call);
    return r;
}

static void unary_call_is_answered(void **state)
{
    struct joined *j = *state;
    struct recorded_call *r = unary(j, "/t.T/Echo", SLICE_LITERAL("hello"));
    exchange(j);
    assert_outcome(r, GRPC_OK, "", true);
    assert_int_equal(r->messages, 1);
    assert_int_equal(r->bytes, 5);
    assert_int_equal(j->service.half_closes, 0);
}

static void empty_messages_are_messages(void **state)
{
    struct joined *j = *state;
    struct recorded_call *r = unary(j, "/t.T/Echo", SLICE_EMPTY);
    struct recorded_call *chat = recorded_call(&j->client, "/t.T/Chat");
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(grpc_client_call_send(&chat->call, SLICE_EMPTY), ST_OK);
    exchange(j);
    assert_outcome(r, GRPC_OK, "", true);
    assert_int_equal(r->messages, 1);
    assert_int_equal(chat->messages, 5);
}

static void status_of_the_server_is_delivered_with_its_text(void **state)
{
    struct joined *j = *state;
    static const char text[] = "100% fäls\n\x01";
    struct recorded_call *compacted = unary(j, "/t.T/Fail", SLICE_EMPTY);
    struct recorded_call *odd = unary(j, "/t.T/Fail", slice_from_text(text));
    struct recorded_call *unknown = unary(j, "/t.T/Nope", SLICE_EMPTY);
    exchange(j);
    assert_outcome(compacted, GRPC_OUT_OF_RANGE, status_text(ST_COMPACTED), true);
    assert_outcome(odd, GRPC_NOT_FOUND, text, true);
    assert_int_equal(unknown->code, GRPC_UNIMPLEMENTED);
    assert_true(unknown->from_peer);
    for (size_t i = 0; i < 3; i++)
        assert_false(j->client.calls[i]->unprocessed);
}

static void stream_carries_messages_both_ways_until_it_is_half_closed(void **state)
{
    struct joined *j = *state;
    struct recorded_call *r = recorded_call(&j->client, "/t.T/Chat");
    static uint8_t bytes[100000];
    size_t sent = 0;
    for (size_t i = 0; i < 200; i++) {
        size_t len = i % 50 == 49 ? sizeof(bytes) : i;
        sent += len;
        assert_int_equal(grpc_client_call_send(&r->call, slice_of(bytes, len)), ST_OK);
        if (i % 3 == 0)
            exchange(j);
    }
    exchange(j);
    assert_int_equal(r->messages, 200);
    assert_int_equal(r->bytes, sent);
    assert_int_equal(r->ended, 0);
    assert_int_equal(grpc_client_call_queued_bytes(&r->call), 0);
    grpc_client_call_half_close(&r->call);
    exchange(j);
    assert_outcome(r, GRPC_OK, "", true);
    assert_int_equal(j->service.half_closes, 1);
}

static void drained_call_can_queue_more(void **state)
{
    struct joined *j = *state;
    struct recorded_call *r = recorded_call(&j->client, "/t.T/Chat");
    r->refills = 3;
    assert_int_equal(grpc_client_call_send(&r->call, SLICE_LITERAL("first")), ST_OK);
    exchange(j);
    assert_int_equal(r->messages, 1 + 1); /* each time when the queue was written */
    assert_int_equal(r->refills, 2);
    assert_int_equal(grpc_client_call_send(&r->call, SLICE_LITERAL("second")), ST_OK);
    exchange(j);
    assert_int_equal(r->messages, 4);
}

static void cancelled_call_ends_on_both_sides(void **state)
{
    struct joined *j = *state;
    struct recorded_call *waits = unary(j, "/t.T/Wait", SLICE_LITERAL("x"));
    exchange(j);
    assert_int_equal(j->service.messages, 1);
    grpc_client_call_cancel(&waits->call);
    assert_outcome(waits, GRPC_CANCELLED, "context canceled", false);
    assert_false(waits->unprocessed);
    struct recorded_call *unsent = unary(j, "/t.T/Wait", SLICE_LITERAL("x"));
    grpc_client_call_end(&unsent->call, GRPC_DEADLINE_EXCEEDED, "context deadline exceeded");
    assert_outcome(unsent, GRPC_DEADLINE_EXCEEDED, "context deadline exceeded", false);
    assert_true(unsent->unprocessed);
    grpc_client_call_cancel(&unsent->call); /* it is over */
    exchange(j);
    assert_int_equal(j->service.ends, 1);
    assert_int_equal(j->service.messages, 1);
}

static void call_may_be_cancelled_within_on_message(void **state)
{
    struct joined *j = *state;
    struct recorded_call *r = recorded_call(&j->client, "/t.T/Chat");
    r->cancel_at = 2;
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(grpc_client_call_send(&r->call, SLICE_LITERAL("hello")), ST_OK);
    exchange(j);
    assert_outcome(r, GRPC_CANCELLED, "context canceled", false);
    assert_int_equal(r->messages, 2);
}

static void call_may_be_freed_when_it_ends(void **state)
{
    struct joined *j = *state;
    for (size_t step = 1; step < 60; step++) { /* the message arrives in pieces, or in one */
        struct recorded_call *r = recorded_call(&j->client, "/t.T/Chat");
        j->step = step;
        r->cancel_at = 1;
        r->frees = true;
        for (size_t i = 0; i < 3; i++)
            assert_int_equal(grpc_client_call_send(&r->call, SLICE_LITERAL("hello")), ST_OK);
        exchange(j);
        assert_int_equal(j->client.count, 0);
    }
    assert_int_equal(j->service.ends, 59);
}

/* Cancelled within a message, started again within on_end: the rest of the input belongs to the
 * stream before. */
static void call_may_be_started_again_when_it_ends(void **state)
{
    struct joined *j = *state;
    struct recorded_call *r = recorded_call(&j->client, "/t.T/Chat");
    r->cancel_at = 1;
    r->restarts = 1;
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(grpc_client_call_send(&r->call, SLICE_LITERAL("hello")), ST_OK);
    exchange(j);
    assert_int_equal(r->started, 2);
    assert_int_equal(r->messages, 1);
    assert_int_equal(r->call.output.len, 0);
    assert_int_equal(grpc_client_call_send(&r->call, SLICE_LITERAL("again")), ST_OK);
    grpc_client_call_half_close(&r->call);
    exchange(j);
    assert_outcome(r, GRPC_OK, "", true);
    assert_int_equal(r->messages, 2);
}

static void replayable_call_sends_its_message_again(void **state)
{
    struct joined *j = *state;
    struct recorded_call *r = recorded_new(&j->client);
    j->client.request.replayable = true;
    j->client.request.path = SLICE_LITERAL("/t.T/Echo");
    assert_int_equal(grpc_client_call_send(&r->call, SLICE_LITERAL("hello")), ST_OK);
    grpc_client_call_half_close(&r->call);
    r->restarts = 2;
    recorded_start(r);
    exchange(j);
    assert_int_equal(r->ended, 3);
    assert_outcome(r, GRPC_OK, "", true);
    assert_int_equal(r->messages, 3);
    assert_int_equal(r->bytes, 15);
    grpc_client_call_clear(&r->call);
    assert_int_equal(grpc_client_call_send(&r->call, SLICE_LITERAL("other message")), ST_OK);
    grpc_client_call_half_close(&r->call);
    recorded_start(r);
    exchange(j);
    assert_int_equal(r->bytes, 15 + 13);
}

/* A recycled call and its session need no memory once their buffers exist. */
static void repeated_calls_allocate_nothing(void **state)
{
    struct joined *j = *state;
    struct recorded_call *r = recorded_new(&j->client);
    j->client.request.path = SLICE_LITERAL("/t.T/Echo");
    for (size_t i = 0; i < 100; i++) {
        if (i == 10)
            memory_allocations = 0;
        memory_exempt = false;
        assert_int_equal(grpc_client_call_send(&r->call, SLICE_LITERAL("hello")), ST_OK);
        grpc_client_call_half_close(&r->call);
        recorded_start(r);
        memory_exempt = true;
        to_server(j);
        to_client(j);
        assert_int_equal(r->ended, i + 1);
    }
    assert_int_equal(memory_allocations, 0);
}

static void withheld_call_stops_the_server(void **state)
{
    struct joined *j = *state;
    struct recorded_call *held = recorded_call(&j->client, "/t.T/Chat");
    struct recorded_call *other = recorded_call(&j->client, "/t.T/Chat");
    static uint8_t bytes[50000];
    held->withhold_at = 1;
    for (size_t i = 0; i < 40; i++) {
        assert_int_equal(grpc_client_call_send(&held->call, slice_of(bytes, sizeof(bytes))), ST_OK);
        assert_int_equal(grpc_client_call_send(&other->call, slice_of(bytes, sizeof(bytes))),
                         ST_OK);
        exchange(j);
    }
    assert_int_equal(other->messages, 40);
    assert_true(held->bytes <= j->client.limits.stream_window + sizeof(bytes));
    assert_true(held->messages >= 2);
    grpc_client_call_withhold(&held->call, false);
    exchange(j);
    assert_int_equal(held->messages, 40);
    held->withhold_at = 41;
    assert_int_equal(grpc_client_call_send(&held->call, SLICE_EMPTY), ST_OK);
    grpc_client_call_half_close(&held->call);
    exchange(j);
    assert_outcome(held, GRPC_OK, "", true);
    assert_false(held->call.withheld); /* the next call is not withheld */
}

static void message_beyond_the_window_arrives_whole(void **state)
{
    struct joined *j = *state;
    const size_t len = 1500000; /* the server receives up to 2 MiB */
    uint8_t *bytes = malloc(len);
    memset(bytes, 'm', len);
    struct recorded_call *r = unary(j, "/t.T/Echo", slice_of(bytes, len));
    exchange(j);
    assert_outcome(r, GRPC_OK, "", true);
    assert_int_equal(r->bytes, len);
    assert_true(len > j->client.limits.stream_window);
    assert_true(r->call.message.capacity <= 16 * 1024 && r->call.output.capacity <= 4096);
    free(bytes);
}

static void message_beyond_the_limit_ends_the_call(void **state)
{
    struct joined *j = *state;
    j->client.request.receive_max = 4;
    struct recorded_call *fits = unary(j, "/t.T/Echo", SLICE_LITERAL("1234"));
    struct recorded_call *large = unary(j, "/t.T/Echo", SLICE_LITERAL("12345"));
    exchange(j);
    assert_outcome(fits, GRPC_OK, "", true);
    assert_outcome(large, GRPC_RESOURCE_EXHAUSTED,
                   "grpc: received message larger than max (5 vs. 4)", false);
    assert_false(large->unprocessed);
}

static void message_without_room_ends_the_call(void **state)
{
    struct joined *j = *state;
    const size_t len = 100000;
    uint8_t *bytes = calloc(1, len);
    struct recorded_call *fits = unary(j, "/t.T/Echo", slice_of(bytes, len));
    struct recorded_call *large = unary(j, "/t.T/Echo", slice_of(bytes, len));
    fits->room = len;
    large->room = len - 1;
    exchange(j);
    assert_outcome(fits, GRPC_OK, "", true);
    assert_int_equal(fits->begun, len);
    assert_outcome(large, GRPC_RESOURCE_EXHAUSTED, "grpc: no room to receive a message", false);
    assert_int_equal(large->begun, len);
    assert_int_equal(large->messages, 0);
    free(bytes);
}

static void lost_connection_makes_calls_unavailable(void **state)
{
    struct joined *j = *state;
    struct recorded_call *sent = unary(j, "/t.T/Wait", SLICE_LITERAL("x"));
    exchange(j);
    struct recorded_call *unsent = unary(j, "/t.T/Wait", SLICE_LITERAL("x"));
    unsent->restarts = 1; /* fails: the session is over */
    h2_session_lost(j->client.session, "connection reset by peer");
    assert_outcome(sent, GRPC_UNAVAILABLE, "connection error: connection reset by peer", false);
    assert_outcome(unsent, GRPC_UNAVAILABLE, "connection error: connection reset by peer", false);
    assert_false(sent->unprocessed);
    assert_true(unsent->unprocessed);
    assert_int_equal(unsent->started, 1);
}

static void server_that_leaves_answers_what_it_received(void **state)
{
    struct joined *j = *state;
    struct recorded_call *r = unary(j, "/t.T/Wait", SLICE_LITERAL("x"));
    exchange(j);
    wire_connection_shutdown(j->connection, j->client.now);
    to_client(j);
    struct recorded_call *late = recorded_new(&j->client);
    recorded_start(late);
    assert_int_equal(late->started, 0);
    grpc_call_finish(j->service.call);
    exchange(j);
    assert_outcome(r, GRPC_OK, "", true);
    assert_true(h2_session_over(j->client.session));
}

static void server_learns_the_rest_of_the_time(void **state)
{
    struct joined *j = *state;
    j->client.request.deadline_ns = j->client.now + 300000000;
    struct recorded_call *r = unary(j, "/t.T/Wait", SLICE_LITERAL("x"));
    exchange(j);
    struct slice timeout, token, agent;
    assert_true(grpc_call_metadata(j->service.call, SLICE_LITERAL("grpc-timeout"), &timeout));
    assert_true(slice_equal(timeout, SLICE_LITERAL("300000u")));
    assert_true(grpc_call_metadata(j->service.call, SLICE_LITERAL("token"), &token));
    assert_true(slice_equal(token, SLICE_LITERAL("secret")));
    assert_true(grpc_call_metadata(j->service.call, SLICE_LITERAL("user-agent"), &agent));
    assert_true(slice_equal(agent, SLICE_LITERAL("test/1")));
    j->client.now += 300000000;
    wire_connection_tick(j->connection, j->client.now);
    exchange(j);
    assert_outcome(r, GRPC_DEADLINE_EXCEEDED, "context deadline exceeded", true);
}

static void head_larger_than_the_server_accepts_is_not_sent(void **state)
{
    struct joined *j = *state;
    struct recorded_call *r = recorded_new(&j->client);
    struct buf settings = {0};
    size_t list = grpc_head_list_bytes(j->client.head, SLICE_LITERAL("/t.T/Echo"));
    j->client.request.path = SLICE_LITERAL("/t.T/Echo");
    test_setting(&settings, H2_SETTING_MAX_HEADER_LIST_SIZE, (uint32_t)list - 1);
    h2_session_feed(j->client.session, buf_slice(&settings), j->client.now);
    assert_int_equal(grpc_client_call_start(&r->call, j->client.session, &j->client.request),
                     ST_LIMIT);
    settings.len = 0;
    test_setting(&settings, H2_SETTING_MAX_HEADER_LIST_SIZE, (uint32_t)list);
    h2_session_feed(j->client.session, buf_slice(&settings), j->client.now);
    recorded_start(r);
    assert_int_equal(r->started, 1);
    buf_fini(&settings);
}

static void written_head_has_at_most_its_size(void **state)
{
    struct joined *j = *state;
    struct slice path = SLICE_LITERAL("/t.T/Echo");
    const struct hpack_limits limits = {4096, 100};
    size_t most = grpc_head_bytes(j->client.head, path);
    uint8_t *room = malloc(most); /* exactly as much, so that a sanitizer sees more */
    static const int64_t timeouts[] = {INT64_MAX, INT64_MAX - 1, 99999999, -1};
    for (size_t i = 0; i < COUNT_OF(timeouts); i++) {
        uint8_t *end = grpc_head_write(j->client.head, path, timeouts[i], room);
        assert_true((size_t)(end - room) <= most);
        struct hpack_decoder decoder;
        struct h2_headers *headers = NULL;
        hpack_decoder_init(&decoder);
        assert_int_equal(hpack_decode(&decoder, slice_of(room, (size_t)(end - room)), H2_REQUEST,
                                      &limits, &headers),
                         ST_OK);
        assert_false(headers->malformed);
        assert_true(slice_equal(headers->path, path));
        assert_true(slice_equal(headers->scheme, SLICE_LITERAL("http")));
        assert_true(slice_equal(headers->authority, SLICE_LITERAL("localhost:2379")));
        size_t list = 0;
        for (uint32_t k = 0; k < headers->count; k++)
            list += headers->fields[k].name.len + headers->fields[k].value.len + 32;
        assert_true(list <= grpc_head_list_bytes(j->client.head, path));
        if (timeouts[i] == 99999999)
            assert_int_equal(list, grpc_head_list_bytes(j->client.head, path));
        h2_headers_unref(headers);
        hpack_decoder_fini(&decoder);
    }
    free(room);
}

static void malformed_fields_make_no_head(void **state)
{
    (void)state;
    static char large[2 * H2_BLOCK_BYTES_MAX];
    memset(large, 'x', sizeof(large) - 1);
    const struct {
        const char *name, *value;
        enum status status;
    } rows[] = {
        {"token", "fine", ST_OK},           {"Token", "upper case", ST_INVALID},
        {"a b", "blank", ST_INVALID},       {"token", "line\nbreak", ST_INVALID},
        {"token", " blank", ST_INVALID},    {":path", "pseudo", ST_INVALID},
        {"grpc-timeout", "1S", ST_INVALID}, {"content-type", "text/html", ST_INVALID},
        {"connection", "x", ST_INVALID},    {"", "x", ST_INVALID},
        {"token", large, ST_LIMIT},         {"te", "trailers", ST_INVALID},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct http_field field = {slice_from_text(rows[i].name), slice_from_text(rows[i].value)};
        struct grpc_head_fields fields = {
            .authority = SLICE_LITERAL("x"), .metadata = &field, .metadata_count = 1};
        struct grpc_head *head = NULL;
        assert_int_equal(grpc_head_new(&fields, &head), rows[i].status);
        grpc_head_unref(head);
        fields.authority = SLICE_EMPTY;
        assert_true(grpc_head_new(&fields, &head) != ST_OK);
    }
}

/* ---- cuts and failures at every place ---- */

static void life_of_calls(struct joined *j)
{
    static const uint8_t bytes[3000];
    struct recorded_call *chat = recorded_new(&j->client);
    struct recorded_call *echo = recorded_new(&j->client), *fail = recorded_new(&j->client);
    j->client.request.path = SLICE_LITERAL("/t.T/Chat");
    memory_exempt = false;
    recorded_start(chat);
    if (chat->started) {
        (void)!grpc_client_call_send(&chat->call, SLICE_LITERAL("one"));
        (void)!grpc_client_call_send(&chat->call, slice_of(bytes, sizeof(bytes)));
    }
    j->client.request.path = SLICE_LITERAL("/t.T/Echo");
    if (grpc_client_call_send(&echo->call, slice_of(bytes, 700)) == ST_OK) {
        grpc_client_call_half_close(&echo->call);
        recorded_start(echo);
    }
    j->client.request.path = SLICE_LITERAL("/t.T/Fail");
    if (grpc_client_call_send(&fail->call, SLICE_LITERAL("no%")) == ST_OK) {
        grpc_client_call_half_close(&fail->call);
        recorded_start(fail);
    }
    memory_exempt = true;
    exchange(j);
    if (grpc_client_call_is_open(&chat->call))
        grpc_client_call_half_close(&chat->call);
    exchange(j);
}

static void calls_work_for_every_split_of_the_bytes(void **state)
{
    (void)state;
    struct joined *j = malloc(sizeof(*j));
    memory_exempt = true;
    for (size_t step = 1; step < 200; step++) {
        joined_init(j, step);
        client_start(&j->client);
        life_of_calls(j);
        const struct recorded_call *chat = j->client.calls[0], *echo = j->client.calls[1];
        assert_outcome(chat, GRPC_OK, "", true);
        assert_int_equal(chat->messages, 2);
        assert_int_equal(chat->bytes, 3003);
        assert_outcome(echo, GRPC_OK, "", true);
        assert_int_equal(echo->bytes, 700);
        assert_outcome(j->client.calls[2], GRPC_NOT_FOUND, "no%", true);
        joined_fini(j);
    }
    free(j);
}

/* A call that ended with OK has delivered all of its message. */
static void run_without_memory(void *ctx)
{
    struct joined *j = ctx;
    memory_exempt = true;
    joined_init(j, 500);
    client_start(&j->client);
    life_of_calls(j);
    const struct recorded_call *echo = j->client.calls[1];
    if (echo->started && echo->ended && echo->code == GRPC_OK)
        assert_int_equal(echo->bytes, 700);
    joined_fini(j);
}

static void calls_without_memory_end_cleanly(void **state)
{
    (void)state;
    struct joined *j = malloc(sizeof(*j));
    assert_true(each_allocation_fails(run_without_memory, j) > 5);
    free(j);
}

static void head_without_memory_is_refused(void **state)
{
    (void)state;
    struct grpc_head_fields fields = {.authority = SLICE_LITERAL("x")};
    struct grpc_head *head = NULL;
    memory_exempt = false;
    size_t failures = 0;
    for (size_t n = 1; !head; n++) {
        memory_fail_at = n;
        enum status status = grpc_head_new(&fields, &head);
        assert_true(status == ST_OK || status == ST_NOMEM);
        failures += status == ST_NOMEM;
    }
    memory_fail_at = 0;
    assert_true(failures >= 2);
    memory_exempt = true;
    grpc_head_unref(head);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(unary_call_is_answered),
        TEST(empty_messages_are_messages),
        TEST(status_of_the_server_is_delivered_with_its_text),
        TEST(stream_carries_messages_both_ways_until_it_is_half_closed),
        TEST(drained_call_can_queue_more),
        TEST(cancelled_call_ends_on_both_sides),
        TEST(call_may_be_cancelled_within_on_message),
        TEST(call_may_be_freed_when_it_ends),
        TEST(call_may_be_started_again_when_it_ends),
        TEST(replayable_call_sends_its_message_again),
        TEST(repeated_calls_allocate_nothing),
        TEST(withheld_call_stops_the_server),
        TEST(message_beyond_the_window_arrives_whole),
        TEST(message_beyond_the_limit_ends_the_call),
        TEST(message_without_room_ends_the_call),
        TEST(lost_connection_makes_calls_unavailable),
        TEST(server_that_leaves_answers_what_it_received),
        TEST(server_learns_the_rest_of_the_time),
        TEST(head_larger_than_the_server_accepts_is_not_sent),
        TEST(written_head_has_at_most_its_size),
        cmocka_unit_test(malformed_fields_make_no_head),
        cmocka_unit_test(calls_work_for_every_split_of_the_bytes),
        cmocka_unit_test(calls_without_memory_end_cleanly),
        cmocka_unit_test(head_without_memory_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
