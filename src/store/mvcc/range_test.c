/* Ranges exactly as in etcd's executeRange: order, limits, filters, keys only, pieces. */
#include "store/mvcc/range.h"

#include "store/fixture_test.h"

/* Examining few keys at a time has the same result. */
static void expect_same_in_steps(const struct range_state *state,
                                 const struct pb_range_request *request, const struct range *whole)
{
    for (size_t at_once = 1; at_once < 40; at_once = at_once * 2 + 1) {
        size_t keys = at_once;
        struct range range;
        enum status status = range_begin(&range, state, request);
        assert_int_equal(status, ST_OK);
        for (int steps = 0; (status = range_step(&range, &keys)) == ST_AGAIN; steps++) {
            assert_true(steps < 100000);
            assert_int_equal(keys, 0);
            keys = at_once;
        }
        assert_int_equal(status, ST_OK);
        assert_int_equal(range.count, whole->count);
        assert_int_equal(range.kvs, whole->kvs);
        assert_int_equal(range.kvs_bytes, whole->kvs_bytes);
        assert_int_equal(range.more, whole->more);
        range_fini(&range);
    }
}

/* Answers all of it as text like fixture_text; the range's own numbers stay readable. */
static const char *read_all(struct fixture *f, const struct pb_range_request *request,
                            struct range *range)
{
    struct range_state state = fixture_state(f);
    assert_int_equal(range_init(range, &state, request), ST_OK);
    expect_same_in_steps(&state, request, range);
    uint8_t *bytes = arena_alloc(&f->arena, range->kvs_bytes + 1);
    assert_int_equal(range_fill(range, bytes, range->kvs_bytes + 1), range->kvs_bytes);
    const char *text = fixture_text(f, slice_of(bytes, range->kvs_bytes));
    range_fini(range);

    /* The same within a transaction. */
    struct kv_range_answer answer;
    assert_int_equal(range_answer(&state, request, &f->arena, &answer), ST_OK);
    struct buf joined = {0};
    for (size_t i = 0; i < answer.field_count; i++)
        assert_int_equal(buf_append(&joined, answer.fields[i]), ST_OK);
    assert_int_equal(joined.len, answer.fields_bytes);
    assert_string_equal(fixture_text(f, buf_slice(&joined)), text);
    buf_fini(&joined);
    assert_int_equal(answer.count, range->count);
    assert_int_equal(answer.more, range->more);
    return text;
}

static void expect(struct fixture *f, struct pb_range_request request, const char *text,
                   int64_t count, bool more)
{
    struct range range;
    assert_string_equal(read_all(f, &request, &range), text);
    assert_int_equal(range.count, count);
    assert_int_equal(range.more, more);
}

static struct pb_range_request all(void)
{
    return (struct pb_range_request){.key = SLICE_LITERAL("a"), .range_end = SLICE_LITERAL("z")};
}

/*
 *      create  mod  version  value
 *  a     2      5      2      "3"
 *  b     3      3      1      "9"
 *  c     4      8      3      "1"
 *  d     6      6      1      "9"     lease 77
 */
static int setup(void **state)
{
    fixture_setup(state);
    struct fixture *f = *state;
    fixture_put(f, "a", "0");
    fixture_put(f, "b", "9");
    fixture_put(f, "c", "0");
    fixture_put(f, "a", "3");
    struct pb_put_request leased = {
        .key = SLICE_LITERAL("d"), .value = SLICE_LITERAL("9"), .lease = FIXTURE_LEASE};
    struct kv_answer answer;
    assert_int_equal(applier_put(store_applier(f->store), &leased, &f->arena, &answer), ST_OK);
    fixture_put(f, "c", "5");
    assert_int_equal(fixture_put(f, "c", "1"), 8);
    return 0;
}

#define A "a=3@2.5.2"
#define B "b=9@3.3.1"
#define C "c=1@4.8.3"
#define D "d=9@6.6.1+77"

static void bounds_are_one_key_a_range_or_everything_after(void **state)
{
    struct fixture *f = *state;
    expect(f, all(), A " " B " " C " " D, 4, false);
    expect(f, (struct pb_range_request){.key = SLICE_LITERAL("b")}, B, 1, false);
    expect(f, (struct pb_range_request){.key = SLICE_LITERAL("bb")}, "", 0, false);
    expect(f, (struct pb_range_request){.key = SLICE_LITERAL("b"), .range_end = SLICE_LITERAL("d")},
           B " " C, 2, false);
    expect(f,
           (struct pb_range_request){.key = SLICE_LITERAL("c"), .range_end = SLICE_LITERAL("\0")},
           C " " D, 2, false);
    expect(f,
           (struct pb_range_request){.key = SLICE_LITERAL("\0"), .range_end = SLICE_LITERAL("\0")},
           A " " B " " C " " D, 4, false);
    expect(f, (struct pb_range_request){.key = SLICE_LITERAL("d"), .range_end = SLICE_LITERAL("b")},
           "", 0, false);
}

static void sorts_by_every_target_in_both_orders(void **state)
{
    const struct {
        int32_t target;
        const char *ascending, *descending;
    } cases[] = {
        {PB_SORT_TARGET_KEY, A " " B " " C " " D, D " " C " " B " " A},
        {PB_SORT_TARGET_VERSION, B " " D " " A " " C, C " " A " " B " " D},
        {PB_SORT_TARGET_CREATE, A " " B " " C " " D, D " " C " " B " " A},
        {PB_SORT_TARGET_MOD, B " " A " " D " " C, C " " D " " A " " B},
        {PB_SORT_TARGET_VALUE, C " " A " " B " " D, B " " D " " A " " C},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pb_range_request request = all();
        request.sort_target = cases[i].target;
        request.sort_order = PB_SORT_ORDER_ASCEND;
        expect(*state, request, cases[i].ascending, 4, false);
        request.sort_order = PB_SORT_ORDER_DESCEND;
        expect(*state, request, cases[i].descending, 4, false);
        /* Without an order, any target but the key sorts in ascending order. */
        request.sort_order = PB_SORT_ORDER_NONE;
        expect(*state, request, cases[i].ascending, 4, false);
    }
}

static void limit_is_applied_after_sorting(void **state)
{
    struct pb_range_request request = all();
    request.limit = 2;
    expect(*state, request, A " " B, 4, true);
    request.sort_target = PB_SORT_TARGET_MOD;
    request.sort_order = PB_SORT_ORDER_DESCEND;
    expect(*state, request, C " " D, 4, true);
    request.sort_order = PB_SORT_ORDER_ASCEND;
    expect(*state, request, B " " A, 4, true);
    /* One more than the limit is taken in key order, and those are sorted. */
    request.sort_order = PB_SORT_ORDER_NONE;
    expect(*state, request, B " " A, 4, true);
    request.limit = 1;
    request.sort_target = PB_SORT_TARGET_VALUE;
    expect(*state, request, A, 4, true);
    request.sort_order = PB_SORT_ORDER_ASCEND;
    expect(*state, request, C, 4, true);
}

static void limits_at_and_past_the_end_return_everything(void **state)
{
    struct pb_range_request request = all();
    const int64_t limits[] = {4, 5, INT64_MAX, -1, INT64_MIN};
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        request.limit = limits[i];
        request.sort_target = PB_SORT_TARGET_KEY;
        expect(*state, request, A " " B " " C " " D, 4, false);
        request.sort_target = PB_SORT_TARGET_MOD;
        expect(*state, request, B " " A " " D " " C, 4, false);
    }
}

static void filters_do_not_change_the_count_and_precede_the_limit(void **state)
{
    struct pb_range_request request = all();
    request.min_mod_revision = 5;
    expect(*state, request, A " " C " " D, 4, false);
    request.max_mod_revision = 6;
    expect(*state, request, A " " D, 4, false);
    request.limit = 1;
    expect(*state, request, A, 4, true);
    request = all();
    request.min_create_revision = 3;
    request.max_create_revision = 4;
    expect(*state, request, B " " C, 4, false);
    request.max_create_revision = 1;
    expect(*state, request, "", 4, false);
    /* A single key is filtered too. */
    request = (struct pb_range_request){.key = SLICE_LITERAL("a"), .min_mod_revision = 6};
    expect(*state, request, "", 1, false);
}

static void keys_only_drops_the_lease_unless_values_are_sorted(void **state)
{
    struct pb_range_request request = all();
    request.keys_only = true;
    expect(*state, request, "a=@2.5.2 b=@3.3.1 c=@4.8.3 d=@6.6.1", 4, false);
    request.limit = 1;
    expect(*state, request, "a=@2.5.2", 4, true);
    request.limit = 0;
    request.sort_target = PB_SORT_TARGET_VALUE;
    expect(*state, request, "c=@4.8.3 a=@2.5.2 b=@3.3.1 d=@6.6.1+77", 4, false);
    request = (struct pb_range_request){.key = SLICE_LITERAL("d"), .keys_only = true};
    expect(*state, request, "d=@6.6.1", 1, false);
}

static void count_only_ignores_limit_filters_and_order(void **state)
{
    struct pb_range_request request = all();
    request.count_only = true;
    expect(*state, request, "", 4, false);
    request.limit = 1;
    request.min_mod_revision = 8;
    request.sort_target = PB_SORT_TARGET_VALUE;
    request.keys_only = true;
    expect(*state, request, "", 4, false);
    request.revision = 3;
    expect(*state, request, "", 2, false);
    request = (struct pb_range_request){.key = SLICE_LITERAL("a"), .count_only = true};
    expect(*state, request, "", 1, false);
}

static void old_revisions_return_old_values(void **state)
{
    struct fixture *f = *state;
    fixture_delete(f, "b", "");
    struct pb_range_request request = all();
    request.revision = 1;
    expect(f, request, "", 0, false);
    request.revision = 4;
    expect(f, request, "a=0@2.2.1 " B " c=0@4.4.1", 3, false);
    request.limit = 2;
    expect(f, request, "a=0@2.2.1 " B, 3, true);
    request.limit = 0;
    request.keys_only = true;
    expect(f, request, "a=@2.2.1 b=@3.3.1 c=@4.4.1", 3, false);
    request.keys_only = false;
    request.revision = 8;
    expect(f, request, A " " B " " C " " D, 4, false);
    request.revision = 9;
    expect(f, request, A " " C " " D, 3, false);
    request.revision = -3; /* the newest */
    expect(f, request, A " " C " " D, 3, false);
}

/* Counting avoids reading the log where it can; the result must be the same. */
static void counts_at_old_revisions_match_the_keys(void **state)
{
    struct fixture *f = *state;
    fixture_delete(f, "a", ""); /* 9: deleted */
    fixture_delete(f, "b", ""); /* deleted and created again */
    fixture_put(f, "b", "2");   /* 11 */
    fixture_put(f, "c", "2");   /* 12: changed */
    fixture_put(f, "e", "1");   /* 13: new */
    for (int64_t revision = 1; revision <= 13; revision++) {
        struct pb_range_request request = all();
        struct range range;
        request.revision = revision;
        read_all(f, &request, &range);
        assert_int_equal(range.count, range.kvs);
        int64_t count = range.count;
        request.count_only = true;
        read_all(f, &request, &range);
        assert_int_equal(range.count, count);
    }
}

static void compacted_and_future_revisions_are_refused(void **state)
{
    struct fixture *f = *state;
    fixture_compact(f, 5);
    struct range_state view = fixture_state(f);
    struct range range;
    struct pb_range_request request = all();
    request.revision = 4;
    assert_int_equal(range_init(&range, &view, &request), ST_COMPACTED);
    request.revision = 9;
    assert_int_equal(range_init(&range, &view, &request), ST_FUTURE_REV);
    request.count_only = true;
    assert_int_equal(range_init(&range, &view, &request), ST_FUTURE_REV);
    request.count_only = false;
    request.revision = 5;
    expect(f, request, A " " B " c=0@4.4.1", 3, false);
    fixture_settle(f);
    expect(f, request, A " " B " c=0@4.4.1", 3, false);
}

/* Reads a range window by window, each in pieces of this many bytes. */
static void expect_pieces(struct fixture *f, const struct pb_range_request *request, int64_t window,
                          size_t piece, const char *whole)
{
    struct range_state view = fixture_state(f);
    struct range range;
    assert_int_equal(range_init(&range, &view, request), ST_OK);
    struct buf out = {0};
    for (;;) {
        int64_t keys;
        uint64_t bytes;
        range_window(&range, window, &keys, &bytes);
        if (keys == 0)
            break;
        size_t end = out.len + bytes;
        assert_int_equal(buf_reserve(&out, bytes + piece), ST_OK);
        for (size_t n = piece; n == piece; out.len += n)
            n = range_fill(&range, out.ptr + out.len, piece);
        assert_int_equal(out.len, end);
    }
    assert_int_equal(out.len, range.kvs_bytes);
    assert_string_equal(fixture_text(f, buf_slice(&out)), whole);
    buf_fini(&out);
    range_fini(&range);
}

static void windows_and_pieces_do_not_change_the_bytes(void **state)
{
    struct fixture *f = *state;
    for (int variant = 0; variant < 6; variant++) {
        struct pb_range_request request = all();
        request.keys_only = variant & 1;
        request.sort_target = variant / 2 == 1 ? PB_SORT_TARGET_VALUE : PB_SORT_TARGET_KEY;
        request.revision = variant / 2 == 2 ? 6 : 0;
        struct range range;
        const char *whole = read_all(f, &request, &range);
        for (int64_t window = 1; window <= 5; window++) {
            for (size_t piece = 1; piece < 40; piece += 3)
                expect_pieces(f, &request, window, piece, whole);
        }
    }
}

/* Only as many as the limit are held: they must be the first of all, sorted. */
static void limited_sorted_list_is_a_prefix_of_the_whole(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 300; i++) {
        char key[32], value[16];
        snprintf(key, sizeof(key), "m%03d", i * 77 % 150);
        snprintf(value, sizeof(value), "%d", i * 31 % 40);
        fixture_put(f, key, value);
    }
    for (int32_t target = 0; target <= PB_SORT_TARGET_VALUE; target++) {
        for (int32_t order = PB_SORT_ORDER_ASCEND; order <= PB_SORT_ORDER_DESCEND; order++) {
            struct pb_range_request request = all();
            request.sort_target = target;
            request.sort_order = order;
            struct range range;
            const char *whole = read_all(f, &request, &range);
            int64_t count = range.count;
            for (request.limit = 1; request.limit <= count + 2; request.limit += 5) {
                const char *part = read_all(f, &request, &range);
                assert_memory_equal(part, whole, strlen(part));
                assert_int_equal(range.kvs, request.limit < count ? request.limit : count);
                assert_int_equal(range.more, request.limit < count);
                assert_int_equal(range.count, count);
            }
        }
    }
}

/* The sums of the index and a walk must agree. */
static void announced_sizes_are_right_for_many_keys(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 500; i++) {
        char key[16];
        snprintf(key, sizeof(key), "m%03d", i * 7 % 500);
        fixture_put(f, key, i % 3 ? "value" : "");
        if (i % 5 == 0)
            fixture_delete(f, key, "");
    }
    struct pb_range_request request = all();
    struct range range;
    read_all(f, &request, &range);
    assert_int_equal(range.count, 404);
    request.limit = 403;
    read_all(f, &request, &range);
    assert_true(range.more);
    request.limit = 404;
    read_all(f, &request, &range);
    assert_false(range.more);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

/* A slow reader: between pieces everything is overwritten, deleted, compacted and cleaned. */
static void expect_same_over_newer_states(struct fixture *f, struct pb_range_request request)
{
    struct range_state state = fixture_state(f);
    struct range whole, slow;
    assert_int_equal(range_init(&whole, &state, &request), ST_OK);
    assert_int_equal(range_init(&slow, &state, &request), ST_OK);
    struct buf expected = {0}, got = {0};
    assert_int_equal(buf_reserve(&expected, whole.kvs_bytes + 1), ST_OK);
    expected.len = range_fill(&whole, expected.ptr, whole.kvs_bytes + 1);
    range_fini(&whole);

    struct epoch_slot *slot = epoch_slot_add(store_epoch(f->store));
    uint64_t pinned = epoch_pin(slot);
    for (int step = 0;; step++) {
        assert_int_equal(buf_reserve(&got, 13), ST_OK);
        size_t n = range_fill(&slow, got.ptr + got.len, 13);
        got.len += n;
        if (n < 13)
            break;
        char key[32];
        snprintf(key, sizeof(key), "many-%03d", step * 7 % 100);
        fixture_put(f, key, "another value altogether");
        snprintf(key, sizeof(key), "many-%03d", step * 3 % 100);
        fixture_delete(f, key, "");
        fixture_commit(f);
        uint64_t newer = epoch_pin(slot);
        state = fixture_state(f);
        assert_true(range_rebase_begin(&slow, &state));
        for (size_t keys = 3; !range_rebase_step(&slow, &keys); keys = 3) {
            /* It is read on, from both. */
            assert_int_equal(buf_reserve(&got, 1), ST_OK);
            got.len += range_fill(&slow, got.ptr + got.len, 1);
        }
        epoch_unpin(slot, pinned);
        pinned = newer;
        assert_int_equal(store_trim_step(f->store), ST_OK); /* frees what only the old state had */
    }
    assert_int_equal(got.len, expected.len);
    assert_memory_equal(got.ptr, expected.ptr, expected.len);
    epoch_unpin(slot, pinned);
    range_fini(&slow);
    buf_fini(&expected);
    buf_fini(&got);
}

static void many_keys(struct fixture *f)
{
    for (int i = 0; i < 100; i++) {
        char key[32], value[32];
        snprintf(key, sizeof(key), "many-%03d", i);
        snprintf(value, sizeof(value), "value %d", i * 37 % 100);
        fixture_put(f, key, value);
    }
    fixture_commit(f);
}

static struct pb_range_request many(void)
{
    return (struct pb_range_request){.key = SLICE_LITERAL("many-"),
                                     .range_end = SLICE_LITERAL("many.")};
}

static void a_list_is_the_same_over_newer_states(void **state)
{
    struct fixture *f = *state;
    many_keys(f);
    expect_same_over_newer_states(f, many());
}

static void a_limited_list_of_keys_is_the_same_over_newer_states(void **state)
{
    struct fixture *f = *state;
    many_keys(f);
    struct pb_range_request request = many();
    request.keys_only = true;
    request.limit = 60;
    expect_same_over_newer_states(f, request);
}

static void a_sorted_list_is_the_same_over_newer_states(void **state)
{
    struct fixture *f = *state;
    many_keys(f);
    struct pb_range_request request = many();
    request.sort_target = PB_SORT_TARGET_VALUE;
    request.sort_order = PB_SORT_ORDER_DESCEND;
    expect_same_over_newer_states(f, request);
}

static void a_compacted_revision_has_no_newer_state(void **state)
{
    struct fixture *f = *state;
    many_keys(f);
    struct range_state before = fixture_state(f);
    struct range range;
    struct pb_range_request request = many();
    assert_int_equal(range_init(&range, &before, &request), ST_OK);
    struct epoch_slot *slot = epoch_slot_add(store_epoch(f->store));
    uint64_t pinned = epoch_pin(slot);
    int64_t revision = fixture_put(f, "many-050", "");
    assert_int_equal(applier_compact(store_applier(f->store), revision), ST_OK);
    fixture_commit(f);
    struct range_state after = fixture_state(f);
    assert_false(range_rebase_begin(&range, &after));
    epoch_unpin(slot, pinned);
    range_fini(&range);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(bounds_are_one_key_a_range_or_everything_after),
        TEST(sorts_by_every_target_in_both_orders),
        TEST(limit_is_applied_after_sorting),
        TEST(limits_at_and_past_the_end_return_everything),
        TEST(filters_do_not_change_the_count_and_precede_the_limit),
        TEST(keys_only_drops_the_lease_unless_values_are_sorted),
        TEST(count_only_ignores_limit_filters_and_order),
        TEST(old_revisions_return_old_values),
        TEST(counts_at_old_revisions_match_the_keys),
        TEST(compacted_and_future_revisions_are_refused),
        TEST(windows_and_pieces_do_not_change_the_bytes),
        TEST(limited_sorted_list_is_a_prefix_of_the_whole),
        TEST(announced_sizes_are_right_for_many_keys),
        TEST(a_list_is_the_same_over_newer_states),
        TEST(a_limited_list_of_keys_is_the_same_over_newer_states),
        TEST(a_sorted_list_is_the_same_over_newer_states),
        TEST(a_compacted_revision_has_no_newer_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
