/* Reads that are forwarded. */
#include "mirror/read_fixture_test.h"

static void expect_forwarded(struct reading *r)
{
    assert_int_equal(r->done, 0);
    assert_int_equal(cluster.count, 1);
    assert_true(slice_equal(range_of(call_at(0)).key, r->request.key));
    answer_kvs(call_at(0), 10, 1, 1);
    assert_int_equal(r->done, 1);
    engine_range_close(&r->range);
}

static void what_the_mirror_lacks_is_forwarded(void **state)
{
    (void)state;
    const struct slice prefixes[] = {SLICE_LITERAL("/a/"), SLICE_LITERAL("/b\xff")};
    f.compacted = 5;
    expect_forwarded(start(0, (struct pb_range_request){.revision = 4}, "t"));
    expect_mirror(start(1, (struct pb_range_request){.revision = 5, .serializable = true}, "t"),
                  10);
    atomic_store(&f.shared.state.compacted, 6);
    expect_forwarded(start(2, (struct pb_range_request){.revision = 5}, "t"));
    f.shared.options.prefixes = prefixes;
    f.shared.options.prefix_count = 2;
    static const struct {
        const char *key, *range_end;
        bool mirrored;
    } rows[] = {
        {"/a/", "", true},     {"/a/x", "/a/y", true}, {"/a/", "/a0", true},
        {"/a/x", "/a0", true}, {"/a", "", false},      {"/a/x", "/b", false},
        {"/a/", "/a1", false}, {"/b\xff", "/c", true}, {"/b\xffz", "", true},
        {"/b", "/c", false},   {"/a/", "/c", false},   {"/b\xff", "/c0", false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct slice key = slice_from_text(rows[i].key), end = slice_from_text(rows[i].range_end);
        assert_int_equal(mirror_covers(&f.shared.options, key, end), rows[i].mirrored);
    }
    struct slice all = SLICE_LITERAL("\0");
    assert_false(mirror_covers(&f.shared.options, SLICE_LITERAL("/a/"), all));
    expect_forwarded(start(3, (struct pb_range_request){.key = SLICE_LITERAL("/x")}, "t"));
    /* Before the first sync, too. */
    atomic_store(&f.shared.state.synced, false);
    expect_forwarded(start(4, (struct pb_range_request){.key = SLICE_LITERAL("/x")}, NULL));
    f.shared.options.prefix_count = 0;
    assert_true(mirror_covers(&f.shared.options, SLICE_LITERAL("x"), all));
}

/* When it was chosen, the mirror still had the revision. */
static void what_the_mirror_drops_meanwhile_is_forwarded(void **state)
{
    (void)state;
    f.dropped = 6;
    expect_forwarded(start(0, (struct pb_range_request){.revision = 5, .serializable = true}, "t"));
    struct reading *waiting = start(1, (struct pb_range_request){.revision = 5}, "t");
    turn();
    call_answer_revision(call_at(0), 10);
    expect_forwarded(waiting);
    expect_mirror(start(2, (struct pb_range_request){.revision = 6, .serializable = true}, "t"),
                  10);
    assert_int_equal(atomic_load(&f.shared.state.reads_mirrored), 1);
}

/* Only the cluster decides about them, unless it has no authentication. */
static void ranges_too_long_for_questions_are_forwarded(void **state)
{
    (void)state;
    static char bytes[GRANTS_RANGE_BYTES_MAX + 1] = "/a/";
    struct slice key = slice_of(bytes, sizeof(bytes));
    run_ns(2 * NS_PER_S);
    while (cluster.count)
        call_fail(call_at(0), ST_USER_EMPTY);
    expect_forwarded(start(0, (struct pb_range_request){.key = key, .serializable = true}, "t"));
}

static void with_prefixes_progress_is_requested(void **state)
{
    (void)state;
    const struct slice prefix = SLICE_LITERAL("/a/");
    f.shared.options.prefixes = &prefix;
    f.shared.options.prefix_count = 1;
    struct reading *r = linearizable(0);
    turn();
    call_answer_revision(call_at(0), 12);
    assert_int_equal(f.progress_requests, 1);
    mirror_has(12);
    turn();
    expect_mirror(r, 12);
}

static void a_mirror_far_behind_is_not_used(void **state)
{
    (void)state;
    mirror_state_heard(&f.shared.state, 110);
    expect_mirror(serializable(0), 10);
    mirror_state_heard(&f.shared.state, 111);
    expect_forwarded(serializable(1));
}

static void linearizable_reads_of_clients_can_be_forwarded(void **state)
{
    (void)state;
    f.shared.options.reads = MIRROR_READS_FORWARD;
    expect_forwarded(linearizable(0));
    expect_mirror(serializable(1), 10);
    struct reading *own = start(2, (struct pb_range_request){0}, NULL);
    turn();
    assert_true(range_of(call_at(0)).count_only); /* a probe */
    call_answer_revision(call_at(0), 10);
    expect_mirror(own, 10);
}

static void own_reads_are_forwarded_in_our_own_name(void **state)
{
    (void)state;
    f.compacted = 5;
    struct reading *r = start(0, (struct pb_range_request){.revision = 4}, NULL);
    assert_true(call_at(0)->request.caller.is_self);
    expect_forwarded(r);
    r = start(0, (struct pb_range_request){.revision = 4}, "");
    assert_false(call_at(0)->request.caller.is_self);
    assert_int_equal(call_at(0)->token.len, 0);
    expect_forwarded(r);
}

static void forwarded_answers_are_complete(void **state)
{
    (void)state;
    f.compacted = 5;
    struct reading *r = start(0, (struct pb_range_request){.revision = 4}, "t");
    struct engine_range *range = &r->range;
    answer_kvs(call_at(0), 10, 3, 100);
    assert_int_equal(r->done, 1);
    assert_int_equal(range->op.status, ST_OK);
    assert_int_equal(range->op.revision, 10);
    assert_int_equal(range->count, 10);
    assert_int_equal(range->kvs, 3);
    assert_true(range->more);
    int64_t keys;
    uint64_t bytes;
    engine_range_window(range, 2, &keys, &bytes);
    assert_int_equal(keys, 2);
    assert_int_equal(bytes, range->kvs_bytes / 3 * 2);
    uint8_t dst[1024];
    assert_int_equal(engine_range_fill(range, dst, sizeof(dst)), bytes);
    engine_range_window(range, 2, &keys, &bytes);
    assert_int_equal(keys, 1);
    struct slice field;
    assert_true(engine_range_next(range, &field));
    assert_int_equal(field.len, bytes);
    assert_false(engine_range_next(range, &field));
    engine_range_close(range);
    engine_range_close(range);
}

static void long_answers_are_examined_in_several_turns(void **state)
{
    (void)state;
    f.compacted = 5;
    struct reading *r = start(0, (struct pb_range_request){.revision = 4}, "t");
    answer_kvs(call_at(0), 10, 50000, 1);
    unsigned turns = 0;
    for (; !r->done; turns++)
        turn();
    assert_true(turns >= 3);
    assert_int_equal(r->range.kvs, 50000);
    engine_range_close(&r->range);
}

static void errors_of_the_cluster_pass_unchanged(void **state)
{
    (void)state;
    f.compacted = 5;
    struct reading *r = start(0, (struct pb_range_request){.revision = 4}, "t");
    call_fail(call_at(0), ST_COMPACTED);
    expect_failed(r, ST_COMPACTED, status_text(ST_COMPACTED));
    engine_range_close(&r->range);
    r = start(0, (struct pb_range_request){.revision = 4}, "t");
    call_end(call_at(0), GRPC_UNAVAILABLE, "of a later version");
    expect_failed(r, ST_AGAIN, "of a later version");
    r = start(0, (struct pb_range_request){.revision = 4}, "t");
    call_end(call_at(0), GRPC_OK, "");
    expect_failed(r, ST_INTERNAL, "vigil: the cluster's answer is malformed");
    r = start(0, (struct pb_range_request){.revision = 4}, "t");
    call_at(0)->ops->on_message(call_at(0), SLICE_LITERAL("\x12\x7f"));
    call_end(call_at(0), GRPC_OK, "");
    expect_failed(r, ST_INTERNAL, "vigil: the cluster's answer is malformed");
    r = start(0, (struct pb_range_request){.revision = 4}, "t");
    call_at(0)->ops->on_message(call_at(0), SLICE_LITERAL("\x0a\x02\x18\x09"));
    call_at(0)->ops->on_message(call_at(0), SLICE_LITERAL("\x0a\x02\x18\x09"));
    call_end(call_at(0), GRPC_OK, "");
    expect_failed(r, ST_INTERNAL, "vigil: the cluster's answer is malformed");
    cluster.start_fails = ST_NOMEM;
    expect_failed(start(0, (struct pb_range_request){.revision = 4}, "t"), ST_NOMEM, "");
}

static void caller_without_a_deadline_does_not_wait_for_ever(void **state)
{
    (void)state;
    f.compacted = 5;
    struct reading *r = start(0, (struct pb_range_request){.revision = 4}, "t");
    assert_true(call_at(0)->request.deadline_ns < CLOCK_NEVER);
    call_end(call_at(0), GRPC_DEADLINE_EXCEEDED, "context deadline exceeded");
    expect_failed(r, ST_TIMEOUT, "");
}

/* A client never sees an older revision than before. */
static void the_answer_of_a_member_that_is_behind_is_not_used(void **state)
{
    (void)state;
    f.compacted = 5;
    struct pb_range_request request = {.revision = 4, .serializable = true};
    struct reading *r = start(0, request, "t");
    assert_true(range_of(call_at(0)).serializable);
    answer_kvs(call_at(0), 9, 1, 1);
    assert_int_equal(r->done, 0);
    assert_false(range_of(call_at(0)).serializable);
    answer_kvs(call_at(0), 11, 2, 1);
    assert_int_equal(r->done, 1);
    assert_int_equal(r->range.kvs, 2);
    engine_range_close(&r->range);
    mirror_state_wrote(&f.shared.state, 20);
    r = start(0, request, "t");
    answer_kvs(call_at(0), 19, 1, 1);
    answer_kvs(call_at(0), 20, 1, 1);
    assert_int_equal(r->done, 1);
    engine_range_close(&r->range);
}

/* The field is one of a later version, which the cluster may understand. */
static void fields_that_are_not_known_are_passed_on(void **state)
{
    (void)state;
    static const uint8_t unknown[] = "\x0a\x04/a/k\xfa\x06\x03new"; /* field 111 */
    static const uint8_t stale[] = "\x0a\x04/a/k\x38\x01\xfa\x06\x03new";
    struct pb_range_request request = {.key = SLICE_LITERAL("/a/k")};
    f.sent = slice_of(unknown, sizeof(unknown) - 1);
    struct reading *r = start(0, request, "t");
    assert_true(slice_equal(buf_slice(&call_at(0)->sent), f.sent));
    answer_kvs(call_at(0), 12, 1, 1);
    engine_range_close(&r->range);
    request.serializable = true;
    f.sent = slice_of(stale, sizeof(stale) - 1);
    r = start(0, request, "t");
    assert_true(slice_equal(buf_slice(&call_at(0)->sent), f.sent));
    answer_kvs(call_at(0), 9, 1, 1); /* the answer of a member that is behind */
    assert_true(slice_has_prefix(buf_slice(&call_at(0)->sent), f.sent));
    assert_false(range_of(call_at(0)).serializable);
    answer_kvs(call_at(0), 12, 1, 1);
    engine_range_close(&r->range);
    mirror_has(12);
    expect_mirror(start(0, (struct pb_range_request){.serializable = true}, NULL), 12);
    f.sent = slice_of(stale, 8); /* nothing is unknown */
    expect_mirror(start(0, request, "t"), 12);
}

static void an_answer_has_a_limit(void **state)
{
    (void)state;
    f.compacted = 5;
    struct reading *r = start(0, (struct pb_range_request){.revision = 4}, "t");
    answer_kvs(call_at(0), 10, 1, MIRROR_ANSWER_BYTES_MAX + 1);
    expect_failed(r, ST_LIMIT,
                  "vigil: the cluster's answer is too long to be forwarded; use a limit");
}

/* Others wait for the room of an answer that the client does not read. */
static void an_answer_that_is_not_read_in_time_is_taken_back(void **state)
{
    (void)state;
    uint8_t bytes[64];
    f.compacted = 5;
    struct reading *r = start(0, (struct pb_range_request){.revision = 4}, "t");
    answer_kvs(call_at(0), 10, 2, 100);
    assert_int_equal(r->range.op.status, ST_OK);
    assert_int_equal(engine_range_fill(&r->range, bytes, sizeof(bytes)), sizeof(bytes));
    cluster.kept->overdue(cluster.kept);
    assert_int_equal(engine_range_fill(&r->range, bytes, sizeof(bytes)), 0);
    assert_int_equal(r->range.op.status, ST_REQUEST_TOO_MANY_REQUESTS);
    engine_range_close(&r->range);
}

static void reads_that_are_forwarded_have_a_limit(void **state)
{
    (void)state;
    enum { LINED = 5, ALL = MIRROR_FORWARDED_MAX + LINED };
    f.compacted = 5;
    for (size_t i = 0; i < ALL; i++)
        start(i, (struct pb_range_request){.revision = 4}, "t");
    assert_int_equal(cluster.count, MIRROR_FORWARDED_MAX);
    engine_give_up(&reading_at(MIRROR_FORWARDED_MAX)->range.op); /* the first in line */
    turn();
    expect_failed(reading_at(MIRROR_FORWARDED_MAX), ST_CANCELED, "");
    answer_kvs(call_at(0), 10, 1, 1);
    start(MIRROR_FORWARDED_MAX, (struct pb_range_request){.revision = 4}, "t"); /* the last */
    assert_int_equal(cluster.count, MIRROR_FORWARDED_MAX - 1);
    turn();
    assert_int_equal(cluster.count, MIRROR_FORWARDED_MAX);
    engine_give_up(&reading_at(1)->range.op);
    turn();
    assert_int_equal(cluster.count, MIRROR_FORWARDED_MAX);
    assert_int_equal(cluster.started, MIRROR_FORWARDED_MAX + 2);
    /* The time in line counts. */
    run_ns(MIRROR_FORWARD_NS);
    while (cluster.count > MIRROR_FORWARDED_MAX)
        call_fail(call_at(MIRROR_FORWARDED_MAX), ST_FUTURE_REV); /* a question of rights */
    size_t started = cluster.started;
    call_end(call_at(0), GRPC_DEADLINE_EXCEEDED, "");
    turn();
    assert_int_equal(cluster.count, MIRROR_FORWARDED_MAX - 1);
    assert_int_equal(cluster.started, started);
    expect_failed(reading_at(ALL - 1), ST_TIMEOUT, "");
    expect_failed(reading_at(MIRROR_FORWARDED_MAX), ST_TIMEOUT, "");
    while (cluster.count)
        answer_kvs(call_at(0), 10, 1, 1);
    for (size_t i = 0; i < ALL; i++)
        engine_range_close(&reading_at(i)->range);
}

static void the_line_has_a_limit(void **state)
{
    (void)state;
    enum { ALL = MIRROR_FORWARDED_MAX + MIRROR_LINED_MAX };
    struct reading *all = calloc(ALL, sizeof(*all));
    assert_non_null(all);
    f.compacted = 5;
    for (size_t i = 0; i < ALL; i++) {
        all[i].request = (struct pb_range_request){.key = SLICE_LITERAL("/a/k"), .revision = 4};
        all[i].range.op = (struct engine_op){.done = on_done, .arena = &f.arena};
        engine_range_start(&f.shard.base, &all[i].range, &all[i].request);
        assert_int_equal(all[i].done, 0);
    }
    struct reading *r = start(0, (struct pb_range_request){.revision = 4}, "t");
    expect_failed(r, ST_REQUEST_TOO_MANY_REQUESTS, "");
    for (size_t i = 0; i < ALL; i++)
        engine_give_up(&all[i].range.op);
    turn();
    for (size_t i = 0; i < ALL; i++)
        assert_int_equal(all[i].done, 1);
    free(all);
}

static void a_list_that_is_too_long_waits_for_the_mirror(void **state)
{
    (void)state;
    struct reading *r[2];
    for (size_t i = 0; i < 2; i++) {
        r[i] = linearizable(i);
        turn();
        call_answer_revision(call_at(0), 12);
        run_ns(WAIT_NS + 1);
        answer_kvs(call_at(0), 12, 1, MIRROR_ANSWER_BYTES_MAX + 1);
        assert_int_equal(r[i]->done, 0);
    }
    struct reading *other = linearizable(2);
    turn();
    call_answer_revision(call_at(0), 12);
    run_ns(WAIT_NS + 1); /* others are forwarded as usual */
    answer_kvs(call_at(0), 12, 1, 1);
    assert_int_equal(other->done, 1);
    engine_range_close(&other->range);
    mirror_has(12);
    turn();
    expect_mirror(r[0], 12);
    expect_mirror(r[1], 12);
    mirror_state_wrote(&f.shared.state, 14);
    other = serializable(2);
    run_ns(WAIT_NS + 1);
    answer_kvs(call_at(0), 14, 1, MIRROR_ANSWER_BYTES_MAX + 1);
    while (!other->done) {
        run_ns(MIRROR_PATIENCE_NS / 4);
        while (cluster.count)
            call_fail(call_at(0), ST_FUTURE_REV); /* questions of rights */
    }
    assert_int_equal(other->range.op.status, ST_LIMIT);
}

static void memory_that_clients_may_hold_is_respected(void **state)
{
    (void)state;
    struct budget *budget;
    struct account *account;
    struct arena arena;
    assert_int_equal(budget_new(1 << 20, &budget), ST_OK);
    assert_int_equal(account_new(budget, &account), ST_OK);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    arena_charge_borrowed(&arena, account);
    f.compacted = 5;
    struct reading *r = reading_at(0);
    *r = (struct reading){.request = {.key = SLICE_LITERAL("/a/k"), .revision = 4},
                          .range.op = {.done = on_done, .arena = &arena}};
    engine_range_start(&f.shard.base, &r->range, &r->request);
    answer_kvs(call_at(0), 10, 1, 2 << 20);
    expect_failed(r, ST_NOMEM, "");
    arena_fini(&arena);
    account_unref(account);
    budget_free(budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_the_mirror_lacks_is_forwarded),
        TEST(what_the_mirror_drops_meanwhile_is_forwarded),
        TEST(ranges_too_long_for_questions_are_forwarded),
        TEST(with_prefixes_progress_is_requested),
        TEST(a_mirror_far_behind_is_not_used),
        TEST(linearizable_reads_of_clients_can_be_forwarded),
        TEST(own_reads_are_forwarded_in_our_own_name),
        TEST(forwarded_answers_are_complete),
        TEST(long_answers_are_examined_in_several_turns),
        TEST(errors_of_the_cluster_pass_unchanged),
        TEST(caller_without_a_deadline_does_not_wait_for_ever),
        TEST(the_answer_of_a_member_that_is_behind_is_not_used),
        TEST(fields_that_are_not_known_are_passed_on),
        TEST(an_answer_has_a_limit),
        TEST(an_answer_that_is_not_read_in_time_is_taken_back),
        TEST(reads_that_are_forwarded_have_a_limit),
        TEST(the_line_has_a_limit),
        TEST(a_list_that_is_too_long_waits_for_the_mirror),
        TEST(memory_that_clients_may_hold_is_respected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
