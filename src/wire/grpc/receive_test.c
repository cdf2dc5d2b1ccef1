/* Which messages are accepted from which callers, and the memory they may use. */
#include "wire/grpc/fixture_test.h"

static void caller_is_admitted_before_a_part_of_its_message_is_kept(void **state)
{
    struct fixture *f = *state;
    struct guard_test g = {0};
    struct grpc_guard guard = {.admit = guard_admit, .ctx = &g};
    grpc_services_guard(f->services, &guard);
    test_call(&f->in, 1, "/t.T/Echo");
    test_frame(&f->in, H2_DATA, 0, 1, SLICE_LITERAL("\0\0\0\0\11part"));
    exchange(f);
    assert_int_equal(g.asked, 1);
    assert_ended(f, 1, GRPC_PERMISSION_DENIED, "etcdserver: permission denied");
}

static void reset(struct fixture *f, uint32_t id)
{
    static const uint8_t cancel[] = {0, 0, 0, H2_CANCEL};
    test_frame(&f->in, H2_RST_STREAM, 0, id, slice_of(cancel, sizeof(cancel)));
}

static void unfinished_requests_are_charged(void **state)
{
    struct fixture *f = *state;
    static uint8_t bytes[16000];
    size_t open;
    bytes[2] = 1; /* the message is longer than 64 KiB */
    test_memory_init(&f->memory, LIMIT);
    for (uint32_t id = 1; id <= 99; id += 2) {
        test_call(&f->in, id, "/t.T/Echo");
        test_frame(&f->in, H2_DATA, 0, id, slice_of(bytes, sizeof(bytes)));
    }
    exchange(f);
    assert_true(refused(f, 99, &open) > 0);
    assert_in_range(open, 20, LIMIT / 16 * 7 / sizeof(bytes));
    assert_in_range(account_held_bytes(f->memory.account), open * sizeof(bytes), LIMIT / 16 * 7);
    for (uint32_t id = 1; id <= 99; id += 2)
        reset(f, id);
    exchange(f);
    assert_in_range(account_held_bytes(f->memory.account), 0, 1024); /* a few control frames */
}

/* Even if the service has finished the call: the client has not read the answer. */
static void answers_are_charged_until_they_are_sent(void **state)
{
    struct fixture *f = *state;
    static const uint8_t bytes[10000];
    size_t open;
    test_memory_init(&f->memory, LIMIT);
    test_setting(&f->in, H2_SETTING_INITIAL_WINDOW_SIZE, 0);
    for (uint32_t id = 1; id <= 99; id += 2) {
        test_call(&f->in, id, "/t.T/Echo");
        test_message(&f->in, id, H2_FLAG_END_STREAM, slice_of(bytes, sizeof(bytes)));
    }
    exchange(f);
    assert_true(refused(f, 99, &open) > 0);
    assert_in_range(open, 10, LIMIT / 16 * 7 / (2 * sizeof(bytes)));
    assert_in_range(account_held_bytes(f->memory.account), open * 2 * sizeof(bytes), LIMIT / 2);
    test_setting(&f->in, H2_SETTING_INITIAL_WINDOW_SIZE, 1 << 20);
    test_window(&f->in, 0, 1 << 24);
    exchange(f);
    (void)refused(f, 99, &open);
    assert_int_equal(open, 0);
    assert_in_range(account_held_bytes(f->memory.account), 0, 1024);
}

static void messages_of_a_stream_are_charged_until_they_are_sent(void **state)
{
    struct fixture *f = *state;
    static const uint8_t bytes[10000];
    test_memory_init(&f->memory, LIMIT);
    test_setting(&f->in, H2_SETTING_INITIAL_WINDOW_SIZE, 0);
    test_call(&f->in, 1, "/t.T/Chat");
    for (int i = 0; i < 100; i++)
        test_message(&f->in, 1, 0, slice_of(bytes, sizeof(bytes)));
    exchange(f);
    assert_in_range(f->service.messages, 30, LIMIT / 16 * 7 / sizeof(bytes) + 1);
    assert_in_range(account_held_bytes(f->memory.account), 30 * sizeof(bytes), LIMIT / 2);
    reset(f, 1);
    exchange(f);
    assert_in_range(account_held_bytes(f->memory.account), 0, 1024);
}

static void calls_without_a_message_are_charged(void **state)
{
    struct fixture *f = *state;
    test_memory_init(&f->memory, LIMIT);
    for (uint32_t id = 1; id <= 1999; id += 2)
        test_call(&f->in, id, "/t.T/Echo");
    exchange(f);
    assert_in_range(account_held_bytes(f->memory.account), LIMIT / 4, LIMIT / 16 * 7);
    assert_int_equal(test_error(buf_slice(&f->out), 1999), H2_REFUSED_STREAM);
}

/* An operation may be in progress on another thread and use the call's arena. */
static void held_call_is_charged_after_its_connection(void **state)
{
    struct fixture *f = *state;
    static const uint8_t bytes[50000];
    f->service.hold = 1;
    test_memory_init(&f->memory, LIMIT);
    test_call(&f->in, 1, "/t.T/Wait");
    test_message(&f->in, 1, H2_FLAG_END_STREAM, slice_of(bytes, sizeof(bytes)));
    exchange(f);
    struct grpc_call *call = f->service.call;
    wire_connection_free(f->connection);
    f->connection = NULL;
    assert_true(account_held_bytes(f->memory.account) >= sizeof(bytes));
    account_unref(f->memory.account);
    f->memory.account = NULL;
    assert_non_null(arena_alloc(grpc_call_arena(call), sizeof(bytes)));
    assert_true(budget_stats(f->memory.budget).held_bytes >= 2 * sizeof(bytes));
    grpc_call_release(call);
    assert_int_equal(budget_stats(f->memory.budget).held_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(caller_is_admitted_before_a_part_of_its_message_is_kept),
        TEST(unfinished_requests_are_charged),
        TEST(answers_are_charged_until_they_are_sent),
        TEST(messages_of_a_stream_are_charged_until_they_are_sent),
        TEST(calls_without_a_message_are_charged),
        TEST(held_call_is_charged_after_its_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
