/* The small parts that judge a cluster: its last change, its compactions, its term,
 * and the ranges that are mirrored. */
#include "engine/engine.h"
#include "mirror/directory/raft_mark.h"
#include "mirror/follow/compact_search.h"
#include "mirror/follow/history_check.h"
#include "mirror/follow/lag_monitor.h"
#include "mirror/follow/status_poll.h"
#include "mirror/load/ranges.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

/* -- History check -- */

static const vigil_kv seen = {
    .key = {"k", 1},
    .create_revision = 3,
    .mod_revision = 9,
    .version = 4,
    .value = {"value", 5},
    .lease = 7,
};

static void note_put(struct history_check *history_check)
{
    history_check_note(history_check, &(struct imported_change){
                                          .kv = {.key = SLICE_LITERAL("k"),
                                                 .create_revision = 3,
                                                 .mod_revision = 9,
                                                 .version = 4,
                                                 .value = SLICE_LITERAL("value"),
                                                 .lease = 7},
                                      });
}

static void every_field_of_the_last_put_counts(void **state)
{
    (void)state;
    struct history_check history_check = {0};
    struct slice key;
    int64_t revision;
    assert_false(history_check_question(&history_check, HISTORY_CHECK_PUT, &key, &revision));
    note_put(&history_check);
    assert_true(history_check_question(&history_check, HISTORY_CHECK_PUT, &key, &revision));
    assert_int_equal(revision, 9);
    assert_true(slice_is(key, "k"));
    assert_true(history_check_agrees(&history_check, HISTORY_CHECK_PUT, &seen));
    assert_false(history_check_agrees(&history_check, HISTORY_CHECK_PUT, NULL));
    for (unsigned field = 0; field < 6; field++) {
        vigil_kv other = seen;
        other.create_revision += field == 0;
        other.mod_revision -= field == 1;
        other.version += field == 2;
        other.lease += field == 3;
        if (field >= 4)
            other.value = field == 4 ? vigil_text("valu") : vigil_text("valuf");
        assert_false(history_check_agrees(&history_check, HISTORY_CHECK_PUT, &other));
    }
    history_check_fini(&history_check);
}

static void a_later_delete_has_two_questions(void **state)
{
    (void)state;
    struct history_check history_check = {0};
    struct slice key;
    int64_t revision;
    note_put(&history_check);
    assert_false(history_check_question(&history_check, HISTORY_CHECK_GONE, &key, &revision));
    history_check_note(&history_check, &(struct imported_change){
                                           .kv = {.key = SLICE_LITERAL("d"), .mod_revision = 12},
                                           .is_tombstone = true});
    assert_true(history_check_question(&history_check, HISTORY_CHECK_GONE, &key, &revision));
    assert_int_equal(revision, 12);
    assert_true(slice_is(key, "d"));
    assert_true(history_check_question(&history_check, HISTORY_CHECK_WAS_THERE, &key, &revision));
    assert_int_equal(revision, 11);
    assert_true(history_check_agrees(&history_check, HISTORY_CHECK_GONE, NULL));
    assert_false(history_check_agrees(&history_check, HISTORY_CHECK_GONE, &seen));
    assert_true(history_check_agrees(&history_check, HISTORY_CHECK_WAS_THERE, &seen));
    assert_false(history_check_agrees(&history_check, HISTORY_CHECK_WAS_THERE, NULL));
    history_check.revision = 13; /* a put that is later still says more */
    assert_false(history_check_question(&history_check, HISTORY_CHECK_GONE, &key, &revision));
    history_check_fini(&history_check);
}

/* -- The raft log -- */

static bool is_same_log(uint64_t before, int64_t elapsed_ms, uint64_t now)
{
    const int64_t then_ms = 1790000000000;
    return raft_mark_is_same_log((struct raft_mark){before, then_ms},
                                 (struct raft_mark){now, then_ms + elapsed_ms});
}

static void a_log_that_cannot_be_a_new_one_is_the_same(void **state)
{
    (void)state;
    const uint64_t rate = RAFT_ENTRIES_PER_S_MAX;
    assert_true(is_same_log(10 * rate, 0, 10 * rate));
    assert_true(is_same_log(10 * rate, 2500, 10 * rate + 7));
    assert_true(is_same_log(10 * rate, 8999, 10 * rate));
    assert_false(is_same_log(10 * rate, 9000, 10 * rate)); /* a new one may have come so far */
    assert_false(is_same_log(rate, 0, rate));
    assert_false(is_same_log(3, 0, 3));
    assert_false(is_same_log(10 * rate, 0, 10 * rate - 1)); /* it has gone back */
    assert_false(is_same_log(10 * rate, 0, 11 * rate + 1)); /* no cluster writes so much */
    assert_true(is_same_log(10 * rate, 0, 11 * rate));
}

static void an_unknown_log_and_a_clock_that_went_back_prove_nothing(void **state)
{
    (void)state;
    const uint64_t rate = RAFT_ENTRIES_PER_S_MAX;
    assert_false(is_same_log(0, 0, 10 * rate));
    assert_false(is_same_log(10 * rate, 0, 0));
    assert_false(is_same_log(10 * rate, -1, 10 * rate));
    assert_false(raft_mark_is_same_log((struct raft_mark){10 * rate, INT64_MIN},
                                       (struct raft_mark){10 * rate, INT64_MAX}));
    assert_false(raft_mark_is_same_log((struct raft_mark){UINT64_MAX, 0},
                                       (struct raft_mark){UINT64_MAX, INT64_MAX}));
}

/* -- Compactions -- */

static void the_compact_revision_is_found_for_every_pair(void **state)
{
    (void)state;
    for (int64_t known = 0; known < 40; known++) {
        for (int64_t compacted = known; compacted < 40; compacted++) {
            struct compact_search search;
            unsigned questions = 0;
            int64_t revision;
            compact_search_init(&search, known, 40);
            for (; (revision = compact_search_next(&search)); questions++)
                compact_search_answer(&search, revision >= compacted);
            int64_t found = compact_search_result(&search);
            /* Nothing is older than the first revision: its compaction has no effect. */
            assert_int_equal(found, compacted == 1 && known == 0 ? 0 : compacted);
            assert_true(questions <= (found == known ? 1 : 7));
        }
    }
}

/* -- Alarms -- */

static unsigned alarms_in(const char *text)
{
    return status_poll_alarms_in(slice_from_text(text));
}

static void alarms_are_found_in_the_errors_of_a_status(void **state)
{
    (void)state;
    assert_int_equal(alarms_in("memberID:13803658152347727308 alarm:NOSPACE "),
                     1 << ENGINE_ALARM_NOSPACE);
    assert_int_equal(alarms_in("memberID:1  alarm:CORRUPT"), 1 << ENGINE_ALARM_CORRUPT);
    assert_int_equal(alarms_in("etcdserver: no leader"), 0);
    assert_int_equal(alarms_in(""), 0);
}

/* -- Ranges -- */

static void prefixes_become_disjoint_ranges(void **state)
{
    (void)state;
    static const struct slice given[] = {SLICE_LITERAL("/b/c"), SLICE_LITERAL("/b"),
                                         SLICE_LITERAL("\xff"), SLICE_LITERAL("/a/"),
                                         SLICE_LITERAL("/b")};
    struct ranges ranges;
    ranges_init(&ranges, given, COUNT_OF(given));
    assert_int_equal(ranges.count, 3);
    assert_int_equal(ranges.prefix_count, 3);
    assert_true(slice_is(ranges.items[0].key, "/a/"));
    assert_true(slice_is(ranges.items[0].range_end, "/a0"));
    assert_true(slice_is(ranges.items[1].range_end, "/c"));
    assert_true(slice_equal(ranges.items[2].range_end, slice_of("", 1))); /* all that follow */
    ranges_fini(&ranges);
}

static void no_prefix_and_an_empty_one_are_all_keys(void **state)
{
    (void)state;
    static const struct slice empty[] = {SLICE_LITERAL("/a"), SLICE_LITERAL("")};
    for (size_t count = 0; count <= 2; count += 2) {
        struct ranges ranges;
        ranges_init(&ranges, empty, count);
        assert_int_equal(ranges.count, 1);
        assert_int_equal(ranges.prefix_count, 0);
        assert_true(slice_equal(ranges.items[0].key, slice_of("", 1)));
        assert_true(slice_equal(ranges.items[0].range_end, slice_of("", 1)));
        ranges_fini(&ranges);
    }
}

/* -- A member that is behind -- */

/* What it has delivered every second, and what others have. */
static bool seconds(struct lag *lag, int64_t *now_s, int64_t count, int64_t received, int64_t heard)
{
    bool left = false;
    for (int64_t i = 0; i < count; i++)
        left |= lag_is_too_long(lag, ++*now_s * NS_PER_S, received, heard);
    return left;
}

static void a_member_that_does_not_follow_the_others_is_left(void **state)
{
    (void)state;
    struct lag lag = {0};
    int64_t now_s = 1000;
    assert_false(seconds(&lag, &now_s, 100, 10, 10)); /* nothing happens in the cluster */
    assert_false(seconds(&lag, &now_s, 5, 10, 11));
    assert_false(seconds(&lag, &now_s, 5, 11, 12)); /* it is late, and delivers */
    for (int64_t i = 0; i < 100; i++)               /* always a little behind */
        assert_false(seconds(&lag, &now_s, 3, 20 + i, 21 + i));
    assert_false(
        seconds(&lag, &now_s, 100, INT64_MAX, 1000)); /* the mirror is slow, not the member */
    assert_false(seconds(&lag, &now_s, 5, 200, 1000));
    assert_true(seconds(&lag, &now_s, 1, 201, 1000));
}

/* All may be equally slow. */
static void members_are_not_left_one_after_the_other(void **state)
{
    (void)state;
    struct lag lag = {0};
    int64_t now_s = 1000;
    unsigned left = 0;
    for (int i = 0; i < 300; i++) {
        left += seconds(&lag, &now_s, 1, 10, 20 + i);
        left += lag_unanswered(&lag, now_s * NS_PER_S);
    }
    assert_in_range(left, 9, 10);
}

/* The same of a member that has sent events every second until `count` ended, when it had `has`. */
static bool seconds_of_delivery(struct lag *lag, int64_t *now_s, int64_t count, int64_t received,
                                int64_t has)
{
    bool left = false;
    for (int64_t i = 0; i < count; i++) {
        lag_note_delivery(lag, (*now_s + 1) * NS_PER_S, has);
        left |= seconds(lag, now_s, 1, received + i, 10000);
    }
    return left;
}

static void a_member_that_has_everything_may_deliver_slowly(void **state)
{
    (void)state;
    struct lag slow = {0}, stuck = {0}, behind = {0};
    int64_t now_s = 1000;
    assert_false(seconds_of_delivery(&slow, &now_s, 100, 10, 10000));
    assert_false(seconds_of_delivery(&stuck, &now_s, 5, 10, 10000));
    assert_false(seconds(&stuck, &now_s, 4, 15, 10000));
    assert_true(seconds(&stuck, &now_s, 7, 15, 10000)); /* it delivers nothing more */
    assert_false(seconds_of_delivery(&behind, &now_s, 5, 10, 9000));
    assert_true(seconds_of_delivery(&behind, &now_s, 2, 15, 9000)); /* others have more */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_of_the_last_put_counts),
        cmocka_unit_test(a_later_delete_has_two_questions),
        cmocka_unit_test(a_log_that_cannot_be_a_new_one_is_the_same),
        cmocka_unit_test(an_unknown_log_and_a_clock_that_went_back_prove_nothing),
        cmocka_unit_test(the_compact_revision_is_found_for_every_pair),
        cmocka_unit_test(alarms_are_found_in_the_errors_of_a_status),
        cmocka_unit_test(prefixes_become_disjoint_ranges),
        cmocka_unit_test(no_prefix_and_an_empty_one_are_all_keys),
        cmocka_unit_test(a_member_that_does_not_follow_the_others_is_left),
        cmocka_unit_test(members_are_not_left_one_after_the_other),
        cmocka_unit_test(a_member_that_has_everything_may_deliver_slowly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
